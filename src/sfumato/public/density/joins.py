"""Regions of a smoothed density are joined where no valley between them is deeper than noise makes likely.

Every peak of the finest layer is a region. Two neighbouring regions have a border. In each layer, the depth
of the valley is the logarithm of the lower of their two bulks over the density on the border. It is compared
with its standard error, which is small where the border is long or the kernels precise. So a shallow valley
between wide regions counts as much as a deep one between thin regions, and the layer that shows it best
decides. Pairs are joined from the least evident valley on. What was tried: docs/notes/density.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.public.density.scales import Layer

# Tuned: docs/notes/density.md, docs/notes/constants.md#density-tree
# A border follows the places of least density, so it is lower than what it separates by as many standard
# errors of a kernel, even in an even cloud.
_CHOSEN = 1.1
# The densest stretches of a border decide whether it can be crossed: its mean has the density to this power
# as weights.
_POWER = 3

_N_SUMS = 5  # of a border: weights, weights x density, x precision, weights / kernel, squared weights
_NEVER = -1e6  # score of a region that noise alone may have made: it is joined before all others


@dataclass(frozen=True, eq=False)
class Joins:
    """The order in which regions join, until one is left.

    Parameters
    ----------
    pairs : int array of shape (n_regions - 1, 2)
        The region that stays, and the one that joins it.
    scores : float array of shape (n_regions - 1,)
        Depth of the valley between them, in standard errors, when they were joined.
    saddles : float array of shape (n_regions - 1,)
        Density on their border in the finest layer.
    n_kernels : float
        Number of kernels of the finest layer that the grid has room for.
    """

    pairs: IntArray
    scores: FloatArray
    saddles: FloatArray
    n_kernels: float

    @property
    def n_regions(self) -> int:
        """Number of regions before any are joined."""
        return len(self.pairs) + 1

    @property
    def n_doubtful(self) -> int:
        """Number of joins of regions that noise alone may have made; they come first."""
        return self.n_before(_NEVER / 2)

    def n_before(self, score: float) -> int:
        """Number of joins before the first whose valley has at least this score."""
        deep = np.flatnonzero(self.scores >= score)
        return int(deep[0]) if len(deep) else len(self.scores)

    def owners(self, n_joins: int) -> IntArray:
        """Region to which each region belongs after the first `n_joins` joins."""
        up = np.arange(self.n_regions)
        up[self.pairs[:n_joins, 1]] = self.pairs[:n_joins, 0]
        while (up[up] != up).any():
            up = up[up]
        return up


def join_regions(
    regions: IntArray,
    shape: tuple[int, ...],
    layers: list[Layer],
    wanted: FloatArray,
    evidence: FloatArray,
    min_rows: float = 0.0,
) -> Joins:
    """Join neighbouring regions of a grid, from the least evident valley on.

    Parameters
    ----------
    regions : int array
        Region of each cell in C order, from 0 without gaps.
    shape : tuple of int
        Cells of the grid along each column.
    layers : list of Layer
        The finest first.
    wanted : float array of shape (n_layers,)
        Precision that each layer was made for.
    evidence : float array of shape (n_regions,)
        Below 1 if noise alone may have made the region.
    min_rows : float
        Regions with fewer rows are joined first, too.
    """
    d, n_regions, n_layers = len(shape), len(evidence), len(layers)
    masses, squares, kernels = np.zeros((3, n_regions, n_layers))
    ends, faces = _borders(regions, shape, n_regions)
    borders = np.zeros((len(ends), n_layers, _N_SUMS))
    for j, layer in enumerate(layers):
        across = 1 / (2 * math.sqrt(math.pi) * layer.kernel)  # kernels per cell along a column
        masses[:, j] = np.bincount(regions, layer.density, n_regions)
        squares[:, j] = np.bincount(regions, layer.density**2, n_regions)
        kernels[:, j] = np.bincount(regions, across**d, n_regions)
        borders[:, j] = sum(_border_sums(face, layer, across ** (d - 1), len(ends)) for face in faces)
    n_kernels = float(kernels[:, 0].sum())
    pairs = np.zeros((n_regions - 1, 2), dtype=np.int64)
    scores, saddles = np.zeros((2, n_regions - 1))
    _join(ends, borders, masses, squares, kernels, wanted, evidence.copy(), min_rows, pairs, scores, saddles)
    return Joins(pairs, scores, saddles, n_kernels)


class _Faces(NamedTuple):
    """Faces of cells, across one column, between different regions."""

    cells: IntArray  # cell on the lower side
    beyond: IntArray  # cell on the upper side
    pairs: IntArray  # which pair of regions they separate


def _borders(regions: IntArray, shape: tuple[int, ...], n_regions: int) -> tuple[IntArray, list[_Faces]]:
    """Pairs of regions that share a face of a cell, and these faces for each column."""
    places = np.arange(len(regions)).reshape(shape)
    found = []
    for axis in range(len(shape)):
        moved = np.moveaxis(places, axis, 0)
        cells, beyond = moved[:-1].ravel(), moved[1:].ravel()
        differs = regions[cells] != regions[beyond]
        found.append((cells[differs], beyond[differs]))
    keys = [
        np.minimum(regions[cells], regions[beyond]) * n_regions + np.maximum(regions[cells], regions[beyond])
        for cells, beyond in found
    ]
    distinct = np.unique(np.concatenate(keys))
    faces = [_Faces(*sides, np.searchsorted(distinct, key)) for sides, key in zip(found, keys, strict=True)]
    return np.stack(np.divmod(distinct, n_regions), axis=1), faces


def _border_sums(faces: _Faces, layer: Layer, across: FloatArray, n_pairs: int) -> FloatArray:
    """What the faces of each border show in one layer, added up: shape (n_pairs, _N_SUMS)."""
    between = np.sqrt(layer.density[faces.cells] * layer.density[faces.beyond])
    weights = between**_POWER
    values = (np.ones(1), between, layer.precision[faces.cells], across[faces.cells], weights)
    return np.stack([np.bincount(faces.pairs, weights * value, n_pairs) for value in values], axis=1)


@numba.njit(cache=True, nogil=True)
def _score(
    sums: FloatArray,
    masses: FloatArray,
    squares: FloatArray,
    kernels: FloatArray,
    wanted: FloatArray,
    evidence: FloatArray,
    min_rows: float,
    a: int,
    b: int,
) -> float:
    """Depth of the valley between two regions in the layer that shows it best, in standard errors."""
    best = -np.inf
    for j in range(wanted.size):
        weight = sums[j, 0]
        bulk = min(squares[a, j] / masses[a, j], squares[b, j] / masses[b, j])
        border, precision = sums[j, 1] / weight, sums[j, 2] / weight
        along = max(1.0, sums[j, 3] * weight / sums[j, 4])  # kernels along the border
        error = 1 / (precision * along)
        error += (1 / max(1.0, kernels[a, j]) + 1 / max(1.0, kernels[b, j])) / wanted[j]
        best = max(best, (math.log(bulk / border) - _CHOSEN / math.sqrt(precision)) / math.sqrt(error))
    is_doubtful = min(evidence[a], evidence[b]) < 1 or min(masses[a, 0], masses[b, 0]) < min_rows
    return best + (_NEVER if is_doubtful else 0.0)


@numba.njit(cache=True, nogil=True)
def _push(heap: FloatArray, items: IntArray, size: int, key: float, item: int) -> int:
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if heap[up] <= key:
            break
        heap[at], items[at] = heap[up], items[up]
        at = up
    heap[at], items[at] = key, item
    return size + 1


@numba.njit(cache=True, nogil=True)
def _pop(heap: FloatArray, items: IntArray, size: int) -> int:
    """Remove the least, and return how many are left."""
    size -= 1
    key, item, at = heap[size], items[size], 0
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and heap[down + 1] < heap[down]:
            down += 1
        if heap[down] >= key:
            break
        heap[at], items[at] = heap[down], items[down]
        at = down
    heap[at], items[at] = key, item
    return size


@numba.njit(cache=True, nogil=True)
def _take_edges(
    a: int,
    b: int,
    ends: IntArray,
    sums: FloatArray,
    current: FloatArray,
    after: IntArray,
    first: IntArray,
    seen: IntArray,
) -> None:
    """Give the live edges of region b to region a. Edges to a region that a touches, too, are added up.

    Afterwards `seen` has the edge of a to each region that it touches.
    """
    entry = first[a]
    first[a] = -1
    while entry >= 0:
        onward, f, side = after[entry], entry >> 1, entry & 1
        if not np.isnan(current[f]):
            seen[ends[f, 1 - side]] = f
            after[entry] = first[a]
            first[a] = entry
        entry = onward
    entry = first[b]
    while entry >= 0:
        onward, f, side = after[entry], entry >> 1, entry & 1
        if not np.isnan(current[f]):
            other = ends[f, 1 - side]
            if seen[other] >= 0:
                sums[seen[other]] += sums[f]
                current[f] = np.nan
            else:
                ends[f, side] = a
                seen[other] = f
                after[entry] = first[a]
                first[a] = entry
        entry = onward


@numba.njit(cache=True, nogil=True)
def _join(
    ends: IntArray,
    sums: FloatArray,
    masses: FloatArray,
    squares: FloatArray,
    kernels: FloatArray,
    wanted: FloatArray,
    evidence: FloatArray,
    min_rows: float,
    pairs: IntArray,
    scores: FloatArray,
    saddles: FloatArray,
) -> None:
    """Join the pair of the least score until one region is left.

    Edges of a region form a linked list. Edge e is entry 2 e in the list of its first end and 2 e + 1 in that
    of its second. A score in the heap counts only if it is the edge's current one.
    """
    n_edges, n_regions = ends.shape[0], masses.shape[0]
    after = np.full(2 * n_edges, -1, dtype=np.int64)
    first = np.full(n_regions, -1, dtype=np.int64)
    current = np.empty(n_edges)
    heap, items, size = np.empty(4 * n_edges + 16), np.empty(4 * n_edges + 16, dtype=np.int64), 0
    for e in range(n_edges):
        for side in range(2):
            after[2 * e + side] = first[ends[e, side]]
            first[ends[e, side]] = 2 * e + side
        current[e] = _score(
            sums[e], masses, squares, kernels, wanted, evidence, min_rows, ends[e, 0], ends[e, 1]
        )
        size = _push(heap, items, size, current[e], e)
    seen = np.full(n_regions, -1, dtype=np.int64)
    done = 0
    while size > 0:
        key, e = heap[0], items[0]
        size = _pop(heap, items, size)
        if current[e] != key:
            continue
        a, b = ends[e, 0], ends[e, 1]
        if masses[a, 0] < masses[b, 0]:
            a, b = b, a
        pairs[done], scores[done], saddles[done] = (a, b), key, sums[e, 0, 1] / sums[e, 0, 0]
        done += 1
        current[e] = np.nan
        masses[a] += masses[b]
        squares[a] += squares[b]
        kernels[a] += kernels[b]
        evidence[a] = max(evidence[a], evidence[b])
        _take_edges(a, b, ends, sums, current, after, first, seen)
        if size + 2 * n_edges > heap.size:
            size = _tidy(heap, items, size, current)
        entry = first[a]
        while entry >= 0:
            f = entry >> 1
            seen[ends[f, 1 - (entry & 1)]] = -1
            current[f] = _score(
                sums[f], masses, squares, kernels, wanted, evidence, min_rows, ends[f, 0], ends[f, 1]
            )
            size = _push(heap, items, size, current[f], f)
            entry = after[entry]


@numba.njit(cache=True, nogil=True)
def _tidy(heap: FloatArray, items: IntArray, size: int, current: FloatArray) -> int:
    """Remove outdated scores from the heap; each edge keeps at most one."""
    kept = 0
    taken = np.zeros(current.size, dtype=np.bool_)
    keys, edges = heap[:size].copy(), items[:size].copy()
    for i in range(size):
        if keys[i] == current[edges[i]] and not taken[edges[i]]:
            taken[edges[i]] = True
            kept = _push(heap, items, kept, keys[i], edges[i])
    return kept
