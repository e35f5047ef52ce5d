"""Public scaling: bounds to 0 and 1, no trace of the rows, scikit-learn's contract."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Ball, GridKMeans, PublicScaler, RandomProjection, estimate_bounds
from sfumato.budget.bought import purchases
from sfumato.errors import DataError, ParameterError

EXPECTED_FAILURES = {
    "check_estimators_empty_data_messages": "no rows are a neighbour of one row, and must work",
}
AGES = {"age": (0, 100), "income": (-1000, 1000)}
FRAME = pd.DataFrame({"income": [0.0, 1000.0], "name": ["a", "b"], "age": [25, 200]})
SCALED = [[0.25, 0.5], [2.0, 1.0]]  # the columns of AGES


@parametrize_with_checks(
    [PublicScaler(bounds=(-100, 100))], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_bounds_become_zero_and_one():
    rows = np.array([[0.0, -5.0], [10.0, 5.0], [5.0, 0.0], [20.0, 15.0]])
    scaler = PublicScaler(([0, -5], [10, 5])).fit(rows)
    assert scaler.transform(rows).tolist() == [[0, 0], [1, 1], [0.5, 0.5], [2, 2]]
    assert np.allclose(scaler.inverse_transform(scaler.transform(rows)), rows)
    assert scaler.bounds_ == ([0, 0], [1, 1])
    assert scaler.set_params(weights=[1, 3]).fit_transform(rows)[1].tolist() == [1, 3]
    assert scaler.bounds_ == ([0, 0], [1, 3])


def test_a_ball_becomes_one_of_radius_one_half():
    scaler = PublicScaler(Ball(2.0, [1.0, 3.0])).fit(np.zeros((1, 2)))
    assert scaler.transform([[3.0, 3.0], [1.0, 1.0]]).tolist() == [[1.0, 0.5], [0.5, 0.0]]
    assert scaler.bounds_ == Ball(0.5, 0.5)


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)], ids=type)
def test_a_mapping_chooses_columns_of_frames_by_name(frame):
    scaler = PublicScaler(AGES)
    assert scaler.fit_transform(frame).tolist() == SCALED
    assert scaler.get_feature_names_out().tolist() == ["age", "income"]
    assert scaler.n_features_in_ == 3
    weighted = PublicScaler(AGES, weights={"age": 2}).fit(frame)
    assert weighted.transform(frame).tolist() == [[0.5, 0.5], [4.0, 1.0]]
    assert weighted.inverse_transform(weighted.transform(frame)).tolist() == [[25, 0], [200, 1000]]


def test_names_and_output_of_pandas():
    scaler = PublicScaler(AGES).set_output(transform="pandas").fit(FRAME)
    found = scaler.transform(FRAME)
    assert list(found.columns) == ["age", "income"]
    assert found.to_numpy().tolist() == SCALED
    plain = PublicScaler((0, 1)).fit(np.zeros((1, 2)))
    assert plain.get_feature_names_out().tolist() == ["x0", "x1"]
    assert plain.get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]


def test_fit_learns_nothing_from_the_rows():
    tables = [np.empty((0, 2)), np.full((3, 2), 1e9), np.full((1, 2), np.nan)]
    states = [PublicScaler(([0, 1], [2, 5])).fit(table).__getstate__() for table in tables]
    assert len({str(state) for state in states}) == 1


def test_missing_values_stay_missing():
    found = PublicScaler((0, 10)).fit_transform([[5.0, np.nan], [np.inf, 0.0]])
    assert np.array_equal(found, [[0.5, np.nan], [np.inf, 0.0]], equal_nan=True)


@pytest.mark.parametrize(
    ("parameters", "table", "word"),
    [
        ({"bounds": None}, [[1.0]], "`bounds` must be given"),
        ({"bounds": (0, 1), "weights": [1.0]}, [[1.0, 2.0]], "2 numbers"),
        ({"bounds": (0, 1), "weights": [1.0, -1.0]}, [[1.0, 2.0]], "`weights`"),
        ({"bounds": (0, 1), "weights": ["1", 1]}, [[1.0, 2.0]], "`weights`"),
        ({"bounds": (0, 1), "weights": {"height": 2}}, FRAME[["age"]], "'height'"),
        ({"bounds": Ball(1), "weights": [1, 2]}, [[1.0, 2.0]], "must be None for a ball"),
        ({"bounds": {"name": ["a", "b"]}}, FRAME, "must be numbers"),
        ({"bounds": {"height": (0, 1)}}, FRAME, "'height' must be in the table"),
    ],
)
def test_bad_parameters(parameters, table, word):
    with pytest.raises(ParameterError, match=word):
        PublicScaler(**parameters).fit(table)


def test_bad_tables_are_refused_without_a_value():
    with pytest.raises(DataError, match="named columns"):
        PublicScaler(AGES).fit(np.zeros((3, 2)))
    with pytest.raises(DataError) as error:
        PublicScaler({"name": (0, 1)}).fit_transform(pd.DataFrame({"name": ["Lovelace"]}))
    assert "Lovelace" not in str(error.value)
    with pytest.raises(DataError, match="2 columns, got 3"):
        PublicScaler((0, 1)).fit(np.zeros((1, 2))).inverse_transform(np.zeros((1, 3)))


def test_the_cost_of_bounds_follows(rows):
    found = estimate_bounds(rows, epsilon=0.5, random_state=0)
    scaler = PublicScaler(found).fit(rows)
    assert purchases(scaler.bounds_) == (found.privacy,)
    model = GridKMeans(3, bounds=scaler.bounds_, max_cells=100, random_state=0)
    assert make_pipeline(clone(scaler), clone(model)).fit(rows)[-1].privacy_.epsilon == 1.5
    with pytest.raises(ParameterError, match=r"cost epsilon=0.5"):
        make_pipeline(scaler, model.set_params(bounds=(0, 1))).fit(rows)
    with pytest.raises(ParameterError, match=r"cost epsilon=0.5"):
        make_pipeline(scaler, RandomProjection(1, bounds=(0, 1))).fit(rows)


@pytest.mark.usefixtures("quick")
def test_before_a_projection(rows):
    bounds = RandomProjection(1, bounds=(0, 1)).fit(rows).bounds_
    model = GridKMeans(3, bounds=bounds, max_cells=20, random_state=0)
    steps = PublicScaler((-1, 1)), RandomProjection(1, bounds=(0, 1)), model
    assert set(make_pipeline(*steps).fit(rows).predict(rows)) <= {0, 1, 2}
