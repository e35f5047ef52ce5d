"""Newly covered rows on tables that one can check by eye, against NumPy, and over all neighbours."""

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.private.aggregates.coverage import Coverage
from sfumato.private.aggregates.mapped import Projected


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def covered_by_numpy(rows, candidates, chosen, radius):
    def within(points):
        return ((rows[:, None] - points) ** 2).sum(axis=2) <= radius**2

    return (within(candidates) & ~within(chosen).any(axis=1, keepdims=True)).sum(axis=0)


def test_a_ball_holds_its_border():
    coverage = Coverage(np.array([[0.0, 0.0], [10.0, 0.0]]), np.empty((0, 2)), 5.0)
    rows = [[3.0, 4.0], [3.0, np.nextafter(4.0, 5.0)], [5.0, 0.0], [11.0, 1.0], [1e300, 0.0]]
    assert fold(coverage, rows).tolist() == [2, 2]


def test_rows_of_chosen_balls_count_no_more():
    candidates = np.array([[0.0], [1.0], [10.0]])
    rows = [[0.5], [1.5], [2.5], [9.0], [30.0]]
    assert fold(Coverage(candidates, np.empty((0, 1)), 2.0), rows).tolist() == [2, 3, 1]
    assert fold(Coverage(candidates, candidates[:1], 2.0), rows).tolist() == [0, 1, 1]
    assert fold(Coverage(candidates, candidates, 2.0), rows).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("d", "n_chosen"), [(1, 0), (3, 1), (8, 20)])
def test_against_numpy(d, n_chosen):
    rng = np.random.default_rng(d)
    rows, candidates = rng.normal(size=(3000, d)), rng.normal(size=(50, d))
    chosen, radius = candidates[:n_chosen], 0.8 * np.sqrt(d)
    state = fold(Coverage(candidates, chosen, radius), rows)
    assert state.dtype == np.int64
    assert (state == covered_by_numpy(rows, candidates, chosen, radius)).all()
    assert state.any()


def test_in_a_projection():
    rng = np.random.default_rng(0)
    rows, matrix = rng.normal(size=(500, 6)), np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    coverage = Coverage(rng.normal(size=(9, 2)), rng.normal(size=(2, 2)), 0.7)
    expected = covered_by_numpy(rows @ matrix.T, coverage.candidates, coverage.chosen, 0.7)
    assert (fold(Projected(coverage, matrix), rows) == expected).all()


def test_one_row_moves_all_scores_the_same_way_and_by_at_most_one():
    rng = np.random.default_rng(1)
    candidates = rng.uniform(-1, 1, size=(12, 2))
    spreads = set()
    for n_chosen in (0, 1, 5):
        coverage = Coverage(candidates, candidates[:n_chosen], 0.6)
        table = rng.uniform(-1, 1, size=(30, 2))
        before = fold(coverage, table)
        for row in rng.uniform(-1.5, 1.5, size=(400, 2)):
            change = fold(coverage, np.vstack([table, row])) - before
            assert set(change) <= {0, 1}
            spreads.add(int(np.ptp(change)))
        for i in range(len(table)):
            assert set(fold(coverage, np.delete(table, i, axis=0)) - before) <= {0, -1}
    assert max(spreads) == coverage.sensitivity.spread == 1


def test_a_row_on_all_candidates_reaches_every_norm():
    coverage = Coverage(np.zeros((7, 2)), np.empty((0, 2)), 1.0)
    change = fold(coverage, [[0.0, 0.0]])
    declared = coverage.sensitivity
    assert (change.sum(), (change**2).sum(), (change != 0).sum()) == (7, 7, 7)
    assert (declared.l1, declared.l2_squared, declared.coordinates) == (7, 7, 7)


def test_shapes_that_a_kernel_would_read_beyond_are_refused():
    with pytest.raises(ParameterError, match="chosen"):
        Coverage(np.zeros((3, 2)), np.zeros((1, 3)), 1.0)
    with pytest.raises(ParameterError, match="rows"):
        fold(Coverage(np.zeros((3, 2)), np.zeros((0, 2)), 1.0), np.zeros((4, 3)))
    with pytest.raises(ParameterError, match="rows"):
        fold(Projected(Coverage(np.zeros((3, 2)), np.zeros((0, 2)), 1.0), np.zeros((2, 5))), np.zeros((4, 3)))
