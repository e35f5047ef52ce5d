"""Nested grids: their leaves against boxes that are cut one by one."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.domain.measure import Measure
from sfumato.domain.nested import NestedGrid
from sfumato.errors import ParameterError

SHAPES = {1: (5,), 2: (3, 4), 3: (2, 3, 2)}
FAR = [1e300, -1e300, np.finfo(float).max, -np.finfo(float).max, 5e-324, -5e-324, 0.0, -0.0, 1e-310]


def random_grid(d, seed=0, deepest=3):
    """Cells of width 1 of random depths."""
    shape = SHAPES[d]
    depths = np.random.default_rng(seed).integers(0, deepest + 1, math.prod(shape))
    return NestedGrid(Grid((0.0,) * d, tuple(map(float, shape)), shape), depths, deepest)


def boxes(nested):
    """Lower corner and width of every leaf: coarse cell by coarse cell, then part by part."""
    corners, widths = [], []
    for cell, depth in zip(product(*map(range, nested.coarse.shape)), nested.depths, strict=True):
        for part in product(range(2**depth), repeat=nested.n_features):
            corners.append(np.array(cell) + np.array(part) / 2.0**depth)
            widths.append(2.0**-depth)
    return np.array(corners), np.array(widths)


def slow_index(nested, rows):
    """The only leaf whose box, open above, holds each row."""
    corners, widths = boxes(nested)
    found = []
    for row in rows:
        (leaf,) = np.flatnonzero(((corners <= row) & (row < corners + widths[:, None])).all(axis=1))
        found.append(int(leaf))
    return found


every_grid = pytest.mark.parametrize(("d", "seed"), [(d, seed) for d in SHAPES for seed in range(3)])


@every_grid
def test_leaves_agree_with_their_slow_twin(d, seed):
    nested = random_grid(d, seed)
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, SHAPES[d], size=(200, d))
    on_borders = np.floor(rows * 8) / 8  # where the finest leaves meet
    rows = np.concatenate([rows, on_borders, np.nextafter(on_borders[(on_borders > 0).all(axis=1)], 0)])
    assert nested.index(rows).tolist() == slow_index(nested, rows)


@every_grid
def test_every_fine_cell_is_in_one_leaf(d, seed):
    nested = random_grid(d, seed)
    assert nested.fine.shape == tuple(8 * m for m in SHAPES[d])
    some = np.random.default_rng(0).permutation(nested.fine.n_cells)[:500]
    assert nested.leaves[some].tolist() == slow_index(nested, nested.fine.centers_of(some))
    assert nested.index(nested.fine.centers()).tolist() == nested.leaves.tolist()


@every_grid
def test_numbers_and_volumes(d, seed):
    nested = random_grid(d, seed)
    corners, widths = boxes(nested)
    assert nested.n_features == d
    assert nested.n_cells == len(corners) == nested.n_parts.sum()
    np.testing.assert_array_equal(nested.volumes, (8 * widths) ** d)
    np.testing.assert_array_equal(nested.volumes, np.bincount(nested.leaves, minlength=nested.n_cells))
    np.testing.assert_array_equal(nested.homes, nested.coarse.index(corners + widths[:, None] / 2))
    assert nested.volumes.sum() == nested.fine.n_cells


@every_grid
def test_values_are_spread_evenly_and_without_loss(d, seed):
    nested = random_grid(d, seed)
    values = np.random.default_rng(seed).normal(size=nested.n_cells)
    spread = nested.spread(values)
    assert spread.shape == nested.fine.shape
    np.testing.assert_allclose(np.bincount(nested.leaves, spread.ravel()), values)
    for leaf in range(nested.n_cells):
        assert np.ptp(spread.ravel()[nested.leaves == leaf]) == 0


@pytest.mark.parametrize("d", SHAPES)
def test_rows_outside_go_to_the_nearest_leaf(d):
    nested = random_grid(d)
    rows = np.random.default_rng(0).uniform(-3, np.array(SHAPES[d]) + 3, size=(200, d))
    last = np.nextafter(np.array(SHAPES[d], dtype=float), 0)
    assert nested.index(rows).tolist() == nested.index(np.clip(rows, 0, last)).tolist()
    far = nested.index(list(product(FAR, repeat=d)))
    assert ((far >= 0) & (far < nested.n_cells)).all()
    assert nested.index(np.full((1, d), -1e300)).tolist() == [0]
    assert nested.index(np.full((1, d), 1e300)).tolist() == [nested.n_cells - 1]
    assert nested.index(np.empty((0, d))).shape == (0,)


def test_plain():
    grid = Grid((0.0, -1.0), (2.0, 1.0), (3, 5))
    nested = NestedGrid.plain(grid)
    nested.check()
    assert nested.fine == nested.coarse == grid
    assert nested.leaves.tolist() == nested.homes.tolist() == list(range(15))
    assert (nested.volumes == 1).all()
    rows = np.random.default_rng(0).uniform(-2, 3, size=(100, 2))
    assert nested.index(rows).tolist() == grid.index(rows).tolist()


def test_the_deepest_may_be_deeper_than_any_cell():
    nested = NestedGrid(Grid((0.0,), (2.0,), (2,)), np.array([1, 0]), 3)
    assert nested.leaves.tolist() == [0] * 4 + [1] * 4 + [2] * 8
    assert nested.volumes.tolist() == [4, 4, 8]


@pytest.mark.parametrize("d", SHAPES)
def test_moved(d):
    nested = random_grid(d)
    measure = Measure(tuple(range(1, d + 1)), (0.5, 4.0, 2.0)[:d])  # powers of 2, so that nothing is rounded
    moved = nested.moved(measure)
    rows = np.random.default_rng(0).uniform(0, SHAPES[d], size=(300, d))
    assert moved.index(measure.of(rows)).tolist() == nested.index(rows).tolist()
    assert moved.fine == nested.fine.moved(measure)
    assert nested.coarse.low == (0.0,) * d


@pytest.mark.parametrize(
    "damage",
    [
        {"depths": np.array([0, 1])},
        {"depths": np.array([0, 1, 0, 0])},
        {"depths": np.array([[0, 1, 2]])},
        {"depths": np.array([0.0, 1.0, 2.0])},
        {"depths": np.array([0, 1, 2], dtype=np.int32)},
        {"depths": np.array([0, -1, 2])},
        {"depths": np.array([0, 1, 3])},
        {"deepest": 1},
        {"deepest": -1},
        {"deepest": 9},
    ],
    ids=str,
)
def test_damaged_parts_are_refused(damage):
    nested = NestedGrid(Grid((0.0,), (3.0,), (3,)), np.array([0, 1, 2]), 2)
    nested.check()
    with pytest.raises(ParameterError, match="`depths` must be"):
        replace(nested, **damage).check()
