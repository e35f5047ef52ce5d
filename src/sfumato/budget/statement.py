"""What was promised and what was spent, in words and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from sfumato.budget.amounts import Budget, as_exact
from sfumato.budget.costs import epsilon_at, epsilon_by_costs
from sfumato.budget.exact import MAX_DENOMINATOR, MAX_NUMERATOR, exp_up, float_up, rounded_up
from sfumato.budget.plan import composed
from sfumato.budget.power import guarantees, largest_power
from sfumato.budget.records import Mechanism, Record, Sensitivity
from sfumato.domain import Unit
from sfumato.errors import ParameterError

SEEDED_WARNING = "seeded: do not publish"
_COMPOSITION = {
    "pure": "The costs add up to the total.",
    "zcdp": "In rho, the costs add up to the total. An epsilon counts as at most half its square.",
    "approximate": "The total is not the sum of the costs. It is the smallest of four proven bounds: the "
    "sum, privacy-loss distributions, Rényi divergences, and the exact law of Gaussian noise.",
}
_SEVERAL_RUNS = (
    "The steps belong to {} runs, of which later ones may depend on what earlier ones showed. The total is "
    "the sum of what these were promised."
)
_THRESHOLDS = (
    " A step with a delta shows only values that many people have; with this probability it may show a value "
    "that one person alone has. Its epsilon and delta are added to those of all other steps."
)
_LARGEST_RHO = 10**90  # of a step in a file: beyond, sums leave the range of budgets


@dataclass(frozen=True)
class PrivacyStatement:
    """The guarantee of a release, derived from the records of what actually ran.

    Parameters
    ----------
    budget : Budget
        What was promised and charged.
    unit : Unit
        Who is protected.
    steps : tuple of Record
        Every use of a mechanism.
    seeded : bool
        Whether the noise came from a seed. There is then no guarantee against anyone who guesses the seed.
    n_runs : int
        How many runs the steps belong to: a fit, and each purchase that it depends on. What a later run asks
        may depend on what an earlier one showed. So with a delta, what they were promised is added up, and
        their steps are not composed any closer (docs/proofs/composition.md).
    """

    budget: Budget
    unit: Unit
    steps: tuple[Record, ...]
    seeded: bool
    n_runs: int = 1

    @cached_property
    def spent(self) -> Budget:
        """Total cost of all steps, as the same kind of budget; never above it."""
        total = composed(self.steps, self.budget)
        return self.budget if self._adds_promises and total <= self.budget else total

    @property
    def _adds_promises(self) -> bool:
        return self.n_runs > 1 and self.budget.kind == "approximate"

    @property
    def epsilon(self) -> float | None:
        """Epsilon of all steps together; ``None`` for a rho budget (see `epsilon_at`)."""
        return None if self.spent.epsilon is None else float_up(self.spent.epsilon)

    @property
    def delta(self) -> float:
        """Delta that goes with `epsilon`."""
        return float_up(self.budget.delta)

    @property
    def rho(self) -> float | None:
        """Total rho of a zCDP budget, else ``None``."""
        return None if self.spent.rho is None else float_up(self.spent.rho)

    def after(self, earlier: PrivacyStatement) -> PrivacyStatement:
        """Statement of this release together with an earlier one that it builds on, for the same unit.

        If either is in rho, so is the sum; a budget with a delta can then not be added.
        """
        if earlier.unit.column != self.unit.column:
            raise ParameterError(
                f"the earlier release must protect {self.unit}, as this one does, got {earlier.unit}"
            )
        steps, seeded = earlier.steps + self.steps, earlier.seeded or self.seeded
        budgets = [earlier.budget, self.budget]
        if "zcdp" in (budget.kind for budget in budgets):
            budgets = [budget if budget.kind == "zcdp" else budget.as_zcdp() for budget in budgets]
        n_runs = earlier.n_runs + self.n_runs
        return PrivacyStatement(budgets[0] + budgets[1], self.unit, steps, seeded, n_runs)

    def __deepcopy__(self, memo: object) -> PrivacyStatement:
        return self  # immutable, and its identity tells one purchase from another

    def epsilon_at(self, delta: float) -> float:
        """Epsilon of all steps together at another `delta`; infinite if nothing is proved at it."""
        if self.n_runs == 1:
            return epsilon_at(self.steps, delta)
        if self._adds_promises:
            return self.epsilon or 0.0 if delta >= self.budget.delta else math.inf
        return epsilon_by_costs(self.steps, delta)

    def attack_power(self, false_positive_rate: float) -> float:
        """Largest probability with which any attacker notices that a person (or row) is in the table.

        An attacker says "in the table" or "not in it". If the person is not in it, they may say "in" with
        the given probability. If the person is, they say "in" with at most the probability that is returned.
        For a guess that ignores the release both are equal. The bound holds for every attacker, with any
        knowledge and any computer, and counts this release alone (docs/proofs/attackers.md).

        Parameters
        ----------
        false_positive_rate : float
            From 0 to 1.

        Examples
        --------
        >>> step = Record("rows", "discrete Laplace", Sensitivity(), as_exact("scale", 1))
        >>> stated = PrivacyStatement(Budget(1), Unit(), (step,), seeded=False)
        >>> [round(stated.attack_power(rate), 3) for rate in (0.001, 0.01, 0.1, 0.5)]
        [0.003, 0.027, 0.272, 0.816]
        """
        rate = float(false_positive_rate)
        if not 0 <= rate <= 1:
            raise ParameterError(f"`false_positive_rate` must be from 0 to 1, got {false_positive_rate!r}")
        return largest_power(self._pairs, rate)

    @cached_property
    def _pairs(self) -> tuple[tuple[float, float], ...]:
        """Pairs of epsilon and delta that hold together, the stated one first."""
        stated = () if self.epsilon is None else ((self.epsilon, self.delta),)
        # What follows a threshold, or a purchase, may depend on it: only the stated pair is proved then.
        if self._adds_promises or any(record.delta for record in self.steps):
            return stated
        return stated + guarantees(self.steps, one_run=self.n_runs == 1)

    def __str__(self) -> str:
        lines = [f"Differential privacy with {self.spent}, protecting {self.unit}.", self._in_words()]
        lines += [
            f"  {r.step}: {r.mechanism}, scale {float(r.scale):.6g} on sensitivity {r.sensitivity_in_words()}"
            + (f", threshold at delta {rounded_up(r.delta, 3)}" if r.delta else "")
            for r in self.steps
        ]
        if self.seeded:
            lines.insert(0, SEEDED_WARNING)
        return "\n".join(lines)

    def _in_words(self) -> str:
        who = "a row" if self.unit.column is None else "a person"
        if self.epsilon is None:
            return (
                f"Whether or not {who} is in the table, what is published has nearly the same odds: "
                f"epsilon is {rounded_up(self.epsilon_at(1e-6), 3)} at delta 1e-06."
            )
        odds = _odds(self.epsilon)
        text = (
            f"Whether or not {who} is in the table changes the odds of anything that can be concluded "
            f"from this release by a factor of at most {odds}"
        )
        return text + (f", except with probability {rounded_up(self.delta, 3)}." if self.delta else ".")

    def composition(self) -> str:
        """How the costs of the steps make the total, in words."""
        text = _COMPOSITION[self.budget.kind]
        if self.budget.kind == "approximate" and self.n_runs > 1:
            text = _SEVERAL_RUNS.format(self.n_runs)
        return text + (_THRESHOLDS if any(record.delta for record in self.steps) else "")

    def promise(self) -> str:
        """The statement without the steps."""
        return "\n".join(line for line in str(self).splitlines() if not line.startswith(" "))

    def summary(self) -> dict[str, object]:
        """The promise, its numbers, and whom it protects, for files of other programs."""
        budget = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {
            "statement": self.promise(),
            **{name: value for name, value in budget.items() if value is not None},
            "unit": str(self.unit),
            "seeded": self.seeded,
        }

    def to_dict(self) -> dict[str, object]:
        """Return a form that can be written as JSON; numbers are exact."""
        return {
            "statement": str(self),
            "budget": self.budget.to_dict(),
            "spent": self.spent.to_dict(),
            "unit": {"column": self.unit.column, "max_rows": self.unit.max_rows},
            "steps": [_as_dict(record) for record in self.steps],
            "seeded": self.seeded,
        } | ({"n_runs": self.n_runs} if self.n_runs > 1 else {})

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> PrivacyStatement:
        """Inverse of `to_dict`. Totals are recomputed from the steps."""
        steps = tuple(_record(**step) for step in data["steps"])  # type: ignore[attr-defined]
        budget, seeded = Budget.from_dict(data["budget"]), data["seeded"]  # type: ignore[arg-type]
        if budget.kind == "pure" and any(record.epsilon is None for record in steps):
            raise ParameterError("a pure budget cannot pay for Gaussian noise, got a step that uses it")
        if sum(record.delta for record in steps) > budget.delta:
            raise ParameterError("the thresholds of all steps must fit into delta, got more than that")
        if not isinstance(seeded, bool):
            raise ParameterError(f"`seeded` must be true or false, got {seeded!r}")
        n_runs = data.get("n_runs", 1)
        if not (isinstance(n_runs, int) and n_runs >= 1):
            raise ParameterError(f"`n_runs` must be a positive integer, got {n_runs!r}")
        return cls(budget, Unit(**data["unit"]), steps, seeded, n_runs)  # type: ignore[arg-type]


def _as_dict(record: Record) -> dict[str, object]:
    numbers = {"sensitivity": vars(record.sensitivity), "scale": str(record.scale)}
    plain: dict[str, object] = {"step": record.step, "mechanism": record.mechanism, **numbers}
    return plain | ({"delta": str(record.delta)} if record.delta else {})


def _record(
    step: str, mechanism: Mechanism, sensitivity: dict[str, int], scale: str, delta: str = "0"
) -> Record:
    """Record read from a file, checked to be one that could have run."""
    if not isinstance(step, str) or mechanism not in get_args(Mechanism):
        raise ParameterError(f"a step must have a name and a known mechanism, got {step!r}, {mechanism!r}")
    if not all(isinstance(number, int) and number > 0 for number in sensitivity.values()):
        raise ParameterError(f"the sensitivity of step {step!r} must consist of positive integers")
    exact = as_exact("scale", scale)
    if not (0 < exact.numerator <= MAX_NUMERATOR and exact.denominator <= MAX_DENOMINATOR):
        raise ParameterError(f"the noise scale of step {step!r} must be one that the samplers can draw")
    exact_delta = as_exact("delta", delta)
    if not 0 <= exact_delta < 1 or (exact_delta and not mechanism.startswith("discrete")):
        raise ParameterError(f"the threshold of step {step!r} must have additive noise and a delta below 1")
    record = Record(step, mechanism, Sensitivity(**sensitivity), exact, exact_delta)
    if record.rho > _LARGEST_RHO:
        raise ParameterError(f"the cost of step {step!r} must be at most rho=1e90, got more")
    return record


def _odds(epsilon: float) -> str:
    return rounded_up(exp_up(epsilon), 3) if epsilon < 700 else f"exp({rounded_up(epsilon, 6)})"
