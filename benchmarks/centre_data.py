"""What the benchmarks of the centre methods share: data sets, estimators, and non-private k-means to compare with."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import make_blobs

from benchmarks.baselines import kmeans, kmeans_inertia
from sfumato import cluster, metrics
from sfumato.datasets import data_home, load

GIVEN_K = "DPM, k given"
METHODS = ("DPM", GIVEN_K, "LloydKMeans", "CoresetKMeans", "MaxCoverKMeans", "LocalSearchKMeans")
N_PROCESSES = 2


@dataclass(frozen=True)
class DataSet:
    """A data set of the DPM paper's Tables 2 and 3, under its name there or in the data folder.

    Parameters
    ----------
    name, title : str
    n_clusters : int
        The number of classes, which every method but DPM is given.
    bounds : (float, float)
    n_blob_features : int, optional
        Columns of Gaussian blobs, drawn anew for every seed. None: read from the data folder, the same for every seed.
    has_classes : bool
        If not, the number of clusters is the one that the paper takes.
    """

    name: str
    title: str
    n_clusters: int
    bounds: tuple[float, float]
    n_blob_features: int | None = None
    has_classes: bool = True


DATA_SETS = {
    data.name: data
    for data in (
        DataSet("synth_10d", "Synth-10d", 64, (-100.0, 100.0), 10),
        DataSet("synth_100d", "Synth-100d", 64, (-100.0, 100.0), 100),
        DataSet("mnist_embs", "MNIST embeddings", 10, (-10.0, 10.0)),
        DataSet("fashion_embs", "Fashion embeddings", 10, (-10.0, 10.0)),
        DataSet("letter", "UCI Letters", 26, (0.0, 15.0)),
        DataSet("gas_turbine", "UCI Gas", 2, (-6.23, 1100.9), has_classes=False),
    )
}


@dataclass(frozen=True)
class Rows:
    """Rows clipped to the bounds, and their classes if they have any."""

    X: np.ndarray
    classes: np.ndarray | None

    @property
    def delta(self) -> float:
        """1 / (n sqrt(n)), rounded."""
        return float(f"{len(self.X) ** -1.5:.3g}")


@dataclass(frozen=True)
class Reference:
    """Non-private k-means on the same rows: scikit-learn's best of 10 starts, and good runs to compare centres with."""

    inertia: float
    centers: np.ndarray
    good_runs: list[np.ndarray]


def data_names(*, with_classes: bool = True) -> list[str]:
    """Data sets with classes, or without, at hand: those of the folder only if SFUMATO_DATA names it."""
    chosen = {name: data for name, data in DATA_SETS.items() if data.has_classes == with_classes}
    return [name for name, data in chosen.items() if data.n_blob_features or data_home()]


def methods() -> list[str]:
    """Centre methods at hand, by name."""
    return [name for name in METHODS if hasattr(cluster, class_of(name))]


def class_of(method: str) -> str:
    return "DPM" if method == GIVEN_K else method


def rows_of(name: str, seed: int, n_rows: int | None = None) -> Rows:
    return _rows(name, seed if DATA_SETS[name].n_blob_features else 0, n_rows)


def reference_of(name: str, seed: int, n_rows: int | None = None) -> Reference:
    return _reference(name, seed if DATA_SETS[name].n_blob_features else 0, n_rows)


def inertia_of_kmeans(name: str, seed: int, n_rows: int | None, n_clusters: int) -> float:
    """Inertia of non-private k-means with any number of clusters, to judge a method that chose its own."""
    if n_clusters == DATA_SETS[name].n_clusters:
        return reference_of(name, seed, n_rows).inertia
    return _inertia(name, seed if DATA_SETS[name].n_blob_features else 0, n_rows, n_clusters)


@lru_cache(maxsize=256)
def _inertia(name: str, seed: int, n_rows: int | None, n_clusters: int) -> float:
    X = _rows(name, seed, n_rows).X
    return kmeans_inertia(X, n_clusters)


@lru_cache(maxsize=2)
def _rows(name: str, seed: int, n_rows: int | None) -> Rows:
    data = DATA_SETS[name]
    if data.n_blob_features:
        X, classes = make_blobs(
            n_rows or 100_000,
            data.n_blob_features,
            centers=data.n_clusters,
            center_box=data.bounds,
            random_state=seed,
        )
    else:
        X, classes = load(name)
        chosen = np.random.default_rng(0).permutation(len(X))[:n_rows] if n_rows else slice(None)
        X, classes = X[chosen], None if classes is None else classes[chosen]
    return Rows(np.clip(X, *data.bounds), classes)


@lru_cache(maxsize=2)
def _reference(name: str, seed: int, n_rows: int | None) -> Reference:
    data, X = DATA_SETS[name], _rows(name, seed, n_rows).X
    inertia, centers = kmeans(X, data.n_clusters)
    if data.n_blob_features:  # all good runs on separated blobs are the same
        good_runs = [centers]
    else:
        good_runs = metrics.reference_kmeans(X, data.n_clusters, n_best=10, n_runs=20, sample_size=2_500)
    return Reference(inertia, centers, good_runs)


def make(
    method: str, data: DataSet, *, delta: float, seed: int, **parameters: Any
) -> cluster.PrivateClusterer:
    """Build an estimator for a data set. DPM finds the number of clusters by itself unless it is given."""
    estimator = getattr(cluster, class_of(method))
    if method != "DPM":
        parameters["n_clusters"] = data.n_clusters
    return estimator(delta=delta, bounds=data.bounds, random_state=seed, **parameters)


def in_processes(call: Callable[..., Any], jobs: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield `call(*job)` for each job in order, computed in two processes of one thread each."""
    with parallel_config("loky", n_jobs=N_PROCESSES, inner_max_num_threads=1):
        yield from Parallel(return_as="generator")(delayed(call)(*job) for job in jobs)


def short(value: float) -> str:
    """Write a ratio with as many decimals as matter."""
    decimals = 3 if value < 2 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f}"


def markdown(head: list[str], lines: list[list[str]]) -> list[str]:
    """Lay out a table."""
    return ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)]
