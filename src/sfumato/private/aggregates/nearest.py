"""The t rows nearest to each public point: their sums and their distances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import LATTICE_RADIUS, Domain, FloatArray, IntArray, check_shape
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import Aggregate, check_columns

# A coarser lattice than for other sums: every point has a sum of its own, so the noise is a multiple of
# their number and would leave the range of the samplers. A millionth of the domain is far below it.
NEAREST_RADIUS = 2**20
FAR = 2**62  # beyond every distance in lattice units: nearness, FAR - distance, is positive, and 0 is free
NEARNESS = 0  # column of a state; the others hold coordinates


@dataclass(frozen=True, eq=False)
class NearestSums(Aggregate):
    """Per public point: the sum of the lattice coordinates of the t rows nearest to it.

    If there are fewer than t rows, the rest are copies of the farthest point of the domain. The state lists
    the rows themselves, nearest first, in an array of shape (n_points, t, 1 + d); `sums` adds them up. Rows
    at the same distance are ordered by their coordinates, so the result does not depend on the row order.

    Privacy
    -------
    Extend the table with t copies of the farthest point, which come last in the order. Adding a row then
    replaces at most one of the t nearest rows of a point, and removing one does the reverse. The sum of a
    point changes by u - v for two lattice points u, v of the domain: by at most 2 R in every coordinate with
    R = 2^20 (box), or by at most 2 R in L2 norm (ball). Over all n points: L1 <= 2 n d R and L2^2 <= 4 n d
    R^2 (box), L1 <= n floor(2 sqrt(d) R) and L2^2 <= 4 n R^2 (ball). Proof: docs/proofs/source_target.md.
    """

    domain: Domain
    points: FloatArray  # (n_points, d)
    t: int  # at least 1

    def __post_init__(self) -> None:
        check_shape("points", self.points, len(self.points), self.domain.n_features)
        if self.t < 1:
            raise ParameterError(f"`t` must be at least 1, got {self.t}")
        if not np.isfinite(self.points).all():
            raise ParameterError("`points` must be finite, got NaN or infinity somewhere. Drop them")

    @staticmethod
    def sensitivity_in(domain: Domain, n_points: int) -> Sensitivity:
        """Sensitivity of the sums for one row."""
        d, diameter = domain.n_features, 2 * NEAREST_RADIUS
        if domain.radius is None:
            l1, l2_squared = d * diameter, d * diameter**2
        else:
            l1, l2_squared = math.isqrt(d * diameter**2), diameter**2
        return Sensitivity(n_points * l1, n_points * l2_squared, 2 * diameter, n_points * d)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the sums for one row."""
        return self.sensitivity_in(self.domain, len(self.points))

    @property
    def steps(self) -> FloatArray:
        """Width of one unit along each column."""
        return self.domain.lattice_step * (LATTICE_RADIUS // NEAREST_RADIUS)

    def zero(self) -> IntArray:
        return np.zeros((len(self.points), self.t, 1 + self.domain.n_features), dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Insert the rows of a block into the lists of the points they are near."""
        check_columns(rows, self.domain.n_features)
        _add_rows(coarse(self.domain, rows), self._units, relative_steps(self.domain), state)
        return state

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Keep the t nearest of both lists."""
        _add_lists(b, a)
        return a

    def sums(self, state: IntArray) -> IntArray:
        """Sums of the coordinates of the t listed rows, copies included, shape (n_points, d)."""
        summed: IntArray = state[:, :, 1:].sum(axis=1)
        return summed + self._n_free(state)[:, None] * self.farthest

    def means(self, values: IntArray) -> FloatArray:
        """Means, from sums, in the units of the data."""
        means: FloatArray = self.domain.midpoint + values / self.t * self.steps
        return means

    @cached_property
    def farthest(self) -> IntArray:
        """Farthest point of the domain from each point, in lattice coordinates."""
        units = self._units
        if self.domain.radius is None:
            return np.where(units > 0, -NEAREST_RADIUS, NEAREST_RADIUS).astype(np.int64)
        norms = np.linalg.norm(units, axis=1, keepdims=True)
        first_axis = np.eye(1, units.shape[1])
        direction: FloatArray = np.where(norms > 0, units / np.maximum(norms, 1.0), first_axis)
        return np.trunc(-(NEAREST_RADIUS - 1) * direction).astype(np.int64)

    @cached_property
    def _units(self) -> IntArray:
        return coarse(self.domain, self.points)

    def _n_free(self, state: IntArray) -> IntArray:
        free: IntArray = (state[:, :, NEARNESS] == 0).sum(axis=1)
        return free


@dataclass(frozen=True, eq=False)
class NearestDistance(Aggregate):
    """Weighted sum, over public points, of the distances to the t nearest rows.

    Distances are whole lattice units, at most the diameter of the domain. If there are fewer than t rows, as
    in `NearestSums`, the rest have the diameter as distance. `total` adds them up.

    Privacy
    -------
    Adding a row replaces at most one of the t listed distances of a point, by a smaller one. The sum of a
    point changes by 0 to D, the diameter. The total, with weights w_1, ..., w_n, changes by at most D (w_1 +
    ... + w_n), in one entry. Proof: docs/proofs/source_target.md.
    """

    nearest: NearestSums
    weights: IntArray  # (n_points,); at least 0

    def __post_init__(self) -> None:
        check_shape("weights", self.weights, len(self.nearest.points))

    @staticmethod
    def sensitivity_in(domain: Domain, total_weight: int) -> Sensitivity:
        """Sensitivity for one row."""
        change = _diameter(domain) * total_weight
        return Sensitivity(change, change**2, change, 1)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(self.nearest.domain, int(self.weights.sum()))

    @property
    def unit(self) -> float:
        """One unit of the total, as a mean distance in the units of the data."""
        return float(self.nearest.steps.max()) / (self.nearest.t * max(int(self.weights.sum()), 1))

    def zero(self) -> IntArray:
        return self.nearest.zero()

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Insert the rows of a block into the lists."""
        return self.nearest.add(state, rows)

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Keep the t nearest of both lists."""
        return self.nearest.merge(a, b)

    def total(self, state: IntArray) -> IntArray:
        """Weighted sum of all distances, shape (1,)."""
        nearness = state[:, :, NEARNESS]
        distances = np.where(nearness > 0, FAR - nearness, FAR)
        diameter = _diameter(self.nearest.domain)
        return np.array([self.weights @ np.minimum(distances, diameter).sum(axis=1)], dtype=np.int64)


def coarse(domain: Domain, rows: FloatArray) -> IntArray:
    """Rows on the coarser lattice. Truncation towards zero never increases a coordinate or a norm."""
    fine = domain.to_lattice(rows)
    return np.trunc(fine / (LATTICE_RADIUS // NEAREST_RADIUS)).astype(np.int64)


def relative_steps(domain: Domain) -> FloatArray:
    """Lattice steps in units of the widest step, which is also the unit of distances."""
    steps = domain.lattice_step
    return np.asarray(steps / steps.max())


def _diameter(domain: Domain) -> int:
    """Diameter of the domain in whole lattice units, rounded up."""
    width = float(np.linalg.norm(relative_steps(domain))) if domain.radius is None else 1.0
    return math.ceil(2 * NEAREST_RADIUS * width * (1 + 1e-12))


@numba.njit(cache=True, nogil=True)
def _add_rows(units: IntArray, points: IntArray, steps: FloatArray, state: IntArray) -> None:
    n_points, t, width = state.shape
    line = np.empty(width, dtype=np.int64)
    for c in range(n_points):  # the outer loop, so that one list at a time fills the processor's cache
        for i in range(units.shape[0]):
            squares = 0.0
            for j in range(width - 1):
                gap = (units[i, j] - points[c, j]) * steps[j]
                squares += gap * gap
            nearness = FAR - np.int64(math.sqrt(squares))
            if nearness >= state[c, t - 1, NEARNESS]:
                line[NEARNESS] = nearness
                for j in range(width - 1):
                    line[1 + j] = units[i, j]
                _insert(state[c], line)


@numba.njit(cache=True, nogil=True)
def _add_lists(other: IntArray, state: IntArray) -> None:
    for c in range(other.shape[0]):
        for i in range(other.shape[1]):
            if other[c, i, NEARNESS] == 0:
                break
            _insert(state[c], other[c, i])


@numba.njit(cache=True, nogil=True)
def _insert(lines: IntArray, line: IntArray) -> None:
    """Insert a line in order. The last one drops out, which may be the line itself."""
    low, high = 0, lines.shape[0]
    while low < high:
        middle = (low + high) // 2
        if _precedes(line, lines[middle]):
            high = middle
        else:
            low = middle + 1
    for place in range(lines.shape[0] - 1, low, -1):
        for j in range(line.shape[0]):
            lines[place, j] = lines[place - 1, j]
    if low < lines.shape[0]:
        lines[low] = line


@numba.njit(cache=True, nogil=True)
def _precedes(a: IntArray, b: IntArray) -> bool:
    if a[NEARNESS] != b[NEARNESS]:
        return bool(a[NEARNESS] > b[NEARNESS])
    for j in range(1, a.shape[0]):
        if a[j] != b[j]:
            return bool(a[j] < b[j])
    return False
