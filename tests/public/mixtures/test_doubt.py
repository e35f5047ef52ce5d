"""Clusters that noise may have made are joined first."""

import numpy as np
import pytest

from sfumato.public.mixtures import merge_tree

FAR = [[0.0], [7.0], [30.0]]  # the last is joined last by level


def test_without_noise_the_level_decides(isotropic):
    tree = merge_tree(isotropic(FAR))
    sure = tree.doubting(np.array([100.0, 100.0, 100.0]), np.zeros(3))
    assert sure.n_doubtful == 0
    np.testing.assert_array_equal(sure.cut(2), tree.cut(2))
    np.testing.assert_array_equal(sure.cut(2), [0, 0, 1])


@pytest.mark.parametrize(("rows", "labels"), [(49.0, [0, 1, 1]), (51.0, [0, 0, 1])])
def test_a_cluster_of_less_than_five_deviations_is_joined_first(isotropic, rows, labels):
    tree = merge_tree(isotropic(FAR)).doubting(np.array([1000.0, 1000.0, rows]), np.full(3, 10.0))
    assert tree.n_doubtful == (rows < 50)
    np.testing.assert_array_equal(np.unique(tree.cut(2), return_inverse=True)[1], labels)
    assert tree.n_clusters == (2 if rows < 50 else 3)


def test_a_shallow_valley_needs_more_rows(isotropic):
    tree = merge_tree(isotropic([[0.0], [2.5]]))
    rise = tree.persistences[0]
    assert 0 < rise < 0.5
    for factor, doubtful in ((0.9, 1), (1.1, 0)):
        rows = np.full(2, 10 * 5 * factor / rise)
        assert tree.doubting(rows, np.full(2, 10.0)).n_doubtful == doubtful


def test_two_halves_are_surer_together(isotropic):
    tree = merge_tree(isotropic([[0.0], [7.0], [40.0]]))
    doubting = tree.doubting(np.array([90.0, 90.0, 1000.0]), np.full(3, 20.0))
    assert doubting.n_doubtful == 1  # 4.5 deviations each, 6.4 together
    np.testing.assert_array_equal(np.bincount(doubting.cut(2)[:2], minlength=2).max(), 2)
