"""Quantiles of a column from counts in bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.columns import Described
from sfumato.public.profiles.bins import CLEAR_BIN, LARGEST_WHOLE, smoothed
from sfumato.public.profiles.estimates import Estimate
from sfumato.public.profiles.views import LEAST_SIZE, View

_WITHIN = 1.96  # standard deviations on either side of a 95 % interval

UNKNOWN = 0.6  # the same if nothing is known: about that of a place anywhere in the bin

# Tuned: docs/notes/constants.md#profiles
# How far a cluster's rows within a bin may lie from where the table's do: twice the standard deviation of the
# part of them in a half of the bin.
UNLIKE = 0.2
WHOLE = 0.9  # part of the rows, without the most frequent number, from which on all are taken to be whole
SPIKE = 10  # a bin with so many times the rows of those beside it is taken to hold one value


@dataclass(frozen=True, eq=False)
class Shape:
    """How the table's rows lie within the bins of the clusters.

    Parameters
    ----------
    points : float array of shape (n_pieces + 1,)
        Edges of pieces: those of the table's bins and of the clusters' bins.
    bins : int array of shape (n_pieces,)
        Bin of the clusters that a piece lies in.
    parts : float array of shape (n_pieces,)
        Estimated part of the rows of its bin, in the table.
    doubts : float array of shape (n_bins,)
        How far noise may have moved a half of a bin's rows, as a part of them: standard deviations.
    is_whole : bool
        Whether all values are whole numbers, as far as the table shows.
    at : float array of shape (n_pieces,)
        Whole number that nearly all rows of a piece have; NaN where none is known.
    """

    points: FloatArray
    bins: IntArray
    parts: FloatArray
    doubts: FloatArray
    is_whole: bool
    at: FloatArray

    @classmethod
    def of(
        cls,
        column: Described,
        fine: FloatArray,
        noisy_counts: IntArray,
        std: float,
        total: float,
        edges: FloatArray,
    ) -> Shape:
        """Shape from the released counts of the table, and its estimated rows, without missing values."""
        counts = smoothed(fine, noisy_counts, std, total)
        points = np.union1d(fine, edges)
        of_table = np.searchsorted(fine, points[:-1], side="right") - 1
        widths = np.diff(points)
        masses = counts[of_table] * widths / np.diff(fine)[of_table]
        bins = np.searchsorted(edges, points[:-1], side="right") - 1
        totals = np.bincount(bins, masses, minlength=len(edges) - 1)
        of_bin = np.bincount(bins, widths, minlength=len(edges) - 1)
        even = widths / of_bin[bins]
        parts = np.where(totals[bins] > 0, masses / np.where(totals > 0, totals, 1.0)[bins], even)
        # If a bin of m counts is known as a whole, a part u of it has noise of variance m u (1 - u) std^2.
        n_counts = np.bincount(bins, minlength=len(edges) - 1)
        doubts = np.minimum(std * np.sqrt(n_counts) / np.maximum(totals, 1e-300), UNKNOWN)
        parts += (doubts / UNKNOWN)[bins] ** 2 * (even - parts)
        numbers = _whole_numbers(column, fine)
        is_whole = _is_whole(np.isfinite(numbers), noisy_counts, std)
        at = np.where(_are_spikes(noisy_counts, std), numbers, np.nan)[of_table]
        return cls(points, bins, parts, doubts, is_whole, at)

    @cached_property
    def before(self) -> FloatArray:
        """Part of a bin's rows before the left end of each piece."""
        cumulative = np.cumsum(self.parts)
        starts = np.flatnonzero(np.append(True, self.bins[1:] != self.bins[:-1]))
        offsets = np.concatenate([[0.0], cumulative])[starts]
        found: FloatArray = np.concatenate([[0.0], cumulative[:-1]]) - np.repeat(
            offsets, np.diff(np.append(starts, len(self.bins)))
        )
        return np.clip(found, 0.0, 1.0)

    @cached_property
    def weights(self) -> FloatArray:
        """Part of each bin's rows below each point, shape (n_pieces + 1, n_bins)."""
        n_bins = int(self.bins[-1]) + 1
        below = (np.arange(n_bins) < self.bins[:, None]).astype(np.float64)
        below[np.arange(len(self.bins)), self.bins] = self.before
        return np.vstack([below, np.ones(n_bins)])


def _whole_numbers(column: Described, fine: FloatArray) -> FloatArray:
    """Whole numbers in the middle of bins; NaN elsewhere, and if no bins are between them."""
    ends = (column.low, column.high)
    none = np.full(len(fine) - 1, np.nan)
    if column.kind != "number" or any(end != round(end) or abs(end) > LARGEST_WHOLE for end in ends):
        return none
    width = float(fine[1] - fine[0])
    if width > 0.5:
        return none
    middles = fine[:-1] + width / 2
    is_at = np.arange(len(none)) % round(1 / width) == 0
    return np.where(is_at, np.round(middles), np.nan)


