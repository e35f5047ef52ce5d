"""Sums of clipped displacements per group, with the group's size and number of clipped rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import LATTICE_RADIUS, Domain, FloatArray, IntArray, check_shape
from sfumato.domain.blocks import Block, lies_within
from sfumato.domain.partitions import Partition
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import Grouped
from sfumato.private.aggregates.limbs import LimbSums, carried

# A row weighs a quarter of the radius in the counts: the joint norm is then 6 % above the sum's own norm,
# and the noise of the count moves a mean that lies within a tenth of the radius by less than the sum's own.
COUNT_WEIGHT = LATTICE_RADIUS // 4
LEAST_SUM_RADIUS = 1e-290  # the inverse of a lattice step is finite
LARGEST_UNIT = 2.0**400  # squares stay finite


@dataclass(frozen=True, eq=False)
class GroupedSums(Grouped, LimbSums):
    """Per group: counts of rows and of those beyond a public radius, and the sum of displacements.

    Displacements are measured from a public origin and clipped to the radius. Column 0 counts rows and column
    1 clipped rows, both in units of 2^27. The other columns hold the sum in units of radius / 2^29.

    Privacy
    -------
    A row's group depends only on that row, so adding or removing one row changes the entries of one group
    only: by w = 2^27 in the count, by 0 or w in the count of clipped rows, and by a lattice vector u with
    ||u||_2 <= R = 2^29 in the sum, in exact integers. Hence L2^2 <= 2 w^2 + R^2 and, by Cauchy-Schwarz, L1 <=
    2 w + sqrt(d) R, over 2 + d entries. Origins and radii must be public. Proof: docs/proofs/lattice.md.

    A category counts as at most 4 of these d columns, however many levels it has: in its coordinates, a row
    is a corner of a simplex and the origin a point of it, so the L1 norm of the displacement is at most twice
    its L2 norm. One unit for each covers the rounding of the origin. Proof: docs/proofs/categories.md.
    """

    partition: Partition
    origins: FloatArray  # (n_groups, d)
    radii: FloatArray  # (n_groups,); at least 1e-290
    domain: Domain | None = None  # of rows and origins, if it has categories

    def __post_init__(self) -> None:
        check_shape("origins", self.origins, self.partition.n_cells, self.origins.shape[-1])
        check_shape("radii", self.radii, self.partition.n_cells)
        if not (self.radii >= LEAST_SUM_RADIUS).all():
            raise ParameterError(f"`radii` must be at least {LEAST_SUM_RADIUS:g}, got {self.radii.min():g}")
        # Casting NaN to an integer can give anything, beyond the sensitivity.
        if not (np.isfinite(self.origins).all() and np.isfinite(self.radii).all()):
            raise ParameterError("`origins` and `radii` must be finite, got NaN or infinity somewhere")
        if self.domain is None:
            return
        if not lies_within(self.domain.blocks, self.origins, np.array(self.domain.high)):
            raise ParameterError("`origins` must be distributions in each category, got others. Clip them")
        if not (self.radii >= self.domain.least_radius).all():
            raise ParameterError(f"`radii` must be at least {self.domain.least_radius:g}, got less")

    @staticmethod
    def sensitivity_in(n_features: int, blocks: tuple[Block, ...] = ()) -> Sensitivity:
        """Sensitivity for one row of `n_features` columns, for a plan to declare in advance."""
        squared_l1 = n_features + sum(block.squared_l1 - block.size for block in blocks)
        l1 = 2 * COUNT_WEIGHT + math.isqrt(squared_l1 * LATTICE_RADIUS**2) + len(blocks)
        spread = COUNT_WEIGHT + LATTICE_RADIUS if n_features == 1 else 2 * LATTICE_RADIUS
        return Sensitivity(l1, 2 * COUNT_WEIGHT**2 + LATTICE_RADIUS**2, spread, 2 + n_features)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(self.origins.shape[1], self.domain.blocks if self.domain else ())

    def zero(self) -> IntArray:
        return np.zeros((2, len(self.origins), 2 + self.origins.shape[1]), dtype=np.int64)

    @property
    def n_features(self) -> int:
        return int(self.origins.shape[1])

    def add_to_groups(self, state: IntArray, rows: FloatArray, groups: IntArray) -> IntArray:
        """Add the rows of a block to the sums of their groups."""
        steps = self.radii / LATTICE_RADIUS
        add_displacements(rows, groups, self.origins, steps, state[0], COUNT_WEIGHT)
        return carried(state)

    def unpack(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sizes, numbers of clipped rows, and sums of displacements in the units of the data."""
        sizes, clipped = values[:, 0] / COUNT_WEIGHT, values[:, 1] / COUNT_WEIGHT
        return sizes, clipped, values[:, 2:] * (self.radii / LATTICE_RADIUS)[:, None]


def add_displacements(
    rows: FloatArray, groups: IntArray, origins: FloatArray, steps: FloatArray, state: IntArray, weight: int
) -> None:
    """Add each row to the count, the clipped count and the sum of its group. Group -1 is none.

    As for the lattice of a ball: shrink to one unit below the limit, then truncate towards zero, which never
    increases a norm. The spare unit covers the rounding of the norm for up to 2^20 columns. Squares are added
    up from the first column to the last.
    """
    _add_rows(rows, groups, origins, 1.0 / steps, state, weight)


@numba.njit(cache=True, nogil=True)
def _add_rows(
    rows: FloatArray, groups: IntArray, origins: FloatArray, scales: FloatArray, state: IntArray, weight: int
) -> None:
    """One row at a time: while its sums wait for each other, the processor begins the next."""
    limit = float(LATTICE_RADIUS - 1)
    n_columns = rows.shape[1]
    units = np.empty(n_columns)
    for i in range(rows.shape[0]):
        if groups[i] < 0:
            continue
        group = np.uint64(groups[i])
        row, origin, sums = rows[i], origins[group], state[group]
        scale, squares = scales[group], 0.0
        for j in range(n_columns):
            unit = (row[j] - origin[j]) * scale
            unit = unit if unit > -LARGEST_UNIT else -LARGEST_UNIT  # half the time of min and max
            unit = unit if unit < LARGEST_UNIT else LARGEST_UNIT
            units[j] = unit
            squares += unit * unit
        norm = math.sqrt(squares)
        shrink = limit / norm if norm > limit else 1.0
        sums[0] += weight
        sums[1] += weight if norm > limit else 0
        for j in range(n_columns):
            sums[np.uint64(2 + j)] += np.int64(units[j] * shrink)
