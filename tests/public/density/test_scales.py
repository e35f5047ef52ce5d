"""Smoothed counts at many scales, against plain Gaussian filters, simulations and a slow twin."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from sfumato.domain import Grid
from sfumato.domain.nested import NestedGrid
from sfumato.public.density import scales
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.scales import Scales

SHAPES = {1: (240,), 2: (70, 61), 3: (26, 24, 25)}


def grid_of(shape):
    return Grid((0.0,) * len(shape), tuple(map(float, shape)), shape)


def plain(counts, scale=1.0, mechanism="discrete Laplace"):
    histogram = NoisyHistogram(grid_of(counts.shape), counts.astype(np.int64).ravel(), mechanism, scale)
    return NestedHistogram.plain(histogram)


def hill(shape, n=3000, seed=0):
    """Counts of one normal hill in the middle of a grid."""
    rng, sides = np.random.default_rng(seed), np.array(shape)
    rows = rng.normal(sides / 2, sides / 12, size=(n, len(shape)))
    return np.histogramdd(rows, bins=[np.arange(m + 1) for m in shape])[0]


def kernels_up_to(widest):
    found = scales._NARROWEST * scales._STEP ** np.arange(14)
    return found[found <= widest]


@pytest.mark.parametrize("d", SHAPES)
def test_kernels_are_gaussian(d):
    """Narrow ones exactly. Wide ones, on pooled cells, are up to 5 % wider, and so lower at the top."""
    values = hill(SHAPES[d])
    kernels = kernels_up_to(min(SHAPES[d]) / 8)
    found = list(scales._smoothed(values, kernels))
    assert len(found) == len(kernels) + 1
    for kernel, smooth in zip((kernels[0] / math.sqrt(2), *kernels), found, strict=True):
        expected = gaussian_filter(values, kernel, mode="constant", truncate=3.5)
        is_narrow = kernel <= scales._POOLED
        assert smooth.shape == values.shape
        np.testing.assert_allclose(smooth, expected, atol=(1e-9 if is_narrow else 0.07) * expected.max())
    assert kernels[-1] > scales._POOLED


@pytest.mark.parametrize("d", SHAPES)
def test_near_the_border_wide_kernels_see_less_but_never_more(d):
    """What narrower kernels moved over the border is lost."""
    values = np.ones(SHAPES[d])
    kernels = kernels_up_to(max(SHAPES[d]) / 3)
    for kernel, smooth in zip(kernels, list(scales._smoothed(values, kernels))[1:], strict=True):
        expected = gaussian_filter(values, kernel, mode="constant", truncate=3.5)
        assert (smooth <= 1.02 * expected).all()
        assert (smooth > 0).all()


@pytest.mark.parametrize("d", SHAPES)
def test_nothing_is_lost_far_from_the_border(d):
    values = hill(SHAPES[d], seed=1)
    for smooth in scales._smoothed(values, kernels_up_to(min(SHAPES[d]) / 8)):
        assert smooth.sum() == pytest.approx(values.sum(), rel=2e-3)


def test_pooling_and_doubling_keep_the_mean():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 5, 4))
    pooled = scales._pooled(values)
    assert pooled.shape == (3, 3, 2)
    assert pooled[1, 0, 1] == pytest.approx(values[2:4, 0:2, 2:4].mean())
    assert pooled[1, 2, 1] == pytest.approx(values[2:4, 4, 2:4].sum() / 8)  # beyond the edge is nothing
    doubled = scales._doubled(pooled)
    assert doubled.shape == (6, 6, 4)
    assert doubled.mean() == pytest.approx(pooled.mean())
    line = np.arange(5.0)
    np.testing.assert_allclose(scales._doubled(line)[1:-1], np.arange(0.25, 4, 0.5))


@pytest.mark.parametrize("kernel", [0.6, 1.2, 2.4, 9.6])
def test_noise_averages_out_as_over_so_many_cells(kernel):
    noise = np.random.default_rng(0).normal(size=400_000)
    smooth = gaussian_filter(noise, kernel, truncate=3.5)
    assert 1 / smooth.var() == pytest.approx(scales._averaged(kernel), rel=0.05)


@pytest.mark.parametrize(
    ("shape", "rows", "noise_scale"),
    [((120,), 20, 2.0), ((40, 40), 4, 3.0), ((40, 40), 30, 0.5), ((18, 18, 18), 5, 2.0)],
)
def test_precision_is_the_squared_signal_to_noise_ratio(shape, rows, noise_scale):
    """In an even cloud of Poisson counts with noise, released many times."""
    rng, n = np.random.default_rng(0), 300
    p = 1 - math.exp(-1 / noise_scale)

    def release():
        noise = rng.geometric(p, shape) - rng.geometric(p, shape)
        return Scales.of(plain(rng.poisson(rows, shape) + noise, noise_scale))

    middle = np.ravel_multi_index([m // 2 for m in shape], shape)
    found = [release() for _ in range(n)]
    densities = np.array([each.densities[:, middle] for each in found])
    said = np.median([each.precisions[:, middle] for each in found], axis=0)
    noises = found[0].noises[:, middle]
    deviations, means = densities.std(axis=0), densities.mean(axis=0)
    inner = found[0].kernels <= min(shape) / 8  # wider ones look over the border
    assert inner.sum() >= 3
    np.testing.assert_allclose(said[inner], (means / deviations)[inner] ** 2, rtol=0.3)
    variance = plain(np.zeros(shape), noise_scale).variance
    np.testing.assert_allclose(noises[inner] ** 2, variance / found[0].sizes[inner], rtol=0.05)


@pytest.mark.parametrize("d", [1, 2])
def test_the_noise_of_whole_leaves_is_that_of_wide_kernels(d):
    """Kernels wider than a leaf see its noise as if every fine cell had its share of the variance."""
    rng, n, shape = np.random.default_rng(0), 400, {1: (40,), 2: (16, 16)}[d]
    nested = NestedGrid(grid_of(shape), rng.integers(0, 3, math.prod(shape)), 2)
    p = 1 - math.exp(-1 / 5.0)
    middle = np.ravel_multi_index([m // 2 for m in nested.fine.shape], nested.fine.shape)
    found = []
    for _ in range(n):
        noise = rng.geometric(p, nested.n_cells) - rng.geometric(p, nested.n_cells)
        counts = 100 * nested.volumes + noise
        found.append(Scales.of(NestedHistogram(nested, counts, "discrete Laplace", 5.0)))
    wide = np.flatnonzero((found[0].kernels > 4) & (found[0].kernels < max(nested.fine.shape) / 7))
    assert len(wide)
    seen = np.std([each.densities[wide, middle] for each in found], axis=0)
    np.testing.assert_allclose(found[0].noises[wide, middle], seen, rtol=0.2)


def slow_layer(found, wanted):
    """The narrowest kernel of the wanted precision in each cell, between two kernels by logarithms."""
    n_scales, n_cells = found.densities.shape
    density, kernel, precision = np.zeros((3, n_cells))
    for i in range(n_cells):
        enough = np.flatnonzero(found.precisions[:, i] >= wanted)
        j = enough[0] if len(enough) else n_scales - 1
        steps = [max(j - 1, 0), j]
        logs = np.log(np.maximum(found.precisions[steps, i], 1e-9))
        t = np.interp(np.log(wanted), logs, [0, 1]) if logs[1] > logs[0] else 1.0
        density[i] = np.exp(np.interp(t, [0, 1], np.log(found.densities[steps, i])))
        density[i] = max(density[i], found.noises[j, i])
        kernel[i] = np.exp(np.interp(t, [0, 1], np.log(found.kernels[steps])))
        precision[i] = found.precisions[0, i] if j == 0 else min(found.precisions[j, i], wanted)
    return density, kernel, np.maximum(precision, 1.0)


@pytest.mark.parametrize("d", SHAPES)
@pytest.mark.parametrize("wanted", [1.0, 5.0, 14.0, 200.0, 1e9])
def test_a_layer_agrees_with_its_slow_twin(d, wanted):
    shape = tuple(min(m, 40 // d) for m in SHAPES[d])
    rng = np.random.default_rng(0)
    noisy = hill(shape, 500) + rng.integers(-4, 5, shape)
    found = Scales.of(plain(noisy, 2.0))
    (layer,) = found.layers([wanted])
    for seen, expected in zip(layer, slow_layer(found, wanted), strict=True):
        np.testing.assert_allclose(seen, expected)
    again = np.empty((3, 1, noisy.size))
    parts = (found.densities, found.noises, found.precisions, found.kernels, np.array([wanted]))
    scales._fill_layers.py_func(*parts, *again)
    np.testing.assert_allclose(layer, again[:, 0])


@pytest.mark.parametrize("d", SHAPES)
def test_kernels_are_narrower_where_rows_are_denser(d):
    sides = np.array(SHAPES[d])
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.normal(sides * at, sides / 15, size=(n, d)) for at, n in ((0.3, 20_000), (0.7, 1000))]
    )
    counts = np.histogramdd(rows, bins=[np.arange(m + 1) for m in SHAPES[d]])[0]
    layer = Scales.of(plain(counts)).layers([300.0])[0]
    dense, thin, empty = grid_of(SHAPES[d]).index(sides * np.array([[0.3], [0.7], [0.0]]))
    assert layer.density[dense] > 5 * layer.density[thin] > 10 * layer.density[empty]
    assert layer.kernel[dense] < layer.kernel[thin] < layer.kernel[empty]
    assert layer.precision[dense] >= layer.precision[thin] == pytest.approx(300)


@pytest.mark.parametrize("d", SHAPES)
def test_a_layer_keeps_the_number_of_rows(d):
    """About: cells lend to others by kernels of other widths."""
    counts = hill(SHAPES[d], 20_000)
    found = Scales.of(plain(counts, 0.1))
    few = found.kernels < min(SHAPES[d]) / 8
    np.testing.assert_allclose(found.densities[few].sum(axis=1), 20_000, rtol=0.01)
    assert found.layers([14.0])[0].density.sum() == pytest.approx(20_000, rel=0.1)


@pytest.mark.parametrize("d", SHAPES)
def test_a_higher_precision_takes_wider_kernels(d):
    found = Scales.of(plain(hill(SHAPES[d])))
    layers = found.layers((2.0, 8.0, 32.0, 128.0))
    for one, other in pairwise(layers):
        assert (one.kernel <= other.kernel).all()
        assert (one.precision <= other.precision).all()
    assert (np.diff(found.precisions, axis=0) >= 0).all()


@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1), (1, 30), (3, 1, 2)])
@pytest.mark.parametrize("count", [0, -7, 3])
@pytest.mark.parametrize("scale", [1e-3, 5.0])
def test_small_and_empty_grids(shape, count, scale):
    found = Scales.of(plain(np.full(shape, count), scale))
    assert len(found.kernels) >= 2
    for layer in found.layers((5.0, 1e6)):
        for part in layer:
            assert (np.isfinite(part) & (part > 0)).all()
