"""Centres chosen among public targets."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from sfumato.domain import FloatArray, IntArray, Measure, check_shape
from sfumato.domain.partitions import Voronoi
from sfumato.errors import ParameterError
from sfumato.public.exports.exported import Exported, exported_centres
from sfumato.public.models.base import check_places


@dataclass(frozen=True, eq=False)
class SourceTargetModel:
    """Centres chosen among public targets. A sanitised source serves targets too.

    Parameters
    ----------
    cluster_centers : float array of shape (k, d)
    center_indices : int array of shape (k,)
        Index of each centre among the targets.
    sanitized_source : float array of shape (m, d)
    cost : float
        Mean distance from a target to the nearest centre or sanitised point.
    n_representatives : int
        Number of targets about which the private source was asked.
    diff_bound : float, optional
        Bound on the error in the cost that comes from sanitising.
    """

    cluster_centers: FloatArray
    center_indices: IntArray
    sanitized_source: FloatArray
    cost: float
    n_representatives: int
    diff_bound: float | None = None

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        k, d = check_places("cluster_centers", self.cluster_centers)
        check_shape("center_indices", self.center_indices, k)
        if check_places("sanitized_source", self.sanitized_source, least=0)[1] != d:
            raise ParameterError(f"`sanitized_source` must have {d} columns, got another number")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.cluster_centers.shape[1])

    @property
    def exported(self) -> tuple[Exported, ...]:
        """Centres for files of other programs. Their sizes are not known."""
        return exported_centres(self.cluster_centers)

    @property
    def picture(self) -> str:
        """Picture in `sfumato.plot` that suits the model."""
        return "places" if self.n_features == 2 else "budget"

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def partition(self) -> Voronoi:
        """Rows nearest to each centre."""
        return Voronoi(self.cluster_centers)

    def moved(self, measure: Measure) -> SourceTargetModel:
        """The same centres in other units. Costs stay in measured ones."""
        return replace(
            self,
            cluster_centers=measure.of(self.cluster_centers),
            sanitized_source=measure.of(self.sanitized_source),
        )

    def predict(self, rows: FloatArray) -> IntArray:
        """Index of the centre nearest to each row, or -1 where a sanitised point is at least as near."""
        from sklearn.neighbors import KDTree

        if not len(rows):
            return np.empty(0, dtype=np.int64)
        distances, nearest = (found[:, 0] for found in KDTree(self.cluster_centers).query(rows))
        served = self.sanitized_source
        free = KDTree(served).query(rows)[0][:, 0] if len(served) else np.full(len(rows), np.inf)
        return np.where(distances < free, nearest, -1).astype(np.int64)
