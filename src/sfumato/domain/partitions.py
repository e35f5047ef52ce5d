"""Public partitions of space: which group a row belongs to, as a function of that row alone.

A group index depends only on the row and on public numbers, even in floating point: sums are taken in a fixed
order, whichever block a row arrives in. A matrix product may round a row differently at another place of the
table, so one row could move another into a different group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.few_blocks import quickest
from sfumato.domain.guesses import Guesses, guesses_of
from sfumato.domain.row_products import fill_nearest, nearest_with_numpy, project
from sfumato.domain.walks import Steps, steps_below, steps_of, walk
from sfumato.errors import ParameterError

# Which second moments of a group are told apart: all, those along columns, or their sum.
MomentShape = Literal["full", "diag", "spherical"]

FAR = 2.0**500  # products of two such numbers, added up over 2^20 columns, stay finite
FAINTEST = -40.0  # log of a responsibility beside which 1 stays 1
LANES = 64  # rows that kernels of mixtures take at a time
COMPARED_CENTERS = 64  # among which kernels search at once: NumPy takes far longer
GUESSED_CENTERS, GUESSED_ROWS = 32, 2  # centres, and rows per centre, from which on guesses pay
_INVERSES = np.array([0.0, *(1.0 / n for n in range(1, 13))])


class Partition(Protocol):
    """Disjoint groups. `Voronoi`, `GaussianCells`, `Tree` and `Grid` cover all of space."""

    @property
    def n_cells(self) -> int:
        """Number of groups."""

    def index(self, rows: FloatArray) -> IntArray:
        """Group of each row: an integer in [0, n_cells), or -1 if it is in none."""


@dataclass(frozen=True, eq=False)
class Voronoi:
    """Each row belongs to the nearest public centre; ties go to the first.

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
        # With an origin among the centres, x.c - c.c/2 loses no digits.
        origin: FloatArray = self.centers.mean(axis=0)
        return origin

    @cached_property
    def _columns(self) -> FloatArray:
        return np.ascontiguousarray((self.centers - self._origin).T)

    @cached_property
    def _half_squares(self) -> FloatArray:
        half: FloatArray = (self._columns**2).sum(axis=0) / 2
        return half

    @cached_property
    def _guesses(self) -> Guesses:
        return guesses_of(np.ascontiguousarray(self.centers), self._origin)

    def index(self, rows: FloatArray) -> IntArray:
        """Nearest centre of each row."""
        points = rows if self.projection is None else project(rows, self.projection)
        if self.n_cells > COMPARED_CENTERS:
            return self._index(points)
        return quickest(Voronoi._index, Voronoi._compared)(self, points)

    def further(self, before: Partition) -> Hints | None:
        """How groups of another partition hint at those of this one; None if they do not."""
        if self.n_cells < GUESSED_CENTERS:
            return None
        if isinstance(before, Voronoi) and before.projection is self.projection:
            return Hints(self, self._index(before.centers))
        return Hints(self, np.arange(self.n_cells)) if before.n_cells == self.n_cells else None

    def _index(self, points: FloatArray, hints: IntArray | None = None) -> IntArray:
        """Nearest centre of each point, by a guess where that is sure."""
        if self.n_cells < GUESSED_CENTERS or len(points) < GUESSED_ROWS * self.n_cells:
            return self._searched(points)
        found = self._guesses.index(np.ascontiguousarray(points), hints)
        search = self._searched if hints is None else self._index  # which guesses by a tree
        if found is None:
            return search(points)
        unsure = np.flatnonzero(found < 0)
        if len(unsure):
            found[unsure] = search(points[unsure])
        return found

    def _compared(self, points: FloatArray) -> IntArray:
        """Nearest of all centres, with NumPy."""
        out = np.empty(len(points), dtype=np.int64)
        nearest_with_numpy(points, self._origin, self._columns, self._half_squares, out)
        return out

    def _searched(self, points: FloatArray) -> IntArray:
        """Nearest of all centres, with kernels."""
        out = np.empty(len(points), dtype=np.int64)
        fill_nearest(points, self._origin, self._columns, self._half_squares, out)
        return out


@dataclass(frozen=True, eq=False)
class Hints:
    """A search for the nearest centre that first tries the one at which an earlier group hints."""

    nearest: Voronoi
    centers: IntArray  # number of a centre for each earlier group

    def index(self, rows: FloatArray, groups: NDArray[np.integer]) -> IntArray:
        """Nearest centre of each row, from its earlier group. The same as `Voronoi.index`."""
        projection = self.nearest.projection
        points = rows if projection is None else project(rows, projection)
        return self.nearest._index(points, self.centers[groups])


