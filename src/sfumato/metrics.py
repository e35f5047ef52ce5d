"""Quality of a clustering, measured on the rows themselves.

Nothing here is private. Every score reads raw data for the data holder's own evaluation; none may be put into
a release. The definitions come from the DPM paper ("DPM: Clustering Sensitive Data through Separation"):
Definition 9 (k-means distance) and Appendix C (inertia, silhouette score, clustering accuracy).
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, pairwise_distances_chunked
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import gen_batches

from sfumato.domain import LARGEST_BOUND, FloatArray, IntArray
from sfumato.domain.arrays import numbers
from sfumato.domain.partitions import Voronoi
from sfumato.errors import DataError, ParameterError

__all__ = ["adjusted_mutual_info", "adjusted_rand", "clustering_accuracy", "inertia", "kmeans_distance"]
__all__ += ["reference_kmeans", "silhouette"]

RandomState: TypeAlias = int | np.random.Generator | None

_CHUNK_ROWS = 65_536
_CHUNK_MEBIBYTES = 64
_START_ROWS = 5_000
_MAX_ITERATIONS = 100


def inertia(X: npt.ArrayLike, centers: npt.ArrayLike) -> float:
    """Sum of squared distances of the rows to their nearest centre (WCSS).

    Definition 10 of the paper omits the square, but its tables, like scikit-learn, use it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    centers : array-like of shape (n_clusters, n_features)
        The centres. A centre without rows changes nothing.

    Returns
    -------
    float
        The inertia; lower is better.

    Privacy
    -------
    Not private: computed on raw data, for the data holder's evaluation only, never put into a release.

    Examples
    --------
    >>> inertia([[0.0, 0.0], [0.0, 2.0], [5.0, 5.0]], [[0.0, 1.0], [5.0, 5.0]])
    2.0
    """
    table, means = _matching_tables(X, centers)
    return float(sum(costs.sum() for _, costs in _nearest(table, means)))


def adjusted_rand(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Adjusted Rand index (ARI) of two labellings: 1 when they agree, about 0 by chance.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Two labels for each row. The names of the labels do not matter.

    Returns
    -------
    float
        The index, at most 1.

    Privacy
    -------
    Not private: computed on raw data, for the data holder's evaluation only, never put into a release.

    Examples
    --------
    >>> adjusted_rand([0, 0, 1, 1], [7, 7, 3, 3])
    1.0
    """
    return float(adjusted_rand_score(*_matching_labels(labels_true, labels_pred)))


