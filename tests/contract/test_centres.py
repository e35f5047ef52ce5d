"""What every method with the shared refinement must satisfy: no table, shape, budget or bounds breaks it.

Warnings are errors here, so nothing is divided by nothing.
"""

import inspect

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sfumato import Ball, Budget, Ledger, cluster, datasets, metrics
from sfumato.errors import ParameterError

METHODS = [
    method
    for name in cluster.__all__
    if inspect.isclass(method := getattr(cluster, name)) and "refine" in inspect.signature(method).parameters
]
slow = pytest.mark.slow
BUDGETS = [{"epsilon": 1}, {"rho": 0.05}, pytest.param({"epsilon": 1, "delta": 1e-6}, marks=slow)]
TABLES = {
    "no rows": np.empty((0, 4)),
    "one row": np.full((1, 4), 0.3),
    "one place": np.full((500, 4), 0.3),
    "outside": np.full((200, 4), 1e12),
    "a constant column": np.hstack([np.random.default_rng(0).uniform(-1, 1, (300, 3)), np.zeros((300, 1))]),
    "one column": np.random.default_rng(0).uniform(-1, 1, (300, 1)),
    "many columns": np.random.default_rng(0).uniform(-1, 1, (60, 1000)),
}

pytestmark = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)


def model(method, **parameters):
    return method(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


def check_centres(fitted, k, d):
    found = len(fitted.cluster_centers_)
    assert found == fitted.n_clusters_
    assert found == k or (isinstance(fitted, cluster.DPM) and 1 <= found < k)
    assert fitted.cluster_centers_.shape == (found, d)
    assert fitted.cluster_sizes_.shape == (found,)
    assert np.isfinite(fitted.cluster_centers_).all()
    assert np.isfinite(fitted.cluster_sizes_).all()
    assert (fitted.cluster_sizes_ >= 0).all()
    domain = fitted.release_.domain
    assert (fitted.cluster_centers_ >= np.array(domain.low)).all()
    assert (fitted.cluster_centers_ <= np.array(domain.high)).all()


def test_there_are_five(method):
    assert len(METHODS) == 5
    assert method in METHODS


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "budget", [{"rho": 0.1}, *(pytest.param({"epsilon": e}, marks=slow) for e in (0.01, 100))]
)
def test_no_table_breaks_it(method, name, budget):
    table = TABLES[name]
    for refine in (True, False):
        check_centres(model(method, refine=refine, **budget).fit(table), 3, table.shape[1])


@pytest.mark.parametrize("k", [1, 40, 100])
def test_more_clusters_than_rows(method, k):
    rows = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    for refine in (True, False):
        check_centres(model(method, n_clusters=k, refine=refine).fit(rows), k, 2)


@pytest.mark.parametrize("bounds", [(-1e139, 1e139), (-1e-139, 1e-139), (1e9, 1e9 + 1), Ball(2.0, [0.5, 0])])
def test_extreme_bounds(method, rows, bounds):
    fitted = model(method, bounds=bounds).fit(rows)
    check_centres(fitted, 3, 2)
    if isinstance(bounds, Ball):
        lengths = np.linalg.norm(fitted.cluster_centers_ - bounds.center, axis=1)
        assert lengths.max() <= bounds.radius * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", ["0.005", "1e50"])
def test_extreme_budgets(method, rows, epsilon):
    check_centres(model(method, epsilon=epsilon).fit(rows), 3, 2)


@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_declared_step_is_asked_and_the_budget_spent(method, rows, budget, refine):
    for table in (rows, np.empty((0, 2))):
        fitted = model(method, refine=refine, **budget).fit(table)
        planned = sorted(record.step for record in fitted.plan(2).records())
        assert sorted(record.step for record in fitted.privacy_.steps) == planned
        promised, spent = fitted.privacy_.budget, fitted.privacy_.spent
        assert spent <= promised
        for name in ("epsilon", "rho"):
            if getattr(promised, name) is not None:
                expected = pytest.approx(float(getattr(promised, name)), rel=1e-4)
                assert float(getattr(spent, name)) == expected


@pytest.mark.parametrize("d", [2, 30])
def test_with_much_budget_it_is_nearly_as_good_as_k_means(method, d):
    X, _ = datasets.separated_gaussians(4000, n_clusters=6, n_features=d, random_state=1)
    best = KMeans(6, n_init=10, random_state=0).fit(X).inertia_
    for seed in range(3):
        fitted = model(method, n_clusters=6, epsilon=100, random_state=seed).fit(X)
        assert metrics.inertia(X, fitted.cluster_centers_) < 1.1 * best
        assert fitted.cluster_sizes_.sum() == pytest.approx(len(X), rel=0.02)


@slow
def test_with_a_usual_budget_it_finds_clusters_and_refinement_helps(method):
    X, _ = datasets.separated_gaussians(20_000, n_clusters=5, n_features=10, random_state=0)
    best = KMeans(5, n_init=10, random_state=0).fit(X).inertia_
    refined, plain = (
        np.median(
            [
                metrics.inertia(
                    X,
                    model(method, n_clusters=5, delta=1e-6, refine=refine, random_state=seed)
                    .fit(X)
                    .cluster_centers_,
                )
                for seed in range(5)
            ]
        )
        for refine in (True, False)
    )
    assert refined < 1.1 * best
    assert refined <= plain


@pytest.mark.parametrize(
    "parameters", [{"n_clusters": 0}, {"n_clusters": 2.5}, {"refine": 1}, {"refine": None}, {"refine": "yes"}]
)
def test_bad_parameters_cost_nothing(method, parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model(method, ledger=ledger, random_state=None, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []
