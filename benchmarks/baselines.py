"""What others reach on the same rows: k-means and HDBSCAN of scikit-learn without privacy, k-means of diffprivlib.

None of it depends on our code. Each answer is kept in `.cache/benchmarks`, by the rows, the parameters and the versions
that gave it, so that a later run computes only what ours reach. Times of ours are never compared with times from there.
"""

from pathlib import Path

import joblib
import numpy as np
import sklearn
from sklearn.cluster import HDBSCAN, KMeans

from benchmarks import diffprivlib_peer

VERSIONS = f"scikit-learn-{sklearn.__version__}-{'-'.join(diffprivlib_peer.PACKAGES)}"
remembered = joblib.Memory(Path(__file__).parents[1] / ".cache" / "benchmarks" / VERSIONS, verbose=0).cache


@remembered
def kmeans(X: np.ndarray, n_clusters: int, n_starts: int = 10, seed: int = 0) -> tuple[float, np.ndarray]:
    """Inertia and centres of the best of some starts."""
    model = KMeans(n_clusters, n_init=n_starts, random_state=seed).fit(X)
    return float(model.inertia_), model.cluster_centers_


def kmeans_inertia(X: np.ndarray, n_clusters: int, n_starts: int = 10) -> float:
    return kmeans(X, n_clusters, n_starts)[0]


@remembered
def hdbscan_labels(X: np.ndarray) -> np.ndarray:
    return HDBSCAN(copy=True).fit(X).labels_


@remembered
def peer_centers(
    X: np.ndarray, n_clusters: int, *, epsilon: float, bounds: tuple[float, float], seed: int
) -> np.ndarray:
    """Centres of diffprivlib's k-means."""
    return diffprivlib_peer.peer_centers(X, n_clusters, epsilon=epsilon, bounds=bounds, seed=seed)
