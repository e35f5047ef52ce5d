"""Components that share a peak: which are taken as one first."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sfumato.public.mixtures import merge_tree
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.shoulders import bhattacharyya, shoulder_pairs


def test_distance_is_minus_the_logarithm_of_the_overlap():
    means, scales = np.array([0.0, 1.5, -2.0]), np.array([1.0, 0.4, 2.0])
    found = bhattacharyya(means[:, None], (scales**2)[:, None, None])
    for i in range(3):
        for j in range(3):
            first, second = norm(means[i], scales[i]), norm(means[j], scales[j])
            overlap, _ = quad(lambda x, a=first, b=second: np.sqrt(a.pdf(x) * b.pdf(x)), -20, 20, limit=200)
            assert found[i, j] == pytest.approx(-np.log(overlap), abs=1e-7)


def test_the_least_distinct_are_joined_first_and_only_within_a_peak():
    covariances = np.array([1.0, 1.1, 0.01, 1.0])[:, None, None] * np.eye(2)
    means = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.05], [30.0, 0.0]])
    pairs = shoulder_pairs(Mixture([0.25] * 4, means, covariances), np.array([0, 0, 0, 1]))
    np.testing.assert_array_equal(pairs[0], [0, 1])
    assert len(pairs) == 2
    assert set(pairs[1]) < {0, 1, 2}


@pytest.mark.parametrize("k", range(1, 8))
def test_any_number_of_clusters_can_be_had(k):
    means = np.array([[0.0], [0.1], [0.1], [0.2], [5.0], [5.0], [9.0]])
    tree = merge_tree(Mixture([1 / 7] * 7, means, np.ones((7, 1, 1))))
    labels = tree.cut(k)
    assert np.unique(labels).tolist() == list(range(k))
    if k > 1:  # nested
        coarser = tree.cut(k - 1)
        assert all(len(np.unique(coarser[labels == c])) == 1 for c in range(k))
