"""LocalSearchKMeans: what it asks."""

import numpy as np
import pytest

from sfumato import Budget, Ledger
from sfumato.cluster.local_search_kmeans import LocalSearchKMeans, best_swap, free_search
from sfumato.errors import ParameterError
from sfumato.private.aggregates.swaps import COST_UNITS


def model(**parameters):
    return LocalSearchKMeans(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


def test_the_number_of_choices_is_public(rows):
    for table in (rows, rows[:0]):
        steps = model(n_clusters=7).fit(table).privacy_.steps
        assert sum(record.step == "swap" for record in steps) == 4


@pytest.mark.parametrize(("n_swaps", "repeats"), [("auto", 4), (1, 1), (30, 30)])
def test_swaps_are_one_step_of_one_cost_unit(n_swaps, repeats):
    steps = [priced.step for priced in model(n_clusters=64, n_swaps=n_swaps).plan(10).steps]
    (swap,) = [step for step in steps if step.name == "swap"]
    assert (swap.repeats, swap.selection, swap.sensitivity.spread) == (repeats, True, COST_UNITS)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 1001},
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
