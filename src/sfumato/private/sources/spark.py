"""Tables on Spark. Rows stay there: the code that reads them runs on the workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from sfumato.private.engines.spark import (
    SparkEngine,
    SparkFrame,
    SparkRows,
    check_pyspark,
    quiet,
    quoted,
    spell_people,
)
from sfumato.private.reading import complete_rows, read_coordinates, read_names, read_texts
from sfumato.private.sources.files import FileSource
from sfumato.private.sources.frames import TYPED
from sfumato.private.sources.pieces import Pieces, SparkPieces, n_cores
from sfumato.private.sources.plain_scans import plain_scan
from sfumato.private.sources.text import TextSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark's names of the types that may name people or have levels.
_ARROW_TYPES = dict.fromkeys(("string", "char", "varchar"), pa.string())
_ARROW_TYPES |= dict.fromkeys(("byte", "short", "integer", "long"), pa.int64()) | {"boolean": pa.bool_()}


class OnSpark(ABC):
    """A table whose rows are read by Spark's tasks."""

    @abstractmethod
    def rows(self, columns: Columns) -> SparkRows:
        """The rows as tasks read them."""

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        check_pyspark()
        return SparkEngine(self.rows(columns), columns, domain)

    def people(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        counted = people_frame(self.rows(columns), columns)
        return SparkEngine(SparkFrame(counted), Columns((Coordinate("n_rows"),)), domain)


@dataclass(frozen=True, eq=False)
class SparkSource(OnSpark):
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

    def rows(self, columns: Columns) -> SparkRows:
        """The rows as tasks read them: from files if the frame is a plain scan, see `plain_scan`."""
        names = columns.source_names
        with quiet():
            found = plain_scan(self.frame.select(*map(quoted, names)), names)
        if found is None:
            return SparkFrame(self.frame)
        spark = self.frame.sparkSession
        return SparkPieces(spark, Pieces.of(found[0], columns, n_cores(spark), found[1]))

    def batches(self, columns: Columns) -> NoReturn:
        """Raise: rows never leave the workers."""
        raise ParameterError("`X` must not be on Spark here. Use release_.predict_spark(X)")


@dataclass(frozen=True, eq=False)
class SparkFiles(OnSpark):
    """A table in files that Spark's tasks read themselves.

    Parameters
    ----------
    files : FileSource or TextSource
    spark : SparkSession
    """

    files: FileSource | TextSource
    spark: Any

    @property
    def text(self) -> TextFormat:
        """How text in it is read."""
        return self.files.text

    @property
    def names(self) -> list[str]:
        """Names of the columns. Reads the schema or the first line of the first file."""
        return self.files.names

    def check_types(self, columns: Columns) -> None:
        """Raise if the schema shows a column of another type than declared."""
        self.files.check_types(columns)

    def rows(self, columns: Columns) -> SparkRows:
        """The rows as tasks read them."""
        return SparkPieces(self.spark, Pieces.of(self.files, columns, n_cores(self.spark)))

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Batches of the columns to be read, on the driver."""
        return self.files.batches(columns)


def is_spark(X: object) -> bool:
    """Whether a table is a Spark data frame. Does not import Spark."""
    return type(X).__module__.startswith("pyspark.sql.") and hasattr(X, "mapInArrow")


def people_frame(rows: SparkRows, columns: Columns) -> DataFrame:
    """A frame with one row per person, and one column ``n_rows``: that person's number of rows."""
    with quiet():
        spelled = rows.mapped(columns.source_names, partial(spell_people, columns), "unit binary")
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
