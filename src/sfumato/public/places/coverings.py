"""A few of many public points, chosen so that every point is near one of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray


class Covering(NamedTuple):
    """Representatives of points."""

    indices: IntArray  # (n_representatives,); points that represent others, increasing
    labels: IntArray  # (n,); position in `indices` of the representative of each point


def cover(points: FloatArray, diameter: float) -> Covering:
    """Split points by a k-d tree until no cell is wider than a diameter.

    While the diagonal of the box around a cell's points exceeds the diameter, the box is cut in the middle of
    its widest side. The point nearest to the mean of a cell represents it (Bentley and Friedman 1979).

    Parameters
    ----------
    points : float array of shape (n, d)
        With at least one row.
    diameter : float
        At least 0. At 0, only equal points share a representative.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [0.1, 0.0], [0.2, 0.0], [5.0, 5.0], [5.0, 5.0]])
    >>> covering = cover(points, 0.5)
    >>> covering.indices.tolist(), covering.labels.tolist()
    ([1, 3], [0, 0, 0, 1, 1])
    """
    owners = np.empty(len(points), dtype=np.int64)
    cells = [np.arange(len(points))]
    while cells:
        cell = cells.pop()
        inside = points[cell]
        low, high = inside.min(axis=0), inside.max(axis=0)
        if np.linalg.norm(high - low) <= diameter:
            squares = ((inside - inside.mean(axis=0)) ** 2).sum(axis=1)
            owners[cell] = cell[np.argmin(squares)]
            continue
        column = int(np.argmax(high - low))
        middle = low[column] / 2 + high[column] / 2
        left = inside[:, column] < high[column] if middle >= high[column] else inside[:, column] <= middle
        cells += [cell[left], cell[~left]]
    return Covering(*np.unique(owners, return_inverse=True))
