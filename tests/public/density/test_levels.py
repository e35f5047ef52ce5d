"""The tree of density levels and its cuts, against the smoothed histogram itself."""

import math

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, generate_binary_structure, label

from sfumato.domain import Grid
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.levels import Levels, cut_levels
from sfumato.public.models import DensityModel

SHAPES = {1: (60,), 2: (25, 20), 3: (10, 9, 8)}


def hills(d, seed=0, scale=1.0, mechanism="discrete Laplace"):
    """Noisy counts of two normal hills on a grid."""
    rng, shape = np.random.default_rng(seed), SHAPES[d]
    at = [rng.normal(center * np.array(shape), np.array(shape) / 10, size=(800, d)) for center in (0.3, 0.7)]
    raw, _ = np.histogramdd(np.concatenate(at), bins=[np.arange(m + 1) for m in shape])
    p = 1 - math.exp(-1 / scale)
    noise = rng.geometric(p, size=raw.shape) - rng.geometric(p, size=raw.shape)
    grid = Grid((0.0,) * d, tuple(map(float, shape)), shape)
    return NoisyHistogram(grid, (raw + noise).astype(np.int64).ravel(), mechanism, scale)


def empty(shape=(12, 10), scale=1.0, counts=0):
    grid = Grid((0.0,) * len(shape), tuple(map(float, shape)), shape)
    return NoisyHistogram(grid, np.full(math.prod(shape), counts, dtype=np.int64), "discrete Laplace", scale)


def smoothed(histogram):
    return gaussian_filter(histogram.counts.reshape(histogram.grid.shape).astype(float), 1.0, mode="constant")


@pytest.mark.parametrize("d", SHAPES)
def test_parents_are_higher_and_saddles_lower(d):
    tree = Levels(hills(d)).published()
    has_parent = tree.parents >= 0
    assert has_parent.any()
    assert (np.diff(tree.heights) <= 0).all()
    assert (tree.heights[tree.parents[has_parent]] >= tree.heights[has_parent]).all()
    assert (tree.parents[has_parent] < np.flatnonzero(has_parent)).all()
    assert (tree.saddles <= tree.heights).all()
    assert (tree.saddles[has_parent] > 0).all()
    assert (tree.saddles[~has_parent] == 0).all()
    assert (tree.prominences >= 0).all()


@pytest.mark.parametrize("d", SHAPES)
def test_heights_are_the_density_at_the_positions(d):
    histogram = hills(d)
    tree, smooth = Levels(histogram).published(), smoothed(histogram)
    np.testing.assert_allclose(smooth.ravel()[histogram.grid.index(tree.positions)], tree.heights)
    assert tree.heights[0] == pytest.approx(smooth.max())


@pytest.mark.parametrize("d", SHAPES)
def test_a_cut_at_a_level_gives_connected_components(d):
    histogram = hills(d)
    smooth, whole = smoothed(histogram), generate_binary_structure(d, d)
    for level in np.quantile(smooth, [0.9, 0.97, 0.999]):
        regions = cut_levels(Levels(histogram), 2.2, level=float(level))
        expected, n_expected = label(smooth >= level, whole)
        assert regions.n_spans == n_expected
        np.testing.assert_array_equal(regions.cells, np.flatnonzero(expected))
        pairs = {*zip(regions.labels.tolist(), expected.ravel()[regions.cells].tolist(), strict=True)}
        assert len(pairs) == n_expected


def test_a_level_above_all_gives_nothing():
    histogram = hills(2)
    above = float(smoothed(histogram).max()) + 1
    assert cut_levels(Levels(histogram), 2.2, level=above).n_spans == 0


@pytest.mark.parametrize("d", SHAPES)
@pytest.mark.parametrize("mechanism", ["discrete Laplace", "discrete Gaussian"])
def test_two_hills_are_two_clusters(d, mechanism):
    model = DensityModel.of(Levels(hills(d, mechanism=mechanism)), 2.2, "euclidean")
    assert model.regions.n_spans == 2
    tops = np.array(SHAPES[d]) * np.array([[0.3], [0.7]])
    assert sorted(model.predict(tops)) == [0, 1]
    assert model.predict(np.array(SHAPES[d])[None] * 0.02).tolist() == [-1]
    for span in model.spans:
        assert span.count == pytest.approx(800, rel=0.1)


@pytest.mark.parametrize("d", SHAPES)
def test_a_cut_into_so_many_clusters(d):
    levels = Levels(hills(d))
    n_peaks = levels.tree.n_peaks
    for n in (1, 2, 3, n_peaks, n_peaks + 5):
        assert cut_levels(levels, 2.2, n_clusters=n).n_spans == min(n, n_peaks)


def test_prominence_decides():
    levels = Levels(hills(2))
    found = [cut_levels(levels, prominence).n_spans for prominence in (1e-6, 2.2, 1e6)]
    assert found[0] >= found[1] >= found[2] == 1


def test_no_rows():
    model = DensityModel.of(Levels(empty()), 2.2, "euclidean")
    assert model.regions.n_spans == 0
    assert model.spans == ()
    assert model.tree.positions.shape == (0, 2)
    assert model.predict(np.ones((2, 2))).tolist() == [-1, -1]
    assert model.cut(n_clusters=3).regions.n_spans == 0
    assert model.cut(level=1.0).regions.n_spans == 0


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("counts", [0, -3, 5])
def test_even_counts_are_at_most_one_cluster(counts, scale):
    levels = Levels(empty(counts=counts, scale=scale))
    assert cut_levels(levels, 2.2).n_spans <= (counts > 0)


@pytest.mark.parametrize("mechanism", ["discrete Laplace", "discrete Gaussian"])
def test_noise_alone_seldom_reaches_the_least_height(mechanism):
    """The stated chance is 2 % for the whole domain."""
    rng, shape, n = np.random.default_rng(0), (30, 30), 400
    grid = Grid((0.0, 0.0), (1.0, 1.0), shape)
    least = Levels(NoisyHistogram(grid, np.zeros(900, dtype=np.int64), mechanism, 3.0)).least_height
    p = 1 - math.exp(-1 / 3)
    if mechanism == "discrete Laplace":
        noise = rng.geometric(p, size=(n, *shape)) - rng.geometric(p, size=(n, *shape))
    else:
        noise = np.round(rng.normal(scale=3.0, size=(n, *shape)))
    highest = gaussian_filter(noise.astype(float), [0, 1, 1], mode="constant").max(axis=(1, 2))
    assert np.mean(highest >= least) <= 0.02 + 3 * math.sqrt(0.02 / n)
    assert np.mean(highest >= 0.6 * least) > 0.1  # much lower would not do


def test_noise_is_the_standard_deviation_of_a_smoothed_count():
    rng, scale = np.random.default_rng(0), 4.0
    p = 1 - math.exp(-1 / scale)
    counts = rng.geometric(p, size=(300, 300)) - rng.geometric(p, size=(300, 300))
    levels = Levels(empty((5, 5), scale=scale))
    middle = gaussian_filter(counts.astype(float), 1.0, mode="constant")[10:-10, 10:-10]
    assert levels.noise == pytest.approx(middle.std(), rel=0.03)
    impulse = np.zeros((21, 21))
    impulse[10, 10] = 1
    assert levels.own_weight == pytest.approx(gaussian_filter(impulse, 1.0, mode="constant")[10, 10])
