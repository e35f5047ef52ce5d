"""How the named columns of a table become the coordinates of a clustering. Public facts only."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.domain import BOUNDS_HELP, Domain, FloatArray, Unit
from sfumato.errors import DataError, ParameterError

Missing = Literal["error", "drop"]
Level = str | int | float | bool

DAY = 86_400  # seconds
_PER_DAY = {"s": DAY, "ms": DAY * 10**3, "us": DAY * 10**6, "ns": DAY * 10**9}
_DATE = datetime.date | np.datetime64  # a datetime is a date


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a clustering and the column that it is read from.

    Parameters
    ----------
    column : str
    kind : {"number", "date", "level"}
        A number of any width, or a boolean, as it is; a date or time as days since the start of 1970, in UTC;
        or 1 where a category has the level, and 0 elsewhere.
    level : str, int, float or bool, optional
    """

    column: str
    kind: Literal["number", "date", "level"] = "number"
    level: Level | None = None

    def __str__(self) -> str:
        return self.column if self.kind != "level" else f"{self.column}={self.level}"

    def read(self, values: pa.Array) -> FloatArray:
        """Coordinates of a column's values, with NaN where one is missing."""
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        try:
            numbers = _READERS[self.kind](values, self.level)
        except (pa.ArrowException, ValueError, TypeError):  # Arrow quotes values in its messages
            numbers = None
        if numbers is None:
            wanted = f"column {self.column!r} must hold {_WANTED[self.kind]}"
            raise DataError(f"{wanted}, got {values.type}. {_HINTS[self.kind]}")
        out: FloatArray = numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return out


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read, and how. A map of rows one by one: nothing is learnt from the table.

    Parameters
    ----------
    coordinates : tuple of Coordinate
    unit : str, optional
        Column that names the person.
    missing : {"error", "drop"}
        What to do with rows where a value is missing or not finite.
    """

    coordinates: tuple[Coordinate, ...]
    unit: str | None = None
    missing: Missing = "error"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(str(coordinate) for coordinate in self.coordinates)

    @property
    def source_names(self) -> list[str]:
        """Columns to read, the unit's last, each once."""
        names = [coordinate.column for coordinate in self.coordinates]
        return list(dict.fromkeys([*names, self.unit] if self.unit else names))

    def read(self, batch: pa.RecordBatch | pa.Table) -> FloatArray:
        """Rows of a batch as coordinates."""
        rows, complete = self._read(batch)
        return rows if complete is None else rows[complete]

    def read_with_ids(self, batch: pa.RecordBatch | pa.Table) -> tuple[pa.Array, FloatArray]:
        """The same, and the person of each row. A row of nobody is one with a missing value."""
        ids = batch.column(self.unit)
        ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        rows, complete = self._read(batch)
        known = ~pc.is_null(ids, nan_is_null=True).to_numpy(zero_copy_only=False)
        if complete is None and known.all():
            return ids, rows
        if self.missing == "error" and not known.all():
            raise DataError(f"column {self.unit!r} must name a person in every row, got none. {DROP}")
        complete = known if complete is None else known & complete
        return ids.filter(pa.array(complete)), rows[complete]

    def _read(self, batch: pa.RecordBatch | pa.Table) -> tuple[FloatArray, Any]:
        rows = np.empty((batch.num_rows, len(self.coordinates)))
        for j, coordinate in enumerate(self.coordinates):
            column = batch.column(coordinate.column)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            first = 0
            for chunk in chunks:
                rows[first : first + len(chunk), j] = coordinate.read(chunk)
                first += len(chunk)
        return rows, complete_rows(rows, self.missing)


DROP = "Drop or fill them, or drop such rows with missing='drop'"


def complete_rows(rows: Any, missing: Missing) -> Any:
    """Mask of the rows that are finite, or None if all are; with missing="error" all must be."""
    with np.errstate(all="ignore"):
        if rows.dtype.kind != "f" or np.isfinite(rows.sum(dtype=np.float64)):  # one pass, and no mask
            return None
    complete = np.isfinite(rows).all(axis=1)
    if missing == "error" and not complete.all():
        raise DataError(f"the table must have finite values only, got missing or infinite ones. {DROP}")
    return complete


