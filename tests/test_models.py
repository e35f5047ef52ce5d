"""Models: prediction, and the JSON form that releases use."""

import json

import numpy as np
import pytest

from sfumato.domain import Domain, Grid, Unit
from sfumato.errors import ReleaseError
from sfumato.models import PUBLISHABLE, CentreModel, decode, encode
from sfumato.synopsis import GridSynopsis

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
    from sfumato.aggregates import Cells

    with pytest.raises(ReleaseError, match="Cells is not a publishable type"):
        encode(Cells(GRID))
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
