"""Sums of a noisy histogram over the stencil of every part of every cell. Only large sums are kept.

The grid is processed in blocks with a margin. A block is skipped if its positive counts add up to less than
the least sum of interest, and so is a cell by the counts in its box. The rest is summed in full. The same
kernel serves dense and sparse histograms; blocks without cells are never visited.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numba
import numpy as np

from sfumato.domain import IntArray
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.stencils import Stencils

_BLOCK_CELLS = 512  # of a block, which fits into the cache
_FIRST_ROOM = 2**16  # of a list that grows; limits nothing


class _Blocks(NamedTuple):
    """Geometry of the blocks and of the stencils on them, for the kernels."""

    side: int
    margin: int
    width: int  # side with both margins
    parts: int  # of a cell, along each column
    shape: IntArray  # cells along each column
    n_blocks: IntArray  # along each column
    offsets: IntArray  # (n_parts, largest stencil): flat offsets within a block
    sizes: IntArray  # (n_parts,): cells in each stencil
    strides: IntArray  # of the refined grid
    part_at: IntArray  # (n_parts,): place of each part on the refined grid, from the first of its cell


class _Groups(NamedTuple):
    """Cells of a sparse histogram, grouped by the blocks that contain them, margins included."""

    keys: IntArray  # flat index of each block that has cells
    starts: IntArray  # where its cells begin, and one more
    places: IntArray  # flat index of each cell within its block
    counts: IntArray


def block_bytes(stencils: Stencils) -> int:
    """Memory for the stencils and one block, known before they are built."""
    block = (_side(stencils) + 2 * stencils.reach) ** stencils.n_features
    n_parts = stencils.parts**stencils.n_features
    return int(8 * (4 * block + (stencils.n_features + 2 * n_parts) * stencils.box()))


def large_sums(histogram: NoisyHistogram, stencils: Stencils, least: int) -> tuple[IntArray, IntArray]:
    """Parts whose stencil has a noisy sum of at least `least`, and these sums.

    Parts are flat indices of the grid refined by `stencils.parts`, in increasing order.
    """
    blocks = _blocks(histogram.grid.shape, stencils)
    scratch = np.zeros((3, blocks.width**stencils.n_features), dtype=np.int64)
    if histogram.cells is None:
        counts = histogram.counts
        n_todo = math.prod(int(n) for n in blocks.n_blocks)

        def scan(first: int, found: IntArray, sums: IntArray) -> tuple[int, int]:
            return _scan_dense(first, n_todo, counts, blocks, least, scratch, found, sums)
    else:
        groups = _groups(histogram.cells, histogram.counts, blocks)
        n_todo = len(groups.keys)

        def scan(first: int, found: IntArray, sums: IntArray) -> tuple[int, int]:
            return _scan_sparse(first, groups, blocks, least, scratch, found, sums)

    return _collect(scan, n_todo, blocks)


def _side(stencils: Stencils) -> int:
    return max(2 * stencils.reach, math.floor(math.pow(_BLOCK_CELLS, 1 / stencils.n_features)))


def _blocks(shape: tuple[int, ...], stencils: Stencils) -> _Blocks:
    d, side, margin = stencils.n_features, _side(stencils), stencils.reach
    width = side + 2 * margin
    strides = width ** np.arange(d - 1, -1, -1, dtype=np.int64)
    flat = [offsets @ strides for offsets in stencils.offsets()]
    offsets = np.zeros((len(flat), max(map(len, flat))), dtype=np.int64)
    for row, own in zip(offsets, flat, strict=True):
        row[: len(own)] = own
    cells = np.array(shape, dtype=np.int64)
    sizes = np.array([len(own) for own in flat], dtype=np.int64)
    along = np.append(stencils.parts * cells[1:], 1)
    refined = np.cumprod(along[::-1])[::-1].astype(np.int64)
    part_at = np.array(list(product(range(stencils.parts), repeat=d)), dtype=np.int64) @ refined
    n_blocks = -(-cells // side)
    return _Blocks(side, margin, width, stencils.parts, cells, n_blocks, offsets, sizes, refined, part_at)


def _groups(cells: IntArray, counts: IntArray, blocks: _Blocks) -> _Groups:
    d = len(blocks.shape)
    at = np.stack(np.unravel_index(cells, tuple(blocks.shape)), axis=1).astype(np.int64)
    strides = blocks.width ** np.arange(d - 1, -1, -1, dtype=np.int64)
    keys, places, values = [], [], []
    for shift in product((-1, 0, 1), repeat=d):
        home = at // blocks.side + np.array(shift, dtype=np.int64)
        place = at - home * blocks.side + blocks.margin
        fits = ((home >= 0) & (home < blocks.n_blocks) & (place >= 0) & (place < blocks.width)).all(axis=1)
        keys.append(np.ravel_multi_index(tuple(home[fits].T), tuple(blocks.n_blocks)).astype(np.int64))
        places.append(place[fits] @ strides)
        values.append(counts[fits])
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    distinct, first = np.unique(key[order], return_index=True)
    starts = np.append(first, len(key)).astype(np.int64)
    return _Groups(distinct, starts, np.concatenate(places)[order], np.concatenate(values)[order])


def _collect(
    scan: Callable[[int, IntArray, IntArray], tuple[int, int]], n_todo: int, blocks: _Blocks
) -> tuple[IntArray, IntArray]:
    """Run a kernel until all blocks are done. It stops whenever its output might not fit."""
    room = max(_FIRST_ROOM, blocks.side ** len(blocks.shape) * len(blocks.part_at))
    parts, sums = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    done = 0
    while done < n_todo:
        found, values = np.empty((2, room), dtype=np.int64)
        done, n_found = scan(done, found, values)
        parts.append(found[:n_found])
        sums.append(values[:n_found])
    part = np.concatenate(parts)
    order = np.argsort(part)
    return part[order], np.concatenate(sums)[order]


@numba.njit(cache=True, nogil=True)
def _scan_dense(
    first: int,
    n_todo: int,
    counts: IntArray,
    blocks: _Blocks,
    least: int,
    scratch: IntArray,
    found: IntArray,
    sums: IntArray,
) -> tuple[int, int]:
    """Scan blocks of a dense histogram; return how far it got and how many parts were found."""
    most = blocks.side**blocks.shape.size * blocks.part_at.size
    corner = np.zeros(blocks.shape.size, dtype=np.int64)
    n_found = 0
    for key in range(first, n_todo):
        if n_found + most > found.size:
            return key, n_found
        _corner_of(key, blocks, corner)
        if _fill(counts, blocks, corner, scratch[0]) >= least:
            n_found = _scan(blocks, corner, least, scratch, found, sums, n_found)
    return n_todo, n_found


@numba.njit(cache=True, nogil=True)
def _scan_sparse(
    first: int,
    groups: _Groups,
    blocks: _Blocks,
    least: int,
    scratch: IntArray,
    found: IntArray,
    sums: IntArray,
) -> tuple[int, int]:
    """Scan the blocks in which a sparse histogram has cells, like `_scan_dense`."""
    most = blocks.side**blocks.shape.size * blocks.part_at.size
    corner = np.zeros(blocks.shape.size, dtype=np.int64)
    n_found = 0
    for group in range(first, groups.keys.size):
        if n_found + most > found.size:
            return group, n_found
        start, stop = groups.starts[group], groups.starts[group + 1]
        positive = np.int64(0)
        for k in range(start, stop):
            positive += max(groups.counts[k], 0)
        if positive < least:
            continue
        _corner_of(groups.keys[group], blocks, corner)
        scratch[0, :] = 0
        for k in range(start, stop):
            scratch[0, groups.places[k]] = groups.counts[k]
        n_found = _scan(blocks, corner, least, scratch, found, sums, n_found)
    return groups.keys.size, n_found


@numba.njit(cache=True, nogil=True)
def _corner_of(key: int, blocks: _Blocks, corner: IntArray) -> None:
    for j in range(corner.size - 1, -1, -1):
        corner[j] = key % blocks.n_blocks[j] * blocks.side
        key //= blocks.n_blocks[j]


@numba.njit(cache=True, nogil=True)
def _fill(counts: IntArray, blocks: _Blocks, corner: IntArray, local: IntArray) -> int:
    """Copy a block with its margin, zero beyond the grid; return the sum of its positive counts."""
    last = corner.size - 1
    margin, width, shape = blocks.margin, blocks.width, blocks.shape
    low = max(0, margin - corner[last])
    high = min(width, shape[last] - corner[last] + margin)
    local[:] = 0
    positive = np.int64(0)
    for row in range(width**last):
        rest, start, stride, inside = row, corner[last] - margin, shape[last], True
        for j in range(last - 1, -1, -1):
            along = corner[j] - margin + rest % width
            rest //= width
            inside &= 0 <= along < shape[j]
            start += along * stride
            stride *= shape[j]
        if inside:
            for i in range(low, high):
                local[row * width + i] = counts[start + i]
                positive += max(counts[start + i], 0)
    return int(positive)


@numba.njit(cache=True, nogil=True)
def _scan(
    blocks: _Blocks,
    corner: IntArray,
    least: int,
    scratch: IntArray,
    found: IntArray,
    sums: IntArray,
    n_found: int,
) -> int:
    """Sum the stencils of those cells of one block whose box has enough counts, run by run."""
    last = corner.size - 1
    local = scratch[0]
    bound = scratch[_box_sums(blocks, corner.size, scratch)]
    n_along = min(blocks.side, blocks.shape[last] - corner[last])
    for run in range(blocks.side**last):
        # Where the run begins: in the block with its margin, and on the refined grid.
        rest, place, stride, inside = run, blocks.margin, blocks.width, True
        home = corner[last] * blocks.parts
        for j in range(last - 1, -1, -1):
            along = rest % blocks.side
            rest //= blocks.side
            place += (along + blocks.margin) * stride
            stride *= blocks.width
            inside &= corner[j] + along < blocks.shape[j]
            home += (corner[j] + along) * blocks.parts * blocks.strides[j]
        for i in range(n_along if inside else 0):
            if bound[place + i] >= least:
                cell = home + i * blocks.parts
                n_found = _sum_parts(blocks, local, place + i, cell, least, found, sums, n_found)
    return n_found


@numba.njit(cache=True, nogil=True)
def _sum_parts(
    blocks: _Blocks,
    local: IntArray,
    place: int,
    cell: int,
    least: int,
    found: IntArray,
    sums: IntArray,
    n_found: int,
) -> int:
    """Sum the stencils of the parts of one cell."""
    for part in range(blocks.part_at.size):
        total = np.int64(0)
        for k in range(blocks.sizes[part]):
            total += local[place + blocks.offsets[part, k]]
        if total >= least:
            found[n_found], sums[n_found] = cell + blocks.part_at[part], total
            n_found += 1
    return n_found


@numba.njit(cache=True, nogil=True)
def _box_sums(blocks: _Blocks, d: int, scratch: IntArray) -> int:
    """Sum positive counts in the box around each cell, column by column; return the row of scratch.

    Boxes that leave the block are wrong, but only cells in its margin have them.
    """
    n = blocks.width**d
    source, target = 1, 2
    for i in range(n):
        scratch[source, i] = max(scratch[0, i], 0)
    stride = 1
    for _ in range(d):
        reach = blocks.margin * stride
        sums = scratch[target, reach : n - reach]
        sums[:] = 0
        for first in range(0, 2 * reach + 1, stride):  # one loop per cell of a box: quick, several at once
            counts = scratch[source, first : first + sums.size]
            for i in range(sums.size):
                sums[i] += counts[i]
        stride *= blocks.width
        source, target = target, source
    return source