def read_bounds(
    bounds: object, names: Sequence[str] | None, unit: Unit, missing: Missing = "error"
) -> tuple[Columns, Domain]:
    """What `bounds` says about the columns of a table: which are read, how, and between which limits.

    Parameters
    ----------
    bounds : mapping, (low, high) or Ball
        A mapping chooses columns by name and gives for each a tuple ``(low, high)`` of numbers or of dates,
        or a list of levels. Anything else is for all columns, which are then numbers.
    names : sequence of str, optional
        Columns of the table, if known.
    unit : Unit
    missing : {"error", "drop"}
    """
    if named := getattr(bounds, "columns", ()):  # what `estimate_bounds` found for named columns
        bounds = dict(zip(named, zip(*bounds, strict=True), strict=True))  # type: ignore[misc]
    if not isinstance(bounds, Mapping):
        chosen = [name for name in names or () if name != unit.column]
        columns = Columns(tuple(Coordinate(name) for name in chosen), unit.column, missing)
        _check_columns(columns, names)
        return columns, Domain.from_bounds(bounds, len(chosen), unit)
    if not bounds or not all(isinstance(name, str) for name in bounds):
        raise ParameterError(f"`bounds` must name at least one column, by strings, got {list(bounds)!r}")
    if unit.column in bounds:
        raise ParameterError(f"`bounds` must not name the column of `unit`, got {unit.column!r}")
    limits = [limit for name, value in bounds.items() for limit in _limits(name, value)]
    columns = Columns(tuple(coordinate for coordinate, _, _ in limits), unit.column, missing)
    _check_columns(columns, names)
    low, high = [low for _, low, _ in limits], [high for _, _, high in limits]
    return columns, Domain.from_bounds((low, high), len(limits), unit)


def days(date: _DATE) -> float:
    """Days from the start of 1970 to a date or time; one without time zone is in UTC."""
    if isinstance(date, datetime.datetime) and date.tzinfo is not None:
        date = date.astimezone(datetime.UTC).replace(tzinfo=None)
    ticks = np.array(date, dtype="datetime64[us]")
    return float("nan") if np.isnat(ticks) else float(ticks.astype(np.int64)) / _PER_DAY["us"]


def _limits(name: str, value: object) -> Iterable[tuple[Coordinate, float, float]]:
    if isinstance(value, list):
        return [(Coordinate(name, "level", level), 0.0, 1.0) for level in _levels(name, value)]
    if not isinstance(value, tuple) or len(value) != 2:
        raise ParameterError(
            f"`bounds` of column {name!r} must be a tuple (low, high) of numbers or dates, or a list of "
            f"levels, got {value!r}. {BOUNDS_HELP}"
        )
    if all(isinstance(limit, _DATE) for limit in value):
        return [(Coordinate(name, "date"), days(value[0]), days(value[1]))]
    try:
        return [(Coordinate(name), float(value[0]), float(value[1]))]
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"`bounds` of column {name!r} must be two numbers or two dates, got {value!r}"
        ) from None


def _levels(name: str, levels: list[Any]) -> list[Level]:
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    if not plain or not all(isinstance(level, Level) for level in plain) or len(set(plain)) < len(plain):
        raise ParameterError(
            f"the levels of column {name!r} must be distinct strings, numbers or booleans, got {levels!r}"
        )
    return plain


def check_names(wanted: Iterable[str], names: Sequence[str]) -> None:
    """Refuse names that no column of a table has."""
    for name in wanted:
        if name not in names:
            raise ParameterError(f"column {name!r} must be in the table, which has {', '.join(names)}")


def _check_columns(columns: Columns, names: Sequence[str] | None) -> None:
    if names is None:
        return
    check_names(columns.source_names, names)
    if not columns.coordinates:
        raise ParameterError("the table must have at least one column besides that of `unit`")


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
    return pc.divide(ticks, float(_PER_DAY[values.type.unit]))


def _read_level(values: pa.Array, level: object) -> pa.Array | None:
    return pc.equal(values, pa.scalar(level).cast(values.type))


_READERS = {"number": _read_number, "date": _read_date, "level": _read_level}
_WANTED = {"number": "numbers or booleans", "date": "dates or times", "level": "values like its levels"}
_HINTS = {
    "number": "Choose columns by name: bounds={'age': (0, 120), 'day': (date, date), 'kind': ['a', 'b']}",
    "date": "Give its bounds as numbers",
    "level": "Give its levels in the type of the column",
}
