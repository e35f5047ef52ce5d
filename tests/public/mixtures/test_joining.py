"""What is joined first: overlap, depth and size together."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sfumato.public.mixtures import merge_tree
from sfumato.public.mixtures.joining import joining_order, log_products, pass_levels
from sfumato.public.mixtures.mixture import Mixture


def test_products_are_those_of_the_densities():
    means, scales = np.array([0.0, 1.5, -2.0]), np.array([1.0, 0.4, 2.0])
    mixture = Mixture(np.full(3, 1 / 3), means[:, None], (scales**2)[:, None, None])
    found = log_products(mixture) - np.log(2 * np.pi) / 2
    for i in range(3):
        for j in range(3):
            first, second = norm(means[i], scales[i]), norm(means[j], scales[j])
            product, _ = quad(lambda x, a=first, b=second: a.pdf(x) * b.pdf(x), -20, 20, limit=200)
            assert found[i, j] == pytest.approx(np.log(product), abs=1e-7)


def test_the_best_path_may_cross_other_peaks(isotropic):
    tree = merge_tree(isotropic([[0.0], [5.0], [11.0]]))
    found = pass_levels(tree.peaks, tree.saddles)
    first, middle, last = tree.peaks.owners
    np.testing.assert_array_equal(np.diagonal(found), tree.peaks.log_densities)
    assert found[first, middle] == tree.saddles.log_densities[0]
    assert found[middle, last] == found[first, last] == found[last, first] == tree.saddles.log_densities[1]


def order_twin(tree, sizes, stds):
    """The order from its definition: sums over the members of each pair of clusters."""
    mixture, peaks = tree.mixture, tree.peaks
    parts = mixture.weights[:, None] * mixture.weights * np.exp(log_products(mixture))
    levels = pass_levels(peaks, tree.saddles)[np.ix_(peaks.owners, peaks.owners)]

    def distance(a, b):
        both, first, second = (parts[np.ix_(x, y)].sum() for x, y in ((a, b), (a, a), (b, b)))
        lower = min(peaks.log_densities[peaks.owners[x]].max() for x in (a, b))
        lighter = min(mixture.weights[x].sum() for x in (a, b))
        fall = lower - levels[np.ix_(a, b)].max()
        return 2 * fall - np.log(both / np.sqrt(first * second)) + np.log(lighter) / 2

    clusters, found = [[i] for i in range(len(sizes))], []
    while len(clusters) > 1:
        certainty = [sizes[c].sum() / np.sqrt((stds[c] ** 2).sum()) for c in clusters]
        worst = np.argmin(certainty)
        pairs = [(i, j) for j in range(len(clusters)) for i in range(j)]
        if certainty[worst] < 5:
            pairs = [pair for pair in pairs if worst in pair]
        i, j = min(pairs, key=lambda pair: distance(clusters[pair[0]], clusters[pair[1]]))
        clusters[i] = clusters[i] + clusters[j]
        del clusters[j]
        found.append({frozenset(c) for c in clusters})
    return found


@pytest.mark.parametrize(("d", "seed"), [(1, 0), (2, 1), (3, 2), (6, 3)])
def test_order_is_that_of_its_definition(random_mixture, d, seed):
    tree = merge_tree(random_mixture(seed, 12, d))
    sizes, stds = 1000 * tree.mixture.weights, np.full(12, 8.0)
    assert (sizes < 40).any()
    tree = tree.doubting(sizes, stds)
    for k, expected in zip(range(11, 0, -1), order_twin(tree, sizes, stds), strict=True):
        labels = tree.cut(k)
        assert {frozenset(np.flatnonzero(labels == c).tolist()) for c in range(k)} == expected


def test_sizes_that_noise_made_zero_are_joined_to_their_neighbours(isotropic):
    tree = merge_tree(isotropic([[0.0], [4.0], [30.0], [34.0]]))
    pairs = joining_order(tree.mixture, tree.peaks, tree.saddles, np.zeros(4), np.full(4, 10.0))
    assert {frozenset(pair) for pair in pairs[:2].tolist()} == {frozenset({0, 1}), frozenset({2, 3})}


def test_a_faint_component_at_the_rim_is_no_cluster():
    """By level it would be: nothing joins later than what is faint and far out."""
    means, variances = np.array([[0.0], [4.0], [12.0]]), np.array([1.0, 1.0, 9.0])[:, None, None]
    tree = merge_tree(Mixture([0.6, 0.39, 0.01], means, variances))
    assert tree.n_peaks == 3
    assert tree.saddles.log_densities[1] < tree.saddles.log_densities[0]
    np.testing.assert_array_equal(tree.cut(2), [0, 1, 1])


def test_a_heavy_cluster_as_far_out_stays_one():
    means, variances = np.array([[0.0], [4.0], [16.0]]), np.array([1.0, 1.0, 1.0])[:, None, None]
    tree = merge_tree(Mixture([0.6, 0.3, 0.1], means, variances))
    np.testing.assert_array_equal(tree.cut(2), [0, 0, 1])


def test_a_core_is_told_from_its_sparse_surroundings():
    """They share a peak, and the core has two; yet hardly a row of the one can be of the other."""
    d = 8
    means = np.zeros((3, d))
    means[1, 0] = 2.5
    covariances = np.array([1.0, 1.0, 9.0])[:, None, None] * np.eye(d)
    tree = merge_tree(Mixture([0.3, 0.3, 0.4], means, covariances))
    assert tree.n_peaks == 2
    np.testing.assert_array_equal(tree.cut(2), [0, 0, 1])