def _are_spikes(noisy_counts: IntArray, std: float) -> NDArray[np.bool_]:
    """Bins that stand out from the noise and from the bins beside them."""
    counts = np.pad(np.maximum(noisy_counts, 0), 1, mode="reflect")
    beside = (counts[:-2] + counts[2:]) / 2
    return np.asarray(noisy_counts > np.maximum(CLEAR_BIN * std, SPIKE * beside))


def _is_whole(at: NDArray[np.bool_], noisy_counts: IntArray, std: float) -> bool:
    """Whether values lie at whole numbers only, from the bins around them and those between them."""
    if not at.any():
        return False
    # The most frequent number, such as 0 among amounts, says nothing about the others.
    others, between = np.sort(noisy_counts[at])[:-1], noisy_counts[~at]
    rest, noise = float(others.sum() + between.sum()), std * math.sqrt(len(noisy_counts))
    if between.sum() > (1 - WHOLE) * rest + 2 * noise:
        return False
    clear, clear_between = (float(each[each > CLEAR_BIN * std].sum()) for each in (others, between))
    is_spread = rest > 4 * noise and between.sum() < rest / 4  # over bins of which none stands out
    return is_spread or clear_between < (1 - WHOLE) * (clear + clear_between)


def variances(shape: Shape, covariance: FloatArray, q: float) -> FloatArray:
    """Variance of the number of rows below each point, minus q times all rows."""
    weights = shape.weights - q
    found: FloatArray = np.maximum(((weights @ covariance) * weights).sum(axis=1), 0.0)
    return found


def quantile(
    view: View,
    shape: Shape,
    column: Described,
    q: float,
    *,
    unlike: float = UNLIKE,
    noise: FloatArray | None = None,
) -> Estimate:
    """Quantile of the rows that have a value, with its interval.

    A point v is refused as a quantile if the number of rows below it, minus q times all rows, is too far from
    0 for its noise, and for what is unknown about the rows within its bin. The interval ends at edges of
    pieces, since all rows of a piece may have the same value. `noise` are `variances`, if they are known.
    """
    linear, counts = view.linear[:-1], view.counts[:-1]
    covariance = view.covariance[:-1, :-1]
    ends = (max(float(shape.points[0]), column.low), min(float(shape.points[-1]), column.high))
    size = float(linear.sum())
    if size <= LEAST_SIZE * math.sqrt(max(float(covariance.sum()), 0.0)) or counts.sum() <= 0:
        return Estimate(_value(shape, counts, q, column), *ends)
    gaps = (shape.weights - q) @ linear
    noise = variances(shape, covariance, q) if noise is None else noise
    spread = shape.before * (1 - shape.before) * (unlike**2 + shape.doubts[shape.bins] ** 2)
    within = np.append(spread * counts[shape.bins] ** 2, 0.0)
    stds = np.sqrt(noise + within)
    is_reached = gaps[1:] + _WITHIN * stds[1:] >= 0
    is_open = gaps[:-1] - _WITHIN * stds[:-1] <= 0
    first = int(np.argmax(is_reached)) if is_reached.any() else len(is_reached) - 1
    last = len(is_open) - 1 - int(np.argmax(is_open[::-1])) if is_open.any() else 0
    low, high = float(shape.points[min(first, last)]), float(shape.points[max(first, last) + 1])
    if shape.is_whole:
        low, high = math.ceil(low), math.floor(high)
    value = _value(shape, counts, q, column)
    low, high = max(low, ends[0]), min(high, ends[1])
    return Estimate(value, min(low, value), max(high, value))


def _value(shape: Shape, counts: FloatArray, q: float, column: Described) -> float:
    """Quantile of the estimated counts; without any, the middle of the column."""
    total = float(counts.sum())
    if total <= 0:
        return (column.low + column.high) / 2
    masses = shape.parts * counts[shape.bins]
    cumulative = np.cumsum(masses)
    piece = min(int(np.searchsorted(cumulative, q * total, side="left")), len(masses) - 1)
    while masses[piece] <= 0 and piece > 0:
        piece -= 1
    left, right = float(shape.points[piece]), float(shape.points[piece + 1])
    within = (q * total - float(cumulative[piece] - masses[piece])) / max(float(masses[piece]), 1e-300)
    value = left + min(max(within, 0.0), 1.0) * (right - left)
    if shape.is_whole:
        value = float(round((left + right) / 2)) if right - left <= 1 else float(round(value))
    elif math.isfinite(shape.at[piece]):
        value = float(shape.at[piece])
    return min(max(value, column.low), column.high)
