"""Sums of the active columns of sparse rows, per group."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import LATTICE_RADIUS, FloatArray, IntArray
from sfumato.domain.partitions import Partition
from sfumato.domain.sparse import Sparse
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import check_columns
from sfumato.private.aggregates.limbs import LimbSums, carried
from sfumato.private.aggregates.sums import COUNT_WEIGHT


@dataclass(frozen=True, eq=False)
class ActiveSums(LimbSums):
    """Per group: the number of rows, and the sum of each column over them. Touches active columns only.

    A row consists of its coordinates, which decide its group, and then of its active columns and their
    values, as `Sparse.coordinates` takes them. Column 0 of the state counts rows in units of 2^27. The others
    hold the sums of all columns, in units of radius / 2^29.

    Parameters
    ----------
    partition : Partition
        Public groups. A row in no group counts nowhere.
    sparse : Sparse
        With its number of columns.

    Privacy
    -------
    A row's group depends only on that row, so adding or removing one row changes the entries of one group
    only: by w = 2^27 in the count, and by a lattice vector u with ||u||_2 <= R = 2^29 in the sums, in exact
    integers. At most m = `max_active` entries of u are not zero: of a row, only columns that follow in
    increasing order count, so each counts once. Hence L2^2 <= w^2 + R^2 and, by Cauchy-Schwarz, L1 <= w +
    sqrt(m) R, over 1 + m entries. The number of columns does not matter. Proof: docs/proofs/sparse.md.
    """

    partition: Partition
    sparse: Sparse

    def __post_init__(self) -> None:
        if self.sparse.n_columns is None:
            raise ParameterError("`n_columns` of `Sparse` must be known, got None")

    @staticmethod
    def sensitivity_in(max_active: int) -> Sensitivity:
        """Sensitivity for one row with at most `max_active` active columns, for a plan to declare."""
        l1 = COUNT_WEIGHT + math.isqrt(max_active * LATTICE_RADIUS**2)
        l2_squared = COUNT_WEIGHT**2 + LATTICE_RADIUS**2
        return Sensitivity(l1, l2_squared, 2 * LATTICE_RADIUS, 1 + max_active)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(int(self.sparse.max_active))

    @property
    def width(self) -> int:
        """Number of coordinates of a row, before its active columns."""
        return self.sparse.width(self._n_columns)

    @property
    def _n_columns(self) -> int:
        assert self.sparse.n_columns is not None
        return self.sparse.n_columns

    def zero(self) -> IntArray:
        return np.zeros((2, self.partition.n_cells, 1 + self._n_columns), dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add the active columns of the rows of a block to the sums of their groups."""
        check_columns(rows, self.width + 2 * self.sparse.n_kept)
        groups = self.partition.index(np.ascontiguousarray(rows[:, : self.width]))
        active = np.ascontiguousarray(rows[:, self.width :])
        _add_active(active, groups, LATTICE_RADIUS / self.sparse.radius, state[0], COUNT_WEIGHT)
        return carried(state)

    def unpack(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sizes, and sums of the columns in the units of the scaled rows."""
        return values[:, 0] / COUNT_WEIGHT, values[:, 1:] * (self.sparse.radius / LATTICE_RADIUS)


@numba.njit(cache=True, nogil=True)
def _add_active(active: FloatArray, groups: IntArray, inverse: float, state: IntArray, weight: int) -> None:
    # As for sums of displacements: shrink to one unit below the limit, then truncate towards zero, which
    # never increases a norm. The spare unit covers the rounding of the norm.
    limit = float(LATTICE_RADIUS - 1)
    largest = 2.0**400
    n_kept = active.shape[1] // 2
    units = np.empty(n_kept)
    places = np.empty(n_kept, dtype=np.int64)
    for i in range(active.shape[0]):
        group = groups[i]
        if group < 0:
            continue
        n, last, squares = 0, -1.0, 0.0
        for a in range(n_kept):
            column, value = active[i, a], active[i, n_kept + a]
            if not (last + 1.0 <= column < state.shape[1] - 1) or math.isnan(value):
                continue  # never so in rows that were read: whatever they hold, a column counts once
            unit = min(max(value * inverse, -largest), largest)
            places[n], units[n] = np.int64(column), unit
            squares += unit * unit
            last, n = math.floor(column), n + 1
        norm = math.sqrt(squares)
        shrink = limit / norm if norm > limit else 1.0
        state[group, 0] += weight
        for a in range(n):
            state[group, 1 + places[a]] += np.int64(units[a] * shrink)
