"""Turn a row into coordinates and a person, using only its own values and public declarations.

Proof: docs/proofs/reading.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.domain import FloatArray
from sfumato.domain.columns import TICKS_PER_DAY, Columns, Coordinate, Kind, Level
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError
from sfumato.private.parsing import parse_booleans, parse_dates, parse_numbers

Batch: TypeAlias = pa.RecordBatch | pa.Table
Mask = NDArray[np.bool_]

DROP = "Drop or fill them, or drop these rows with missing='drop'"


def read_rows(columns: Columns, batch: Batch) -> FloatArray:
    """Complete rows of a batch as coordinates."""
    rows = read_coordinates(columns, batch)
    complete = complete_rows(rows[:, : len(columns.coordinates)], columns.missing)
    return rows if complete is None else rows[complete]


def read_people(columns: Columns, batch: Batch) -> tuple[pa.Array, FloatArray]:
    """The person and the coordinates of each complete row."""
    assert columns.unit is not None
    ids = read_names(columns.unit, column_of(batch, columns.unit), columns.text)
    rows = read_coordinates(columns, batch)
    complete = complete_rows(rows[:, : len(columns.coordinates)], columns.missing)
    known = _is_known(ids).to_numpy(zero_copy_only=False)
    if complete is None and known.all():
        return ids, rows
    if columns.missing == "error" and not known.all():
        raise DataError(f"column {columns.unit!r} must name a person in every row, got none. {DROP}")
    complete = known if complete is None else known & complete
    return ids.filter(pa.array(complete)), rows[complete]


def _is_known(ids: pa.Array) -> pa.BooleanArray:
    """Whether each row names a person. Old versions of PyArrow do not see a null that a dictionary lists."""
    if not pa.types.is_dictionary(ids.type):
        return ids.is_valid()
    return ids.dictionary.is_valid().take(ids.indices).fill_null(False)


def read_coordinates(columns: Columns, batch: Batch) -> FloatArray:
    """Coordinates of all rows, with NaN or infinity where a row is incomplete, and described values."""
    coordinates = (*columns.coordinates, *columns.described)
    rows = np.empty((batch.num_rows, len(coordinates)))
    levels = _levels(coordinates)
    found = {name: column_of(batch, name) for name in columns.source_names}
    found |= {name: _encoded(found[name]) for name in levels}
    rest = np.ones(len(rows))  # 1 where no level of the category that is being read was found yet
    for j, coordinate in enumerate(coordinates):
        own = levels.get(coordinate.column, ())
        rows[:, j] = read_values(coordinate, found[coordinate.column], columns.text, own)
        if coordinate.kind in ("level", "other"):  # a row has one level, even if a text is spelled like two
            rows[:, j] *= rest
            rest = rest - rows[:, j] if coordinate.kind == "level" else np.ones(len(rows))
    return rows


def complete_rows(rows: NDArray[Any], missing: Literal["error", "drop"], name: str = "X") -> Mask | None:
    """Mask of the finite rows, or None if all are finite. With missing="error" all must be."""
    with np.errstate(all="ignore"):
        if rows.dtype.kind != "f" or np.isfinite(rows.sum(dtype=np.float64)):  # one pass, and no mask
            return None
    complete: Mask = np.isfinite(rows).all(axis=1)
    if missing == "error" and not complete.all():
        raise DataError(f"`{name}` must have finite values only, got missing or infinite ones. {DROP}")
    return complete


def read_values(
    coordinate: Coordinate, values: pa.Array, text: TextFormat, levels: tuple[Level, ...] = ()
) -> FloatArray:
    """Coordinates from a column's values, with NaN where one is missing and nothing stands in for it.

    Parameters
    ----------
    coordinate : Coordinate
    values : Arrow array
    text : TextFormat
    levels : tuple
        All levels of the column: as text they are values, even if they are spelled like missing ones.
    """
    if pa.types.is_dictionary(values.type):
        known = np.append(
            read_values(coordinate, values.dictionary, text, levels),
            np.nan if coordinate.fill is None else coordinate.fill,
        )
        indices = values.indices.cast(pa.int64()).fill_null(len(known) - 1)
        out: FloatArray = known[indices.to_numpy()]
        return out
    if coordinate.kind in ("rank", "code"):
        numbers = _places(coordinate, values, text)
    elif coordinate.kind == "cycle":
        kind: Kind = "date" if coordinate.is_time else "number"
        numbers = _on_cycle(coordinate, read_values(Coordinate(coordinate.column, kind), values, text))
    elif is_text(values.type):
        values = _without_missing(values, _missing_values(coordinate.kind, text, levels))
        numbers = _TEXT_READERS[coordinate.kind](values, text, coordinate.level)
    else:
        numbers = _typed(coordinate, values)
    if coordinate.fill is not None:
        numbers = np.where(np.isfinite(numbers), numbers, coordinate.fill)
    return numbers


def _places(coordinate: Coordinate, values: pa.Array, text: TextFormat) -> FloatArray:
    """Place of each value among the levels. Another value has none, or as a code the place after the last."""
    known = read_values(Coordinate(coordinate.column, "other"), values, text, coordinate.levels)  # NaN if not
    numbers = known * (len(coordinate.levels) if coordinate.kind == "code" else np.nan)
    for place, level in enumerate(coordinate.levels):
        of_level = Coordinate(coordinate.column, "level", level)
        numbers[read_values(of_level, values, text, coordinate.levels) == 1] = place
    return numbers


def _on_cycle(coordinate: Coordinate, numbers: FloatArray) -> FloatArray:
    """Cosine or sine of the place on a cycle, or without a part the place itself."""
    start, length = coordinate.period
    out = np.empty_like(numbers)
    _turn(numbers, start, length, {"cos": 0, "sin": 1, "": 2}[coordinate.part], out)
    return out


@numba.njit(cache=True, nogil=True)
def _turn(numbers: FloatArray, start: float, length: float, part: int, out: FloatArray) -> None:
    # One value at a time: a vectorised cosine may round a value differently at another place of the table.
    for i in range(len(numbers)):
        turns = (numbers[i] - start) / length
        turns -= np.floor(turns)
        if part == 2:
            out[i] = start + length * turns
        elif part == 0:
            out[i] = math.cos(2 * math.pi * turns)
        else:
            out[i] = math.sin(2 * math.pi * turns)


def read_names(unit: str, values: pa.Array, text: TextFormat) -> pa.Array:
    """Names of people: text, or integers. Null where one is missing."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_null(kind):
        return values.cast(pa.large_string())
    if is_text(kind):
        return _without_missing(values, text.missing_values)
    if pa.types.is_integer(kind):
        return values
    raise DataError(
        f"column {unit!r} must hold text or integers to name people, got {kind}: numbers of other types have "
        "several spellings. Read it as text, for example pd.read_csv(file, dtype={'id': str})"
    )


