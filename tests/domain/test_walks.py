"""Walks down a tree: the same leaves as those of one row after the other."""

import numpy as np
import pytest

from sfumato.domain.partitions import Tree
from sfumato.domain.walks import TOGETHER, steps_of, walk


def random_tree(n_leaves: int, n_features: int, seed: int) -> Tree:
    rng, tree = np.random.default_rng(seed), Tree.root()
    while tree.n_cells < n_leaves:
        leaf = rng.integers(tree.n_cells, size=1)
        tree = tree.split(leaf, rng.integers(n_features, size=1), rng.integers(-3, 4, size=1) / 2)
    return tree


def leaf_of(tree: Tree, row: np.ndarray) -> int:
    node = 0
    while node >= 0:
        node = tree.children[node, int(row[tree.columns[node]] >= tree.thresholds[node])]
    return -1 - node


@pytest.mark.parametrize("n_rows", [0, 1, TOGETHER - 1, TOGETHER, 3 * TOGETHER + 5])
@pytest.mark.parametrize("n_leaves", [2, 3, 40])
def test_all_rows_reach_the_leaf_that_each_reaches_alone(n_rows, n_leaves):
    tree = random_tree(n_leaves, 3, seed=n_leaves)
    rows = np.random.default_rng(n_rows).integers(-4, 5, size=(n_rows, 3)) / 2  # many on a threshold
    found = walk(rows, steps_of(tree.columns, tree.thresholds, tree.children))
    assert found.tolist() == [leaf_of(tree, row) for row in rows]
    assert (tree.index(rows) == found).all()


def test_leaves_of_a_crooked_tree_have_different_depths():
    tree = Tree.root()
    for leaf in range(9):  # always the newest: as deep as there are splits
        tree = tree.split(np.array([leaf]), np.array([0]), np.array([float(leaf)]))
    assert steps_of(tree.columns, tree.thresholds, tree.children).depth == 9
    rows = np.linspace(-1, 10, 200)[:, None]
    assert tree.index(rows).tolist() == [leaf_of(tree, row) for row in rows]
