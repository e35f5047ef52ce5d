"""Saddles and levels of the merge tree, against slow methods that share nothing with the search.

In two dimensions a flood of a fine grid gives the level at which two peaks are connected. In any dimension it
is checked from both sides: the gradient flow from each saddle, integrated by SciPy, ends in the two peaks, so
the level is reached; and no path through thousands of random points is higher.
"""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet
from scipy.integrate import solve_ivp
from scipy.spatial import cKDTree
from scipy.spatial.distance import squareform
from tests.worlds import rarely

from sfumato.public.mixtures import merge_tree, saddles
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.saddles import critical_points, ridgelines


def joint_levels(n_peaks, nodes, edges):
    """Level at which each two of the first nodes are connected, as edges (level, i, j) enter from above."""
    groups = [[node] if node < n_peaks else [] for node in range(nodes)]
    up = list(range(nodes))
    levels = np.full((n_peaks, n_peaks), -np.inf)

    def root(node):
        while up[node] != node:
            up[node] = up[up[node]]
            node = up[node]
        return node

    for level, i, j in edges:
        one, other = root(i), root(j)
        if one == other:
            continue
        for a in groups[one]:
            for b in groups[other]:
                levels[a, b] = levels[b, a] = level
        up[other] = one
        groups[one] += groups[other]
    return levels


def tree_levels(tree):
    levels = tree.peaks.log_densities[0] - squareform(cophenet(tree.linkage))
    np.fill_diagonal(levels, -np.inf)
    return levels


def flooded_levels(mixture, peaks, n_cells=140):
    """Connection levels on a grid of two columns: a path steps between the eight neighbours of a cell."""
    reach = 1.5 * np.sqrt(np.diagonal(mixture.covariances, axis1=1, axis2=2).max(axis=0))
    low, high = mixture.means.min(axis=0) - reach, mixture.means.max(axis=0) + reach
    axes = np.linspace(low, high, n_cells)
    grid = np.stack(np.meshgrid(axes[:, 0], axes[:, 1], indexing="ij"), axis=-1)
    values = mixture.log_density(grid.reshape(-1, 2)).reshape(n_cells, n_cells)
    number = np.arange(n_cells**2).reshape(n_cells, n_cells) + len(peaks)
    edges = []
    for di, dj in ((0, 1), (1, 0), (1, 1), (1, -1)):
        here = (slice(0, n_cells - di), slice(max(0, -dj), n_cells - max(0, dj)))
        there = (slice(di, n_cells), slice(max(0, dj), n_cells - max(0, -dj)))
        level = np.minimum(values[here], values[there])
        edges += zip(level.ravel(), number[here].ravel(), number[there].ravel(), strict=True)
    nearest = np.rint((peaks - low) / (high - low) * (n_cells - 1)).astype(int)
    edges += [(np.inf, peak, number[i, j]) for peak, (i, j) in enumerate(nearest)]
    return joint_levels(len(peaks), number.max() + 1, sorted(edges, reverse=True))


def segment_levels(mixture, starts, stops, n_samples):
    along = starts[:, None] + np.linspace(0, 1, n_samples)[:, None] * (stops - starts)[:, None]
    return mixture.log_density(along.reshape(-1, starts.shape[1])).reshape(len(starts), -1).min(axis=1)


def sampled_levels(mixture, peaks, n_samples=1500, n_neighbours=15):
    """Connection levels through random points joined by straight segments: never above the truth."""
    nodes = np.concatenate([peaks, mixture.means, mixture.sample(n_samples, 0)])
    near = cKDTree(nodes).query(nodes, n_neighbours)[1]
    i, j = np.repeat(np.arange(len(nodes)), n_neighbours), near.ravel()
    edges = list(zip(segment_levels(mixture, nodes[i], nodes[j], 40), i, j, strict=True))
    i, j = np.triu_indices(len(peaks) + mixture.n_components, 1)
    edges += zip(segment_levels(mixture, nodes[i], nodes[j], 500), i, j, strict=True)
    return joint_levels(len(peaks), len(nodes), sorted(edges, reverse=True))


