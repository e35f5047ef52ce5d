"""Total cost of a list of records. It is derived from the records alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np
from dp_accounting import rdp
from dp_accounting.pld import common, privacy_loss_distribution
from numpy.typing import NDArray

from sfumato.budget.records import Record

# The best order is near 1 + sqrt(log(1/delta)/rho): small budgets need large orders.
RENYI_ORDERS = np.concatenate([np.linspace(1.05, 12, 220), np.geomspace(12.2, 2.0**60, 1200)])
# Tables of losses are sums and convolutions of floats: an allowance for their rounding comes off delta. They
# list a discrete Gaussian point by point: wide ones would take minutes. Beyond, Rényi orders alone decide.
PLD_ROUNDING = 1e-14
SMALLEST_PLD_DELTA = 1e-13
WIDEST_PLD_SIGMA = 2**11


def pure_epsilon(records: Sequence[Record]) -> Fraction | None:
    """Sum of the pure costs (basic composition); ``None`` if a record has none."""
    costs = [None if record.delta else record.epsilon for record in records]
    return None if None in costs else sum((c for c in costs if c is not None), Fraction(0))


def total_rho(records: Sequence[Record]) -> Fraction:
    """Sum of the zCDP costs (Bun and Steinke 2016, Lemma 1.7)."""
    return sum((record.rho for record in records), Fraction(0))


def epsilon_at(records: Sequence[Record], delta: float | Fraction, precision: float = 1e-4) -> float:
    """Smallest epsilon that the records together are proved to satisfy at this `delta`.

    It is the smallest of three valid bounds: the sum of pure costs, privacy-loss distributions (tabulated in
    steps of about `precision` times the total, rounded up), and Rényi orders. Records with a threshold are
    added by basic composition, because what is asked after them may depend on what they showed
    (docs/proofs/levels.md).
    """
    own_delta = sum((record.delta for record in records), Fraction(0))
    if not own_delta:
        return _plain_epsilon_at(records, float(delta), precision)
    if own_delta > delta:
        return math.inf
    own = sum((record.epsilon for record in records if record.delta and record.epsilon), Fraction(0))
    plain = [record for record in records if not record.delta]
    spare = float(Fraction(delta) - own_delta) * (1 - 2**-52)  # rounded down
    return float(own) + _plain_epsilon_at(plain, spare, precision)


def _plain_epsilon_at(records: Sequence[Record], delta: float, precision: float) -> float:
    pure = pure_epsilon(records)
    bounds = [math.inf if pure is None else float(pure)]
    if delta > 0 and records:
        bounds += [_pld_epsilon(records, delta, precision), _renyi_epsilon(records, delta)]
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
    parts = [_loss_distribution(r, precision * max(size, 1e-6)).self_compose(n) for r, n in repeats.items()]
    composed = reduce(lambda a, b: a.compose(b), parts)
    return float(composed.get_epsilon_for_delta(delta - PLD_ROUNDING))


def _loss_distribution(record: Record, interval: float) -> privacy_loss_distribution.PrivacyLossDistribution:
    scale, shift = float(record.scale), record.sensitivity.l1
    if record.epsilon is None:
        return privacy_loss_distribution.from_discrete_gaussian_mechanism(
            scale, sensitivity=shift, value_discretization_interval=interval
        )
    # Tabulating a long shift is slow and hardly better than the bound for any pure mechanism.
    if record.mechanism == "discrete Laplace" and _is_scalar(record) and shift <= 2**10:
        return privacy_loss_distribution.from_discrete_laplace_mechanism(
            1 / scale, sensitivity=shift, value_discretization_interval=interval
        )
    return privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(float(record.epsilon), 0.0),
        value_discretization_interval=interval,
    )


def _renyi_epsilon(records: Sequence[Record], delta: float) -> float:
    divergences = sum(_renyi_divergence(record) for record in records)
    epsilon, _ = rdp.compute_epsilon(RENYI_ORDERS, divergences, delta)
    return float(epsilon)


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
