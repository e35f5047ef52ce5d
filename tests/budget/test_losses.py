"""Composed losses against exact sums in high precision."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as google

from sfumato.budget import Record, epsilon_at
from sfumato.budget.costs import _pld_epsilon
from sfumato.budget.losses import composed_epsilon, gaussian_losses, laplace_losses
from sfumato.budget.records import Sensitivity

DELTAS = [1e-3, 1e-6, 1e-9, 1.1e-13, 1e-30]


def laplace(epsilon):
    return Record("step", "discrete Laplace", Sensitivity(), 1 / Fraction(epsilon))


def gaussian(sigma):
    return Record("step", "discrete Gaussian", Sensitivity(), Fraction(sigma))


def exact_delta(n, loss, epsilon):
    """Delta of n randomised responses of this loss at epsilon: a binomial sum, to 60 digits."""
    with localcontext(prec=60):
        loss = Decimal(loss.numerator) / Decimal(loss.denominator)
        odds = loss.exp()
        mass, rest, total = (odds / (1 + odds)) ** n, (Decimal(epsilon) - n * loss).exp(), Decimal(0)
        for k in range(n + 1):  # answers against the truth: each takes the loss down by twice `loss`
            if rest >= 1:
                break
            total += mass * (1 - rest)
            mass, rest = mass * (n - k) / ((k + 1) * odds), rest * odds**2
        return total


@pytest.mark.parametrize("scale", ["70.7", "70.7114", "500000/7071"])
def test_five_thousand_asks(scale):
    """A Fourier transform of the losses as they are claimed 7.466 for the first, where delta is 1.89e-13."""
    loss = 1 / Fraction(scale)
    epsilon = epsilon_at([laplace(loss)] * 5000, 1.1e-13)
    assert exact_delta(5000, loss, epsilon) <= Decimal("1.1e-13")
    assert exact_delta(5000, loss, 0.999 * epsilon) > Decimal("1.1e-13")


@pytest.mark.parametrize("n", [1, 2, 8, 64, 512, 5000, 10**4])
@pytest.mark.parametrize("total", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_equal_asks_are_priced_by_the_exact_binomial(n, total):
    loss = total / Fraction(math.sqrt(n)).limit_denominator(1000)
    for delta in DELTAS if n < 5000 else DELTAS[::2]:
        epsilon = epsilon_at([laplace(loss)] * n, delta)
        assert exact_delta(n, loss, epsilon) <= Decimal(delta)
        if 0 < epsilon < 0.999 * float(n * loss):
            assert exact_delta(n, loss, 0.99 * epsilon) > Decimal(delta)


@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_tables_agree_with_those_of_google(n):
    """Theirs rounds every loss up, ours does not: ours is never above theirs, but for the interval."""
    sigma = 2 * math.sqrt(n)
    theirs = google.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    epsilon = _pld_epsilon([gaussian(sigma)] * n, 1e-6, 1e-4)
    assert epsilon <= theirs.self_compose(n).get_epsilon_for_delta(1e-6) * (1 + 1e-4)
    assert epsilon >= theirs.self_compose(n).get_epsilon_for_delta(1e-6) - n * 1e-4


@pytest.mark.parametrize("interval", [1e-4, 3e-3, 0.1])
def test_a_coarser_table_costs_more(interval):
    steps = [(laplace_losses(3.0, 2), 5), (gaussian_losses(2.0, 1, 1e-6), 3)]
    fine = composed_epsilon(steps, 1e-6, interval / 8)
    assert fine * (1 - 1e-6) <= composed_epsilon(steps, 1e-6, interval) <= fine * (1 + 2 * interval)


@pytest.mark.parametrize(
    "losses", [laplace_losses(3.0, 4), laplace_losses(0.2, 1), gaussian_losses(2, 3, 1e-6)]
)
def test_losses_are_those_of_two_laws(losses):
    """A loss l has exp(-l) times its probability under the other law, which also sums to 1."""
    assert losses.probabilities.sum() == pytest.approx(1)
    assert (losses.probabilities * np.exp(-losses.values)).sum() == pytest.approx(1)
