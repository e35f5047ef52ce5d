"""Tables on Spark. Rows stay there: the code that reads them runs on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from sfumato.domain import Domain, FloatArray
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.text import TextFormat
from sfumato.errors import ParameterError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.spark import SparkEngine, quiet, quoted, spell_people
from sfumato.private.reading import complete_rows, read_coordinates, read_names, read_texts
from sfumato.private.sources.frames import TYPED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark's names of the types that may name people or have levels.
_ARROW_TYPES = dict.fromkeys(("string", "char", "varchar"), pa.string())
_ARROW_TYPES |= dict.fromkeys(("byte", "short", "integer", "long"), pa.int64()) | {"boolean": pa.bool_()}


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A Spark data frame, classic or Connect."""

    frame: DataFrame
    text: TextFormat = TYPED

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]

    def check_types(self, columns: Columns) -> None:
        """Raise if the unit, or a column with private levels, has another type than text or integers.

        Others are checked when workers read.
        """
        if columns.unit is not None:
            read_names(columns.unit, self._nothing(columns.unit), columns.text)
        for coordinate in columns.coordinates:
            if coordinate.is_open:
                read_texts(coordinate.column, self._nothing(coordinate.column), columns.text)

    def _nothing(self, name: str) -> pa.Array:
        """An empty array of the type of a column, or of floats if the type is not known."""
        return pa.array([], _ARROW_TYPES.get(self.frame.schema[name].dataType.typeName(), pa.float64()))

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        return SparkEngine(self.frame, columns, domain)

    def people(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        frame = people_frame(self.frame, columns)
        return SparkEngine(frame, Columns((Coordinate("n_rows"),)), domain)

    def batches(self, columns: Columns) -> NoReturn:
        """Raise: rows never leave the workers."""
        raise ParameterError("`X` must not be on Spark here. Use release_.predict_spark(X)")


def is_spark(X: object) -> bool:
    """Whether a table is a Spark data frame. Does not import Spark."""
    return type(X).__module__.startswith("pyspark.sql.") and hasattr(X, "mapInArrow")


def people_frame(frame: DataFrame, columns: Columns) -> DataFrame:
    """A frame with one row per person and one column ``n_rows``: that person's number of rows."""
    with quiet():
        plain = frame.select(quoted(columns.source_names[-1])).toDF("column0")
        spelled = plain.mapInArrow(partial(spell_people, columns), "unit binary")
        return spelled.groupBy("unit").count().toDF("unit", "n_rows")


def labelled(
    frame: DataFrame, columns: Columns, label: Callable[[FloatArray], pa.Array], name: str
) -> DataFrame:
    """The frame with one more column, which workers compute from the coordinates of each row."""
    names = list(frame.columns)
    if name in names:
        raise ParameterError(f"`column` must be a new name, got {name!r}, which the table already has")
    with quiet():
        plain = frame.toDF(*(f"column{j}" for j in range(len(names))))
        labels = partial(_label_batches, columns, names, label)
        return plain.mapInArrow(labels, _longer(plain.schema)).toDF(*names, name)


def _longer(schema: Any) -> Any:
    from pyspark.sql.types import LongType, StructField, StructType

    return StructType([*schema.fields, StructField("label", LongType())])


def _label_batches(
    columns: Columns,
    names: list[str],
    label: Callable[[FloatArray], pa.Array],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """On a worker: append the label of each row."""
    for batch in batches:
        rows = read_coordinates(columns, batch.rename_columns(names))
        complete_rows(rows, columns.missing)  # may raise
        yield batch.append_column("label", label(rows))
