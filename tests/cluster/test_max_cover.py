"""MaxCoverKMeans: what it asks, that it finds clusters, and that no table or budget breaks it."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sfumato import Budget, Ledger, datasets, metrics
from sfumato.cluster.max_cover import MaxCoverKMeans
from sfumato.errors import ParameterError

BUDGETS = [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.05}]


def model(**parameters):
    return MaxCoverKMeans(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


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
    assert sum(record.step == "cover" for record in fitted.privacy_.steps) == 7
    assert len(fitted.privacy_.steps) == len(fitted.plan(2).records())


def test_selections_are_one_step_of_spread_one():
    (cover,) = [priced.step for priced in model(n_clusters=64).plan(10).steps if priced.step.selection][:1]
    assert (cover.name, cover.repeats, cover.sensitivity.spread) == ("cover", 64, 1)


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
    [{"n_clusters": 0}, {"n_clusters": 1001}, {"n_clusters": 2.5}, {"refine": 1}, {"refine": None}],
)
def test_bad_parameters(parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model(ledger=ledger, random_state=None, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []
