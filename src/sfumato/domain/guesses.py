"""Nearest of many public centres by a guess and a proof, for most rows without a look at the other centres.

A tree of splits between the centres guesses one. If a row is closer to it than half the way to the next
centre, no other can be nearer (the triangle inequality, Elkan 2003). The other rows are compared with all
centres. Which centre is found does not depend on the guess. How long that takes does, as in any search that
skips centres: where clusters are apart, it is shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.walks import TOGETHER, Steps, steps_of, take_steps

SURE = 1 - 2.0**-16  # of the squared half way: covers the rounding of distances
ROUNDING = 2.0**-31  # of the largest square, per column: covers the rounding of scores
LEAST_SQUARE = 2.0**-900  # products of smaller numbers may vanish
TRIED = 16  # one in so many rows is tried first; the others are guessed if half of these are sure


@dataclass(frozen=True, eq=False)
class Guesses:
    """How close a row must be to a centre to be sure of it, and a tree whose leaves are centres."""

    centers: FloatArray  # (k, d)
    limits: FloatArray  # (k,); of squared distances; -1 if nothing is ever sure

    def index(self, rows: FloatArray, hints: IntArray | None = None) -> IntArray | None:
        """Nearest centre of each row of which it is sure, else -1. None if it is seldom sure.

        Parameters
        ----------
        rows : float array of shape (n, d)
        hints : int array of shape (n,), optional
            A centre to try for each row, in place of the one that the tree guesses.
        """
        steps, node_centers = self._tree if hints is None else self._no_tree
        out = np.zeros(len(rows), dtype=np.int64) if hints is None else hints.copy()
        first = -(-len(rows) // TRIED)
        for some in (slice(first), slice(first, None)):
            _fill_sure(rows[some], *steps[:4], node_centers, self.centers, self.limits, out[some])
            if 2 * np.count_nonzero(out[:first] >= 0) < first:
                return None
        return out

    @cached_property
    def _tree(self) -> tuple[Steps, IntArray]:
        """Steps of the tree, and the centre of each of its nodes that is a leaf."""
        columns, thresholds, children, leaf_centers = _splits_between(self.centers)
        node_centers = np.concatenate([np.zeros_like(columns), leaf_centers])
        return steps_of(columns, thresholds, children), node_centers

    @property
    def _no_tree(self) -> tuple[Steps, IntArray]:
        """No steps: every centre is a node, at which rows that hint at it begin and end."""
        none = np.empty(0, dtype=np.int64)
        return Steps(none, np.empty(0), none, 0, 0), np.arange(len(self.centers))


def guesses_of(centers: FloatArray, origin: FloatArray) -> Guesses:
    """Guesses among at least two centres whose scores are taken from an origin.

    Notes
    -----
    Let x be a row and g the centre that was guessed, s the distance of g from the nearest other centre, M the
    largest norm of a centre, all relative to the origin and as rounded, in d columns. Limits are given where
    s^2 is at least (d + 3) 2^-31 M^2. There, the rounding of the computed squares is far below 2^-17 of them:
    a row within the limit has ``|x - g| <= s / 2 (1 - 2^-18)``. For any other centre c,
    ``|x - c|^2 - |x - g|^2 >= s (s - 2 |x - g|) >= 2^-18 s^2``, so its score ``x.c - c.c / 2`` is below that
    of g by at least 2^-19 s^2. Since ``|x| <= 2 M``, rounding moves two scores by less than
    6.2 (d + 3) 2^-53 M^2 together, which is less: as computed, too, the score of g is the largest.
    """
    d = centers.shape[1]
    nearest = np.full(len(centers), np.inf)
    _fill_nearest_squares(centers, nearest)
    largest = float(((centers - origin) ** 2).sum(axis=1).max())
    is_clear = nearest >= max((d + 3) * ROUNDING * largest, LEAST_SQUARE)
    return Guesses(centers, np.where(is_clear, SURE / 4 * nearest, -1.0))


def _splits_between(centers: FloatArray) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """Columns, thresholds and children of a tree with one centre per leaf, and the centres of the leaves."""
    k = len(centers)
    columns, thresholds = np.empty(k - 1, dtype=np.int64), np.empty(k - 1)
    children, leaf_centers = np.empty((k - 1, 2), dtype=np.int64), np.empty(k, dtype=np.int64)
    parts, n_inner, n_leaves = [(np.arange(k), -1, 0)], 0, 0
    for members, parent, side in parts:
        if len(members) == 1:
            node, leaf_centers[n_leaves] = -1 - n_leaves, members[0]
            n_leaves += 1
        else:
            node = n_inner
            columns[node], thresholds[node], left, right = _cut(centers[members])
            parts += [(members[left], node, 0), (members[right], node, 1)]
            n_inner += 1
        if parent >= 0:
            children[parent, side] = node
    return columns, thresholds, children, leaf_centers


def _cut(points: FloatArray) -> tuple[int, float, IntArray, IntArray]:
    """Column and threshold of the widest gap with a quarter of the points or more on each side, and these."""
    order = points.argsort(axis=0)
    ordered = np.take_along_axis(points, order, axis=0)
    first = (len(points) - 1) // 4
    middle = ordered[first : len(points) - first]
    place, column = divmod(int((middle[1:] - middle[:-1]).argmax()), points.shape[1])
    n_left = first + place + 1
    threshold = (ordered[n_left - 1, column] + ordered[n_left, column]) / 2
    return column, float(threshold), order[:n_left, column], order[n_left:, column]


@numba.njit(cache=True, nogil=True)
def _square(a: FloatArray, b: FloatArray) -> float:
    """Squared distance, in four sums that do not wait for each other."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    whole = a.size - a.size % 4
    for j in range(0, whole, 4):
        t, u, v, w = a[j] - b[j], a[j + 1] - b[j + 1], a[j + 2] - b[j + 2], a[j + 3] - b[j + 3]
        p, q, r, s = p + t * t, q + u * u, r + v * v, s + w * w
    for j in range(whole, a.size):
        p += (a[j] - b[j]) * (a[j] - b[j])
    return p + q + r + s


@numba.njit(cache=True, nogil=True)
def _fill_sure(
    rows: FloatArray,
    columns: IntArray,
    thresholds: FloatArray,
    children: IntArray,
    depth: int,
    node_centers: IntArray,
    centers: FloatArray,
    limits: FloatArray,
    out: IntArray,
) -> None:
    """Walk on from the nodes in `out` to guesses. Keep those within the limit of their centre, else -1."""
    for first in range(0, rows.shape[0], TOGETHER):
        few, some = rows[first : first + TOGETHER], out[first : first + TOGETHER]
        take_steps(few, columns, thresholds, children, depth, some)
        for i in range(some.size):
            center = np.uint64(node_centers[np.uint64(some[i])])
            is_sure = _square(few[i], centers[center]) < limits[center]  # false for NaN
            some[i] = np.int64(center) if is_sure else -1


@numba.njit(cache=True, nogil=True)
def _fill_nearest_squares(centers: FloatArray, out: FloatArray) -> None:
    """Squared distance of each centre from the nearest other one."""
    for i in range(centers.shape[0]):
        for j in range(i):
            square = _square(centers[i], centers[j])
            out[i], out[j] = min(out[i], square), min(out[j], square)
