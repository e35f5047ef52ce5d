"""Public partitions of space: which group a row belongs to, as a function of that row alone.

A group index depends on nothing but the row and public numbers, in floating point too: sums are taken in one
fixed order, whatever the block in which a row arrives. A matrix product would not do, since it may round a
row differently in another place of the table, and one row could then move another to a different group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numba
import numpy as np

from sfumato.domain import FloatArray, IntArray


class Partition(Protocol):
    """Disjoint groups. Those of `Voronoi`, `Tree` and `Grid` cover all of space."""

    @property
    def n_cells(self) -> int:
        """Number of groups."""

    def index(self, rows: FloatArray) -> IntArray:
        """Group of each row: an integer in [0, n_cells), or -1 for a row that is in none."""


@dataclass(frozen=True, eq=False)
class Voronoi:
    """Each row belongs to the nearest of some public centres; ties go to the first.

    Parameters
    ----------
    centers : float array of shape (k, d), or (k, p) with a projection
    projection : float array of shape (p, d), optional
        Distances are taken from ``projection @ row`` instead of the row itself.
    """

    centers: FloatArray
    projection: FloatArray | None = None

    @property
    def n_cells(self) -> int:
        """Number of groups."""
        return len(self.centers)

    @cached_property
    def _origin(self) -> FloatArray:
        # Measured from among the centres, x.c - c.c/2 loses no digits to a far origin.
        origin: FloatArray = self.centers.mean(axis=0)
        return origin

    @cached_property
    def _columns(self) -> FloatArray:
        return np.ascontiguousarray((self.centers - self._origin).T)

    def index(self, rows: FloatArray) -> IntArray:
        """Nearest centre of each row."""
        out = np.empty(len(rows), dtype=np.int64)
        points = rows if self.projection is None else project(rows, self.projection)
        fill_nearest(points, self._origin, self._columns, (self._columns**2).sum(axis=0) / 2, out)
        return out


@dataclass(frozen=True, eq=False)
class Tree:
    """Leaves of a binary tree of public splits: a row goes left where its column is below the threshold.

    Inner nodes are listed so that every parent comes before its children.

    Parameters
    ----------
    columns : int array of shape (n_inner,)
        Column that each inner node compares.
    thresholds : float array of shape (n_inner,)
    children : int array of shape (n_inner, 2)
        Left and right child: an inner node, or ``-1 - leaf``.
    projection : float array of shape (p, d), optional
        The columns compared are ``projection @ row`` instead of the row's own.
    """

    columns: IntArray
    thresholds: FloatArray
    children: IntArray
    projection: FloatArray | None = None

    @classmethod
    def root(cls, projection: FloatArray | None = None) -> Tree:
        """One leaf for all."""
        none = np.empty(0)
        return cls(none.astype(np.int64), none, none.astype(np.int64).reshape(0, 2), projection)

    @property
    def n_cells(self) -> int:
        """Number of leaves."""
        return len(self.columns) + 1

    def index(self, rows: FloatArray) -> IntArray:
        """Leaf of each row."""
        out = np.zeros(len(rows), dtype=np.int64)
        if len(self.columns):
            values = rows if self.projection is None else project(rows, self.projection)
            _fill_leaves(values, self.columns, self.thresholds, self.children, out)
        return out

    def split(self, leaves: IntArray, columns: IntArray, thresholds: FloatArray) -> Tree:
        """Cut some leaves in two. The left half keeps the leaf's number, right halves are numbered on."""
        first_node, first_leaf = len(self.columns), self.n_cells
        children = self.children.copy()
        for i, leaf in enumerate(leaves):
            children[children == -1 - leaf] = first_node + i
        new = np.stack([-1 - leaves, -1 - (first_leaf + np.arange(len(leaves)))], axis=1)
        return Tree(
            np.concatenate([self.columns, columns]),
            np.concatenate([self.thresholds, thresholds]),
            np.concatenate([children, new]),
            self.projection,
        )


@dataclass(frozen=True, eq=False)
class Subset:
    """Some groups of a partition, numbered anew; the other rows are in none.

    Parameters
    ----------
    partition : Partition
    groups : int array
        Distinct.
    """

    partition: Partition
    groups: IntArray

    @property
    def n_cells(self) -> int:
        """Number of groups."""
        return len(self.groups)

    def index(self, rows: FloatArray) -> IntArray:
        """Group of each row, or -1."""
        numbers = np.full(self.partition.n_cells, -1, dtype=np.int64)
        numbers[self.groups] = np.arange(len(self.groups))
        inner = self.partition.index(rows)
        return np.where(inner < 0, -1, numbers[inner])


def project(rows: FloatArray, projection: FloatArray) -> FloatArray:
    """Multiply each row by a public matrix, rounding every row in the same way wherever it stands."""
    out = np.zeros((len(rows), len(projection)))
    _fill_projected(rows, np.ascontiguousarray(projection.T), out)
    return out


@numba.njit(cache=True, nogil=True)
def fill_nearest(
    rows: FloatArray, origin: FloatArray, columns: FloatArray, half_squares: FloatArray, out: IntArray
) -> None:
    """Fill `out` with the centre of the greatest x.c - c.c/2: the innermost loop vectorises over centres."""
    n_features, n_centers = columns.shape
    whole = n_features - n_features % 4  # four columns at a time: fewer loads and stores of the scores
    scores = np.empty(n_centers)
    for i in range(rows.shape[0]):
        for c in range(n_centers):
            scores[c] = -half_squares[c]
        for j in range(0, whole, 4):
            p, q = rows[i, j] - origin[j], rows[i, j + 1] - origin[j + 1]
            r, s = rows[i, j + 2] - origin[j + 2], rows[i, j + 3] - origin[j + 3]
            for c in range(n_centers):
                scores[c] += (
                    p * columns[j, c] + q * columns[j + 1, c] + r * columns[j + 2, c] + s * columns[j + 3, c]
                )
        for j in range(whole, n_features):
            value = rows[i, j] - origin[j]
            for c in range(n_centers):
                scores[c] += value * columns[j, c]
        best, highest = 0, scores[0]
        for c in range(1, n_centers):
            if scores[c] > highest:
                best, highest = c, scores[c]
        out[i] = best


@numba.njit(cache=True, nogil=True)
def _fill_leaves(
    rows: FloatArray, columns: IntArray, thresholds: FloatArray, children: IntArray, out: IntArray
) -> None:
    for i in range(rows.shape[0]):
        node = np.int64(0)
        while node >= 0:
            node = children[node, 1 if rows[i, columns[node]] >= thresholds[node] else 0]
        out[i] = -1 - node


@numba.njit(cache=True, nogil=True)
def _fill_projected(rows: FloatArray, columns: FloatArray, out: FloatArray) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            value = rows[i, j]
            for p in range(columns.shape[1]):
                out[i, p] += value * columns[j, p]
