"""Costs of records, against sums over the exact laws."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Record, epsilon_at, pure_epsilon, total_rho
from sfumato.budget.costs import RENYI_ORDERS, _pld_epsilon, _renyi_divergence, _renyi_epsilon
from sfumato.budget.records import Sensitivity

ONE = Sensitivity()


def record(mechanism, scale, sensitivity=ONE):
    return Record("step", mechanism, sensitivity, Fraction(scale))


def laplace(scale, shift=1):
    return record("discrete Laplace", scale, Sensitivity(shift, shift**2, shift, 1))


def gaussian(sigma, shift=1):
    return record("discrete Gaussian", sigma, Sensitivity(shift, shift**2, shift, 1))


def masses(one, shift):
    """Probability masses of the noise and of the shifted noise, on a range that misses nothing visible."""
    scale = float(one.scale)
    reach = math.ceil(60 * scale) + 60 + shift
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    exponent = np.abs if one.mechanism == "discrete Laplace" else lambda z: z**2 / (2 * scale)
    p, q = np.exp(-exponent(x) / scale), np.exp(-exponent(x - shift) / scale)
    return p / p.sum(), q / p.sum()


def exact_delta(one, epsilon):
    p, q = masses(one, one.sensitivity.l1)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def test_sums():
    records = [laplace(2), laplace(4), record("exponential", 8)]
    assert pure_epsilon(records) == Fraction(7, 8)
    assert total_rho(records) == Fraction(1, 8) + Fraction(1, 32) + Fraction(1, 512)
    assert pure_epsilon([*records, gaussian(3)]) is None
    assert pure_epsilon([]) == total_rho([]) == 0
    assert epsilon_at([], 1e-6) == epsilon_at([], 0) == 0


def test_without_delta_only_pure_sums_count():
    assert epsilon_at([laplace(2), laplace(4)], 0) == 0.75
    assert epsilon_at([gaussian(2)], 0) == math.inf


@pytest.mark.parametrize(
    "one", [laplace(3), laplace(3, 5), gaussian(2), gaussian(30, 7), laplace("1/4"), gaussian("1/3")]
)
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
def test_one_record_is_priced_by_its_exact_law(one, delta):
    epsilon = epsilon_at([one], delta)
    assert exact_delta(one, epsilon) <= delta * (1 + 1e-9)
    if epsilon > 0 and epsilon < 0.999 * (pure_epsilon([one]) or math.inf):
        assert exact_delta(one, 0.99 * epsilon) > delta


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_a_shorter_shift_costs_no_more(delta):
    """The law of the longest shift stands for all shorter ones: a person may have fewer rows than the cap."""
    for make in (laplace, gaussian):
        costs = [epsilon_at([make(10, shift)], delta) for shift in (1, 2, 3, 5, 8)]
        assert costs == sorted(costs)


@pytest.mark.parametrize("scale", ["1/10", 1, 20, 10**4, 10**7, 10**9, 10**12])
@pytest.mark.parametrize("delta", [1e-15, 1e-12, 1e-6])
def test_small_costs_do_not_round_to_nothing(scale, delta):
    """Laplace noise on a count is randomised response, whose delta has a closed form."""
    epsilon = epsilon_at([laplace(scale)], delta)
    loss = 1 / float(Fraction(scale))
    likely = 1 / (1 + math.exp(-loss))
    # exact: likely - exp(epsilon) (1 - likely), written so that nothing cancels
    exact = likely * -math.expm1(epsilon - loss) if epsilon < loss else 0.0
    assert exact <= delta * (1 + 1e-6)


def test_renyi_divergences_bound_the_exact_ones():
    chosen = [0, 50, 100, 219, 300]
    for one in (laplace(3), laplace(3, 4), laplace("1/2"), gaussian(2), gaussian(5, 3)):
        p, q = masses(one, one.sensitivity.l1)
        seen = (p > 1e-280) & (q > 1e-280)
        bound = _renyi_divergence(one)
        for i in chosen:
            order = RENYI_ORDERS[i]
            terms = order * np.log(p[seen]) + (1 - order) * np.log(q[seen])
            exact = (np.logaddexp.reduce(terms)) / (order - 1)
            assert exact <= bound[i] * (1 + 1e-9), (one, order)


def test_renyi_divergences_are_positive_even_of_the_smallest_loss():
    for exponent in range(0, 19):
        assert (_renyi_divergence(laplace(10**exponent)) > 0).all()


def test_vectors_of_laplace_noise_are_charged_as_pure_and_of_gaussian_noise_in_zcdp():
    wide = Sensitivity(l1=6, l2_squared=12, spread=2, coordinates=3)
    vector = record("discrete Laplace", 6, wide)
    scalar = laplace(6, 6)
    response = record("permute-and-flip", 1)  # any pure mechanism of the same epsilon
    assert _pld_epsilon([vector], 1e-3, 1e-4) == pytest.approx(_pld_epsilon([response], 1e-3, 1e-4))
    assert epsilon_at([scalar], 1e-2) < epsilon_at([vector], 1e-2)
    gaussians = record("discrete Gaussian", 6, wide)
    assert _pld_epsilon([gaussians], 1e-6, 1e-4) == math.inf
    assert epsilon_at([gaussians], 1e-6) == _renyi_epsilon([gaussians], 1e-6)


def test_the_exponential_mechanism_is_cheaper_than_permute_and_flip_when_repeated():
    assert epsilon_at([record("exponential", 20)] * 200, 1e-6) < epsilon_at(
        [record("permute-and-flip", 20)] * 200, 1e-6
    )


def test_more_delta_costs_less_epsilon_and_more_records_cost_more():
    records = [laplace(5), gaussian(4)]
    by_delta = [epsilon_at(records, delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3)]
    assert by_delta == sorted(by_delta, reverse=True)
    assert epsilon_at(records, 1e-6) < epsilon_at([*records, laplace(50)], 1e-6)


def test_the_order_and_the_names_of_records_do_not_matter():
    records = [laplace(5), gaussian(4), laplace(5)]
    renamed = [Record(str(i), r.mechanism, r.sensitivity, r.scale) for i, r in enumerate(records)]
    assert epsilon_at(renamed[::-1], 1e-6) == pytest.approx(epsilon_at(records, 1e-6), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-14, 1e-25, 1e-60])
def test_tables_are_better_than_renyi_at_any_delta_in_use(delta):
    assert 0.9 * _renyi_epsilon([gaussian(5)], delta) < _pld_epsilon([gaussian(5)], delta, 1e-4)
    assert _pld_epsilon([gaussian(5)], delta, 1e-4) < _renyi_epsilon([gaussian(5)], delta)


def test_the_smallest_deltas_are_left_to_renyi():
    assert _pld_epsilon([gaussian(5)], 1e-200, 1e-4) == math.inf
    assert 0 < epsilon_at([gaussian(5)], 1e-200) < math.inf


def test_a_pure_sum_that_is_no_float_is_rounded_up():
    third = laplace(3)
    assert Fraction(epsilon_at([third], 0)) > Fraction(1, 3)
    assert epsilon_at([laplace("10/3")], 0) == 0.3


def test_a_very_wide_gaussian_is_left_to_renyi():
    wide = gaussian(10**12)
    assert _pld_epsilon([wide], 1e-6, 1e-4) == math.inf
    assert epsilon_at([wide], 1e-6) < 1e-6
