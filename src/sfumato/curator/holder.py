"""The data holder's own door: lets holders label and score the rows that they hold anyway.

Results from here are not private and enter no release. Only ``predict``, ``labels_`` and ``cost`` use this
module; estimators compute models without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.curator.tables import Table
from sfumato.domain import FloatArray, IntArray
from sfumato.domain.columns import Columns, Coordinate, check_names
from sfumato.private.reading import read_rows, read_values
from sfumato.private.sources import FileSource, Source, open_source
from sfumato.private.sources.spark import labelled

Predict = Callable[[FloatArray], IntArray]


def rows_of(table: Table) -> FloatArray:
    """All rows of an opened table."""
    return np.concatenate([np.empty((0, table.domain.n_features)), *_blocks(table._rows, table.columns)])


def labels_of(table: Table, predict: Predict) -> IntArray:
    """Labels of the rows of an opened table."""
    return _labels(_blocks(table._rows, table.columns and _as_given(table.columns)), predict)


def labels(X: Any, columns: Columns, predict: Predict) -> IntArray:
    """Labels of the rows of a table with named columns."""
    return _labels(_blocks(open_source(X), _as_given(columns)), predict)


def labelled_frame(frame: Any, columns: Columns, predict: Predict, name: str) -> Any:
    """The Spark data frame with one more column, the label of each row."""
    return labelled(frame, _as_given(columns), predict, name)


def file_names(path: str) -> list[str]:
    """Column names of a table in files."""
    return FileSource.at(path).names


def labelled_batches(
    path: str, coordinates: Sequence[Coordinate], kept: Sequence[str], predict: Predict, name: str
) -> Iterator[pa.RecordBatch]:
    """Batches of the kept columns and of labels; rows with missing values get no label."""
    source = FileSource.at(path)
    check_names([*(coordinate.column for coordinate in coordinates), *kept], source.names)
    # Columns that are only kept pass through unchanged, whatever they contain.
    scanned = Columns((*coordinates, *(Coordinate(column, "level") for column in kept)))
    for batch in source.batches(scanned):
        values = [batch.column(column) for column in kept]
        yield pa.record_batch([*values, _batch_labels(batch, coordinates, predict)], names=[*kept, name])


def _as_given(columns: Columns) -> Columns:
    """The columns without the unit and without dropping rows: every row gets a label."""
    return replace(columns, unit=None, missing="error")


def _blocks(rows: NDArray[Any] | Source, columns: Columns | None) -> Iterator[FloatArray]:
    if columns is None:
        yield np.ascontiguousarray(rows, dtype=np.float64)
    else:
        assert not isinstance(rows, np.ndarray)
        yield from map(partial(read_rows, columns), rows.batches(columns))


def _labels(blocks: Iterator[FloatArray], predict: Predict) -> IntArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *map(predict, blocks)])


def _batch_labels(batch: pa.RecordBatch, coordinates: Sequence[Coordinate], predict: Predict) -> pa.Array:
    rows = np.column_stack([read_values(c, batch.column(c.column)) for c in coordinates])
    complete = np.isfinite(rows).all(axis=1)
    found = np.zeros(len(rows), dtype=np.int64)
    found[complete] = predict(np.ascontiguousarray(rows[complete]))
    return pa.array(found, mask=~complete)
