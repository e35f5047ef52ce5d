"""Many runs of weighted k-means side by side, on few points: each step is one product of matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray

MAX_STEPS = 300
STILL = 1e-4  # of the variance of a column: a run stops when its centres move less; both as in scikit-learn
SCORES_AT_A_TIME = 2**17  # of points, runs and clusters: a megabyte, which stays in the cache of a processor


class Runs(NamedTuple):
    """Results of some runs."""

    centers: FloatArray  # (n_runs, k, d)
    sizes: FloatArray  # (n_runs, k)
    costs: FloatArray  # (n_runs,)

    def best(self) -> tuple[FloatArray, FloatArray]:
        """Centres and sizes of the run with the least cost."""
        run = int(self.costs.argmin())
        return self.centers[run], self.sizes[run]


def kmeans_runs(
    points: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    n_init: int,
    seed: int,
    starts: Iterable[FloatArray] = (),
) -> Runs:
    """Weighted k-means from the given starts, and from `n_init` random ones (greedy k-means++)."""
    middle = points.mean(axis=0)  # squares of centred points lose no digits
    points, rng = points - middle, np.random.Generator(np.random.PCG64(seed))
    at_a_time = max(1, SCORES_AT_A_TIME // (len(points) * n_clusters))
    given = [np.asarray(start)[None] - middle for start in starts]
    sizes = [min(at_a_time, n_init - first) for first in range(0, n_init, at_a_time)]
    given += [_spread_out(points, weights, n_clusters, n, rng) for n in sizes]
    parts = [_settled(points, weights, start) for start in given]
    centers, sizes_, costs = (np.concatenate(found) for found in zip(*parts, strict=True))
    return Runs(centers + middle, sizes_, costs)


def _spread_out(
    points: FloatArray, weights: FloatArray, n_clusters: int, n_runs: int, rng: np.random.Generator
) -> FloatArray:
    """Starts by greedy k-means++: of some points drawn by their cost, the one that saves most."""
    n_trials, everyone, squares = 2 + int(math.log(n_clusters)), np.arange(n_runs), (points**2).sum(axis=1)
    costs = np.broadcast_to(weights, (n_runs, len(points)))
    closest, centers = (
        np.full((n_runs, 1, len(points)), np.inf),
        np.empty((n_runs, n_clusters, len(points.T))),
    )
    for c in range(n_clusters):
        upto = np.cumsum(costs, axis=1)
        shots = rng.random((n_runs, n_trials if c else 1)) * upto[:, -1:]
        drawn = np.array([np.searchsorted(sums, shot) for sums, shot in zip(upto, shots, strict=True)])
        tried = np.minimum(drawn, len(points) - 1)  # (n_runs, n_trials)
        gaps = squares + squares[tried][..., None] - 2 * (points[tried] @ points.T)
        gaps = np.minimum(np.maximum(gaps, 0.0), closest)
        best = (gaps @ weights).argmin(axis=1)
        closest, centers[:, c] = gaps[everyone, best][:, None], points[tried[everyone, best]]
        costs = closest[:, 0] * weights
    return centers


def _settled(points: FloatArray, weights: FloatArray, centers: FloatArray) -> Runs:
    """Lloyd's steps from given centres, shape (n_runs, k, d), until they are still."""
    n_runs, k, d = centers.shape
    limit, active = STILL * float(points.var(axis=0).mean()), np.arange(n_runs)
    values = [np.tile(column, n_runs) for column in (weights, *(weights * points.T))]
    for _ in range(MAX_STEPS):
        labels, scores = _nearest(points, centers[active])
        n = labels.size
        weight, *sums = (np.bincount(labels, column[:n], len(active) * k) for column in values)
        means = np.stack(sums, axis=1) / np.where(weight > 0, weight, 1.0)[:, None]
        for lost in np.flatnonzero(weight == 0):  # starts again at the point that costs most
            costs = scores[lost // k] + (points**2).sum(axis=1)
            means[lost] = points[costs.argmax()]
            scores[lost // k, costs.argmax()] = -np.inf
        means = means.reshape(-1, k, d)
        moved = ((means - centers[active]) ** 2).sum(axis=(1, 2))
        centers[active] = means
        active = active[moved > limit]
        if len(active) == 0:
            break
    labels, scores = _nearest(points, centers)
    sizes = np.bincount(labels, values[0], n_runs * k).astype(np.float64).reshape(n_runs, k)
    return Runs(centers, sizes, (scores + (points**2).sum(axis=1)) @ weights)


def _nearest(points: FloatArray, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Nearest centre of each point, numbered over all runs, and squared distances less the point's square."""
    n_runs, k, d = centers.shape
    scores = (-2.0 * centers.reshape(-1, d)) @ points.T + (centers**2).sum(axis=2).reshape(-1, 1)
    scores = scores.reshape(n_runs, k, -1)
    least, nearest = scores[:, 0].copy(), np.zeros((n_runs, len(points)), dtype=np.int64)
    for c in range(1, k):  # an `argmin` over few clusters takes three times as long
        np.copyto(nearest, c, where=scores[:, c] < least)
        np.minimum(least, scores[:, c], out=least)
    return (nearest + k * np.arange(n_runs)[:, None]).ravel(), least
