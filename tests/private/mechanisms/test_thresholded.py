"""Thresholds: the least that delta allows, by exact tails, and low enough to find what many people have."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.thresholded import (
    common_threshold,
    least_threshold,
    showing_probability,
    thresholded_counts,
)

DELTAS = [Fraction(1, 20), Fraction(1, 1000), Fraction(1, 10**6), Fraction(1, 10**12)]
SCALES = [Fraction(1, 3), Fraction(1), Fraction(20, 7), Fraction(30), Fraction(2500)]


def tail(scale, least):
    """P(X >= least) of discrete Laplace noise, summed term by term."""
    far = max(abs(least), 0) + int(60 * scale) + 60
    x = np.arange(-far, far + 1)
    weights = np.exp(-np.abs(x) / float(scale))
    return float(weights[x >= least].sum() / weights.sum())


@pytest.mark.parametrize("n_values", [1, 2, 7])
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_least_threshold_by_exact_tails(delta, scale, n_values):
    threshold = least_threshold(delta, scale, n_values)
    assert n_values * tail(scale, threshold - 1) <= float(delta) * (1 + 1e-9)
    assert threshold == 2 or n_values * tail(scale, threshold - 2) > float(delta) * (1 - 1e-9)
    assert float(showing_probability(threshold, scale, n_values)) == pytest.approx(
        n_values * tail(scale, threshold - 1), rel=1e-9
    )


@pytest.mark.parametrize("n_values", [1, 2, 7])
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_three_times_the_threshold_is_found(delta, scale, n_values):
    """With probability >= 99 per cent, by exact tails: 3 T + X >= T."""
    threshold = least_threshold(delta, scale, n_values)
    assert tail(scale, threshold - 3 * threshold) >= 0.99


def test_three_times_the_threshold_is_found_in_simulations():
    scale, delta, n_runs = Fraction(10), Fraction(1, 20), 20_000
    threshold = least_threshold(delta, scale, 1)
    passing, _ = thresholded_counts(np.full(n_runs, 3 * threshold), scale, threshold, Entropy())
    expected = tail(scale, -2 * threshold)
    assert abs(len(passing) / n_runs - expected) < 5 * math.sqrt(expected * (1 - expected) / n_runs)
    assert expected >= 0.99


@pytest.mark.parametrize("wrong", [0.7, 1.0, 1.3])
def test_single_units_pass_as_often_as_delta_says(wrong):
    """The test has power: noise of another scale would be seen."""
    scale, delta, n_runs = Fraction(10), Fraction(1, 20), 40_000
    threshold = least_threshold(delta, scale, 1)
    drawn_at = scale * Fraction(wrong).limit_denominator(10)
    passing, counts = thresholded_counts(np.ones(n_runs, np.int64), drawn_at, threshold, Entropy(1))
    expected = tail(scale, threshold - 1)
    error = abs(len(passing) / n_runs - expected) / math.sqrt(expected * (1 - expected) / n_runs)
    assert (error < 4.5) == (wrong == 1.0)
    assert (counts >= threshold).all()
    assert expected <= delta


def test_what_passes_keeps_its_place_and_its_noise():
    raw = np.array([5, 900, 7, 800, 1])
    passing, counts = thresholded_counts(raw, Fraction(2), 100, Entropy(0))
    assert passing.tolist() == [1, 3]
    assert np.abs(counts - raw[passing]).max() < 60
    assert counts.dtype == np.int64


def test_nothing_gives_nothing():
    passing, counts = thresholded_counts(np.zeros(0, np.int64), Fraction(2), 2, Entropy(0))
    assert len(passing) == len(counts) == 0


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1, 2)])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ParameterError, match="`delta` must be above 0"):
        least_threshold(delta, Fraction(1), 1)


def test_far_tails_do_not_vanish():
    threshold = least_threshold(Fraction(1, 10**90), Fraction(2**40), 3)
    assert showing_probability(threshold, Fraction(2**40), 3) <= Decimal("1e-90")
    assert showing_probability(threshold - 1, Fraction(2**40), 3) > Decimal("1e-90")


def gaussian_tail(sigma, least):
    """P(X >= least) of discrete Gaussian noise, summed term by term."""
    x = np.arange(-int(40 * sigma) - 40, int(40 * sigma) + 41)
    weights = np.exp(-(x**2) / (2 * float(sigma) ** 2))
    return float(weights[x >= least].sum() / weights.sum())


@pytest.mark.parametrize("weight", [1, 50])
@pytest.mark.parametrize("n_values", [1, 7])
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_gaussian_threshold_by_exact_tails(delta, scale, n_values, weight):
    """Never too low, and too high by two units and 3 per cent of the noise at most."""
    threshold = least_threshold(delta, scale, n_values, "discrete Gaussian", weight)
    assert n_values * gaussian_tail(scale, threshold - weight) <= float(delta) * (1 + 1e-9)
    slack = 2 + math.ceil(float(scale) / 30)
    lower = threshold - slack
    assert lower <= weight or n_values * gaussian_tail(scale, lower - weight) > float(delta) * (1 - 1e-9)


def test_gaussian_tails_are_bounded_from_above():
    for excess in (1, 5, 20, 60):
        bound = float(showing_probability(excess + 1, Fraction(10), 1, "discrete Gaussian"))
        assert gaussian_tail(10, excess) <= bound


@pytest.mark.parametrize("wrong", [0.7, 1.0, 1.3])
def test_gaussian_noise_has_its_scale(wrong):
    scale, n_runs = Fraction(10), 40_000
    drawn_at = scale * Fraction(wrong).limit_denominator(10)
    ones = np.ones(n_runs, np.int64)
    passing, _ = thresholded_counts(ones, drawn_at, 16, Entropy(1), "discrete Gaussian")
    expected = gaussian_tail(10, 15)
    error = abs(len(passing) / n_runs - expected) / math.sqrt(expected * (1 - expected) / n_runs)
    assert (error < 4.5) == (wrong == 1.0)


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(40), Fraction(2000)], ids=str)
def test_a_common_threshold_is_the_largest(scale):
    weights = ((9, 10), (4, 15), (1, 30), (2, 21))
    law = (Fraction(1, 1000), scale)
    each = [least_threshold(*law, n, "discrete Gaussian", weight) for n, weight in weights]
    assert common_threshold(*law, "discrete Gaussian", weights) == max(each)