def adjusted_mutual_info(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Adjusted mutual information (AMI) of two labellings: 1 when they agree, about 0 by chance.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Two labels for each row. The names of the labels do not matter.

    Returns
    -------
    float
        The mutual information, adjusted for chance and divided by the mean entropy.

    Privacy
    -------
    Not private: computed on raw data, for the data holder's evaluation only, never put into a release.

    Examples
    --------
    >>> round(adjusted_mutual_info([0, 0, 1, 1], ["b", "b", "a", "a"]), 6)
    1.0
    """
    return float(adjusted_mutual_info_score(*_matching_labels(labels_true, labels_pred)))


def clustering_accuracy(
    labels_true: npt.ArrayLike,
    labels_pred: npt.ArrayLike,
    *,
    matching: Literal["majority", "one-to-one"] = "majority",
) -> float:
    """Share of rows whose class matches the class assigned to their cluster.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The class of each row.
    labels_pred : array-like of shape (n_samples,)
        The cluster of each row.
    matching : {"majority", "one-to-one"}, default="majority"
        Which class is assigned to a cluster. "majority" (Definition 12 of the paper) takes the most frequent
        one in the cluster. Several clusters may share a class, which rewards many small clusters.
        "one-to-one" gives each class at most one cluster, by the assignment that scores highest (Hungarian
        method).

    Returns
    -------
    float
        The accuracy between 0 and 1; higher is better.

    Privacy
    -------
    Not private: computed on raw data, for the data holder's evaluation only, never put into a release.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 0, 0, 1], [0, 0, 1, 1, 1])
    0.8
    >>> clustering_accuracy([0, 0, 0, 0, 1], [0, 0, 1, 1, 1], matching="one-to-one")
    0.6
    """
    if not isinstance(matching, str) or matching not in ("majority", "one-to-one"):
        raise ParameterError(f"`matching` must be 'majority' or 'one-to-one', got {matching!r}.")
    classes, clusters = _matching_labels(labels_true, labels_pred)
    counts = contingency_matrix(classes, clusters, sparse=matching == "majority")
    if matching == "majority":
        return float(counts.max(axis=0).sum() / len(classes))
    matched = linear_sum_assignment(counts, maximize=True)
    return float(counts[matched].sum() / len(classes))


def silhouette(
    X: npt.ArrayLike,
    centers_or_labels: npt.ArrayLike,
    *,
    sample_size: int | None = 10_000,
    random_state: RandomState = 0,
) -> float:
    """Mean silhouette score, from distances between rows (Definition 11 of the paper).

    A row scores (b - a) / max(a, b), where a is its mean distance to the other rows of its cluster and b the
    least of its mean distances to the rows of another cluster. Empty clusters do not count.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    centers_or_labels : array-like of shape (n_clusters, n_features) or (n_samples,)
        Two-dimensional: centres, each with the rows nearest to it. One-dimensional: one label per row; every
        value, even -1, is a cluster.
    sample_size : int or None, default=10_000
        If there are more rows, the score is the mean over a random sample of this size, with distances to
        max(2, sample_size // n_clusters) rows of each larger cluster. None: exact, in quadratic time.
    random_state : int, Generator or None, default=0
        Draws the sample.

    Returns
    -------
    float
        The score between -1 and 1; higher is better. It is -1 for fewer than two clusters. A row alone in its
        cluster scores 0.

    Privacy
    -------
    Not private: computed on raw data, for the data holder's evaluation only, never put into a release.

    Examples
    --------
    >>> round(silhouette([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1]), 4)
    0.8997
    >>> silhouette([[0.0], [1.0], [10.0], [11.0]], [[5.0]])
    -1.0
    """
    if sample_size is not None and not _is_whole(sample_size):
        raise ParameterError(f"`sample_size` must be an integer >= 1 or None, got {sample_size!r}.")
    table = _table("X", X)
    labels = _labels_of_rows(table, centers_or_labels)
    n_clusters = int(labels.max()) + 1
    if n_clusters < 2:
        return -1.0
    size = len(table) if sample_size is None else min(sample_size, len(table))
    # A sample of all rows stays in order, so an exact score has the same bits for every random_state.
    order, quota = np.arange(len(table)), len(table)
    if size < len(table):
        order, quota = _generator(random_state).permutation(order), max(2, size // n_clusters)
    scores = _silhouette_of_rows(table, labels, order[:size], _first_of_each_cluster(labels, order, quota))
    return float(scores.mean())


def kmeans_distance(centers: npt.ArrayLike, reference_centers: Sequence[npt.ArrayLike] | FloatArray) -> float:
    """Distance of private centres from good non-private ones (Definition 9 of the paper).

    It is the sum, over the private centres, of the distance to the closest reference centre, averaged over
    the reference sets. It grows with the number of private centres and ignores clusters that they miss.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        The private centres.
    reference_centers : array-like of shape (n_reference_clusters, n_features), or a sequence of them
        One set of non-private centres or several, as from `reference_kmeans`; their sizes may differ.

    Returns
    -------
    float
        The distance, in the unit of the data; lower is better.

    Privacy
    -------
    Not private: the reference is computed on raw data, for the data holder's evaluation only, never put into
    a release.

    Examples
    --------
    >>> kmeans_distance([[0.0, 0.0], [3.0, 4.0]], [[[0.0, 0.0]], [[0.0, 0.0], [3.0, 3.0]]])
    3.0
    """
    private = _table("centers", centers)
    try:
        sets: list[Any] = list(reference_centers)
    except TypeError:
        raise DataError("`reference_centers` must be a table of centres, or a list of tables.") from None
    if not sets or np.ndim(sets[0]) < 2:
        sets = [reference_centers]
    references = [_table("reference_centers", each) for each in sets]
    if any(reference.shape[1] != private.shape[1] for reference in references):
        raise DataError("`reference_centers` must have as many columns as `centers`.")
    return float(np.mean([cdist(private, reference).min(axis=1).sum() for reference in references]))


def reference_kmeans(
    X: npt.ArrayLike,
    n_clusters: int | Sequence[int],
    *,
    n_best: int = 20,
    n_runs: int = 20,
    sample_size: int | None = 5_000,
    random_state: RandomState = 0,
) -> list[FloatArray]:
    """Find the non-private k-means runs with the best silhouette, as a reference for `kmeans_distance`.

    Each run starts from the best of three k-means runs on a random sample of rows and continues on all rows,
    for at most 100 iterations.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    n_clusters : int or sequence of int
        The number of clusters, or several to try.
    n_best : int, default=20
        Number of runs to return. The paper uses 20 and finds 10 enough.
    n_runs : int, default=20
        Number of runs for each number of clusters, each with its own random start.
    sample_size : int or None, default=5_000
        As in `silhouette`; all runs are compared on the same sample.
    random_state : int, Generator or None, default=0
        Draws the starts and the sample.

    Returns
    -------
    list of ndarray of shape (n_clusters, n_features)
        The centres of the best runs, best first.

    Privacy
    -------
    Not private: computed on raw data, for the data holder's evaluation only, never put into a release.

    Examples
    --------
    >>> X = [[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]]
    >>> best = reference_kmeans(X, [2, 3, 4], n_best=1, n_runs=3)
    >>> sorted(best[0].ravel().tolist())
    [0.5, 10.5, 20.5]
    """
    table = _table("X", X)
    candidates = list(n_clusters) if isinstance(n_clusters, Sequence | np.ndarray) else [n_clusters]
    if not candidates or not all(map(_is_whole, candidates)):
        raise ParameterError(f"`n_clusters` must be one or more positive integers, got {n_clusters!r}.")
    n_total = len(candidates) * n_runs if _is_whole(n_runs) else 0
    if not _is_whole(n_best) or n_best > n_total:
        raise ParameterError(
            f"`n_best` must be between 1 and the {n_total} runs in all, got {n_best!r}, n_runs={n_runs!r}."
        )
    if max(candidates) > len(table):
        raise DataError(f"`X` must have at least `n_clusters` rows, here {max(candidates)}.")
    rng = _generator(random_state)
    sample_seed = int(rng.integers(2**31))
    runs = [_kmeans_run(table, k, rng) for k in candidates for _ in range(n_runs)]
    scores = [silhouette(table, run, sample_size=sample_size, random_state=sample_seed) for run in runs]
    return [runs[i] for i in np.argsort(-np.array(scores), kind="stable")[:n_best]]


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def _generator(random_state: RandomState) -> np.random.Generator:
    with suppress(TypeError, ValueError):
        return np.random.default_rng(random_state)
    raise ParameterError(
        f"`random_state` must be an integer >= 0, a Generator or None, got {random_state!r}."
    )


def _kmeans_run(table: FloatArray, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    n_start = min(len(table), max(_START_ROWS, 50 * n_clusters))
    start = table[rng.choice(len(table), n_start, replace=False)]
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its message counts distinct rows
        coarse = KMeans(n_clusters, n_init=3, max_iter=_MAX_ITERATIONS, random_state=seed).fit(start)
        fine = KMeans(n_clusters, init=coarse.cluster_centers_, n_init=1, max_iter=_MAX_ITERATIONS).fit(table)
    centers: FloatArray = fine.cluster_centers_
    return centers


def _silhouette_of_rows(table: FloatArray, labels: IntArray, rows: IntArray, others: IntArray) -> FloatArray:
    """Score `rows` by their distances to `others`, which are sorted by cluster and include some of each."""
    sizes = np.bincount(labels[others])  # (n_clusters,)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    is_other = np.zeros(len(table), dtype=np.int64)
    is_other[others] = 1
    origin = np.median(table[others], axis=0)  # among the rows: less cancellation in the distances

    def score(distances: FloatArray, first: int) -> FloatArray:
        chunk = rows[first : first + len(distances)]
        own = np.arange(len(chunk)), labels[chunk]
        sums = np.add.reduceat(distances, starts, axis=1)  # (chunk, n_clusters)
        n_peers = sizes[labels[chunk]] - is_other[chunk]  # a row is not its own peer
        a = sums[own] / np.maximum(n_peers, 1)
        sums[own] = np.inf
        b = (sums / sizes).min(axis=1)
        larger = np.maximum(a, b)
        scores: FloatArray = np.zeros(len(chunk))
        np.divide(b - a, larger, out=scores, where=(n_peers > 0) & (larger > 0))
        return scores

    chunks = pairwise_distances_chunked(
        table[rows] - origin, table[others] - origin, reduce_func=score, working_memory=_CHUNK_MEBIBYTES
    )
    return np.concatenate(list(chunks))


def _first_of_each_cluster(labels: IntArray, order: IntArray, quota: int) -> IntArray:
    """Take the first `quota` rows of each cluster in the given order, sorted by cluster."""
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    sizes = np.bincount(labels)
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return by_cluster[rank < quota]


def _labels_of_rows(table: FloatArray, centers_or_labels: npt.ArrayLike) -> IntArray:
    """Number the clusters that have rows 0, 1, ... and return the number of each row's cluster."""
    labels, centers = _numbered(centers_or_labels), None
    with suppress(DataError):
        centers = numbers(centers_or_labels)
    if labels is None and centers is not None and centers.ndim == 2:
        nearest = _nearest(*_matching_tables(table, centers))
        labels = _numbered(np.concatenate([indices for indices, _ in nearest]))
    if labels is None or len(labels) != len(table):
        raise DataError("`centers_or_labels` must be a table of centres or have one label for each row.")
    return labels


def _nearest(table: FloatArray, centers: FloatArray) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield, chunk by chunk, the index of each row's nearest centre and its squared distance from it."""
    cells = Voronoi(centers)
    for rows in gen_batches(len(table), _CHUNK_ROWS):
        nearest = cells.index(table[rows])
        yield nearest, ((table[rows] - centers[nearest]) ** 2).sum(axis=1)


def _table(name: str, values: npt.ArrayLike) -> FloatArray:
    table = numbers(values, name)
    if table.ndim != 2 or table.size == 0:
        raise DataError(f"`{name}` must be two-dimensional with at least one row and one column.")
    if not (np.abs(table) <= LARGEST_BOUND).all():
        raise DataError(f"`{name}` must contain finite numbers only, of at most {LARGEST_BOUND:g} in size.")
    return table


def _matching_tables(X: npt.ArrayLike, centers: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    table, means = _table("X", X), _table("centers", centers)
    if table.shape[1] != means.shape[1]:
        raise DataError(f"`centers` must have {table.shape[1]} columns like `X`, got {means.shape[1]}.")
    return table, means


def _matching_labels(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    first, second = _numbered(labels_true), _numbered(labels_pred)
    if first is None or second is None or first.shape != second.shape or first.size == 0:
        raise DataError(
            "`labels_true` and `labels_pred` must be one-dimensional, not empty, of equal length, and of one "
            "type each."
        )
    return first, second


def _numbered(labels: npt.ArrayLike) -> IntArray | None:
    """Number the distinct labels; None if they are not a list of names."""
    with suppress(TypeError, ValueError):  # NumPy's message quotes names that cannot be compared
        names = np.asarray(labels)
        return np.unique(names, return_inverse=True)[1].astype(np.int64) if names.ndim == 1 else None
    return None
