"""Which released cells belong together: Ward's stages, their silhouettes, and the number of clusters.

The twins compute costs and silhouettes from their definitions, cell by cell.
"""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from sfumato.public import kmeans
from sfumato.public.kmeans import (
    WeightedCells,
    _silhouettes,
    merged_into,
    separated_clusters,
    ward_merges,
    weighted_kmeans,
)


def parts(labels):
    """A clustering as a set of sets of cells, whatever the numbers of its clusters."""
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(np.asarray(labels).tolist())}


def stages_of(merges, n_cells):
    """Labels before the first merge and after each, numbered from 0."""
    labels = np.arange(n_cells)
    stages = [labels.copy()]
    for kept, dropped in merges:
        assert kept in labels
        assert dropped in labels
        labels[labels == dropped] = kept
        stages.append(np.unique(labels, return_inverse=True)[1])
    return stages


def ward_stages(centers, sizes):
    return stages_of(ward_merges(centers, sizes, 2), len(sizes))


def spread_within(points, weights):
    return (weights * ((points - np.average(points, axis=0, weights=weights)) ** 2).sum(axis=1)).sum()


def ward_twin(centers, sizes):
    """Merge the pair whose union has the least increase of the sum of squares, computed from all members."""
    clusters = [[i] for i in range(len(sizes))]
    stages = [{frozenset(c) for c in clusters}]
    while len(clusters) > 2:
        within = {tuple(c): spread_within(centers[c], sizes[c]) for c in clusters}
        costs = {}
        for i, a in enumerate(clusters):
            for j in range(i + 1, len(clusters)):
                both = a + clusters[j]
                union = spread_within(centers[both], sizes[both])
                costs[i, j] = union - within[tuple(a)] - within[tuple(clusters[j])]
        i, j = min(costs, key=costs.get)
        clusters[i] = clusters[i] + clusters.pop(j)
        stages.append({frozenset(c) for c in clusters})
    return stages


def silhouette_twin(distances, sizes, labels):
    scores = []
    for i in range(len(labels)):
        to = {
            c: np.average(distances[i, labels == c], weights=sizes[labels == c]) for c in set(labels.tolist())
        }
        inner = to.pop(labels[i])
        outer = min(to.values())
        scores.append((outer - inner) / max(outer, inner))
    return np.average(scores, weights=sizes)


def cells_of(rows, n_cells, seed=0):
    """What a refinement would give without noise: small cells of all clusters."""
    found = KMeans(n_cells, n_init=1, random_state=seed).fit(rows)
    sizes = np.bincount(found.labels_, minlength=n_cells).astype(float)
    return WeightedCells(found.cluster_centers_, sizes, found.inertia_ / len(rows))


def corners(k, d, n=2000, scale=0.04, seed=0):
    """Round clusters on distinct corners of a cube of side 1, far apart in comparison with their width."""
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(2**d)[:k] if d < 20 else rng.choice(2**20, size=k, replace=False)
    at = (numbers[:, None] >> np.arange(d)) & 1
    labels = np.arange(n) % k
    return at[labels] + rng.normal(scale=scale, size=(n, d)), at.astype(float)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("m", "d"), [(3, 1), (9, 1), (12, 2), (15, 7)])
def test_ward_agrees_with_its_twin(m, d, seed):
    rng = np.random.default_rng(seed)
    centers, sizes = rng.normal(size=(m, d)), rng.uniform(1, 1000, size=m)
    stages = ward_stages(centers, sizes)
    assert [parts(labels) for labels in stages] == ward_twin(centers, sizes)
    assert [labels.max() + 1 for labels in stages] == list(range(m, 1, -1))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("m", "d"), [(10, 2), (40, 3), (100, 10)])
def test_ward_agrees_with_scipy_for_equal_sizes(m, d, seed):
    centers = np.random.default_rng(seed).normal(size=(m, d))
    tree = linkage(centers, "ward")
    for labels in ward_stages(centers, np.full(m, 17.0)):
        assert parts(labels) == parts(cut_tree(tree, labels.max() + 1)[:, 0])


def test_ward_changes_nothing_that_it_is_given():
    rng = np.random.default_rng(0)
    centers, sizes = rng.normal(size=(8, 2)), rng.uniform(1, 9, size=8)
    before = centers.copy(), sizes.copy()
    ward_merges(centers, sizes, 2)
    assert (centers == before[0]).all()
    assert (sizes == before[1]).all()


