"""Tests with power: they pass at the true scale and fail at 0.7 and 1.3 times the scale."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace

N_DRAWS = 200_000
PASS, FAIL = 1e-4, 1e-6
SCALES = [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(10), Fraction(1000)]
WRONG = [Fraction(7, 10), Fraction(13, 10)]
LOG_WEIGHTS = {
    discrete_laplace: lambda x, scale: -abs(x) / scale,
    discrete_gaussian: lambda x, scale: -(x**2) / (2 * scale**2),
}

each_noise = pytest.mark.parametrize("noise", LOG_WEIGHTS, ids=lambda noise: noise.__name__)
each_scale = pytest.mark.parametrize("scale", SCALES, ids=str)


def exact_law(noise, scale):
    """Return the support up to 50 scales and the probabilities on it."""
    reach = int(50 * scale) + 50
    support = np.arange(-reach, reach + 1)
    weights = np.exp(LOG_WEIGHTS[noise](support.astype(float), float(scale)))
    return support, weights / weights.sum()


def chi_square_p(draws, support, probabilities):
    """Pool neighbouring values until at least 50 draws are expected in each bin (at most 200 bins)."""
    smallest = max(50, draws.size / 200)
    edges, expected = [support[0]], 0.0
    for x, mean in zip(support, probabilities * draws.size, strict=True):
        expected += mean
        if expected >= smallest:
            edges.append(x + 1)
            expected = 0.0
    bins = np.searchsorted(edges[1:-1], np.arange(support[0], support[-1] + 1), side="right")
    expected_counts = np.bincount(bins, weights=probabilities * draws.size)
    counts = np.bincount(bins[draws - support[0]], minlength=expected_counts.size)
    squares = (counts - expected_counts) ** 2 / expected_counts
    return stats.chi2.sf(squares.sum(), squares.size - 1)


def kolmogorov_p(draws, support, probabilities):
    """For a discrete law the p-value is an upper bound, so a failure is a failure."""
    empirical = np.bincount(draws - support[0], minlength=support.size).cumsum() / draws.size
    distance = abs(empirical - probabilities.cumsum()).max()
    return stats.kstwo.sf(distance, draws.size)


@each_noise
@each_scale
@pytest.mark.parametrize("p_value", [chi_square_p, kolmogorov_p])
def test_law(noise, scale, p_value):
    draws = noise(scale, N_DRAWS, Entropy(seed=20))
    assert p_value(draws, *exact_law(noise, scale)) > PASS


@each_noise
@each_scale
@pytest.mark.parametrize("p_value", [chi_square_p, kolmogorov_p])
@pytest.mark.parametrize("factor", WRONG, ids=str)
def test_wrong_scale_is_seen(noise, scale, p_value, factor):
    draws = noise(factor * scale, N_DRAWS, Entropy(seed=21))
    assert p_value(draws, *exact_law(noise, scale)) < FAIL


@each_noise
@each_scale
def test_mean_and_variance(noise, scale):
    support, probabilities = exact_law(noise, scale)
    draws = noise(scale, N_DRAWS, Entropy(seed=22)).astype(float)
    variance, fourth = ((support.astype(float) ** power * probabilities).sum() for power in (2, 4))
    assert abs(draws.mean()) < 4 * (variance / N_DRAWS) ** 0.5
    assert abs((draws**2).mean() - variance) < 4 * ((fourth - variance**2) / N_DRAWS) ** 0.5


@each_noise
@each_scale
@pytest.mark.parametrize("reach", [1, 2, 3, 5])
def test_tail_mass_on_both_sides(noise, scale, reach):
    support, probabilities = exact_law(noise, scale)
    draws = noise(scale, N_DRAWS, Entropy(seed=23))
    threshold = max(1, int(reach * scale))
    for side in (1, -1):
        mass = probabilities[side * support >= threshold].sum()
        count = int((side * draws >= threshold).sum())
        assert stats.binomtest(count, N_DRAWS, min(mass, 1.0)).pvalue > PASS


@each_noise
def test_consecutive_draws_are_uncorrelated(noise):
    draws = noise(Fraction(10), N_DRAWS, Entropy(seed=24)).astype(float)
    for values in (draws, abs(draws)):
        assert stats.pearsonr(values[:-1], values[1:]).pvalue > PASS


@pytest.mark.parametrize(
    ("noise", "limit"),
    [(discrete_laplace, stats.laplace), (discrete_gaussian, stats.norm)],
    ids=["laplace", "normal"],
)
def test_large_scale_tends_to_the_continuous_law(noise, limit):
    scale = Fraction(2**35)
    draws = noise(scale, N_DRAWS, Entropy(seed=25))
    assert stats.kstest(draws / 2**35, limit.cdf).pvalue > PASS
    for factor in WRONG:
        wrong = noise(Fraction(round(factor * scale)), N_DRAWS, Entropy(seed=26))
        assert stats.kstest(wrong / 2**35, limit.cdf).pvalue < FAIL


@each_noise
@pytest.mark.parametrize("scale", [Fraction(2**35 + 1), Fraction(2**52, 2**17 - 1), Fraction(2**52)], ids=str)
def test_large_scale_uses_every_low_bit(noise, scale):
    draws = noise(scale, N_DRAWS, Entropy(seed=27))
    assert stats.chisquare(np.bincount(draws % 16, minlength=16)).pvalue > PASS
