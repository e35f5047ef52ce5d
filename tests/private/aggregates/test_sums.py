"""Grouped sums: the exact means come out, and no row, however extreme, weighs more than the radius."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.domain import LARGEST_BOUND, LATTICE_RADIUS, Domain, Grid, Unit
from sfumato.domain.blocks import Block
from sfumato.domain.columns import read_bounds
from sfumato.domain.partitions import Subset, Tree, Voronoi
from sfumato.domain.scaling import Scaling
from sfumato.errors import ParameterError
from sfumato.private.aggregates import sums
from sfumato.private.aggregates.sums import COUNT_WEIGHT, LEAST_SUM_RADIUS, GroupedSums

EXTREMES = [0.0, -0.0, 5e-324, 1e-310, 1.0, -1.0, 1e16, 1e140, -1e140, 1e300, -1e300, np.finfo(float).max]


def fold(aggregate, rows):
    low, high = aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))
    assert not high.any()
    return low


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


def test_sums_are_int64_in_any_order():
    rng = np.random.default_rng(1)
    rows, centers = rng.normal(size=(5000, 3)), rng.normal(size=(5, 3))
    sums = GroupedSums(Voronoi(centers), centers, np.full(5, 0.7))
    whole = fold(sums, rows)
    assert whole.dtype == np.int64
    assert (fold(sums, rng.permutation(rows)) == whole).all()
    assert (fold(sums, rows[:17]) + fold(sums, rows[17:]) == whole).all()


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


# Categories: the L1 norm of one row's share does not grow with the number of levels.


def categories(n_numbers, *n_levels, scaling=None, n_cycles=0):
    """Measured domain of numbers, cycles and categories with so many levels, and one for other values."""
    bounds = {f"number {i}": (0, 10.0 ** (i + 1)) for i in range(n_numbers)}
    bounds |= {f"cycle {i}": {"cycle": (0, 24)} for i in range(n_cycles)}
    bounds |= {f"kind {i}": [f"level {j}" for j in range(n)] for i, n in enumerate(n_levels)}
    columns, domain = read_bounds(bounds, None, Unit())
    return (scaling or Scaling()).applied(domain, columns.coordinates).measured


def draw_rows(rng, domain, n):
    """Rows as they are read: corners of simplices, points on circles, numbers often at their ends."""
    rows = rng.choice([0.0, 0.25, 1.0], size=(n, domain.n_features)) * np.array(domain.high)
    for block in domain.blocks:
        own = slice(block.start, block.stop)
        if block.kind == "simplex":
            rows[:, own] = domain.high[block.start] * np.eye(block.size)[rng.integers(block.size, size=n)]
        else:
            angles = rng.uniform(0, 2 * np.pi, n)
            rows[:, own] = domain.high[block.start] * np.column_stack([np.cos(angles), np.sin(angles)])
    return rows


def draw_origins(rng, domain, n):
    """Distributions in each category: corners, faces of any size, nearly corners, and anything within."""
    points = rng.uniform(size=(n, domain.n_features)) * np.array(domain.high)
    for block in domain.blocks:
        for point in points:
            shape = rng.choice([1e-3, 0.05, 1.0, 100.0])
            point[block.start : block.stop] = rng.dirichlet([shape] * block.size) * domain.high[block.start]
    return domain.clip(points)


MIXTURES = [
    (0, (1,)),
    (0, (2,)),
    (0, (3,)),
    (0, (50,)),
    (0, (4, 7)),
    (1, (1, 2, 3)),
    (3, (10,)),
    (2, (49, 49, 5)),
    (10, (30,)),
]
WEIGHTED = Scaling(weights={"kind 0": 5})


@pytest.mark.parametrize(("n_numbers", "n_levels"), MIXTURES, ids=str)
@pytest.mark.parametrize("scaling", [Scaling(), Scaling(None), WEIGHTED], ids=["bounds", "none", "weighted"])
def test_one_row_stays_within_the_sensitivity_with_categories(n_numbers, n_levels, scaling):
    """Brute force: rows at corners, origins anywhere in the simplices, radii from the least to the reach."""
    domain = categories(n_numbers, *n_levels, scaling=scaling, n_cycles=n_numbers % 2)
    rng, reached = np.random.default_rng(sum(n_levels)), 0.0
    declared = GroupedSums.sensitivity_in(domain.n_features, domain.blocks)
    for origin in draw_origins(rng, domain, 25):
        rows = draw_rows(rng, domain, 20)
        distances = np.linalg.norm(rows - origin, axis=1)
        for radius in (domain.least_radius, rng.choice(distances), 0.3 * domain.reach, 2 * domain.reach):
            radius = max(radius, domain.least_radius)
            sums = GroupedSums(Tree.root(), origin[None], np.array([radius]), domain)
            assert sums.sensitivity == declared
            for row in rows:
                state = fold(sums, row[None])[0]
                assert np.abs(state).sum() <= declared.l1
                assert sum(int(v) ** 2 for v in state) <= declared.l2_squared
                reached = max(reached, np.abs(state).sum() / declared.l1)
    assert reached > 0.4


@pytest.mark.parametrize("n_levels", [1, 2, 3, 10, 50])
def test_the_worst_origin_reaches_the_sensitivity(n_levels):
    """Opposite the level of the row: the middle of all others."""
    domain = categories(0, n_levels)
    origin = np.append(0.0, np.full(n_levels, domain.high[0] / n_levels))
    row = np.append(domain.high[0], np.zeros(n_levels))
    sums = GroupedSums(Tree.root(), origin[None], np.array([domain.least_radius]), domain)
    l1 = np.abs(fold(sums, row[None])).sum()
    assert l1 <= sums.sensitivity.l1
    m = n_levels + 1
    expected = 2 * COUNT_WEIGHT + 2 * LATTICE_RADIUS * math.sqrt(1 - 1 / m)
    assert l1 == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n_levels", [2, 3, 10, 50, 1000])
def test_the_number_of_levels_hardly_matters(n_levels):
    """L2 does not depend on it at all; L1 is at most that of four columns."""
    few, many = (GroupedSums.sensitivity_in(1 + n, (Block("simplex", 0, 1 + n),)) for n in (2, n_levels))
    assert many.l2_squared == few.l2_squared
    assert few.l1 <= many.l1 <= 2 * COUNT_WEIGHT + 2 * LATTICE_RADIUS + 1
    one_each = GroupedSums.sensitivity_in(1 + n_levels)
    assert many.l1 <= one_each.l1 + 1


@pytest.mark.parametrize(("n_numbers", "n_levels"), [(2, (3, 5)), (1, (40,)), (0, (1, 1))], ids=str)
def test_neighbours_of_whole_tables_with_categories(n_numbers, n_levels):
    """One row more, less or changed moves the sums of several groups within the sensitivity of one or two."""
    domain, rng = categories(n_numbers, *n_levels), np.random.default_rng(3)
    centers = draw_origins(rng, domain, 4)
    radii = np.array([domain.least_radius, 0.2, 1.0, 3.0])
    sums = GroupedSums(Voronoi(centers), centers, radii, domain)
    rows = draw_rows(rng, domain, 200)
    whole = fold(sums, rows)
    for i in range(60):
        less = fold(sums, np.delete(rows, i, axis=0))
        moved = np.abs(whole - less)
        assert (moved.sum(axis=1) > 0).sum() == 1
        assert moved.sum() <= sums.sensitivity.l1
        assert (moved.astype(object) ** 2).sum() <= sums.sensitivity.l2_squared
        other = fold(sums, np.concatenate([np.delete(rows, i, axis=0), draw_rows(rng, domain, 1)]))
        assert np.abs(whole - other).sum() <= 2 * sums.sensitivity.l1


def test_an_origin_that_is_no_distribution_breaks_the_bound_and_is_refused():
    """The middle of the box is such a point: every other level is as far away as the row's own."""
    domain = categories(0, 50)
    origin, row = np.full((1, 51), domain.high[0] / 2), np.append(domain.high[0], np.zeros(50))
    with pytest.raises(ParameterError, match="`origins` must be distributions in each category"):
        GroupedSums(Tree.root(), origin, np.ones(1), domain)
    unchecked = GroupedSums(Tree.root(), origin, np.ones(1))  # pays for 51 columns
    l1 = np.abs(fold(unchecked, row[None])).sum()
    assert l1 <= unchecked.sensitivity.l1
    assert l1 > 2 * GroupedSums.sensitivity_in(51, domain.blocks).l1


