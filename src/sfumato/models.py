"""Fitted models: what a release publishes and what predicts labels. They hold released values only."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import KDTree

from sfumato.columns import Columns, Coordinate
from sfumato.density.dbscan import DBSCANModel, Guarantee
from sfumato.density.histogram import NoisyHistogram
from sfumato.density.levels import DensityModel
from sfumato.density.regions import Regions
from sfumato.domain import Domain, FloatArray, Grid, IntArray, Unit
from sfumato.errors import ReleaseError
from sfumato.morse import Mixture, MorseTree, merge_tree
from sfumato.synopsis import GridSynopsis


class Model(Protocol):
    """What an estimator computes from released values: a frozen dataclass, listed in `PUBLISHABLE`."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator, without the trailing underscore."""

    def predict(self, rows: FloatArray) -> IntArray:
        """Cluster of each row."""


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
        How far centres may be off, as standard deviations: noise, and what the method allows for besides.
    size_stds : float array of shape (k,), optional
        The same for sizes.
    """

    cluster_centers: FloatArray
    cluster_sizes: FloatArray
    synopsis: GridSynopsis | None = None
    center_stds: FloatArray | None = None
    size_stds: FloatArray | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.cluster_centers.shape[1])

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
        return found

    def predict(self, rows: FloatArray) -> IntArray:
        """Index of the nearest centre of each row."""
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        return np.asarray(pairwise_distances_argmin(rows, self.cluster_centers), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """A Gaussian mixture; a row belongs to the component that most probably made it.

    Parameters
    ----------
    weights : float array of shape (k,)
    means : float array of shape (k, d)
    covariances : float array of shape (k, d, d)
    sizes : float array of shape (k,)
        Estimated number of rows of each component.
    size_stds : float array of shape (k,)
        Standard deviations of the noise in these numbers.
    mean_stds : float array of shape (k, d), optional
        Standard deviations of the noise in the means.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    sizes: FloatArray
    size_stds: FloatArray
    mean_stds: FloatArray | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.means.shape[1])

    @cached_property
    def mixture(self) -> Mixture:
        """The mixture, for densities and for merging."""
        return Mixture(self.weights, self.means, self.covariances)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {
            "weights": self.weights,
            "means": self.means,
            "covariances": self.covariances,
            "cluster_centers": self.means,
            "cluster_sizes": self.sizes,
            "cluster_center_stds": self.mean_stds,
            "cluster_size_stds": self.size_stds,
            "n_clusters": len(self.means),
        }

    def predict(self, rows: FloatArray) -> IntArray:
        """Most probable component of each row."""
        return self.mixture.predict(rows) if len(rows) else np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class MorseModel:
    """Components of a mixture joined through its saddles.

    Parameters
    ----------
    base : MixtureModel
    n_clusters : int
    by_basin : bool
        Whether a row belongs to the cluster of the peak to which its ascent leads, rather than to that of its
        most probable component.
    """

    base: MixtureModel
    n_clusters: int
    by_basin: bool = False

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.base.n_features

    @cached_property
    def tree(self) -> MorseTree:
        """Peaks, saddles and the order in which they join."""
        return merge_tree(self.base.mixture).doubting(self.base.sizes, self.base.size_stds)

    def cut(self, n_clusters: int | None = None) -> MorseModel:
        """The same mixture in another number of clusters: post-processing, spends nothing."""
        model = replace(self, n_clusters=self.tree.n_clusters if n_clusters is None else n_clusters)
        vars(model)["tree"] = self.tree  # what the cached property would compute again
        return model

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        clusters = self.tree.cut(self.n_clusters)
        n_clusters = int(clusters.max()) + 1
        return {
            "mixture": self.base.mixture,
            "merge_tree": self.tree.linkage,
            "saddles": self.tree.saddles,
            "component_labels": clusters,
            "cluster_sizes": np.bincount(clusters, self.base.sizes, n_clusters),
            "n_clusters": n_clusters,
        }

    def predict(self, rows: FloatArray) -> IntArray:
        """Cluster of each row."""
        if self.by_basin and len(rows):
            return self.tree.predict(rows, self.n_clusters)
        return self.tree.cut(self.n_clusters)[self.base.predict(rows)]


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


PUBLISHABLE: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        MixtureModel,
        MorseModel,
        CentreModel,
        SourceTargetModel,
        DBSCANModel,
        DensityModel,
        Guarantee,
        NoisyHistogram,
        Regions,
        GridSynopsis,
        Grid,
        Columns,
        Coordinate,
        Domain,
        Unit,
    )
}


def encode(value: Any) -> Any:
    """JSON form of a value made of publishable dataclasses, arrays, sequences and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        if type(value).__name__ not in PUBLISHABLE:
            raise ReleaseError(f"{type(value).__name__} is not a publishable type")
        return {"type": type(value).__name__} | {
            f.name: encode(getattr(value, f.name)) for f in fields(value)
        }
    if isinstance(value, np.ndarray):
        return {
            "type": "array",
            "dtype": str(value.dtype),
            "shape": value.shape,
            "values": value.ravel().tolist(),
        }
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def decode(data: Any) -> Any:
    """Inverse of `encode`; sequences come back as tuples."""
    if isinstance(data, list):
        return tuple(decode(item) for item in data)
    if not isinstance(data, dict):
        return data
    parts = {name: decode(item) for name, item in data.items() if name != "type"}
    if data["type"] == "array":
        if parts["dtype"] not in ("float64", "int64"):
            raise ReleaseError(f"an array must hold float64 or int64, got {parts['dtype']!r}")
        array = np.array(parts["values"], dtype=parts["dtype"]).reshape(parts["shape"])
        if not np.isfinite(array).all():
            raise ReleaseError("an array must be finite, got NaN or infinity")
        return array
    return PUBLISHABLE[data["type"]](**parts)
