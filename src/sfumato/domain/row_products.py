"""Products of rows with public numbers, near the speed of BLAS.

The products of a row are added in the order of its columns, whichever rows stand beside it. Several rows and
columns at a time save loads and stores, and change no sum.
"""

from __future__ import annotations

import numba
import numpy as np

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.few_blocks import quickest

ROWS = 2**12  # that NumPy takes at a time: their scores stay in the processor's cache
MANY_CENTERS = 16  # from which on four rows at a time are faster than one: measured in 1 to 768 columns


def fill_nearest(
    rows: FloatArray, origin: FloatArray, columns: FloatArray, half_squares: FloatArray, out: IntArray
) -> None:
    """Fill `out` with the centre of largest x.c - c.c/2. The innermost loop vectorises over centres.

    Both kernels add the products of a row in the same order, so their results are the same.
    """
    kernel = _fill_nearest_of_few if columns.shape[1] < MANY_CENTERS else _fill_nearest_of_many
    kernel(rows, origin, columns, half_squares, out)


def nearest_with_numpy(
    rows: FloatArray, origin: FloatArray, columns: FloatArray, half_squares: FloatArray, out: IntArray
) -> None:
    """Fill `out` as the kernels do: products of four columns are added up before the scores."""
    n_features = len(columns)
    whole = n_features - n_features % 4
    firsts = [*range(0, whole, 4), *range(whole, n_features)]
    for start in range(0, len(rows), ROWS):
        gaps, best = np.ascontiguousarray((rows[start : start + ROWS] - origin).T), out[start : start + ROWS]
        scores = np.repeat(-half_squares[:, None], len(best), axis=1)  # (n_centers, n)
        for first, end in zip(firsts, [*firsts[1:], n_features], strict=True):
            product = columns[first, :, None] * gaps[first]
            for j in range(first + 1, end):
                product += columns[j, :, None] * gaps[j]
            scores += product
        highest, is_before = scores.max(axis=0), np.ones(len(best), dtype=np.bool_)
        best[:] = 0  # and one more for each centre before the first with the highest score
        for of_center in scores[:-1]:
            is_before &= of_center < highest
            best += is_before


@numba.njit(cache=True, nogil=True)
def _fill_nearest_of_few(
    rows: FloatArray, origin: FloatArray, columns: FloatArray, half_squares: FloatArray, out: IntArray
) -> None:
    n_features, n_centers = columns.shape
    whole = n_features - n_features % 4  # four columns at a time: fewer loads and stores of the scores
    scores = np.empty(n_centers)
    for i in range(rows.shape[0]):
        for c in range(n_centers):
            scores[c] = -half_squares[c]
        for j in range(0, whole, 4):
            p, q = rows[i, j] - origin[j], rows[i, j + 1] - origin[j + 1]
            r, s = rows[i, j + 2] - origin[j + 2], rows[i, j + 3] - origin[j + 3]
            for c in range(n_centers):
                scores[c] += (
                    p * columns[j, c] + q * columns[j + 1, c] + r * columns[j + 2, c] + s * columns[j + 3, c]
                )
        for j in range(whole, n_features):
            value = rows[i, j] - origin[j]
            for c in range(n_centers):
                scores[c] += value * columns[j, c]
        best, highest = 0, scores[0]
        for c in range(1, n_centers):
            if scores[c] > highest:
                best, highest = c, scores[c]
        out[i] = best


@numba.njit(cache=True, nogil=True)
def _fill_nearest_of_many(
    rows: FloatArray, origin: FloatArray, columns: FloatArray, half_squares: FloatArray, out: IntArray
) -> None:
    """Four rows at a time share what is loaded of the centres."""
    n_features, n_centers = columns.shape
    scores, padded = np.empty((4, n_centers)), np.zeros((4, n_features))
    for start in range(0, rows.shape[0], 4):
        four, n_rows = rows[start : start + 4], min(4, rows.shape[0] - start)
        if n_rows < 4:
            for r in range(n_rows):  # assigning a slice would take seconds to compile
                for j in range(n_features):
                    padded[r, j] = four[r, j]
            four = padded
        for r in range(4):
            for c in range(n_centers):
                scores[r, c] = -half_squares[c]
        _add_scores(four, origin, columns, scores)
        for r in range(n_rows):
            best, highest = 0, scores[r, 0]
            for c in range(1, n_centers):
                if scores[r, c] > highest:
                    best, highest = c, scores[r, c]
            out[start + r] = best


