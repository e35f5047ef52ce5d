"""What one unit costs, from the exact values behind an answer on two neighbours; and what noise is drawn.

The formulas are written again here, apart from those by which budgets are spent: a mistake there shows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import chi2

from sfumato.audit.tape import SAMPLERS, Answer, Exact
from sfumato.budget import Budget, Record, Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram

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


def amount_of(budget: Budget) -> float:
    """Epsilon or rho of a budget."""
    return float((budget.epsilon if budget.rho is None else budget.rho) or 0)


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
        changes = (np.asarray(one) - np.asarray(other)).ravel()
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
    squares, law = 0.0, _selection_law(np.zeros(1), np.zeros(1))  # of one outcome: no loss
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
    for mechanism, scale in sorted({(step.record.mechanism, step.record.scale) for step in steps}):
        if mechanism in SAMPLERS and scale <= SMALL:
            draws = SAMPLERS[mechanism](scale, N_DRAWS, Entropy(0))
            if _p_value(draws, mechanism, float(scale)) < LEAST_P:
                yield f"draws of {mechanism} noise of scale {float(scale):g} do not follow its law"
            if _listed_p_value(mechanism, scale) < LEAST_P:
                yield f"listed cells with {mechanism} noise of scale {float(scale):g} do not follow its law"


def _listed_p_value(mechanism: str, scale: Fraction) -> float:
    """The same test of noise in a list of cells that reach a threshold: with one row each, and without."""
    rows = np.arange(N_DRAWS) % 2  # of each cell
    occupied = np.flatnonzero(rows)
    least = 2 - rows  # noise that makes a cell reach a threshold of 2
    cells, counts = sparse_histogram(
        occupied, rows[occupied], N_DRAWS, mechanism, scale, threshold=2, entropy=Entropy(0)
    )
    draws = least - 1
    draws[cells] = counts - rows[cells]
    return min(_p_value(draws[rows == n], mechanism, float(scale), 2 - n) for n in (0, 1))


def _p_value(draws: IntArray, mechanism: str, scale: float, least: int | None = None) -> float:
    """Chi-square test of draws against the law; rare values, and those below `least`, are one class each."""
    reach = math.ceil(60 * scale)
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(
        -np.abs(values) / scale if mechanism == "discrete Laplace" else -((values / scale) ** 2) / 2
    )
    expected = len(draws) * weights / weights.sum()
    inner = int((expected[reach:] >= LEAST_EXPECTED).sum()) - 1
    low = -inner - 1 if least is None else max(-inner - 1, least - 1)
    high = max(inner, low) + 1
    seen = np.bincount(np.clip(draws, low, high) - low, minlength=high - low + 1)
    ends = np.array([low + 1, high]) + reach
    below, middle, above = np.split(expected, ends)
    classes = np.concatenate([[below.sum()], middle, [above.sum()]])
    kept = classes > 1
    return float(chi2.sf(((seen - classes)[kept] ** 2 / classes[kept]).sum(), kept.sum() - 1))
