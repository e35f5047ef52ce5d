"""The coreset method: its directions, its tree, what it asks, and how well it does."""

import math

import numpy as np
import pytest
from sklearn.cluster import KMeans
from tests.worlds import curate

from sfumato import Budget, Ledger
from sfumato.budget import calibrate
from sfumato.cluster import coreset_kmeans
from sfumato.cluster.coreset_kmeans import CoresetKMeans
from sfumato.datasets import separated_gaussians
from sfumato.domain import Domain
from sfumato.domain.partitions import Tree
from sfumato.errors import ParameterError
from sfumato.metrics import inertia


def model(**parameters):
    return CoresetKMeans(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


def curator_of(rows, **parameters):
    estimator = model(**parameters)
    domain = Domain.from_bounds(estimator.bounds, rows.shape[1])
    return curate(rows, domain, calibrate(estimator._plan(domain), estimator._budget()), 0)


@pytest.mark.parametrize(("d", "n"), [(1, 3), (2, 9), (40, 7), (40, 12)])
def test_directions_are_orthonormal(d, n):
    rows = np.random.default_rng(0).uniform(-1, 1, size=(300, d))
    directions, variances = coreset_kmeans._principal_directions(curator_of(rows), n)
    assert len(directions) == len(variances) == min(d, max(n, coreset_kmeans.SKETCH_DIRECTIONS))
    assert directions @ directions.T == pytest.approx(np.eye(len(directions)), abs=1e-9)
    assert (variances >= 0).all()


def test_the_first_direction_is_the_widest():
    rng = np.random.default_rng(0)
    axis = rng.normal(size=30)
    axis /= np.linalg.norm(axis)
    rows = np.outer(rng.uniform(-2, 2, size=20_000), axis) + rng.normal(scale=0.05, size=(20_000, 30))
    directions, variances = coreset_kmeans._principal_directions(curator_of(rows, rho=5), 8)
    assert abs(directions[0] @ axis) > 0.99
    assert variances[1] < 0.2 * variances[0]


def test_levels_take_the_direction_with_most_left():
    assert coreset_kmeans._schedule(np.array([1.0, 0.5, 0.01]), 5) == [0, 1, 0, 1, 0]
    assert coreset_kmeans._schedule(np.array([1.0]), 3) == [0, 0, 0]


@pytest.mark.parametrize("n_bins", [2, 4, 64])
def test_slices_are_the_leaves_in_bins(n_bins):
    """Against the obvious twin: the leaf of the coarse tree, and the bin of the value."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(2000, 3))
    tree = Tree.root(np.eye(3)[::-1].copy())
    tree = tree.split(np.array([0]), np.array([0]), np.array([0.1]))
    tree = tree.split(np.array([1, 0]), np.array([1, 1]), np.array([-0.2, 0.4]))
    leaves, edges = np.array([0, 3]), np.linspace(-0.9, 0.9, n_bins - 1)
    finer, cells = coreset_kmeans._sliced(tree, leaves, 2, edges)
    assert finer.n_cells == 4 + 2 * (n_bins - 1)
    old, new = tree.index(rows), finer.index(rows)
    bins = np.searchsorted(edges, rows[:, 0], side="right")
    for i, leaf in enumerate(leaves):
        assert (new[old == leaf] == cells[i, bins[old == leaf]]).all()
    kept = ~np.isin(old, leaves)
    assert (new[kept] == old[kept]).all()


def test_slices_of_nothing_and_of_a_root():
    tree = Tree.root(np.eye(2))
    same, cells = coreset_kmeans._sliced(tree, np.empty(0, dtype=np.int64), 0, np.zeros(3))
    assert same.n_cells == 1
    assert cells.shape == (0, 4)
    finer, cells = coreset_kmeans._sliced(tree, np.array([0]), 0, np.array([-1.0, 0.0, 1.0]))
    assert (cells == [[0, 1, 2, 3]]).all()
    assert (finer.index(np.array([[-2.0, 0], [-0.5, 0], [0.0, 0], [7, 0]])) == [0, 1, 2, 3]).all()


def test_a_cut_goes_through_the_gap():
    bins = np.array([0, 50, 80, 50, 0, 0, 60, 90, 40, 0, 0, 0, 0, 0, 0, 0], dtype=float)
    edge, left, right = coreset_kmeans._best_cut(bins, bins.sum())
    assert edge == 4
    assert (left, right) == pytest.approx((180, 190))


@pytest.mark.parametrize("bins", [np.zeros(8), np.full(8, -5.0), np.eye(8)[0] * 100, np.eye(8)[7] * 100])
def test_a_cut_of_anything(bins):
    edge, left, right = coreset_kmeans._best_cut(bins, 100.0)
    assert 0 <= edge < 7
    assert left + right == pytest.approx(100)
    assert min(left, right) >= -1e-9


def test_points_come_closer_to_the_rows_of_their_leaf(rows):
    curator = curator_of(rows, epsilon=20)
    leaves = coreset_kmeans._grow(curator, 3, 5)
    domain = curator.domain
    points = np.random.default_rng(1).uniform(-3, 3, size=(leaves.tree.n_cells, 2))
    own = leaves.tree.index(rows)
    before = np.linalg.norm(rows - points[own], axis=1)
    after = np.linalg.norm(rows - leaves.nearest(points, domain)[own], axis=1)
    assert (after <= before + 1e-9).all()


@pytest.mark.parametrize(("max_depth", "levels"), [("auto", 5), (1, 1), (9, 9)])
def test_every_declared_step_is_asked(rows, max_depth, levels):
    for table in (rows, np.empty((0, 2))):
        fitted = model(max_depth=max_depth).fit(table)
        asked = [record.step for record in fitted.privacy_.steps]
        assert asked.count("cuts") == levels
        assert sorted(asked) == sorted(record.step for record in fitted.plan(2).records())


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 0},
        {"max_depth": np.array([1.0, 2.0])},
        {"max_depth": 41},
        {"max_depth": "deep"},
        {"max_depth": True},
    ],
)
def test_own_parameters(parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model(ledger=ledger, random_state=None, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []


@pytest.mark.parametrize(("refine", "worst"), [(False, 3.0), (True, 1.5)])
def test_separated_clusters(refine, worst):
    X, _ = separated_gaussians(20_000, n_clusters=8, n_features=6, random_state=1)
    best = KMeans(8, n_init=10, random_state=0).fit(X).inertia_
    ratios = [
        inertia(X, model(n_clusters=8, refine=refine, delta=1e-6, random_state=s).fit(X).cluster_centers_)
        / best
        for s in range(5)
    ]
    assert np.mean(ratios) < worst


def test_much_budget_is_close_to_no_privacy():
    X, _ = separated_gaussians(20_000, n_clusters=3, n_features=2, random_state=0)
    best = KMeans(3, n_init=10, random_state=0).fit(X).inertia_
    fitted = model(epsilon=100).fit(X)
    assert inertia(X, fitted.cluster_centers_) / best < 1.05
    assert fitted.cluster_sizes_.sum() == pytest.approx(20_000, rel=0.01)
    assert math.isclose(fitted.cluster_sizes_.max(), 20_000 / 3, rel_tol=0.05)
