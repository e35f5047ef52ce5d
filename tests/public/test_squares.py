"""The mean squared distance, from noisy counts in coarse bins."""

import numpy as np
import pytest

from sfumato.public.squares import mean_square_of

EDGES = 8 * 2.0 ** (np.arange(-47, 1) / 3)


def counts_of(distances, noise, rng):
    raw = np.histogram(distances, [0, *EDGES, np.inf])[0]
    return raw + np.rint(noise * rng.normal(size=len(raw))).astype(np.int64)


@pytest.mark.parametrize("d", [2, 10, 100, 1000])
@pytest.mark.parametrize("spreads", [1, 3])
def test_the_error_is_as_stated(d, spreads):
    rng, misses = np.random.default_rng(d), []
    for _ in range(20):
        scale = rng.uniform(0.02, 0.1) * rng.choice(np.linspace(1, 2, spreads), 20_000)
        distances = scale * np.sqrt(rng.chisquare(d, 20_000))
        found, error = mean_square_of(counts_of(distances, 40.0, rng), EDGES, 40.0)
        truth = (distances**2).mean()
        assert error < 0.2 * truth
        misses.append(abs(found - truth) > 2.5 * error)
    assert np.mean(misses) <= 0.1


@pytest.mark.parametrize("unit", [1e-130, 1.0, 1e130])
def test_units(unit):
    rng = np.random.default_rng(0)
    counts = counts_of(0.1 * np.sqrt(rng.chisquare(3, 5000)), 10.0, rng)
    found, error = mean_square_of(counts, unit * EDGES, 10.0)
    assert found == pytest.approx(0.03 * unit**2, rel=0.1)
    assert 0 < error < 0.1 * found


def test_no_rows():
    for counts in (np.zeros(49, dtype=np.int64), np.full(49, -5)):
        found, error = mean_square_of(counts, EDGES, 5.0)
        assert found >= 0
        assert np.isfinite([found, error]).all()
