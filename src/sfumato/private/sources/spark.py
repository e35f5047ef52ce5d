"""Tables on Spark. Rows stay there: the code that reads them runs on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.columns import Columns, Coordinate, Missing
from sfumato.errors import ParameterError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.spark import SparkEngine, quiet, quoted, spell_people
from sfumato.private.reading import read_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class SparkSource:
    """A Spark data frame, classic or Connect."""

    frame: DataFrame

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]

    def check_types(self, columns: Columns) -> None:
        """Do nothing: Spark's types are checked when workers read."""

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        return SparkEngine(self.frame, columns, domain)

    def people(self, unit: str, missing: Missing, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        frame = people_frame(self.frame, Columns((), unit, missing))
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
    frame: DataFrame, columns: Columns, predict: Callable[[FloatArray], IntArray], name: str
) -> DataFrame:
    """The frame with one more column, which workers compute from the coordinates of each row."""
    names = list(frame.columns)
    if name in names:
        raise ParameterError(f"`column` must be a new name, got {name!r}, which the table already has")
    with quiet():
        plain = frame.toDF(*(f"column{j}" for j in range(len(names))))
        label = partial(_label_batches, columns, names, predict)
        return plain.mapInArrow(label, _longer(plain.schema)).toDF(*names, name)


def _longer(schema: Any) -> Any:
    from pyspark.sql.types import LongType, StructField, StructType

    return StructType([*schema.fields, StructField("label", LongType())])


def _label_batches(
    columns: Columns,
    names: list[str],
    predict: Callable[[FloatArray], IntArray],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """On a worker: append the label of each row."""
    for batch in batches:
        labels = predict(read_rows(columns, batch.rename_columns(names)))
        yield batch.append_column("label", pa.array(labels, pa.int64()))
