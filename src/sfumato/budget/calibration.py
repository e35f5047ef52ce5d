"""From a plan and a budget to noise: which mechanism each step uses, and what it may cost.

Pure budgets split epsilon by the shares and use discrete Laplace noise and permute-and-flip. zCDP budgets
split rho and use discrete Gaussian noise and the exponential mechanism. At equal rho, these have half the
variance (a quarter of the squared temperature) of their pure rivals. With (epsilon, delta) neither always
wins: Laplace noise is best for one count, Gaussian noise for long vectors and many steps. We compose the
candidates as tightly as we can and keep the one with the least error.

A step with a threshold takes its share of epsilon, as discrete Laplace noise, and a part of delta. The other
steps may depend on what it shows, so they are priced for the rest alone (docs/proofs/levels.md). If their
costs do not depend on it (`Step.joint`), all noise is composed together (docs/proofs/terms.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache

from scipy.optimize import brentq

from sfumato.budget.amounts import Budget
from sfumato.budget.costs import epsilon_at
from sfumato.budget.exact import root_down
from sfumato.budget.plan import Plan, PricedPlan, PricedStep, Step
from sfumato.errors import ParameterError

ROUGH, FINE = 2e-3, 1e-4  # precision of loss distributions: to compare candidates, and to spend
THRESHOLD_DELTA = Fraction(1, 2)  # of delta, for the thresholds of a plan that has other steps too


@lru_cache(maxsize=256)
def calibrate(plan: Plan, budget: Budget, max_rows: int = 1) -> PricedPlan:
    """Price every step of a plan so that the whole plan costs at most `budget`.

    Parameters
    ----------
    plan : Plan
    budget : Budget
    max_rows : int
        Row cap per privacy unit.

    Examples
    --------
    >>> print(calibrate(Plan(Step("rows", share=0.05), Step("grid", share=0.95)), Budget(1)))
    step   times  mechanism         sensitivity  noise scale  cost
    rows   1      discrete Laplace  1 (L1)       20           epsilon 0.05
    grid   1      discrete Laplace  1 (L1)       1.05263      epsilon 0.95
    total                                                     epsilon=1
    """
    if any(step.joint for step in plan.steps):
        return _with_joint_thresholds(plan, budget, max_rows)
    if any(step.threshold for step in plan.steps):
        return _with_thresholds(plan, budget, max_rows)
    if budget.kind == "pure":
        return _price(plan, budget, max_rows, _pure, budget.epsilon or Fraction(0))
    if budget.kind == "zcdp":
        return _price(plan, budget, max_rows, _concentrated, budget.rho or Fraction(0))
    return _best_approximate(plan, budget, max_rows)


def _with_thresholds(plan: Plan, budget: Budget, max_rows: int) -> PricedPlan:
    if budget.epsilon is None or not budget.delta:
        raise _needs_delta("levels", budget)
    first = [step for step in plan.steps if step.threshold]
    rest = [step for step in plan.steps if not step.threshold]
    delta = budget.delta * (THRESHOLD_DELTA if rest else 1)
    priced = [replace(_pure(s, budget.epsilon * Fraction(s.share)), delta=delta / len(first)) for s in first]
    if rest:
        share = sum((Fraction(step.share) for step in rest), Fraction(0))
        alone = Plan(*(step.scaled(1 / share) for step in rest))
        others = calibrate(alone, Budget(budget.epsilon * share, budget.delta - delta), max_rows)
        priced += [replace(p, step=step) for p, step in zip(others.steps, rest, strict=True)]
    return PricedPlan(budget, max_rows, tuple(priced))


Pricing = Callable[[Step, Fraction], PricedStep]


def _with_joint_thresholds(plan: Plan, budget: Budget, max_rows: int) -> PricedPlan:
    if budget.epsilon is None or not budget.delta:
        raise _needs_delta("terms", budget)
    n_thresholds = sum(step.threshold for step in plan.steps)
    return _best_approximate(plan, budget, max_rows, budget.delta * THRESHOLD_DELTA / n_thresholds)


def _needs_delta(what: str, budget: Budget) -> ParameterError:
    return ParameterError(
        f"{what} that are not public need a budget with `epsilon` and `delta`, got {budget}. Give "
        f"delta=1e-6, or list the {what} if they are public"
    )


def _price(plan: Plan, budget: Budget, max_rows: int, pricing: Pricing, total: Fraction) -> PricedPlan:
    return PricedPlan(budget, max_rows, tuple(pricing(s, total * s.share_per_ask) for s in plan.steps))


def _pure(step: Step, epsilon: Fraction) -> PricedStep:
    return PricedStep(step, "permute-and-flip" if step.selection else "discrete Laplace", epsilon)


def _concentrated(step: Step, rho: Fraction) -> PricedStep:
    if step.selection:
        return PricedStep(step, "exponential", root_down(8 * rho))
    return PricedStep(step, "discrete Gaussian", rho)


@cache
def _mixed(laplace: frozenset[str], delta: Fraction = Fraction(0)) -> Pricing:
    """Split rho, but give the named steps a pure mechanism of the same zCDP cost, and thresholds a delta."""

    def pricing(step: Step, rho: Fraction) -> PricedStep:
        if step.threshold:
            return replace(_concentrated(step, rho), delta=delta)
        return _pure(step, root_down(2 * rho)) if step.name in laplace else _concentrated(step, rho)

    return pricing


def _best_approximate(
    plan: Plan, budget: Budget, max_rows: int, threshold_delta: Fraction = Fraction(0)
) -> PricedPlan:
    def error(pricing: Pricing) -> float:
        return _error(_largest(plan, budget, max_rows, pricing, ROUGH))

    laplace: frozenset[str] = frozenset()
    # A threshold needs Gaussian noise: of equal variance, its tail is shorter.
    first = (*(() if threshold_delta else (_pure,)), _mixed(laplace, threshold_delta))
    errors = {pricing: error(pricing) for pricing in first}
    for step in plan.steps:
        candidate = _mixed(laplace | {step.name}, threshold_delta)
        errors[candidate] = error(candidate)
        if errors[candidate] < errors[_mixed(laplace, threshold_delta)]:
            laplace |= {step.name}
    return _largest(plan, budget, max_rows, min(errors, key=lambda pricing: errors[pricing]), FINE)


def _largest(plan: Plan, budget: Budget, max_rows: int, pricing: Pricing, precision: float) -> PricedPlan:
    """Spend as much as provably fits, to within a hundredth of `precision`."""
    assert budget.epsilon is not None
    epsilon, delta = float(budget.epsilon), float(budget.delta)

    def priced(total: float) -> PricedPlan:
        return _price(plan, budget, max_rows, pricing, Fraction(total))

    @cache
    def surplus(log_total: float) -> float:
        return epsilon_at(priced(math.exp(log_total)).records(), delta, precision) - epsilon

    # Start from what provably fits by basic composition, or by the textbook conversion from zCDP.
    log_inverse = math.log(1 / delta)
    rho = (math.sqrt(log_inverse + epsilon) - math.sqrt(log_inverse)) ** 2
    low = math.log(epsilon if pricing is _pure else rho)
    high, stride = low, 0.02
    while surplus(low) > 0:
        low, high, stride = low - stride, low, 2 * stride
    while surplus(high) <= 0:
        low, high, stride = high, high + stride, 2 * stride
    total: float = brentq(surplus, low, high, xtol=precision / 100)
    while surplus(total) > 0:
        total -= precision / 100
    return priced(math.exp(total))


def _error(plan: PricedPlan) -> float:
    """Mean log noise, weighted by the shares: they say how much each step matters."""
    return sum(float(p.step.share) * math.log(max(plan.nominal(p).noise_std, 1e-300)) for p in plan.steps)
