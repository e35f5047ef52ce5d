"""Kernels that lie along shapes, against plain filters, slow twins, stripes and noise."""

import math

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from sfumato.domain import Grid
from sfumato.public.density import directions
from sfumato.public.density.directions import directed
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.levels import Levels, cut_levels
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.scales import Scales

SHAPE = (90, 70)
GAP = 2  # cells between two bands


def released(raw, scale, seed=0):
    """Noisy counts of cells of width 1."""
    rng, p = np.random.default_rng(seed), 1 - math.exp(-1 / scale)
    noisy = raw + rng.geometric(p, raw.shape) - rng.geometric(p, raw.shape)
    grid = Grid((0.0, 0.0), tuple(map(float, raw.shape)), raw.shape)
    return NestedHistogram.plain(
        NoisyHistogram(grid, noisy.astype(np.int64).ravel(), "discrete Laplace", scale)
    )


def bands(rows_per_cell, seed=0):
    """Counts of two bands that a gap separates."""
    mean = np.zeros(SHAPE)
    mean[10:80, 20 : 35 - GAP // 2] = mean[10:80, 35 + GAP // 2 : 50] = rows_per_cell
    return np.random.default_rng(seed).poisson(mean)


@pytest.mark.parametrize(("length", "width"), [(3.0, 3.0), (6.0, 1.5)])
def test_kernels_are_normal(length, width):
    values = np.random.default_rng(0).random(SHAPE)
    transform = directions._Transform(values, 6.0)
    lying = gaussian_filter(values, (length, width), mode="constant", truncate=6)
    np.testing.assert_allclose(transform.smooth(length, width), lying, atol=2e-3)
    standing = gaussian_filter(values, (width, length), mode="constant", truncate=6)
    np.testing.assert_allclose(transform.smooth(length, width, math.pi / 2), standing, atol=2e-3)


def test_a_gradient_is_that_of_the_smoothed_values():
    values = np.random.default_rng(0).random(SHAPE)
    found = directions._Transform(values, 6.0).gradient(3.0)
    expected = [
        gaussian_filter(values, 3.0, order=order, mode="constant", truncate=6) for order in ((1, 0), (0, 1))
    ]
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_limited_values_follow_the_nearest_small_one():
    values = np.random.default_rng(0).uniform(1, 9, (12, 9))
    limited = values.copy()
    directions._limit(limited, 0.4)
    down, right = np.indices(values.shape)
    for i, j in np.ndindex(values.shape):
        steps = np.abs(down - i), np.abs(right - j)
        way = np.maximum(*steps) + (math.sqrt(2) - 1) * np.minimum(*steps)
        assert limited[i, j] == pytest.approx((values + 0.4 * way).min())


@pytest.mark.parametrize("turn", range(directions._N_TURNS))
def test_axes_lie_along_stripes(turn):
    angle = math.pi * turn / directions._N_TURNS
    down, right = np.indices(SHAPE)
    values = 5 + 4 * np.sin((math.cos(angle) * right - math.sin(angle) * down) / 2)
    found = directions._axes(directions._Transform(values, 20.0), np.ones(SHAPE), 1.5)
    assert (found[20:-20, 20:-20] == turn).all()


def test_noise_has_hardly_an_axis():
    values = np.random.default_rng(0).normal(size=SHAPE)
    found = directions._axes(directions._Transform(values, 20.0), np.ones(SHAPE), 1.5)
    assert (found[20:-20, 20:-20] >= 0).mean() < 0.3


def test_a_gap_is_seen_that_round_kernels_blur():
    histogram = released(bands(2.0), 1.5)
    scales = Scales.of(histogram)
    middle, layers = np.s_[20:70, 34:36], scales.layers([7.0, 16.0])
    for turned, round_ in zip(directed(histogram, scales, layers), layers, strict=True):
        in_gap = [layer.density.reshape(SHAPE)[middle].mean() for layer in (turned, round_)]
        assert in_gap[0] < 0.75 * in_gap[1]
        assert (turned.density > 0).all()
        assert (turned.kernel <= round_.kernel + 1e-9).all()


def test_noisy_bands_stay_apart():
    found = [cut_levels(Levels(released(bands(3.0, seed), 1.5, seed)), 1.0).n_spans for seed in range(5)]
    assert found.count(2) >= 4


def test_without_noise_kernels_are_round():
    levels = Levels(released(bands(5.0), 0.05))
    np.testing.assert_array_equal(levels.density, Scales.of(levels.histogram).layers([5.0])[0].density)
