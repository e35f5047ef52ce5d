"""Rows per cell of a public grid."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.aggregates.base import Sensitivity
from sfumato.domain import FloatArray, Grid, IntArray, cell_index


@dataclass(frozen=True)
class Cells:
    """Rows per cell of a public grid, dense, in C order.

    Privacy
    -------
    The cell of a row is a function of that row and of the public grid, and the cells are disjoint and cover
    all of space (outside rows count in the nearest border cell). Adding or removing one row therefore changes
    exactly one entry by exactly 1: L1 = L2 = spread = 1, one coordinate. Proof: docs/proofs/counts.md.

    Parameters
    ----------
    grid : Grid
    """

    grid: Grid

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for one row."""
        return Sensitivity()

    def zero(self) -> IntArray:
        """Return the state of no rows."""
        return np.zeros(self.grid.n_cells, dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block in their cells."""
        grid = self.grid
        cells = np.empty(len(rows), dtype=np.int64)
        cell_index(rows, np.array(grid.low), 1 / grid.widths, np.array(grid.shape, dtype=np.int64), cells)
        _count(cells, state)
        return state

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Add the counts cell by cell."""
        return a + b


@numba.njit(cache=True, nogil=True)
def _count(cells: IntArray, state: IntArray) -> None:
    for i in range(cells.shape[0]):
        state[cells[i]] += 1
