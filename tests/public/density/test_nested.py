"""Estimates from two counts of the same rows, against least squares and the whole covariance matrix."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.domain.measure import Measure
from sfumato.domain.nested import NestedGrid
from sfumato.errors import ParameterError
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.nested import NestedHistogram

MECHANISMS = ["discrete Laplace", "discrete Gaussian"]
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
with_and_without = pytest.mark.parametrize("has_outline", [True, False])


def small(*, has_outline=True, mechanism="discrete Laplace", seed=0):
    """Six coarse cells of depths 0, 1 and 2, in two columns."""
    rng = np.random.default_rng(seed)
    grid = Grid((0.0, 0.0), (2.0, 3.0), (2, 3))
    nested = NestedGrid(grid, np.array([0, 2, 1, 1, 0, 2]), 2)
    counts, outline = rng.integers(-5, 50, nested.n_cells), rng.integers(0, 200, 6)
    return NestedHistogram(nested, counts, mechanism, 3.0, outline if has_outline else None, 1.5)


def noise_variance(mechanism, scale):
    return NoisyHistogram(Grid((0.0,), (1.0,), (1,)), np.zeros(1, dtype=np.int64), mechanism, scale).variance


def least_squares(histogram):
    """The estimate with weights, and its covariance matrix."""
    n, n_coarse = histogram.nested.n_cells, histogram.nested.coarse.n_cells
    within = (histogram.nested.homes == np.arange(n_coarse)[:, None]).astype(float)
    design, seen = np.eye(n), histogram.counts
    variances = np.full(n, noise_variance(histogram.mechanism, histogram.scale))
    if histogram.outline is not None:
        design, seen = np.concatenate([design, within]), np.concatenate([seen, histogram.outline])
        own = np.full(n_coarse, noise_variance(histogram.mechanism, histogram.outline_scale))
        variances = np.concatenate([variances, own])
    root = 1 / np.sqrt(variances)
    found = np.linalg.lstsq(design * root[:, None], seen * root, rcond=None)[0]
    return found, np.linalg.inv(design.T @ (design / variances[:, None]))


@every_mechanism
@with_and_without
def test_estimates_are_those_of_least_squares(mechanism, has_outline):
    histogram = small(mechanism=mechanism, has_outline=has_outline)
    histogram.check()
    found, covariance = least_squares(histogram)
    np.testing.assert_allclose(histogram.estimates, found)
    np.testing.assert_allclose(histogram.variances, np.diag(covariance))
    assert histogram.counts.dtype == np.int64  # and were not changed


@every_mechanism
@with_and_without
def test_totals_of_groups_of_leaves(mechanism, has_outline):
    histogram = small(mechanism=mechanism, has_outline=has_outline)
    found, covariance = least_squares(histogram)
    rng = np.random.default_rng(1)
    owner = rng.integers(-1, 4, histogram.nested.n_cells)
    leaves = rng.permutation(np.flatnonzero(owner >= 0))
    counts, stds = histogram.totals(leaves, owner[leaves], 5)  # the last group has no leaf
    members = (owner == np.arange(5)[:, None]).astype(float)
    np.testing.assert_allclose(counts, members @ found, atol=1e-9)
    np.testing.assert_allclose(stds, np.sqrt(np.diag(members @ covariance @ members.T)), atol=1e-9)


def test_the_total_of_everything_is_best_known_from_the_outline():
    histogram = small()
    everything = np.arange(histogram.nested.n_cells)
    (count,), (std,) = histogram.totals(everything, np.zeros_like(everything), 1)
    assert std**2 < 6 * noise_variance("discrete Laplace", 1.5)
    assert count == pytest.approx(histogram.estimates.sum())
    precise = replace(histogram, outline_scale=0.01)
    assert precise.estimates.sum() == pytest.approx(histogram.outline.sum())


def box_share(histogram, low, high):
    """Part of each leaf inside a box, by points in the middle of very small cells."""
    points = histogram.grid.refined(10).centers()
    inside = ((points > low) & (points < high)).all(axis=1)
    leaf = histogram.nested.index(points)
    return np.bincount(leaf, inside) / np.bincount(leaf)


@with_and_without
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ((0, 0), (2, 3)),
        ((-9, -9), (9, 9)),
        ((0, 1), (1, 2)),
        ((0.25, 1.25), (0.75, 2)),
        ((0.5, 0.5), (1.7, 2.8)),
        ((0.1, 0.1), (0.2, 0.2)),
        ((1, 1), (1, 2)),
        ((3, 3), (4, 4)),
        ((1, 1), (0, 0)),
    ],
)
def test_counts_in_boxes(low, high, has_outline):
    histogram = small(has_outline=has_outline)
    found, covariance = least_squares(histogram)
    share = box_share(histogram, low, high)
    count, std = histogram.range_count(low, high)
    assert count == pytest.approx(share @ found, abs=1e-6)
    assert std == pytest.approx(math.sqrt(share @ covariance @ share), abs=1e-6)


def test_boxes_of_one_number_per_end():
    histogram = small()
    assert histogram.range_count(0.5, 1.5) == histogram.range_count((0.5, 0.5), (1.5, 1.5))


def test_boxes_along_leaves_count_exactly():
    """Hardly any noise, and rows in the middle of a leaf: the box has all or nothing of it."""
    histogram = replace(small(), scale=0.01, outline_scale=0.01)
    within = histogram.nested.homes == np.arange(6)[:, None]
    exact = replace(histogram, outline=within @ histogram.counts)
    low, high = (0.25, 1.25), (1.0, 2.0)
    share = box_share(exact, low, high)
    assert set(share) == {0.0, 1.0}
    count, std = exact.range_count(low, high)
    assert count == pytest.approx(exact.counts[share == 1].sum())
    assert std == pytest.approx(0, abs=1e-4)


def test_the_standard_deviation_is_that_of_repeated_releases():
    rng, n, truth = np.random.default_rng(2), 4000, small()

    def noise(scale, size):
        p = 1 - math.exp(-1 / scale)
        return rng.geometric(p, size) - rng.geometric(p, size)

    low, high = (0.3, 0.4), (1.6, 2.2)
    raw_outline = np.bincount(truth.nested.homes, truth.counts).astype(np.int64)
    found = [
        replace(
            truth,
            counts=truth.counts + noise(3.0, truth.nested.n_cells),
            outline=raw_outline + noise(1.5, 6),
        ).range_count(low, high)
        for _ in range(n)
    ]
    counts, stds = np.array(found).T
    assert np.ptp(stds) < 1e-9
    assert counts.std() == pytest.approx(stds[0], rel=4 / math.sqrt(n))
    expected = box_share(truth, low, high) @ truth.counts
    assert counts.mean() == pytest.approx(expected, abs=4 * stds[0] / math.sqrt(n))


@every_mechanism
def test_plain_counts_are_their_own_estimates(mechanism):
    grid = Grid((0.0, 0.0), (1.0, 1.0), (3, 4))
    counts = np.arange(-3, 9)
    plain = NestedHistogram.plain(NoisyHistogram(grid, counts, mechanism, 2.0))
    plain.check()
    assert plain.grid == grid
    np.testing.assert_array_equal(plain.estimates, counts)
    np.testing.assert_allclose(plain.variances, noise_variance(mechanism, 2.0))
    assert plain.range_count(0, 1) == pytest.approx(
        (counts.sum(), math.sqrt(12 * noise_variance(mechanism, 2)))
    )
    assert (plain.noise.mechanism, plain.noise.scale) == (mechanism, 2.0)


def test_moved():
    histogram, measure = small(), Measure((1.0, 2.0), (0.5, 4.0))
    moved = histogram.moved(measure)
    low, high = np.array([0.3, 0.4]), np.array([1.6, 2.2])
    assert moved.range_count(measure.of(low), measure.of(high)) == pytest.approx(
        histogram.range_count(low, high)
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"counts": np.zeros(43, dtype=np.int64)}, "`counts` must have shape"),
        ({"counts": np.zeros((42, 1), dtype=np.int64)}, "`counts` must have shape"),
        ({"outline": np.zeros(5, dtype=np.int64)}, "`outline` must have shape"),
        ({"mechanism": "normal"}, "the noise must be"),
        ({"scale": 0.0}, "the noise must be"),
        ({"scale": math.nan}, "the noise must be"),
        ({"scale": math.inf}, "the noise must be"),
        ({"outline_scale": -1.0}, "the noise must be"),
        ({"outline_scale": math.nan}, "the noise must be"),
    ],
    ids=str,
)
def test_damaged_parts_are_refused(damage, message):
    assert small().nested.n_cells == 42
    with pytest.raises(ParameterError, match=message):
        replace(small(), **damage).check()
