"""Discrete Gaussian noise in many entries: its cost by the law of continuous noise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Sensitivity
from sfumato.budget.costs import _gaussian_delta, _gaussian_epsilon, _renyi_epsilon, epsilon_at
from sfumato.budget.records import Record


def gaussian(scale, *shifts):
    squares = sum(shift**2 for shift in shifts)
    sensitivity = Sensitivity(sum(shifts), squares, sum(shifts), len(shifts))
    return Record("step", "discrete Gaussian", sensitivity, Fraction(scale))


def law(scale):
    x = np.arange(-int(14 * scale), int(14 * scale) + 1)
    weights = np.exp(-(x**2) / (2 * scale**2))
    return x, weights / weights.sum()


def exact_delta(epsilon, scale, shifts):
    """Delta of discrete noise in two entries, summed over all outcomes."""
    x, p = law(scale)
    losses = sum(np.meshgrid(*[(2 * x * s + s**2) / (2 * scale**2) for s in shifts], indexing="ij"))
    weights = np.multiply.outer(p, p)
    return float((weights * np.maximum(-np.expm1(epsilon - losses), 0.0)).sum())


@pytest.mark.parametrize(("scale", "shifts"), [(6, (1, 1)), (8, (3, 4)), (20, (5, 12)), (40, (3, 0))])
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_the_claim_holds_and_is_nearly_tight(scale, shifts, delta):
    claimed = _gaussian_epsilon([gaussian(scale, *shifts)], delta)
    assert exact_delta(claimed, scale, shifts) <= delta
    smaller = math.sqrt(1 - 9 / scale**2)  # what the rounding costs
    assert exact_delta(0.9 * claimed * smaller**2, scale, shifts) > delta or claimed == 0


def test_a_claim_without_the_rounding_would_be_caught():
    """The test above has power: noise of 0.8 of the size does not pass it."""
    scale, shifts, delta = 8, (3, 4), 1e-4
    too_small = _gaussian_epsilon([gaussian(Fraction(8 * 10, 8), *shifts)], delta)
    assert exact_delta(too_small, scale, shifts) > delta


def test_steps_and_entries_add_up_in_squares():
    one = [gaussian(5 * 10**9, 3 * 10**8, 4 * 10**8)]
    four = [gaussian(10**10, 3 * 10**8, 4 * 10**8)] * 4
    assert _gaussian_epsilon(four, 1e-6) == pytest.approx(_gaussian_epsilon(one, 1e-6), rel=1e-6)


@pytest.mark.parametrize("mu", [1e-3, 0.02, 0.24, 1.0, 5.0, 19.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-30, 1e-90])
def test_the_equation_is_solved_from_above(mu, delta):
    scale = 10**9
    found = _gaussian_epsilon([gaussian(scale, round(mu * scale))], delta)
    assert _gaussian_delta(found, mu) <= delta
    assert _gaussian_delta(0.999 * found - 1e-9, mu) > delta or found == 0


def test_it_beats_renyi_orders_and_never_plays_where_it_does_not_hold():
    records = [gaussian(Fraction(42 * 10**8, 10), 10**8, 10**7)] * 3
    assert (
        epsilon_at(records, 1e-6) == _gaussian_epsilon(records, 1e-6) < 0.95 * _renyi_epsilon(records, 1e-6)
    )
    assert math.isinf(_gaussian_epsilon([gaussian(5, 1, 1)], 1e-6))  # too coarse for the rounding
    laplace = Record("step", "discrete Laplace", Sensitivity(1, 1, 1, 1), Fraction(9))
    assert math.isinf(_gaussian_epsilon([*records, laplace], 1e-6))
    assert math.isinf(_gaussian_epsilon([gaussian(10**9, 10)], 1e-6))  # less than floats can tell
