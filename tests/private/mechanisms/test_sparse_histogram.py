"""The sparse histogram: edges, refusals, the envelope of its tails. Its law: tests/statistical."""

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ParameterError
from sfumato.private.mechanisms import sparse_histogram as module
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.laws import DECIMALS
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram, threshold_for

LAPLACE, GAUSSIAN = "discrete Laplace", "discrete Gaussian"
NONE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
each_mechanism = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])


def weight(mechanism, scale, x):
    u = abs(x) / float(scale)
    return math.exp(-u if mechanism == LAPLACE else -u * u / 2)


@cache
def total_weight(mechanism, scale):
    return sum(weight(mechanism, scale, y) for y in range(-math.ceil(60 * scale), math.ceil(60 * scale) + 1))


def probability(mechanism, scale, x):
    """Probability of one value of the noise, term by term."""
    return weight(mechanism, scale, x) / total_weight(mechanism, scale)


def passing(mechanism, scale, threshold):
    return sum(probability(mechanism, scale, threshold + x) for x in range(math.ceil(50 * scale)))


@each_mechanism
@pytest.mark.parametrize("n_cells", [1, 2, 3, 5, 1000, 2**62])
def test_results_are_sorted_distinct_and_above_the_threshold(mechanism, n_cells):
    scale = Fraction(7, 3)
    for n_expected in (0.001, 0.5, 40):
        threshold = threshold_for(n_cells, mechanism, scale, n_expected)
        for seed in range(20):
            occupied = np.unique(np.random.default_rng(seed).integers(0, n_cells, size=seed // 4))
            raw = occupied, np.full(occupied.size, seed)
            cells, counts = sparse_histogram(*raw, n_cells, mechanism, scale, threshold, Entropy(seed))
            assert cells.dtype == counts.dtype == np.int64
            assert (np.diff(cells) > 0).all()
            assert ((cells >= 0) & (cells < n_cells)).all()
            assert (counts >= threshold).all()
            assert cells.shape == counts.shape


@each_mechanism
def test_heavy_cells_are_found_and_light_ones_are_not(mechanism):
    raw = np.array([0, 77, 2**40, 2**62 - 1]), np.array([10**6, 1, 2 * 10**6, 10**6])
    threshold = threshold_for(2**62, mechanism, Fraction(10), 1e-9)
    cells, counts = sparse_histogram(*raw, 2**62, mechanism, Fraction(10), threshold, Entropy(seed=0))
    assert cells.tolist() == [0, 2**40, 2**62 - 1]
    assert abs(counts - raw[1][[0, 2, 3]]).max() < 300
    assert (counts != raw[1][[0, 2, 3]]).any()


@each_mechanism
def test_a_universe_that_is_all_occupied_gets_its_own_noise_only(mechanism):
    raw = np.arange(500), np.full(500, 10**9)
    cells, counts = sparse_histogram(*raw, 500, mechanism, Fraction(5), 1, Entropy(seed=1))
    assert cells.tolist() == list(range(500))
    assert counts.std() == pytest.approx(7.07 if mechanism == LAPLACE else 5, rel=0.2)
    light = raw[0], np.full(500, -(10**9))  # nothing of an occupied cell comes from elsewhere
    assert sparse_histogram(*light, 500, mechanism, Fraction(5), 1, Entropy(seed=1))[0].size == 0


@each_mechanism
def test_what_passes_elsewhere_does_not_depend_on_what_is_occupied(mechanism):
    """The same bits serve the empty cells, whatever the data: a cell that is empty twice comes out twice."""
    tables = [NONE, (np.array([5]), np.array([3])), (np.arange(0, 400, 7), np.full(58, 9))]
    found = []
    for raw in tables:
        cells, counts = sparse_histogram(*raw, 400, mechanism, Fraction(3), 4, Entropy(seed=2))
        found.append({c: n for c, n in zip(cells.tolist(), counts.tolist(), strict=True) if c % 7 and c != 5})
    assert found[0] == found[1] == found[2] != {}


@pytest.mark.parametrize(
    ("mechanism", "scale", "threshold", "n_bits"),
    [
        (GAUSSIAN, 1000, 1, 0),  # two thirds of the cells are candidates
        (LAPLACE, 1000, 1, 1),
        (LAPLACE, 1, 1, 1),
        (LAPLACE, 1, 5, 7),
        (GAUSSIAN, 1, 30, 10),  # no larger than the universe
    ],
)
def test_block_sizes(mechanism, scale, threshold, n_bits):
    tail = module._tail(mechanism, Fraction(scale), threshold)
    assert module._block_bits(1000, tail.candidate) == n_bits


SIGMAS = [Fraction(1, 10), Fraction(1, 2), Fraction(51, 100), Fraction(9, 10), Fraction(1), Fraction(11, 10)]
SIGMAS += [Fraction(7, 3), Fraction(10)]


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
@pytest.mark.parametrize("threshold", [1, 2, 3, 4, 9, 25])
def test_the_envelope_times_what_is_kept_is_the_gaussian(sigma, threshold):
    candidate, _, (a, b, s, peak) = module._tail(GAUSSIAN, sigma, threshold)
    assert candidate < 0.94
    for x in range(6):
        proposed = math.exp(-x * s / a) * -math.expm1(-s / a)
        kept = math.exp(-(((x * b - peak) / a) ** 2) / 2)
        expected = probability(GAUSSIAN, sigma, threshold + x)
        assert float(candidate) * proposed * kept == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("sigma", [Fraction(1, 2**52), Fraction(2**52), Fraction(2**52, 2**52 - 1)], ids=str)
@pytest.mark.parametrize("threshold", [1, 10**9, 2**62])
def test_extreme_numbers_stay_within_the_limits_of_the_kernels(sigma, threshold):
    for mechanism in (LAPLACE, GAUSSIAN):
        tail = module._tail(mechanism, sigma, threshold)
        assert 0 <= tail.candidate < 0.94
        assert all(0 <= number <= 2**62 for number in tail.law)
        cells, counts = sparse_histogram(*NONE, 1000, mechanism, sigma, threshold, Entropy(seed=3))
        assert (counts >= threshold).all()
        assert cells.size <= 1000


def test_sums_of_gaussian_weights():
    for sigma in SIGMAS:
        total = sum(weight(GAUSSIAN, sigma, x) for x in range(-500, 501))
        assert float(module._gaussian_total(sigma)) == pytest.approx(total, rel=1e-14)
    # Both sides of Poisson's formula, in all digits.
    with localcontext(DECIMALS):
        pi, direct = module.pi(), module._theta(Decimal("0.5"))
        assert abs(direct - (2 * pi).sqrt() * module._theta(2 * pi**2)) < Decimal(10) ** -490


@each_mechanism
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(9, 2)], ids=str)
@pytest.mark.parametrize(("n_cells", "n_expected"), [(1, 2), (1, 0.01), (100, 3), (10**6, 0.5), (10**6, 2e6)])
def test_the_least_threshold_is_found(mechanism, scale, n_cells, n_expected):
    threshold = threshold_for(n_cells, mechanism, scale, n_expected)
    assert n_cells * passing(mechanism, scale, threshold) <= n_expected
    assert threshold == 1 or n_cells * passing(mechanism, scale, threshold - 1) > n_expected


