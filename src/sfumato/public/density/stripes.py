"""Whether a released histogram shows that a column holds whole numbers only, in cells narrower than these.

Then cells that hold a whole number are full and those between them empty, and a density sees stripes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.public.density.nested import NestedHistogram

# Chosen on bank marketing and drawn columns, whole and continuous: docs/notes/constants.md#doubts
WIDEST = 3.0  # numbers in a cell from which on stripes are faint
WINDOW = 8.0  # numbers over which a density is taken as even
CLEAR = 4.0  # standard errors from which on a mean or a difference is no accident
LEAST_CELLS = 10  # that hold more whole numbers than others, and that hold fewer
STRIPED = 0.2  # of what whole numbers alone show in the narrowest cells; values anywhere show next to 0


def is_striped(histogram: NestedHistogram, column: int) -> bool:
    """Whether rows stand where whole numbers are, along one column of a histogram.

    Parameters
    ----------
    histogram : NestedHistogram
    column : int

    Notes
    -----
    Let a cell of width w hold k whole numbers. If values lie anywhere, k says nothing about its rows. If
    they are whole, there are k / w times as many as elsewhere. So cells of larger and smaller k are compared.

    Privacy
    -------
    Post-processing: released values and public parameters only.
    """
    edges = histogram.grid.edges()[column]
    width = float(edges[1] - edges[0])
    n_window = 2 * round(WINDOW / width / 2) + 1
    if width >= WIDEST or len(edges) <= n_window:
        return False
    nested = histogram.nested
    shape = tuple(side if j == column else 1 for j, side in enumerate(nested.fine.shape))
    slices = np.broadcast_to(np.arange(len(edges) - 1).reshape(shape), nested.fine.shape).ravel()
    density, noises = (each / nested.volumes for each in (histogram.estimates, histogram.variances))
    rows, noise = (np.bincount(slices, each[nested.leaves]) for each in (density, noises))
    even = np.convolve(rows, np.full(n_window, 1 / n_window), "same")
    clear = even * math.sqrt(n_window) > CLEAR * np.sqrt(noise)
    in_cells = (np.ceil(edges[1:]) - np.ceil(edges[:-1])) / width - 1
    in_leaves = np.bincount(nested.leaves, in_cells[slices]) / nested.volumes
    weights = np.maximum(density, 0.0) + 1e-300
    of_slices = np.bincount(slices, weights[nested.leaves])
    excess = np.bincount(slices, (weights * in_leaves)[nested.leaves]) / of_slices
    more, fewer = clear & (in_cells > 0), clear & (np.maximum(in_cells, excess) < 0)
    if min(more.sum(), fewer.sum()) < LEAST_CELLS:
        return False
    # Medians, so that a few frequent values do not decide.
    (high, high_error), (low, low_error) = (_median(rows[each] / even[each]) for each in (more, fewer))
    expected = excess[more].mean() - excess[fewer].mean()
    return bool(high - low > max(STRIPED * expected, CLEAR * math.hypot(high_error, low_error)))


def _median(values: NDArray[Any]) -> tuple[float, float]:
    """Median and its standard error, as if the middle half of the values were normal."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(middle), float(0.93 * (high - low) / math.sqrt(len(values)))
