"""Centres chosen among public targets."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.neighbors import KDTree

from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.errors import ParameterError
from sfumato.public.models.base import check_places


@dataclass(frozen=True, eq=False)
class SourceTargetModel:
    """Centres chosen among public targets, beside a sanitised source that serves targets as well.

    Parameters
    ----------
    cluster_centers : float array of shape (k, d)
    center_indices : int array of shape (k,)
        Which targets the centres are.
    sanitized_source : float array of shape (m, d)
    cost : float
        Mean distance of the targets from the nearest centre or sanitised point.
    n_representatives : int
        Targets of which the private source was asked.
    diff_bound : float, optional
        Bound on the error of the cost that comes from sanitising.
    """

    cluster_centers: FloatArray
    center_indices: IntArray
    sanitized_source: FloatArray
    cost: float
    n_representatives: int
    diff_bound: float | None = None

    def check(self) -> None:
        """Refuse parts that do not fit together: a file may hold such."""
        k, d = check_places("cluster_centers", self.cluster_centers)
        check_shape("center_indices", self.center_indices, k)
        if check_places("sanitized_source", self.sanitized_source, least=0)[1] != d:
            raise ParameterError(f"`sanitized_source` must have {d} columns, got another number")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.cluster_centers.shape[1])

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def predict(self, rows: FloatArray) -> IntArray:
        """Index of the nearest centre of each row, -1 where a sanitised point is as near."""
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        distances, nearest = (found[:, 0] for found in KDTree(self.cluster_centers).query(rows))
        served = self.sanitized_source
        free = KDTree(served).query(rows)[0][:, 0] if len(served) else np.full(len(rows), np.inf)
        return np.where(distances < free, nearest, -1).astype(np.int64)
