"""Mixtures from noisy moments, and clusters joined through their saddles."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sfumato import (
    DPM,
    CoresetKMeans,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    LocalSearchKMeans,
    MorseClustering,
    Release,
)
from sfumato.errors import ParameterError

SHAPES = ["full", "diag", "spherical"]
OTHERS = [
    pytest.param(b, marks=pytest.mark.slow) for b in ({"epsilon": 1e-3}, {"epsilon": 0.5, "delta": 1e-6})
]


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centers = np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.3], [0.5, -0.5, -0.3]])
    labels = rng.integers(0, 3, 6000)
    spreads = np.array([0.05, 0.1, 0.02])
    return centers[labels] + spreads * rng.normal(size=(6000, 3)), labels, centers, spreads


@pytest.mark.parametrize("start", ["grid", "centers"])
@pytest.mark.parametrize("assign", ["hard", "soft"])
@pytest.mark.parametrize("covariance", SHAPES)
def test_without_noise_the_mixture_is_found(blobs, assign, covariance, start):
    X, labels, centers, spreads = blobs
    parameters = {"assign": assign, "covariance": covariance, "start": start}
    model = DPMoG(3, rho=1e4, bounds=(-1, 1), random_state=0, **parameters).fit(X)
    order = [int(np.linalg.norm(model.means_ - center, axis=1).argmin()) for center in centers]
    np.testing.assert_allclose(model.means_[order], centers, atol=0.02)
    np.testing.assert_allclose(model.weights_.sum(), 1)
    assert adjusted_rand_score(labels, model.labels_) > 0.99
    if covariance != "spherical":
        for found in model.covariances_[order]:
            np.testing.assert_allclose(np.sqrt(np.diag(found)), spreads, rtol=0.25, atol=0.01)


@pytest.mark.parametrize("covariance", SHAPES)
@pytest.mark.parametrize(
    ("d", "start"), [(1, "grid"), (1, "centers"), (3, "grid"), (3, "centers"), (30, "auto")]
)
@pytest.mark.parametrize("budget", [{"rho": 1e-6}, *OTHERS])
def test_a_mixture_is_valid_at_any_budget(covariance, d, start, budget):
    rows = np.random.default_rng(0).uniform(-1, 1, (50, d))
    parameters = {"covariance": covariance, "start": start, **budget}
    for table in (rows, rows[:0]):
        model = DPMoG(4, bounds=(-1, 1), random_state=0, **parameters).fit(table)
        assert (model.weights_ >= 0).all()
        assert model.weights_.sum() == pytest.approx(1)
        assert (np.abs(model.means_) <= 1).all()
        assert (np.linalg.eigvalsh(model.covariances_) > 0).all()
        assert model.predict(rows).shape == (50,)


@pytest.mark.parametrize("method", [LloydKMeans, LocalSearchKMeans])
def test_centres_are_given_covariances(blobs, method):
    X, labels, _, _ = blobs
    model = method(3, covariances=True, epsilon=2.0, delta=1e-6, bounds=(-1, 1), random_state=0).fit(X)
    assert model.covariances_.shape == (3, 3, 3)
    assert adjusted_rand_score(labels, model.labels_) > 0.99
    assert "moments" in {record.step for record in model.privacy_.steps}


@pytest.mark.parametrize(
    "base",
    [
        None,
        DPMoG(5),
        LloydKMeans(5),
        LloydKMeans(5, covariances=True),
        DPM(),
        GridKMeans(5),
        CoresetKMeans(5),
    ],
    ids=str,
)
def test_any_base_will_do_and_the_budget_stays(blobs, base):
    X, labels, _, _ = blobs
    model = MorseClustering(base, n_clusters=3, rho=0.5, bounds=(-1, 1), random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert len(model.component_labels_) == len(model.mixture_.weights)
    assert model.cluster_sizes_.sum() == pytest.approx(6000, rel=0.1)
    assert adjusted_rand_score(labels, model.labels_) > 0.9
    assert float(model.privacy_.budget.rho) == 0.5


def test_the_covariances_of_a_grid_are_free(blobs):
    X, _, _, _ = blobs
    model = MorseClustering(GridKMeans(5), rho=0.5, bounds=(-1, 1), random_state=0).fit(X)
    assert [record.step for record in model.privacy_.steps] == ["rows", "grid"]
    alone = GridKMeans(5, rho=0.5, bounds=(-1, 1), random_state=0).fit(X)
    assert model.privacy_.steps == alone.privacy_.steps


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["component", "basin"])
@pytest.mark.parametrize("make", [make_moons, partial(make_circles, factor=0.5)])
def test_without_noise_moons_and_circles_are_separated_exactly(make, labels):
    X, classes = make(2_000, noise=0.04, random_state=0)
    bounds = ([-1.5, -1.5], [2.5, 1.5])
    model = MorseClustering(DPMoG(30), 2, labels=labels, epsilon=1e6, bounds=bounds, random_state=0).fit(X)
    assert adjusted_rand_score(classes, model.labels_) == 1.0
    assert adjusted_rand_score(classes, model.release_.model.base.predict(X)) < 0.5


def test_moons():
    X, classes = make_moons(2_000, noise=0.05, random_state=0)
    bounds = ([-1.5, -1], [2.5, 1.5])
    model = MorseClustering(DPMoG(20), 2, epsilon=1.0, delta=1e-5, bounds=bounds, random_state=0).fit(X)
    assert adjusted_rand_score(classes, model.labels_) > 0.99


def test_cut_again_from_the_release_alone(blobs, tmp_path):
    X, _, _, _ = blobs
    model = MorseClustering(DPMoG(6), n_clusters=3, rho=0.5, bounds=(-1, 1), random_state=0).fit(X)
    loaded = Release.load(model.release_.save(tmp_path / "release.json"))
    assert (loaded.predict(X) == model.labels_).all()
    for k in (1, 2, None):
        again = model.cut(k)
        assert (loaded.model.cut(k).predict(X) == again.labels_).all()
        assert again.privacy_ is model.privacy_
    assert model.cut(1).n_clusters_ == 1
    assert model.n_clusters == 3


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"base": DensityTree()}, "`base` must be"),
        ({"base": "kmeans"}, "`base` must be"),
        ({"base": DPMoG(3, bounds=(0, 1))}, "`bounds` must be given to MorseClustering"),
        ({"base": DPMoG(5, epsilon=0.01, missing="drop"), "epsilon": 1}, "`epsilon` must be given to Morse"),
        ({"base": DPMoG(5, delta=1e-6)}, "`delta` must be given to MorseClustering"),
        ({"base": LloydKMeans(5, rho=0.1)}, "`rho` must be given to MorseClustering"),
        ({"base": LloydKMeans(5, missing="drop")}, "`missing` must be given to MorseClustering"),
        ({"base": LloydKMeans(5, max_rows_per_unit=3)}, "`max_rows_per_unit` must be given to Morse"),
        ({"base": DPMoG(5, random_state=1)}, "`random_state` must be given to MorseClustering"),
        ({"base": DPMoG(3), "n_clusters": 4}, "at most the 3 components"),
        ({"base": DPMoG(0)}, "`n_components`"),
        ({"base": DPMoG(3, assign="firm")}, "`assign`"),
        ({"base": DPMoG(3, covariance="tied")}, "`covariance`"),
        ({"base": DPMoG(3, n_iter=0)}, "`n_iter`"),
        ({"base": DPMoG(3, start="middle")}, "`start`"),
        ({"labels": "peak"}, "`labels`"),
        ({"covariance": "tied"}, "`covariance`"),
        ({"n_clusters": 0}, "`n_clusters`"),
    ],
)
def test_bad_parameters(parameters, word):
    with pytest.raises(ParameterError, match=word):
        MorseClustering(**{"bounds": (-1, 1), **parameters}).fit(np.zeros((5, 2)))


def test_a_grid_is_for_few_columns():
    with pytest.raises(ParameterError, match="a grid over 30 columns"):
        DPMoG(3, start="grid", bounds=(-1, 1)).fit(np.zeros((5, 30)))
