"""The active columns of sparse rows, cut and scaled: each row by itself.

Proof: docs/proofs/sparse.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.sparse import Sparse, hashed
from sfumato.errors import DataError

CHUNK_VALUES = 2**20  # coordinates that are held at a time by each thread


class Entries(NamedTuple):
    """Entries of sparse rows as they are stored: row i has those from starts[i] up to stops[i]."""

    starts: IntArray  # (n,)
    stops: IntArray  # (n,)
    columns: IntArray  # int64
    values: FloatArray | None  # float64; None if all are 1
    is_known: NDArray[np.bool_]  # (n,); False for rows whose lists are missing or do not match

    def chunks(self, n_rows: int) -> Iterator[Entries]:
        """The same rows, a few at a time."""
        for first in range(0, len(self.starts), n_rows):
            own = slice(first, first + n_rows)
            yield Entries(self.starts[own], self.stops[own], self.columns, self.values, self.is_known[own])


def rows_at_a_time(sparse: Sparse, n_chunks: int = 1) -> int:
    """Number of rows whose coordinates are held at a time, in one or more chunks."""
    return max(1, n_chunks * CHUNK_VALUES // (int(sparse.n_components) + 2 * sparse.n_kept))


def cut_rows(sparse: Sparse, entries: Entries) -> FloatArray:
    """Active columns and values of each row, cut to the declared number and scaled.

    Values of the same column are added up, in the order in which they are stored. Zeros are not active. A row
    with a column out of range, or with a value that is missing or infinite, is incomplete: its values are
    NaN.

    Returns
    -------
    float array of shape (n, 2 * n_kept)
        See `Sparse.coordinates`.
    """
    n_kept = sparse.n_kept
    assert sparse.n_columns is not None
    out = np.zeros((len(entries.starts), 2 * n_kept))
    out[:, :n_kept] = -1.0
    values = np.ones(1) if entries.values is None else entries.values
    norm = 0.0 if sparse.norm == "unit" else float(sparse.norm)
    _cut(
        entries.starts,
        entries.stops,
        entries.columns,
        values,
        entries.values is None,
        entries.is_known,
        sparse.n_columns,
        int(sparse.seed),
        norm,
        out,
    )
    return out


def complete_active(
    sparse: Sparse, active: FloatArray, missing: Literal["error", "drop"]
) -> NDArray[np.bool_]:
    """Mask of the complete rows. With missing="error" all must be."""
    complete: NDArray[np.bool_] = np.isfinite(active[:, sparse.n_kept])
    if missing == "error" and not complete.all():
        assert sparse.n_columns is not None
        raise DataError(
            f"`X` must have columns from 0 to {sparse.n_columns - 1} and finite values in every row, got "
            "others, or missing ones. Drop or fill them, or drop these rows with missing='drop'"
        )
    return complete


@numba.njit(cache=True, nogil=True)
def _cut(
    starts: IntArray,
    stops: IntArray,
    columns: IntArray,
    values: FloatArray,
    all_ones: bool,
    is_known: NDArray[np.bool_],
    n_columns: int,
    seed: int,
    norm: float,
    out: FloatArray,
) -> None:
    n_kept = out.shape[1] // 2
    for i in range(out.shape[0]):
        n = max(stops[i] - starts[i], 0)
        own = columns[starts[i] : starts[i] + n]
        amounts = np.ones(n) if all_ones else values[starts[i] : starts[i] + n]
        is_valid, increases = is_known[i], True
        for a in range(n):
            is_valid &= 0 <= own[a] < n_columns and math.isfinite(amounts[a])
            increases &= a == 0 or own[a] > own[a - 1]
        if is_valid and not increases:
            own, amounts = _added_up(own, amounts)
            for a in range(len(own)):
                is_valid &= math.isfinite(amounts[a])
        if not is_valid:
            out[i, n_kept:] = np.nan
            continue
        _keep_largest(own, amounts, seed, n_kept, out[i])
        _scale(norm, n_kept, out[i])


@numba.njit(cache=True, nogil=True)
def _added_up(columns: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Columns in order, each once, with the sums of their values."""
    order = np.argsort(columns, kind="mergesort")  # stable: sums do not depend on other columns
    distinct, sums = np.empty(len(columns), dtype=np.int64), np.zeros(len(columns))
    n = 0
    for place in order:
        if n == 0 or distinct[n - 1] != columns[place]:
            distinct[n] = columns[place]
            n += 1
        sums[n - 1] += values[place]
    return distinct[:n], sums[:n]


@numba.njit(cache=True, nogil=True)
def _keep_largest(columns: IntArray, values: FloatArray, seed: int, n_kept: int, out: FloatArray) -> None:
    """Copy the `n_kept` entries of largest size, in the order of the columns. Ties go by a public hash."""
    n_active = 0
    for a in range(len(values)):
        n_active += values[a] != 0.0
    least, latest = 0.0, ~np.uint64(0)
    if n_active > n_kept:
        sizes = np.sort(np.abs(values))
        least = sizes[len(sizes) - n_kept]
        n_larger = 0
        keys = np.empty(len(values), dtype=np.uint64)
        n_tied = 0
        for a in range(len(values)):
            n_larger += abs(values[a]) > least
            if abs(values[a]) == least:
                keys[n_tied] = hashed(columns[a], seed + 1)
                n_tied += 1
        latest = np.sort(keys[:n_tied])[n_kept - n_larger - 1]
    n = 0
    for a in range(len(values)):
        size = abs(values[a])
        if size > 0.0 and (size > least or (size == least and hashed(columns[a], seed + 1) <= latest)):
            out[n] = float(columns[a])
            out[n_kept + n] = values[a]
            n += 1


@numba.njit(cache=True, nogil=True)
def _scale(norm: float, n_kept: int, out: FloatArray) -> None:
    """Scale a row to length 1 or, if a norm is given, shorten it to that."""
    largest = 0.0
    for a in range(n_kept):
        largest = max(largest, abs(out[n_kept + a]))
    if largest == 0.0:
        return
    squares = 0.0
    for a in range(n_kept):
        squares += (out[n_kept + a] / largest) ** 2  # between 1 and the number of entries
    length = math.sqrt(squares)
    if norm == 0.0:
        for a in range(n_kept):
            out[n_kept + a] = out[n_kept + a] / largest / length
    elif largest * length > norm:
        for a in range(n_kept):
            out[n_kept + a] = out[n_kept + a] / largest * (norm / length)
