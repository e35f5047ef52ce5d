"""Number of rows per cell of a partition with too many cells to list."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.domain.partitions import Partition
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import Aggregate

MAX_CELLS = 2**62
SMALLEST_TABLE = 8
AHEAD = 64  # cells
CELL, COUNT = 0, 1  # columns of a state


@dataclass(frozen=True)
class SparseCells(Aggregate):
    """Number of rows in each occupied cell of a public partition of up to 2^62 cells.

    The state is a hash table of shape (1 + capacity, 2). Its first line holds the number of occupied cells;
    each other line holds a cell and its count, or zeros. The capacity is a power of two and depends only on
    the number of occupied cells.

    Privacy
    -------
    The state represents the counts of all cells, the vector of `CellCounts`. A row's cell depends only on
    that row and on public numbers, and cells are disjoint. Adding or removing one row changes one entry of
    that vector, by exactly 1: L1 = L2 = spread = 1, one coordinate. Which cells are occupied, and how many,
    is as secret as the counts. Proof: docs/proofs/histogram.md.

    Notes
    -----
    Starting at its home slot, every cell takes the first slot that no cell of smaller hash takes. This is a
    Gale-Shapley matching of cells to slots, which does not depend on the order of proposals (Blelloch and
    Golovin 2007). So equal tables of rows have equal states, and merging is exactly associative.
    """

    partition: Partition

    def __post_init__(self) -> None:
        if self.partition.n_cells > MAX_CELLS:
            raise ParameterError(
                f"`partition` must have at most 2**62 cells, got {self.partition.n_cells}. Use wider cells"
            )

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity()

    def zero(self) -> IntArray:
        return _empty(SMALLEST_TABLE)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block in their cells."""
        cells, n_done = self.partition.index(rows), 0
        while (n_done := _add_rows(cells, n_done, state)) < len(cells):
            state = _doubled(state)
        return state

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Add the counts cell by cell."""
        small, large = sorted((a, b), key=len)
        state, n_done = large, 1
        while (n_done := _add_slots(small, n_done, state)) < len(small):
            state = _doubled(state)
        return state

    def pairs(self, state: IntArray) -> tuple[IntArray, IntArray]:
        """Occupied cells in increasing order, and their counts."""
        occupied = state[1:][state[1:, COUNT] > 0]
        occupied = occupied[np.argsort(occupied[:, CELL])]
        return occupied[:, CELL].copy(), occupied[:, COUNT].copy()

    def listed(self, state: IntArray) -> IntArray:
        """Occupied cells and their counts as lines, in increasing order of the cells, shape (n, 2)."""
        return np.stack(self.pairs(state), axis=1)

    def from_list(self, lines: IntArray) -> IntArray:
        """State of the lines that `listed` gives. They must be as it gives them."""
        cells, counts = lines.T
        if not (cells[1:] > cells[:-1]).all() or not (counts > 0).all():
            raise ParameterError("`lines` must be increasing cells with counts of at least 1")
        if len(cells) and not 0 <= cells[0] <= cells[-1] < self.partition.n_cells:
            raise ParameterError(f"`lines` must be cells among {self.partition.n_cells}")
        state, n_done = self.zero(), 0
        while (n_done := _add_slots(lines, n_done, state)) < len(lines):
            state = _doubled(state)
        return state


def _empty(capacity: int) -> IntArray:
    return np.zeros((1 + capacity, 2), dtype=np.int64)


def _doubled(state: IntArray) -> IntArray:
    larger = _empty(2 * (len(state) - 1))
    _add_slots(state, 1, larger)
    return larger


@numba.njit(cache=True, nogil=True)
def _hash(cell: int) -> np.uint64:
    # A bijection of 64 bits (the finaliser of MurmurHash3): distinct cells have distinct hashes.
    bits = np.uint64(cell)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return bits ^ (bits >> np.uint64(33))


@numba.njit(cache=True, nogil=True)
def _line_of(state: IntArray, cell: int) -> int:
    """Line that holds a cell, or else the line it should take: empty, or held by a cell of larger hash."""
    last = state.shape[0] - 2  # slots are numbered 0, ..., last and stand in lines 1, ..., last + 1
    own_hash = _hash(cell)
    slot = np.int64(own_hash & np.uint64(last))
    while state[1 + slot, COUNT] > 0 and state[1 + slot, CELL] != cell:
        if _hash(state[1 + slot, CELL]) > own_hash:
            break
        slot = (slot + 1) & last
    return int(1 + slot)


@numba.njit(cache=True, nogil=True)
def _put(state: IntArray, cell: int, count: int) -> bool:
    """Add to the count of a cell. If it is new and half the slots are taken, do nothing and return False."""
    n_slots = state.shape[0] - 1
    line = _line_of(state, cell)
    if state[line, COUNT] > 0 and state[line, CELL] == cell:
        state[line, COUNT] += count
        return True
    if 2 * state[0, CELL] >= n_slots:
        return False
    state[0, CELL] += 1
    while state[line, COUNT] > 0:
        other, other_count = state[line, CELL], state[line, COUNT]
        if _hash(other) > _hash(cell):  # the other cell gives way and moves on
            state[line, CELL], state[line, COUNT] = cell, count
            cell, count = other, other_count
        line = line % n_slots + 1
    state[line, CELL], state[line, COUNT] = cell, count
    return True


@numba.njit(cache=True, nogil=True)
def _add_rows(cells: IntArray, n_done: int, state: IntArray) -> int:
    """Count the cells from ``n_done`` on; stop at the first that needs a larger table.

    The homes of several cells are read ahead, so that these reads wait for memory together.
    """
    last = np.uint64(state.shape[0] - 2)
    lines, ahead = np.empty(AHEAD, dtype=np.int64), np.empty(AHEAD, dtype=np.int64)
    for first in range(n_done, len(cells), AHEAD):
        stop = min(first + AHEAD, len(cells))
        for i in range(first, stop):
            lines[i - first] = 1 + np.int64(_hash(cells[i]) & last)
            ahead[i - first] = state[lines[i - first], CELL]
        for i in range(first, stop):
            line = lines[i - first]
            if state[line, CELL] == cells[i] and state[line, COUNT] > 0:
                state[line, COUNT] += 1
            elif cells[i] >= 0 and not _put(state, cells[i], 1):
                return i
    return len(cells)


@numba.njit(cache=True, nogil=True)
def _add_slots(other: IntArray, n_done: int, state: IntArray) -> int:
    """Add the lines of another table from ``n_done`` on; stop at the first that needs a larger one."""
    for i in range(n_done, len(other)):
        if other[i, COUNT] > 0 and not _put(state, other[i, CELL], other[i, COUNT]):
            return i
    return len(other)
