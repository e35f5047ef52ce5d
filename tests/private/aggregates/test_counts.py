"""Counts and cells on small tables that one can check by eye. The laws are in tests/contract."""

import numpy as np

from sfumato.domain import Grid
from sfumato.domain.partitions import Subset
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount


def test_row_count():
    count = RowCount()
    state = count.add(count.zero(), np.zeros((3, 2)))
    assert count.merge(state, count.add(count.zero(), np.zeros((4, 2)))).tolist() == [7]


def test_cells_in_c_order_with_outside_rows_at_the_border():
    cells = CellCounts(Grid((0.0, 0.0), (2.0, 3.0), (2, 3)))
    rows = np.array([[0.5, 0.5], [0.5, 0.5], [1.5, 2.5], [-9.0, 9.0], [9.0, -9.0], [1.0, 1.0]])
    assert cells.add(cells.zero(), rows).tolist() == [2, 0, 1, 1, 1, 1]


def test_a_border_row_counts_once():
    cells = CellCounts(Grid((0.0,), (1.0,), (4,)))
    borders = np.array([[0.0], [0.25], [0.5], [0.75], [1.0]])
    assert cells.add(cells.zero(), borders).tolist() == [1, 1, 1, 2]


def test_adding_and_merging_are_in_place():
    cells = CellCounts(Grid((0.0,), (1.0,), (2,)))
    state = cells.zero()
    assert cells.add(state, np.array([[0.1]])) is state
    assert cells.merge(state, np.array([3, 4])) is state
    assert state.tolist() == [4, 4]


def test_rows_in_no_cell_are_not_counted():
    some = Subset(Grid((0.0,), (4.0,), (4,)), np.array([2, 0]))
    cells = CellCounts(some)
    assert cells.add(cells.zero(), np.array([[0.5], [1.5], [2.5], [2.6], [9.0]])).tolist() == [2, 1]


def test_no_cells_at_all():
    cells = CellCounts(Subset(Grid((0.0,), (4.0,), (4,)), np.empty(0, dtype=np.int64)))
    assert cells.add(cells.zero(), np.array([[0.5], [1.5]])).tolist() == []
