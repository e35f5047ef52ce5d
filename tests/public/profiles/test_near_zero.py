"""Intervals of numbers that are not negative hold 95 %, at zero and far from it."""

import numpy as np
import pytest

from sfumato.public.profiles.near_zero import interval_of


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.3, 1.0, 1.645, 2.5, 4.0, 30.0])
def test_coverage(mean):
    observed = np.random.default_rng(int(100 * mean)).normal(mean, 1, 40_000)
    low, high = interval_of(observed, np.ones(len(observed)))
    held = ((low <= mean) & (mean <= high)).mean()
    assert 0.945 < held < 0.956


def test_usual_intervals_cut_off_at_zero_would_hold_more():
    observed = np.random.default_rng(0).normal(0, 1, 40_000)
    usual = (np.maximum(observed - 1.96, 0) <= 0) & (np.maximum(observed + 1.96, 0) >= 0)
    assert usual.mean() > 0.97


def test_far_from_zero_they_are_the_usual_ones():
    low, high = interval_of(np.array([1000.0, 70.0]), np.array([100.0, 10.0]))
    assert low == pytest.approx([804, 50.4], abs=0.01)
    assert high == pytest.approx([1196, 89.6], abs=0.01)


def test_ends_increase_with_what_was_observed_and_are_never_negative():
    observed = np.linspace(-30, 30, 5001)
    low, high = interval_of(observed, np.ones(len(observed)))
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (low >= 0).all()
    assert (high > low).all()


def test_without_noise_nothing_is_unsure():
    low, high = interval_of(np.array([5.0, 0.0]), np.zeros(2))
    assert low == pytest.approx([5, 0])
    assert high == pytest.approx([5, 0])