@pytest.mark.parametrize("seed", [*range(5), *rarely(*range(5, 12))])
def test_levels_are_those_of_a_flooded_grid(random_mixture, seed):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(seed, int(rng.integers(3, 14)), 2, rng.uniform(0.8, 2), rng.uniform(1, 8))
    tree = merge_tree(mixture)
    flooded = flooded_levels(mixture, tree.peaks.positions)
    if tree.n_peaks > 1:
        found = tree_levels(tree)
        np.testing.assert_allclose(np.exp(found), np.exp(flooded), atol=0.01 * np.exp(flooded.max()))
        # Where persistence is far above what a cell resolves, logarithms agree too.
        clear = flooded < np.minimum(*np.meshgrid(*[tree.peaks.log_densities] * 2)) - 0.1
        np.testing.assert_allclose(found[clear], flooded[clear], atol=0.08)


@pytest.mark.parametrize(("d", "n_components"), [(2, 15), (3, 15), (5, 12), (10, 12)])
@pytest.mark.parametrize("seed", [0, *rarely(1)])
def test_no_path_through_random_points_is_higher(random_mixture, d, n_components, seed):
    mixture = random_mixture(seed, n_components, d, spread=2.0)
    tree = merge_tree(mixture)
    sampled = sampled_levels(mixture, tree.peaks.positions)
    assert tree.n_peaks > 1
    assert (tree_levels(tree) >= sampled - 1e-3).all()


@pytest.mark.parametrize("seed", [0, 1, *rarely(2, 3)])
def test_on_a_line_the_level_is_the_lowest_density_between(random_mixture, seed):
    mixture = random_mixture(seed, 12, 1, spread=2.0)
    tree = merge_tree(mixture)
    tops, levels = tree.peaks.positions[:, 0], tree_levels(tree)
    for i, j in zip(*np.triu_indices(tree.n_peaks, 1), strict=True):
        between = mixture.log_density(np.linspace(tops[i], tops[j], 20_001)[:, None]).min()
        assert levels[i, j] == pytest.approx(between, abs=1e-2)


def flow_end(mixture, start):
    """End of the gradient flow from a point, by an integrator for stiff systems."""
    done = solve_ivp(
        lambda _, x: mixture.gradient(x[None])[0], (0, 1e5), start, method="LSODA", rtol=1e-8, atol=1e-10
    )
    return done.y[:, -1]


@pytest.mark.parametrize(("d", "n_components"), [(1, 8), (2, 10), (5, 8), (10, 8)])
def test_saddles_have_index_one_and_flow_to_the_two_sides_that_they_join(random_mixture, d, n_components):
    mixture = random_mixture(7, n_components, d, spread=2.0)
    tree = merge_tree(mixture)
    assert tree.saddles.exact.all()
    np.testing.assert_allclose(mixture.gradient(tree.saddles.positions), 0, atol=1e-6)
    np.testing.assert_allclose(mixture.log_density(tree.saddles.positions), tree.saddles.log_densities)
    for row, (position, pair) in enumerate(zip(tree.saddles.positions, tree.saddles.peaks, strict=True)):
        values, vectors = np.linalg.eigh(mixture.hessian(position[None])[0])
        assert (values > 0).sum() == 1
        ends = [flow_end(mixture, position + sign * 1e-3 * vectors[:, -1]) for sign in (1, -1)]
        reached = [np.linalg.norm(tree.peaks.positions - end, axis=1).argmin() for end in ends]
        # The flow may take another way up, but only to peaks that are joined at a higher level.
        sides = np.empty(tree.n_peaks, dtype=int)
        sides[tree.peaks.owners] = tree.cut(tree.n_peaks - row)
        assert set(sides[reached]) == set(sides[pair])


