"""Whole numbers in narrow cells, as a released histogram shows them."""

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.stripes import is_striped


def histogram_of(x, side, scale, seed=0):
    """Values along the first column, even ones along the second; from 0 to 100, with noise."""
    rng = np.random.default_rng(seed)
    counts = np.histogram2d(x, rng.uniform(0, 100, len(x)), [side, 4], [[0, 100], [0, 100]])[0]
    noisy = counts.astype(np.int64).ravel() + np.rint(rng.laplace(0, scale, counts.size)).astype(np.int64)
    grid = Grid((0.0, 0.0), (100.0, 100.0), (side, 4))
    return NestedHistogram.plain(NoisyHistogram(grid, noisy, "discrete Laplace", scale))


DRAWN = {
    "normal": lambda rng: rng.normal(50, 12, 20_000),
    "even": lambda rng: rng.uniform(0, 100, 20_000),
    "clumps": lambda rng: rng.normal(rng.uniform(0, 100, 30)[rng.integers(0, 30, 20_000)], 0.5),
    "a spike": lambda rng: np.append(rng.normal(50, 12, 20_000), np.full(5_000, 40.0)),
    "tenths": lambda rng: rng.normal(50, 12, 20_000).round(1),
}


@pytest.mark.parametrize("side", [40, 90, 130, 250, 470])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", DRAWN)
def test_values_anywhere_are_not_striped(name, seed, side):
    x = DRAWN[name](np.random.default_rng(seed))
    histogram = histogram_of(x, side, 1.0, seed)
    assert not is_striped(histogram, 0)
    assert not is_striped(histogram, 1)


@pytest.mark.parametrize("side", [130, 170, 250, 470])
@pytest.mark.parametrize("scale", [0.2, 3.0])
@pytest.mark.parametrize("name", ["normal", "even"])
def test_whole_numbers_in_narrow_cells_are_striped(name, scale, side):
    x = DRAWN[name](np.random.default_rng(0)).round()
    assert is_striped(histogram_of(x, side, scale), 0)


@pytest.mark.parametrize("side", [25, 20])
def test_cells_of_many_numbers_are_not_striped(side):
    x = DRAWN["normal"](np.random.default_rng(0)).round()
    assert not is_striped(histogram_of(x, side, 0.2), 0)


def test_nothing_is_said_without_rows_or_of_few_numbers():
    assert not is_striped(histogram_of(np.zeros(0), 250, 1.0), 0)
    one = NoisyHistogram(Grid((0.0,), (5.0,), (50,)), np.tile([9, 0, 0, 0, 0], 10), "discrete Laplace", 0.1)
    assert not is_striped(NestedHistogram.plain(one), 0)
