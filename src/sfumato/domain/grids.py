"""Uniform public grids over a box."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.few_blocks import quickest
from sfumato.domain.measure import Measure
from sfumato.domain.space import LARGEST_BOUND, Domain
from sfumato.errors import ParameterError

MOST_CELLS = 2**62  # flat indices of cells are 64-bit integers


@dataclass(frozen=True)
class Grid:
    """A uniform public grid over a box: ``shape[j]`` cells along column j.

    Parameters
    ----------
    low, high : tuple of float
    shape : tuple of int
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.low) == len(self.high) == len(self.shape):
            raise ParameterError(f"`shape` must have one entry per column, got {self.shape}")
        if min(self.shape) < 1:
            raise ParameterError(f"`shape` must be at least 1 in every column, got {self.shape}")

    def check(self) -> None:
        """Raise if a grid, perhaps read from a file, has unusable edges or too many cells."""
        edges = np.array([self.low, self.high])
        in_range = (np.abs(edges) <= 10 * LARGEST_BOUND).all()
        if not in_range or not (self.widths >= 1 / LARGEST_BOUND**2).all():
            raise ParameterError(f"`low` must be below `high`, both finite, got {self.low}, {self.high}")
        if self.n_cells > MOST_CELLS:
            raise ParameterError(f"`shape` must have at most 2^62 cells, got {self.shape}")

    def check_cells(self, cells: IntArray) -> None:
        """Raise unless `cells` is a list of cells in increasing order."""
        is_list = cells.ndim == 1 and (not len(cells) or 0 <= cells[0] <= cells[-1] < self.n_cells)
        if not is_list or (cells[1:] <= cells[:-1]).any():
            raise ParameterError(f"`cells` must be increasing integers from 0 to below {self.n_cells}")

    @classmethod
    def over(cls, domain: Domain, cells_per_side: int) -> Grid:
        """Grid over the domain's box with the same number of cells along every column."""
        return cls(domain.low, domain.high, (cells_per_side,) * domain.n_features)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def widths(self) -> FloatArray:
        """Width of a cell along each column."""
        cells = np.array(self.shape, dtype=np.float64)
        widths: FloatArray = np.array(self.high) / cells - np.array(self.low) / cells
        return widths

    def edges(self) -> list[FloatArray]:
        """Cell borders along each column."""
        return [np.linspace(a, b, m + 1) for a, b, m in zip(self.low, self.high, self.shape, strict=True)]

    def centers(self) -> FloatArray:
        """Cell centres in C order, shape (n_cells, n_features)."""
        middles = [(e[1:] + e[:-1]) / 2 for e in self.edges()]
        return np.stack([axis.ravel() for axis in np.meshgrid(*middles, indexing="ij")], axis=1)

    def centers_of(self, cells: IntArray) -> FloatArray:
        """Centres of some cells, given by flat index, shape (n, n_features)."""
        places = np.unravel_index(cells, self.shape)
        out = np.empty((len(cells), len(self.shape)))
        for j, (edges, place) in enumerate(zip(self.edges(), places, strict=True)):
            out[:, j] = ((edges[1:] + edges[:-1]) / 2)[place]
        return out

    def moved(self, measure: Measure) -> Grid:
        """The same cells in other units."""
        low, high = (tuple(measure.of(np.array(limit)).tolist()) for limit in (self.low, self.high))
        return Grid(low, high, self.shape)

    def refined(self, factor: int) -> Grid:
        """Grid over the same box, with each cell cut into ``factor`` parts along each column."""
        return Grid(self.low, self.high, tuple(m * factor for m in self.shape))

    def index(self, rows: ArrayLike) -> IntArray:
        """Flat cell index of each row in C order; rows outside the box count in the nearest border cell."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        out = np.empty(len(rows), dtype=np.int64)
        fill = quickest(cell_index, _cells_with_numpy)
        fill(rows, np.array(self.low), 1 / self.widths, np.array(self.shape, dtype=np.int64), out)
        return out


@numba.njit(cache=True, nogil=True)
def cell_index(
    rows: FloatArray, low: FloatArray, inverse_width: FloatArray, shape: IntArray, out: IntArray
) -> None:
    """Fill `out` with the flat C-order cell of each row. Clamping before the cast keeps it in range."""
    out[:] = 0
    for j in range(rows.shape[1]):  # column by column: processors work on several rows at once
        origin, scale, last = low[j], inverse_width[j], shape[j] - 1
        for i in range(rows.shape[0]):
            position = (rows[i, j] - origin) * scale
            position = position if position > 0.0 else 0.0  # NaN, too
            position = position if position < last else float(last)
            out[i] = out[i] * shape[j] + min(np.int64(position), last)


def _cells_with_numpy(
    rows: FloatArray, low: FloatArray, inverse_width: FloatArray, shape: IntArray, out: IntArray
) -> None:
    out[:] = 0
    for j, last in enumerate(shape - 1):
        position = (rows[:, j] - low[j]) * inverse_width[j]
        position = np.where(position > 0.0, position, 0.0)
        position = np.where(position < last, position, float(last))
        out *= shape[j]
        out += np.minimum(position.astype(np.int64), last)
