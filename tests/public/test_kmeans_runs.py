"""Runs of weighted k-means side by side, against scikit-learn and the definition."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from sfumato.public.kmeans_runs import kmeans_runs


@pytest.mark.parametrize("k", [1, 3, 12])
def test_runs_side_by_side_are_as_good_as_those_of_scikit_learn(k):
    """Costs of single runs over many tables: the means agree within three standard errors."""
    gaps = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points = rng.uniform(0, 1, (k, 2))[rng.integers(k, size=150)] + rng.normal(0, 0.1, (150, 2)) + 1e3
        weights = rng.exponential(1.0, 150)
        ours = kmeans_runs(points, weights, k, n_init=8, seed=seed)
        theirs = [
            KMeans(k, n_init=1, random_state=i).fit(points, sample_weight=weights).inertia_ for i in range(8)
        ]
        gaps.append(np.log(ours.costs).mean() - np.log(theirs).mean())
    assert np.mean(gaps) <= 3 * np.std(gaps) / np.sqrt(len(gaps)) + 1e-9


def test_runs_end_at_means_of_the_nearest_points():
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(-1, 1, (200, 3)), rng.exponential(1.0, 200)
    runs = kmeans_runs(points, weights, 4, n_init=5, seed=1, starts=[points[:4]])
    assert runs.centers.shape == (6, 4, 3)
    for centers, sizes, cost in zip(*runs, strict=True):
        squares = cdist(points, centers, "sqeuclidean")
        nearest = squares.argmin(axis=1)
        np.testing.assert_allclose(sizes, np.bincount(nearest, weights, 4))
        assert cost == pytest.approx(weights @ squares.min(axis=1))
        for c in range(4):
            mean = np.average(points[nearest == c], axis=0, weights=weights[nearest == c])
            np.testing.assert_allclose(centers[c], mean, atol=0.02)


def test_clusters_without_points_start_again():
    points = np.array([[0.0], [0.1], [5.0], [9.0]])
    runs = kmeans_runs(points, np.ones(4), 3, n_init=0, seed=0, starts=[np.array([[0.0], [50.0], [60.0]])])
    np.testing.assert_allclose(np.sort(runs.centers[0, :, 0]), [0.05, 5.0, 9.0])
    alike = kmeans_runs(np.ones((6, 2)), np.ones(6), 3, n_init=2, seed=0)
    np.testing.assert_array_equal(alike.centers, 1.0)
    np.testing.assert_array_equal(alike.sizes.sum(axis=1), 6.0)
