"""Public grids whose cells are cut into parts: more where there is more to see."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.grids import Grid
from sfumato.domain.measure import Measure
from sfumato.errors import ParameterError

_DEEPEST = 8  # of a cell: 256 parts along each column


@dataclass(frozen=True, eq=False)
class NestedGrid:
    """A partition of a box: a coarse grid, each of whose cells is cut into 2^depth parts along every column.

    The parts are the *leaves*. They are numbered coarse cell by coarse cell, and within one in C order. The
    *fine* grid has cells that no border of a leaf cuts.

    Parameters
    ----------
    coarse : Grid
    depths : int array, one per coarse cell
        From 0 to `deepest`.
    deepest : int
        The fine grid has 2^deepest cells along each side of a coarse one.

    Examples
    --------
    >>> nested = NestedGrid(Grid((0.0,), (2.0,), (2,)), np.array([0, 2]), 2)
    >>> nested.n_cells
    5
    >>> nested.index(np.array([[0.1], [0.9], [1.1], [1.9]]))
    array([0, 0, 1, 4])
    """

    coarse: Grid
    depths: IntArray
    deepest: int

    @classmethod
    def plain(cls, grid: Grid) -> NestedGrid:
        """A grid whose cells stay whole."""
        return cls(grid, np.zeros(grid.n_cells, dtype=np.int64), 0)

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        shape = (self.coarse.n_cells,)
        if self.depths.shape != shape or self.depths.dtype != np.int64 or not 0 <= self.deepest <= _DEEPEST:
            raise ParameterError(f"`depths` must be {shape[0]} integers, and `deepest` from 0 to {_DEEPEST}")
        if (self.depths < 0).any() or (self.depths > self.deepest).any():
            raise ParameterError(f"`depths` must be from 0 to {self.deepest}")

    def __getstate__(self) -> dict[str, Any]:
        """Only the parts: what is computed from them is computed again."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.coarse.shape)

    @cached_property
    def fine(self) -> Grid:
        """Grid of the smallest parts that there may be."""
        return self.coarse.refined(2**self.deepest)

    @cached_property
    def n_parts(self) -> IntArray:
        """Number of leaves of each coarse cell."""
        return np.asarray(2 ** (self.n_features * self.depths), dtype=np.int64)

    @property
    def n_cells(self) -> int:
        """Number of leaves."""
        return int(self.n_parts.sum())

    @cached_property
    def homes(self) -> IntArray:
        """Coarse cell of each leaf."""
        return np.repeat(np.arange(self.coarse.n_cells), self.n_parts)

    @cached_property
    def volumes(self) -> IntArray:
        """Number of fine cells in each leaf."""
        own: IntArray = 2 ** (self.n_features * (self.deepest - self.depths))
        return np.asarray(own[self.homes], dtype=np.int64)

    @cached_property
    def leaves(self) -> IntArray:
        """Leaf of each fine cell, in C order."""
        firsts = np.cumsum(self.n_parts) - self.n_parts
        places = np.indices(self.fine.shape, sparse=True)
        home = np.zeros(self.fine.shape, dtype=np.int64)
        for place, m in zip(places, self.coarse.shape, strict=True):
            home = home * m + (place >> self.deepest)
        depth, inner = self.depths[home], np.zeros(self.fine.shape, dtype=np.int64)
        for place in places:
            within = place & ((1 << self.deepest) - 1)
            inner = (inner << depth) + (within >> (self.deepest - depth))
        return np.asarray((firsts[home] + inner).ravel(), dtype=np.int64)

    def index(self, rows: ArrayLike) -> IntArray:
        """Leaf of each row; rows outside the box count in the nearest one."""
        return self.leaves[self.fine.index(rows)]

    def spread(self, values: FloatArray) -> FloatArray:
        """Values of leaves as an array over the fine grid, evenly shared among a leaf's cells."""
        shared: FloatArray = (values / self.volumes)[self.leaves]
        return shared.reshape(self.fine.shape)

    def moved(self, measure: Measure) -> NestedGrid:
        """The same leaves in other units."""
        return replace(self, coarse=self.coarse.moved(measure))
