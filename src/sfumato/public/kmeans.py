"""k-means, Ward merging and silhouettes of weighted points such as released centres or grid cells."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import ThreadpoolController

from sfumato.domain import FloatArray, IntArray
from sfumato.public.kmeans_runs import kmeans_runs

# Tuned: docs/notes/constants.md#merging
NEARLY = 1 / 6  # a silhouette within this share of the best is nearly as good
CLEAR_GAIN = 0.2  # a merge that raises the silhouette of its rows by this much joins parts of one cluster
N_STARTS = 20  # of k-means on the cells, besides Ward's clusters

FEW_POINTS = 2**16  # a pass over as many takes a millisecond: on busy processors, threads wait longer
FEW_DISTANCES = 2**20  # that are held
WARD_CELLS = 2048  # a limit: Ward's agglomeration takes memory quadratic in the number of cells


def nearest_centres(points: FloatArray, centers: FloatArray) -> IntArray:
    """Index of the centre nearest to each point."""
    if len(points) * len(centers) <= FEW_DISTANCES:
        nearest: IntArray = cdist(points, centers, "sqeuclidean").argmin(axis=1)
        return nearest
    from sklearn.metrics import pairwise_distances_argmin  # slow to load

    return np.asarray(pairwise_distances_argmin(points, centers), dtype=np.int64)


def one_thread(n_points: int) -> AbstractContextManager[Any]:
    """Keep to one thread if there are few points.

    Threads wait for each other after each pass. If another process holds one of the processors, a fit of a
    thousand points takes a quarter of a second instead of two milliseconds.
    """
    return _controller().limit(limits=1) if n_points <= FEW_POINTS else nullcontext()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


def weighted_kmeans(
    points: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    n_init: int = 0,
    seed: int = 0,
    starts: Sequence[FloatArray] = (),
) -> tuple[FloatArray, FloatArray]:
    """Centres and weights of the best run, over `n_init` random starts and the given ones."""
    used = weights > 0
    if used.sum() < n_clusters:  # too few points have weight: give all a little
        used, weights = np.ones_like(used), weights + 1e-9 * max(float(weights.sum()), 1.0) / len(weights)
    points, weights = points[used], weights[used]
    if len(points) > FEW_POINTS:
        return _in_threads(points, weights, n_clusters, n_init, seed, starts)
    with one_thread(len(points)):
        return kmeans_runs(points, weights, n_clusters, n_init=n_init, seed=seed, starts=starts).best()


def _in_threads(
    points: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    n_init: int,
    seed: int,
    starts: Sequence[FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """The same of many points, by scikit-learn, in its threads and little memory."""
    from sklearn.cluster import KMeans  # slow to load, and few points do without it
    from sklearn.exceptions import ConvergenceWarning

    runs = [KMeans(n_clusters, init=start, n_init=1) for start in starts]
    runs += [KMeans(n_clusters, n_init=n_init, random_state=seed)] if n_init else []
    with warnings.catch_warnings():  # points may coincide in a flat box
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [run.fit(points, sample_weight=weights) for run in runs]
    best = min(fits, key=lambda fit: float(fit.inertia_))
    return best.cluster_centers_, np.bincount(best.labels_, weights, n_clusters).astype(np.float64)


class WeightedCells(NamedTuple):
    """Released centres, the sizes of their cells, and the mean squared distance of rows within a cell."""

    centers: FloatArray
    sizes: FloatArray
    mean_square: float


def merged_into(
    centers: FloatArray, sizes: FloatArray, n_clusters: int | None
) -> tuple[FloatArray, FloatArray]:
    """Merge released centres into at most `n_clusters` by weighted k-means. None keeps all.

    One start is Ward's clustering, because random starts miss some of many separated clusters.
    """
    if n_clusters is None or len(centers) <= n_clusters:
        return centers, sizes
    if len(centers) > WARD_CELLS:
        return weighted_kmeans(centers, np.maximum(sizes, 0.0), n_clusters, n_init=1)
    weights = np.maximum(sizes, 1.0)
    merges = ward_merges(centers, weights, n_clusters)
    starts = [ward_means(centers, weights, merges)]
    return weighted_kmeans(centers, np.maximum(sizes, 0.0), n_clusters, n_init=N_STARTS, starts=starts)


def separated_clusters(cells: WeightedCells) -> FloatArray:
    """Merge cells that are parts of one cluster, and return the centres of the clusters.

    Cells are merged pairwise by Ward's criterion. Stages are compared by the silhouette of balls with the
    released sizes, centres and mean square. We start at the finest stage that is nearly as good as the best,
    since showing two clusters as one is worse than showing one as two. We keep merging while a merge is a
    clear gain for its rows.
    """
    if len(cells.centers) <= 2:  # one stage, nothing to compare
        return cells.centers
    sizes = np.maximum(cells.sizes, 1.0)
    merges = ward_merges(cells.centers, sizes, 2)
    distances = np.sqrt(cdist(cells.centers, cells.centers, "sqeuclidean") + 2 * cells.mean_square)
    n_merges = _n_good_merges(_silhouettes(distances, sizes, merges), merges, sizes)
    return ward_means(cells.centers, sizes, merges[:n_merges])


def ward_means(centers: FloatArray, sizes: FloatArray, merges: Sequence[tuple[int, int]]) -> FloatArray:
    """Weighted means of the clusters that the merges produce."""
    labels = np.arange(len(sizes))
    for kept, dropped in merges:
        labels[labels == dropped] = kept
    groups, labels = np.unique(labels, return_inverse=True)
    weights = np.zeros((len(groups), len(sizes)))
    weights[labels, np.arange(len(sizes))] = sizes
    means: FloatArray = (weights / weights.sum(axis=1, keepdims=True)) @ centers
    return means


def ward_merges(centers: FloatArray, sizes: FloatArray, n_clusters: int) -> list[tuple[int, int]]:
    """Merges of Ward's agglomeration down to `n_clusters`, as pairs (kept, dropped)."""
    centers, sizes, merges = centers.copy(), sizes.copy(), []
    harmonic = sizes[:, None] * sizes / (sizes[:, None] + sizes)
    costs = cdist(centers, centers, "sqeuclidean") * harmonic
    np.fill_diagonal(costs, np.inf)
    for _ in range(len(sizes) - n_clusters):
        i, j = sorted(divmod(int(costs.argmin()), len(sizes)))
        total = sizes[i] + sizes[j]
        centers[i] = (sizes[i] * centers[i] + sizes[j] * centers[j]) / total
        sizes[i] = total
        costs[j, :] = costs[:, j] = np.inf
        row = ((centers - centers[i]) ** 2).sum(axis=1) * sizes * total / (sizes + total)
        row[np.isinf(costs[i]) | np.isinf(costs[:, i])] = np.inf
        costs[i, :] = costs[:, i] = row
        merges.append((i, j))
    return merges


