"""Savings of swaps: against the cost computed anew for every pair, and over all neighbours."""

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.private.aggregates.mapped import Projected
from sfumato.private.aggregates.swaps import COST_UNITS, Swaps


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def cost(rows, centers, radius):
    """Truncated cost of each row in integer units."""
    squares = ((rows[:, None] - centers) ** 2).sum(axis=2).min(axis=1, initial=np.inf)
    return np.floor(np.minimum(squares * (COST_UNITS / radius**2), COST_UNITS)).astype(np.int64)


def savings_by_numpy(rows, centers, candidates, radius):
    before = cost(rows, centers, radius).sum()
    out = []
    for i in range(len(centers)):
        for candidate in candidates:
            after = centers.copy()
            after[i] = candidate
            out.append(before - cost(rows, after, radius).sum())
    return [*out, 0]


def test_by_eye():
    swaps = Swaps(np.array([[0.0], [10.0]]), np.array([[4.0]]), 4.0)
    # The row at 4 costs all 1024 units at 0, and nothing at 4; those at 0 and 10 lose their centre.
    assert fold(swaps, [[4.0]]).tolist() == [1024, 1024, 0]
    assert fold(swaps, [[0.0]]).tolist() == [-1024, 0, 0]
    assert fold(swaps, [[10.0]]).tolist() == [0, -1024, 0]
    assert fold(swaps, [[2.0]]).tolist() == [0, 0, 0]
    assert fold(swaps, [[1e300], [-1e300]]).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (3, 4), (8, 9)])
@pytest.mark.parametrize("radius", [0.3, 2.0, 50.0])
def test_against_numpy(d, k, radius):
    rng = np.random.default_rng(10 * d + k)
    rows, centers, candidates = rng.normal(size=(700, d)), rng.normal(size=(k, d)), rng.normal(size=(11, d))
    state = fold(Swaps(centers, candidates, radius), rows)
    assert state.dtype == np.int64
    assert state.tolist() == savings_by_numpy(rows, centers, candidates, radius)


def test_centres_that_coincide_with_each_other_and_with_candidates():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    candidates = np.vstack([centers, [[0.0, 1.0]]])
    rows = rng.normal(size=(200, 2))
    found = fold(Swaps(centers, candidates, 1.5), rows)
    assert found.tolist() == savings_by_numpy(rows, centers, candidates, 1.5)
    assert found[0] == found[-1] == 0


def test_in_a_projection():
    rng = np.random.default_rng(0)
    rows, matrix = rng.normal(size=(300, 6)), np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    swaps = Swaps(rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), 1.0)
    whole = fold(
        swaps, np.array([[sum(a * b for a, b in zip(p, r, strict=True)) for p in matrix] for r in rows])
    )
    assert (fold(Projected(swaps, matrix), rows) == whole).all()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_one_row_moves_scores_within_one_cost_unit_of_each_other(k):
    rng = np.random.default_rng(k)
    centers, candidates = rng.uniform(-1, 1, size=(k, 2)), rng.uniform(-1, 1, size=(6, 2))
    candidates[0] = [2.0, 2.0]
    swaps = Swaps(centers, candidates, 0.7)
    table = rng.uniform(-1, 1, size=(20, 2))
    before, spread = fold(swaps, table), 0
    newcomers = np.vstack([rng.uniform(-1.5, 1.5, size=(500, 2)), centers, candidates])
    for row in newcomers:
        change = fold(swaps, np.vstack([table, row])) - before
        spread = max(spread, int(np.ptp(change)))
        own = int(cost(row[None], centers, 0.7)[0])
        assert own - COST_UNITS <= change.min() <= 0 <= change.max() <= own
    for i in range(len(table)):
        assert np.ptp(fold(swaps, np.delete(table, i, axis=0)) - before) <= COST_UNITS
    assert spread == swaps.sensitivity.spread == COST_UNITS


def test_a_row_on_all_candidates_reaches_every_norm():
    swaps = Swaps(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[5.0, 5.0]] * 3), 1.0)
    change, declared = fold(swaps, [[5.0, 5.0]]), swaps.sensitivity
    assert (np.abs(change).sum(), (change**2).sum()) == (declared.l1, declared.l2_squared)
    assert (change != 0).sum() == declared.coordinates == 6


def test_shapes_that_a_kernel_would_read_beyond_are_refused():
    with pytest.raises(ParameterError, match="centers"):
        Swaps(np.zeros((3, 2)), np.zeros((1, 3)), 1.0)
    with pytest.raises(ParameterError, match="rows"):
        fold(Swaps(np.zeros((3, 2)), np.zeros((2, 2)), 1.0), np.zeros((4, 3)))
