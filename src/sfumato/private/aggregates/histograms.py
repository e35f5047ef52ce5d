"""Rows per bin of every column."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import Aggregate, check_columns


@dataclass(frozen=True, eq=False)
class Histograms(Aggregate):
    """Per column: number of rows in each bin [edges[b], edges[b + 1]). Rows outside all bins do not count.

    Privacy
    -------
    A row's bin in a column, if any, depends only on that row and on public edges. Adding one row adds 1 to at
    most one bin of each of d columns, removing one subtracts it, and no other entry changes: L1 = L2^2 = d
    over d entries, spread 1. The edges must be public. Proof: docs/proofs/bounds.md.
    """

    edges: FloatArray  # (d, n_bins + 1); finite and increasing in each column, with at least one bin

    def __post_init__(self) -> None:
        check_shape("edges", self.edges, len(self.edges), max(2, self.edges.shape[-1]))
        if not np.isfinite(self.edges).all() or (np.diff(self.edges) <= 0).any():
            raise ParameterError("`edges` must be finite and increase in every column. Sort them")

    @staticmethod
    def sensitivity_in(n_features: int) -> Sensitivity:
        """Sensitivity for one row of `n_features` columns, for a plan to declare in advance."""
        return Sensitivity(l1=n_features, l2_squared=n_features, spread=1, coordinates=n_features)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(len(self.edges))

    def zero(self) -> IntArray:
        n_features, n_edges = self.edges.shape
        return np.zeros((n_features, n_edges - 1), dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block in their bins."""
        check_columns(rows, len(self.edges))
        _count_bins(rows, np.ascontiguousarray(self.edges), state)
        return state


@numba.njit(cache=True, nogil=True)
def _count_bins(rows: FloatArray, edges: FloatArray, state: IntArray) -> None:
    n_bins = np.int64(state.shape[1])
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = rows[i, j]
            low, high = np.int64(0), n_bins + 1  # edges at or below the value are those before `low`
            while low < high:
                middle = (low + high) // 2
                if value >= edges[j, middle]:
                    low = middle + 1
                else:
                    high = middle
            if 1 <= low <= n_bins:
                state[j, low - 1] += 1
