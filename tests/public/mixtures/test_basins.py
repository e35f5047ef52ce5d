"""Clusters of new points: the quick certificate against ascents that are followed to the end."""

import numpy as np
import pytest

from sfumato.public.mixtures import merge_tree
from sfumato.public.mixtures.basins import Basins
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.peaks import climb


def ascent_twin(mixture, x, n_steps=3000):
    """Modal EM from its definition, one point at a time."""
    precisions = np.linalg.inv(mixture.covariances)
    for _ in range(n_steps):
        shares = mixture.responsibilities(x[None])[0]
        pulled = sum(s * p @ m for s, p, m in zip(shares, precisions, mixture.means, strict=True))
        moved = np.linalg.solve(np.tensordot(shares, precisions, 1), pulled)
        if np.linalg.norm(moved - x) < 1e-10:
            break
        x = moved
    return x


@pytest.mark.parametrize(("d", "n_components", "seed"), [(1, 10, 0), (2, 12, 1), (5, 10, 2), (10, 12, 3)])
def test_labels_are_those_of_the_whole_ascent(random_mixture, d, n_components, seed):
    mixture = random_mixture(seed, n_components, d, spread=2.0)
    tree = merge_tree(mixture)
    rng = np.random.default_rng(seed)
    points = np.concatenate([mixture.sample(60, seed), rng.uniform(-1, 1, (20, d)) * 8])
    tops = np.array([ascent_twin(mixture, x) for x in points])
    distances = np.linalg.norm(tops[:, None] - tree.peaks.positions, axis=2)
    known = distances.min(axis=1) < 1e-3  # a mixture may have peaks that no mean leads to
    assert known.mean() > 0.9
    for k in {2, 3, tree.n_peaks}:
        clusters = np.empty(tree.n_peaks, dtype=int)
        clusters[tree.peaks.owners] = tree.cut(k)
        expected = clusters[distances.argmin(axis=1)]
        np.testing.assert_array_equal(tree.predict(points, k)[known], expected[known])


def test_density_never_falls_on_the_way_of_an_ascent(random_mixture):
    mixture = random_mixture(0, 10, 3)
    points = mixture.sample(200, 0)
    for _ in range(5):
        here = mixture.local(points)
        moved = points + np.linalg.solve(here.precision, here.gradient[..., None])[..., 0]
        for share in (0.2, 0.5, 0.8, 1.0):
            between = mixture.log_density(points + share * (moved - points))
            assert (between >= here.log_density - 1e-10).all()
        points = moved


def test_components_and_means_have_the_same_cluster(random_mixture):
    tree = merge_tree(random_mixture(4, 20, 2, spread=2.0))
    known = np.linalg.norm(
        climb(tree.mixture, tree.mixture.means) - tree.peaks.positions[tree.peaks.owners], axis=1
    )
    np.testing.assert_allclose(known, 0, atol=1e-4)
    np.testing.assert_array_equal(tree.predict(tree.peaks.positions[tree.peaks.owners], 4), tree.cut(4))


def test_points_on_a_border_and_far_away_get_a_cluster(isotropic):
    tree = merge_tree(isotropic([[-3.0, 0.0], [3.0, 0.0]]))
    labels = tree.predict([[0.0, 0.0], [0.0, 5.0], [1e9, 0.0], [-1e9, 1e3]], 2)
    assert set(labels[:2]) <= {0, 1}
    np.testing.assert_array_equal(labels[2:], tree.predict([[3.0, 0.0], [-3.0, 0.0]], 2))


def test_no_points(isotropic):
    assert merge_tree(isotropic([[0.0], [9.0]])).predict(np.empty((0, 1))).shape == (0,)


def test_one_cluster_takes_all(isotropic):
    tree = merge_tree(Mixture([0.5, 0.5], [[0.0], [9.0]], [[[1.0]], [[1.0]]]))
    np.testing.assert_array_equal(tree.predict([[0.0], [4.5], [100.0]], 1), 0)


@pytest.mark.parametrize(("d", "seed"), [(2, 0), (2, 5), (5, 2)])
def test_labels_need_no_saddle_where_outer_levels_are_unknown(random_mixture, d, seed):
    mixture = random_mixture(seed, 12, d)
    tree = merge_tree(mixture)
    clusters, points = np.arange(tree.n_peaks), mixture.sample(500, 0)
    unknown, low = (Basins(mixture, tree.peaks, clusters, np.full(tree.n_peaks, c)) for c in (np.inf, -1e3))
    expected = tree.predict(points, tree.n_peaks)
    np.testing.assert_array_equal(unknown.predict(points), expected)
    assert (low.predict(points) != expected).any()  # a level that is too low would make too much certain
