"""Tables in memory with named columns: data frames of pandas and polars, and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.domain import Domain
from sfumato.domain.columns import Columns
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.parsing import spell, spell_people
from sfumato.private.people import cap_rows, contributions
from sfumato.private.reading import check_schema, read_people, read_rows

TYPED = TextFormat(missing_values=())  # where a type says what is missing, every text is a value


@dataclass(frozen=True, eq=False)
class FrameSource:
    """A table in memory. Columns of Python objects are spelled out value by value and read as text."""

    frame: Any
    text: TextFormat = TYPED

    @classmethod
    def of(cls, X: Any) -> FrameSource:
        """The table of a data frame, a record batch or an Arrow table."""
        return cls(pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        if isinstance(self.frame, pa.Table):
            return names_of(self.frame.schema)
        if hasattr(self.frame, "collect_schema"):
            return list(self.frame.collect_schema().names())
        return [str(name) for name in self.frame.columns]

    def check_types(self, columns: Columns) -> None:
        """Raise if a column has another type than declared."""
        fields = {name: self._kind(name) for name in columns.source_names}
        told = tuple(c for c in (*columns.coordinates, *columns.described) if fields[c.column] is not None)
        unit = columns.unit if columns.unit and fields[columns.unit] is not None else None
        known = [(name, kind) for name, kind in fields.items() if kind is not None]
        check_schema(Columns(told, unit, text=columns.text), pa.schema(known))

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        (table,) = self.batches(columns)
        if columns.unit is None:
            return MemoryEngine(read_rows(columns, table), domain)
        return MemoryEngine(cap_rows(*read_people(columns, table), domain.unit.max_rows), domain)

    def people(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        return people_engine(columns, self.batches(columns), domain)

    def batches(self, columns: Columns) -> Iterator[pa.Table]:
        """The columns to be read, as the only batch."""
        frame, names = self.frame, columns.source_names
        if is_lazy(frame):
            frame = frame.select(names).collect()
        unit = columns.unit
        yield pa.table({name: _values(_one(frame, name), is_person=name == unit) for name in names})

    def _kind(self, name: str) -> pa.DataType | None:
        """Arrow type of a column, or None for objects, which have no common type."""
        if isinstance(self.frame, pa.Table):
            return self.frame.schema.field(name).type
        if hasattr(self.frame, "collect_schema"):
            empty = self.frame.clear().select(name)
            empty = empty.collect() if hasattr(empty, "collect") else empty
            return None if _is_object(empty[name]) else empty[name].to_arrow().type
        column = _one(self.frame, name)
        return None if _is_object(column) or _categories(column) is not None else _typed(column[:0]).type


def is_lazy(X: object) -> bool:
    """Whether a table is a lazy frame of polars. Does not import polars."""
    return hasattr(X, "collect_schema") and hasattr(X, "collect")


def _one(frame: Any, name: str) -> Any:
    if isinstance(frame, pa.Table):
        return frame.column(name)
    places = [place for place, own in enumerate(frame.columns) if str(own) == name]
    if len(places) > 1:
        raise DataError(f"`X` must have distinct column names, got several columns {name!r}")
    # By place in pandas, whose names may be numbers.
    return frame.iloc[:, places[0]] if hasattr(frame, "iloc") else frame[name]


def _values(column: Any, *, is_person: bool) -> pa.Array | pa.ChunkedArray:
    """Arrow values of a column: of its type or, for Python objects, as text."""
    spelled = spell_people if is_person else spell
    if isinstance(column, pa.ChunkedArray):
        return column
    if (categories := _categories(column)) is not None:
        codes = column.cat.codes.to_numpy()
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), spelled(categories))
    return spelled(column.to_list()) if _is_object(column) else _typed(column)


def _is_object(column: Any) -> bool:
    return str(getattr(column, "dtype", "")).lower() == "object"


def _categories(column: Any) -> Any:
    """Categories of a pandas column if these are Python objects."""
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    return categories if str(getattr(categories, "dtype", "")) == "object" else None


def _typed(column: Any) -> pa.Array:
    try:
        found = column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    except (pa.ArrowException, ValueError, TypeError):  # their messages quote values
        pass
    raise DataError(f"column {column.name!r} must hold numbers, dates, text or booleans, got {column.dtype}")


def names_of(schema: pa.Schema) -> list[str]:
    """Names of the columns of a schema."""
    try:
        return [str(name) for name in schema.names]
    except UnicodeDecodeError:
        raise DataError("`X` must have column names in UTF-8: save it in that encoding") from None


def people_engine(
    columns: Columns, batches: Iterable[pa.RecordBatch | pa.Table], domain: Domain
) -> MemoryEngine:
    """Engine over one row per person: that person's number of rows."""
    counts = contributions(read_people(columns, batch)[0] for batch in batches)
    return MemoryEngine(counts[:, None], domain)
