"""The exact privacy loss of a run on two neighbours, step by step, against what was promised.

A black-box attack sees only what is released, and most of a budget pays for answers that a release hardly
shows. The meter is the strongest honest attacker: it knows every answer. Its argument is in docs/audit.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import chi2
from sklearn.base import clone

from sfumato.audit.pairs import PAIRS, Pair
from sfumato.audit.tape import Answer, DivergedError, Exact, Run, Seen, Tape, public, same, watched
from sfumato.budget import Budget, Ledger, PricedPlan, Record, Sensitivity
from sfumato.cluster import PrivateClusterer
from sfumato.domain import FloatArray, IntArray
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.release import Release

INTERVAL = 1e-4  # of tables of privacy losses
COARSE: dict[str, Any] = {"value_discretization_interval": INTERVAL, "pessimistic_estimate": False}
OPTIMISTIC: dict[str, Any] = {**COARSE, "use_connect_dots": False}
SMALL = (
    64  # shifts and scales up to which discrete laws are tabulated; beyond, they are as good as continuous
)
N_DRAWS = 2**17  # whose law is compared with that of the noise
LEAST_P = 1e-9  # of a test that the law is right
LEAST_EXPECTED = 25  # draws in a class of that test


@dataclass(frozen=True)
class StepLoss:
    """How far the exact values behind one answer are apart on two neighbours.

    Parameters
    ----------
    record : Record
        What the curator recorded: the mechanism, its scale, and the sensitivity that it covers.
    moved : Sensitivity
        How far the values really moved.
    change : int array
        Change of every value that moved.
    log_laws : pair of float arrays, optional
        Of a selection by the exponential mechanism: logarithms of the probabilities on both tables.
    delta : float
        Probability of showing a value that only one of the tables has.
    """

    record: Record
    moved: Sensitivity
    change: IntArray
    log_laws: tuple[FloatArray, FloatArray] | None = None
    delta: float = 0.0

    @property
    def epsilon(self) -> Fraction | float:
        """Largest loss that the answer can have on these neighbours; infinite for Gaussian noise."""
        match self.record.mechanism:
            case "discrete Laplace":
                return self.moved.l1 / self.record.scale
            case "discrete Gaussian":
                return math.inf if self.moved.l2_squared else Fraction(0)
            case _:
                return self.moved.spread / self.record.scale

    @property
    def rho(self) -> Fraction:
        """The same in zero-concentrated differential privacy."""
        if self.record.mechanism == "discrete Gaussian":
            return self.moved.l2_squared / (2 * self.record.scale**2)
        return Fraction(self.epsilon) ** 2 / (8 if self.record.mechanism == "exponential" else 2)

    @property
    def is_covered(self) -> bool:
        """Whether the values moved by no more than the recorded sensitivity."""
        covered, moved = self.record.sensitivity, self.moved
        match self.record.mechanism:
            case "discrete Laplace":
                return moved.l1 <= covered.l1
            case "discrete Gaussian":
                return moved.l2_squared <= covered.l2_squared
            case _:
                return moved.spread <= covered.spread


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
        return _amount(self.budget)

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
        the same seed it must do the same. An error on both tables is raised.
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
    if seen.failure is not None and again.failure is not None:
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
    if total_loss(steps, spent) > _amount(spent):
        yield "more is lost than the statement says"


def _amount(budget: Budget) -> float:
    """Epsilon or rho of a budget."""
    return float((budget.epsilon if budget.rho is None else budget.rho) or 0)


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


def step_loss(one: Answer, other: Answer) -> StepLoss:
    """Compare the exact values behind an answer on two neighbours."""
    change, n_entries = _change(one.exact, other.exact, one.threshold is not None)
    magnitudes = [abs(int(c)) for c in change]
    ends = [int(c) for c in change] + ([0] if len(change) < n_entries else [])
    moved = Sensitivity(
        l1=sum(magnitudes),
        l2_squared=sum(c * c for c in magnitudes),
        spread=max(ends, default=0) - min(ends, default=0),
        coordinates=len(change),
    )
    laws = None
    if one.record.mechanism == "exponential":
        laws = _log_law(one.exact, one.record.scale), _log_law(other.exact, one.record.scale)
    return StepLoss(one.record, moved, change, laws, max(_showing(one, other), _showing(other, one)))


def _change(one: Exact, other: Exact, hidden: bool) -> tuple[IntArray, int]:
    """Changes that are not zero, and the number of entries. Hidden values of one table count for delta."""
    if isinstance(one, Mapping):
        assert isinstance(other, Mapping)
        keys = one.keys() & other.keys() if hidden else one.keys() | other.keys()
        changes = np.array([one.get(key, 0) - other.get(key, 0) for key in keys], dtype=np.int64)
        n_entries = len(changes) + 1
    else:
        changes = (np.asarray(one, dtype=np.int64) - np.asarray(other, dtype=np.int64)).ravel()
        n_entries = len(changes)
    return changes[changes != 0], n_entries


def _log_law(scores: Exact, scale: Fraction) -> FloatArray:
    assert isinstance(scores, np.ndarray)
    exponents = (scores - scores.max()).astype(np.float64) / float(scale)
    return np.asarray(exponents - math.log(np.exp(exponents).sum()))


def _showing(one: Answer, other: Answer) -> float:
    """Probability that an answer shows a value that the other table does not have."""
    if one.threshold is None:
        return 0.0
    assert isinstance(one.exact, Mapping)
    new = [count for value, count in one.exact.items() if value not in other.exact]
    hidden = 0.0
    for count in new:
        hidden += math.log1p(-_tail(one.record, one.threshold - count))
    return -math.expm1(hidden)


def _tail(record: Record, least: int) -> float:
    """Probability that noise is at least so large, summed from its law."""
    scale = float(record.scale)
    reach = max(1.0, least + 60 * scale)
    noise = np.arange(least, math.ceil(reach) + 1, dtype=np.float64)
    if record.mechanism == "discrete Laplace":
        return float(np.exp(-np.abs(noise) / scale).sum() * math.tanh(0.5 / scale))
    every = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1, dtype=np.float64)
    return float(np.exp(-((noise / scale) ** 2) / 2).sum() / np.exp(-((every / scale) ** 2) / 2).sum())


def total_loss(steps: Sequence[StepLoss], budget: Budget) -> float:
    """Loss of all steps together in the terms of a budget.

    Pure losses and those in zero-concentrated differential privacy add up, in exact fractions. With a delta,
    tables of privacy losses are composed that state no more than the truth (dp-accounting's optimistic
    estimates), so that a broken promise is broken for sure.
    """
    if budget.rho is not None:
        return _float_above(sum((step.rho for step in steps), Fraction(0)), Fraction(budget.rho))
    epsilons = [step.epsilon for step in steps]
    delta = Fraction(budget.delta or 0) - sum((step.record.delta for step in steps), Fraction(0))
    if not budget.delta:
        return _sum_of(epsilons, Fraction(budget.epsilon or 0))
    if delta < 0:
        return math.inf
    law = composed_law(steps)
    if float(law.get_delta_for_epsilon(0.0)) <= delta:
        return 0.0
    return float(law.get_epsilon_for_delta(float(delta)))


def _sum_of(epsilons: Sequence[Fraction | float], promise: Fraction) -> float:
    if any(not isinstance(epsilon, Fraction | int) for epsilon in epsilons):
        return math.inf
    return _float_above(sum((Fraction(epsilon) for epsilon in epsilons), Fraction(0)), promise)


def _float_above(lost: Fraction, promise: Fraction) -> float:
    """The loss as a float that is above the promise if, and only if, the loss is."""
    found = float(lost)
    if lost > promise:
        return max(found, math.nextafter(float(promise), math.inf))
    return min(found, float(promise))


def composed_law(steps: Iterable[StepLoss]) -> pld.PrivacyLossDistribution:
    """Privacy losses of all steps together. Entries of an answer have noise of their own, so they compose."""
    parts: Counter[tuple[Callable[..., Any], float, int | float]] = Counter()
    squares, law = 0.0, pld.identity(INTERVAL, pessimistic_estimate=False)
    for step in steps:
        scale, shifts = float(step.record.scale), [abs(int(c)) for c in step.change]
        is_small = scale <= SMALL and max(shifts, default=0) <= SMALL
        match step.record.mechanism:
            case "discrete Gaussian" if is_small:
                parts.update((pld.from_discrete_gaussian_mechanism, scale, c) for c in shifts)
            case "discrete Gaussian":
                squares += step.moved.l2_squared / scale**2
            case "discrete Laplace" if is_small:
                parts.update((pld.from_discrete_laplace_mechanism, 1 / scale, c) for c in shifts)
            case "discrete Laplace":
                parts.update((pld.from_laplace_mechanism, scale, c) for c in shifts)
            case "exponential" if shifts:
                assert step.log_laws is not None
                law = law.compose(_selection_law(*step.log_laws))
            case "permute-and-flip" if shifts:
                law = law.compose(_pure_law(float(step.epsilon)))
    if squares:
        law = law.compose(pld.from_gaussian_mechanism(1 / math.sqrt(squares), **OPTIMISTIC))
    for (make, scale, shift), times in parts.items():
        law = law.compose(make(scale, sensitivity=shift, **OPTIMISTIC).self_compose(times))
    return law


def _selection_law(one: FloatArray, other: FloatArray) -> pld.PrivacyLossDistribution:
    laws = (dict(enumerate(log_law.tolist())) for log_law in (one, other))
    return pld.from_two_probability_mass_functions(*laws, **COARSE)


def _pure_law(epsilon: float) -> pld.PrivacyLossDistribution:
    """Randomised response: the worst that a selection by permute-and-flip may be."""
    return pld.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, **COARSE)


def wrong_laws(steps: Iterable[StepLoss]) -> Iterator[str]:
    """Complain about noise whose draws do not follow the recorded law."""
    samplers = {"discrete Laplace": discrete_laplace, "discrete Gaussian": discrete_gaussian}
    for mechanism, scale in sorted({(step.record.mechanism, step.record.scale) for step in steps}):
        if mechanism in samplers and scale <= SMALL:
            draws = samplers[mechanism](scale, N_DRAWS, Entropy(0))
            if _p_value(draws, mechanism, float(scale)) < LEAST_P:
                yield f"draws of {mechanism} noise of scale {float(scale):g} do not follow its law"


def _p_value(draws: IntArray, mechanism: str, scale: float) -> float:
    """Chi-square test of draws against the law, rare values in classes at the ends."""
    reach = math.ceil(60 * scale)
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(
        -np.abs(values) / scale if mechanism == "discrete Laplace" else -((values / scale) ** 2) / 2
    )
    expected = len(draws) * weights / weights.sum()
    inner = int((expected[reach:] >= LEAST_EXPECTED).sum()) - 1
    seen = np.bincount(np.clip(draws, -inner - 1, inner + 1) + inner + 1, minlength=2 * inner + 3)
    middle = expected[reach - inner : reach + inner + 1]
    tail = (len(draws) - middle.sum()) / 2
    classes = np.concatenate([[tail], middle, [tail]])
    kept = classes > 1
    return float(chi2.sf(((seen - classes)[kept] ** 2 / classes[kept]).sum(), kept.sum() - 1))


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
