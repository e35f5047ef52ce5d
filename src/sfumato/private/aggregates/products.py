"""Products of all pairs of columns, summed over rows by matrix products that are exact.

A matrix product of floats may round differently wherever a row stands. Here all factors are integers, and so
small that every sum of their products is an integer below 2^53. Floats hold such numbers exactly, in whatever
order they are added.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.private.aggregates.blas_threads import one_blas_thread

COARSE_RADIUS = 2**13
# Weights of squares and of products of two columns. The norm of a row's products is largest where it has only
# one column: 8 times the squared radius, 2^29. Of a product there is one entry, of which a matrix has two, so
# that its weight may be sqrt(2) times as large.
SQUARE_WEIGHT, PRODUCT_WEIGHT = 8, 11
ROWS_AT_A_TIME = 2**10  # at most 2^24: each row adds at most 2^26 to a sum that must stay below 2^53
PANEL = 128  # columns: products below the diagonal are left out, panel by panel


def add_products(
    state: IntArray, rows: FloatArray, groups: IntArray, origin: FloatArray, radius: float
) -> None:
    """Add the squares u_i^2, and 11 / 8 times the products u_i u_j with i < j, in units of 2^-29.

    u are displacements in units of the radius, clipped to 1 and rounded to 2^-13. Rows of group -1 are left
    out.
    """
    with one_blas_thread():
        for start in range(0, len(rows), ROWS_AT_A_TIME):
            part, labels = rows[start : start + ROWS_AT_A_TIME], groups[start : start + ROWS_AT_A_TIME]
            units = np.zeros(part.shape)
            _fill_coarse(part, labels, origin, radius / COARSE_RADIUS, units)
            for first in range(0, rows.shape[1], PANEL):
                products = units[:, first : first + PANEL].T @ units[:, first:]
                _add_upper(products, first, state)


@numba.njit(cache=True, nogil=True)
def _fill_coarse(
    rows: FloatArray, groups: IntArray, origin: FloatArray, step: float, units: FloatArray
) -> None:
    # Rounding to the nearest moves a row by at most sqrt(d) / 2 units. It is shrunk by as much before, and by
    # one unit more, which covers the rounding of the norm.
    d = rows.shape[1]
    limit, largest = float(COARSE_RADIUS - 1 - math.ceil(math.sqrt(d) / 2.0)), 2.0**400
    inverse = 1.0 / step
    for i in range(rows.shape[0]):
        if groups[i] < 0:
            continue
        line = units[i]
        for j in range(d):
            line[j] = min(max((rows[i, j] - origin[j]) * inverse, -largest), largest)
        squares = 0.0
        for j in range(d):
            squares += line[j] * line[j]
        norm = math.sqrt(squares)
        shrink = limit / norm if norm > limit else 1.0
        for j in range(d):
            line[j] = np.rint(line[j] * shrink)


@numba.njit(cache=True, nogil=True)
def _add_upper(products: FloatArray, first: int, state: IntArray) -> None:
    """Add what is on and above the diagonal, from row `first` of the triangle on."""
    d = first + products.shape[1]
    for i in range(products.shape[0]):
        place = (first + i) * d - (first + i) * (first + i - 1) // 2
        state[place] += SQUARE_WEIGHT * np.int64(products[i, i])
        for j in range(i + 1, products.shape[1]):
            state[place + j - i] += PRODUCT_WEIGHT * np.int64(products[i, j])
