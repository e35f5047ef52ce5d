"""The merge tree: its cuts, the number of clusters, shapes it must tell apart, and mixtures at the edge."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, is_valid_linkage
from sklearn.datasets import make_circles, make_moons
from sklearn.mixture import GaussianMixture
from tests.worlds import rarely

from sfumato.errors import ParameterError
from sfumato.metrics import adjusted_rand
from sfumato.public.mixtures import merge_tree
from sfumato.public.mixtures.mixture import Mixture


def parts(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


@pytest.mark.parametrize("shape", ["moons", "circles"])
@pytest.mark.parametrize("n_components", [20, 30])
def test_separates_curved_shapes_exactly(shape, n_components):
    make = {"moons": make_moons, "circles": lambda *a, **k: make_circles(*a, factor=0.5, **k)}[shape]
    X, truth = make(2000, noise=0.05, random_state=0)
    fitted = GaussianMixture(n_components, random_state=0).fit(X)
    tree = merge_tree(Mixture(fitted.weights_, fitted.means_, fitted.covariances_))
    assert adjusted_rand(truth, tree.predict(X, 2)) >= 0.99
    assert adjusted_rand(truth, tree.cut(2)[fitted.predict(X)]) >= 0.99


def test_linkage_is_valid_and_cuts_like_scipy(random_mixture):
    tree = merge_tree(random_mixture(5, 20, 2, spread=2.0))
    assert tree.n_peaks > 8
    assert is_valid_linkage(tree.linkage)
    for k in range(1, tree.n_peaks + 1):
        ours = tree.cut(k)
        assert ours.max() + 1 == k
        assert parts(cut_tree(tree.linkage, k)[tree.peaks.owners, 0]) == parts(ours)


def test_clusters_are_numbered_from_the_highest_peak(isotropic):
    tree = merge_tree(isotropic([[0.0], [20.0], [40.0]], weights=[0.2, 0.5, 0.3]))
    np.testing.assert_array_equal(tree.cut(3), [2, 0, 1])


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([[0.0], [1.0], [2.0]], 1),  # one peak
        ([[0.0], [2.2], [4.4]], 1),  # hardly separated
        ([[0.0], [2.2], [20.0], [22.2]], 2),
        ([[0.0], [10.0], [20.0], [30.0]], 4),  # all separated
        ([[0.0], [8.0], [1000.0]], 3),  # how far is no matter
    ],
)
def test_number_of_clusters_by_the_largest_gap(isotropic, means, expected):
    tree = merge_tree(isotropic(means))
    assert tree.n_clusters == expected
    assert tree.cut().max() + 1 == expected


def test_order_of_components_does_not_matter(random_mixture):
    mixture = random_mixture(6, 15, 3, spread=2.0)
    order = np.random.default_rng(0).permutation(15)
    shuffled = Mixture(mixture.weights[order], mixture.means[order], mixture.covariances[order])
    one, other = merge_tree(mixture), merge_tree(shuffled)
    np.testing.assert_array_equal(other.linkage, one.linkage)
    for k in range(1, one.n_peaks + 1):
        np.testing.assert_array_equal(other.cut(k), one.cut(k)[order])


@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_scale_and_place_do_not_matter(random_mixture, scale):
    mixture = random_mixture(8, 12, 2, spread=2.0)
    moved = Mixture(mixture.weights, 3 * scale + scale * mixture.means, scale**2 * mixture.covariances)
    one, other = merge_tree(mixture), merge_tree(moved)
    np.testing.assert_allclose(other.linkage, one.linkage, atol=1e-6)
    np.testing.assert_allclose(
        other.saddles.positions, 3 * scale + scale * one.saddles.positions, atol=1e-5 * scale
    )


@pytest.mark.parametrize("d", [1, 2, 30])
def test_one_component(d):
    tree = merge_tree(Mixture([1.0], np.zeros((1, d)), np.eye(d)[None]))
    assert tree.n_clusters == tree.n_peaks == 1
    assert tree.linkage.shape == (0, 4)
    np.testing.assert_array_equal(tree.predict(np.ones((3, d))), 0)


def test_coincident_means_are_one_peak():
    covariances = [np.eye(2), 4 * np.eye(2), np.diag([1.0, 1e-6]), np.eye(2)]
    tree = merge_tree(Mixture([0.25] * 4, [[0.0, 0.0]] * 3 + [[9.0, 0.0]], covariances))
    assert tree.n_peaks == 2
    assert tree.cut(2).tolist() in ([0, 0, 0, 1], [1, 1, 1, 0])


def test_a_component_without_weight_belongs_to_where_it_lies(isotropic):
    tree = merge_tree(isotropic([[0.0], [1.0], [10.0], [11.0]], weights=[0.5, 0.0, 0.0, 0.5]))
    np.testing.assert_array_equal(tree.cut(2), [0, 0, 1, 1])


def test_a_mean_on_a_saddle_belongs_to_a_side(isotropic):
    tree = merge_tree(isotropic([[-3.0, 0.0], [0.0, 0.0], [3.0, 0.0]], weights=[0.5, 0.0, 0.5]))
    assert tree.n_peaks == 2
    assert set(tree.cut(2)[[0, 2]]) == {0, 1}


@pytest.mark.parametrize("thin", [1e-4, 1e-8, 1e-12])
def test_nearly_singular_and_tiny_components(thin):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(6, 3, 3)))[0]
    covariances = np.einsum("kij,j,klj->kil", axes, [1.0, 0.5, thin], axes)
    covariances[0] = thin * np.eye(3)
    weights = np.array([1e-12, 0.2, 0.2, 0.2, 0.2, 0.2 - 1e-12])
    tree = merge_tree(Mixture(weights, rng.normal(size=(6, 3)) * 3, covariances))
    assert is_valid_linkage(tree.linkage)
    assert np.isfinite(tree.saddles.log_densities).all()
    assert len(tree.saddles.peaks) == tree.n_peaks - 1
    assert tree.predict(tree.mixture.sample(200, 1), 3).max() <= 2


@pytest.mark.parametrize("seed", [*range(8), *rarely(*range(8, 30))])
def test_odd_mixtures_have_valid_trees(odd_mixture, seed):
    mixture = odd_mixture(seed)
    tree = merge_tree(mixture)
    assert len(tree.saddles.peaks) == tree.n_peaks - 1
    if tree.n_peaks > 1:
        assert is_valid_linkage(tree.linkage)
    assert (np.diff(tree.linkage[:, 2]) >= 0).all()
    np.testing.assert_allclose(
        mixture.log_density(tree.saddles.positions), tree.saddles.log_densities, rtol=1e-6, atol=1e-6
    )
    for k in range(1, tree.n_peaks + 1):
        assert tree.cut(k).max() + 1 == k
    assert 1 <= tree.n_clusters <= tree.n_peaks
    assert tree.predict(mixture.means, 1).max() == 0


@pytest.mark.parametrize("d", [1, 30])
def test_few_and_many_dimensions(isotropic, d):
    means = np.zeros((4, d))
    means[:, 0] = [0.0, 2.5, 20.0, 22.5]
    tree = merge_tree(isotropic(means))
    np.testing.assert_array_equal(np.sort(tree.cut(2)), [0, 0, 1, 1])
    assert tree.saddles.exact.all()
    # Along the line of their means the mixture is that of d = 1, whatever d is.
    line = merge_tree(isotropic(means[:, :1]))
    np.testing.assert_allclose(tree.linkage[:, 2], line.linkage[:, 2], atol=1e-6)


def test_more_clusters_than_peaks_part_components_that_share_one(isotropic):
    tree = merge_tree(isotropic([[0.0], [0.1], [9.0]]))
    assert tree.n_peaks == 2
    np.testing.assert_array_equal(tree.cut(2), [0, 0, 1])
    np.testing.assert_array_equal(tree.cut(3), [0, 1, 2])
    np.testing.assert_array_equal(tree.predict([[-1.0], [1.0], [8.0]], 3), [0, 1, 2])


@pytest.mark.parametrize("k", [0, -1, 4, 2.5, True, "two"])
def test_refuses_numbers_of_clusters_that_cannot_be(isotropic, k):
    tree = merge_tree(isotropic([[0.0], [5.0], [9.0]]))
    with pytest.raises(ParameterError, match="`n_clusters` must be"):
        tree.cut(k)