@numba.njit(cache=True, nogil=True)
def _add_scores(rows: FloatArray, origin: FloatArray, columns: FloatArray, scores: FloatArray) -> None:
    """Add the products of four rows with all centres, four columns at a time: few loads and stores."""
    n_features, n_centers = columns.shape
    whole = n_features - n_features % 4
    first, second, third, fourth = scores[0], scores[1], scores[2], scores[3]
    for j in range(0, whole, 4):
        a, b, c, d = _four_gaps(rows, origin, j)
        e, f, g, h = _four_gaps(rows, origin, j + 1)
        p, q, r, s = _four_gaps(rows, origin, j + 2)
        t, u, v, w = _four_gaps(rows, origin, j + 3)
        for i in range(n_centers):
            x, y, z, o = columns[j, i], columns[j + 1, i], columns[j + 2, i], columns[j + 3, i]
            first[i] += a * x + e * y + p * z + t * o
            second[i] += b * x + f * y + q * z + u * o
            third[i] += c * x + g * y + r * z + v * o
            fourth[i] += d * x + h * y + s * z + w * o
    for j in range(whole, n_features):
        a, b, c, d = _four_gaps(rows, origin, j)
        for i in range(n_centers):
            x = columns[j, i]
            first[i] += a * x
            second[i] += b * x
            third[i] += c * x
            fourth[i] += d * x


@numba.njit(cache=True, nogil=True, inline="always")
def _four_gaps(rows: FloatArray, origin: FloatArray, j: int) -> tuple[float, float, float, float]:
    middle = origin[j]
    return rows[0, j] - middle, rows[1, j] - middle, rows[2, j] - middle, rows[3, j] - middle


def project(rows: FloatArray, projection: FloatArray) -> FloatArray:
    """Multiply each row by a public matrix. Rounding does not depend on a row's place in the table."""
    out = np.zeros((len(rows), len(projection)))
    quickest(_fill_projected, _projected_with_numpy)(rows, np.ascontiguousarray(projection.T), out)
    return out


@numba.njit(cache=True, nogil=True)
def _fill_projected(rows: FloatArray, columns: FloatArray, out: FloatArray) -> None:
    """Add the products of each row in the order of its columns: two rows and four columns at a time."""
    n_features, n_columns = columns.shape
    whole, last = n_features - n_features % 4, rows.shape[0] - 1
    spare = np.zeros(n_columns)
    for i in range(0, rows.shape[0], 2):
        row, sums = rows[i], out[i]
        other, others = (rows[i + 1], out[i + 1]) if i < last else (row, spare)
        for j in range(0, whole, 4):
            p, q, r, s = row[j], row[j + 1], row[j + 2], row[j + 3]
            t, u, v, w = other[j], other[j + 1], other[j + 2], other[j + 3]
            for c in range(n_columns):
                a, b, d, e = columns[j, c], columns[j + 1, c], columns[j + 2, c], columns[j + 3, c]
                sums[c] = (((sums[c] + p * a) + q * b) + r * d) + s * e
                others[c] = (((others[c] + t * a) + u * b) + v * d) + w * e
        for j in range(whole, n_features):
            for c in range(n_columns):
                sums[c] += row[j] * columns[j, c]
                others[c] += other[j] * columns[j, c]


def _projected_with_numpy(rows: FloatArray, columns: FloatArray, out: FloatArray) -> None:
    for j, column in enumerate(columns):
        out += rows[:, j, None] * column