@dataclass(frozen=True, eq=False)
class Rings:
    """Each row belongs to a ring around the nearest public centre; beyond the last ring, to no group.

    Ring r of centre c is group ``c * n_rings + r``. It holds distances in ``[edges[r-1], edges[r])``, the
    first from 0.

    Parameters
    ----------
    centers : float array of shape (k, d)
    edges : float array of shape (n_rings,)
        Outer radii: positive, increasing.

    Examples
    --------
    >>> rings = Rings(np.array([[0.0], [10.0]]), np.array([1.0, 3.0]))
    >>> rings.index(np.array([[0.5], [-2.0], [10.0], [4.0]]))
    array([ 0,  1,  2, -1])
    """

    centers: FloatArray
    edges: FloatArray

    @property
    def n_cells(self) -> int:
        """Number of groups."""
        return len(self.centers) * len(self.edges)

    @cached_property
    def _nearest(self) -> Voronoi:
        return Voronoi(self.centers)

    def index(self, rows: FloatArray) -> IntArray:
        """Ring of each row, or -1."""
        out = self._nearest.index(rows)
        _fill_rings(rows, self.centers, self.edges**2, out)
        return out


@dataclass(frozen=True, eq=False)
class Joined:
    """Groups of another partition, joined to fewer.

    Parameters
    ----------
    partition : Partition
        Covers all of space.
    labels : int array, one per group of `partition`
        From 0 without gaps.
    """

    partition: Partition
    labels: IntArray

    @property
    def n_cells(self) -> int:
        """Number of groups."""
        return int(self.labels.max()) + 1

    def index(self, rows: FloatArray) -> IntArray:
        """Group of each row."""
        return self.labels[self.partition.index(rows)]


