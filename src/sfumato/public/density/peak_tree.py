"""The merge tree of scored cells: how peaks join as the level falls.

Cells enter from the highest score down. A cell without an earlier neighbour is a peak. A cell that touches
several peaks joins them, and the lower ones end there, at a saddle. Every cell goes to the peak of its
nearest earlier neighbour. Cutting the tree means deciding which peaks are clusters of their own. That is a
walk over the peaks and needs no cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray

_FREE = -1  # marks an empty slot of a hash table
_SMALL_GRID = 2**25  # cells: up to 128 MB a table of all cells is used
_NEIGHBOURS_AT_A_TIME = 2**24  # 64 MB: in many columns, the neighbours of all cells would take gigabytes


@dataclass(frozen=True, eq=False)
class PeakTree:
    """Peaks from the highest to the lowest, and the cells that belong to each.

    Parameters
    ----------
    heights : float array of shape (n_peaks,)
        Score at each peak.
    saddles : float array of shape (n_peaks,)
        Score at which the peak meets a higher one; minus infinity if it never does.
    parents : int array of shape (n_peaks,)
        The peak whose cells it meets there, among those joined to a higher peak; -1 if none.
    peaks : int array of shape (n_cells,)
        Peak of each cell, in the order in which the cells were given.
    bulks : float array of shape (n_peaks,)
        Typical score (self-weighted mean) of the two sides that join at the saddle; the lower of the two.
    """

    heights: FloatArray
    saddles: FloatArray
    parents: IntArray
    peaks: IntArray
    bulks: FloatArray

    @property
    def n_peaks(self) -> int:
        """Number of peaks."""
        return len(self.heights)

    def clusters(self, stands: np.ndarray) -> IntArray:
        """Cluster of each cell if the peaks in `stands` are clusters of their own.

        Every other peak belongs to the cluster it meets first. Clusters are numbered from the highest peak
        down. Cells of a peak that neither stands nor meets another are -1.
        """
        target = np.where(stands | (self.parents < 0), np.arange(self.n_peaks), self.parents)
        while (target[target] != target).any():
            target = target[target]
        number = np.where(stands, np.cumsum(stands) - 1, -1)[target]
        return np.asarray(number[self.peaks], dtype=np.int64)


def grow_peak_tree(
    cells: IntArray,
    scores: FloatArray | IntArray,
    shape: tuple[int, ...],
    offsets: IntArray,
    flat_from: float = np.inf,
) -> PeakTree:
    """Merge tree of scored cells of a grid.

    Parameters
    ----------
    cells : int array
        Flat indices in C order, distinct.
    scores : float array
    shape : tuple of int
        Cells of the grid along each column.
    offsets : int array of shape (n_offsets, d)
        Neighbours of a cell: symmetric, nearest first, with those across a face before all others.
    flat_from : float
        Scores above it count as equal to it.

    Notes
    -----
    Scores above `flat_from` form a plateau. If all face neighbours of a plateau cell are on it too, no other
    neighbours need checking: a step across the face towards any neighbour is at least as near to it
    (docs/proofs/dbscan.md, Lemma 4).
    """
    order = _highest_first(scores, flat_from)
    n = len(order)
    ranked = cells[order]
    ranked_scores: FloatArray = np.minimum(scores, flat_from, dtype=np.float64)[order]
    n_flat = int(np.count_nonzero(ranked_scores >= flat_from))
    sides, table = np.array(shape, dtype=np.int64), _table(ranked, math.prod(shape))
    up = np.arange(n)
    _join_plateau(ranked, n_flat, sides, offsets, table, up)
    peak_of, parents = np.empty(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    saddles, bulks = np.full(n, -np.inf), np.zeros(n)
    mass, squares = ranked_scores.copy(), ranked_scores**2
    _enter_plateau(n_flat, up, peak_of, mass, squares)
    stride = max(1, _NEIGHBOURS_AT_A_TIME // max(1, len(offsets)))
    for first in range(n_flat, n, stride):
        # Neighbours are looked up in grid order, which is kind to the cache, and read by score.
        some = ranked[first : first + stride]
        near = np.empty((len(some), len(offsets)), dtype=np.int32)
        _find_neighbours(some, np.argsort(some), sides, offsets, table, near)
        _grow(ranked_scores, first, near, up, peak_of, parents, saddles, bulks, mass, squares)
    _end(up, bulks, mass, squares)
    tops = np.flatnonzero(peak_of == np.arange(n))
    number = np.full(n + 1, -1, dtype=np.int64)
    number[tops] = np.arange(len(tops))
    peaks = np.empty(n, dtype=np.int64)
    peaks[order] = number[peak_of]
    return PeakTree(ranked_scores[tops], saddles[tops], number[parents[tops]], peaks, bulks[tops])


def _highest_first(scores: FloatArray | IntArray, flat_from: float) -> IntArray:
    """Order of scores from the highest down, ties as they come; quick for whole numbers close together."""
    if scores.dtype != np.int64 or not len(scores) or math.isinf(flat_from):
        return np.argsort(-np.minimum(scores, flat_from), kind="stable")
    keys = np.minimum(scores, math.ceil(flat_from))
    below = keys.max() - keys
    return np.argsort(below.astype(np.uint16) if below.max() < 2**16 else below, kind="stable")


def _table(cells: IntArray, n_cells: int) -> NDArray[Any]:
    """Map from flat index to rank: an array for a small grid, otherwise a hash table with a pair per line."""
    if n_cells <= _SMALL_GRID:
        direct = np.zeros((n_cells, 1), dtype=np.int32)  # memory that is not written to takes no time
        direct[cells, 0] = np.arange(1, len(cells) + 1)
        return direct
    capacity = 2 ** max(1, (2 * len(cells)).bit_length())
    table = np.full((capacity, 2), _FREE, dtype=np.int64)
    _enter(cells, table)
    return table


@numba.njit(cache=True, nogil=True)
def _slot(key: int, capacity: int) -> int:
    # Runs of 16 cells stay together, so neighbours along the last column share cache lines.
    mixed = np.uint64(key >> 4) * np.uint64(0x9E3779B97F4A7C15)
    run = int(np.int64(mixed >> np.uint64(36)))
    return ((run << 4) | (key & 15)) & (capacity - 1)


@numba.njit(cache=True, nogil=True)
def _enter(cells: IntArray, table: IntArray) -> None:
    capacity = table.shape[0]
    for rank in range(cells.size):
        slot = _slot(cells[rank], capacity)
        while table[slot, 0] != _FREE:
            slot = (slot + 1) & (capacity - 1)
        table[slot, 0] = cells[rank]
        table[slot, 1] = rank


@numba.njit(cache=True, nogil=True)
def _locate(cell: int, shape: IntArray, at: IntArray) -> None:
    for j in range(shape.size - 1, -1, -1):
        at[j] = cell % shape[j]
        cell //= shape[j]


@numba.njit(cache=True, nogil=True)
def _neighbour(at: IntArray, offset: IntArray, shape: IntArray, table: NDArray[Any]) -> int:
    """Rank of the cell at an offset, -1 if there is none."""
    key = 0
    for j in range(shape.size):
        along = at[j] + offset[j]
        if along < 0 or along >= shape[j]:
            return -1
        key = key * shape[j] + along
    if table.shape[1] == 1:
        return int(table[key, 0]) - 1
    capacity = table.shape[0]
    slot = _slot(key, capacity)
    while table[slot, 0] != key:
        if table[slot, 0] == _FREE:
            return -1
        slot = (slot + 1) & (capacity - 1)
    return int(table[slot, 1])


@numba.njit(cache=True, nogil=True)
def _root(up: IntArray, cell: int) -> int:
    while up[cell] != cell:
        up[cell] = up[up[cell]]
        cell = up[cell]
    return cell


@numba.njit(cache=True, nogil=True)
def _join_plateau(
    cells: IntArray, n_flat: int, shape: IntArray, offsets: IntArray, table: NDArray[Any], up: IntArray
) -> None:
    """Join the first cells, which all have one score. Every pair is checked once, from its lower side."""
    d = shape.size
    at = np.empty(d, dtype=np.int64)
    for rank in range(n_flat):
        _locate(cells[rank], shape, at)
        n_faces = 0
        for k in range(offsets.shape[0]):
            if k == 2 * d and n_faces == 2 * d:
                break
            first = 0
            while offsets[k, first] == 0:
                first += 1
            if k >= 2 * d and offsets[k, first] < 0:
                continue
            other = _neighbour(at, offsets[k], shape, table)
            if other < 0 or other >= n_flat:
                continue
            n_faces += 1
            if offsets[k, first] > 0:
                a, b = _root(up, rank), _root(up, other)
                up[max(a, b)] = min(a, b)


@numba.njit(cache=True, nogil=True)
def _find_neighbours(
    cells: IntArray,
    in_place: IntArray,
    shape: IntArray,
    offsets: IntArray,
    table: NDArray[Any],
    near: NDArray[np.int32],
) -> None:
    """Ranks of the neighbours of some cells."""
    at = np.empty(shape.size, dtype=np.int64)
    for i in in_place:
        _locate(cells[i], shape, at)
        for k in range(offsets.shape[0]):
            near[i, k] = _neighbour(at, offsets[k], shape, table)


@numba.njit(cache=True, nogil=True)
def _enter_plateau(
    n_flat: int, up: IntArray, peak_of: IntArray, mass: FloatArray, squares: FloatArray
) -> None:
    for rank in range(n_flat):
        root = _root(up, rank)
        peak_of[rank] = root
        if root != rank:
            mass[root] += mass[rank]
            squares[root] += squares[rank]


@numba.njit(cache=True, nogil=True)
def _end(up: IntArray, bulks: FloatArray, mass: FloatArray, squares: FloatArray) -> None:
    for rank in range(up.size):
        if up[rank] == rank:
            bulks[rank] = squares[rank] / mass[rank]


@numba.njit(cache=True, nogil=True)
def _grow(
    scores: FloatArray,
    first: int,
    near: NDArray[np.int32],
    up: IntArray,
    peak_of: IntArray,
    parents: IntArray,
    saddles: FloatArray,
    bulks: FloatArray,
    mass: FloatArray,
    squares: FloatArray,
) -> None:
    """Enter cells from rank `first` on. A component's root in `up` is its highest peak, of least rank."""
    for rank in range(first, first + near.shape[0]):
        peak_of[rank] = rank
        elder, touched = -1, -1
        for k in range(near.shape[1]):
            other = near[rank - first, k]
            if other < 0 or other >= rank:
                continue
            root = _root(up, other)
            if elder < 0:
                elder, touched = root, peak_of[other]
                peak_of[rank] = touched
            elif root != elder:
                younger = max(elder, root)
                if root < elder:
                    touched = peak_of[other]
                elder = min(elder, root)
                up[younger] = elder
                bulks[younger] = min(squares[younger] / mass[younger], squares[elder] / mass[elder])
                mass[elder] += mass[younger]
                squares[elder] += squares[younger]
                saddles[younger] = scores[rank]
                parents[younger] = touched
        if elder >= 0:
            up[rank] = elder
            mass[elder] += mass[rank]
            squares[elder] += squares[rank]
