"""What may be given as a table, the names of its columns, and the engine that holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sfumato.columns import Columns, Coordinate, Missing
from sfumato.domain import Domain, FloatArray
from sfumato.engine.base import Engine
from sfumato.engine.memory import MemoryEngine
from sfumato.engine.parquet import ParquetEngine, open_dataset
from sfumato.engine.people import cap_rows, contributions
from sfumato.engine.spark import SparkEngine, people_frame
from sfumato.errors import DataError, ParameterError


def is_outside(X: object) -> bool:
    """Whether a table stays where it is: in files or on Spark."""
    return isinstance(X, str | os.PathLike | ds.Dataset) or is_spark(X)


def is_spark(X: object) -> bool:
    """Whether a table is a data frame of Spark, classic or Connect. Does not import it."""
    return type(X).__module__.startswith("pyspark.sql.") and hasattr(X, "mapInArrow")


def column_names(X: Any) -> list[str]:
    """Names of the columns of a table. Of files, reads the schema of the first."""
    if is_spark(X):
        return [str(name) for name in X.columns]
    try:
        return [str(name) for name in _arrow(X).schema.names]
    except UnicodeDecodeError:
        raise DataError("`X` must have column names that are text in UTF-8: save it so") from None


def check_types(X: Any, columns: Columns) -> None:
    """Refuse columns of other types than they are declared with, as far as a schema tells. Reads no row."""
    if is_spark(X):
        return
    schema = _arrow(X).schema
    told = (c for c in columns.coordinates if not pa.types.is_null(schema.field(c.column).type))
    Columns(tuple(told)).read(schema.empty_table())


def held(X: Any) -> Any:
    """The table, as an Arrow table if it is a data frame in memory."""
    return X if is_outside(X) else _arrow(X)


def open_engine(X: Any, domain: Domain, columns: Columns | None = None) -> Engine:
    """Engine over a table; `columns` says how named columns are read, an array needs none."""
    if columns is None:
        return MemoryEngine(X, domain)
    if is_spark(X):
        return SparkEngine(X, columns, domain)
    table = _arrow(X)
    if isinstance(table, ds.Dataset):
        return _files(X, table, columns, domain)
    if columns.unit is None:
        return MemoryEngine(columns.read(table), domain)
    return MemoryEngine(cap_rows(*columns.read_with_ids(table), domain.unit.max_rows), domain)


def open_people_engine(X: Any, unit: str, missing: Missing, domain: Domain) -> Engine:
    """Engine over a table with one row per person, the number of rows that the person has in `X`."""
    columns = Columns((), unit, missing)
    if is_spark(X):
        return SparkEngine(people_frame(X, columns), Columns((Coordinate("n_rows"),)), domain)
    table = _arrow(X)
    batches = _files(X, table, columns, domain).batches() if isinstance(table, ds.Dataset) else [table]
    counts = contributions(columns.read_with_ids(batch)[0] for batch in batches)
    return MemoryEngine(counts[:, None], domain)


def blocks_of(X: Any, columns: Columns) -> Iterator[FloatArray]:
    """Rows of a table that is not on Spark, part by part, for their holder."""
    if is_spark(X):
        raise ParameterError("`X` must not be on Spark here. Use release_.predict_spark(X)")
    table = _arrow(X)
    if isinstance(table, ds.Dataset):
        domain = Domain.from_bounds((-1, 1), len(columns.coordinates))  # not used: rows come as they are
        yield from map(columns.read, _files(X, table, columns, domain).batches())
    else:
        yield columns.read(table)


def _files(X: Any, dataset: ds.Dataset, columns: Columns, domain: Domain) -> ParquetEngine:
    """Engine over files: all of them alike, unless the caller made the data set and decided that."""
    return ParquetEngine(dataset, columns, domain, strict=not isinstance(X, ds.Dataset))


def _arrow(X: Any) -> pa.Table | ds.Dataset:
    if isinstance(X, pa.Table | ds.Dataset):
        return X
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if isinstance(X, str | os.PathLike):
        return open_dataset(X)
    if isinstance(X, np.ndarray) or not hasattr(X, "columns"):
        raise ParameterError(
            f"`X` must have named columns where `unit` or `bounds` name them, got {type(X).__name__}. Use a "
            "data frame, an Arrow table, a path to files, or a data frame of Spark"
        )
    try:
        return X.to_arrow() if hasattr(X, "to_arrow") else pa.Table.from_pandas(X, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError):  # these quote values
        pass
    raise DataError("`X` must have columns of one type each: drop or encode those of mixed types")
