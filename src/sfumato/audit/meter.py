"""The exact privacy loss of a run on two neighbours, step by step, against what was promised.

A black-box attack sees only what is released, and most of a budget pays for answers that a release hardly
shows. The meter is the strongest honest attacker: it knows every answer. Its argument is in docs/audit.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sklearn.base import clone

from sfumato.audit.pairs import PAIRS, Pair
from sfumato.audit.step_losses import StepLoss, amount_of, step_loss, total_loss, wrong_laws
from sfumato.audit.tape import DivergedError, Run, Seen, Tape, public, same, watched
from sfumato.budget import Budget, Ledger, PricedPlan
from sfumato.cluster import PrivateClusterer
from sfumato.release import Release


@dataclass(frozen=True)
class MeterResult:
    """What was lost on one pair of neighbours, on the worst of the paths that were tried.

    Parameters
    ----------
    pair : str
    budget : Budget
        The promise.
    lost : float
        Epsilon, at the promised delta if there is one, or rho.
    steps : tuple of StepLoss
        Of the path on which most was lost.
    n_paths : int
        Sequences of answers that were tried.
    complaints : tuple of str
        What should not be, even if little is lost.
    """

    pair: str
    budget: Budget
    lost: float
    steps: tuple[StepLoss, ...]
    n_paths: int
    complaints: tuple[str, ...] = ()

    @property
    def promise(self) -> float:
        """The promised epsilon or rho."""
        return amount_of(self.budget)

    @property
    def share(self) -> float:
        """Part of the promise that was lost."""
        return self.lost / self.promise

    @property
    def broken(self) -> bool:
        """Whether the promise is broken, or something depends on rows beyond the noise."""
        return bool(self.complaints) or self.lost > self.promise

    @property
    def verdict(self) -> str:
        """The result in words."""
        if self.complaints:
            return "BROKEN: " + "; ".join(self.complaints)
        return "BROKEN: more is lost than promised" if self.broken else f"{self.share:.0%} of the promise"

    def to_dict(self) -> dict[str, Any]:
        """Return what a report needs, ready for JSON."""
        said = {"pair": self.pair, "budget": self.budget.to_dict(), "promise": self.promise}
        lost = {"lost": self.lost if math.isfinite(self.lost) else None, "paths": self.n_paths}
        verdict = {"complaints": list(self.complaints), "broken": self.broken, "verdict": self.verdict}
        return said | lost | verdict

    def __str__(self) -> str:
        unit = "epsilon" if self.budget.rho is None else "rho"
        return f"{self.pair}: {unit} {self.lost:.4f}, promised {self.budget}: {self.verdict}"


def meter(
    run: Callable[[Any, int], Any],
    pair: Pair,
    budget: Budget,
    *,
    n_paths: int = 2,
    opened: Callable[[PricedPlan], Sequence[str]] = lambda plan: (),
) -> MeterResult:
    """Exact privacy loss of an algorithm on two neighbours, over a few sequences of answers.

    Every noisy answer about the one table is recorded and given again about the other. The exact values
    behind them are compared, and the losses of all steps are added up. Whatever else everybody sees must be
    equal.

    Parameters
    ----------
    run : callable
        ``run(table, seed)`` fits estimators of this library, or asks for bounds, levels and the like. With
        the same seed it must do the same. An error that is the same on both tables is raised.
    pair : Pair
    budget : Budget
        The promise to test.
    n_paths : int
        Seeds to try, each in both directions.
    opened : callable, optional
        Called with each plan that a run is about to carry out. Returns complaints.

    Privacy
    -------
    Reads the tables of the pair, which are made up, and shows their exact sums.

    Examples
    --------
    >>> from sfumato import GridKMeans
    >>> def run(rows, seed):
    ...     return GridKMeans(2, epsilon=1.0, bounds=(-1, 1), random_state=seed).fit(rows)
    >>> found = meter(run, PAIRS["outlier"], Budget(1))
    >>> found.broken, round(found.share, 6)
    (False, 1.0)
    """
    worst: MeterResult | None = None
    complaints: dict[str, None] = {}
    for seed in range(n_paths):
        for one, other in ((pair.with_unit, pair.without_unit), (pair.without_unit, pair.with_unit)):
            steps, found = _path(partial(_seeded, run, seed), one, other, opened)
            complaints |= dict.fromkeys([*found, *_stated(steps, budget)])
            lost = total_loss(steps, budget)
            if worst is None or lost > worst.lost:
                worst = MeterResult(pair.name, budget, lost, steps, 2 * n_paths)
    assert worst is not None
    complaints |= dict.fromkeys(wrong_laws(worst.steps))
    return replace(worst, complaints=tuple(complaints))


def _seeded(run: Callable[[Any, int], Any], seed: int, table: Any) -> Any:
    return run(table, seed)


def _path(
    run: Run, one: Any, other: Any, opened: Callable[[PricedPlan], Sequence[str]]
) -> tuple[tuple[StepLoss, ...], list[str]]:
    """Losses of a run on two tables with the same answers, and complaints."""
    first = Tape(opened=opened)
    seen = watched(run, one, first)
    steps, complaints = path_losses(run, seen, first, other)
    return steps, [*first.complaints, *_unstated(seen, first, steps), *complaints]


def path_losses(run: Run, seen: Seen, first: Tape, other: Any) -> tuple[tuple[StepLoss, ...], list[str]]:
    """Losses against a run that is on tape, of the same run on another table, and complaints about it."""
    second = Tape(first, first.opened)
    try:
        again = watched(run, other, second)
    except DivergedError as error:
        return (), [f"the same answers lead to other questions: {error}"]
    if seen.failure is not None and seen.said["the error"] == again.said["the error"]:
        raise seen.failure
    complaints = [*second.complaints, *_differences(seen, again)]
    if len(first.answers) != len(second.answers):
        complaints.append("the same answers lead to fewer questions")
    return tuple(step_loss(*both) for both in zip(first.answers, second.answers, strict=False)), complaints


def _differences(one: Seen, other: Seen) -> Iterator[str]:
    for name, said in one.said.items():
        if not same(said, other.said[name]):
            yield f"with the same answers, {name} differs"
    if not same(public(one.result), public(other.result)):
        yield "with the same answers, the result differs"


def _unstated(seen: Seen, tape: Tape, steps: Sequence[StepLoss]) -> Iterator[str]:
    """Compare the statement of a release with what was really asked and lost."""
    release = getattr(seen.result, "release_", seen.result)
    if not isinstance(release, Release):
        return
    if sorted(map(repr, release.privacy.steps)) != sorted(map(repr, tape.declared)):
        yield "the statement does not list the steps that were taken"
    spent = release.privacy.spent
    if total_loss(steps, spent) > amount_of(spent):
        yield "more is lost than the statement says"


def _stated(steps: Sequence[StepLoss], budget: Budget) -> Iterator[str]:
    for step in steps:
        if (claimed := replace(step, moved=step.record.sensitivity)).rho > step.record.rho or (
            step.record.epsilon is not None and claimed.epsilon > step.record.epsilon
        ):
            yield f"step {step.record.step!r}: its record states less than its noise costs"
        if not step.is_covered:
            yield f"step {step.record.step!r}: values moved beyond the recorded sensitivity"
        if step.delta > step.record.delta * (1 + Fraction(1, 10**9)):
            yield f"step {step.record.step!r}: a value of one unit shows more often than its delta"
    if sum(step.record.delta for step in steps) > Fraction(budget.delta or 0):
        yield "the deltas of thresholds exceed the promise"


def meter_estimator(
    estimator: PrivateClusterer, pairs: Sequence[Pair] = tuple(PAIRS.values()), *, n_paths: int = 2
) -> Iterator[MeterResult]:
    """Exact privacy loss of an estimator on several pairs of neighbours.

    A ledger of its own is charged, too: before any row is read, with what is promised, and no less in sum.

    Parameters
    ----------
    estimator : PrivateClusterer
        With its budget and its own parameters. Each pair sets the bounds and unit.
    pairs : sequence of Pair
    n_paths : int
        Seeds to try on each pair, each in both directions.

    Yields
    ------
    MeterResult
        One per pair.

    Examples
    --------
    >>> from sfumato import DPM
    >>> for found in meter_estimator(DPM(epsilon=1), [PAIRS["outlier"]]):
    ...     print(found.broken, found.share > 0.8)
    False True
    """
    for pair in pairs:
        own = clone(estimator).set_params(**pair.parameters)
        budget = own._budget()
        with TemporaryDirectory() as folder:
            yield _with_ledger(own, pair, budget, Path(folder) / "ledger.db", n_paths)


def _with_ledger(own: PrivateClusterer, pair: Pair, budget: Budget, path: Path, n_paths: int) -> MeterResult:
    n_fits = 4 * n_paths
    ledger = Ledger.create(path, "made up", _times(budget, n_fits), allow_seeded=True)
    opened: list[PricedPlan] = []

    def charged(plan: PricedPlan) -> list[str]:
        opened.append(plan)
        spent, due = ledger.spent(), _times(budget, len(opened))
        return [] if _covers(spent, due) else ["rows are read before the ledger is charged what is promised"]

    def run(table: Any, seed: int) -> Any:
        fitted = clone(own).set_params(random_state=seed, ledger=ledger).fit(table)
        return fitted.set_params(ledger=None, random_state=None)

    found = meter(run, pair, budget, n_paths=n_paths, opened=charged)
    unseeded = clone(own).set_params(random_state=None, ledger=None)
    return replace(found, complaints=(*found.complaints, *_unseeded(unseeded, pair)))


def _unseeded(estimator: PrivateClusterer, pair: Pair) -> Iterator[str]:
    """Complain about noise without a seed that is the same twice, or that is said to have a seed."""
    tapes = [Tape(), Tape()]
    results = [watched(lambda table: clone(estimator).fit(table), pair.with_unit, tape) for tape in tapes]
    if any(seen.result is not None and seen.result.privacy_.seeded for seen in results):
        yield "noise without a seed is drawn from one"
    released = [[answer.released for answer in tape.answers] for tape in tapes]
    if released[0] and same(*released):
        yield "noise without a seed is the same twice"


def _times(budget: Budget, n: int) -> Budget:
    if budget.rho is not None:
        return Budget(rho=n * budget.rho)
    return Budget(n * Fraction(budget.epsilon or 0), n * budget.delta)


def _covers(spent: Budget, due: Budget) -> bool:
    parts = ("epsilon", "delta", "rho")
    return all(Fraction(getattr(spent, part) or 0) >= Fraction(getattr(due, part) or 0) for part in parts)
