"""Into which bins the values of a described column are counted.

For the whole table there are many bins over the public bounds. For the clusters there are few, of about equal
numbers of rows by the released counts of the table, so that each has rows, however wide the bounds are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.columns import Described

MANY_FINE, MOST_FINE = 256, 400  # bins of the table; the second so that the days of a year have their own
OCTAVES = 10  # the first bin is halved so often: many columns have most values near their low bound
CYCLE_PARTS = 24  # bins of a cycle that has no parts of its own
FINER = 4  # times as many bins of a cycle for the table
YEAR_PARTS = 12
LARGEST_WHOLE = 2.0**40  # whole numbers beyond are as good as any others

# Tuned: docs/notes/constants.md#profiles
FEWEST_BINS, MOST_BINS = 6, 48
BINS_PER_ROW = 1.5  # factor of (rows of a cluster / noise)^(2/3)
CLEAR_BIN, CLEAR_RUN = 4.5, 3.5  # standard deviations at which neighbouring bins, or runs of bins, differ
SHORT_RUN = 4  # up to so many bins, the tails of Laplace noise matter


def table_edges(column: Described) -> FloatArray:
    """Edges of the bins of a column for the whole table. They depend on public declarations alone.

    Examples
    --------
    >>> edges = table_edges(Described("age", low=0, high=100))
    >>> edges[:3], len(edges)
    (array([-0.25,  0.25,  0.75]), 202)
    >>> table_edges(Described("ward", "level", levels=("A", "B")))  # A, B and others
    array([-0.5,  0.5,  1.5,  2.5])
    """
    if column.kind == "level":
        return np.arange(len(column.levels) + 2, dtype=np.float64) - 0.5
    if column.kind == "cycle":
        n = FINER * _n_parts(column)
        return np.asarray(np.linspace(column.low, column.high, n + 1), dtype=np.float64)
    low, high = column.low, column.high
    if low == round(low) and high == round(high) and max(abs(low), abs(high)) <= LARGEST_WHOLE:
        return _whole_edges(column, round(low), round(high))
    step = (high - low) / MANY_FINE
    octaves = low + step / 2.0 ** np.arange(OCTAVES, 0, -1)
    middle = low + step * np.arange(1, MANY_FINE)
    edges = [low, np.nextafter(low, math.inf), *octaves, *middle, high, np.nextafter(high, math.inf)]
    return np.unique(edges)  # octaves of narrow bounds may coincide


def _whole_edges(column: Described, low: int, high: int) -> FloatArray:
    """Bins around whole numbers: their parts, single numbers, or several and the two bounds alone."""
    width = high - low
    parts = 1 << max((MANY_FINE // width).bit_length() - 1, 0) if width <= MOST_FINE else 0
    # A date lasts until the next one; a number is in the middle of its bin.
    before = 0.0 if column.kind == "date" else 0.5
    if parts:
        return low + (np.arange(width * parts + 2) - before) / parts
    step = math.ceil(width / MANY_FINE)
    octaves = 2 ** np.arange(max(step - 1, 1).bit_length())
    inner = np.concatenate([octaves[octaves < step], np.arange(step, width, step)])
    return low - before + np.array([0, *inner, width, width + 1], dtype=np.float64)


def _n_parts(column: Described) -> int:
    """Bins of a cycle for the clusters: days of a week, twelfths of a year, hours, or whole numbers."""
    length = column.high - column.low
    if column.unit == "year":
        return YEAR_PARTS
    return round(length) if 3 <= length <= 31 and length == round(length) else CYCLE_PARTS


def cluster_edges(column: Described, edges: FloatArray, counts: FloatArray, n_bins: int) -> FloatArray:
    """Edges of the bins of a column for the clusters.

    Parameters
    ----------
    column : Described
    edges : float array of shape (n + 1,)
        Edges of the table's bins.
    counts : float array of shape (n,)
        Estimated rows in them, from `smoothed`.
    n_bins : int
        Desired number of bins; those of categories and cycles are given.
    """
    if column.kind == "level":
        return edges
    if column.kind == "cycle":
        return edges[::FINER]
    total = float(counts.sum())
    if total <= 0:
        return np.append(edges[: -1 : max(1, (len(edges) - 1) // n_bins)], edges[-1])
    cumulative = np.concatenate([[0.0], np.cumsum(counts)]) / total
    goals = np.arange(1, n_bins) / n_bins
    place = np.searchsorted(cumulative, goals, side="left").clip(1, len(edges) - 1)  # bin place - 1 has it
    masses = counts[place - 1] / total
    is_heavy = masses >= 1 / n_bins
    within = (goals - cumulative[place - 1]) / np.maximum(masses, 1e-300)
    nearest = np.where(within < 0.5, edges[place - 1], edges[place])
    cut = edges[place - 1] + within * (edges[place] - edges[place - 1])
    # A heavy bin may hold one value many times. Both its edges count, and if it is wide, cuts within.
    chosen = np.where(is_heavy & _is_divisible(column, edges)[place - 1], cut, nearest)
    heavy = np.unique(place[is_heavy])
    inner = np.unique(np.concatenate([chosen, edges[heavy - 1], edges[heavy]]))
    inner = inner[(inner > edges[0]) & (inner < edges[-1])]
    return np.concatenate([edges[:1], inner, edges[-1:]])


def _is_divisible(column: Described, edges: FloatArray) -> NDArray[np.bool_]:
    """Which bins may hold more than one value, as far as one can tell."""
    widths = np.diff(edges)
    if _has_whole_bins(column):
        return np.asarray(widths > 1.0)
    return np.asarray(widths > 1e-9 * (edges[-1] - edges[0]))


def _has_whole_bins(column: Described) -> bool:
    ends = (column.low, column.high)
    return all(end == round(end) and abs(end) <= LARGEST_WHOLE for end in ends)


def bins_for(n_rows: float, n_clusters: int, noise: float) -> int:
    """Number of bins for clusters of an average size: more bins tell more of the shape, but add more noise.

    The sum of half of B counts is off by noise sqrt(B / 4) rows, the place within a bin by about a part of
    1 / B of the rows. Both are equal if B^(3/2) is of the order of rows / noise.

    Examples
    --------
    >>> bins_for(40_000, 5, 50), bins_for(40_000, 5, 5000)
    (44, 6)
    """
    ratio = max(n_rows, 1.0) / max(n_clusters, 1) / max(noise, 1e-9)
    return round(min(max(BINS_PER_ROW * math.pow(ratio, 2 / 3), FEWEST_BINS), MOST_BINS))


def rows_in(noisy_counts: Sequence[IntArray]) -> float:
    """Estimated rows of a table, from the noisy counts of several columns: the fewer bins, the less noise."""
    weights = [1 / len(counts) for counts in noisy_counts]
    sums = [weight * float(counts.sum()) for weight, counts in zip(weights, noisy_counts, strict=True)]
    return max(sum(sums) / sum(weights), 0.0)


def smoothed(edges: FloatArray, noisy_counts: IntArray, std: float, total: float) -> FloatArray:
    """Estimated rows in each bin: spread evenly, except where noise cannot explain that they are not.

    What differs from an even spread is written in Haar wavelets, differences of neighbouring runs of bins.
    Only those beyond the noise are kept (Donoho and Johnstone 1994).

    Parameters
    ----------
    edges : float array of shape (n + 1,)
    noisy_counts : int array of shape (n,)
    std : float
        Standard deviation of the noise in each count.
    total : float
        Rows in all bins.

    Examples
    --------
    >>> import numpy as np
    >>> smoothed(np.arange(5.0), np.array([9, 11, 10, 500]), 2.0, 530.0).round()
    array([ 10.,  10.,  10., 500.])
    """
    n, widths = len(noisy_counts), np.diff(edges)
    even: FloatArray = total * widths / widths.sum()
    rest = np.zeros(2 ** max(n - 1, 0).bit_length())
    rest[:n] = noisy_counts - even
    details: list[FloatArray] = []
    while len(rest) > 1:
        pairs = rest.reshape(-1, 2)
        detail, rest = (pairs[:, 0] - pairs[:, 1]) / 2, pairs.sum(axis=1)
        run = 2 ** len(details)  # bins in each half, with noise std sqrt(run / 2) in half their difference
        clear = CLEAR_BIN if run <= SHORT_RUN else CLEAR_RUN
        details.append(np.where(np.abs(detail) > clear * std * math.sqrt(run / 2), detail, 0.0))
    found = np.zeros(1)
    for detail in reversed(details):
        found = np.stack([found / 2 + detail, found / 2 - detail], axis=1).ravel()
    found = np.maximum(found[:n] + even, 0.0)
    return found * (total / max(float(found.sum()), 1e-300))
