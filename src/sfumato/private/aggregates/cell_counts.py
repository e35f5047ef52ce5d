"""Rows per cell of a public grid or of any other public partition."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.domain.partitions import Partition


@dataclass(frozen=True)
class CellCounts:
    """Rows per cell of a public partition, dense; those of a grid in C order.

    Privacy
    -------
    The cell of a row is a function of that row and of public numbers, and the cells are disjoint (rows
    outside a grid count in its nearest border cell; rows in no cell count nowhere). Adding or removing one
    row therefore changes at most one entry, by exactly 1: L1 = L2 = spread = 1, one coordinate.
    Proof: docs/proofs/counts.md.

    Parameters
    ----------
    partition : Partition
    """

    partition: Partition

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for one row."""
        return Sensitivity()

    def zero(self) -> IntArray:
        """Return the state of no rows."""
        return np.zeros(self.partition.n_cells, dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block in their cells."""
        _count(self.partition.index(rows), state)
        return state

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Add the counts cell by cell."""
        return a + b


@numba.njit(cache=True, nogil=True)
def _count(cells: IntArray, state: IntArray) -> None:
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            state[cells[i]] += 1
