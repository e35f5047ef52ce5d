"""Models: prediction, and the JSON form that releases use."""

import json

import numpy as np
import pytest

from sfumato.domain import Domain, Grid, Unit
from sfumato.errors import ReleaseError
from sfumato.public.density.dbscan import Guarantee
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.regions import Regions
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.models import (
    PUBLISHABLE,
    CentreModel,
    DBSCANModel,
    DensityModel,
    MixtureModel,
    MorseModel,
    SourceTargetModel,
    decode,
    encode,
)

CENTERS = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
GRID = Grid((0.0, 0.0), (1.0, 2.0), (2, 3))


def synopsis():
    values = {"grid": GRID, "noisy_counts": np.array([5, -2, 7, 0, 1, 2**40], dtype=np.int64)}
    values |= {"noise_std": 1.5, "laplace": True, "noisy_rows": 13.0, "rows_std": 4.0}
    return GridSynopsis(**values)


def test_the_nearest_centre():
    model = CentreModel(CENTERS, np.ones(3))
    rows = np.random.default_rng(0).uniform(-1, 3, size=(500, 2))
    twin = [min(range(3), key=lambda j: ((row - CENTERS[j]) ** 2).sum()) for row in rows]
    assert model.predict(rows).tolist() == twin
    assert model.predict(rows).dtype == np.int64
    assert model.predict(np.empty((0, 2))).tolist() == []
    assert model.n_features == 2


def test_attributes():
    plain = CentreModel(CENTERS, np.ones(3)).attributes()
    stds = {"cluster_center_stds", "cluster_size_stds"}
    assert set(plain) == {"cluster_centers", "cluster_sizes", "n_clusters"} | stds
    assert plain["n_clusters"] == 3
    full = CentreModel(CENTERS, np.ones(3), synopsis()).attributes()
    assert full["grid"] == GRID
    assert full["synopsis"].noise_std == 1.5


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        5,
        0.1,
        "rugnik",
        (1, 2.5, "x"),
        np.int64(7),
        np.float64(0.1),
        np.bool_(True),
        GRID,
        Unit("person", 3),
        Domain.from_bounds((0, [1, 2]), 2),
        np.array([1, -(2**62)], dtype=np.int64),
        np.array([[0.1, -1e300], [5e-324, 1 / 3]]),
        np.empty((0, 2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_survive_json_exactly(value):
    again = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    if isinstance(value, np.ndarray):
        assert again.dtype == value.dtype
        assert again.shape == value.shape
        assert (again == value).all()
    else:
        assert again == value


def test_a_model_survives_json_exactly():
    model = CentreModel(CENTERS / 3, np.array([1.5, 2.5, 3.5]), synopsis())
    again = decode(json.loads(json.dumps(encode(model))))
    assert isinstance(again, CentreModel)
    assert isinstance(again.synopsis, GridSynopsis)
    assert (again.cluster_centers == model.cluster_centers).all()
    assert (again.synopsis.noisy_counts == model.synopsis.noisy_counts).all()
    assert again.synopsis.grid == GRID


def test_only_listed_types_are_published():
    from sfumato.private.aggregates.cell_counts import CellCounts

    with pytest.raises(ReleaseError, match="CellCounts is not a publishable type"):
        encode(CellCounts(GRID))
    assert set(PUBLISHABLE) >= {"CentreModel", "GridSynopsis", "Grid", "Domain", "Unit"}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"type": "Engine"}, KeyError),
        ({"low": 1}, KeyError),
        ({"type": "Grid", "low": [0.0]}, TypeError),
        ({"type": "Grid", "low": [0.0], "high": [1.0], "shape": [0]}, ValueError),
        ({"type": "array", "dtype": "object", "shape": [1], "values": [1]}, ReleaseError),
        ({"type": "array", "dtype": "float64", "shape": [3], "values": [1.0]}, ValueError),
        ({"type": "array", "dtype": "float64", "shape": [1], "values": ["nan"]}, ReleaseError),
        ({"type": "array", "dtype": "float64", "shape": [1], "values": [float("inf")]}, ReleaseError),
        ({"type": "array", "dtype": "int64", "shape": [1], "values": [10**30]}, OverflowError),
    ],
)
def test_bad_data(data, error):
    with pytest.raises(error):
        decode(data)


def array(*shape, value=1.0):
    values = np.full(shape, value)
    return encode(values)


def changed(value, **parts):
    return encode(value) | parts


