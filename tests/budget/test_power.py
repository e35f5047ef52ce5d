"""No attacker does better than stated: the best tests of exact laws, and of all small mechanisms."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.budget.power import largest_power
from sfumato.budget.records import Sensitivity
from sfumato.domain import Unit
from sfumato.errors import ParameterError

RATES = [0.0, 1e-6, 0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0]
SHOWN = [0.001, 0.01, 0.05, 0.1, 0.5]  # in the report


def best_powers(null, other, rates):
    """True positive rates of the best tests of two discrete laws (Neyman and Pearson), by sorting."""
    ratio = np.divide(other, null, out=np.full(len(null), np.inf), where=null > 0)
    order = np.argsort(-ratio, kind="stable")
    false, true = (np.concatenate([[0.0], np.cumsum(law[order])]) for law in (null, other))
    return np.interp(rates, false, true)


def discrete_laplace(scale, shift):
    law = np.exp(-np.abs(np.arange(-40 * scale, 40 * scale + 1) - shift) / scale)
    return law / law.sum()


def discrete_gaussian(sigma, shift):
    law = np.exp(-((np.arange(-12 * sigma, 12 * sigma + 1) - shift) ** 2) / (2 * sigma**2))
    return law / law.sum()


LAWS = {"discrete Laplace": discrete_laplace, "discrete Gaussian": discrete_gaussian}


def stated(*steps, budget):
    return PrivacyStatement(budget, Unit(), steps, seeded=False)


def one_entry(mechanism, scale, shift=1):
    return Record("step", mechanism, Sensitivity(shift, shift**2, shift, 1), Fraction(scale))


def powers(statement, rates=RATES):
    return np.array([statement.attack_power(rate) for rate in rates])


@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize(("scale", "shift"), [(1, 1), (4, 1), (10, 3), (30, 7)])
def test_no_test_of_one_noisy_count_does_better(mechanism, scale, shift):
    law = LAWS[mechanism]
    best = best_powers(law(scale, 0), law(scale, shift), RATES)
    bound = powers(stated(one_entry(mechanism, scale, shift), budget=Budget(rho=10)))
    assert (bound >= best - 1e-12).all()


@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize("shift", [2, 5])
def test_the_bound_is_close_to_the_best_test(mechanism, shift):
    law = LAWS[mechanism]
    best = best_powers(law(10, 0), law(10, shift), SHOWN)
    bound = powers(stated(one_entry(mechanism, 10, shift), budget=Budget(rho=10)), SHOWN)
    assert (bound <= 1.02 * best).all()


@pytest.mark.parametrize("kinds", list(product(LAWS, repeat=2)))
def test_no_test_of_two_noisy_counts_does_better(kinds):
    laws = [(LAWS[kind](6, 0), LAWS[kind](6, 2)) for kind in kinds]
    null, other = (np.outer(laws[0][i], laws[1][i]).ravel() for i in (0, 1))
    best = best_powers(null, other, RATES)
    bound = powers(stated(*(one_entry(kind, 6, 2) for kind in kinds), budget=Budget(rho=10)))
    assert (bound >= best - 1e-9).all()
    assert (bound[2:8] <= 1.03 * best[2:8]).all()


@pytest.mark.parametrize("mu", [0.05, 0.25, 1.0, 2.0, 4.0])
def test_wide_gaussian_noise_has_the_curve_of_the_normal_law(mu):
    sigma = Fraction(1000) / Fraction(mu)
    step = Record("sums", "discrete Gaussian", Sensitivity(2000, 10**6, 2000, 4), sigma)
    bound = powers(stated(step, budget=Budget(rho=10)), SHOWN)
    exact = norm.cdf(norm.ppf(SHOWN) + mu)
    assert (exact <= bound).all()
    assert (bound <= 1.01 * exact).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.2])
def test_one_pair_allows_exactly_the_worst_mechanism(epsilon, delta):
    """It tells the truth with probability delta, and else answers at random (Kairouz et al. 2015)."""
    truth = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    null = np.array([0.0, 1 - delta - truth, truth, delta])
    best = best_powers(null, null[::-1], RATES)
    bound = [largest_power([(epsilon, delta)], rate) for rate in RATES]
    assert bound == pytest.approx(best, abs=1e-12)
    assert (np.array(bound) >= best - 1e-15).all()


def test_pure_budgets_follow_the_formula():
    privacy = stated(one_entry("discrete Laplace", 1), budget=Budget(1))
    expected = [min(math.e * rate, 1 - (1 - rate) / math.e) for rate in RATES]
    assert powers(privacy) == pytest.approx(expected, abs=1e-12)


def test_a_threshold_leaves_the_stated_pair_alone():
    shown = Record("levels", "discrete Laplace", Sensitivity(), Fraction(2), Fraction(1, 10**6))
    privacy = stated(shown, one_entry("discrete Laplace", 2), budget=Budget(1, 1e-5))
    assert privacy.attack_power(0.01) == largest_power([(privacy.epsilon, 1e-5)], 0.01)


@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6), Budget(rho=1)])
def test_a_run_that_asked_nothing_tells_nothing(budget):
    assert powers(stated(budget=budget)) == pytest.approx(RATES, abs=1e-8)


def test_no_privacy_is_not_called_some():
    privacy = stated(one_entry("discrete Laplace", Fraction(1, 10**4)), budget=Budget(10**4))
    assert privacy.attack_power(0.001) == 1.0
    assert privacy.attack_power(0.0) <= 1e-7  # pure privacy leaves no certainty


def test_power_never_falls_as_false_alarms_rise():
    privacy = stated(*[one_entry("discrete Gaussian", 9)] * 5, budget=Budget(2, 1e-6))
    found = powers(privacy, np.linspace(0, 1, 101))
    assert (np.diff(found) >= 0).all()
    assert found[-1] == 1.0


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_rates_are_probabilities(rate):
    with pytest.raises(ParameterError, match="`false_positive_rate` must be from 0 to 1"):
        stated(budget=Budget(1)).attack_power(rate)
