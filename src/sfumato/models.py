"""Fitted models: what a release publishes and what predicts labels. They hold released values only."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import KDTree

from sfumato.aggregates.base import check_shape
from sfumato.columns import Columns, Coordinate
from sfumato.density.dbscan import DBSCANModel, Guarantee
from sfumato.density.histogram import NoisyHistogram
from sfumato.density.levels import DensityModel
from sfumato.density.regions import Regions
from sfumato.domain import LARGEST_BOUND, Domain, FloatArray, Grid, IntArray, Unit
from sfumato.errors import ParameterError, ReleaseError
from sfumato.morse import Mixture, MorseTree, merge_tree
from sfumato.synopsis import GridSynopsis

# Of what files state: beyond, sums and squares leave the range of numbers.
_LARGEST_FLOAT, _LARGEST_INTEGER = 10 * LARGEST_BOUND, 2**62


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

    def check(self) -> None:
        """Refuse parts that do not fit together: a file may hold such."""
        k, d = _check_places("cluster_centers", self.cluster_centers)
        _check_sizes("cluster_sizes", self.cluster_sizes, k)
        _check_sizes("center_stds", self.center_stds, k, d)
        _check_sizes("size_stds", self.size_stds, k)
        if self.synopsis is not None and len(self.synopsis.grid.shape) != d:
            raise ParameterError(f"the grid must have {d} columns, got {self.synopsis.grid.shape}")

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

    def check(self) -> None:
        """Refuse parts that do not fit together: a file may hold such."""
        k, d = _check_places("means", self.means)
        _check_sizes("sizes", self.sizes, k)
        _check_sizes("size_stds", self.size_stds, k)
        _check_sizes("mean_stds", self.mean_stds, k, d)
        self.mixture  # noqa: B018  # which checks the rest

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

    def check(self) -> None:
        """Refuse parts that do not fit together: a file may hold such."""
        if not 1 <= self.n_clusters <= len(self.base.means):
            raise ParameterError(
                f"`n_clusters` must be from 1 to {len(self.base.means)}, got {self.n_clusters}"
            )

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

    def check(self) -> None:
        """Refuse parts that do not fit together: a file may hold such."""
        k, d = _check_places("cluster_centers", self.cluster_centers)
        check_shape("center_indices", self.center_indices, k)
        if _check_places("sanitized_source", self.sanitized_source, least=0)[1] != d:
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
    """Inverse of `encode`; sequences come back as tuples. Refuses what `encode` does not write."""
    if isinstance(data, list):
        return tuple(decode(item) for item in data)
    if not isinstance(data, dict):
        return data
    parts = {name: decode(item) for name, item in data.items() if name != "type"}
    if data["type"] == "array":
        return _array(**parts)
    cls = PUBLISHABLE[data["type"]]
    for name, wanted in get_type_hints(cls).items():
        if name in parts and not _fits(parts[name], wanted):
            raise ReleaseError(f"`{name}` of {cls.__name__} is of another type")
    value = cls(**parts)
    if hasattr(value, "check"):
        value.check()
    return value


def _array(dtype: str, shape: tuple[int, ...], values: tuple[float, ...]) -> NDArray[Any]:
    if dtype not in ("float64", "int64"):
        raise ReleaseError(f"an array must hold float64 or int64, got {dtype!r}")
    kinds = (int,) if dtype == "int64" else (int, float)
    if not all(type(value) in kinds for value in values):
        raise ReleaseError(f"an array of {dtype} must hold such numbers, got others")
    if math.prod(shape) != len(values):
        raise ReleaseError(f"an array of shape {shape} must have as many values, got {len(values)}")
    array = np.array(values, dtype=dtype).reshape(shape)
    if not np.isfinite(array).all():
        raise ReleaseError("an array must be finite, got NaN or infinity")
    return array


def _fits(value: object, wanted: Any) -> bool:
    """Whether a value is of the type that a field declares, and of a size that can be computed with."""
    arguments = get_args(wanted)
    if wanted in (FloatArray, IntArray):
        return isinstance(value, np.ndarray) and value.dtype == get_args(arguments[1])[0]
    if get_origin(wanted) is tuple:
        return isinstance(value, tuple) and all(_fits(item, arguments[0]) for item in value)
    if get_origin(wanted) is Literal:
        return isinstance(value, str) and value in arguments
    if arguments:
        return any(_fits(value, part) for part in arguments)
    if wanted not in (int, float):
        return isinstance(value, wanted)
    if isinstance(value, bool) or not isinstance(value, int if wanted is int else int | float):
        return False
    return abs(value) <= (_LARGEST_INTEGER if wanted is int else _LARGEST_FLOAT)


def _check_places(name: str, places: FloatArray, least: int = 1) -> tuple[int, int]:
    """Number of places and of columns; or an error."""
    if places.ndim != 2 or len(places) < least or not places.shape[1]:
        raise ParameterError(f"`{name}` must have rows and columns, got shape {places.shape}")
    if (np.abs(places) > _LARGEST_FLOAT).any():
        raise ParameterError(f"`{name}` must be at most {_LARGEST_FLOAT:g} in size, got more")
    return len(places), int(places.shape[1])


def _check_sizes(name: str, sizes: FloatArray | None, *shape: int) -> None:
    if sizes is None:
        return
    check_shape(name, sizes, *shape)
    if not ((sizes >= 0) & (sizes <= _LARGEST_FLOAT)).all():
        raise ParameterError(f"`{name}` must be from 0 to {_LARGEST_FLOAT:g}, got others")
