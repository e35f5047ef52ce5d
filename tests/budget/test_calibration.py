"""Calibration spends the budget, all of it and no more, with the mechanism that errs least."""

import logging
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.budget import Budget, Plan, Step, calibrate, calibration, epsilon_at, pure_epsilon, total_rho
from sfumato.budget.records import Sensitivity
from sfumato.errors import ParameterError

COUNT = Plan(Step("rows", share=1))
TWO = Plan(Step("rows", share="1/20"), Step("grid", share="19/20"))
SELECTION = Plan(
    Step("splits", share="1/2", repeats=4, selection=True), Step("sizes", share="1/2", repeats=4)
)
VECTOR = Plan(
    Step("rows", share="1/10"),
    Step(
        "sums",
        share="9/10",
        sensitivity=Sensitivity(l1=10 * 2**29, l2_squared=2**58, spread=2**29, coordinates=100),
    ),
)
PLANS = {"count": COUNT, "two": TWO, "selection": SELECTION, "vector": VECTOR}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("epsilon", ["1/1000", "0.3", "7"])
def test_pure_budgets_are_spent_exactly(plan, epsilon, max_rows):
    records = calibrate(plan, Budget(epsilon), max_rows).records()
    total = pure_epsilon(records)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**7)) <= total <= Fraction(epsilon)
    assert {r.mechanism for r in records} <= {"discrete Laplace", "permute-and-flip"}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("rho", ["1/1000", "0.3", "7"])
def test_zcdp_budgets_are_spent_exactly(plan, rho, max_rows):
    records = calibrate(plan, Budget(rho=rho), max_rows).records()
    assert Fraction(rho) * (1 - Fraction(1, 10**7)) <= total_rho(records) <= Fraction(rho)
    assert {r.mechanism for r in records} <= {"discrete Gaussian", "exponential"}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-9), pytest.param(0.3, 1e-6, marks=pytest.mark.slow)])
def test_approximate_budgets_are_spent_and_not_overspent(plan, epsilon, delta):
    priced = calibrate(plan, Budget(epsilon, delta))
    spent = epsilon_at(priced.records(), delta)
    assert 0.999 * epsilon <= spent <= epsilon
    assert priced.cost() <= Budget(epsilon, delta)


def test_shares_are_kept():
    for budget in (Budget(2), Budget(rho=2)):
        records = calibrate(TWO, budget).records()
        costs = [float(r.epsilon or r.rho) for r in records]
        assert costs == pytest.approx([0.1, 1.9], rel=1e-6)


def test_more_delta_means_less_noise_and_never_more_than_the_pure_plan():
    scales = [
        float(calibrate(COUNT, Budget(1, delta)).records()[0].noise_std) for delta in (1e-9, 1e-4, 1e-2)
    ]
    assert scales == sorted(scales, reverse=True)
    pure = calibrate(COUNT, Budget(1)).records()[0].noise_std
    assert max(scales) <= pure * (1 + 1e-6)


def test_one_count_takes_laplace_and_many_take_gaussian_noise():
    assert {r.mechanism for r in calibrate(COUNT, Budget(1, 1e-6)).records()} == {"discrete Laplace"}
    many = Plan(Step("rows", share=1, repeats=16))
    assert {r.mechanism for r in calibrate(many, Budget(1, 1e-6)).records()} == {"discrete Gaussian"}


def test_vectors_take_gaussian_noise():
    assert calibrate(VECTOR, Budget(1, 1e-6))["sums"].mechanism == "discrete Gaussian"


def test_a_row_cap_scales_the_noise():
    for budget in (Budget(1), Budget(rho=1)):
        one, five = (calibrate(COUNT, budget, max_rows).records()[0] for max_rows in (1, 5))
        assert float(five.scale) == pytest.approx(5 * float(one.scale), rel=1e-7)
        assert five.sensitivity == Sensitivity(5, 25, 5, 5)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1e-8, 1e-6), (1e-6, 1e-12), (1e-4, 1e-12), (1e-9, 1e-12), (1e-3, 1e-90), (1e3, 1e-6), (1, 0.999)],
)
def test_extreme_budgets_are_priced_quietly(epsilon, delta, caplog):
    with caplog.at_level(logging.WARNING):
        priced = calibrate(TWO, Budget(epsilon, delta))
    assert priced.cost() <= Budget(epsilon, delta)
    assert caplog.text == ""


@pytest.mark.parametrize("budget", [Budget("1e-20"), Budget(rho="1e-40")])
def test_budgets_below_the_reach_of_the_samplers(budget):
    with pytest.raises(ParameterError, match="budget must be larger"):
        str(calibrate(TWO, budget))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-9), (1, 1e-6), (6, 1e-5)])
@pytest.mark.parametrize("n_steps", [2, 5])
def test_rivals_are_refused_as_if_each_were_calibrated(epsilon, delta, n_steps):
    plan = Plan(*(Step(f"step {i}", share=Fraction(1, n_steps)) for i in range(n_steps)))
    budget = Budget(epsilon, delta)
    start = calibration._Candidate(plan, budget, 1, calibration._mixed(frozenset()))

    def spent(pricing, log_total=None):
        return replace(start, pricing=pricing, log_total=log_total).spent(calibration.ROUGH)

    best, laplace = spent(calibration._mixed(frozenset())), frozenset()
    for step in plan.steps:
        rival = spent(calibration._mixed(laplace | {step.name}))
        if rival.error < best.error:
            best, laplace = rival, laplace | {step.name}
    best = min(best, spent(calibration._pure, math.log(epsilon)), key=lambda candidate: candidate.error)
    chosen = calibrate(plan, budget)
    assert [p.mechanism for p in chosen.steps] == [p.mechanism for p in best.priced().steps]
    assert chosen[plan.steps[0].name].cost == pytest.approx(
        best.priced().steps[0].cost, rel=calibration.ROUGH
    )
