"""Second moments of groups: the exact ones come out, and no row, however extreme, weighs too much."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.domain import LATTICE_RADIUS, Grid
from sfumato.domain.partitions import GaussianCells, Subset, Tree, Voronoi
from sfumato.errors import ParameterError
from sfumato.private.aggregates.moments import (
    LARGEST_MOMENT_RADIUS,
    LEAST_MOMENT_RADIUS,
    SHAPES,
    GroupedMoments,
    SoftMoments,
)
from sfumato.private.aggregates.sums import COUNT_WEIGHT, GroupedSums

EXTREMES = [0.0, -0.0, 5e-324, 1e-310, 1.0, -1.0, 1e16, 1e140, -1e140, 1e300, -1e300, np.finfo(float).max]
every_shape = pytest.mark.parametrize("shape", SHAPES)


def fold(aggregate, rows):
    low, high = aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))
    assert not high.any()
    return low


def one_group(origin, radius, shape):
    return GroupedMoments(Tree.root(), np.array([origin]), np.array([radius]), shape)


def mixture(k, d, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(k, d, d))
    covariances = (factors @ factors.swapaxes(1, 2) / d + np.eye(d) / 10) * spread
    return GaussianCells.of(rng.dirichlet(np.ones(k)), rng.normal(size=(k, d)), covariances)


def within(state, declared):
    """Whether what one row adds is within what is declared, in Python integers."""
    entries = [int(value) for value in np.ravel(state)]
    return (
        sum(map(abs, entries)) <= declared.l1
        and sum(value**2 for value in entries) <= declared.l2_squared
        and max(entries) - min(entries) <= declared.spread
        and np.count_nonzero(state) <= declared.coordinates
    )


def of_shape(products, shape):
    """What a shape keeps of (k, d, d) matrices."""
    diagonals = np.diagonal(products, axis1=1, axis2=2)
    return {"full": products, "diag": diagonals, "spherical": diagonals.sum(axis=1)}[shape]


def test_by_eye():
    moments = GroupedMoments(
        Grid((0.0, 0.0), (2.0, 1.0), (2, 1)), np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([1.0, 5.0]), "full"
    )
    state = fold(moments, [[0.5, 1.0], [1.0, 1.0], [4.0, 4.0], [1.0, 50.0]])
    assert state.shape == (2, 2 + 2 + 3)
    sizes, clipped, sums, seconds = moments.unpack(state)
    assert sizes.tolist() == [1.0, 3.0]
    assert clipped.tolist() == [0.0, 2.0]  # (3, 4) is on the sphere, where the last unit is given away
    assert sums == pytest.approx(np.array([[0.0, 0.5], [3.0, 10.0]]), abs=1e-7)
    assert seconds[0] == pytest.approx(np.array([[0.0, 0.0], [0.0, 0.25]]), abs=1e-7)
    assert seconds[1] == pytest.approx(np.array([[9.0, 12.0], [12.0, 42.0]]), abs=1e-6)


@every_shape
@pytest.mark.parametrize("d", [1, 2, 5])
def test_hard_moments_within_the_radius_are_exact_to_one_unit_per_row(d, shape):
    rng = np.random.default_rng(d)
    centers, rows = rng.normal(size=(4, d)), rng.normal(size=(300, d))
    moments = GroupedMoments(Voronoi(centers), centers, np.array([20.0, 25.0, 30.0, 15.0]), shape)
    sizes, clipped, sums, seconds = moments.unpack(fold(moments, rows))
    members = np.eye(4)[Voronoi(centers).index(rows)]
    gaps = rows[:, None, :] - centers
    exact = of_shape(np.einsum("nk,nki,nkj->kij", members, gaps, gaps), shape)
    units = moments.radii / LATTICE_RADIUS
    assert sizes.tolist() == members.sum(axis=0).tolist()
    assert not clipped.any()
    assert (np.abs(sums - np.einsum("nk,nki->ki", members, gaps)) <= (units * (sizes + 1))[:, None]).all()
    slack = (d * moments.radii * units * (sizes + 1)).reshape(-1, *[1] * (exact.ndim - 1))
    assert seconds.shape == exact.shape
    assert (np.abs(seconds - exact) <= slack).all()


@every_shape
@pytest.mark.parametrize("d", [1, 2, 5])
def test_soft_moments_are_those_of_shared_rows(d, shape):
    cells, rows = mixture(4, d), np.random.default_rng(1).normal(size=(300, d))
    moments = SoftMoments(cells, cells.means, np.full(4, 30.0), shape)
    sizes, clipped, sums, seconds = moments.unpack(fold(moments, rows))
    shares, gaps = cells.responsibilities(rows), rows[:, None, :] - cells.means
    assert sizes == pytest.approx(shares.sum(axis=0), abs=1e-5)
    assert sizes.sum() == pytest.approx(300, abs=1e-5)
    assert not clipped.any()
    assert sums == pytest.approx(np.einsum("nk,nki->ki", shares, gaps), abs=1e-4)
    exact = of_shape(np.einsum("nk,nki,nkj->kij", shares, gaps, gaps), shape)
    assert seconds == pytest.approx(exact, abs=1e-3)


@every_shape
def test_the_first_columns_are_those_of_grouped_sums(shape):
    rng = np.random.default_rng(2)
    centers, rows = rng.normal(size=(3, 4)), rng.normal(size=(200, 4))
    of = Voronoi(centers), centers, np.array([0.5, 1.0, 3.0])
    assert (fold(GroupedMoments(*of, shape), rows)[:, :6] == fold(GroupedSums(*of), rows)).all()


@every_shape
def test_far_apart_components_share_nothing(shape):
    """Soft moments are then the hard ones, up to the share of 2^-32 that is given away."""
    means, rng = np.array([[0.0, 0.0], [100.0, 0.0]]), np.random.default_rng(3)
    cells = GaussianCells.of(np.full(2, 0.5), means, np.stack([np.eye(2)] * 2))
    rows = means[rng.integers(2, size=100)] + rng.normal(size=(100, 2))
    of = cells, means, np.array([2.0, 3.0]), shape
    hard, soft = fold(GroupedMoments(*of), rows), fold(SoftMoments(*of), rows)
    assert (np.abs(hard - soft) <= 2 * 100).all()


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_unpacked_matrices_are_symmetric_with_every_entry_in_its_place(d):
    moments = one_group([0.0] * d, 2.0, "full")
    upper = np.arange(d * (d + 1) // 2) + 1
    values = np.concatenate([np.zeros(2 + d, dtype=np.int64), upper])[None, :]
    _, _, _, (matrix,) = moments.unpack(values)
    assert (matrix == matrix.T).all()
    assert (matrix[np.triu_indices(d)] == upper * 4.0 / LATTICE_RADIUS).all()


@every_shape
@pytest.mark.parametrize("radius", [LEAST_MOMENT_RADIUS, 1e-9, 1 / 3, 1.0, 1e6, 1e140, LARGEST_MOMENT_RADIUS])
@pytest.mark.parametrize("origin", [0.0, 1 / 3, -1e140, 1e300])
def test_one_row_stays_within_the_bounds_in_exact_integers(origin, radius, shape):
    """Every combination of extreme coordinates, and rows just inside, on and just outside the sphere."""
    rng = np.random.default_rng(0)
    for d in (1, 2, 3):
        moments = one_group([origin] * d, radius, shape)
        directions = rng.normal(size=(50, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        sphere = np.concatenate([directions, np.eye(d), np.ones((1, d)) / math.sqrt(d)])
        near = [origin + sphere * (radius * f) for f in (1 - 1e-15, 1.0, 1 + 1e-15, 1.5)]
        rows = np.concatenate([list(product(EXTREMES, repeat=d))[::7], *near])
        assert all(within(fold(moments, row[None, :]), moments.sensitivity) for row in rows)


@every_shape
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_one_shared_row_stays_within_the_bounds_in_exact_integers(spread, shape):
    for k, d in ((1, 1), (3, 2), (40, 3)):
        cells = mixture(k, d, seed=k, spread=spread)
        moments = SoftMoments(cells, cells.means, np.geomspace(1e-6, 10.0, k), shape)
        rng = np.random.default_rng(d)
        rows = np.concatenate([rng.normal(size=(60, d)), rng.choice(EXTREMES, size=(60, d)), cells.means])
        assert all(within(fold(moments, row[None, :]), moments.sensitivity) for row in rows)


@pytest.mark.parametrize("k", [1, 2, 50, 4096])
def test_equal_shares_reach_the_l1_bound_and_stay_below(k):
    """The largest rounding error of a sum of shares: many equal ones. L2 falls with their number."""
    cells = GaussianCells(np.zeros(k), np.zeros((k, 2)), np.ones((k, 2, 2)))
    moments = SoftMoments(cells, np.zeros((k, 2)), np.full(k, 1e-3), "full")
    state = fold(moments, [[1.0, 1.0]])
    assert within(state, moments.sensitivity)
    assert np.abs(state).sum() >= moments.sensitivity.l1 * (1 - 1e-8) - state.size  # truncation: one each
    assert np.count_nonzero(state) == moments.sensitivity.coordinates
    assert (state.astype(float) ** 2).sum() <= 1.001 * moments.sensitivity.l2_squared / k


@every_shape
@pytest.mark.parametrize("d", [2**6, 2**10])
def test_many_equal_columns(d, shape):
    """The largest rounding error of norms and of sums of squares: many equal ones."""
    for value in (1.0, 0.1, 1e300, 1 / math.sqrt(d), np.nextafter(1 / math.sqrt(d), 1)):
        moments = one_group([0.0] * d, 1.0, shape)
        assert within(fold(moments, np.full((1, d), value)), moments.sensitivity)


@pytest.mark.parametrize("d", [1, 2, 3, 7, 100])
def test_the_declared_sensitivity_in_numbers(d):
    """Against the formulas in exact arithmetic."""
    n_moments = {"full": d * (d + 1) // 2, "diag": d, "spherical": 1}
    l1_of_moments = {"full": Fraction(d + 1, 2), "diag": 1, "spherical": 1}
    for shape in SHAPES:
        declared = GroupedMoments.sensitivity_in(d, shape)
        rest = declared.l1 - 2 * COUNT_WEIGHT - l1_of_moments[shape] * LATTICE_RADIUS
        assert rest**2 <= d * LATTICE_RADIUS**2 < (rest + 1) ** 2
        assert declared.l2_squared == Fraction(34, 16) * LATTICE_RADIUS**2
        assert declared.spread == 2 * LATTICE_RADIUS
        assert declared.coordinates == 2 + d + n_moments[shape]
        assert all(type(value) is int for value in vars(declared).values())
        assert declared == one_group([0.0] * d, 1.0, shape).sensitivity
        soft = SoftMoments.sensitivity_in(d, shape, 9)
        assert vars(soft) == vars(declared) | {"coordinates": 9 * declared.coordinates}


def test_soft_blocks_are_cut_where_it_does_not_matter(monkeypatch):
    cells, rows = mixture(5, 2), np.random.default_rng(4).normal(size=(103, 2))
    moments = SoftMoments(cells, cells.means, np.ones(5), "full")
    whole = fold(moments, rows)
    for values in (1, 5, 50, 499):
        monkeypatch.setattr("sfumato.private.aggregates.moments.SHARED_VALUES", values)
        assert (fold(moments, rows) == whole).all()


def scatter(rows, center):
    gaps = rows - center
    return gaps.T @ gaps


def test_the_centred_scatter_moves_by_more_than_the_paper_pays_for():
    """Rows in [-1, 1]^2, one replaced: at most 1 in the diagonal and 2 elsewhere, says its Appendix C."""
    paid = np.array([[1.0, 2.0], [2.0, 1.0]])
    table = -np.ones((10, 2))
    neighbour = np.concatenate([table[1:], [[1.0, 1.0]]])
    change = scatter(neighbour, neighbour.mean(axis=0)) - scatter(table, table.mean(axis=0))
    assert change == pytest.approx(np.full((2, 2), 3.6))
    assert (change > paid).all()
    for released_mean, moved in ((-1.0, 4.0), (-3.0, 12.0)):  # noise may carry a mean out of the cube
        assert (scatter(neighbour, released_mean) - scatter(table, released_mean) == moved).all()
    assert (np.abs(scatter(neighbour, 0.0) - scatter(table, 0.0)) <= paid).all()
    # In squares, those of sums included, over all that is paid for: 1 + 3 D + 2 D^2 with D = 2.
    upper = change[np.triu_indices(2)]
    assert (upper**2).sum() + ((neighbour - table).sum(axis=0) ** 2).sum() > 3 * (1 + 6 + 8)


def test_centring_comes_after_the_noise():
    """Moments about a public origin give the scatter about the mean, and one row moves them as declared."""
    rows = np.random.default_rng(5).normal(size=(50, 2))
    moments = one_group([0.5, -0.5], 10.0, "full")
    (size,), _, (total,), (second,) = moments.unpack(fold(moments, rows))
    assert second - np.outer(total, total) / size == pytest.approx(scatter(rows, rows.mean(axis=0)), abs=1e-4)


THREE = Voronoi(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
MIXTURE = mixture(3, 2)
both = pytest.mark.parametrize(("kind", "partition"), [(GroupedMoments, THREE), (SoftMoments, MIXTURE)])


@both
def test_public_arrays_of_another_shape_are_refused(kind, partition):
    for shape in ((2, 2), (4, 2), (3,), (0, 2), (3, 2, 1)):
        with pytest.raises(ParameterError, match=r"^`origins` must have shape \(3, \d\), got \("):
            kind(partition, np.zeros(shape), np.ones(3), "full")
    for shape in ((2,), (4,), (3, 1), (0,), ()):
        with pytest.raises(ParameterError, match=r"^`radii` must have shape \(3,\), got \("):
            kind(partition, np.zeros((3, 2)), np.ones(shape), "full")


@both
@pytest.mark.parametrize("radius", [0.0, -1.0, 5e-324, 0.99e-145, 1.01e145, np.nan, np.inf, -np.inf])
def test_radii_whose_squares_are_no_numbers_are_refused(kind, partition, radius):
    with pytest.raises(ParameterError, match=r"^`radii` must be from 1e-145 to 1e\+145, got "):
        kind(partition, np.zeros((3, 2)), np.array([1.0, radius, 1.0]), "full")


@both
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_origins_that_are_no_place_are_refused(kind, partition, value):
    with pytest.raises(ParameterError, match=r"^`origins` must be finite"):
        kind(partition, np.array([[0.0, 0.0], [value, 0.0], [0.0, 0.0]]), np.ones(3), "full")


@both
@pytest.mark.parametrize("shape", ["tied", "", None])
def test_unknown_shapes_are_refused(kind, partition, shape):
    with pytest.raises(ParameterError, match=r"^`shape` must be one of full, diag, spherical, got "):
        kind(partition, np.zeros((3, 2)), np.ones(3), shape)


@both
def test_rows_of_other_columns_are_refused(kind, partition):
    moments = kind(partition, np.zeros((3, 2)), np.ones(3), "full")
    with pytest.raises(ParameterError, match=r"^rows must have 2 columns, got 3"):
        fold(moments, np.ones((5, 3)))


def test_rows_in_no_group_weigh_nothing():
    some = Subset(THREE, np.array([2]))
    moments = GroupedMoments(some, np.zeros((1, 2)), np.array([4.0]), "full")
    rows = np.array([[0.0, 0.0], [0.0, 1.5], [2.0, 0.0], [0.5, 1.5]])
    assert (fold(moments, rows) == fold(moments, rows[[1, 3]])).all()
    assert moments.unpack(fold(moments, rows))[0].tolist() == [2.0]
    assert not fold(moments, rows[[0, 2]]).any()


def test_the_smallest_and_largest_radius_unpack_to_numbers():
    for radius in (LEAST_MOMENT_RADIUS, LARGEST_MOMENT_RADIUS):
        for shape in SHAPES:
            moments = one_group([0.0, 0.0], radius, shape)
            *_, seconds = moments.unpack(fold(moments, np.full((100, 2), radius)))
            assert (np.isfinite(seconds) & (seconds > 0)).all()
