"""Roots and scales are rounded in the direction that can only add noise."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget.exact import (
    MAX_DENOMINATOR,
    MAX_NUMERATOR,
    exp_up,
    float_up,
    root_down,
    root_up,
    round_scale_up,
    rounded_down,
    rounded_up,
    shorten_up,
)
from sfumato.errors import ParameterError
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.private.mechanisms.selection import permute_and_flip


def fractions(n=300, seed=0):
    """Awkward fractions from 1e-12 to 1e15, with terms of up to 300 bits."""
    rng = np.random.default_rng(seed)
    for exponent in rng.uniform(-12, 15, size=n):
        yield Fraction(float(10.0**exponent)) * Fraction(
            int(rng.integers(1, 10**9)), int(rng.integers(1, 10**9))
        )
        yield Fraction(math.isqrt(10**80), int(rng.integers(1, 10**9)) * 10**30)


@pytest.mark.parametrize("limit", [MAX_NUMERATOR, MAX_DENOMINATOR])
def test_scales_round_up_by_little_and_fit_the_samplers(limit):
    for scale in fractions():
        if scale > limit / 4:
            continue
        rounded = round_scale_up(scale, limit)
        assert scale <= rounded <= scale + max(scale / 2**28, Fraction(1, 2**30))
        assert rounded.numerator <= limit
        assert rounded.denominator <= MAX_DENOMINATOR
        if scale.numerator <= limit and scale.denominator <= MAX_DENOMINATOR:
            assert rounded == scale


def test_what_comes_out_is_what_the_samplers_take():
    scores = np.zeros(3, dtype=np.int64)
    for scale in [*fractions(20), Fraction(1, 10**12), Fraction(2**52), Fraction(3, 2**40)]:
        if scale < MAX_NUMERATOR / 4:
            discrete_laplace(round_scale_up(scale), 1, Entropy(0))
            discrete_gaussian(round_scale_up(scale), 1, Entropy(0))
        if scale < MAX_DENOMINATOR / 4:
            permute_and_flip(scores, 1 / round_scale_up(scale, MAX_DENOMINATOR), Entropy(0))


@pytest.mark.parametrize("scale", [Fraction(2**53 + 1), Fraction(10**30), Fraction(10**40, 3)])
def test_scales_beyond_the_samplers_are_refused(scale):
    with pytest.raises(ParameterError, match="budget must be larger"):
        round_scale_up(scale)


def test_roots_enclose_the_root():
    for square in fractions():
        below, above = root_down(square), root_up(square)
        assert below**2 <= square <= above**2
        assert above - below <= below / 2**37


@pytest.mark.parametrize("root", [Fraction(1), Fraction(3, 2), Fraction(10**9, 7), Fraction(1, 10**6)])
def test_rational_roots_are_exact(root):
    assert root_up(root**2) == root_down(root**2) == root


def test_long_sums_are_shortened_upwards():
    short = Fraction(1, 3)
    assert shorten_up(short) == short
    long = sum((Fraction(1, p) for p in range(1, 800)), Fraction(0)) / 10**100
    assert long.denominator.bit_length() > 512
    shortened = shorten_up(long)
    assert 0 <= shortened - long < Fraction(1, 2**400)
    assert shortened.denominator <= 2**400


@pytest.mark.parametrize("digits", [1, 2, 3, 6, 15])
def test_text_is_rounded_in_the_stated_direction_and_in_the_last_digit_only(digits):
    for value in fractions():
        above, below = Fraction(rounded_up(value, digits)), Fraction(rounded_down(value, digits))
        assert below <= value <= above
        assert above - below <= value * Fraction(10) ** (1 - digits)
        number = float(value)
        assert (
            Fraction(rounded_up(number, digits))
            >= Fraction(repr(number))
            >= Fraction(rounded_down(number, digits))
        )


def test_short_decimals_stay_as_they_are():
    for text in ("0.1", "3.32", "1e-06", "12", "0.000125", "999"):
        assert rounded_up(Fraction(text), 3) == rounded_down(float(text), 3) == text
    assert rounded_up(9.999, 3) == "10"
    assert rounded_up(math.inf, 3) == "inf"


def test_floats_are_rounded_up():
    for value in fractions():
        assert Fraction(repr(float_up(value))) >= value
    for exponent in (-700, -1e-9, 0.0, 1e-12, 1.2, 25.0, 700):
        assert Decimal(exp_up(exponent)) >= Decimal(exponent).exp()
    assert exp_up(0.0) == 1