def test_wide_gaussians_are_integrals():
    below, above = Fraction(2**10), Fraction(2**10) + Fraction(1, 10**6)
    for threshold in (1, 500, 5000, 10_000):
        one, other = (module._log_gaussian_passing(sigma, threshold) for sigma in (below, above))
        assert one == pytest.approx(other, rel=1e-4)
    quantile = stats.norm.isf(10 / 2**62)
    assert threshold_for(2**62, GAUSSIAN, Fraction(2**40), 10) == pytest.approx(quantile * 2**40)


@each_mechanism
def test_too_many_passing_cells_are_refused_with_a_threshold_that_fits(mechanism):
    public = 2**62, mechanism, Fraction(10)
    with pytest.raises(ParameterError, match="`threshold` must be at least") as refusal:
        sparse_histogram(*NONE, *public, 3, Entropy())
    fits = int(re.search(r"at least (\d+)", str(refusal.value))[1])
    assert module.checked_histogram(*public, fits) == (*public, fits)
    with pytest.raises(ParameterError, match=f"at least {fits} "):
        module.checked_histogram(*public, fits - 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_cells": 0}, r"`n_cells` must be an integer from 1 to 2\*\*62, got 0"),
        ({"n_cells": 2**62 + 1}, "`n_cells` must be"),
        ({"n_cells": 2.0}, "`n_cells` must be"),
        ({"mechanism": "exponential"}, "`mechanism` must be one of discrete Laplace, discrete Gaussian, got"),
        ({"scale": 1.5}, "`scale` must be a Fraction"),
        ({"scale": Fraction(0)}, "`scale` must be positive"),
        ({"threshold": 0}, "`threshold` must be an integer from 1"),
        ({"threshold": 1.5}, "`threshold` must be"),
        ({"threshold": 2**62 + 1}, "`threshold` must be"),
    ],
)
def test_bad_parameters(changed, message):
    public = {"n_cells": 9, "mechanism": LAPLACE, "scale": Fraction(1), "threshold": 1} | changed
    with pytest.raises(ParameterError, match=message):
        sparse_histogram(*NONE, **public, entropy=Entropy())
    if "threshold" not in changed:
        del public["threshold"]
        with pytest.raises(ParameterError, match=message):
            threshold_for(**public, n_expected=1)


@pytest.mark.parametrize("n_expected", [0, -1, math.inf, math.nan])
def test_bad_expectation(n_expected):
    with pytest.raises(ParameterError, match="`n_expected` must be positive and finite, got"):
        threshold_for(9, LAPLACE, Fraction(1), n_expected)


def test_integers_of_numpy_will_do():
    plain = sparse_histogram(*NONE, 100, GAUSSIAN, Fraction(3), 2, Entropy(seed=4))
    numpy = sparse_histogram(*NONE, np.int64(100), GAUSSIAN, np.int64(3), np.int64(2), Entropy(seed=4))
    assert [a.tolist() for a in plain] == [a.tolist() for a in numpy]
