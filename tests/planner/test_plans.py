"""Forecasts: functions of public numbers, held against what fits really do."""

import json
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances_argmin

from sfumato import (
    DPDBSCAN,
    DPM,
    Ball,
    CoresetKMeans,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    LocalSearchKMeans,
    MaxCoverKMeans,
    MorseClustering,
    PrivateKMeans,
)
from sfumato.datasets import separated_gaussians
from sfumato.errors import ParameterError
from sfumato.planner import Forecast, budget_for, forecast, plan

SPREAD = 0.16  # of one cluster in [-1, 1], as `separated_gaussians` draws it


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.05}])
def test_the_radius_that_fits_finds_the_clusters_without_a_warning(budget):
    X, _ = separated_gaussians(30_000, 4, 2, random_state=1)
    found = plan(len(X), 2, 4, method="dpdbscan", **({"epsilon": None} | budget))
    model = DPDBSCAN(
        found.fitting_radius, found.fitting_min_samples, bounds=(-1, 1), random_state=0, **budget
    ).fit(X)
    assert model.n_clusters_ == 4
    assert model.guarantee_.tau <= found.fitting_min_samples
    smaller = DPDBSCAN(found.fitting_radius * 0.97, found.fitting_min_samples, bounds=(-1, 1), **budget)
    assert not forecast(smaller, len(X), 2, k=4).is_visible


def test_no_radius_fits_few_rows():
    assert plan(100, 2, 4, epsilon=0.1, method="dpdbscan").fitting_radius is None


def squared_errors(model, X, k):
    """Of centres and sizes, over clusters with as many rows as they should have."""
    centers = model.cluster_centers_
    nearest = pairwise_distances_argmin(X, centers)
    sizes = np.bincount(nearest, minlength=len(centers))
    means = np.stack([np.bincount(nearest, column, len(centers)) for column in X.T], axis=1) / sizes[:, None]
    found = np.abs(sizes * k / len(X) - 1) < 0.05
    return (centers - means)[found] ** 2, (model.cluster_sizes_ - sizes)[found] ** 2


@pytest.mark.parametrize(
    ("cls", "n", "d", "k", "budget"),
    [
        (DPM, 40_000, 5, 6, {"rho": 0.05}),
        (LloydKMeans, 40_000, 12, 4, {"epsilon": 1.0}),
        (PrivateKMeans, 40_000, 5, 6, {"rho": 0.05}),
        pytest.param(LloydKMeans, 40_000, 5, 6, {"rho": 0.05}, marks=pytest.mark.slow),
        pytest.param(CoresetKMeans, 40_000, 5, 6, {"epsilon": 1.0}, marks=pytest.mark.slow),
        pytest.param(DPMoG, 40_000, 5, 6, {"rho": 0.05}, marks=pytest.mark.slow),
    ],
)
def test_errors_are_as_forecast(cls, n, d, k, budget):
    """Within a third over four data sets; BENCHMARKS.md has more of both."""
    of_centres, of_sizes = [], []
    for seed in range(4):
        X, _ = separated_gaussians(n, k, d, random_state=seed)
        model = cls(k, bounds=(-1, 1), random_state=seed, **budget).fit(X)
        for all_errors, errors in zip((of_centres, of_sizes), squared_errors(model, X, k), strict=True):
            all_errors.append(errors.mean())
    found = forecast(model, n, d)
    assert found.spread == pytest.approx(SPREAD / k ** (1 / d))
    assert found.center_error == pytest.approx(np.sqrt(np.mean(of_centres)), rel=0.33)
    assert found.size_error == pytest.approx(np.sqrt(np.mean(of_sizes)), rel=0.4)


@pytest.mark.parametrize(
    "cls", [DPM, LloydKMeans, CoresetKMeans, MaxCoverKMeans, LocalSearchKMeans, PrivateKMeans, DPMoG]
)
def test_more_of_anything_helps(cls):
    def errors(n=50_000, epsilon=1.0, d=4):
        found = plan(n, d, 6, epsilon, method=cls)
        return np.array([found.center_error, found.size_error / n, found.smallest_cluster / n])

    assert (errors(epsilon=2.0) < 1.001 * errors()).all()
    assert (errors(n=100_000) < 1.001 * errors()).all()