def test_large_cells_attract_no_more_than_they_should():
    """A tiny cell joins the nearer of two neighbours, two large ones at the same distance stay apart."""
    centers, sizes = np.array([[0.0], [1.0], [2.1]]), np.array([1000.0, 1.0, 1000.0])
    assert parts(ward_stages(centers, sizes)[-1]) == {frozenset({0, 1}), frozenset({2})}
    centers, sizes = np.array([[0.0], [1.0], [2.1], [3.4]]), np.array([1000.0, 1000.0, 1.0, 1.0])
    assert frozenset({2, 3}) in parts(ward_stages(centers, sizes)[1])


@pytest.mark.parametrize("seed", range(6))
def test_silhouette_agrees_with_its_twin(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 30))
    centers, sizes = rng.normal(size=(m, 3)), rng.uniform(1, 100, size=m)
    distances = np.sqrt(cdist(centers, centers) ** 2 + 2 * rng.uniform(0, 0.3))
    merges = ward_merges(centers, sizes, 2)
    expected = [silhouette_twin(distances, sizes, labels) for labels in stages_of(merges, m)]
    assert _silhouettes(distances, sizes, merges) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_silhouette_of_points_is_that_of_scikit_learn():
    """Cells of 60 equal points: scikit-learn leaves out the point itself, which matters little here."""
    rng = np.random.default_rng(1)
    centers, labels = rng.normal(size=(9, 2)), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    centers += 4.0 * labels[:, None]
    merges = [(0, 1), (0, 2), (3, 4), (3, 5), (6, 7), (6, 8)]
    found = _silhouettes(cdist(centers, centers), np.full(9, 60.0), merges)[-1]
    expected = silhouette_score(np.repeat(centers, 60, axis=0), np.repeat(labels, 60))
    assert found == pytest.approx(expected, abs=0.01)


def test_silhouettes_lie_between_minus_one_and_one():
    rng = np.random.default_rng(2)
    for _ in range(50):
        m = int(rng.integers(3, 20))
        centers, sizes = rng.normal(size=(m, 2)), rng.choice([1.0, 2.0, 1e9], size=m)
        distances = np.sqrt(cdist(centers, centers) ** 2 + rng.choice([0.0, 1e-300, 1.0]))
        assert (np.abs(_silhouettes(distances, sizes, ward_merges(centers, sizes, 2))) <= 1).all()


def matched(found, wanted):
    """Largest distance from a wanted centre to the nearest found one."""
    return np.sqrt(((wanted[:, None] - found) ** 2).sum(axis=2)).min(axis=1).max()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("k", "d"), [(2, 1), (2, 2), (4, 2), (5, 3), (8, 3), (3, 10), (20, 10), (6, 100)])
def test_separated_clusters_are_found(k, d, seed):
    rows, at = corners(k, d, seed=seed)
    for per_cluster in (2, 3):
        found = separated_clusters(cells_of(rows, per_cluster * k, seed))
        assert len(found) == k
        assert matched(found, at) < 0.05


@pytest.mark.parametrize("k", [3, 5, 8])
def test_clusters_that_nobody_cut_stay_apart(k):
    rows, at = corners(k, 3)
    found = separated_clusters(cells_of(rows, k))
    assert len(found) == k
    assert matched(found, at) < 0.05


def test_sizes_may_be_unequal():
    rng = np.random.default_rng(3)
    at, sizes = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [3000, 300, 100]
    rows = np.concatenate([rng.normal(c, 0.04, (n, 2)) for c, n in zip(at, sizes, strict=True)])
    found = separated_clusters(cells_of(rows, 9))
    assert len(found) == 3
    assert matched(found, at) < 0.06


def test_the_centre_of_merged_cells_is_their_weighted_mean():
    centers = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.0, 5.1], [9.0, 0.0], [9.1, 0.0]])
    sizes = np.array([300.0, 100.0, 50.0, 150.0, 1000.0, 1000.0])
    found = separated_clusters(WeightedCells(centers, sizes, 0.01))
    expected = [[0.025, 0.0], [5.0, 5.075], [9.05, 0.0]]
    assert np.array(sorted(found.tolist())) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("m", [1, 2])
def test_one_or_two_cells_are_kept(m):
    centers = np.arange(2.0 * m).reshape(m, 2)
    for sizes in (np.full(m, 10.0), np.zeros(m)):
        assert (separated_clusters(WeightedCells(centers, sizes, 0.5)) == centers).all()