def test_two_round_components_join_half_way(isotropic):
    tree = merge_tree(isotropic([[-3.0, 1.0], [3.0, 1.0]]))
    np.testing.assert_allclose(tree.saddles.positions, [[0.0, 1.0]], atol=1e-8)
    assert tree.saddles.log_densities[0] == pytest.approx(np.log(np.exp(-4.5) / (2 * np.pi)))


@pytest.mark.parametrize("gap", [20.0, 200.0, 2000.0])
def test_saddles_far_out_are_exact_where_responsibilities_jump(gap):
    covariances = [np.diag([1.0, 0.2]), np.diag([0.5, 2.0]), np.eye(2)]
    tree = merge_tree(Mixture([0.2, 0.5, 0.3], [[0.0, 0.0], [gap, 3.0], [0.0, gap]], covariances))
    assert tree.saddles.exact.all()
    steep = np.abs(tree.mixture.pulls(tree.mixture.deviations(tree.saddles.positions))).max()
    np.testing.assert_allclose(tree.mixture.gradient(tree.saddles.positions), 0, atol=1e-5 * steep)


def test_ridgelines_hold_the_critical_points_of_their_two_components():
    mixture = Mixture([0.4, 0.6], [[0.0, 0.0], [3.0, 2.0]], [np.diag([2.0, 0.3]), np.diag([0.2, 1.5])])
    path = ridgelines(mixture.means, mixture.sums.precisions, np.array([0]), np.array([1]))[0]
    np.testing.assert_allclose(path[[0, -1]], mixture.means, atol=1e-12)
    shares = np.linspace(0, 1, 20_001)[1:-1]
    first, second = np.linalg.inv(mixture.covariances)
    mixed = (1 - shares)[:, None, None] * first + shares[:, None, None] * second
    pulled = (1 - shares)[:, None] * (first @ mixture.means[0]) + shares[:, None] * (
        second @ mixture.means[1]
    )
    curve = np.linalg.solve(mixed, pulled[..., None])[..., 0]
    assert (cKDTree(curve).query(path[1:-1])[0] < 1e-2).all()
    saddle = merge_tree(mixture).saddles.positions
    assert (cKDTree(curve).query(saddle)[0] < 1e-3).all()


def test_newton_stays_at_a_critical_point(random_mixture):
    tree = merge_tree(random_mixture(3, 8, 2))
    again = critical_points(tree.mixture, tree.saddles.positions)
    np.testing.assert_allclose(again, tree.saddles.positions, atol=1e-8)


@pytest.mark.parametrize(("d", "n_components"), [(1, 20), (2, 40), (3, 30), (8, 25)])
@pytest.mark.parametrize("seed", [0, *rarely(1, 2)])
def test_lines_that_are_ruled_out_are_not_missed(random_mixture, monkeypatch, d, n_components, seed):
    mixture = random_mixture(seed, n_components, d, spread=0.9)
    found = merge_tree(mixture)
    examined = []

    def every_pair(mixture, pairs, peaks):
        examined.append(len(pairs.first))
        return np.arange(len(pairs.first))

    fewer = saddles._promising
    monkeypatch.setattr(saddles, "_promising", every_pair)
    slow = merge_tree(mixture)
    np.testing.assert_allclose(found.saddles.log_densities, slow.saddles.log_densities, atol=1e-6)
    np.testing.assert_array_equal(found.cut(2), slow.cut(2))
    monkeypatch.setattr(
        saddles, "_promising", lambda *parts: examined.append(found := fewer(*parts)) or found
    )
    merge_tree(mixture)
    assert len(examined[1]) < examined[0] / 2


def test_ridgelines_with_diagonal_covariances_are_the_general_ones(random_mixture):
    mixture = random_mixture(0, 6, 4)
    first, second = np.triu_indices(6, 1)
    precisions = mixture.sums.precisions * np.eye(4)
    nearly = precisions + 1e-12 * (1 - np.eye(4))
    found, general = (ridgelines(mixture.means, scales, first, second) for scales in (precisions, nearly))
    np.testing.assert_allclose(found, general, atol=1e-8)
