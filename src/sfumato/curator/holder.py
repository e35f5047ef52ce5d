"""The data holder's own door: lets holders label and score the rows that they hold anyway.

Results from here are not private and enter no release. Only ``predict``, ``labels_``, ``cost`` and their like
(``transform``, ``score``) use this module; estimators compute models without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.curator.tables import Table
from sfumato.domain import Domain, FloatArray, IntArray, Unit
from sfumato.domain.columns import Columns, Coordinate, check_names
from sfumato.domain.sparse import Sparse
from sfumato.private.reading import complete_rows, read_coordinates
from sfumato.private.sources import Source, open_source
from sfumato.private.sources.spark import labelled
from sfumato.private.sources.sparse import SparseRows, open_rows

Predict = Callable[[FloatArray], IntArray]
Compute = Callable[[FloatArray], FloatArray]
UNUSED = -1  # label of a row that has a missing value, or that lies outside and is dropped


def rows_of(table: Table) -> FloatArray:
    """All complete rows of an opened table, also those outside."""
    blocks = _blocks(table._rows, table.columns)
    complete = (rows[np.isfinite(rows).all(axis=1)] for rows in blocks)
    return np.concatenate([np.empty((0, table.domain.n_features)), *complete])


def labels_of(table: Table, predict: Predict) -> IntArray:
    """Labels of the rows of an opened table, -1 for those that are not used."""
    return _labels(_blocks(table._rows, table.columns), table.columns, table.domain, predict)


def labels(X: Any, columns: Columns, domain: Domain, predict: Predict) -> IntArray:
    """Labels of the rows of a table with named columns, -1 for those that are not used."""
    source, columns = _opened(X, columns)
    return _labels(_blocks(source, columns), columns, domain, predict)


def labels_of_rows(
    rows: FloatArray, missing: Literal["error", "drop"], domain: Domain, predict: Predict
) -> IntArray:
    """Labels of coordinates, -1 for rows that are not used."""
    return _labels(iter([rows]), Columns((), missing=missing), domain, predict)


def labels_of_sparse(
    X: Any, sparse: Sparse, missing: Literal["error", "drop"], domain: Domain, predict: Predict
) -> IntArray:
    """Labels of sparse rows, -1 for those that are not used."""
    return _labels(_sparse_blocks(X, sparse, missing), None, domain, predict)


def values_of_sparse(
    X: Any,
    sparse: Sparse,
    missing: Literal["error", "drop"],
    domain: Domain,
    compute: Compute,
    n_values: int,
) -> FloatArray:
    """Numbers computed for the coordinates of sparse rows, NaN for rows that are not used."""
    return _values(_sparse_blocks(X, sparse, missing), None, domain, compute, n_values)


def _sparse_blocks(X: Any, sparse: Sparse, missing: Literal["error", "drop"]) -> Iterator[FloatArray]:
    rows = open_rows(X, sparse, missing, Unit())
    rows.check()
    return rows.blocks()


def values(X: Any, columns: Columns, domain: Domain, compute: Compute, n_values: int) -> FloatArray:
    """Numbers computed for the rows of a table with named columns, NaN for rows that are not used."""
    source, columns = _opened(X, columns)
    return _values(_blocks(source, columns), columns, domain, compute, n_values)


def values_of_rows(
    rows: FloatArray, missing: Literal["error", "drop"], domain: Domain, compute: Compute, n_values: int
) -> FloatArray:
    """Numbers computed for coordinates, NaN for rows that are not used."""
    return _values(iter([rows]), Columns((), missing=missing), domain, compute, n_values)


def labelled_frame(frame: Any, columns: Columns, domain: Domain, predict: Predict, name: str) -> Any:
    """The Spark data frame with one more column, the label of each row, or null if it is not used."""
    check_names([coordinate.column for coordinate in columns.coordinates], frame.columns)
    return labelled(frame, replace(columns, unit=None), partial(_nullable, domain, predict), name)


def labelled_batches(
    X: Any,
    columns: Columns,
    domain: Domain,
    kept: Sequence[str],
    predict: Predict,
    name: str,
    computed: Mapping[str, Compute] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of the kept columns, of labels, and of computed numbers; rows that are not used get none."""
    source, columns = _opened(X, columns)
    check_names(kept, source.names)
    # Columns that are only kept pass through unchanged, whatever they contain.
    scanned = replace(columns, coordinates=(*columns.coordinates, *(Coordinate(column) for column in kept)))
    for batch in source.batches(scanned):
        rows = read_coordinates(columns, batch)
        found = {name: _nullable(domain, predict, rows)}
        for other, compute in (computed or {}).items():
            found[other] = pa.array(_values(iter([rows]), None, domain, compute, 1)[:, 0], from_pandas=True)
        yield pa.record_batch(
            [*(batch.column(column) for column in kept), *found.values()], names=[*kept, *found]
        )


def _opened(X: Any, columns: Columns) -> tuple[Source, Columns]:
    """Source of a table, and the columns as they are written there, without the unit: every row counts."""
    source = open_source(X, columns.text)
    check_names([coordinate.column for coordinate in columns.coordinates], source.names)
    return source, replace(columns, unit=None, text=source.text)


def _blocks(rows: NDArray[Any] | Source | SparseRows, columns: Columns | None) -> Iterator[FloatArray]:
    if isinstance(rows, SparseRows):
        yield from rows.blocks()
    elif columns is None:
        yield np.ascontiguousarray(rows, dtype=np.float64)
    else:
        assert not isinstance(rows, np.ndarray | SparseRows)
        yield from map(partial(read_coordinates, columns), rows.batches(columns))


def _used(domain: Domain, columns: Columns | None, rows: FloatArray) -> NDArray[np.bool_]:
    """Whether each row is used. With missing="error", raises for an incomplete one."""
    if columns is not None:
        complete_rows(rows, columns.missing)
    return domain.admits(rows)


def _labels(
    blocks: Iterator[FloatArray], columns: Columns | None, domain: Domain, predict: Predict
) -> IntArray:
    found = [np.empty(0, dtype=np.int64)]
    for rows in blocks:
        used = _used(domain, columns, rows)
        labels = np.full(len(rows), UNUSED)
        labels[used] = predict(np.ascontiguousarray(rows[used]))
        found.append(labels)
    return np.concatenate(found)


def _values(
    blocks: Iterator[FloatArray], columns: Columns | None, domain: Domain, compute: Compute, n_values: int
) -> FloatArray:
    found = [np.empty((0, n_values))]
    for rows in blocks:
        used = _used(domain, columns, rows)
        numbers = np.full((len(rows), n_values), np.nan)
        numbers[used] = compute(np.ascontiguousarray(rows[used]))
        found.append(numbers)
    return np.concatenate(found)


def _nullable(domain: Domain, predict: Predict, rows: FloatArray) -> pa.Array:
    used = domain.admits(rows)
    found = np.zeros(len(rows), dtype=np.int64)
    found[used] = predict(np.ascontiguousarray(rows[used]))
    return pa.array(found, mask=~used)
