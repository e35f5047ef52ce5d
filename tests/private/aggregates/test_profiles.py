"""Counts per cluster, column and bin: on tables that one can check by eye, and over all neighbours."""

from itertools import product

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.domain.partitions import Subset, Tree, Voronoi
from sfumato.errors import ParameterError
from sfumato.private.aggregates.profiles import ProfileCounts

TWO = Grid((0.0,), (2.0,), (2,))
EDGES = (np.array([0.0, 10.0, 20.0]), np.array([-0.5, 0.5, 1.5, 2.5]))


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def test_each_row_counts_once_per_column_in_its_own_group():
    rows = [[0.5, 5.0, 0.0], [0.6, 15.0, 2.0], [1.5, 9.99, 1.0], [1.7, 10.0, 1.0]]
    found = fold(ProfileCounts(TWO, 1, EDGES), rows)
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 2, 0, 0]]


def test_values_beyond_the_edges_count_at_the_ends_and_missing_ones_apart():
    values = [-1e300, -1.0, 20.0, 1e300, np.nan, np.inf, -np.inf]
    found = fold(ProfileCounts(TWO, 1, EDGES[:1]), [[0.5, value] for value in values])
    assert found.tolist() == [[2, 2, 3], [0, 0, 0]]


def test_a_row_in_no_group_counts_nowhere():
    first = Subset(Voronoi(np.array([[0.0], [2.0]])), np.array([1]))
    found = fold(ProfileCounts(first, 1, EDGES[:1]), [[0.0, 5.0], [1.9, 5.0]])
    assert found.tolist() == [[1, 0, 0]]


@pytest.mark.parametrize("seed", range(3))
def test_against_numpy(seed):
    rng = np.random.default_rng(seed)
    edges = tuple(np.sort(rng.normal(size=n)) for n in (2, 3, 17, 257))
    rows = rng.normal(size=(3000, 6))
    rows[:8, 2:] = edges[2][:8, None]
    rows[rng.random(rows.shape) < 0.05] = np.nan
    rows[:, :2] = rng.normal(size=(3000, 2))
    centres = Voronoi(rng.normal(size=(4, 2)))
    found, start = fold(ProfileCounts(centres, 2, edges), rows), 0
    groups = centres.index(np.ascontiguousarray(rows[:, :2]))
    for j, line in enumerate(edges):
        values = rows[:, 2 + j]
        bins = np.where(np.isnan(values), len(line) - 1, np.searchsorted(line[1:-1], values, side="right"))
        for c in range(4):
            expected = np.bincount(bins[groups == c], minlength=len(line))
            assert found[c, start : start + len(line)].tolist() == expected.tolist()
        start += len(line)


def test_one_row_moves_exactly_what_the_sensitivity_says():
    """Over every table of up to two rows and every row added to it."""
    aggregate = ProfileCounts(TWO, 1, EDGES)
    declared = aggregate.sensitivity
    assert declared == ProfileCounts.sensitivity_in(2)
    rows = list(product([0.5, 1.5], [-5.0, 5.0, 10.0, np.nan], [0.0, 2.0, np.inf]))
    changes = []
    for table in ([], *([row] for row in rows), *([row, rows[3]] for row in rows)):
        before = fold(aggregate, np.reshape(table, (-1, 3)))
        changes += [fold(aggregate, [*table, row]) - before for row in rows]
    assert {int(np.abs(change).sum()) for change in changes} == {declared.l1}
    assert {int((change**2).sum()) for change in changes} == {declared.l2_squared}
    assert {int((change != 0).sum()) for change in changes} == {declared.coordinates}
    assert {int(change.max() - change.min()) for change in changes} == {declared.spread}


def test_the_number_of_groups_does_not_change_the_sensitivity():
    for partition in (Tree.root(), TWO, Grid((0.0,), (1.0,), (500,))):
        assert ProfileCounts(partition, 1, EDGES).sensitivity == ProfileCounts.sensitivity_in(2)


@pytest.mark.parametrize("edges", [[0.0, 0.0], [1.0, 0.0], [0.0, np.nan], [0.0, np.inf], [0.0], [[0.0, 1.0]]])
def test_edges_that_make_no_bins_are_refused(edges):
    with pytest.raises(ParameterError, match=r"^`edges` must"):
        ProfileCounts(TWO, 1, (np.array(edges),))


def test_rows_of_another_width_are_refused():
    with pytest.raises(ParameterError, match="rows must have 3 columns, got 2"):
        fold(ProfileCounts(TWO, 1, EDGES), np.zeros((3, 2)))