def read_texts(name: str, values: pa.Array, text: TextFormat) -> pa.Array:
    """Values as text (large_string), each for itself. Null where one is missing."""
    values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    kind = values.type
    if not (
        is_text(kind) or pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    ):
        raise DataError(
            f"column {name!r} must hold text, integers or booleans if its levels are private, got {kind}. "
            "Give numbers and dates bounds=(low, high)"
        )
    return read_names(name, values.cast(pa.large_string()), text)


def check_schema(columns: Columns, schema: pa.Schema) -> None:
    """Raise if the schema shows a column of another type than declared. Reads no row."""
    for coordinate in (*columns.coordinates, *columns.described):
        kind = schema.field(coordinate.column).type
        if coordinate.kind == "number" and is_text(kind):
            raise _refusal(coordinate, kind)
        if coordinate.is_open:
            read_texts(coordinate.column, pa.nulls(0, kind), columns.text)
        read_values(coordinate, pa.nulls(0, kind), columns.text)
    if columns.unit is not None:
        read_names(columns.unit, pa.nulls(0, schema.field(columns.unit).type), columns.text)


def column_of(batch: Batch, name: str) -> pa.Array:
    """A column of a batch, in one piece."""
    column = batch.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _levels(coordinates: tuple[Coordinate, ...]) -> dict[str, tuple[Level, ...]]:
    """Levels of the columns that have some."""
    found: dict[str, tuple[Level, ...]] = {}
    for coordinate in coordinates:
        own = coordinate.levels if coordinate.level is None else (coordinate.level,)
        if own:
            found[coordinate.column] = (*found.get(coordinate.column, ()), *own)
    return found


