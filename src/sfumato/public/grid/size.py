"""How many cells a grid should have: EUGkM (Su et al. 2017) and RUGNIK (Muthukrishnan and Tandon 2026)."""

from __future__ import annotations

import math
from numbers import Real
from typing import Literal

from sfumato.domain.constraints import one_of, whole
from sfumato.errors import ParameterError

Rule = Literal["rugnik", "eugkm"]
RULES = ("rugnik", "eugkm")

_LARGEST = 1e100  # far beyond any budget or table; powers of it stay within floats


def grid_size(n: float, epsilon: float, k: int, d: int, rule: Rule = "rugnik") -> int:
    """Number of cells per side of the grid, by a published rule.

    Parameters
    ----------
    n : float
        Number of rows, noisy or public. Less than 1 counts as 1.
    epsilon : float
        Budget of the grid's counts. For noise other than Laplace, sqrt(2) over its standard deviation.
    k : int
        Number of clusters.
    d : int
        Number of columns.
    rule : {"rugnik", "eugkm"}
        RUGNIK: the integer that minimises h(m), the paper's bound on the error of the k-means objective.
        EUGkM: (n epsilon / 10)^(2 / (2 + d)), rounded.

    Examples
    --------
    >>> grid_size(1600, 1.0, k=8, d=2)
    20
    >>> grid_size(1600, 1.0, k=8, d=2, rule="eugkm")
    13
    """
    whole()("k", k)
    whole(1000)("d", d)
    one_of(*RULES)("rule", rule)
    are_numbers = isinstance(n, Real) and isinstance(epsilon, Real)
    if not (are_numbers and n <= _LARGEST and 0 < epsilon <= _LARGEST):
        raise ParameterError(f"`n` and `epsilon` must be numbers, `epsilon` positive, got {n!r}, {epsilon!r}")
    n = max(float(n), 1.0)
    if rule == "eugkm":
        return max(1, round(math.pow(n * epsilon / 10, 2 / (2 + d))))

    def rises(m: int) -> bool:  # h falls up to its only minimum and rises after it (docs/proofs/grid.md)
        return _rugnik_bound(m + 1, n, epsilon, k, d) >= _rugnik_bound(m, n, epsilon, k, d)

    low, high = 0, 1
    while not rises(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    return high


def _rugnik_bound(m: int, n: float, epsilon: float, k: int, d: int) -> float:
    """h(m) of section III: noise, then the two terms of the quantisation error."""
    noise = math.sqrt(2) * math.pow(m, d / 2) / (epsilon * math.pow(k, 2 / d))
    return noise + 2 / (m * math.pow(k, 1 / d)) * math.sqrt(n / 3) + n / (3 * m**2)
