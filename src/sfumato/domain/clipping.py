"""Kernels that clip rows to a box or a ball, find those inside, and round them to the lattice."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.few_blocks import quickest

LATTICE_RADIUS = 2**29  # a clipped coordinate is an integer in [-2^29, 2^29]
STRETCH = 256  # values that are clipped in one loop


def find_finite(rows: FloatArray, out: NDArray[np.bool_]) -> None:
    """Whether each row is finite."""
    quickest(_find_finite, _finite_with_numpy)(rows, out)


def _finite_with_numpy(rows: FloatArray, out: NDArray[np.bool_]) -> None:
    np.isfinite(rows).all(axis=1, out=out)


@numba.njit(cache=True, nogil=True)
def _find_finite(rows: FloatArray, out: NDArray[np.bool_]) -> None:
    for i in range(rows.shape[0]):
        out[i] = True
        for j in range(rows.shape[1]):
            out[i] &= math.isfinite(rows[i, j])


@numba.njit(cache=True, nogil=True)
def find_in_box(rows: FloatArray, low: FloatArray, high: FloatArray, out: NDArray[np.bool_]) -> None:
    """Whether each row is inside a box."""
    for i in range(rows.shape[0]):
        out[i] = True
        for j in range(rows.shape[1]):
            out[i] &= (rows[i, j] >= low[j]) & (rows[i, j] <= high[j])  # false for NaN


@numba.njit(cache=True, nogil=True)
def take_inside(rows: FloatArray, low: FloatArray, high: FloatArray, out: FloatArray) -> int:
    """Write the rows that `find_in_box` finds, in their order, without a branch. Returns their number."""
    n_inside = np.int64(0)
    for i in range(rows.shape[0]):
        is_inside = True
        for j in range(rows.shape[1]):
            value = rows[i, j]
            out[n_inside, j] = min(max(value, low[j]), high[j])
            is_inside &= (value >= low[j]) & (value <= high[j])  # false for NaN
        n_inside += is_inside  # else the next row takes its place
    return int(n_inside)


@numba.njit(cache=True, nogil=True)
def find_in_ball(rows: FloatArray, midpoint: FloatArray, radius: float, out: NDArray[np.bool_]) -> None:
    """Whether each row is inside a ball."""
    for i in range(rows.shape[0]):
        squares = 0.0
        for j in range(rows.shape[1]):
            squares += ((rows[i, j] - midpoint[j]) / radius) ** 2
        out[i] = squares <= 1.0  # false for NaN


def repeated(*columns: tuple[float, ...]) -> list[FloatArray]:
    """What is said of each column, for a stretch of rows: processors work on several values at once."""
    n_rows = max(1, STRETCH // len(columns[0]))
    return [np.tile(np.array(values, dtype=np.float64), n_rows) for values in columns]


def clipped_to_box(
    rows: FloatArray, low: tuple[float, ...], high: tuple[float, ...], out: FloatArray
) -> bool:
    """Clip rows to a box. Returns whether all are finite."""
    return quickest(_clip_with_kernel, _clip_with_numpy)(rows, low, high, out)


def _clip_with_kernel(
    rows: FloatArray, low: tuple[float, ...], high: tuple[float, ...], out: FloatArray
) -> bool:
    lows, highs = repeated(low, high)
    return bool(clip_to_box(rows.reshape(-1), lows, highs, out.reshape(-1)))


def _clip_with_numpy(
    rows: FloatArray, low: tuple[float, ...], high: tuple[float, ...], out: FloatArray
) -> bool:
    # As the kernel does, NaN stays NaN, and a zero keeps its sign.
    are_finite = True
    for j, (least, most) in enumerate(zip(low, high, strict=True)):
        column = rows[:, j].copy()  # read once: what is checked is what is clipped
        are_finite &= bool(np.isfinite(column).all())
        np.copyto(column, least, where=column < least)
        np.copyto(column, most, where=column > most)
        out[:, j] = column
    return are_finite


@numba.njit(cache=True, nogil=True)
def clip_to_box(values: FloatArray, low: FloatArray, high: FloatArray, out: FloatArray) -> bool:
    """Clip the values of rows, one row after the other. Returns whether all are finite."""
    are_finite = True
    for first in range(0, values.size, low.size):
        some, clipped = values[first : first + low.size], out[first : first + low.size]
        for j in range(some.size):
            are_finite &= some[j] - some[j] == 0.0  # false for NaN and infinity
            clipped[j] = min(max(some[j], low[j]), high[j])
    return are_finite


@numba.njit(cache=True, nogil=True)
def copied_inside(values: FloatArray, low: FloatArray, high: FloatArray, out: FloatArray) -> bool:
    """Copy the values of rows. Returns whether all are inside."""
    are_inside = True
    for first in range(0, values.size, low.size):
        some, copied = values[first : first + low.size], out[first : first + low.size]
        for j in range(some.size):
            are_inside &= (some[j] >= low[j]) & (some[j] <= high[j])  # false for NaN
            copied[j] = min(max(some[j], low[j]), high[j])  # as it is, but for the sign of zero
    return are_inside


@numba.njit(cache=True, nogil=True)
def clip_and_measure(
    values: FloatArray,
    low: FloatArray,
    high: FloatArray,
    origin: FloatArray,
    step: FloatArray,
    out: FloatArray,
) -> bool:
    """Clip the values of rows and measure them, as `Measure.of` does. Returns whether all are finite."""
    are_finite = True
    for first in range(0, values.size, low.size):
        some, clipped = values[first : first + low.size], out[first : first + low.size]
        for j in range(some.size):
            are_finite &= some[j] - some[j] == 0.0
            clipped[j] = (min(max(some[j], low[j]), high[j]) - origin[j]) / step[j]
    return are_finite


@numba.njit(cache=True, nogil=True)
def clip_to_ball(
    rows: FloatArray, midpoint: FloatArray, step: FloatArray, onto_sphere: bool, out: FloatArray
) -> bool:
    """Clip rows: to the points of `ball_lattice`, in one pass. Returns whether all are finite.

    With `onto_sphere`, shorter rows are lengthened to the radius, too.
    """
    limit, largest = float(LATTICE_RADIUS - 1), 2.0**400
    are_finite = True
    for i in range(rows.shape[0]):
        units = out[i]
        for j in range(rows.shape[1]):
            value = rows[i, j]
            are_finite &= value - value == 0.0  # false for NaN and infinity
            units[j] = min(max((value - midpoint[j]) / step[j], -largest), largest)
        squares = 0.0
        for j in range(rows.shape[1]):
            squares += units[j] * units[j]
        norm = math.sqrt(squares)
        shrink = limit / norm if norm > limit or (onto_sphere and norm > 0.0) else 1.0
        for j in range(rows.shape[1]):
            units[j] = midpoint[j] + np.trunc(units[j] * shrink) * step[j]
    return are_finite


@numba.njit(cache=True, nogil=True)
def box_lattice(rows: FloatArray, midpoint: FloatArray, step: FloatArray, out: IntArray) -> None:
    """Round rows to the lattice of a box."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            units = (rows[i, j] - midpoint[j]) / step[j]
            units = min(max(units, -float(LATTICE_RADIUS)), float(LATTICE_RADIUS))
            out[i, j] = np.int64(math.floor(units + 0.5))


@numba.njit(cache=True, nogil=True)
def ball_lattice(rows: FloatArray, midpoint: FloatArray, step: FloatArray, out: IntArray) -> None:
    """Round rows to the lattice of a ball."""
    limit = float(LATTICE_RADIUS - 1)
    largest = 2.0**400  # squares of clamped coordinates stay finite
    for i in range(rows.shape[0]):
        squares = 0.0
        for j in range(rows.shape[1]):
            units = min(max((rows[i, j] - midpoint[j]) / step[j], -largest), largest)
            squares += units * units
        norm = math.sqrt(squares)
        shrink = limit / norm if norm > limit else 1.0
        for j in range(rows.shape[1]):
            units = min(max((rows[i, j] - midpoint[j]) / step[j], -largest), largest)
            out[i, j] = np.int64(units * shrink)
