"""A plan: the named steps of an algorithm, their shares of the budget, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.budget.amounts import Budget, as_exact
from sfumato.budget.costs import epsilon_at, pure_epsilon, total_rho
from sfumato.budget.exact import (
    MAX_DENOMINATOR,
    MAX_NUMERATOR,
    root_up,
    round_scale_up,
    rounded_up,
    shorten_up,
)
from sfumato.budget.records import Mechanism, Record, Sensitivity
from sfumato.errors import ParameterError, PlanError

COUNT = Sensitivity()


@dataclass(frozen=True)
class Step:
    """One named question to the curator.

    Parameters
    ----------
    name : str
    share : number
        Share of the whole budget, for all repeats together.
    repeats : int
        How often the question is asked.
    sensitivity : Sensitivity
        For one row; the default fits a count or disjoint cells. A step that moves several entries may turn
        out to have a smaller sensitivity when asked (a radius released by then), never a larger one.
    selection : bool
        Whether the step chooses an index by score instead of adding noise.
    threshold : bool
        Whether the step shows only values that reach a threshold, because its values are not public. It
        takes a part of delta. Its sensitivity is for a whole privacy unit. It is asked once, first.
    joint : bool
        For a step with a threshold: whether the cost of each later step is fixed in advance, whatever the
        threshold shows. Its noise is then Gaussian, and composed with that of the other steps.
    """

    name: str
    share: Fraction | float | str
    repeats: int = 1
    sensitivity: Sensitivity = COUNT
    selection: bool = False
    threshold: bool = False
    joint: bool = False

    def __post_init__(self) -> None:
        share = as_exact("share", self.share)
        if not 0 < share <= 1:
            raise ParameterError(f"`share` of step {self.name!r} must be in (0, 1], got {self.share!r}")
        if self.repeats < 1:
            raise ParameterError(f"`repeats` of step {self.name!r} must be >= 1, got {self.repeats!r}")
        object.__setattr__(self, "share", share)

    def scaled(self, factor: Fraction) -> Step:
        """The same step for a part of its share."""
        return replace(self, share=Fraction(self.share) * factor)

    def for_unit(self, sensitivity: Sensitivity, max_rows: int) -> Sensitivity:
        """Sensitivity of the step for a privacy unit of at most `max_rows` rows."""
        return sensitivity if self.threshold else sensitivity.times(max_rows)

    @property
    def share_per_ask(self) -> Fraction:
        """Share of the budget that one ask takes."""
        return Fraction(self.share) / self.repeats


@dataclass(frozen=True)
class Plan:
    """The steps of an algorithm, before any budget or data is known.

    Parameters
    ----------
    *steps : Step
        With distinct names and shares that sum to exactly 1.

    Examples
    --------
    >>> plan = Plan(Step("rows", share=0.05), Step("grid", share=0.95))
    >>> [step.name for step in plan.steps]
    ['rows', 'grid']
    """

    steps: tuple[Step, ...]

    def __init__(self, *steps: Step) -> None:
        names = [step.name for step in steps]
        if not steps or len(set(names)) < len(names):
            raise ParameterError(f"the steps of a plan must have distinct names, got {names}")
        total = sum((Fraction(step.share) for step in steps), Fraction(0))
        if total != 1:
            raise ParameterError(f"the shares of a plan must sum to 1, got {total} over {names}")
        object.__setattr__(self, "steps", steps)

    def after(self, others: Sequence[Step], share: Fraction) -> Plan:
        """Plan in which other steps come first and take this share of the whole budget."""
        return Plan(*(s.scaled(share) for s in others), *(s.scaled(1 - share) for s in self.steps))

    def then(self, others: Sequence[Step], share: Fraction) -> Plan:
        """Plan in which other steps come last and take this share of the whole budget."""
        return Plan(*(s.scaled(1 - share) for s in self.steps), *(s.scaled(share) for s in others))


@dataclass(frozen=True)
class PricedStep:
    """A step with its mechanism and the cost of one ask.

    Parameters
    ----------
    step : Step
    mechanism : str
    cost : Fraction
        rho for the discrete Gaussian, epsilon for every other mechanism.
    delta : Fraction
        Delta of the threshold, if the step has one.
    """

    step: Step
    mechanism: Mechanism
    cost: Fraction
    delta: Fraction = Fraction(0)

    def record(self, sensitivity: Sensitivity) -> Record:
        """Record of one ask at this sensitivity; the noise scale follows from the cost."""
        match self.mechanism:
            case "discrete Laplace":
                scale = sensitivity.l1 / self.cost
            case "discrete Gaussian":
                scale = root_up(sensitivity.l2_squared / (2 * self.cost))
            case "exponential" | "permute-and-flip":
                scale = sensitivity.spread / self.cost
        limit = MAX_DENOMINATOR if self.step.selection else MAX_NUMERATOR
        return Record(self.step.name, self.mechanism, sensitivity, round_scale_up(scale, limit), self.delta)


@dataclass(frozen=True)
class PricedPlan:
    """A plan calibrated to a budget. The ledger stores it and the curator runs it. Prints as a table.

    Parameters
    ----------
    budget : Budget
    max_rows : int
        Row cap per privacy unit. Sensitivities are multiplied by it.
    steps : tuple of PricedStep
    note : str
        What else to know, such as how columns are measured. Printed below the table.
    """

    budget: Budget
    max_rows: int
    steps: tuple[PricedStep, ...]
    note: str = ""

    def __getitem__(self, name: str) -> PricedStep:
        for priced in self.steps:
            if priced.step.name == name:
                return priced
        known = ", ".join(repr(priced.step.name) for priced in self.steps)
        raise PlanError(f"step {name!r} is not in the plan, which declares {known}")

    def nominal(self, priced: PricedStep) -> Record:
        """Record of one ask of a step, at its declared sensitivity."""
        return priced.record(priced.step.for_unit(priced.step.sensitivity, self.max_rows))

    def records(self) -> tuple[Record, ...]:
        """Records of all asks of all steps, at their declared sensitivities."""
        return tuple(self.nominal(priced) for priced in self.steps for _ in range(priced.step.repeats))

    def cost(self) -> Budget:
        """Cost of the whole plan, as the same kind of budget."""
        return composed(self.records(), self.budget)

    def rows(self) -> list[tuple[str, ...]]:
        """Table rows: step, times, mechanism, sensitivity, noise scale, cost."""
        table: list[tuple[str, ...]] = []
        for priced in self.steps:
            record = self.nominal(priced)
            sensitivity = record.sensitivity_in_words()
            unit = "rho" if record.mechanism == "discrete Gaussian" else "epsilon"
            cost = f"{unit} {rounded_up(priced.cost * priced.step.repeats, 6)}"
            cost += f", delta {rounded_up(priced.delta, 6)}" if priced.delta else ""
            times, scale = str(priced.step.repeats), f"{float(record.scale):.6g}"
            table.append((priced.step.name, times, record.mechanism, sensitivity, scale, cost))
        return table

    def __str__(self) -> str:
        head = ("step", "times", "mechanism", "sensitivity", "noise scale", "cost")
        lines = [head, *self.rows(), ("total", "", "", "", "", str(self.cost()))]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        table = [
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([*table, *([self.note] if self.note else [])])


def composed(records: Sequence[Record], budget: Budget) -> Budget:
    """Total cost of records, as the kind of `budget`: exact for pure and zCDP, else the best bound."""
    if budget.kind == "zcdp":
        if any(record.delta for record in records):
            raise PlanError("a budget in rho cannot pay for a threshold")
        return _amount(rho=shorten_up(total_rho(records)))
    if budget.kind == "pure":
        epsilon = pure_epsilon(records)
        if epsilon is None:
            raise PlanError("a pure budget cannot pay for Gaussian noise or a threshold")
        return _amount(epsilon=shorten_up(epsilon))
    epsilon = as_exact("epsilon", epsilon_at(records, budget.delta))
    promised = budget.epsilon or epsilon
    # Calibration stops one part in 10^6 short. The promised number is then a valid bound and reads better.
    close_below = promised * Fraction(99999, 100000) < epsilon <= promised
    return _amount(epsilon=promised if close_below else epsilon, delta=budget.delta)


def _amount(**numbers: Fraction) -> Budget:
    """Build a budget that may be zero: a run may ask nothing, or delta may cover all it asks."""
    return Budget.from_dict({name: str(value) for name, value in numbers.items()})
