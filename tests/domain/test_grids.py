"""Public grids: their geometry, and the cell of any row."""

from itertools import product

import numpy as np
import pytest

from sfumato.domain import Domain, Grid
from sfumato.errors import ParameterError

FAR = [1e300, -1e300, np.finfo(float).max, -np.finfo(float).max, 5e-324, -5e-324, 0.0, -0.0, 1e-310]


def test_grid_geometry():
    grid = Grid((0.0, -1.0), (1.0, 1.0), (2, 4))
    assert grid.n_cells == 8
    assert grid.widths.tolist() == [0.5, 0.5]
    assert [edges.tolist() for edges in grid.edges()] == [[0, 0.5, 1], [-1, -0.5, 0, 0.5, 1]]
    assert grid.centers()[[0, 1, 4, 7]].tolist() == [
        [0.25, -0.75],
        [0.25, -0.25],
        [0.75, -0.75],
        [0.75, 0.75],
    ]
    assert (grid.centers_of(np.array([7, 0, 4])) == grid.centers()[[7, 0, 4]]).all()
    assert grid.refined(3).shape == (6, 12)
    assert Grid.over(Domain.from_bounds((0, 1), 3), 5).shape == (5, 5, 5)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4)])
def test_centers_are_indexed_in_c_order(shape):
    grid = Grid((-2.0,) * len(shape), (3.0,) * len(shape), shape)
    assert grid.index(grid.centers()).tolist() == list(range(grid.n_cells))


def test_every_point_of_space_has_exactly_one_cell():
    grid = Grid((0.0, 0.1), (0.3, 0.7), (3, 7))
    index = grid.index(list(product(FAR, repeat=2)))
    assert ((index >= 0) & (index < grid.n_cells)).all()
    assert grid.index([[1e300, -1e300]]).tolist() == [2 * 7]
    assert grid.index([[-1e300, 1e300]]).tolist() == [6]


@pytest.mark.parametrize(("low", "shape"), [((0.0,), (1, 1)), ((0.0, 0.0), (1, 0)), ((0.0, 0.0), (-1, 3))])
def test_bad_grids(low, shape):
    with pytest.raises(ParameterError, match="`shape`"):
        Grid(low, (1.0,) * len(low), shape)


@pytest.mark.parametrize(
    ("low", "high", "shape"),
    [(1.0, 0.0, 2), (0.0, 0.0, 2), (0.0, 1e300, 2), (0.0, 1.0, 2**63), (np.nan, 1.0, 2)],
)
def test_grids_of_no_place(low, high, shape):
    with pytest.raises(ParameterError):
        Grid((low,), (high,), (shape,)).check()


@pytest.mark.parametrize("cells", [[[1]], [-1], [6], [2, 1], [1, 1]])
def test_bad_lists_of_cells(cells):
    grid = Grid((0.0, 0.0), (1.0, 1.0), (2, 3))
    grid.check_cells(np.array([0, 5]))
    grid.check_cells(np.empty(0, dtype=np.int64))
    with pytest.raises(ParameterError, match="`cells` must be increasing integers from 0 to below 6"):
        grid.check_cells(np.array(cells))
