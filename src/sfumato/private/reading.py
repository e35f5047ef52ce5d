"""Turn a row into coordinates and a person, using only its own values and public declarations."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.domain import FloatArray
from sfumato.domain.columns import TICKS_PER_DAY, Columns, Coordinate, Missing
from sfumato.errors import DataError

Batch: TypeAlias = pa.RecordBatch | pa.Table
Mask = NDArray[np.bool_]

DROP = "Drop or fill them, or drop these rows with missing='drop'"


def read_rows(columns: Columns, batch: Batch) -> FloatArray:
    """Rows of a batch as coordinates."""
    rows, complete = _read(columns, batch)
    return rows if complete is None else rows[complete]


def read_people(columns: Columns, batch: Batch) -> tuple[pa.Array, FloatArray]:
    """The person and the coordinates of each row. A row without a person has a missing value."""
    ids = batch.column(columns.unit)
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    rows, complete = _read(columns, batch)
    known = ~pc.is_null(ids, nan_is_null=True).to_numpy(zero_copy_only=False)
    if complete is None and known.all():
        return ids, rows
    if columns.missing == "error" and not known.all():
        raise DataError(f"column {columns.unit!r} must name a person in every row, got none. {DROP}")
    complete = known if complete is None else known & complete
    return ids.filter(pa.array(complete)), rows[complete]


def complete_rows(rows: NDArray[Any], missing: Missing) -> Mask | None:
    """Mask of the finite rows, or None if all are finite. With missing="error" all must be."""
    with np.errstate(all="ignore"):
        if rows.dtype.kind != "f" or np.isfinite(rows.sum(dtype=np.float64)):  # one pass, and no mask
            return None
    complete: Mask = np.isfinite(rows).all(axis=1)
    if missing == "error" and not complete.all():
        raise DataError(f"the table must contain finite values only, got missing or infinite ones. {DROP}")
    return complete


def read_values(coordinate: Coordinate, values: pa.Array) -> FloatArray:
    """Coordinates from a column's values, with NaN where one is missing."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        numbers = _READERS[coordinate.kind](values, coordinate.level)
    except (pa.ArrowException, ValueError, TypeError):  # Arrow quotes values in its messages
        numbers = None
    if numbers is None:
        wanted = f"column {coordinate.column!r} must hold {_WANTED[coordinate.kind]}"
        raise DataError(f"{wanted}, got {values.type}. {_HINTS[coordinate.kind]}")
    out: FloatArray = numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return out


def _read(columns: Columns, batch: Batch) -> tuple[FloatArray, Mask | None]:
    rows = np.empty((batch.num_rows, len(columns.coordinates)))
    for j, coordinate in enumerate(columns.coordinates):
        column = batch.column(coordinate.column)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        first = 0
        for chunk in chunks:
            rows[first : first + len(chunk), j] = read_values(coordinate, chunk)
            first += len(chunk)
    return rows, complete_rows(rows, columns.missing)


def _read_number(values: pa.Array, _: object) -> pa.Array | None:
    kind = values.type
    known = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if pa.types.is_null(kind) or pa.types.is_decimal(kind) or known:
        return values.cast(pa.float64(), safe=False)
    return None


def _read_date(values: pa.Array, _: object) -> pa.Array | None:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    if pa.types.is_date64(values.type):
        values = values.cast(pa.timestamp("ms"))
    if not pa.types.is_timestamp(values.type):
        return None
    ticks = values.cast(pa.int64()).cast(pa.float64(), safe=False)
    return pc.divide(ticks, float(TICKS_PER_DAY[values.type.unit]))


def _read_level(values: pa.Array, level: object) -> pa.Array | None:
    return pc.equal(values, pa.scalar(level).cast(values.type))


_READERS = {"number": _read_number, "date": _read_date, "level": _read_level}
_WANTED = {"number": "numbers or booleans", "date": "dates or times", "level": "values like its levels"}
_HINTS = {
    "number": "Choose columns by name: bounds={'age': (0, 120), 'day': (date, date), 'kind': ['a', 'b']}",
    "date": "Give its bounds as numbers",
    "level": "Give levels of the same type as the column",
}
