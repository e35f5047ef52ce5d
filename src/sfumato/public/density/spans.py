"""Spans, the dense places that a density clustering publishes, as boxes and polygons."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.domain import FloatArray, Grid, IntArray
from sfumato.errors import ParameterError
from sfumato.public.density.outlines import outlines_of


@dataclass(frozen=True, eq=False)
class Span:
    """A dense place: some cells of a public grid, and an estimate of the number of rows in them.

    Parameters
    ----------
    label : int
        Label that `predict` gives to rows in the span.
    count : float
        Estimated number of rows.
    count_low, count_high : float
        Interval for the true number of rows in these cells.
    confidence : float
        Probability that the interval contains the true number, for example 0.95.
    grid : Grid
    cells : int array
        Flat indices of the cells in C order, sorted and distinct.

    Privacy
    -------
    Contains released values only. Computing with them costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.domain import Grid
    >>> grid = Grid((0.0, 0.0), (4.0, 4.0), (4, 4))
    >>> span = Span(3, 1234.4, 1180.0, 1288.0, 0.95, grid, np.array([0, 1, 4]))
    >>> print(span)
    span 3: about 1,234 rows (1,180 to 1,288, 95%), 3 cells
    >>> span.boxes.tolist()
    [[[0.0, 0.0], [1.0, 2.0]], [[1.0, 0.0], [2.0, 1.0]]]
    >>> span.volume
    3.0
    """

    label: int
    count: float
    count_low: float
    count_high: float
    confidence: float
    grid: Grid
    cells: IntArray

    def __post_init__(self) -> None:
        cells, n_cells = self.cells, self.grid.n_cells
        is_list = cells.ndim == 1 and cells.dtype == np.int64 and len(cells) > 0
        if not is_list or cells[0] < 0 or cells[-1] >= n_cells or (cells[1:] <= cells[:-1]).any():
            raise ParameterError(
                f"`cells` must be one or more int64 indices below {n_cells}, sorted and distinct, "
                f"got {cells!r}. Sort them with numpy.unique"
            )

    def __str__(self) -> str:
        cells = "1 cell" if len(self.cells) == 1 else f"{len(self.cells):,} cells"
        interval = f"{round(self.count_low):,} to {round(self.count_high):,}, {100 * self.confidence:g}%"
        return f"span {self.label}: about {round(self.count):,} rows ({interval}), {cells}"

    @property
    def volume(self) -> float:
        """Length, area or volume of the place, in the units of the columns."""
        return len(self.cells) * float(np.prod(self.grid.widths))

    @cached_property
    def centroid(self) -> FloatArray:
        """Unweighted mean of the cells' centres. It is not the mean of the rows and may lie outside."""
        mean: FloatArray = self._places.mean(axis=0) + 0.5
        return np.array(self.grid.low) + mean * self.grid.widths

    @cached_property
    def extent(self) -> FloatArray:
        """Lower and upper corner of the bounding box, shape (2, d)."""
        return _points(self.grid, np.stack([self._places.min(axis=0), self._places.max(axis=0) + 1]))

    @cached_property
    def footprint(self) -> Span:
        """The part of the map, the first two columns, over which the place extends, with the same count."""
        if len(self.grid.shape) <= 2:
            return self
        plane = Grid(self.grid.low[:2], self.grid.high[:2], self.grid.shape[:2])
        cells = np.unique(np.ravel_multi_index(tuple(self._places.T[:2]), plane.shape)).astype(np.int64)
        return replace(self, grid=plane, cells=cells)

    @cached_property
    def boxes(self) -> FloatArray:
        """Lower and upper corners of disjoint boxes that make up the span, shape (n_boxes, 2, d).

        Cells are joined into runs along the last column, equal runs along the column before, and so on.
        """
        low = self._places
        high = low + 1
        for axis in reversed(range(low.shape[1])):
            low, high = _joined(low, high, axis)
        in_order = np.lexsort(low.T[::-1])
        return _points(self.grid, np.stack([low[in_order], high[in_order]], axis=1))

    @cached_property
    def polygons(self) -> list[list[FloatArray]]:
        """Outlines of a span over two columns, in the order of GeoJSON (RFC 7946).

        A polygon is a list of rings, float arrays of shape (m, 2) with the first point repeated at the end:
        the outer ring counter-clockwise, then the holes clockwise. Cells that share a side are in the same
        polygon; cells that share only a corner need not be. No ring touches itself.
        """
        if len(self.grid.shape) != 2:
            raise ParameterError(
                f"`polygons` must be used on a span over 2 columns, got {len(self.grid.shape)} columns. "
                "Use `boxes` for any number of columns"
            )
        (outlines,) = outlines_of(self.grid.shape, [self.cells])
        return [[_points(self.grid, ring) for ring in rings] for rings in outlines]

    @cached_property
    def _places(self) -> IntArray:
        """Index of each cell along each column, shape (n, d)."""
        return np.stack(np.unravel_index(self.cells, self.grid.shape), axis=1).astype(np.int64)


def _points(grid: Grid, corners: IntArray) -> FloatArray:
    """Coordinates of corners of cells. Corners on the upper bound are exactly there."""
    points = np.array(grid.low) + corners * grid.widths
    return np.where(corners == np.array(grid.shape), np.array(grid.high), points)


def _joined(low: IntArray, high: IntArray, axis: int) -> tuple[IntArray, IntArray]:
    """Join boxes that are adjacent along `axis` and agree along the others; before `axis` they are cells."""
    others = [low[:, j] for j in range(low.shape[1]) if j != axis]
    others += [high[:, j] for j in range(axis + 1, low.shape[1])]
    order = np.lexsort((low[:, axis], *others))
    low, high = low[order], high[order]
    continues = high[:-1, axis] == low[1:, axis]
    for values in others:
        continues &= values[order][1:] == values[order][:-1]
    firsts = np.flatnonzero(np.append(True, ~continues))
    lasts = np.append(firsts[1:], len(low)) - 1
    return low[firsts], high[lasts]
