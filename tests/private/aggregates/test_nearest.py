"""Sums and distances of the rows nearest to public points, against plain Python, and their sensitivity."""

from itertools import product

import numpy as np
import pytest

from sfumato.domain import Ball, Domain
from sfumato.errors import ParameterError
from sfumato.private.aggregates.nearest import (
    NEAREST_RADIUS,
    NearestDistance,
    NearestSums,
    coarse,
    relative_steps,
)

R = NEAREST_RADIUS
BOX = Domain.from_bounds(([-1, 0], [1, 4]), 2)
BALL = Domain.from_bounds(Ball(2.0, (1.0, 0.0)), 2)
POINTS = np.array([[-0.5, 1.0], [0.5, 3.0], [0.9, 0.1]])


def listed(nearest, rows):
    """Lattice coordinates of the t rows nearest to each point, filled up with the farthest, by sorting."""
    units, steps = coarse(nearest.domain, rows), relative_steps(nearest.domain)
    found = []
    for point, farthest in zip(coarse(nearest.domain, nearest.points), nearest.farthest, strict=True):
        order = sorted(
            (int(np.sqrt(sum(((row - point) * steps) ** 2))), tuple(int(u) for u in row)) for row in units
        )
        filled = [row for _, row in order[: nearest.t]]
        found.append(filled + [tuple(farthest)] * (nearest.t - len(filled)))
    return np.array(found, dtype=np.int64)


def sums_by_hand(nearest):
    return lambda rows: listed(nearest, rows).sum(axis=1)


def vector(aggregate, rows):
    return aggregate.sums(aggregate.add(aggregate.zero(), rows))


def total(aggregate, rows):
    return int(aggregate.total(aggregate.add(aggregate.zero(), rows))[0])


@pytest.mark.parametrize("domain", [BOX, BALL])
@pytest.mark.parametrize("t", [1, 3, 50])
@pytest.mark.parametrize("n", [0, 1, 2, 40])
def test_the_twin_agrees(domain, t, n):
    nearest = NearestSums(domain, POINTS, t)
    rows = np.random.default_rng(n).uniform(-1, 4, size=(n, 2))
    assert (vector(nearest, rows) == sums_by_hand(nearest)(rows)).all()


@pytest.mark.parametrize("domain", [BOX, BALL])
def test_the_filling_is_farthest(domain):
    nearest = NearestSums(domain, POINTS, 1)
    rows = domain.clip(np.random.default_rng(0).uniform(-5, 5, size=(2000, 2)))
    corners = domain.clip(np.array(list(product((-9.0, 9.0), repeat=2))))
    for point, farthest in zip(POINTS, domain.from_lattice(nearest.farthest * 2**9), strict=True):
        gaps = np.linalg.norm(np.concatenate([rows, corners]) - point, axis=1)
        assert gaps.max() <= np.linalg.norm(farthest - point) * (1 + 1e-5)
        assert (np.abs(domain.clip(farthest[None]) - farthest) < 1e-5).all()


def test_the_filling_of_the_middle_of_a_ball():
    nearest = NearestSums(BALL, np.array([[1.0, 0.0]]), 2)
    assert np.linalg.norm(nearest.farthest[0]) == pytest.approx(R, rel=1e-5)


def neighbours(domain, t):
    """Tables with fewer, as many and more rows than t, ties and duplicates, each with one row more."""
    rng = np.random.default_rng(t)
    low, high = np.array(domain.low), np.array(domain.high)
    corners = np.array(list(product(*zip(low, high, strict=True))))
    pool = np.concatenate([corners, POINTS, rng.uniform(low, high, size=(6, 2))])
    for m in (0, 1, t - 1, t, t + 1, 3 * t):
        for table in (rng.uniform(low, high, size=(m, 2)), np.repeat(corners[:1], m, axis=0)):
            for row in pool:
                yield table, np.concatenate([table, row[None]])


@pytest.mark.parametrize("domain", [BOX, BALL])
@pytest.mark.parametrize("t", [1, 2, 5])
def test_one_row_added_or_removed_moves_the_sums_by_no_more_than_declared(domain, t):
    nearest = NearestSums(domain, POINTS, t)
    declared, most = nearest.sensitivity, 0
    for table, more in neighbours(domain, t):
        change = vector(nearest, more) - vector(nearest, table)  # removing a row has the opposite sign
        assert np.abs(change).sum() <= declared.l1
        assert (change**2).sum() <= declared.l2_squared
        assert np.ptp(change) <= declared.spread
        per_point = np.linalg.norm(change, axis=1)
        assert (per_point <= 2 * R * (1 if domain.radius else np.sqrt(2))).all()
        most = max(most, per_point.max())
    assert most > 1.9 * R, "the worst case was not tried"


@pytest.mark.parametrize("domain", [BOX, BALL])
@pytest.mark.parametrize("t", [1, 2, 5])
def test_one_row_moves_the_distance_by_no_more_than_declared(domain, t):
    aggregate = NearestDistance(NearestSums(domain, POINTS, t), np.array([5, 0, 2]))
    change = [total(aggregate, table) - total(aggregate, more) for table, more in neighbours(domain, t)]
    assert min(change) >= 0, "a row more is never farther"
    assert 0.8 * aggregate.sensitivity.l1 < max(change) <= aggregate.sensitivity.l1


def test_without_filling_the_sensitivity_would_not_hold():
    """The mean of fewer than t rows moves by more than diameter / t: why lists are filled up."""
    t = 50
    raw = [np.array([[-1.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 4.0]])]
    change = np.linalg.norm(raw[0].mean(axis=0) - raw[1].mean(axis=0))
    diameter = 2 * np.linalg.norm(BOX.half_width)
    assert change > 10 * diameter / t
    nearest = NearestSums(BOX, POINTS[:1], t)
    means = [nearest.means(vector(nearest, rows)) for rows in raw]
    assert np.linalg.norm(means[1] - means[0]) <= diameter / t * (1 + 1e-5)


def test_means_and_distances_are_in_the_units_of_the_data():
    rows = np.random.default_rng(0).uniform((-1, 0), (1, 4), size=(200, 2))
    nearest = NearestSums(BOX, POINTS, 7)
    gaps = np.sort(np.linalg.norm(rows - POINTS[:, None], axis=2), axis=1)
    order = np.argsort(np.linalg.norm(rows - POINTS[:, None], axis=2), axis=1)[:, :7]
    assert nearest.means(vector(nearest, rows)) == pytest.approx(rows[order].mean(axis=1), abs=1e-5)
    aggregate = NearestDistance(nearest, np.array([1, 2, 3]))
    expected = gaps[:, :7].mean(axis=1) @ [1, 2, 3] / 6
    assert total(aggregate, rows) * aggregate.unit == pytest.approx(expected, abs=1e-5)


def test_ties_do_not_depend_on_the_order():
    nearest = NearestSums(BOX, np.array([[0.0, 2.0]]), 2)
    ring = np.array([[0.5, 2.0], [-0.5, 2.0], [0.0, 2.5], [0.0, 1.5]])
    results = {tuple(vector(nearest, ring[list(order)])[0]) for order in ([0, 1, 2, 3], [3, 2, 1, 0])}
    assert len(results) == 1


@pytest.mark.parametrize("arguments", [(POINTS, 0), (POINTS * np.nan, 1), (POINTS[:, :1], 1)])
def test_bad_points(arguments):
    with pytest.raises(ParameterError):
        NearestSums(BOX, *arguments)


def test_bad_weights():
    with pytest.raises(ParameterError, match="weights"):
        NearestDistance(NearestSums(BOX, POINTS, 1), np.ones(2, dtype=np.int64))
