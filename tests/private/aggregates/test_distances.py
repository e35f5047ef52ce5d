"""Histograms of distances on tables that one can check by eye, and against NumPy."""

import numpy as np
import pytest

from sfumato.domain.partitions import Subset, Tree, Voronoi
from sfumato.errors import ParameterError
from sfumato.private.aggregates.distances import Distances


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def test_bins_are_closed_below_and_open_above():
    distances = Distances(Tree.root(), np.zeros((1, 2)), np.array([1.0, 5.0]))
    rows = [
        [0.0, 0.0],
        [0.5, 0.5],
        [1.0, 0.0],
        [3.0, 4.0],
        [3.0, np.nextafter(4.0, 0)],
        [0.0, -2.0],
        [1e300, 0.0],
    ]
    assert fold(distances, rows).tolist() == [2, 3, 2]


def test_each_row_is_measured_from_the_origin_of_its_own_group():
    centers = np.array([[0.0], [10.0]])
    distances = Distances(Voronoi(centers), np.array([[0.0], [12.0]]), np.array([1.0, 2.5]))
    assert fold(distances, [[0.5], [10.0], [11.5], [3.0]]).tolist() == [2, 1, 1]


def test_against_numpy():
    rng = np.random.default_rng(0)
    centers, rows, edges = rng.normal(size=(6, 4)), rng.normal(size=(2000, 4)), np.geomspace(0.01, 10, 30)
    state = fold(Distances(Voronoi(centers), centers, edges), rows)
    lengths = np.linalg.norm(rows - centers[Voronoi(centers).index(rows)], axis=1)
    assert state.dtype == np.int64
    assert (state == np.histogram(lengths, [0, *edges, np.inf])[0]).all()


def test_distances_are_measured_in_units_of_the_scale_of_the_group():
    centers = np.array([[0.0], [10.0]])
    scaled = Distances(Voronoi(centers), centers, np.array([1.0, 2.0]), np.array([1.0, 0.25]))
    assert fold(scaled, [[0.5], [1.5], [3.0], [10.2], [10.3], [10.5], [10.0]]).tolist() == [3, 2, 2]


def test_equal_scales_move_the_edges():
    rng = np.random.default_rng(1)
    centers, rows, edges = rng.normal(size=(6, 4)), rng.normal(size=(2000, 4)), np.geomspace(0.01, 10, 30)
    scaled = Distances(Voronoi(centers), centers, edges / 4, np.full(6, 4.0))
    assert (fold(scaled, rows) == fold(Distances(Voronoi(centers), centers, edges), rows)).all()


@pytest.mark.parametrize("scale", [0.0, -0.0, -1.0, 5e-324, 1e-146, 1e146, np.nan, np.inf])
def test_scales_by_which_nothing_can_be_divided_are_refused_before_a_row_is_read(scale):
    with pytest.raises(ParameterError, match=r"^`scales` must be from 1e-145 to 1e\+145, got .* Rescale"):
        Distances(Voronoi(np.eye(2)), np.eye(2), np.array([1.0]), np.array([1.0, scale]))


def test_as_many_scales_as_groups():
    with pytest.raises(ParameterError, match=r"^`scales` must have shape \(2,\), got \(3,\)"):
        Distances(Voronoi(np.eye(2)), np.eye(2), np.array([1.0]), np.ones(3))


@pytest.mark.parametrize("shape", [(2, 3), (4, 3), (3,), (0, 3), (3, 3, 1)])
def test_origins_of_another_shape_are_refused(shape):
    with pytest.raises(ParameterError, match=r"^`origins` must have shape \(3, \d\), got \("):
        Distances(Voronoi(np.zeros((3, 3))), np.zeros(shape), np.array([1.0]))


def test_no_groups():
    nobody = Subset(Tree.root(), np.empty(0, dtype=np.int64))
    distances = Distances(nobody, np.empty((0, 2)), np.array([1.0, 2.0]))
    assert fold(distances, np.zeros((5, 2))).tolist() == [0, 0, 0]


def test_no_edges():
    assert fold(Distances(Tree.root(), np.zeros((1, 2)), np.empty(0)), np.ones((5, 2))).tolist() == [5]