@pytest.mark.parametrize("method", ["dpm", "grid-kmeans", "dpmog", "density-tree", "dpdbscan"])
@pytest.mark.parametrize("epsilon", [1e-3, 1e4])
def test_budgets_beyond_reason(method, epsilon):
    found = plan(20_000, 2, 4, epsilon, method=method)
    assert all(
        np.isfinite(value) for value in (found.size_error, found.smallest_cluster, found.center_error or 0)
    )
    assert found.is_visible == (epsilon > 1)


def test_people_with_many_rows_need_more_noise():
    one, ten = (plan(10**6, 3, 5, method="lloyd-kmeans", n_iter=3, max_rows_per_unit=m) for m in (1, 10))
    assert ten.size_error == pytest.approx(10 * one.size_error)
    assert ten.passes == one.passes


def test_clusters_that_would_not_show():
    found = plan(400, 2, 8, method="dpm")
    assert not found.is_visible
    assert "note: clusters of 50 rows would not show" in str(found)
    seen = plan(100_000, 2, 8, method="dpm")
    assert seen.is_visible
    assert not seen.notes


@pytest.mark.parametrize(
    "model", [DPM(4), GridKMeans(4), DensityTree(), DPDBSCAN(0.2, 200), MorseClustering(DPMoG(4))]
)
def test_a_forecast_prints_and_is_json(model):
    found = forecast(model.set_params(bounds=(-1, 1), rho=0.5), 20_000, 2, k=4)
    numbers = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert numbers["passes"] == found.passes
    assert numbers["budget"] == {"rho": "1/2"}
    lines = str(found).splitlines()
    assert lines[0].startswith("forecast")
    assert lines[0].endswith(f"{type(model).__name__}, rho=0.5")
    assert not any(line.endswith("  ") for line in lines)


@pytest.mark.parametrize(
    "cls",
    [
        DPM,
        DPMoG,
        *(
            pytest.param(cls, marks=pytest.mark.slow)
            for cls in (LloydKMeans, CoresetKMeans, LocalSearchKMeans, PrivateKMeans)
        ),
    ],
)
def test_memory_is_enough(cls):
    X, _ = separated_gaussians(20_000, 16, 6, random_state=0)
    model = cls(16, bounds=(-1, 1), rho=0.2, random_state=0).fit(X)
    tracemalloc.start()
    model.fit(X)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < forecast(model, len(X), 6).memory < 10 * used


@pytest.mark.parametrize(
    ("method", "target", "others"),
    [
        ("lloyd-kmeans", {"center_error": 0.002}, {}),
        pytest.param("lloyd-kmeans", {"center_error": 0.002}, {"delta": 1e-6}, marks=pytest.mark.slow),
        ("dpm", {"size_error": 50}, {}),
        ("dpm", {"size_error": 50}, {"in_rho": True}),
        ("coreset-kmeans", {"smallest_cluster": 300}, {}),
        ("density-tree", {"smallest_cluster": 100, "size_error": 15}, {"cell": 0.05}),
        ("kmeans", {"center_error": 0.0005}, {"in_rho": True}),
        ("max-cover-kmeans", {"center_error": 0.005, "size_error": 100}, {"spread": 0.05}),
    ],
)
def test_the_least_budget_is_enough_and_less_is_not(method, target, others):
    size = {"n": 50_000, "d": 3, "k": 6} if method != "density-tree" else {"n": 50_000, "d": 2, "k": 6}
    found = budget_for(**size, method=method, **target, **others)
    shared = {name: value for name, value in others.items() if name != "in_rho"}
    kind = "rho" if "in_rho" in others else "epsilon"
    amount = float(getattr(found.budget, kind))

    def meets(amount):
        budget = {"epsilon": None, "rho": amount} if kind == "rho" else {"epsilon": amount}
        got = plan(**size, method=method, **budget, **shared)
        return all(getattr(got, name) <= value for name, value in target.items())

    assert meets(amount)
    assert not meets(0.98 * amount)