def is_text(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are text."""
    return kind in (pa.string(), pa.large_string())


def _encoded(values: pa.Array) -> pa.Array:
    """Text with a number for each distinct value, which then is read once for each level."""
    return values.dictionary_encode() if is_text(values.type) else values


@lru_cache
def _missing_values(kind: Kind, text: TextFormat, levels: tuple[Level, ...]) -> tuple[str, ...]:
    """Spellings to look for: those that are no levels and, of a number or date, that would be one."""
    spellings = tuple(spelling for spelling in text.missing_values if spelling not in levels)
    if kind in ("level", "other") or not spellings:
        return spellings
    numbers = _TEXT_READERS[kind](pa.array(spellings, pa.large_string()), text, None)
    return tuple(np.array(spellings)[~np.isnan(numbers)].tolist())


def _without_missing(values: pa.Array, spellings: tuple[str, ...]) -> pa.Array:
    """Text with null for the spellings that mean a missing value."""
    if not spellings:
        return values
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    is_missing = pc.is_in(values, pa.array(spellings, kind))
    # Not `if_else(is_missing, null, values)`: before PyArrow 24 it shifts the texts of a sliced array, and a
    # row gets characters of the next one.
    places = pa.array(np.arange(len(values), dtype=np.int64))
    return values.take(pc.if_else(is_missing, pa.scalar(None, pa.int64()), places))


def _text_number(values: pa.Array, text: TextFormat, _: object) -> FloatArray:
    return parse_numbers(values, text)


def _text_date(values: pa.Array, text: TextFormat, _: object) -> FloatArray:
    return parse_dates(values, text)


def _text_level(values: pa.Array, text: TextFormat, level: object) -> FloatArray:
    if isinstance(level, bool):
        same = pc.equal(parse_booleans(values), level)
    elif isinstance(level, str):
        same = pc.equal(values, level)
    else:
        assert isinstance(level, int | float)
        numbers = pa.array(parse_numbers(values, text))
        same = pc.if_else(values.is_valid(), pc.equal(numbers, float(level)), None)
    return _floats(same)


def _text_any(values: pa.Array, _: TextFormat, __: object) -> FloatArray:
    return _floats(_ones(values))


_TEXT_READERS = {"number": _text_number, "date": _text_date, "level": _text_level, "other": _text_any}


def _typed(coordinate: Coordinate, values: pa.Array) -> FloatArray:
    try:
        numbers = _TYPED_READERS[coordinate.kind](values, coordinate.level)
    except (pa.ArrowException, ValueError, TypeError):  # Arrow quotes values in its messages
        numbers = None
    if numbers is None:
        raise _refusal(coordinate, values.type)
    return _floats(numbers)


def _floats(values: pa.Array) -> FloatArray:
    out: FloatArray = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return out


def _typed_number(values: pa.Array, _: object) -> pa.Array | None:
    kind = values.type
    known = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if pa.types.is_null(kind) or pa.types.is_decimal(kind) or known:
        return values.cast(pa.float64(), safe=False)
    return None


def _typed_date(values: pa.Array, _: object) -> pa.Array | None:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    if pa.types.is_date64(values.type):
        values = values.cast(pa.timestamp("ms"))
    if pa.types.is_null(values.type):
        return values
    if not pa.types.is_timestamp(values.type):
        return None
    ticks = values.cast(pa.int64()).cast(pa.float64(), safe=False)
    return pc.divide(ticks, float(TICKS_PER_DAY[values.type.unit]))


def _typed_level(values: pa.Array, level: object) -> pa.Array | None:
    if pa.types.is_null(values.type):
        return values
    same = pc.equal(values, pa.scalar(level).cast(values.type))
    return pc.if_else(pc.is_nan(values), None, same) if pa.types.is_floating(values.type) else same


def _typed_any(values: pa.Array, _: object) -> pa.Array | None:
    return values if pa.types.is_null(values.type) else _ones(values)


def _ones(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_null(values, nan_is_null=True), pa.scalar(None, pa.bool_()), True)


_TYPED_READERS = {"number": _typed_number, "date": _typed_date, "level": _typed_level, "other": _typed_any}


def _refusal(coordinate: Coordinate, kind: pa.DataType) -> DataError:
    wanted = f"column {coordinate.column!r} must hold {_WANTED[coordinate.kind]}"
    return DataError(f"{wanted}, got {kind}. {_HINTS[coordinate.kind]}")


_WANTED = {"number": "numbers or booleans", "date": "dates or times", "level": "values like its levels"}
_WANTED["other"] = _WANTED["level"]
_HINTS = {
    "number": "Choose columns by name: bounds={'age': (0, 120), 'day': (date, date), 'kind': ['a', 'b']}",
    "date": "Give its bounds as numbers",
    "level": "Give levels of the same type as the column",
    "other": "Give levels of the same type as the column",
}
