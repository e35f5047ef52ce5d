"""Merge trees against connected components, found anew for every prefix of the ranked cells."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sfumato.public.density import peak_tree
from sfumato.public.density.peak_tree import grow_peak_tree
from sfumato.public.density.stencils import adjacent_offsets, near_offsets

SHAPES = [(60,), (9, 8), (4, 5, 4)]


@pytest.fixture(autouse=True, params=["small grid", "hash table", "few neighbours at a time"])
def lookup(request, monkeypatch):
    """Every test with all ways to find a neighbour."""
    if request.param == "few neighbours at a time":
        monkeypatch.setattr(peak_tree, "_NEIGHBOURS_AT_A_TIME", 50)
    if request.param == "hash table":
        monkeypatch.setattr(peak_tree, "_SMALL_GRID", 0)


def components(cells, shape, offsets):
    """Component of each cell, by all pairs."""
    at = np.stack(np.unravel_index(cells, shape), axis=1)
    near = {tuple(offset) for offset in offsets}
    pairs = [(i, j) for i in range(len(at)) for j in range(i) if tuple(at[i] - at[j]) in near]
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(len(cells),) * 2)
    return connected_components(graph, directed=False)[1]


def slow_tree(cells, scores, shape, offsets):
    """Peaks by rank: score, score at which it meets a higher one, ranks of those that it may meet."""
    order = np.argsort(-scores, kind="stable")
    found, alive = {}, {}
    for n in range(1, len(order) + 1):
        labels = components(cells[order[:n]], shape, offsets)
        tops = {int(np.flatnonzero(labels == label)[0]) for label in set(labels.tolist())}
        for rank in tops - alive.keys():
            found[rank] = (scores[order[rank]], -np.inf, set())
        for rank in alive.keys() - tops:
            met = {r for r in alive if labels[r] == labels[rank] and r < rank}
            found[rank] = (found[rank][0], scores[order[n - 1]], met)
        alive = dict.fromkeys(tops)
    return dict(sorted(found.items()))


def same_partition(one, other):
    """Whether two labellings group cells alike; -1 is no group."""
    assert ((one < 0) == (other < 0)).all()
    pairs = {*zip(one[one >= 0].tolist(), other[one >= 0].tolist(), strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def random_worlds(rng, shape, n_worlds):
    for number in range(n_worlds):
        cells = np.flatnonzero(rng.random(np.prod(shape)) < rng.uniform(0.2, 1)).astype(np.int64)
        scores = rng.integers(1, 6, size=len(cells)).astype(float) if number % 2 else rng.random(len(cells))
        offsets = adjacent_offsets(len(shape)) if number % 3 else near_offsets(len(shape), 2.2)
        yield rng.permutation(cells), scores, offsets


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_peaks_saddles_and_parents(shape):
    rng = np.random.default_rng(0)
    for cells, scores, offsets in random_worlds(rng, shape, 4):
        tree, slow = grow_peak_tree(cells, scores, shape, offsets), slow_tree(cells, scores, shape, offsets)
        ranks = list(slow)
        assert tree.n_peaks == len(slow)
        np.testing.assert_array_equal(tree.heights, [height for height, _, _ in slow.values()])
        np.testing.assert_array_equal(tree.saddles, [saddle for _, saddle, _ in slow.values()])
        if len(set(scores)) < len(scores):
            continue  # of equal saddles it is not known which came first
        for parent, (_, saddle, met) in zip(tree.parents, slow.values(), strict=True):
            while parent >= 0 and tree.saddles[parent] > saddle:  # from the peak it touches to the highest
                parent = tree.parents[parent]
            assert ranks[parent] in met if met else parent == -1


def test_two_hills_in_a_row():
    scores = np.array([1.0, 5, 4, 2, 3, 7, 6])
    tree = grow_peak_tree(np.arange(7), scores, (7,), adjacent_offsets(1))
    np.testing.assert_array_equal(tree.heights, [7, 5])
    np.testing.assert_array_equal(tree.saddles, [-np.inf, 2])
    np.testing.assert_array_equal(tree.parents, [-1, 0])
    np.testing.assert_array_equal(tree.peaks, [1, 1, 1, 1, 0, 0, 0])
    everything = (scores**2).sum() / scores.sum()
    higher, lower = (49 + 36 + 9) / 16, (25 + 16) / 9
    np.testing.assert_allclose(tree.bulks, [everything, min(higher, lower)])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cut_at_a_level_it_gives_connected_components(shape):
    rng = np.random.default_rng(1)
    for cells, scores, offsets in random_worlds(rng, shape, 10):
        tree = grow_peak_tree(cells, scores, shape, offsets)
        for level in np.quantile(scores, [0.0, 0.3, 0.7, 1.0]):
            high = scores >= level
            expected = np.full(len(cells), -1)
            expected[high] = components(cells[high], shape, offsets)
            labels = tree.clusters((tree.heights >= level) & (tree.saddles < level))
            assert same_partition(np.where(high, labels, -1), expected)


@pytest.mark.parametrize("radius", [1.5, 2.0, 2.83, 3.5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_plateau_has_the_same_components_without_a_look_farther(shape, radius):
    rng, offsets = np.random.default_rng(2), near_offsets(len(shape), radius)
    for _ in range(4):
        cells = np.flatnonzero(rng.random(np.prod(shape)) < rng.uniform(0.1, 1)).astype(np.int64)
        scores = rng.integers(1, 9, size=len(cells)).astype(float)
        flat_from = float(rng.integers(2, 6))
        flat = grow_peak_tree(cells, scores, shape, offsets, flat_from)
        assert flat.heights.max(initial=0) <= flat_from
        for level in np.arange(1, flat_from + 1):
            high = scores >= level
            expected = np.full(len(cells), -1)
            expected[high] = components(cells[high], shape, offsets)
            labels = flat.clusters((flat.heights >= level) & (flat.saddles < level))
            assert same_partition(np.where(high, labels, -1), expected)


def test_clusters_are_numbered_from_the_highest_peak_down():
    scores = np.array([9.0, 1, 5, 1, 7, 0, 0, 3])
    tree = grow_peak_tree(np.array([0, 1, 2, 3, 4, 7]), scores[[0, 1, 2, 3, 4, 7]], (8,), adjacent_offsets(1))
    np.testing.assert_array_equal(tree.heights, [9, 7, 5, 3])
    alone = tree.parents < 0
    np.testing.assert_array_equal(tree.clusters(np.ones(4, dtype=bool))[[0, 2, 4, 5]], [0, 2, 1, 3])
    np.testing.assert_array_equal(tree.clusters(alone), [0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(tree.clusters(np.array([True, True, False, False]))[[0, 4, 5]], [0, 1, -1])
    np.testing.assert_array_equal(tree.clusters(np.zeros(4, dtype=bool)), [-1] * 6)


def test_a_low_peak_goes_to_the_cluster_beside_it():
    """The last hill touches the middle one only, though the first is the highest of what it meets."""
    scores = np.array([10, 4, 8, 3, 3.5, 3.4])
    tree = grow_peak_tree(np.arange(6), scores, (6,), adjacent_offsets(1))
    np.testing.assert_array_equal(tree.heights, [10, 8, 3.5])
    labels = tree.clusters(np.array([True, True, False]))
    np.testing.assert_array_equal(labels[[0, 2, 4, 5]], [0, 1, 1, 1])


def test_no_cells():
    tree = grow_peak_tree(np.empty(0, dtype=np.int64), np.empty(0), (5, 5), adjacent_offsets(2))
    assert tree.n_peaks == 0
    assert tree.clusters(np.zeros(0, dtype=bool)).shape == (0,)


def test_far_cells_of_a_huge_grid_do_not_meet():
    shape = (2**31, 2**31)
    cells = np.array([0, 1, 2**31, 2**31 - 1, 2**62 - 1], dtype=np.int64)
    tree = grow_peak_tree(cells, np.array([5.0, 4, 3, 2, 1]), shape, adjacent_offsets(2))
    np.testing.assert_array_equal(tree.peaks, [0, 0, 0, 1, 2])


@pytest.mark.parametrize("flat_from", [3.5, 40.0, 1e5, np.inf])
@pytest.mark.parametrize("spread", [5, 10**6])
def test_whole_scores_give_the_tree_of_the_same_floats(flat_from, spread):
    rng, shape = np.random.default_rng(spread), (20, 15)
    cells, scores = np.arange(300), rng.integers(1, spread, 300)
    whole = grow_peak_tree(cells, scores, shape, adjacent_offsets(2), flat_from)
    floats = grow_peak_tree(cells, scores.astype(np.float64), shape, adjacent_offsets(2), flat_from)
    for field in ("heights", "saddles", "parents", "peaks", "bulks"):
        assert np.array_equal(getattr(whole, field), getattr(floats, field))
