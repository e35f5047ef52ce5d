"""Rows per cluster and bin, for every column that a profile tells about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.domain.partitions import Partition
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import Aggregate, check_columns


@dataclass(frozen=True, eq=False)
class ProfileCounts(Aggregate):
    """Per group and described column: number of rows in each bin, and of rows without a value.

    The first `n_clustered` coordinates of a row decide its group. The others are its values in the described
    columns. Bins are [edges[b], edges[b + 1]); values below the first edge count in the first bin, values
    from the last edge on in the last. NaN and infinite values count in one more bin, after the others.

    Parameters
    ----------
    partition : Partition
        Public groups. A row in no group counts nowhere.
    n_clustered : int
        Coordinates that the partition reads.
    edges : tuple of float arrays
        Public and increasing: one array of at least two edges for each described column.

    Privacy
    -------
    A row's group, and its bin in a column, depend only on that row, on the public partition and on public
    edges. Adding one row adds 1 to exactly one bin of each of C columns in one group, or nothing if it is in
    no group; removing it subtracts that, and no other entry changes: L1 = L2^2 = C over C entries, spread 1.
    The number of groups does not matter, since they are disjoint. Proof: docs/proofs/profiles.md.
    """

    partition: Partition
    n_clustered: int
    edges: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        for edges in self.edges:
            if edges.ndim != 1 or len(edges) < 2:
                raise ParameterError(f"`edges` must have at least two in a row, got shape {edges.shape}")
            if not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
                raise ParameterError("`edges` must be finite and increase in every column. Sort them")

    @staticmethod
    def sensitivity_in(n_columns: int) -> Sensitivity:
        """Sensitivity for one row with `n_columns` described columns, for a plan to declare in advance."""
        return Sensitivity(l1=n_columns, l2_squared=n_columns, spread=1, coordinates=n_columns)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(len(self.edges))

    @cached_property
    def starts(self) -> IntArray:
        """First bin of each column, and the number of all bins."""
        return np.cumsum([0, *(len(edges) for edges in self.edges)])  # one bin fewer than edges, one more

    def zero(self) -> IntArray:
        return np.zeros((self.partition.n_cells, self.starts[-1]), dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block in the bins of their groups."""
        check_columns(rows, self.n_clustered + len(self.edges))
        groups = self.partition.index(np.ascontiguousarray(rows[:, : self.n_clustered]))
        _count_values(rows, self.n_clustered, groups, np.concatenate(self.edges), self.starts, state)
        return state


@numba.njit(cache=True, nogil=True)
def _count_values(
    rows: FloatArray, first: int, groups: IntArray, edges: FloatArray, starts: IntArray, state: IntArray
) -> None:
    for i in range(rows.shape[0]):
        group = groups[i]
        if group < 0:
            continue
        for j in range(starts.shape[0] - 1):
            value = rows[i, first + j]
            start, end = starts[j], starts[j + 1]
            if not np.isfinite(value):
                state[group, end - 1] += 1
                continue
            low, high = start + 1, end - 1  # inner edges at or below the value are those before `low`
            while low < high:
                middle = (low + high) // 2
                if value >= edges[middle]:
                    low = middle + 1
                else:
                    high = middle
            state[group, low - 1] += 1
