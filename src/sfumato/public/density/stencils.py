"""Which cells a ball can meet: offsets on a grid of square cells, in units of their width.

A cell is cut into parts, two along each column (or one, if there are many columns). The open ball around a
location in a part meets only cells of that part's stencil. Parts whose distance is below the radius are
neighbours. Squared gaps are exact in floats. A radius at which a ball just touches a cell must be given
slightly smaller, see `dbscan.cell_width`. Proof: docs/proofs/dbscan.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from sfumato.domain import FloatArray, IntArray

MOST_SPLIT_COLUMNS = 3  # a limit: beyond, stencils times parts take too much time and memory


@dataclass(frozen=True, eq=False)
class Stencils:
    """The cells that a ball of a given radius can meet, for each part of a cell that may hold its centre."""

    n_features: int
    radius: float  # in cell widths

    @property
    def parts(self) -> int:
        """Number of parts of a cell along each column."""
        return 2 if self.n_features <= MOST_SPLIT_COLUMNS else 1

    @property
    def reach(self) -> int:
        """Largest offset along a column."""
        return math.ceil(self.radius)

    def box(self) -> int:
        """Number of offsets to check for the stencils. It gives their memory before they are built."""
        return int((2 * self.reach + 1) ** self.n_features)

    def offsets(self) -> list[IntArray]:
        """Offsets of the cells of each part's stencil, parts in C order."""
        inner = [self._gaps(part) for part in self._corners()]
        return [self._grid()[(gap**2).sum(axis=1) < self.radius**2] for gap in inner]

    def size(self) -> int:
        """Number of cells in the largest stencil: the paper's kappa, for whole cells."""
        return max(len(offsets) for offsets in self.offsets())

    def farthest(self) -> float:
        """Largest distance, in cell widths, from a location in a part to a row in its stencil."""
        width = 1 / self.parts
        most = 0.0
        for corner, offsets in zip(self._corners(), self.offsets(), strict=True):
            apart = np.maximum(corner + width - offsets, offsets + 1 - corner)
            most = max(most, float((apart**2).sum(axis=1).max()))
        return math.sqrt(most)

    def _corners(self) -> list[FloatArray]:
        return [np.array(part) / self.parts for part in product(range(self.parts), repeat=self.n_features)]

    def _gaps(self, corner: FloatArray) -> FloatArray:
        """Distance along each column between a part and the cells around it."""
        grid = self._grid()
        gaps: FloatArray = np.maximum(grid - (corner + 1 / self.parts), corner - (grid + 1)).clip(min=0)
        return gaps

    def _grid(self) -> IntArray:
        return _offset_box(self.reach, self.n_features)


def near_offsets(n_features: int, radius: float) -> IntArray:
    """Offsets of the cells closer than `radius` (in cell widths), without the cell itself, nearest first.

    Neighbours across a face come before all others.
    """
    reach = math.ceil(radius)
    offsets = _offset_box(reach, n_features)
    gaps = (np.abs(offsets) - 1).clip(min=0)
    near = offsets[(gaps**2).sum(axis=1) < radius**2]
    return by_distance(near)


def adjacent_offsets(n_features: int) -> IntArray:
    """Offsets of the cells that share a face, an edge or a corner, nearest first."""
    return by_distance(_offset_box(1, n_features))


def by_distance(offsets: IntArray) -> IntArray:
    """Offsets other than zero, nearest first."""
    distances = (offsets**2).sum(axis=1)
    order = np.argsort(distances, kind="stable")
    nearest_first: IntArray = offsets[order[distances[order] > 0]]
    return nearest_first


def _offset_box(reach: int, n_features: int) -> IntArray:
    sides = [np.arange(-reach, reach + 1, dtype=np.int64)] * n_features
    return np.stack([axis.ravel() for axis in np.meshgrid(*sides, indexing="ij")], axis=1)
