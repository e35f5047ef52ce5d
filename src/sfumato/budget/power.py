"""What the best attacker can do: true positives at a given rate of false positives.

Proof: docs/proofs/attackers.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from sfumato.budget.costs import epsilon_at, epsilon_by_costs
from sfumato.budget.exact import exp_up
from sfumato.budget.records import Record

# Any deltas are valid. With these, the bound is within 1 % of the exact curve of wide Gaussian noise at the
# rates of false positives that the report shows (tests/budget/test_power.py).
DELTAS = np.concatenate([[0.0], np.geomspace(1e-8, 0.05, 30), np.linspace(0.075, 0.975, 37)])
ROUGH = 2e-3  # precision of loss distributions, which makes the bound hardly larger
ROUNDING = 2.0**-50  # more than what the few operations below can lose


@lru_cache(maxsize=64)
def guarantees(records: tuple[Record, ...], *, one_run: bool) -> tuple[tuple[float, float], ...]:
    """Pairs of epsilon and delta that the records together are proved to satisfy, all at once."""
    pairs = []
    for delta in DELTAS.tolist():
        epsilon = epsilon_at(records, delta, ROUGH) if one_run else epsilon_by_costs(records, delta)
        pairs.append((epsilon, delta))
        if epsilon == 0:
            break  # a larger delta says less
    return tuple(pairs)


def largest_power(pairs: Iterable[tuple[float, float]], false_positive_rate: float) -> float:
    """Largest true positive rate of any test that all these pairs of epsilon and delta allow.

    >>> round(largest_power([(1.0, 0.0)], 0.01), 4), round(largest_power([(1.0, 0.0)], 0.5), 4)
    (0.0272, 0.8161)
    """
    return min([1.0, *(_power(*pair, false_positive_rate) for pair in pairs)])


def _power(epsilon: float, delta: float, rate: float) -> float:
    """The smaller of two lines: one from the false positives, one from the false negatives."""
    if epsilon > 700:  # e to the epsilon overflows, and nothing but `delta` is promised
        return delta if rate == 0 else 1.0
    from_below = rate * exp_up(epsilon) + delta
    from_above = 1 - (1 - rate - delta) * math.exp(-epsilon)
    return min(from_below, from_above) + ROUNDING