ODD = {
    "equal centres": lambda rng, m: (np.ones((m, 2)), rng.uniform(1, 9, m), 0.1),
    "equal centres of no width": lambda rng, m: (np.ones((m, 2)), rng.uniform(1, 9, m), 0.0),
    "pairs of equal centres": lambda rng, m: (np.arange(m)[:, None] // 2 * np.ones(2), np.ones(m), 0.0),
    "no rows": lambda rng, m: (rng.normal(size=(m, 3)), np.zeros(m), 0.0),
    "no rows but one": lambda rng, m: (rng.normal(size=(m, 3)), np.eye(m)[0], 1.0),
    "no width": lambda rng, m: (rng.normal(size=(m, 3)), rng.uniform(0, 9, m), 0.0),
    "wider than apart": lambda rng, m: (rng.normal(size=(m, 1)), rng.uniform(0, 9, m), 1e6),
    "huge": lambda rng, m: (1e140 * rng.uniform(-1, 1, size=(m, 2)), np.full(m, 2.0**33), 1e280),
    "minute": lambda rng, m: (1e-140 * rng.uniform(-1, 1, size=(m, 2)), rng.uniform(0, 9, m), 1e-281),
    "one far away": lambda rng, m: (np.vstack([np.zeros((m - 1, 2)), [[1e9, 0.0]]]), np.ones(m), 1e-9),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 17])
def test_whatever_is_released_there_are_centres_among_the_cells(name, m):
    """Warnings are errors, so that a division by zero would be seen."""
    rng = np.random.default_rng(m)
    centers, sizes, mean_square = ODD[name](rng, m)
    found = separated_clusters(WeightedCells(centers, sizes, mean_square))
    assert 1 <= len(found) <= m
    assert np.isfinite(found).all()
    slack = 1e-9 * np.abs(centers).max()
    assert (found >= centers.min(axis=0) - slack).all()
    assert (found <= centers.max(axis=0) + slack).all()


def test_units_and_places_do_not_matter():
    rows, _ = corners(5, 3)
    cells = cells_of(rows, 20)
    found = separated_clusters(cells)
    for factor, shift in ((0.5, 0.0), (1024.0, 0.0), (1.0, 8.0)):
        moved = WeightedCells(cells.centers * factor + shift, cells.sizes, cells.mean_square * factor**2)
        assert separated_clusters(moved) == pytest.approx(found * factor + shift, rel=1e-9)
    order = np.random.default_rng(0).permutation(20)
    shuffled = separated_clusters(WeightedCells(cells.centers[order], cells.sizes[order], cells.mean_square))
    assert np.array(sorted(shuffled.tolist())) == pytest.approx(np.array(sorted(found.tolist())))


@pytest.mark.parametrize("seed", range(3))
def test_many_separated_clusters_are_merged_without_missing_one(seed):
    rng = np.random.default_rng(seed)
    at = rng.uniform(-100, 100, size=(64, 10))
    cells = np.repeat(at, 2, axis=0) + rng.normal(scale=0.5, size=(128, 10))
    centers, sizes = merged_into(cells, rng.uniform(500, 1500, size=128), 64)
    assert len(centers) == len(sizes) == 64
    assert matched(centers, at) < 3


def test_merging_into_as_many_or_any_number_keeps_all():
    centers, sizes = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    for n_clusters in (3, 4, None):
        found = merged_into(centers, sizes, n_clusters)
        assert found[0] is centers
        assert found[1] is sizes


def test_very_many_cells_are_merged_too():
    centers = np.random.default_rng(0).normal(size=(2100, 2))
    assert len(merged_into(centers, np.ones(2100), 3)[0]) == 3


def test_many_points_are_left_to_scikit_learn(monkeypatch):
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 0.1, (500, 2)) + rng.integers(2, size=(500, 1))
    few, _ = weighted_kmeans(points, np.ones(500), 2, n_init=2)
    monkeypatch.setattr(kmeans, "FEW_POINTS", 100)
    monkeypatch.setattr(kmeans, "FEW_DISTANCES", 100)
    many, sizes = weighted_kmeans(points, np.ones(500), 2, n_init=2, starts=[points[:2]])
    np.testing.assert_allclose(np.sort(few, axis=0), np.sort(many, axis=0))
    np.testing.assert_array_equal(np.bincount(kmeans.nearest_centres(points, many)), sizes)
