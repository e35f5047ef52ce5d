"""Sparse cells against a dictionary, the layout of their table, and grids of up to 2^62 cells."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from sfumato import datasets
from sfumato.domain import Domain, Grid
from sfumato.domain.partitions import Subset
from sfumato.errors import ParameterError
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.sparse_cells import SparseCells, _hash
from sfumato.private.engines.memory import MemoryEngine

HUGE_SHAPES = [(2**62,), (2**31, 2**31), (3, 2**31 - 1, 7, 2**20 - 3), (2,) * 62, (5, 2**59 + 1)]


class Given:
    """A partition whose rows hold their cell: as many cells as a test likes, each under control."""

    n_cells = 2**53

    @staticmethod
    def index(rows):
        return rows[:, 0].astype(np.int64)


ANY = SparseCells(Given())


def state_of(cells):
    return ANY.add(ANY.zero(), np.asarray(cells, dtype=np.float64)[:, None])


def hash_by_hand(cell):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        cell = (cell ^ cell >> 33) * factor % 2**64
    return cell ^ cell >> 33


def layout_by_hand(counts):
    """Cells in the order of their hashes, each into the first free slot from its home on."""
    capacity = max(8, 2 ** math.ceil(math.log2(max(2 * len(counts), 1))))
    state = np.zeros((1 + capacity, 2), dtype=np.int64)
    state[0, 0] = len(counts)
    for cell in sorted(counts, key=hash_by_hand):
        slot = hash_by_hand(cell) % capacity
        while state[1 + slot, 1]:
            slot = (slot + 1) % capacity
        state[1 + slot] = cell, counts[cell]
    return state


def same_home(n, capacity, home):
    """Return cells that all want the same slot."""
    return [cell for cell in range(200 * n * capacity) if hash_by_hand(cell) % capacity == home][:n]


@pytest.mark.parametrize("n_distinct", [0, 1, 3, 4, 5, 8, 9, 100, 5000])
def test_pairs_and_layout_equal_those_of_a_dictionary(n_distinct):
    rng = np.random.default_rng(n_distinct)
    universe = rng.choice(2**53, size=max(n_distinct, 1), replace=False)[:n_distinct]
    cells = np.concatenate([universe, rng.choice(universe, 3 * n_distinct)]) if n_distinct else universe
    counts = Counter(rng.permutation(cells).tolist())
    state = state_of(cells)
    assert [array.tolist() for array in ANY.pairs(state)] == [
        sorted(counts),
        [counts[cell] for cell in sorted(counts)],
    ]
    assert np.array_equal(state, layout_by_hand(counts))


@pytest.mark.parametrize("home", [0, 6, 7])
def test_the_layout_of_colliding_cells_does_not_depend_on_their_order(home):
    """Cells with one home, and those who live next door, around the end of the table too."""
    cells = same_home(3, 8, home) + same_home(1, 8, (home + 1) % 8)
    states = [state_of(order) for order in permutations(cells)]
    assert all(np.array_equal(state, layout_by_hand(Counter(cells))) for state in states)


@pytest.mark.parametrize("n_distinct", [4, 5, 8, 9, 1024, 1025])
def test_the_capacity_depends_on_the_number_of_cells_alone(n_distinct):
    rng = np.random.default_rng(1)
    shapes = {
        state_of(rng.choice(2**50, n_distinct, replace=False).repeat(repeats)).shape for repeats in (1, 2, 7)
    }
    assert shapes == {(1 + max(8, 2 ** math.ceil(math.log2(2 * n_distinct))), 2)}


def test_merging_in_any_order_gives_the_same_bits():
    rng = np.random.default_rng(2)
    parts = [rng.integers(0, 400, size=n) for n in (0, 1, 30, 300, 301)]
    whole = state_of(np.concatenate(parts))
    for order in permutations(parts, 5):
        merged = ANY.zero()
        for part in order:
            merged = ANY.merge(merged, state_of(part))
        assert np.array_equal(merged, whole)


def test_the_hash_is_that_of_the_twin():
    for cell in (0, 1, 2359, 2**31, 2**62 - 1):
        assert int(_hash(cell)) == hash_by_hand(cell)


def test_rows_in_no_cell_count_nowhere():
    subset = Subset(Grid((0.0,), (1.0,), (4,)), np.array([2]))
    sparse, rows = SparseCells(subset), np.array([[0.1], [0.6], [0.7], [0.9]])
    assert [array.tolist() for array in sparse.pairs(sparse.add(sparse.zero(), rows))] == [[0], [2]]


def index_by_hand(grid, row):
    """Cell in Python integers, from the same floats."""
    flat = 0
    for value, low, width, m in zip(row, grid.low, grid.widths, grid.shape, strict=True):
        position = (value - low) * (1 / width)
        flat = flat * m + min(max(int(position), 0), m - 1)
    return flat


@pytest.mark.parametrize("shape", HUGE_SHAPES, ids=str)
def test_flat_indices_are_exact_up_to_2_to_the_62(shape):
    d = len(shape)
    grid = Grid((-1.0,) * d, (1.0,) * d, shape)
    assert grid.n_cells <= 2**62
    rng = np.random.default_rng(3)
    corners = np.array([[-1.0] * d, [1.0] * d, [np.nextafter(1.0, 0)] * d, [-5.0] * d, [5.0] * d])
    rows = np.concatenate([corners, rng.uniform(-1, 1, size=(200, d))])
    index = grid.index(rows)
    assert index.dtype == np.int64
    assert index.tolist() == [index_by_hand(grid, row) for row in rows]
    assert index[0] == index[3] == 0
    assert index[1] == index[4] == grid.n_cells - 1
    sparse = SparseCells(grid)
    cells, counts = sparse.pairs(sparse.add(sparse.zero(), rows))
    expected = Counter(index.tolist())
    assert dict(zip(cells.tolist(), counts.tolist(), strict=True)) == expected


@pytest.mark.parametrize("shape", [(2**62 + 1,), (2**32, 2**31), (10**30,)], ids=str)
def test_more_cells_are_refused(shape):
    d = len(shape)
    with pytest.raises(ParameterError, match=r"must have at most 2\*\*62 cells, got "):
        SparseCells(Grid((0.0,) * d, (1.0,) * d, shape))


@pytest.mark.skipif(datasets.data_home() is None, reason="needs SFUMATO_DATA")
def test_the_same_counts_as_dense_on_real_rows():
    rows, _ = datasets.load("cabs_tiny")
    domain = Domain.from_bounds((rows.min(axis=0), rows.max(axis=0)), 2)
    grid = Grid.over(domain, 1000)
    engine, sparse = MemoryEngine(rows, domain), SparseCells(grid)
    dense = engine.fold(CellCounts(grid))
    cells, counts = sparse.pairs(engine.fold(sparse))
    assert np.array_equal(cells, np.flatnonzero(dense))
    assert np.array_equal(counts, dense[cells])
