"""Public random projections: the ball that holds all rows, no trace of the rows, scikit-learn's contract."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Ball, GridKMeans
from sfumato.domain import Domain
from sfumato.errors import DataError, ParameterError
from sfumato.projection import RandomProjection, orthonormal

EXPECTED_FAILURES = {
    "check_estimators_empty_data_messages": "no rows are a neighbour of one row, and must work",
}


@parametrize_with_checks(
    [RandomProjection(1, bounds=(-100, 100))],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("p", "d"), [(1, 1), (2, 2), (3, 50), (20, 1000)])
def test_directions_are_orthonormal_and_public(p, d):
    matrix = orthonormal(p, d, seed=5)
    assert np.allclose(matrix @ matrix.T, np.eye(p), atol=1e-12)
    assert (matrix == orthonormal(p, d, seed=5)).all()
    assert d == 1 or (matrix != orthonormal(p, d, seed=6)).any()


BOUNDS = [
    (-1, 1),
    (np.zeros(6), np.arange(1.0, 7.0)),
    (1e6, 1e6 + 1),
    (-1e-9, 1e-9),
    Ball(3.0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("p", [1, 3, 6])
def test_the_ball_holds_every_projected_row(bounds, p):
    rng = np.random.default_rng(0)
    domain = Domain.from_bounds(bounds, 6)
    projection = RandomProjection(p, bounds=bounds).fit(np.zeros((1, 6)))
    corners = domain.midpoint + domain.half_width * rng.choice([-1, 1], size=(200, 6)) * 3
    toward = domain.midpoint + 1e3 * domain.half_width.max() * np.vstack(
        [projection.components_, -projection.components_]
    )
    projected = projection.transform(np.vstack([corners, toward, rng.normal(scale=1e9, size=(50, 6))]))
    ball = projection.bounds_
    lengths = np.linalg.norm(projected - np.array(ball.center), axis=1)
    assert (lengths <= ball.radius).all()
    assert (lengths.max() > 0.5 * ball.radius) or p < 6


@pytest.mark.parametrize("bounds", BOUNDS[:3], ids=str)
def test_the_ball_of_a_box_is_not_wider_than_its_diagonal(bounds):
    projection = RandomProjection(2, bounds=bounds).fit(np.zeros((1, 6)))
    diagonal = np.linalg.norm(Domain.from_bounds(bounds, 6).half_width)
    assert projection.bounds_.radius <= diagonal * 1.01


def test_fit_learns_nothing_from_the_rows():
    rng = np.random.default_rng(0)
    tables = [np.empty((0, 4)), np.ones((1, 4)), rng.normal(scale=1e6, size=(99, 4))]
    fits = [RandomProjection(2, bounds=(0, 1), seed=3).fit(table) for table in tables]
    for fitted in fits:
        assert (fitted.components_ == fits[0].components_).all()
        assert fitted.bounds_ == fits[0].bounds_


def test_a_row_is_projected_alike_wherever_it_stands():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(257, 37))
    projection = RandomProjection(5, bounds=(-2, 2)).fit(rows)
    whole = projection.transform(rows)
    assert (whole == np.vstack([projection.transform(row[None]) for row in rows])).all()
    assert (whole[10:] == projection.transform(rows[10:])).all()
    assert np.allclose(whole, np.clip(rows, -2, 2) @ projection.components_.T)


def test_back_and_forth():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.4, 0.6, size=(20, 5))
    projection = RandomProjection(2, bounds=(0, 1)).fit(rows)
    projected = projection.transform(rows)
    back = projection.inverse_transform(projected)
    assert back.shape == rows.shape
    assert np.allclose(projection.transform(back), projected)
    complete = RandomProjection(5, bounds=(0, 1)).fit(rows)
    assert np.allclose(complete.inverse_transform(complete.transform(rows)), rows)
    far = projection.inverse_transform([[1e6, -1e6]])
    assert ((far >= 0) & (far <= 1)).all()


def test_names_of_columns():
    frame = pd.DataFrame(np.zeros((3, 4)), columns=list("abcd"))
    projection = RandomProjection(2, bounds=(0, 1)).set_output(transform="pandas").fit(frame)
    names = ["randomprojection0", "randomprojection1"]
    assert list(projection.get_feature_names_out()) == names
    assert list(projection.transform(frame).columns) == names


@pytest.mark.usefixtures("quick")
def test_in_a_pipeline(rows):
    wide = np.hstack([rows, rows, np.zeros((len(rows), 3))])
    bounds = RandomProjection(2, bounds=(-1, 1)).fit(wide).bounds_
    steps = RandomProjection(2, bounds=(-1, 1)), GridKMeans(3, bounds=bounds, max_cells=100, random_state=0)
    assert set(make_pipeline(*steps).fit(wide).predict(wide)) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": True}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"n_components": 4}, "at most the number of columns"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
        ({"bounds": None}, "`bounds` must be given"),
    ],
)
def test_bad_parameters(parameters, word):
    projection = RandomProjection(**{"n_components": 2, "bounds": (0, 1), **parameters})
    with pytest.raises(ParameterError, match=word):
        projection.fit(np.zeros((5, 3)))


@pytest.mark.parametrize("table", [[["Lovelace", 1, 2]], [[np.inf, -np.inf, 1]], [[10**400, 1, 2]]])
def test_bad_tables_are_refused_without_a_value(table):
    projection = RandomProjection(bounds=(0, 1)).fit(np.zeros((5, 3)))
    for call in (projection.fit, projection.transform, projection.inverse_transform):
        with pytest.raises(DataError) as error:
            call(table)
        assert "Lovelace" not in str(error.value)
        assert error.value.__context__ is None


def test_points_of_another_width():
    with pytest.raises(DataError, match="2 columns, got 3"):
        RandomProjection(bounds=(0, 1)).fit(np.zeros((5, 3))).inverse_transform(np.zeros((1, 3)))
