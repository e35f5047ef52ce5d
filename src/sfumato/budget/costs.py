"""Total cost of a list of records. It is derived from the records alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr

from sfumato.budget.exact import float_up
from sfumato.budget.losses import Losses, composed_epsilon, gaussian_losses, laplace_losses
from sfumato.budget.records import Record

# The best order is near 1 + sqrt(log(1/delta)/rho): small budgets need large orders.
RENYI_ORDERS = np.concatenate([np.linspace(1.05, 12, 220), np.geomspace(12.2, 2.0**60, 1200)])
# Tables list a discrete Gaussian point by point: wide ones would take seconds. The smallest delta keeps all
# exponents within the proof of their rounding. Beyond, Rényi orders alone decide.
SMALLEST_PLD_DELTA = 1e-100
WIDEST_PLD_SIGMA = 2**11
FINEST = 2e-5  # of the total: the interval of the longest tables
ROUNDING_VARIANCE = 9  # of a random rounding that makes discrete Gaussian noise of continuous noise
LEAST_SMOOTH_SIGMA = 6
LEAST_MU, LARGEST_MU = 1e-3, 20.0  # between these, differences of probabilities keep ten digits
DELTA_SLACK = 1e-6  # relative, for the digits that are lost


def pure_epsilon(records: Sequence[Record]) -> Fraction | None:
    """Sum of the pure costs (basic composition); ``None`` if a record has none."""
    costs = [None if record.delta else record.epsilon for record in records]
    return None if None in costs else sum((c for c in costs if c is not None), Fraction(0))


def total_rho(records: Sequence[Record]) -> Fraction:
    """Sum of the zCDP costs (Bun and Steinke 2016, Lemma 1.7)."""
    return sum((record.rho for record in records), Fraction(0))


def epsilon_at(records: Sequence[Record], delta: float | Fraction, precision: float = 1e-4) -> float:
    """Smallest epsilon that the records together are proved to satisfy at this `delta`.

    It is the smallest of four valid bounds: the sum of pure costs, privacy-loss distributions (their tables
    add about `precision` to the relative variance of the loss), Rényi orders, and, if all noise is discrete
    Gaussian, the exact law of continuous Gaussian noise that is hardly smaller. Records with a threshold
    and Laplace noise are added by basic composition, because what is asked after them may depend on what they
    showed (docs/proofs/levels.md). Gaussian noise of a threshold is composed with all other noise, and only
    its delta is added (docs/proofs/terms.md).
    """
    own_delta = sum((record.delta for record in records), Fraction(0))
    if not own_delta:
        return _plain_epsilon_at(records, float(delta), precision)
    if own_delta > delta:
        return math.inf
    own = sum((record.epsilon for record in records if record.delta and record.epsilon), Fraction(0))
    plain = [replace(r, delta=Fraction(0)) for r in records if not (r.delta and r.epsilon is not None)]
    spare = float(Fraction(delta) - own_delta) * (1 - 2**-52)  # rounded down
    # Gaussian thresholds are proved by Rényi orders alone: the law of continuous noise is left out.
    joint = any(record.delta and record.epsilon is None for record in records)
    rest = _plain_epsilon_at(plain, spare, precision, smooth=not joint)
    return rest if math.isinf(rest) else float_up(own + Fraction(repr(rest)))


def epsilon_by_costs(records: Sequence[Record], delta: float) -> float:
    """Epsilon by what the records cost alone, whatever the laws of their noise: for several runs together.

    The law of a later run may depend on what an earlier one showed, such as a cap. Tables of losses do not
    cover such a choice. The pure sum and Rényi orders do, since they bound all laws of equal cost.
    """
    pure = pure_epsilon(records)
    bounds = [math.inf if pure is None else float_up(pure)]
    if delta > 0 and records:
        bounds.append(_renyi_epsilon(records, delta))
    return min(bounds)


def _plain_epsilon_at(
    records: Sequence[Record], delta: float, precision: float, *, smooth: bool = True
) -> float:
    bounds = [epsilon_by_costs(records, delta)]
    if delta > 0 and records:
        bounds.append(_pld_epsilon(records, delta, precision))
        bounds.append(_gaussian_epsilon(records, delta) if smooth else math.inf)
    return min(bounds)


def _is_scalar(record: Record) -> bool:
    # Only then is shifting a single entry by L1 the worst case, and the one-dimensional law applies.
    return record.sensitivity.coordinates == 1


def _pld_epsilon(records: Sequence[Record], delta: float, precision: float) -> float:
    size = math.sqrt(total_rho(records))
    gaussians = [record for record in records if record.epsilon is None]
    if not all(map(_is_scalar, gaussians)):
        return math.inf  # a vector of discrete Gaussians is accounted in zCDP only
    if size > 20:
        return math.inf  # no privacy to speak of: exp(epsilon) overflows
    if delta < SMALLEST_PLD_DELTA or any(record.scale > WIDEST_PLD_SIGMA for record in gaussians):
        return math.inf
    repeats = Counter(replace(record, step="") for record in records)
    steps = [(_losses(record, delta), times) for record, times in repeats.items()]
    interval = max(size, 1e-6) * max(math.sqrt(precision / len(records)), FINEST)
    return composed_epsilon(steps, delta, interval)


def _losses(record: Record, delta: float) -> Losses:
    scale, shift = float(record.scale), record.sensitivity.l1
    if record.epsilon is None:
        return gaussian_losses(scale, shift, delta)
    # Tabulating a long shift is slow and hardly better than the bound for any pure mechanism.
    if record.mechanism == "discrete Laplace" and _is_scalar(record) and shift <= 2**10:
        return laplace_losses(scale, shift)
    return laplace_losses(1 / float(record.epsilon), 1)


def _gaussian_epsilon(records: Sequence[Record], delta: float) -> float:
    """Epsilon of Gaussian noise in any number of entries and steps, by its exact law.

    Discrete noise of variance s^2 is, but for a factor below exp(1e-50) on all probabilities of a run, what a
    random rounding makes of continuous noise of variance s^2 - 9: docs/proofs/composition.md.
    """
    if any(record.epsilon is not None or record.scale < LEAST_SMOOTH_SIGMA for record in records):
        return math.inf
    squares = [2 * record.rho / (1 - ROUNDING_VARIANCE / Fraction(record.scale) ** 2) for record in records]
    mu = math.sqrt(float_up(sum(squares, Fraction(0)))) * (1 + 2.0**-50)
    if not (LEAST_MU <= mu <= LARGEST_MU and delta >= SMALLEST_PLD_DELTA):
        return math.inf  # too little or too much for floats; Rényi orders decide
    below = delta * (1 - DELTA_SLACK)
    highest = mu * (mu / 2 + math.sqrt(2 * math.log(1 / below)))  # there, the first term alone is below delta
    if _gaussian_delta(0.0, mu) <= below:
        return 0.0
    found = brentq(lambda epsilon: _gaussian_delta(epsilon, mu) - below, 0.0, highest, xtol=1e-12, rtol=1e-12)
    return float(found) * (1 + 1e-9) + 1e-11


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """Delta of Gaussian noise of deviation 1 at sensitivity mu (Balle and Wang 2018, Theorem 8)."""
    return math.exp(log_ndtr(mu / 2 - epsilon / mu)) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def _renyi_epsilon(records: Sequence[Record], delta: float) -> float:
    divergences = sum((_renyi_divergence(record) for record in records), np.zeros(()))
    # What the sum and the conversion may lose by rounding is added first.
    above = divergences * (1 + 2.0**-40 + 2.0**-52 * len(records))
    return _converted(above, delta * (1 - 2.0**-40))


def _converted(divergences: NDArray[np.float64], delta: float) -> float:
    """Smallest epsilon that Rényi divergences at all orders imply (Canonne et al. 2020, Proposition 12)."""
    if delta**2 + math.expm1(-float(divergences.min())) > 0:
        return 0.0  # delta is at least the total variation (Bretagnolle and Huber 1979)
    order = RENYI_ORDERS
    epsilons = divergences + np.log1p(-1 / order) - np.log(delta * order) / (order - 1)
    return max(0.0, float(epsilons.min()))


def _renyi_divergence(record: Record) -> NDArray[np.float64]:
    """Bound on the Rényi divergence at each order."""
    zcdp: NDArray[np.float64] = RENYI_ORDERS * float(record.rho)
    if record.epsilon is None:
        return zcdp
    # Randomised response is the worst epsilon-DP mechanism: its divergence bounds all others.
    epsilon, order = float(record.epsilon), RENYI_ORDERS
    log_moment = np.logaddexp(order * epsilon, (1 - order) * epsilon) - np.logaddexp(0, epsilon)
    # Close numbers are subtracted: without an allowance the cost could round to zero or below.
    rounding = 1e-15 * (1 + order * epsilon)
    bound: NDArray[np.float64] = np.minimum(zcdp, (log_moment + rounding) / (order - 1))
    return bound
