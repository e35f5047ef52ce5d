"""Histogram of distances from public origins."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.domain.few_blocks import quickest
from sfumato.domain.partitions import Partition
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import Grouped
from sfumato.private.aggregates.displacements import displaced, of_groups, sums_of_squares

LEAST_SCALE, LARGEST_SCALE = 1e-145, 1e145  # their squares neither vanish nor overflow


@dataclass(frozen=True, eq=False)
class Distances(Grouped):
    """Histogram of rows by distance from the public origin of their group, over all groups together.

    Bin b counts distances in [edges[b-1], edges[b]), with 0 and infinity at the ends. If scales are given, a
    distance is first divided by that of the row's group.

    Privacy
    -------
    A row's group, and so its distance and bin, depend only on that row and on public numbers. Adding or
    removing one row changes exactly one entry by exactly 1. Origins, edges and scales must be public. Scales
    are checked before a row is read, so that no row divides by zero. Proof: docs/proofs/counts.md.
    """

    partition: Partition
    origins: FloatArray  # (n_groups, d)
    edges: FloatArray  # (n_bins - 1,); increasing, positive
    scales: FloatArray | None = None  # (n_groups,); from 1e-145 to 1e145

    def __post_init__(self) -> None:
        check_shape("origins", self.origins, self.partition.n_cells, self.origins.shape[-1])
        check_shape("scales", self._scales, self.partition.n_cells)
        if not ((self._scales >= LEAST_SCALE) & (self._scales <= LARGEST_SCALE)).all():
            raise ParameterError(
                f"`scales` must be from {LEAST_SCALE:g} to {LARGEST_SCALE:g}, got {self._scales.min():g} to "
                f"{self._scales.max():g}. Rescale the columns"
            )

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity()

    def zero(self) -> IntArray:
        return np.zeros(len(self.edges) + 1, dtype=np.int64)

    @property
    def n_features(self) -> int:
        return int(self.origins.shape[1])

    def add_to_groups(self, state: IntArray, rows: FloatArray, groups: IntArray) -> IntArray:
        """Count the rows of a block at their distances."""
        count = quickest(_count_distances, _distances_with_numpy)
        count(rows, groups, self.origins, self._scales**2, self.edges**2, state)
        return state

    @property
    def _scales(self) -> FloatArray:
        return np.ones(len(self.origins)) if self.scales is None else self.scales


@numba.njit(cache=True, nogil=True)
def _count_distances(
    rows: FloatArray,
    groups: IntArray,
    origins: FloatArray,
    squared_scales: FloatArray,
    squared_edges: FloatArray,
    state: IntArray,
) -> None:
    n_columns = rows.shape[1]
    for i in range(rows.shape[0]):
        if groups[i] < 0:
            continue
        group = np.uint64(groups[i])
        row, origin, squares = rows[i], origins[group], 0.0
        for j in range(n_columns):
            gap = row[j] - origin[j]
            squares += gap * gap
        squares /= squared_scales[group]
        place = np.int64(0)
        for edge in squared_edges:  # few: processors compare several at once, and no branch goes astray
            place += np.int64(squares >= edge)
        state[place] += 1


def _distances_with_numpy(
    rows: FloatArray,
    groups: IntArray,
    origins: FloatArray,
    squared_scales: FloatArray,
    squared_edges: FloatArray,
    state: IntArray,
) -> None:
    squares = sums_of_squares(displaced(rows, groups, origins)) / of_groups(squared_scales, groups)
    bins = np.searchsorted(squared_edges, squares, side="right")
    np.add.at(state, bins, (groups >= 0).astype(np.int64))
