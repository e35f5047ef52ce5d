"""Grouped sums: the exact means come out, and no row, however extreme, weighs more than the radius."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.domain import LARGEST_BOUND, LATTICE_RADIUS, MAX_ROWS, Grid
from sfumato.domain.partitions import Subset, Tree, Voronoi
from sfumato.errors import ParameterError
from sfumato.private.aggregates.sums import COUNT_WEIGHT, LEAST_SUM_RADIUS, GroupedSums

EXTREMES = [0.0, -0.0, 5e-324, 1e-310, 1.0, -1.0, 1e16, 1e140, -1e140, 1e300, -1e300, np.finfo(float).max]


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def one_group(origin, radius):
    return GroupedSums(Tree.root(), np.array([origin]), np.array([radius]))


def test_by_eye():
    sums = GroupedSums(Grid((0.0,), (2.0,), (2,)), np.array([[0.5], [1.0]]), np.array([1.0, 0.5]))
    state = fold(sums, [[0.25], [0.75], [0.75], [1.25], [9.0]])
    sizes, clipped, displacements = sums.unpack(state)
    assert state[:, 0].tolist() == [3 * COUNT_WEIGHT, 2 * COUNT_WEIGHT]
    assert state[:, 1].tolist() == [0, COUNT_WEIGHT]
    assert sizes.tolist() == [3.0, 2.0]
    assert clipped.tolist() == [0.0, 1.0]
    assert displacements == pytest.approx(np.array([[0.25], [0.75]]), abs=1e-8)  # 9 is clipped to 1.5


@pytest.mark.parametrize("d", [1, 2, 10])
def test_sums_within_the_radius_are_exact_to_one_unit_per_row(d):
    rng = np.random.default_rng(d)
    centers, rows = rng.normal(size=(4, d)), rng.normal(size=(300, d))
    sums = GroupedSums(Voronoi(centers), centers, np.array([20.0, 25.0, 30.0, 15.0]))
    sizes, clipped, displacements = sums.unpack(fold(sums, rows))
    groups = Voronoi(centers).index(rows)
    assert sizes.tolist() == np.bincount(groups, minlength=4).tolist()
    assert not clipped.any()
    for g in range(4):
        exact = (rows[groups == g] - centers[g]).sum(axis=0)
        unit = sums.radii[g] / LATTICE_RADIUS
        assert np.abs(displacements[g] - exact).max() <= unit * (sizes[g] + 1)


def test_a_row_beyond_the_radius_keeps_its_direction():
    sums = one_group([1.0, 1.0], 0.5)
    _, _, ((x, y),) = sums.unpack(fold(sums, [[1 + 3e9, 1 + 4e9]]))
    assert (x, y) == pytest.approx((0.3, 0.4), abs=1e-8)


@pytest.mark.parametrize("radius", [1 / LARGEST_BOUND, 1e-9, 1 / 3, 1.0, 1e6, LARGEST_BOUND, 1e300])
@pytest.mark.parametrize("origin", [0.0, 1 / 3, -1e140, 1e300])
def test_one_row_stays_within_the_sphere_in_exact_integers(origin, radius):
    """Every combination of extreme coordinates, and rows just inside, on and just outside the sphere."""
    rng, reached = np.random.default_rng(0), 0
    for d in (1, 2, 3):
        sums = one_group([origin] * d, radius)
        directions = rng.normal(size=(100, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        near = [directions * (radius * f) for f in (1 - 1e-15, 1.0, 1 + 1e-15, 1.5)]
        with np.errstate(over="ignore"):
            rows = np.concatenate([list(product(EXTREMES, repeat=d)), *[origin + part for part in near]])
        for row in rows[np.isfinite(rows).all(axis=1)]:
            count, clipped, *units = (int(v) for v in fold(sums, row[None, :])[0])
            squares = sum(u * u for u in units)
            assert count == COUNT_WEIGHT
            assert clipped in (0, COUNT_WEIGHT)
            assert squares <= LATTICE_RADIUS**2
            assert count**2 + clipped**2 + squares <= sums.sensitivity.l2_squared
            assert count + clipped + sum(map(abs, units)) <= sums.sensitivity.l1
            reached = max(reached, squares)
    assert reached > (LATTICE_RADIUS - 4) ** 2


@pytest.mark.parametrize("d", [2**10, 2**17])
def test_many_equal_columns(d):
    """The largest rounding error of a norm: many equal squares."""
    for value in (1.0, 0.1, 1e300, 1 / math.sqrt(d), np.nextafter(1 / math.sqrt(d), 1)):
        sums = one_group([0.0] * d, 1.0)
        count, clipped, *units = fold(sums, np.full((1, d), value))[0].tolist()
        assert count == COUNT_WEIGHT
        assert len(set(units)) == 1
        assert units[0] ** 2 * d <= LATTICE_RADIUS**2
        assert count + clipped + sum(units) <= sums.sensitivity.l1


@pytest.mark.parametrize("d", [1, 2, 3, 7, 100])
def test_the_declared_sensitivity_in_numbers(d):
    """Against the formulas in exact arithmetic: L1 is 2 w + sqrt(d) R, rounded down to an integer."""
    declared = GroupedSums.sensitivity_in(d)
    l1 = declared.l1 - 2 * COUNT_WEIGHT
    assert l1**2 <= d * LATTICE_RADIUS**2 < (l1 + 1) ** 2
    assert declared.l2_squared == Fraction(18, 16) * LATTICE_RADIUS**2
    assert declared.coordinates == 2 + d
    assert declared.spread >= max(5 / 4, math.sqrt(min(d, 2))) * LATTICE_RADIUS
    assert declared == one_group([0.0] * d, 1.0).sensitivity


def test_the_largest_table_fits_in_int64():
    assert MAX_ROWS * COUNT_WEIGHT <= MAX_ROWS * LATTICE_RADIUS == 2**62


def test_sums_are_int64_in_any_order():
    rng = np.random.default_rng(1)
    rows, centers = rng.normal(size=(5000, 3)), rng.normal(size=(5, 3))
    sums = GroupedSums(Voronoi(centers), centers, np.full(5, 0.7))
    whole = fold(sums, rows)
    assert whole.dtype == np.int64
    assert (fold(sums, rng.permutation(rows)) == whole).all()
    assert (sums.merge(fold(sums, rows[:17]), fold(sums, rows[17:])) == whole).all()


THREE = Voronoi(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))


@pytest.mark.parametrize("shape", [(2, 2), (4, 2), (3,), (0, 2), (3, 2, 1)])
def test_origins_of_another_shape_are_refused(shape):
    with pytest.raises(ParameterError, match=r"^`origins` must have shape \(3, \d\), got \("):
        GroupedSums(THREE, np.zeros(shape), np.ones(3))


@pytest.mark.parametrize("shape", [(2,), (4,), (3, 1), (0,), ()])
def test_radii_of_another_shape_are_refused(shape):
    with pytest.raises(ParameterError, match=r"^`radii` must have shape \(3,\), got \("):
        GroupedSums(THREE, np.zeros((3, 2)), np.ones(shape))


@pytest.mark.parametrize("radius", [0.0, -0.0, -1.0, 5e-324, 1e-300, 0.999e-290, np.nan, -np.inf])
def test_radii_that_no_lattice_can_have_are_refused(radius):
    with pytest.raises(ParameterError, match=r"^`radii` must be at least 1e-290, got "):
        GroupedSums(THREE, np.zeros((3, 2)), np.array([1.0, radius, 1.0]))


def test_the_smallest_radius_is_one_like_any_other():
    sums = one_group([0.0, 0.0], LEAST_SUM_RADIUS)
    for rows in ([[3e-291, 4e-291]], [[3e300, 4e300]], [[1e-290, 0.0]]):
        count, _, *units = (int(value) for value in fold(sums, rows)[0])
        assert count == COUNT_WEIGHT
        assert 0 < sum(u * u for u in units) <= LATTICE_RADIUS**2
    _, _, ((x, y),) = sums.unpack(fold(sums, [[3e300, 4e300]]))
    assert (x, y) == pytest.approx((6e-291, 8e-291), rel=1e-6)


def test_no_groups():
    nobody = Subset(THREE, np.empty(0, dtype=np.int64))
    sums = GroupedSums(nobody, np.empty((0, 2)), np.empty(0))
    state = fold(sums, np.ones((5, 2)))
    assert state.shape == (0, 4)
    sizes, clipped, displacements = sums.unpack(state)
    assert (sizes.shape, clipped.shape, displacements.shape) == ((0,), (0,), (0, 2))
    assert sums.sensitivity == GroupedSums.sensitivity_in(2)


def test_rows_in_no_group_weigh_nothing():
    sums = GroupedSums(Subset(THREE, np.array([2])), np.zeros((1, 2)), np.array([4.0]))
    sizes, _, displacements = sums.unpack(fold(sums, [[0.0, 0.0], [0.0, 1.5], [2.0, 0.0], [0.5, 1.5]]))
    assert sizes.tolist() == [2]
    assert displacements == pytest.approx(np.array([[0.5, 3.0]]), abs=1e-7)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_origin_that_is_no_number_is_refused(value):
    with pytest.raises(ParameterError, match="finite"):
        one_group([0.0, value], 1.0)
    if value > 0:
        with pytest.raises(ParameterError, match="finite"):
            one_group([0.0, 0.0], value)
