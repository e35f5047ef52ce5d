"""Displacements of rows from public origins with NumPy, bit for bit as the kernels take them.

Columns come first: NumPy is quick along rows. Group -1 is none: as an index, it is the last one, so all that
is public has a group more, and what is added to it is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import LATTICE_RADIUS, FloatArray, IntArray

LARGEST_UNIT = 2.0**400  # squares stay finite


def of_groups(values: FloatArray, groups: IntArray) -> FloatArray:
    """The public value of each row's group; zero for rows in none."""
    return np.append(values, 0.0)[groups]


def add_at(state: IntArray, groups: IntArray, values: IntArray | int) -> None:
    """Add integers to the sums of groups, one for each row."""
    sums = np.zeros(len(state) + 1, dtype=np.int64)
    np.add.at(sums, groups, values)
    state += sums[:-1]


def displaced(rows: FloatArray, groups: IntArray, origins: FloatArray) -> FloatArray:
    """Displacement of each row from the origin of its group, shape (d, n)."""
    out = np.empty(rows.shape[::-1])
    for column, values, origin in zip(out, rows.T, origins.T, strict=True):
        np.subtract(values, of_groups(origin, groups), out=column)
    return out


def sums_of_squares(columns: FloatArray) -> FloatArray:
    """Squared norms, each added up from the first column to the last."""
    sums = np.zeros(columns.shape[1])
    for column in columns:
        sums += column * column
    return sums


def clipped_units(
    rows: FloatArray, groups: IntArray, origins: FloatArray, steps: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Displacements in lattice units, shrunk to one below the limit, and which were longer."""
    limit = float(LATTICE_RADIUS - 1)
    units = displaced(rows, groups, origins)
    units *= of_groups(1.0 / steps, groups)
    np.minimum(np.maximum(units, -LARGEST_UNIT, out=units), LARGEST_UNIT, out=units)
    norms = np.sqrt(sums_of_squares(units))
    units *= limit / np.maximum(norms, limit)
    return units, norms > limit
