"""How many more rows each candidate ball would cover."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.private.aggregates.base import Aggregate, check_columns


@dataclass(frozen=True, eq=False)
class Coverage(Aggregate):
    """Per candidate: number of rows within the radius of it but of no point chosen before.

    Privacy
    -------
    Whether a row counts for a candidate depends only on that row and on public numbers. Adding one row
    changes every entry by 0 or +1, removing one by 0 or -1. So the spread is 1 for any number of candidates,
    and L1 = L2^2 = m over m entries. Candidates, chosen points and radius must be public. Proof:
    docs/proofs/kmeans.md.
    """

    candidates: FloatArray  # (m, d)
    chosen: FloatArray  # (c, d); may be empty
    radius: float  # positive

    def __post_init__(self) -> None:
        check_shape("chosen", self.chosen, len(self.chosen), self.candidates.shape[-1])

    @staticmethod
    def sensitivity_of(n_candidates: int) -> Sensitivity:
        """Sensitivity for one row and `n_candidates` candidates, for a plan to declare in advance."""
        return Sensitivity(l1=n_candidates, l2_squared=n_candidates, spread=1, coordinates=n_candidates)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_of(len(self.candidates))

    def zero(self) -> IntArray:
        return np.zeros(len(self.candidates), dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block for every candidate that covers them."""
        check_columns(rows, self.candidates.shape[1])
        columns = np.ascontiguousarray(self.candidates.T)
        _count_covered(rows, columns, np.ascontiguousarray(self.chosen), self.radius**2, state)
        return state


@numba.njit(cache=True, nogil=True)
def _is_covered(row: FloatArray, chosen: FloatArray, squared_radius: float) -> bool:
    for c in range(chosen.shape[0]):
        squares = 0.0
        for j in range(chosen.shape[1]):
            gap = row[j] - chosen[c, j]
            squares += gap * gap
            if squares > squared_radius:
                break
        if squares <= squared_radius:
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _count_covered(
    rows: FloatArray, columns: FloatArray, chosen: FloatArray, squared_radius: float, state: IntArray
) -> None:
    # The innermost loop runs over candidates so that it vectorises.
    n_features, n_candidates = columns.shape
    squares = np.empty(n_candidates)
    for i in range(rows.shape[0]):
        if _is_covered(rows[i], chosen, squared_radius):
            continue
        for c in range(n_candidates):
            squares[c] = 0.0
        for j in range(n_features):
            value = rows[i, j]
            for c in range(n_candidates):
                gap = value - columns[j, c]
                squares[c] += gap * gap
        for c in range(n_candidates):
            state[c] += 1 if squares[c] <= squared_radius else 0
