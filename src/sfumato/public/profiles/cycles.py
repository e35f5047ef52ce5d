"""Where a cyclic column gathers: its mean direction, and the shortest part that holds half of the rows."""

from __future__ import annotations

import math

import numpy as np

from sfumato.domain import FloatArray
from sfumato.domain.columns import Described
from sfumato.public.profiles.bins import FINER
from sfumato.public.profiles.estimates import Direction
from sfumato.public.profiles.quantiles import Shape
from sfumato.public.profiles.views import View

_WITHIN = 1.96  # standard deviations on either side of a 95 % interval
CLEAR = 3.0  # standard deviations from which on a direction stands out: noise does so in 1 % of all cases
FLAT = 0.15  # total variation distance from equal parts, below which a cycle is flat for a reader
BINNED = 1 / (2 * FINER)  # of a bin: how far the mean of the values in one of the table's bins may be off


def direction(view: View, shape: Shape, column: Described) -> Direction:
    """Mean direction of the rows that have a value."""
    linear, covariance = view.linear[:-1], view.covariance[:-1, :-1]
    length = column.high - column.low
    angles = 2 * math.pi * (_centroids(shape) - column.low) / length
    axes = np.stack([np.cos(angles), np.sin(angles)])  # (2, n_bins)
    vector, spread = axes @ linear, axes @ covariance @ axes.T
    radius, size = float(np.hypot(*vector)), max(float(view.counts[:-1].sum()), 1e-300)
    along = vector / max(radius, 1e-300)
    across = np.array([-along[1], along[0]])
    std = math.sqrt(max(float(across @ spread @ across), 0.0))
    is_clear = radius > CLEAR * math.sqrt(max(float(np.linalg.eigvalsh(spread)[-1]), 0.0)) and radius > 0
    at = math.atan2(vector[1], vector[0]) % (2 * math.pi)
    half = math.asin(min(_WITHIN * std / radius, 1.0)) if is_clear else math.pi
    half = min(half + BINNED * 2 * math.pi / len(linear), math.pi)
    value, reach = column.low + at / (2 * math.pi) * length, half / (2 * math.pi) * length
    strength = math.sqrt(max(radius**2 - float(np.trace(spread)), 0.0)) / size
    return Direction(
        value,
        value - reach,
        value + reach,
        min(strength, 1.0),
        shortest_half(view.counts[:-1], column),
        is_clear,
        _is_flat(view),
    )


def _centroids(shape: Shape) -> FloatArray:
    """Mean value of the table's rows in each bin."""
    middles = (shape.points[1:] + shape.points[:-1]) / 2
    found: FloatArray = np.bincount(shape.bins, middles * shape.parts).astype(np.float64)
    return found


def _is_flat(view: View) -> bool:
    """Whether the distance from equal parts is small, even with twice its noise."""
    linear, covariance = view.linear[:-1], view.covariance[:-1, :-1]
    size, n = float(linear.sum()), len(linear)
    if size <= 0:
        return False
    noise = np.sqrt(np.maximum(np.diagonal(covariance), 0.0)) / size
    distance = float(np.abs(linear / size - 1 / n).sum()) / 2
    return distance + float(np.sqrt((noise**2).sum())) < FLAT


def shortest_half(counts: FloatArray, column: Described) -> tuple[float, float]:
    """Shortest run of bins with at least half of the rows: a start within the cycle and an end after it."""
    n = len(counts)
    width = (column.high - column.low) / n
    goal = float(counts.sum()) / 2
    twice = np.concatenate([[0.0], np.cumsum(np.concatenate([counts, counts]))])
    for length in range(1, n + 1):
        sums = twice[length : length + n] - twice[:n]
        start = int(np.argmax(sums))
        if sums[start] >= goal:
            break
    low = column.low + start * width
    return low, low + length * width
