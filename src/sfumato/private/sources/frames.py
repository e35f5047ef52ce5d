"""Tables in memory with named columns: data frames of pandas and polars, and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.domain import Domain
from sfumato.domain.columns import Columns, Missing
from sfumato.errors import DataError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.people import cap_rows, contributions
from sfumato.private.reading import read_people, read_rows


@dataclass(frozen=True)
class FrameSource:
    """A table in memory."""

    table: pa.Table

    @classmethod
    def of(cls, X: Any) -> FrameSource:
        """The table of a data frame, a record batch or an Arrow table."""
        if isinstance(X, pa.Table):
            return cls(X)
        if isinstance(X, pa.RecordBatch):
            return cls(pa.Table.from_batches([X]))
        try:
            return cls(
                X.to_arrow() if hasattr(X, "to_arrow") else pa.Table.from_pandas(X, preserve_index=False)
            )
        except (pa.ArrowException, ValueError, TypeError):  # their messages quote values
            pass
        raise DataError("`X` must have one type per column: drop or encode columns of mixed types")

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return names_of(self.table.schema)

    def check_types(self, columns: Columns) -> None:
        """Raise if a column has another type than declared."""
        check_schema(columns, self.table.schema)

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        if columns.unit is None:
            return MemoryEngine(read_rows(columns, self.table), domain)
        return MemoryEngine(cap_rows(*read_people(columns, self.table), domain.unit.max_rows), domain)

    def people(self, unit: str, missing: Missing, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        return people_engine(Columns((), unit, missing), [self.table], domain)

    def batches(self, columns: Columns) -> Iterator[pa.Table]:
        """The table, as the only batch."""
        yield self.table


def names_of(schema: pa.Schema) -> list[str]:
    """Names of the columns of a schema."""
    try:
        return [str(name) for name in schema.names]
    except UnicodeDecodeError:
        raise DataError("`X` must have column names in UTF-8: save it in that encoding") from None


def check_schema(columns: Columns, schema: pa.Schema) -> None:
    """Raise if the schema shows a column of another type than declared. Reads no row."""
    told = (c for c in columns.coordinates if not pa.types.is_null(schema.field(c.column).type))
    read_rows(Columns(tuple(told)), schema.empty_table())


def people_engine(
    columns: Columns, batches: Iterable[pa.RecordBatch | pa.Table], domain: Domain
) -> MemoryEngine:
    """Engine over one row per person: that person's number of rows."""
    counts = contributions(read_people(columns, batch)[0] for batch in batches)
    return MemoryEngine(counts[:, None], domain)
