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
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache

from scipy.optimize import brentq

from sfumato.budget.amounts import Budget
from sfumato.budget.costs import epsilon_at
from sfumato.budget.exact import root_down
from sfumato.budget.plan import Plan, PricedPlan, PricedStep, Step
from sfumato.errors import ParameterError

ROUGH, FINE = 2e-3, 1e-4  # precision of loss distributions: to compare candidates, and to spend
MOST_SECANTS = 20  # to a total of given error: two, but for tiny noise
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
    """Make the noise of a step Laplace if that lowers the error, one after the other; or that of all steps.

    To see that a rival has no less error takes a single composition, at the total where its error would be
    the same. Only a rival that wins there is calibrated.
    """
    laplace: frozenset[str] = frozenset()
    best = _Candidate(plan, budget, max_rows, _mixed(laplace, threshold_delta)).spent(ROUGH)
    for step in plan.steps:
        rival = replace(best, pricing=_mixed(laplace | {step.name}, threshold_delta))
        if rival.beats(best):
            best, laplace = rival.spent(ROUGH), laplace | {step.name}
    if not threshold_delta:  # a threshold needs Gaussian noise: of equal variance, its tail is shorter
        pure = replace(best, pricing=_pure, log_total=math.log(budget.epsilon or 1))
        best = pure if pure.beats(best) else best
    return best.spent(FINE).priced()


@dataclass(frozen=True)
class _Candidate:
    """One way to price the steps, and a total to spend: epsilon if all noise is Laplace, else rho."""

    plan: Plan
    budget: Budget
    max_rows: int
    pricing: Pricing
    log_total: float | None = None  # by default what provably fits by the textbook conversion from zCDP

    @cached_property
    def _start(self) -> float:
        if self.log_total is not None:
            return self.log_total
        log_inverse = -math.log(self.budget.delta)
        epsilon = float(self.budget.epsilon or 0)
        return 2 * math.log(math.sqrt(log_inverse + epsilon) - math.sqrt(log_inverse))

    def at(self, log_total: float) -> _Candidate:
        return replace(self, log_total=log_total)

    def priced(self) -> PricedPlan:
        return _price(self.plan, self.budget, self.max_rows, self.pricing, Fraction(math.exp(self._start)))

    def surplus(self, precision: float) -> float:
        """Epsilon that this total costs beyond the budget."""
        cost = epsilon_at(self.priced().records(), float(self.budget.delta), precision)
        return cost - float(self.budget.epsilon or 0)

    def beats(self, other: _Candidate) -> bool:
        """Whether the error of another candidate can be had for less than the budget."""
        found, slope = self, -1.0 if self.pricing is _pure else -0.5  # of the error, but for tiny noise
        for _ in range(MOST_SECANTS):
            gap = other.error - found.error
            if abs(gap) < ROUGH / 100:
                break
            stride = min(max(gap / slope, -1.0), 1.0)
            last, found = found, found.at(found._start + stride)
            slope = min((found.error - last.error) / stride, -0.1)
        return found.error < other.error + ROUGH / 100 and found.surplus(ROUGH) < 0

    @cached_property
    def error(self) -> float:
        """Mean log noise, weighted by the shares: they say how much each step matters."""
        plan = self.priced()
        stds = [max(plan.nominal(p).noise_std, 1e-300) for p in plan.steps]
        return sum(float(p.step.share) * math.log(std) for p, std in zip(plan.steps, stds, strict=True))

    def spent(self, precision: float) -> _Candidate:
        """Spend as much as provably fits, to within a hundredth of `precision`."""

        @cache
        def surplus(log_total: float) -> float:
            return self.at(log_total).surplus(precision)

        low = high = self._start
        stride = precision
        while surplus(low) > 0:
            low, high, stride = low - stride, low, 4 * stride
        while surplus(high) <= 0:
            low, high, stride = high, high + stride, 4 * stride
        total: float = brentq(surplus, low, high, xtol=precision / 100)
        while surplus(total) > 0:
            total -= precision / 100
        return self.at(total)
