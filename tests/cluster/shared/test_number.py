"""``n_clusters="auto"`` and `at`: the number of clusters from released cells, for all centre methods."""

import numpy as np
import pytest

import sfumato
from sfumato import Release, datasets
from sfumato.errors import ParameterError

REFINED = ["DPM", "LloydKMeans", "CoresetKMeans", "MaxCoverKMeans", "LocalSearchKMeans"]
METHODS = [*REFINED, "GridKMeans"]
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    return datasets.separated_gaussians(20_000, 5, 2, random_state=3)[0]


@pytest.fixture(scope="module")
def fitted(rows):
    return {name: getattr(sfumato, name)(n_clusters="auto", **BUDGET).fit(rows) for name in METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_auto_finds_separated_clusters(name, fitted, rows):
    model = fitted[name]
    assert model.n_clusters_ == len(model.cluster_centers_) == 5
    assert model.privacy_.epsilon == 1
    assert model.release_.parameters["n_clusters"] == "auto"
    assert np.bincount(model.labels_) == pytest.approx(np.full(5, 4000), rel=0.02)
    truth = -model.score(rows)
    assert abs(model.inertia_ - truth) < 4 * model.inertia_std_
    assert model.inertia_std_ < 0.5 * truth


@pytest.mark.parametrize("name", METHODS)
def test_at(name, fitted, rows, tmp_path):
    model = fitted[name]
    for k in (1, 3, 8):
        other = model.at(k)
        assert other.n_clusters_ == k
        assert other.cluster_center_stds_.shape == (k, 2)
        assert other.cluster_size_stds_.shape == (k,)
        assert other.privacy_ is model.privacy_
        assert other.cluster_sizes_.sum() == pytest.approx(20_000, rel=0.1)
        assert set(other.predict(rows)) <= set(range(k))
    assert model.at(5) is model
    assert model.at(8).score(rows) > model.at(3).score(rows)
    release = Release.load(model.release_.save(tmp_path / "release.json"))
    assert release.at(3).model.cluster_centers == pytest.approx(model.at(3).cluster_centers_)
    assert release.at(3).parameters["n_clusters"] == 3
    assert release.at(5) is release


@pytest.mark.parametrize("name", REFINED)
def test_more_clusters_than_cells(name, fitted):
    model = fitted[name]
    with pytest.raises(ParameterError, match=f"{model.cells_.n_cells} cells that were released"):
        model.at(model.cells_.n_cells + 1)
    with pytest.raises(ParameterError, match="n_clusters"):
        model.at(0)


@pytest.mark.parametrize("name", REFINED)
def test_without_refinement(name, rows):
    with pytest.raises(ParameterError, match="refine=True"):
        getattr(sfumato, name)(n_clusters="auto", refine=False, **BUDGET).fit(rows)
    plain = getattr(sfumato, name)(n_clusters=3, refine=False, **BUDGET).fit(rows[:2000])
    assert not hasattr(plain, "inertia_")
    with pytest.raises(ParameterError, match="refine=True"):
        plain.at(2)


def test_methods_without_cells(rows):
    mixture = sfumato.LloydKMeans(3, covariances=True, **BUDGET).fit(rows)
    with pytest.raises(ParameterError, match="no cells"):
        mixture.at(2)
    assert not hasattr(mixture, "inertia_")


@pytest.mark.filterwarnings("ignore::sfumato.errors.NoiseWarning")
def test_the_plan_asks_the_same_whatever_is_found(rows):
    for name in METHODS:
        model = getattr(sfumato, name)(n_clusters="auto", **BUDGET)
        steps = {record.step for record in model.plan(2).records()}
        for table in (rows, np.zeros((10, 2)), np.empty((0, 2))):
            assert {step.step for step in model.fit(table).privacy_.steps} == steps


def test_measured_columns():
    """Cells come back in the units of the columns, and give the same clusters."""
    X = datasets.separated_gaussians(20_000, 4, 2, random_state=5)[0] * [50, 0.1] + [100, 3]
    options = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0, "bounds": ([50, 2.9], [150, 3.1])}
    model = sfumato.LloydKMeans("auto", **options).fit(X)
    assert model.n_clusters_ == 4
    assert (model.at(3).cluster_centers_ > [50, 2.9]).all()
    assert (model.at(3).cluster_centers_ < [150, 3.1]).all()
    assert model.at(4).inertia_ == pytest.approx(-model.score(X), rel=0.3)