SPANS = Regions(GRID, np.array([0, 3]), np.array([0, 1]), np.ones((2, 3)), 0.95)
COUNTS = NoisyHistogram(GRID, np.arange(6), "discrete Laplace", 2.0)
LISTED = NoisyHistogram(GRID, np.array([7]), "discrete Gaussian", 2.0, np.array([4]), 5)
PROMISE = Guarantee(0.5, 20, 2.0, 5, 0.5)
CENTRES = CentreModel(CENTERS, np.ones(3), synopsis())
MIXTURE = MixtureModel(np.ones(1), np.zeros((1, 2)), np.eye(2)[None], np.ones(1), np.zeros(1))
PLACES = SourceTargetModel(CENTERS, np.arange(3), CENTERS, 0.5, 3)
DBSCAN = DBSCANModel(LISTED, SPANS, PROMISE, 4.0, True, "euclidean")
TREE = DensityModel(NestedHistogram.plain(COUNTS), SPANS, 1.0, "euclidean")
LINE = encode(Regions(Grid((0.0,), (1.0,), (4,)), np.array([0]), np.array([0]), np.ones((1, 3)), 0.95))


@pytest.mark.parametrize("value", [CENTRES, MIXTURE, MorseModel(MIXTURE, 1), PLACES, DBSCAN, TREE])
def test_models_pass_their_own_checks(value):
    assert encode(decode(json.loads(json.dumps(encode(value))))) == encode(value)


@pytest.mark.parametrize(
    "data",
    [
        changed(CENTRES, cluster_centers=array(3)),
        changed(CENTRES, cluster_centers=array(0, 2)),
        changed(CENTRES, cluster_centers=array(3, 2, value=1e200)),
        changed(CENTRES, cluster_centers=array(3, 1)),
        changed(CENTRES, cluster_centers="centres"),
        changed(CENTRES, cluster_sizes=array(2)),
        changed(CENTRES, cluster_sizes=array(3, value=-1.0)),
        changed(CENTRES, cluster_sizes=encode(np.ones(3, dtype=np.int64))),
        changed(CENTRES, center_stds=array(3, 3)),
        changed(CENTRES, synopsis=5),
        changed(synopsis(), noisy_counts=encode(np.arange(5))),
        changed(synopsis(), noise_std=-1.0),
        changed(synopsis(), noise_std=10**400),
        changed(synopsis(), laplace=1),
        changed(GRID, shape=[2**40, 2**40]),
        changed(GRID, shape=[2.5, 3]),
        changed(GRID, low=[5.0, 0.0]),
        changed(MIXTURE, weights=array(1, value=2.0)),
        changed(MIXTURE, covariances=array(1, 2, 2, value=-1.0)),
        changed(MIXTURE, mean_stds=array(1)),
        changed(MorseModel(MIXTURE, 1), n_clusters=2),
        changed(MorseModel(MIXTURE, 1), n_clusters=True),
        changed(MorseModel(MIXTURE, 1), base=None),
        changed(PLACES, sanitized_source=array(3, 1)),
        changed(PLACES, center_indices=encode(np.arange(2))),
        changed(COUNTS, counts=encode(np.arange(5))),
        changed(COUNTS, mechanism="none"),
        changed(COUNTS, scale=0.0),
        changed(LISTED, cells=encode(np.array([6]))),
        changed(LISTED, cells=encode(np.array([1, 2]))),
        changed(SPANS, labels=encode(np.array([0, 2]))),
        changed(SPANS, labels=encode(np.array([0, 0]))),
        changed(SPANS, counts=array(2, 2)),
        changed(SPANS, counts=array(2, 3, value=-1.0)),
        changed(SPANS, confidence=1.5),
        changed(PROMISE, min_samples=0),
        changed(PROMISE, radius=-1.0),
        changed(DBSCAN, eta=5.0),
        changed(DBSCAN, metric="manhattan"),
        changed(DBSCAN, regions=LINE),
        changed(TREE, regions=LINE),
        changed(TREE, histogram=encode(LISTED)),
        changed(TREE, prominence=0.0),
    ],
    ids=str,
)
def test_parts_that_do_not_fit_together(data):
    with pytest.raises(ValueError, match=r"must|is of another type"):
        decode(data)


def test_rows_far_beyond_any_domain():
    assert MIXTURE.predict(np.array([[1e308, -1e308], [0.0, 0.0]])).tolist() == [0, 0]


def test_bounds_of_different_columns():
    with pytest.raises(ValueError, match="as many lows as highs"):
        decode(changed(Domain.from_bounds((0, 1), 2), high=[1.0]))
