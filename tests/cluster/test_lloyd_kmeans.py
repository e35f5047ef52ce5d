"""Lloyd's iterations: their public start, their number, what they ask, and how well they do."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans

from sfumato import Budget, Ledger
from sfumato.cluster.lloyd_kmeans import LloydKMeans, automatic_rounds
from sfumato.datasets import separated_gaussians
from sfumato.domain import Domain
from sfumato.errors import ParameterError
from sfumato.metrics import inertia
from sfumato.public.packing import packed_start, unit_packing

BUDGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}]


def model(**parameters):
    return LloydKMeans(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("k", [1, 2, 10, 64])
@pytest.mark.parametrize("d", [1, 2, 10, 1000])
def test_balls_of_the_packing_are_apart_and_inside(d, k, ball):
    centers, radius = unit_packing(d, k, ball)
    assert centers.shape == (k, d)
    assert 0 < radius <= 1
    assert k == 1 or pdist(centers).min() >= 2 * radius - 1e-9
    farthest = np.linalg.norm(centers, axis=1).max() if ball else np.abs(centers).max()
    assert farthest <= 1 - radius + 1e-9


def test_the_packing_is_not_far_from_the_best():
    """On a line, k balls in [-1, 1] have radius 1/k at best; random draws reach most of it."""
    for k in (2, 3, 5):
        assert unit_packing(1, k, False)[1] > 0.6 / k


def test_the_start_is_the_same_every_time_and_follows_the_box():
    flat = Domain.from_bounds(([0, 100], [1, 300]), 2)
    first = packed_start(flat, 5)
    unit_packing.cache_clear()
    assert (packed_start(flat, 5) == first).all()
    square = packed_start(Domain.from_bounds((-1, 1), 2), 5)
    assert first == pytest.approx(square * [0.5, 100] + [0.5, 200])


def test_rounds_follow_public_numbers():
    domain = Domain.from_bounds((-1, 1), 4)
    by_epsilon = [automatic_rounds(domain, 8, Budget(e)) for e in ("1e-90", 0.001, 0.1, 10, 1000, "1e90")]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] == 2
    assert by_epsilon[-1] == 7
    by_clusters = [automatic_rounds(domain, k, Budget(rho=0.01)) for k in (1, 10, 100, 10**4)]
    assert by_clusters == sorted(by_clusters, reverse=True)
    for budget in BUDGETS:
        assert 2 <= automatic_rounds(domain, 8, Budget(**budget)) <= 7


@pytest.mark.parametrize("n_iter", [1, 4])
def test_it_asks_its_rounds(rows, n_iter):
    steps = model(n_iter=n_iter, refine=False).fit(rows).privacy_.steps
    assert [record.step for record in steps] == ["rounds"] * n_iter


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_iter": 0},
        {"n_iter": "many"},
        {"n_iter": True},
    ],
)
def test_own_parameters(parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model(ledger=ledger, random_state=None, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []


@pytest.mark.parametrize(("refine", "worst"), [(False, 3.0), (True, 1.5)])
def test_separated_clusters(refine, worst):
    X, _ = separated_gaussians(20_000, n_clusters=4, n_features=3, random_state=1)
    best = KMeans(4, n_init=10, random_state=0).fit(X).inertia_
    ratios = [
        inertia(X, model(n_clusters=4, refine=refine, random_state=seed).fit(X).cluster_centers_) / best
        for seed in range(5)
    ]
    assert np.mean(ratios) < worst


def test_much_budget_is_no_worse_than_no_privacy():
    X, _ = separated_gaussians(20_000, n_clusters=3, n_features=2, random_state=0)
    best = KMeans(3, n_init=10, random_state=0).fit(X).inertia_
    fitted = model(epsilon=100, n_iter=10, refine=False).fit(X)
    assert inertia(X, fitted.cluster_centers_) / best < 1.05
    assert fitted.cluster_sizes_.sum() == pytest.approx(20_000, rel=0.01)
    assert math.isclose(fitted.cluster_sizes_.max(), 20_000 / 3, rel_tol=0.05)