@dataclass(frozen=True, eq=False)
class GaussianCells:
    """Each row belongs to the component of a public Gaussian mixture with the largest weighted density.

    Ties go to the first. `responsibilities` shares each row among all components instead.

    Parameters
    ----------
    offsets : float array of shape (k,)
        Log weight minus the log determinant of the covariance's Cholesky factor.
    means : float array of shape (k, d)
    whiteners : float array of shape (k, d, d)
        Inverse Cholesky factors of the covariances. Entries above the diagonal are not read.

    Examples
    --------
    >>> cells = GaussianCells.of(np.array([0.5, 0.5]), np.array([[0.0], [4.0]]), np.array([[[1.0]], [[4.0]]]))
    >>> cells.index(np.array([[1.0], [2.0], [-9.0]]))
    array([0, 1, 1])
    """

    offsets: FloatArray
    means: FloatArray
    whiteners: FloatArray

    def __post_init__(self) -> None:
        k, d = self.means.shape
        if k < 1:
            raise ParameterError(f"`means` must have at least one row, got shape {self.means.shape}")
        _check("offsets", self.offsets, k)
        _check("means", self.means, k, d)
        _check("whiteners", self.whiteners, k, d, d)

    @classmethod
    def of(cls, weights: FloatArray, means: FloatArray, covariances: FloatArray) -> GaussianCells:
        """Cells of a mixture with positive weights and positive definite covariances of shape (k, d, d)."""
        k, d = means.shape
        _check("weights", weights, k)
        _check("covariances", covariances, k, d, d)
        if not (weights > 0).all():
            raise ParameterError(f"`weights` must be positive, got {weights.min():g}. Drop the others")
        try:
            factors = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            raise ParameterError(
                "`covariances` must be positive definite, got one that is not. Raise its small eigenvalues"
            ) from None
        log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        return cls(np.log(weights) - log_determinants, means, np.linalg.inv(factors))

    @property
    def n_cells(self) -> int:
        """Number of components."""
        return len(self.means)

    @cached_property
    def _columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        # Components come last so that the innermost loops vectorise over them.
        means, whiteners = np.moveaxis(self.means, 0, -1), np.moveaxis(self.whiteners, 0, -1)
        return (
            np.ascontiguousarray(self.offsets),
            np.ascontiguousarray(means),
            np.ascontiguousarray(whiteners),
        )

    def index(self, rows: FloatArray) -> IntArray:
        """Component with the largest weighted density at each row."""
        out = np.empty(len(rows), dtype=np.int64)
        _fill_likeliest(rows, *self._columns, out)
        return out

    def responsibilities(self, rows: FloatArray) -> FloatArray:
        """Share of each component in the density at each row, times 1 - 2^-32, shape (n, k).

        They depend on the row alone, and rounding never lifts a row's sum above 1: docs/proofs/moments.md.
        """
        out = np.empty((len(rows), self.n_cells))
        _fill_responsibilities(rows, *self._columns, out)
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
        The tree compares the columns of ``projection @ row`` instead of the row's own.
    """

    columns: IntArray
    thresholds: FloatArray
    children: IntArray
    projection: FloatArray | None = None

    @classmethod
    def root(cls, projection: FloatArray | None = None) -> Tree:
        """Tree with a single leaf."""
        none = np.empty(0)
        return cls(none.astype(np.int64), none, none.astype(np.int64).reshape(0, 2), projection)

    @property
    def n_cells(self) -> int:
        """Number of leaves."""
        return len(self.columns) + 1

    def index(self, rows: FloatArray) -> IntArray:
        """Leaf of each row."""
        if not len(self.columns):
            return np.zeros(len(rows), dtype=np.int64)
        return walk(rows if self.projection is None else project(rows, self.projection), self._steps)

    @cached_property
    def _steps(self) -> Steps:
        return steps_of(self.columns, self.thresholds, self.children)

    def further(self, before: Tree) -> Further | None:
        """How rows get from the leaves of a tree from which this one grew to its own; None for other trees.

        Parameters
        ----------
        before : Tree
            Its nodes must be the first of this one. Then the way to each of its leaves is the same here.
        """
        n = len(before.columns)
        is_inner = before.children >= 0
        grew = (
            self.projection is before.projection
            and np.array_equal(self.columns[:n], before.columns)
            and np.array_equal(self.thresholds[:n], before.thresholds)
            and np.array_equal(self.children[:n][is_inner], before.children[is_inner])
        )
        if not grew or len(self.columns) == n:
            return None
        nodes = np.zeros(before.n_cells, dtype=np.int64)
        nodes[-1 - before.children[~is_inner]] = self._steps.children[: 2 * n].reshape(n, 2)[~is_inner]
        return Further(self, nodes, steps_below(self._steps, nodes))

    def split(self, leaves: IntArray, columns: IntArray, thresholds: FloatArray) -> Tree:
        """Cut some leaves in two. The left half keeps the leaf's number; right halves get the next ones."""
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
class Further:
    """The last steps of a walk down a tree, from the leaves of an earlier one."""

    tree: Tree
    nodes: IntArray  # of the tree, at which rows of each earlier leaf begin
    steps: Steps

    def index(self, rows: FloatArray, leaves: NDArray[np.integer]) -> IntArray:
        """Leaf of each row of the tree, from its earlier leaf. The same as `Tree.index`."""
        projection = self.tree.projection
        return walk(rows if projection is None else project(rows, projection), self.steps, self.nodes[leaves])


@dataclass(frozen=True, eq=False)
class Subset:
    """Some groups of a partition, renumbered. Rows of the other groups are in none."""

    partition: Partition
    groups: IntArray  # distinct

    @property
    def n_cells(self) -> int:
        """Number of groups."""
        return len(self.groups)

    def index(self, rows: FloatArray) -> IntArray:
        """Group of each row, or -1."""
        return self.renumbered(self.partition.index(rows))

    def renumbered(self, groups: IntArray) -> IntArray:
        """The groups of rows in the whole partition as groups of this one, or -1."""
        numbers = np.full(self.partition.n_cells + 1, -1, dtype=np.int64)  # the last for rows in none
        numbers[self.groups] = np.arange(len(self.groups))
        return numbers[groups]


def _check(name: str, array: FloatArray, *shape: int) -> None:
    """Raise if a kernel would read past the end of public numbers, or could compute a NaN score."""
    if array.shape != shape:
        raise ParameterError(f"`{name}` must have shape {shape}, got {array.shape}")
    if not (np.abs(array) <= FAR).all():
        raise ParameterError(
            f"`{name}` must be finite and at most {FAR:.3g} in size, got {np.abs(array).max():.3g}. Rescale"
        )


