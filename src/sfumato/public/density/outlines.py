"""Outlines of places on a map: rings of corners of cells, of all places at once."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from sfumato.domain import MOST_CELLS, IntArray

# The sides of a cell of a map, counter-clockwise from the lower: the step to the neighbour across each, and
# the corner of the cell where each begins.
_ACROSS = np.array([[0, -1], [1, 0], [0, 1], [-1, 0]], dtype=np.int64)
_BEGINS = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.int64)


def outlines_of(shape: tuple[int, ...], groups: Sequence[IntArray]) -> list[list[list[IntArray]]]:
    """Polygons of each group of cells, as rings of corners of cells, shape (m, 2).

    The order is that of GeoJSON (RFC 7946): the outer ring counter-clockwise, then the holes clockwise, each
    with its first corner repeated at the end. Cells of a group that share a side are in the same polygon;
    cells that share only a corner need not be. No ring touches itself.

    Parameters
    ----------
    shape : tuple of int
        Cells of the map along its two columns.
    groups : sequence of int arrays
        Flat indices of cells, sorted and distinct in each group. Groups may overlap.
    """
    n_cells = shape[0] * shape[1]
    if len(groups) > 1 and len(groups) * n_cells > MOST_CELLS:
        return [outlines_of(shape, [cells])[0] for cells in groups]
    cells, owners = np.concatenate(groups), np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    places = np.stack(np.unravel_index(cells, shape), axis=1).astype(np.int64)
    following, parts = _borders(owners * n_cells + cells, places, np.array(shape))
    rings, firsts = _rings(following, places)
    polygons: list[list[IntArray]] = [[] for _ in range(int(parts.max()) + 1)]
    for ring, part in zip(rings, parts[firsts].tolist(), strict=True):
        polygons[part].append(ring)
    found: list[list[list[IntArray]]] = [[] for _ in groups]
    for polygon, owner in zip(polygons, owners[np.unique(parts, return_index=True)[1]].tolist(), strict=True):
        found[owner].append(polygon)
    return found


def _rings(following: IntArray, places: IntArray) -> tuple[list[IntArray], IntArray]:
    """Rings, and the cell at which each begins.

    The first cell of a part has its lower side on the outer ring, so that ring is walked first. A ring begins
    at a corner, because the side that would lead straight to its first side has a lower number.
    """
    n_sides = int((following >= 0).sum())
    walked, firsts = np.empty(n_sides, dtype=np.int64), np.empty(n_sides // 4, dtype=np.int64)
    firsts = firsts[: _walk(following.ravel(), walked, firsts)]
    cells, sides = np.divmod(walked, 4)
    is_corner = np.append(True, sides[1:] != sides[:-1])
    is_corner[firsts] = True
    corners = (places[cells] + _BEGINS[sides])[is_corner]
    ends = np.cumsum(np.add.reduceat(is_corner, firsts, dtype=np.int64))
    closed = np.insert(corners, ends, corners[np.append(0, ends[:-1])], axis=0)
    return np.split(closed, (ends + np.arange(1, len(ends) + 1))[:-1]), cells[firsts]


def _borders(keys: IntArray, places: IntArray, shape: IntArray) -> tuple[IntArray, IntArray]:
    """The side (4 * cell + side) after each side of an outline, else -1; and the part of each cell.

    A walk keeps the place on its left. Where two cells of the same part meet at a corner, it crosses to the
    other cell. Otherwise it would return to this corner and touch itself.
    """
    cells = np.arange(len(keys))
    beside = np.stack([_neighbours(keys, places, shape, step) for step in _ACROSS], axis=1)
    parts = _parts(beside)
    following = np.full((len(cells), 4), -1, dtype=np.int64)
    for side in range(4):
        after = (side + 1) % 4
        ahead = beside[:, after]
        diagonal = _neighbours(keys, places, shape, _ACROSS[side] + _ACROSS[after])
        turns_right = (diagonal >= 0) & ((ahead >= 0) | (parts[diagonal] == parts))
        onward = np.where(ahead >= 0, 4 * ahead + side, 4 * cells + after)
        onward = np.where(turns_right, 4 * diagonal + (side - 1) % 4, onward)
        following[:, side] = np.where(beside[:, side] < 0, onward, -1)
    return following, parts


def _neighbours(keys: IntArray, places: IntArray, shape: IntArray, step: IntArray) -> IntArray:
    """Position of each cell's neighbour among the cells, or -1 if it is not in the same group.

    Keys tell cells of all groups apart. They increase, and those of two neighbours differ by the same number.
    """
    moved, wanted = places + step, keys + step[0] * shape[1] + step[1]
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    is_there = (moved >= 0).all(axis=1) & (moved < shape).all(axis=1) & (keys[found] == wanted)
    return np.where(is_there, found, -1)


@numba.njit(cache=True, nogil=True)
def _parts(beside: IntArray) -> IntArray:
    """Number of the connected part of each cell, in the order of first cells; cells connect by sides."""
    parts, found = np.full(len(beside), -1, dtype=np.int64), np.empty(len(beside), dtype=np.int64)
    n_parts = 0
    for first in range(len(beside)):
        if parts[first] >= 0:
            continue
        parts[first], found[0], n_found = n_parts, first, 1
        while n_found:
            n_found -= 1
            cell = found[n_found]
            for side in range(4):
                other = beside[cell, side]
                if other >= 0 and parts[other] < 0:
                    parts[other], found[n_found] = n_parts, other
                    n_found += 1
        n_parts += 1
    return parts


@numba.njit(cache=True, nogil=True)
def _walk(following: IntArray, walked: IntArray, firsts: IntArray) -> np.int64:
    """List the cycles of `following` one after the other, using it up; return their number."""
    n_rings, length = np.int64(0), np.int64(0)
    for start in range(following.shape[0]):
        if following[start] < 0:
            continue
        firsts[n_rings] = length
        n_rings += 1
        side = np.int64(start)
        while following[side] >= 0:
            walked[length] = side
            length += 1
            onward = following[side]
            following[side] = -1
            side = onward
    return n_rings
