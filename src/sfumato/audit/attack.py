"""Run an algorithm many times on two neighbours, learn to tell them apart, and state what that proves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from sfumato.audit.events import Combination, choose_event
from sfumato.audit.features import features
from sfumato.audit.limits import lower_bound
from sfumato.audit.pairs import PAIRS, Pair
from sfumato.budget import Budget
from sfumato.cluster import PrivateClusterer
from sfumato.domain import FloatArray
from sfumato.errors import GuaranteeWarning, NoiseWarning, ParameterError
from sfumato.release import Release

Run: TypeAlias = Callable[[Any, int | None], Any]
Statistic: TypeAlias = Callable[[Any], float]
Outcome: TypeAlias = dict[str, float]

FAILED = "failed"  # a run that raises an error is an outcome too
FEWEST_RUNS = 40
BATCH = 25
LARGEST_SEED = 2**31
MISSING = 0.0  # of a feature that a release does not have; lengths of arrays tell it from a zero
LARGEST = 1e100  # squares stay finite


@dataclass(frozen=True)
class AuditResult:
    """What the runs on one pair of neighbours show.

    Parameters
    ----------
    pair : str
        Name of the pair.
    budget : Budget
        The promise.
    lower : float
        With this `confidence`, epsilon (at the promised delta) or rho is at least this.
    confidence : float
    event : str
        The event that tells the neighbours apart, chosen on the first half of the runs.
    likelier : str
        The table on which the event is more likely: "with" or "without" the unit.
    n_likely, n_unlikely : int
        How often it happened in the second half, on that table and on the other.
    n_runs : int
        Number of runs in the second half, on each table.
    n_failed : int
        Number of runs in both halves that raised an error. Everybody sees an error, so it is an outcome.
    """

    pair: str
    budget: Budget
    lower: float
    confidence: float
    event: str
    likelier: str
    n_likely: int
    n_unlikely: int
    n_runs: int
    n_failed: int = 0

    @property
    def promise(self) -> float:
        """The promised epsilon or rho."""
        amount = self.budget.epsilon if self.budget.rho is None else self.budget.rho
        return float(amount or 0)

    @property
    def broken(self) -> bool:
        """Whether the runs contradict the promise."""
        return self.lower > self.promise

    @property
    def verdict(self) -> str:
        """The result in words."""
        return "BROKEN: more is lost than promised" if self.broken else "no contradiction found"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        said = {**asdict(self), "budget": self.budget.to_dict()}
        return said | {"promise": self.promise, "broken": self.broken, "verdict": self.verdict}

    def __str__(self) -> str:
        unit = "epsilon" if self.budget.rho is None else "rho"
        return f"{self.pair}: {unit} >= {self.lower:.3f}, promised {self.budget}: {self.verdict}"


def audit(
    run: Run,
    pair: Pair,
    budget: Budget,
    *,
    n_runs: int = 2000,
    confidence: float = 0.99,
    statistic: Statistic | None = None,
    random_state: int | None = 0,
    n_jobs: int = 1,
    progress: Callable[[float], None] | None = None,
) -> AuditResult:
    """Lower bound on the privacy loss of an algorithm on two neighbours.

    The first half of the runs chooses an event, and the second half counts it. `lower_bound` explains what
    that proves; docs/audit.md gives the whole argument.

    Parameters
    ----------
    run : callable
        ``run(table, seed)`` returns what would be released: a `Release`, a model, an array or a number.
    pair : Pair
    budget : Budget
        The promise to test.
    n_runs : int
        Runs on each of the two tables, at least 40.
    confidence : float
        Probability that the bound holds, over the noise of all runs.
    statistic : callable, optional
        Computes one number from a released value. By default everything `features` finds, and a learned sum.
    random_state : int or None
        Seed of the runs' own seeds, which all differ. With None, every run gets the seed None and takes its
        noise from the operating system.
    n_jobs : int
        Number of processes.
    progress : callable, optional
        Called with the share of runs that are done.

    Privacy
    -------
    Reads the tables of the pair, which are synthetic. An audit finds mistakes; it cannot prove a promise.

    Examples
    --------
    A count with half the noise it needs:

    >>> from fractions import Fraction
    >>> from sfumato.private.mechanisms.noise import discrete_laplace
    >>> from sfumato.private.mechanisms.entropy import Entropy
    >>> def count(rows, seed):
    ...     return len(rows) + discrete_laplace(Fraction(1, 2), 1, Entropy(seed))[0]
    >>> found = audit(count, PAIRS["outlier"], Budget(1), n_runs=2000)
    >>> found.broken, round(found.lower, 1)
    (True, 1.8)
    """
    _check("n_runs", n_runs, FEWEST_RUNS)
    _check("n_jobs", n_jobs, 1)
    read = partial(_statistic, statistic) if statistic else partial(features, places=pair.places)
    seeds = _seeds(2 * n_runs, random_state)
    tables = (pair.with_unit, pair.without_unit)
    jobs = [
        (table, seeds[start + i : start + min(i + BATCH, n_runs)])
        for start, table in zip((0, n_runs), tables, strict=True)
        for i in range(0, n_runs, BATCH)
    ]
    outcomes: list[Outcome] = []
    for done in Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_outcomes)(run, read, table, some) for table, some in jobs
    ):
        outcomes += done
        if progress is not None:
            progress(len(outcomes) / (2 * n_runs))
    n_failed = sum(FAILED in outcome for outcome in outcomes)
    if n_failed == len(outcomes):
        read(run(pair.with_unit, seeds[0]))  # raises the error that all runs raised
    names = sorted(set().union(*outcomes[: n_runs // 2], *outcomes[n_runs : n_runs + n_runs // 2]))
    scores = _matrix(outcomes, names)
    found = compare(scores[:n_runs], scores[n_runs:], budget, confidence=confidence, names=names)
    return replace(found, pair=pair.name, n_failed=n_failed)


def audit_estimator(
    estimator: PrivateClusterer,
    pairs: Sequence[Pair] = tuple(PAIRS.values()),
    *,
    confidence: float = 0.99,
    **options: Any,
) -> Iterator[AuditResult]:
    """Audit an estimator on several pairs, one after the other.

    Parameters
    ----------
    estimator : PrivateClusterer
        With its budget and its own parameters. Each pair sets the bounds and unit. No ledger is charged.
    pairs : sequence of Pair
    confidence : float
        Probability that all bounds hold together. They share the remaining probability of error equally.
    **options
        Options of `audit`: n_runs, random_state, n_jobs, statistic, progress.

    Yields
    ------
    AuditResult
        One per pair.

    Examples
    --------
    >>> from sfumato import DensityTree
    >>> for found in audit_estimator(DensityTree(0.5, epsilon=1), [PAIRS["outlier"]], n_runs=100):
    ...     print(found.verdict)
    no contradiction found
    """
    for pair in pairs:
        own = clone(estimator).set_params(**pair.parameters, ledger=None)
        budget = own.plan(pair.places.shape[1]).budget
        each = 1 - (1 - confidence) / len(pairs)
        yield audit(partial(_fit, own), pair, budget, confidence=each, **options)


def compare(
    one: FloatArray,
    other: FloatArray,
    budget: Budget,
    *,
    confidence: float = 0.99,
    names: Sequence[str] | None = None,
) -> AuditResult:
    """Lower bound from the scores of runs on two neighbours, both of shape (n_runs, n_scores).

    The first quarter learns a sum of the scores, the second quarter chooses a score and a threshold, and the
    second half counts. A single score needs no sum, so the whole first half chooses.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> one, other = rng.laplace(1, size=(2, 4000, 1)) - [[[0]], [[1]]]
    >>> compare(one, other, Budget(1)).broken
    False
    """
    names = list(names or (f"score {j}" for j in range(one.shape[1])))
    half = len(one) // 2
    learned = half // 2 if one.shape[1] > 1 else 0
    if learned:
        total = Combination.learned(one[:learned], other[:learned])
        one, other = (np.column_stack([table, total.of(table)]) for table in (one, other))
        names.append("learned sum")
    event = choose_event(one[learned:half], other[learned:half], budget, 1 - confidence)
    likely, unlikely = (one, other) if event.likelier_on_one else (other, one)
    n_likely, n_unlikely, n = event.count(likely[half:]), event.count(unlikely[half:]), len(one) - half
    return AuditResult(
        pair="",
        budget=budget,
        lower=lower_bound(budget, n_likely, n_unlikely, n, confidence),
        confidence=confidence,
        event=event.in_words(names),
        likelier="with" if event.likelier_on_one else "without",
        n_likely=n_likely,
        n_unlikely=n_unlikely,
        n_runs=n,
    )


def _fit(estimator: PrivateClusterer, table: Any, seed: int | None) -> Release:
    with warnings.catch_warnings():
        for category in (GuaranteeWarning, NoiseWarning):  # the tables are tiny
            warnings.simplefilter("ignore", category)
        release: Release = clone(estimator).set_params(random_state=seed).fit(table).release_
        return release


def _outcomes(
    run: Run, read: Callable[[Any], Outcome], table: Any, seeds: Sequence[int | None]
) -> list[Outcome]:
    return [_outcome(run, read, table, seed) for seed in seeds]


def _outcome(run: Run, read: Callable[[Any], Outcome], table: Any, seed: int | None) -> Outcome:
    try:
        value = run(table, seed)
    except ParameterError:
        raise
    except Exception as error:
        return {FAILED: 1.0, f"{FAILED} with {type(error).__name__}": 1.0}
    return read(value)


def _statistic(statistic: Statistic, value: Any) -> Outcome:
    return {"statistic": float(statistic(value))}


def _matrix(outcomes: Sequence[Mapping[str, float]], names: Sequence[str]) -> FloatArray:
    rows = [[outcome.get(name, MISSING) for name in names] for outcome in outcomes]
    return np.clip(np.nan_to_num(np.array(rows, dtype=np.float64), nan=LARGEST), -LARGEST, LARGEST)


def _seeds(n: int, random_state: int | None) -> list[int | None]:
    if random_state is None:
        return [None] * n
    return list(np.random.default_rng(random_state).choice(LARGEST_SEED, size=n, replace=False).tolist())


def _check(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"`{name}` must be an integer >= {least}, got {value!r}")
