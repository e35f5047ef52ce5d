"""Spheres: rows count by their direction alone."""

import numpy as np
import pytest

from sfumato import LloydKMeans, PrivateKMeans, Release, Sphere
from sfumato.domain import Ball, Domain
from sfumato.errors import ParameterError

RNG = np.random.default_rng(0)


def sphere(d=3, radius=1.0, outside="clip"):
    return Domain.from_bounds(Sphere(radius), d, outside=outside)


@pytest.mark.parametrize("outside", ["clip", "drop"])
@pytest.mark.parametrize("radius", [1.0, 1e-6, 300.0])
def test_rows_are_scaled_to_the_radius(radius, outside):
    rows = RNG.normal(size=(50, 3)) * 10.0 ** RNG.integers(-3, 4, size=(50, 1))
    found = sphere(3, radius, outside).admitted(rows)
    assert np.linalg.norm(found, axis=1) == pytest.approx(radius, rel=1e-6)
    assert found / radius == pytest.approx(rows / np.linalg.norm(rows, axis=1, keepdims=True), abs=1e-6)
    assert (np.linalg.norm(found, axis=1) <= radius).all()


def test_a_row_without_a_direction_stays_in_the_middle():
    assert (sphere().admitted(np.zeros((1, 3))) == 0).all()


def test_rows_that_are_not_finite_are_left_out():
    rows = np.array([[np.nan, 0, 0], [np.inf, 0, 0], [2.0, 0, 0]])
    assert sphere().admitted(rows) == pytest.approx(np.array([[1.0, 0, 0]]))


def test_a_row_is_scaled_by_itself():
    rows = RNG.normal(size=(9, 3))
    together = sphere().admitted(rows)
    assert all(
        (sphere().admitted(row[None]) == image).all() for row, image in zip(rows, together, strict=True)
    )


def test_only_centres_of_a_sphere_are_placed_on_it():
    points = np.array([[0.1, 0.0], [0.0, 0.4]])
    assert np.linalg.norm(sphere(2).placed(points), axis=1) == pytest.approx(1.0)
    assert sphere(2).clip(points) == pytest.approx(points)
    assert (Domain.from_bounds(Ball(1.0), 2).placed(points) == points).all()


@pytest.mark.parametrize("cls", [LloydKMeans, PrivateKMeans])
def test_spherical_kmeans_ignores_lengths(cls, tmp_path):
    directions = np.eye(8)[RNG.integers(4, size=6_000)]
    rows = directions + 0.1 * RNG.normal(size=directions.shape)
    lengths = RNG.uniform(0.01, 100, size=(len(rows), 1))
    fits = [
        cls(4, epsilon=4.0, delta=1e-6, bounds=Sphere(), random_state=0).fit(X)
        for X in (rows, lengths * rows)
    ]
    first, second = (model.cluster_centers_ for model in fits)
    assert np.linalg.norm(first, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert first == pytest.approx(second, abs=1e-6)
    release = Release.load(fits[0].release_.save(tmp_path / "release.json"))
    assert release.domain.is_sphere
    assert (release.predict(rows) == release.predict(lengths * rows)).all()
    assert len(np.unique(release.predict(np.eye(8)[:4]))) == 4


def test_a_sphere_has_a_positive_radius():
    with pytest.raises(ParameterError, match="radius"):
        sphere(radius=0.0)