def test_a_grid_with_two_cells_along_a_column():
    assert plan(n=100, d=8, method="grid-kmeans").center_error > 0


def test_the_least_budget_of_a_grid_is_enough():
    """Its cells come in whole numbers, so that a little less may do, too."""
    assert budget_for(20_000, 2, 4, "grid-kmeans", smallest_cluster=50, in_rho=True).smallest_cluster <= 50


def test_wishes_that_no_budget_meets():
    with pytest.raises(ParameterError, match="no budget up to 1000 is enough for center_error=1e-09"):
        budget_for(5_000, 2, 4, "lloyd-kmeans", center_error=1e-9)
    with pytest.raises(ParameterError, match="`center_error` must not be given: there is no forecast"):
        budget_for(5_000, 2, 4, "density-tree", center_error=0.1)
    with pytest.raises(ParameterError, match="must be given, got none"):
        budget_for(5_000, 2, 4)
    with pytest.raises(ParameterError, match="`delta` must be 0 with a rho"):
        budget_for(5_000, 2, 4, size_error=10, in_rho=True, delta=1e-6)
    with pytest.raises(ParameterError, match="got `epsilon`"):
        budget_for(5_000, 2, 4, size_error=10, epsilon=1)


def test_wishes_that_every_budget_meets():
    assert float(budget_for(10**9, 2, 4, "lloyd-kmeans", size_error=1e9).budget.epsilon) == 1e-4


def test_methods_by_name_and_by_class():
    assert plan(5_000, 2, 4, method="lloyd-kmeans") == plan(5_000, 2, 4, method=LloydKMeans)
    assert plan(5_000, 2, 4, method="kmeans") == plan(5_000, 2, 4, method=PrivateKMeans)
    assert plan(5_000, 2, 4, method="private-kmeans") == plan(5_000, 2, 4, method=PrivateKMeans)
    assert plan(5_000, 2, 4, method="morse").method == "MorseClustering"
    assert isinstance(plan(5_000, 2, bounds=Ball(2.0)), Forecast)
    with pytest.raises(ParameterError, match=r"`method` must be one of .*DPM.*, got 'means'"):
        plan(5_000, 2, 4, method="means")


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ({"n": 0}, "n"),
        ({"d": 0}, "d"),
        ({"k": 0}, "k"),
        ({"spread": -1.0}, "spread"),
        ({"epsilon": -1}, "epsilon"),
        ({"colour": 3}, "colour"),
        ({"max_depth": 99}, "max_depth"),
    ],
)
def test_numbers_that_cannot_be_planned_with(numbers, name):
    with pytest.raises(ParameterError, match=f"`{name}`"):
        plan(**{"n": 1000, "d": 3, "k": 4, **numbers})


def test_a_radius_that_holds_nearly_nothing():
    found = plan(5000, 1, 1, 0.001, method="local-search-kmeans")
    assert np.isfinite(found.center_error)


def test_a_cluster_within_one_cell():
    found = plan(5000, 2, 1, 0.5, method="grid-kmeans", bounds=(0, 200), max_cells=9, spread=0.01)
    assert np.isfinite(found.center_error)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [({"method": 5}, "method"), ({"method": int}, "method"), ({"spread": 1e300}, "spread")],
)
def test_parameters_out_of_this_world(parameters, word):
    with pytest.raises(ParameterError, match=f"`{word}` must be"):
        plan(5000, 2, **{"method": "density-tree", **parameters})


@pytest.mark.parametrize("epsilon", [1, 1.0, 2.0])
def test_a_budget_in_two_currencies_is_refused(epsilon):
    with pytest.raises(ParameterError, match="`rho`, or `epsilon`"):
        plan(n=1000, d=2, k=3, epsilon=epsilon, rho=0.1)
