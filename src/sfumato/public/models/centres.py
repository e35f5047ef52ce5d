"""Clusters around centres."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.domain import FloatArray, IntArray, Measure
from sfumato.domain.partitions import Voronoi
from sfumato.errors import ParameterError
from sfumato.public.cells import CellSynopsis
from sfumato.public.exports.exported import Exported, exported_centres
from sfumato.public.grid.cells import cells_of_grid
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.intervals import Sizes, half_widths
from sfumato.public.kmeans import nearest_centres
from sfumato.public.models.base import check_places, check_sizes


@dataclass(frozen=True, eq=False)
class CentreModel:
    """Clusters around centres; a row belongs to the nearest.

    Parameters
    ----------
    cluster_centers : float array of shape (k, d)
    cluster_sizes : float array of shape (k,)
        Estimated number of rows in each cluster.
    synopsis : GridSynopsis, optional
        The noisy grid from which the centres were computed.
    center_stds : float array of shape (k, d), optional
        How far off the centres may be, as standard deviations. They cover the noise and any other error that
        the method allows for.
    size_stds : float array of shape (k,), optional
        The same for sizes.
    cells : CellSynopsis, optional
        The noisy cells that were merged into clusters.
    """

    cluster_centers: FloatArray
    cluster_sizes: FloatArray
    synopsis: GridSynopsis | None = None
    center_stds: FloatArray | None = None
    size_stds: FloatArray | None = None
    cells: CellSynopsis | None = None

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        k, d = check_places("cluster_centers", self.cluster_centers)
        check_sizes("cluster_sizes", self.cluster_sizes, k)
        check_sizes("center_stds", self.center_stds, k, d)
        check_sizes("size_stds", self.size_stds, k)
        if self.synopsis is not None and len(self.synopsis.grid.shape) != d:
            raise ParameterError(f"the grid must have {d} columns, got {self.synopsis.grid.shape}")
        if self.cells is not None and self.cells.centers.shape[1] != d:
            raise ParameterError(f"cells must have {d} columns, got shape {self.cells.centers.shape}")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.cluster_centers.shape[1])

    @property
    def estimated_sizes(self) -> Sizes:
        """Estimated rows in each cluster, with intervals."""
        return Sizes.of("cluster", self.cluster_sizes, self.size_stds)

    @property
    def centres(self) -> CentreModel:
        """The model itself: its clusters are centres."""
        return self

    @property
    def exported(self) -> tuple[Exported, ...]:
        """Clusters for files of other programs."""
        return exported_centres(self.cluster_centers, self.estimated_sizes, self.center_stds)

    @property
    def picture(self) -> str:
        """Picture in `sfumato.plot` that suits the model."""
        return "centres"

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        found: dict[str, Any] = {
            "cluster_centers": self.cluster_centers,
            "cluster_sizes": self.cluster_sizes,
            "cluster_center_stds": self.center_stds,
            "cluster_size_stds": self.size_stds,
            "n_clusters": len(self.cluster_centers),
        }
        if self.synopsis is not None:
            found |= {"synopsis": self.synopsis, "grid": self.synopsis.grid}
        if self.cells is not None:
            found["cells"] = self.cells
        return found

    @cached_property
    def any_cells(self) -> CellSynopsis | None:
        """The noisy cells, or those that a noisy grid gives, if there is either."""
        if self.cells is None and self.synopsis is not None:
            return cells_of_grid(self.synopsis)
        return self.cells

    def at(self, n_clusters: int) -> CentreModel:
        """Another number of clusters, from the same released cells or grid. Spends nothing.

        Parameters
        ----------
        n_clusters : int
            At most the number of cells.
        """
        if n_clusters == len(self.cluster_centers):
            return self
        if self.cells is not None:
            found = self.cells.at(n_clusters)
            return CentreModel(
                found.centers, found.sizes, None, found.center_stds, found.size_stds, self.cells
            )
        if self.synopsis is None:
            raise ParameterError("`at` must have released cells, got none. Fit with refine=True.")
        if not 1 <= n_clusters <= self.synopsis.grid.n_cells:
            most = self.synopsis.grid.n_cells
            raise ParameterError(f"`n_clusters` must be from 1 to the {most} cells, got {n_clusters}")
        centers, sizes = self.synopsis.cluster(n_clusters)
        return CentreModel(centers, sizes, self.synopsis, *self.synopsis.noise_in(centers, sizes))

    @property
    def partition(self) -> Voronoi:
        """Rows nearest to each centre."""
        return Voronoi(self.cluster_centers)

    def sized(self, sizes: Sizes) -> CentreModel:
        """The same centres with sizes that were counted around them, with intervals."""
        assert sizes.ends is not None
        # The lower ends may be cut off at 0.
        stds = (sizes.ends[1] - sizes.estimates) / half_widths(np.ones(1))
        return replace(self, cluster_sizes=sizes.estimates, size_stds=stds)

    def moved(self, measure: Measure) -> CentreModel:
        """The same centres in other units."""
        return replace(
            self,
            cluster_centers=measure.of(self.cluster_centers),
            center_stds=None if self.center_stds is None else measure.lengths(self.center_stds),
            synopsis=None if self.synopsis is None else self.synopsis.moved(measure),
            cells=None if self.cells is None else self.cells.moved(measure),
        )

    def predict(self, rows: FloatArray) -> IntArray:
        """Index of the nearest centre of each row."""
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        with np.errstate(all="ignore"):  # rows far outside the bounds overflow
            return nearest_centres(rows, self.cluster_centers)
