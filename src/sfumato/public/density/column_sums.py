"""Sums of a noisy histogram over the stencils of whole cells, one column at a time.

Whether a cell is in a stencil depends on its squared gaps alone, one for each column, which are integers. So
each column adds up its own shifts, and sorts them by the sum of the squared gaps so far. In five columns that
takes some 200 additions for each cell, where the stencil of the widest cells has 3,903.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.domain import IntArray
from sfumato.public.density.stencils import Stencils

_SLAB = 2**16  # sums at a time, which fit into the cache


def whole_cell_sums(counts: IntArray, stencils: Stencils) -> IntArray:
    """Sum over the stencil of every cell, for stencils of cells in one part.

    Besides the sums it holds ``2 * stencils.levels`` numbers for each cell of a slice across the longest
    column, or of a slab of slices that fits into the cache: less than the 100 bytes that a cell of a dense
    histogram is allowed (`density_base.BYTES_PER_CELL`), unless the grid is small.

    Parameters
    ----------
    counts : int array, a dimension for each column
    stencils : Stencils
    """
    longest = int(np.argmax(counts.shape))
    sums = np.zeros(counts.shape, dtype=np.int64)
    source, target = np.moveaxis(counts, longest, 0), np.moveaxis(sums, longest, 0)
    height = max(_SLAB * len(source) // (stencils.levels * counts.size), 1)
    for first in range(0, len(source), height):
        slab = source[first : first + height]
        below = _sums_below(slab, stencils)
        for offset, nearer in _shifts(stencils):
            start, stop = max(first - offset, 0), min(first + len(slab) - offset, len(target))
            if start < stop:
                target[start:stop] += below[nearer - 1, start + offset - first : stop + offset - first]
    return sums


def _sums_below(slab: IntArray, stencils: Stencils) -> IntArray:
    """Sums over the cells of a slice whose squared gaps add up to at most 0, 1, 2, ...: one slab each."""
    levels = np.zeros((stencils.levels, *slab.shape), dtype=np.int64)
    levels[0] = slab
    for axis in range(2, levels.ndim):
        source, shifted = np.moveaxis(levels, axis, 1), np.zeros_like(levels)
        target, n = np.moveaxis(shifted, axis, 1), slab.shape[axis - 1]
        for offset, nearer in _shifts(stencils):
            start, stop = max(-offset, 0), min(n - offset, n)
            if start < stop:
                target[len(levels) - nearer :, start:stop] += source[:nearer, start + offset : stop + offset]
        levels = shifted
    return levels.cumsum(axis=0, out=levels)


def _shifts(stencils: Stencils) -> Iterator[tuple[int, int]]:
    """Offsets along a column, and how many levels of the other columns are near enough for each."""
    for offset in range(-stencils.reach, stencils.reach + 1):
        nearer = stencils.levels - max(abs(offset) - 1, 0) ** 2
        if nearer > 0:
            yield offset, nearer
