"""A rehearsal asks what a fit asks, before there are rows."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from sfumato import (
    DPDBSCAN,
    DPM,
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
from sfumato.budget import Plan, Step
from sfumato.cluster import PrivateClusterer
from sfumato.curator import Questions
from sfumato.datasets import separated_gaussians
from sfumato.domain import Grid
from sfumato.errors import PlanError
from sfumato.planner import forecast, plan
from sfumato.planner.rehearsal import Rehearsal
from sfumato.private.aggregates.sums import COUNT_WEIGHT
from sfumato.private.engines.memory import MemoryEngine
from sfumato.public.models import CentreModel

ESTIMATORS = {
    "dpm": DPM(4),
    "dpm, no number": DPM(),
    "dpm, deeper": DPM(4, max_depth=9),
    "dpm, not refined": DPM(4, refine=False),
    "lloyd": LloydKMeans(4),
    "lloyd, more rounds": LloydKMeans(4, n_iter=9),
    "lloyd, covariances": LloydKMeans(4, covariances=True),
    "coreset": CoresetKMeans(4),
    "max cover": MaxCoverKMeans(4),
    "local search": LocalSearchKMeans(4, n_swaps=2),
    "k-means": PrivateKMeans(4),
    "k-means, two directions": PrivateKMeans(4, n_components=2),
    "grid": GridKMeans(4),
    "grid, rows public": GridKMeans(4, n_public=20_000),
    "mixture from a grid": DPMoG(4),
    "mixture from centres": DPMoG(4, start="centers", n_iter=2),
    "tree": DensityTree(),
    "tree, cell given": DensityTree(cell=0.1),
    "dbscan": DPDBSCAN(0.2, 200),
    "morse": MorseClustering(DPMoG(4)),
    "morse from centres": MorseClustering(DPM(4)),
}


@pytest.fixture
def folds(monkeypatch):
    """Count the passes over rows in memory."""
    passes, fold = [], MemoryEngine.fold

    def counted(self, aggregate):
        passes.append(aggregate)
        return fold(self, aggregate)

    monkeypatch.setattr(MemoryEngine, "fold", counted)
    return passes


@pytest.mark.parametrize("name", ESTIMATORS)
def test_passes_are_those_that_a_fit_makes(name, folds, quick):
    X, _ = separated_gaussians(20_000, 4, 2, random_state=0)
    model = ESTIMATORS[name].set_params(bounds=(-1, 1), rho=0.5, random_state=0)
    expected = forecast(model, len(X), 2, k=4).passes
    assert not folds
    model.fit(X)
    assert len(folds) == expected


def test_bounds_that_are_bought_take_three_more_passes():
    bought, known = (forecast(DPM(4, bounds=bounds), 20_000, 3) for bounds in ("private", (-1, 1)))
    assert bought.passes == known.passes + 3
    assert bought.size_error == pytest.approx(known.size_error / 0.9)  # a tenth of epsilon is gone


REFINED = (DPM, LloydKMeans, CoresetKMeans, MaxCoverKMeans, LocalSearchKMeans)


@pytest.mark.parametrize("cls", [*REFINED, PrivateKMeans])
def test_noise_in_sizes_is_that_of_the_fit(cls):
    X, _ = separated_gaussians(5_000, 3, 3, random_state=0)
    budget = {"rho": 0.1} if cls is DPM else {"epsilon": 1.0}
    model = cls(3, bounds=(-1, 1), random_state=0, **budget)
    found = forecast(model, len(X), 3)
    name = "last means" if cls is PrivateKMeans else "displacements 4"
    last = next(record for record in model.fit(X).privacy_.steps if record.step == name)
    assert found.size_error == pytest.approx(last.noise_std / COUNT_WEIGHT)


@pytest.mark.parametrize(("rule", "d"), [("rugnik", 1), ("rugnik", 2), ("eugkm", 2), ("eugkm", 3)])
def test_the_grid_is_that_of_the_fit(rule, d, quick):
    X, _ = separated_gaussians(3_000, 3, d, random_state=0)
    model = GridKMeans(3, rule=rule, n_public=3_000, bounds=(-1, 1), random_state=0)
    found = forecast(model, len(X), d)
    assert found.cells == model.fit(X).grid_.shape
    assert found.cell_error == pytest.approx(model.synopsis_.noise_std)


def test_cells_of_the_density_methods_are_those_of_the_fit():
    X, _ = separated_gaussians(5_000, 3, 2, random_state=0)
    tree = DensityTree(bounds=([-1, -2], [1, 3]), random_state=0, epsilon=100)
    assert forecast(tree, len(X), 2).cells == tree.fit(X).histogram_.grid.shape
    for max_memory in (1e9, 6e7):  # dense, and sparse
        model = DPDBSCAN(0.002, 300, bounds=(-1, 1), random_state=0, max_memory=max_memory)
        found = forecast(model, len(X), 2, k=3)
        assert found.cells == (1415, 1415)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert found.guarantee == model.fit(X).guarantee_


def test_lengths_on_a_map_are_metres():
    bounds = ([-122.5, 37.7], [-122.4, 37.8])
    found = plan(100_000, 2, 5, method="dpdbscan", bounds=bounds, metric="geo", radius=500)
    assert 300 < found.spread < 400  # 0.16 of half of 8.8 and 11.1 km, over the root of 5
    assert 30 < found.fitting_radius < 300
    tree = plan(100_000, 2, 5, method="density-tree", bounds=bounds, metric="geo")
    assert tree.cell_width == pytest.approx(10_000 / np.mean(tree.cells), rel=0.05)


class Own(PrivateClusterer):
    """States nothing about itself."""

    def _plan(self, domain):
        return Plan(Step("rows", share=Fraction(1, 4)), Step("grid", share=Fraction(3, 4)))

    def _cluster(self, curator):
        rows = curator.count("rows").values[0]
        noisy = curator.cells("grid", Grid.over(curator.domain, 4))
        return CentreModel(noisy.partition.centers(), np.full(16, rows / 16))


def test_a_method_that_states_nothing_has_passes_and_memory():
    found = forecast(Own(bounds=(-1, 1)), 1_000, 2, k=3)
    assert (found.passes, found.center_error, found.size_error, found.smallest_cluster) == (
        2,
        None,
        None,
        None,
    )
    assert found.memory > 0
    assert found.is_visible


def test_a_rehearsal_answers_as_a_curator_would_and_refuses_the_rest():
    rehearsal = Rehearsal.of(Own(bounds=(-1, 1)), 1_000.0, 2, 3, None)
    assert Questions in type(rehearsal).__mro__
    assert rehearsal.count("rows").values == [1_000]
    assert rehearsal.histogram().grid.shape == (4, 4)
    assert rehearsal.noise_std("grid") == pytest.approx(np.sqrt(2) / 0.75, rel=0.05)
    with pytest.raises(PlanError, match="Rehearsal must answer the question of step 'rows'"):
        rehearsal.histograms("rows", np.array([0.0, 1.0]))