def _silhouettes(distances: FloatArray, sizes: FloatArray, merges: list[tuple[int, int]]) -> FloatArray:
    """Mean silhouette of the cells before the first merge and after each."""
    everyone = np.arange(len(sizes))
    labels, weights = everyone.copy(), sizes.copy()
    sums = distances * sizes  # (n_cells, n_clusters): summed distances to the rows of each cluster
    scores = []
    for kept, dropped in [(0, 0), *merges]:
        if kept != dropped:
            sums[:, kept] += sums[:, dropped]
            sums[:, dropped] = np.inf
            weights[kept] += weights[dropped]
            labels[labels == dropped] = kept
        means = sums / weights
        inner = means[everyone, labels]
        means[everyone, labels] = np.inf
        outer = means.min(axis=1)
        scores.append(
            np.average((outer - inner) / np.maximum(np.maximum(outer, inner), 1e-300), weights=sizes)
        )
    return np.array(scores)


def _n_good_merges(scores: FloatArray, merges: list[tuple[int, int]], sizes: FloatArray) -> int:
    """Number of merges to make."""
    weights, concerned = sizes.copy(), [0.0]
    for kept, dropped in merges:
        weights[kept] += weights[dropped]
        concerned.append(concerned[-1] + weights[kept] / sizes.sum())
    gains = scores - CLEAR_GAIN * np.array(concerned)  # a clear gain raises this, even over several merges
    start = int(np.flatnonzero(scores >= scores.max() - NEARLY * abs(scores.max()))[0])
    return start + int(np.argmax(gains[start:]))