@pytest.mark.parametrize("off", [1e-9, -1e-9, 1e-3, -1.0])
def test_origins_that_are_off(off):
    domain = categories(1, 3)
    origin = domain.middle[None].copy()
    GroupedSums(Tree.root(), origin, np.ones(1), domain)
    origin[0, -1] += off
    with pytest.raises(ParameterError, match="Clip them"):
        GroupedSums(Tree.root(), origin, np.ones(1), domain)


def test_origins_that_are_off_by_rounding_break_the_bound_at_a_tiny_radius_which_is_refused():
    """What is off is spread over many levels, all of them far away if the radius is as small."""
    domain, off = categories(0, 1000), 2.0**-41
    corner = domain.high[0]
    origin = np.append(corner, np.full(1000, off * corner / 1000))
    row = np.append(corner, np.zeros(1000))
    tiny = off * corner / math.sqrt(1000)
    loose = GroupedSums(Tree.root(), origin[None], np.array([tiny]))
    declared = GroupedSums.sensitivity_in(1001, domain.blocks)
    assert np.abs(fold(loose, row[None])).sum() > 10 * declared.l1
    with pytest.raises(ParameterError, match="`radii` must be at least"):
        GroupedSums(Tree.root(), origin[None], np.array([tiny]), domain)
    least = GroupedSums(Tree.root(), origin[None], np.array([domain.least_radius]), domain)
    assert np.abs(fold(least, row[None])).sum() <= declared.l1


