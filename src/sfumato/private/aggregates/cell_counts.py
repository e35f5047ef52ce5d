"""Number of rows in each cell of a public grid or other partition."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.domain.few_blocks import quickest
from sfumato.domain.partitions import Partition
from sfumato.private.aggregates.base import Aggregate


@dataclass(frozen=True)
class CellCounts(Aggregate):
    """Number of rows in each cell of a public partition, empty cells included; a grid's in C order.

    Privacy
    -------
    A row's cell depends only on that row and on public numbers, and the cells are disjoint (rows outside a
    grid count in the nearest border cell; rows in no cell are not counted). Adding or removing one row
    therefore changes at most one entry, by exactly 1: L1 = L2 = spread = 1, one coordinate. Proof:
    docs/proofs/counts.md.
    """

    partition: Partition

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity()

    def zero(self) -> IntArray:
        return np.zeros(self.partition.n_cells, dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block in their cells."""
        quickest(_count, _count_with_numpy)(self.partition.index(rows), state)
        return state


@numba.njit(cache=True, nogil=True)
def _count(cells: IntArray, state: IntArray) -> None:
    for i in range(cells.shape[0]):
        if cells[i] >= 0:
            state[cells[i]] += 1


def _count_with_numpy(cells: IntArray, state: IntArray) -> None:
    np.add.at(state, np.maximum(cells, 0), (cells >= 0).astype(np.int64))
