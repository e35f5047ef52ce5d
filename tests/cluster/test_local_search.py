"""LocalSearchKMeans: what it asks, that it finds clusters, and that no table or budget breaks it."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sfumato import Budget, Ledger, datasets, metrics
from sfumato.aggregates.swaps import COST_UNITS
from sfumato.cluster.local_search import LocalSearchKMeans, best_swap, free_search
from sfumato.errors import ParameterError

BUDGETS = [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.05}]


def model(**parameters):
    return LocalSearchKMeans(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


def check_centres(fitted, k, d, low=-1.0, high=1.0):
    assert fitted.cluster_centers_.shape == (k, d)
    assert fitted.cluster_sizes_.shape == (k,)
    assert np.isfinite(fitted.cluster_centers_).all()
    assert (fitted.cluster_sizes_ >= 0).all()
    assert ((fitted.cluster_centers_ >= low) & (fitted.cluster_centers_ <= high)).all()


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "approximate", "zcdp"])
@pytest.mark.parametrize("refine", [True, False])
def test_what_is_promised_is_spent(rows, budget, refine):
    fitted = model(n_clusters=7, refine=refine, **budget).fit(rows)
    promised = fitted.privacy_.budget
    assert fitted.privacy_.spent <= promised
    for name in ("epsilon", "rho"):
        if getattr(promised, name) is not None:
            assert float(getattr(fitted.privacy_.spent, name)) == pytest.approx(
                float(getattr(promised, name)), rel=1e-4
            )
    assert sum(record.step == "swap" for record in fitted.privacy_.steps) == 4
    assert len(fitted.privacy_.steps) == len(fitted.plan(2).records())


@pytest.mark.parametrize(("n_swaps", "repeats"), [("auto", 4), (1, 1), (30, 30)])
def test_swaps_are_one_step_of_one_cost_unit(n_swaps, repeats):
    steps = [priced.step for priced in model(n_clusters=64, n_swaps=n_swaps).plan(10).steps]
    (swap,) = [step for step in steps if step.name == "swap"]
    assert (swap.repeats, swap.selection, swap.sensitivity.spread) == (repeats, True, COST_UNITS)


TABLES = {
    "no rows": np.empty((0, 4)),
    "one row": np.full((1, 4), 0.3),
    "one place": np.full((500, 4), 0.3),
    "outside": np.full((200, 4), 1e12),
    "a constant column": np.hstack([np.random.default_rng(0).uniform(-1, 1, (300, 3)), np.zeros((300, 1))]),
    "one column": np.random.default_rng(0).uniform(-1, 1, (300, 1)),
    "many columns": np.random.default_rng(0).uniform(-1, 1, (60, 1000)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("budget", [{"epsilon": 0.01}, {"rho": 0.1}, {"epsilon": 100}], ids=str)
def test_no_table_breaks_it(name, budget):
    table = TABLES[name]
    check_centres(model(**budget).fit(table), 3, table.shape[1])
    check_centres(model(refine=False, **budget).fit(table), 3, table.shape[1])


@pytest.mark.parametrize("k", [1, 40, 700])
def test_more_clusters_than_rows_or_boxes(k):
    check_centres(
        model(n_clusters=k, refine=k < 700).fit(np.random.default_rng(0).uniform(-1, 1, (30, 2))), k, 2
    )


@pytest.mark.parametrize("d", [2, 30])
def test_with_much_budget_it_is_nearly_as_good_as_k_means(d):
    X, _ = datasets.separated_gaussians(4000, n_clusters=6, n_features=d, random_state=1)
    best = KMeans(6, n_init=10, random_state=0).fit(X).inertia_
    for seed in range(3):
        fitted = model(n_clusters=6, epsilon=100, random_state=seed).fit(X)
        assert metrics.inertia(X, fitted.cluster_centers_) < 1.1 * best
        assert fitted.cluster_sizes_.sum() == pytest.approx(len(X), rel=0.02)


def test_with_a_usual_budget_it_finds_clusters_over_several_seeds():
    X, _ = datasets.separated_gaussians(20_000, n_clusters=5, n_features=10, random_state=0)
    best = KMeans(5, n_init=10, random_state=0).fit(X).inertia_
    found = [
        metrics.inertia(X, model(n_clusters=5, delta=1e-6, random_state=s).fit(X).cluster_centers_)
        for s in range(5)
    ]
    assert np.median(found) < 1.2 * best


def test_with_refine_it_is_better():
    X, _ = datasets.separated_gaussians(20_000, n_clusters=8, n_features=30, random_state=2)
    with_, without = (
        [
            metrics.inertia(
                X, model(n_clusters=8, rho=0.05, refine=r, random_state=s).fit(X).cluster_centers_
            )
            for s in range(3)
        ]
        for r in (True, False)
    )
    assert np.median(with_) < np.median(without)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 0},
        {"n_clusters": 1001},
        {"n_clusters": 2.5},
        {"refine": 1},
        {"refine": None},
        {"n_swaps": 0},
        {"n_swaps": "many"},
        {"n_swaps": True},
    ],
)
def test_bad_parameters(parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model(ledger=ledger, random_state=None, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []


def weighted_cost(points, weights, centers):
    return float(weights @ ((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_best_swap_is_the_best_of_all(k):
    rng = np.random.default_rng(k)
    points, weights = rng.normal(size=(25, 3)), rng.uniform(size=25)
    centers = rng.normal(size=(k, 3))
    between = ((points[:, None] - points) ** 2).sum(axis=2)
    costs = []
    for i in range(k):
        for point in points:
            after = centers.copy()
            after[i] = point
            costs.append(weighted_cost(points, weights, after))
    swapped = best_swap(points, weights, centers, between, np.inf)
    best = min(costs)
    if best < weighted_cost(points, weights, centers):
        assert weighted_cost(points, weights, swapped) == pytest.approx(best)
    else:
        assert swapped is None


def test_no_swap_where_every_point_is_a_centre():
    points = np.random.default_rng(0).normal(size=(4, 2))
    between = ((points[:, None] - points) ** 2).sum(axis=2)
    assert best_swap(points, np.ones(4), points, between, np.inf) is None


def test_the_free_search_finds_what_k_means_misses():
    rng = np.random.default_rng(0)
    truth = rng.uniform(-1, 1, size=(40, 6))
    points = np.vstack([truth + rng.normal(scale=0.01, size=truth.shape) for _ in range(4)])
    centers = free_search(points, np.ones(len(points)), 40)
    assert np.linalg.norm(truth[:, None] - centers, axis=2).min(axis=1).max() < 0.05
