"""What the density methods share: releasing a histogram and returning spans."""

from __future__ import annotations

import os
from abc import ABC
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.parameters import parameter
from sfumato.cluster.shared.traits import Cells
from sfumato.curator import Questions, Table
from sfumato.domain import FloatArray, Grid, Outside
from sfumato.domain.constraints import one_of
from sfumato.domain.scaling import ALIKE_FOR_SHAPES
from sfumato.public.density.geometry import check_longitude_first
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.spans import Span

BYTES_PER_CELL = 100  # of a dense histogram: one state per thread (up to eight), noise, sums
BYTES_PER_LISTED = 400  # of a sparse histogram: table, blocks, tree
N_FALSE = 2**17  # empty cells that a sparse histogram lists on average: limits its memory to about 50 MB


class DensityClusterer(PrivateClusterer, ABC):
    """Base of the methods whose model is a set of spans."""

    _most_columns = 6  # a cell has 3^d - 1 neighbours
    _explains = False  # spans show by themselves where they are
    _covers = False
    _alike = ALIKE_FOR_SHAPES

    # Rows that were clipped to the edge would look like a dense place there.
    outside: Outside = parameter(one_of("clip", "drop"), default="drop", kw_only=True)

    @property
    def _shared_unit(self) -> str | None:
        return "the metric is in metres" if self._is_in_degrees else None

    @property
    def _is_in_degrees(self) -> bool:
        return bool(getattr(self, "metric", "euclidean") == "geo")

    def _open(self, X: Any, **options: Any) -> Table:
        table = super()._open(X, **options)
        if self._is_in_degrees:
            check_longitude_first(table.names)
        return table

    @property
    def spans_(self) -> tuple[Span, ...]:
        """Spans, the largest first."""
        check_is_fitted(self, "release_")
        return tuple(self.release_.model.spans)  # type: ignore[attr-defined]

    def strengths(self, X: Any) -> FloatArray:
        """How firmly each row belongs to its span, from 0 (outside) to 1. Not private, like `predict`.

        Parameters
        ----------
        X : table
            As for `predict`.
        """
        check_is_fitted(self, "release_")
        return self.release_.strengths(X)

    def to_geojson(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Spans of two columns as a GeoJSON feature collection.

        The columns are x and y, or with ``metric="geo"`` longitude and latitude. The same as
        ``release_.to_geojson``.

        Parameters
        ----------
        path : path, optional
            File to write it to.
        """
        check_is_fitted(self, "release_")
        return self.release_.to_geojson(path)


HISTOGRAM = Cells(BYTES_PER_CELL, BYTES_PER_LISTED * N_FALSE, are_spans=True)


def is_dense(grid: Grid, max_memory: float) -> bool:
    """Whether all cells are released: depends on public numbers only."""
    return grid.n_cells * BYTES_PER_CELL <= max_memory


def release_histogram(curator: Questions, step: str, grid: Grid, max_memory: float) -> NoisyHistogram:
    """Noisy counts of all cells if they fit into memory, otherwise of the cells that stand out."""
    if is_dense(grid, max_memory):
        noisy = curator.cells(step, grid)
        return NoisyHistogram(grid, noisy.values, noisy.record.mechanism, float(noisy.record.scale))
    listed = curator.sparse_cells(step, grid, curator.threshold_for(step, grid, N_FALSE))
    return NoisyHistogram(
        grid,
        listed.counts,
        listed.record.mechanism,
        float(listed.record.scale),
        listed.cells,
        listed.threshold,
    )
