"""Histograms of columns on tables that one can check by eye, and against NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.private.aggregates.histograms import Histograms


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def test_bins_are_closed_below_and_open_above_and_rows_outside_count_nowhere():
    rows = np.array([[-1.0], [-0.0], [0.5], [1.0], [np.nextafter(3.0, 0)], [3.0], [1e300], [-1e300]])
    assert fold(Histograms(np.array([[0.0, 1.0, 3.0]])), rows).tolist() == [[2, 2]]


def test_each_column_has_its_own_edges():
    histograms = Histograms(np.array([[0.0, 1.0, 2.0], [10.0, 20.0, 40.0]]))
    assert fold(histograms, [[0.5, 30.0], [1.5, 5.0], [1.5, 10.0]]).tolist() == [[1, 2], [1, 1]]


@pytest.mark.parametrize("n_bins", [1, 2, 3, 7, 64, 1024])
def test_against_numpy(n_bins):
    rng = np.random.default_rng(n_bins)
    edges = np.sort(rng.normal(size=(3, n_bins + 1)), axis=1)
    rows = np.concatenate([rng.normal(size=(2000, 3)), edges.T, np.nextafter(edges.T, -np.inf)])
    expected = [
        [((a <= x) & (x < b)).sum() for a, b in pairwise(e)] for x, e in zip(rows.T, edges, strict=True)
    ]
    state = fold(Histograms(edges), rows)
    assert state.dtype == np.int64
    assert state.tolist() == expected


def test_edges_in_another_memory_order():
    edges = np.asfortranarray([[0.0, 1.0, 2.0], [0.0, 10.0, 20.0]])
    assert fold(Histograms(edges), [[0.5, 15.0]]).tolist() == [[1, 0], [0, 1]]


def test_sensitivity():
    one = Histograms(np.array([[0.0, 1.0]] * 5)).sensitivity
    assert (one.l1, one.l2_squared, one.spread, one.coordinates) == (5, 5, 1, 5)
    assert one == Histograms.sensitivity_in(5)


@pytest.mark.parametrize(
    "edges", [[[0.0, 0.0]], [[1.0, 0.0]], [[0.0, np.nan]], [[0.0, np.inf]], [[0.0, 1.0], [0.0, -1.0]]]
)
def test_edges_that_do_not_increase_are_refused(edges):
    with pytest.raises(ParameterError, match=r"^`edges` must be finite and increase"):
        Histograms(np.array(edges))


@pytest.mark.parametrize("shape", [(3,), (2, 1), (2, 3, 1)])
def test_edges_of_another_shape_are_refused(shape):
    with pytest.raises(ParameterError, match=r"^`edges` must have shape"):
        Histograms(np.zeros(shape))


def test_rows_with_other_columns_are_refused():
    with pytest.raises(ParameterError, match="rows must have 1 columns, got 2"):
        fold(Histograms(np.array([[0.0, 1.0]])), np.zeros((3, 2)))