@numba.njit(cache=True, nogil=True)
def _fill_scores(
    points: FloatArray,
    offsets: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    gaps: FloatArray,
    scores: FloatArray,
) -> None:
    """Fill `scores` with the log of each component's weighted density; finite even for distant rows.

    Rows come last in all arrays so that the innermost loops vectorise over them. A row's scores do not depend
    on its place. Zeros in a whitener, as in a diagonal covariance, are skipped.
    """
    n_features, n_components = means.shape
    whitened = np.empty(LANES)
    for c in range(n_components):
        squares = scores[c]
        squares[:] = 0.0
        for i in range(n_features):
            mean, point, gap = means[i, c], points[i], gaps[i]
            for r in range(LANES):
                gap[r] = min(max(point[r] - mean, -FAR), FAR)
            whitened[:] = 0.0
            for j in range(i + 1):
                factor, gap = whiteners[i, j, c], gaps[j]
                if factor != 0.0:
                    for r in range(LANES):
                        whitened[r] += factor * gap[r]
            for r in range(LANES):
                value = min(max(whitened[r], -FAR), FAR)
                squares[r] += value * value
        for r in range(LANES):
            squares[r] = offsets[c] - squares[r] / 2.0


@numba.njit(cache=True, nogil=True)
def _fill_points(rows: FloatArray, start: int, points: FloatArray) -> int:
    """Transpose the next rows into `points`; return their number."""
    n_rows: int = min(LANES, rows.shape[0] - start)
    for r in range(n_rows):
        for j in range(rows.shape[1]):
            points[j, r] = rows[start + r, j]
    return n_rows


@numba.njit(cache=True, nogil=True)
def _fill_likeliest(
    rows: FloatArray, offsets: FloatArray, means: FloatArray, whiteners: FloatArray, out: IntArray
) -> None:
    points, gaps = np.zeros((means.shape[0], LANES)), np.empty((means.shape[0], LANES))
    scores = np.empty((means.shape[1], LANES))
    for start in range(0, rows.shape[0], LANES):
        n_rows = _fill_points(rows, start, points)
        _fill_scores(points, offsets, means, whiteners, gaps, scores)
        for r in range(n_rows):
            best = 0
            for c in range(1, scores.shape[0]):
                if scores[c, r] > scores[best, r]:
                    best = c
            out[start + r] = best


@numba.njit(cache=True, nogil=True)
def _fill_responsibilities(
    rows: FloatArray, offsets: FloatArray, means: FloatArray, whiteners: FloatArray, out: FloatArray
) -> None:
    points, gaps = np.zeros((means.shape[0], LANES)), np.empty((means.shape[0], LANES))
    scores, highest, totals = np.empty((means.shape[1], LANES)), np.empty(LANES), np.empty(LANES)
    for start in range(0, rows.shape[0], LANES):
        n_rows = _fill_points(rows, start, points)
        _fill_scores(points, offsets, means, whiteners, gaps, scores)
        highest[:] = scores[0]
        for c in range(1, scores.shape[0]):
            for r in range(LANES):
                highest[r] = max(highest[r], scores[c, r])
        totals[:] = 0.0
        for c in range(scores.shape[0]):
            shares = scores[c]
            for r in range(LANES):
                shares[r] = _exp(max(shares[r] - highest[r], FAINTEST))
            for r in range(LANES):
                totals[r] += shares[r]
        for r in range(n_rows):
            scale = (1.0 - 2.0**-32) / totals[r]
            for c in range(scores.shape[0]):
                out[start + r, c] = scores[c, r] * scale


@numba.njit(cache=True, nogil=True)
def _exp(exponent: float) -> float:
    """Exponential on [-40, 0] to ten digits: the 64th power of a Taylor polynomial.

    A library's exponential may round differently on another machine or in another vector lane. Additions and
    multiplications do not.
    """
    x = exponent / 64.0
    value = 1.0
    for n in range(12, 0, -1):
        value = 1.0 + x * value * _INVERSES[n]
    for _ in range(6):
        value *= value
    return value


@numba.njit(cache=True, nogil=True)
def _fill_rings(rows: FloatArray, centers: FloatArray, squared_edges: FloatArray, out: IntArray) -> None:
    """Replace the centre of each row by its ring. Squares are added up column by column."""
    n_rings = squared_edges.shape[0]
    for i in range(rows.shape[0]):
        center, squares = out[i], 0.0
        for j in range(rows.shape[1]):
            gap = rows[i, j] - centers[center, j]
            squares += gap * gap
        ring = 0
        while ring < n_rings and not squares < squared_edges[ring]:
            ring += 1
        out[i] = center * n_rings + ring if ring < n_rings else -1
