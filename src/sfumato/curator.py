"""The waist between private rows and public values.

Only this module holds an engine and a source of randomness at once. It runs the steps of a priced plan, and
nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from sfumato.aggregates import Aggregate, Cells, RowCount
from sfumato.budget import PricedPlan, PricedStep, Record
from sfumato.domain import Domain, Grid, IntArray
from sfumato.engine import Engine, MemoryEngine
from sfumato.errors import PlanError
from sfumato.mechanisms import Entropy, discrete_gaussian, discrete_laplace, exponential, permute_and_flip


@dataclass(frozen=True)
class Noisy:
    """A released vector of integers and the noise that is in it. Public.

    Parameters
    ----------
    values : int64 array
    record : Record
        The mechanism, its sensitivity and its scale.
    """

    values: IntArray
    record: Record

    @property
    def std(self) -> float:
        """Standard deviation of the noise in each value."""
        return self.record.noise_std


class Curator:
    """Answers the questions that a plan declares, with noise, and records every answer.

    An estimator asks in public terms and sees only what comes back. Control flow depends on the plan and on
    earlier answers, never on rows.

    Parameters
    ----------
    engine : Engine
        Where the rows are.
    domain : Domain
    plan : PricedPlan
    entropy : Entropy

    Privacy
    -------
    Each answer is an aggregate of proved sensitivity plus exact discrete noise of the scale that the plan
    pays for. The whole run is the adaptive composition of its records.
    """

    def __init__(self, engine: Engine, domain: Domain, plan: PricedPlan, entropy: Entropy) -> None:
        self._engine = engine
        self._plan = plan
        self._entropy = entropy
        self._records: list[Record] = []
        self.domain = domain

    @property
    def records(self) -> tuple[Record, ...]:
        """Every use of a mechanism so far."""
        return tuple(self._records)

    def noise_std(self, step: str) -> float:
        """Noise that a step will add to each value: public, known before anything is asked."""
        return self._plan.nominal(self._plan[step]).noise_std

    def count(self, step: str) -> Noisy:
        """Noisy number of rows."""
        return self._release(step, RowCount())

    def cells(self, step: str, grid: Grid) -> Noisy:
        """Noisy number of rows in each cell of a public grid, in C order."""
        return self._release(step, Cells(grid))

    def select(self, step: str, scores: Aggregate) -> int:
        """Index of a high score, chosen privately. The scores themselves stay secret."""
        record = self._declare(step, scores, selection=True)
        choose = exponential if record.mechanism == "exponential" else permute_and_flip
        return choose(self._engine.fold(scores), 1 / record.scale, self._entropy)

    def _release(self, step: str, aggregate: Aggregate) -> Noisy:
        record = self._declare(step, aggregate, selection=False)
        sample = discrete_gaussian if record.mechanism == "discrete Gaussian" else discrete_laplace
        raw = self._engine.fold(aggregate)
        return Noisy(raw + sample(record.scale, raw.size, self._entropy).reshape(raw.shape), record)

    def _declare(self, step: str, aggregate: Aggregate, *, selection: bool) -> Record:
        """Refuse what the plan does not pay for; record the rest. No row has been read when this returns."""
        priced = self._plan[step]
        asked = sum(record.step == step for record in self._records)
        if asked >= priced.step.repeats:
            raise PlanError(f"step {step!r} was declared for {priced.step.repeats} ask(s) and is used up")
        if selection != priced.step.selection:
            declared = "a selection" if priced.step.selection else "additive noise"
            raise PlanError(f"step {step!r} was declared as {declared}")
        record = priced.record(aggregate.sensitivity.times(self._plan.max_rows))
        self._check_sensitivity(priced, record)
        self._records.append(record)
        return record

    def _check_sensitivity(self, priced: PricedStep, record: Record) -> None:
        # One entry is accounted by its exact discrete law, which depends on the sensitivity itself; for
        # several, the cost depends on the ratio of sensitivity to scale alone, so a smaller one is fine.
        declared = self._plan.nominal(priced).sensitivity
        actual = record.sensitivity
        fits = actual == declared if declared.coordinates == 1 else actual.coordinates <= declared.coordinates
        if not fits:
            raise PlanError(f"step {priced.step.name!r} was declared with {declared}, asked with {actual}")


def open_curator(rows: NDArray[Any], domain: Domain, plan: PricedPlan, seed: int | None) -> Curator:
    """Curator over rows in memory; noise from the operating system, or from a seed."""
    return Curator(MemoryEngine(rows), domain, plan, Entropy(seed))