def test_without_categories_nothing_is_asked_of_origins():
    box = Domain.from_bounds((0, 1), 2)
    assert box.least_radius == 0
    sums = GroupedSums(Tree.root(), np.array([[5.0, -3.0]]), np.array([1e-200]), box)
    assert sums.sensitivity == GroupedSums.sensitivity_in(2)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 50])
@pytest.mark.parametrize("d", [1, 3, 10, 130])
def test_the_kernel_adds_what_its_twin_in_plain_python_adds(n, d):
    rng = np.random.default_rng(n)
    origins, steps = rng.normal(size=(5, d)), rng.uniform(0.5, 2.0, 5) * np.sqrt(d) / LATTICE_RADIUS
    groups = rng.integers(-1, 5, size=n)
    limit = float(LATTICE_RADIUS - 1)
    for rows in (rng.normal(size=(n, d)), rng.choice(EXTREMES, size=(n, d))):
        state, expected = np.zeros((2, 5, 2 + d), dtype=np.int64)
        sums.add_displacements(rows, groups, origins, steps, state, COUNT_WEIGHT)
        for row, group in zip(rows, groups, strict=True):
            if group >= 0:
                with np.errstate(over="ignore"):
                    units = ((row - origins[group]) * (1.0 / steps[group])).clip(-(2.0**400), 2.0**400)
                norm = math.sqrt(sum(units**2, start=0.0))  # from the first column to the last
                shrunk = units * (limit / norm) if norm > limit else units
                expected[group] += np.array([COUNT_WEIGHT, COUNT_WEIGHT * (norm > limit), *shrunk]).astype(
                    np.int64
                )
        assert (state == expected).all()
