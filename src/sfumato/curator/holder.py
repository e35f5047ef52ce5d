"""The holder's own door: rows for those who hold them anyway, to label and to judge them.

What leaves here is not private and enters no release. Estimators compute models without this module; only
``predict``, ``labels_`` and ``cost`` go through it.
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
    """All rows of a table that was opened."""
    return np.concatenate([np.empty((0, table.domain.n_features)), *_blocks(table._rows, table.columns)])


def labels_of(table: Table, predict: Predict) -> IntArray:
    """Labels of the rows of a table that was opened."""
    return _labels(_blocks(table._rows, table.columns and _as_given(table.columns)), predict)


def labels(X: Any, columns: Columns, predict: Predict) -> IntArray:
    """Labels of the rows of a table with named columns."""
    return _labels(_blocks(open_source(X), _as_given(columns)), predict)


def labelled_frame(frame: Any, columns: Columns, predict: Predict, name: str) -> Any:
    """A Spark data frame with one more column, the label of each row."""
    return labelled(frame, _as_given(columns), predict, name)


def file_names(path: str) -> list[str]:
    """Names of the columns of a table in files."""
    return FileSource.at(path).names


def labelled_batches(
    path: str, coordinates: Sequence[Coordinate], kept: Sequence[str], predict: Predict, name: str
) -> Iterator[pa.RecordBatch]:
    """Batches of the columns that are kept, and of labels: none for rows with missing values."""
    source = FileSource.at(path)
    check_names([*(coordinate.column for coordinate in coordinates), *kept], source.names)
    # Columns that are only kept pass as they are, whatever they hold; nothing is read from them as a level.
    scanned = Columns((*coordinates, *(Coordinate(column, "level") for column in kept)))
    for batch in source.batches(scanned):
        values = [batch.column(column) for column in kept]
        yield pa.record_batch([*values, _batch_labels(batch, coordinates, predict)], names=[*kept, name])


def _as_given(columns: Columns) -> Columns:
    """Columns without a person: labels are for rows, and all of them."""
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
