"""Tables of sparse rows: SciPy CSR arrays, and tables with columns of lists."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray
from scipy.sparse import issparse

from sfumato.domain import Domain, FloatArray, IntArray, Unit
from sfumato.domain.columns import Columns, Coordinate, check_names
from sfumato.domain.sparse import Sparse
from sfumato.errors import DataError, ParameterError
from sfumato.private.active import Entries, complete_active, cut_rows, rows_at_a_time
from sfumato.private.engines.sparse import SparseEngine
from sfumato.private.lists import read_entries
from sfumato.private.people import capped_rows
from sfumato.private.reading import DROP, column_of, read_names
from sfumato.private.sources.files import FileSource
from sfumato.private.sources.frames import FrameSource, is_lazy
from sfumato.private.sources.paths import Files
from sfumato.private.sources.spark import is_spark

Missing = Literal["error", "drop"]
HOLDER_CHUNKS = 16  # that are labelled together: each call of a prediction takes a while


class SparseRows(ABC):
    """A table of sparse rows."""

    sparse: Sparse  # with its number of columns
    missing: Missing

    @abstractmethod
    def engine(self, domain: Domain, *, with_active: bool = False) -> SparseEngine:
        """Engine over the rows, or over the rows and their active columns."""

    @abstractmethod
    def blocks(self) -> Iterator[FloatArray]:
        """Coordinates of all rows, with NaN where a row is incomplete."""

    @abstractmethod
    def check(self) -> None:
        """Raise if rows in memory are not what was declared."""


@dataclass(frozen=True, eq=False)
class CsrRows(SparseRows):
    """Rows of a SciPy CSR array. Its numbers are cast block by block."""

    starts: IntArray  # (n + 1,)
    columns: NDArray[Any]
    values: NDArray[Any]
    sparse: Sparse
    missing: Missing

    @classmethod
    def of(cls, X: Any, sparse: Sparse, missing: Missing) -> CsrRows:
        """The rows of any sparse array of SciPy. Refuses other types of numbers, and a damaged one."""
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise DataError(f"`X` must have two dimensions and real numbers, got {X.ndim} and {X.dtype}")
        X = X.tocsr()
        starts = np.asarray(X.indptr, dtype=np.int64)
        is_sound = len(starts) == X.shape[0] + 1 and starts[0] >= 0 and (np.diff(starts) >= 0).all()
        if not is_sound or starts[-1] > min(len(X.indices), len(X.data)):
            raise DataError("`X` must be a sound CSR array: its `indptr` does not match the rest")
        return cls(starts, X.indices, X.data, sparse.of_columns(int(X.shape[1])), missing)

    def engine(self, domain: Domain, *, with_active: bool = False) -> SparseEngine:
        """Engine over the rows."""
        return SparseEngine(
            self._chunks, self._cut, self.sparse, domain, self.missing, with_active, is_held=True
        )

    def blocks(self) -> Iterator[FloatArray]:
        """Coordinates of all rows, with NaN where a row is incomplete."""
        chunks = self._chunks(HOLDER_CHUNKS)
        return (self.sparse.coordinates(self._cut(chunk)) for chunk in chunks)

    def check(self) -> None:
        """Raise if a row is incomplete and must not be."""
        if self.missing == "error":
            for chunk in self._chunks():
                complete_active(self.sparse, self._cut(chunk), self.missing)

    def _chunks(self, n_chunks: int = 1) -> Iterator[tuple[int, int]]:
        n_rows, n_own = len(self.starts) - 1, rows_at_a_time(self.sparse, n_chunks)
        return ((first, min(first + n_own, n_rows)) for first in range(0, n_rows, n_own))

    def _cut(self, chunk: tuple[int, int]) -> FloatArray:
        first, last = chunk
        start, stop = int(self.starts[first]), int(self.starts[last])
        starts = self.starts[first : last + 1] - start
        columns = self.columns[start:stop].astype(np.int64)
        values = self.values[start:stop].astype(np.float64)
        known = np.ones(last - first, dtype=np.bool_)
        return cut_rows(self.sparse, Entries(starts[:-1], starts[1:], columns, values, known))


@dataclass(frozen=True, eq=False)
class ListRows(SparseRows):
    """Rows of a table with columns of lists, in memory or in Parquet or Feather files."""

    source: FrameSource | FileSource
    sparse: Sparse
    missing: Missing
    unit: Unit
    _columns: Columns = field(init=False)

    def __post_init__(self) -> None:
        if not self.sparse.list_names:
            raise ParameterError(
                "`lists` of `Sparse` must name the column that lists the active columns of each row, got "
                "None, for example Sparse(lists='tags', n_columns=1000)"
            )
        coordinates = tuple(Coordinate(name) for name in self.sparse.list_names)
        columns = Columns(coordinates, self.unit.column, self.missing, self.source.text)
        check_names(columns.source_names, self.source.names)
        object.__setattr__(self, "_columns", columns)

    def engine(self, domain: Domain, *, with_active: bool = False) -> SparseEngine:
        """Engine over the rows."""
        read = partial(cut_rows, self.sparse)
        if self.unit.column is None:
            return SparseEngine(self._chunks, read, self.sparse, domain, self.missing, with_active)
        n_own = rows_at_a_time(self.sparse)

        def capped() -> Iterator[FloatArray]:
            kept = self._capped
            return (kept[first : first + n_own] for first in range(0, len(kept), n_own))

        return SparseEngine(capped, lambda rows: rows, self.sparse, domain, self.missing, with_active)

    def blocks(self) -> Iterator[FloatArray]:
        """Coordinates of all rows, with NaN where a row is incomplete."""
        chunks = self._chunks(HOLDER_CHUNKS)
        return (self.sparse.coordinates(cut_rows(self.sparse, chunk)) for chunk in chunks)

    def check(self) -> None:
        """Raise if a column has another type or, in memory, if a row is incomplete and must not be."""
        if isinstance(self.source, FileSource):
            self._check_types(self.source.dataset.schema.empty_table())
        elif not is_lazy(self.source.frame):
            (table,) = self._batches()
            self._check_types(table.slice(0, 0))
            for chunk in self._chunks() if self.missing == "error" else ():
                complete_active(self.sparse, cut_rows(self.sparse, chunk), self.missing)

    def _check_types(self, empty: pa.Table) -> None:
        read_entries(self.sparse, empty)
        if self.unit.column is not None:
            read_names(self.unit.column, column_of(empty, self.unit.column), self.source.text)

    def _batches(self) -> Iterator[pa.RecordBatch | pa.Table]:
        if isinstance(self.source, FileSource):
            return self.source.batches(self._columns, values_per_row=2 * self.sparse.n_kept)
        return self.source.batches(self._columns)

    def _chunks(self, n_chunks: int = 1) -> Iterator[Entries]:
        for batch in self._batches():
            yield from read_entries(self.sparse, batch).chunks(rows_at_a_time(self.sparse, n_chunks))

    @cached_property
    def _capped(self) -> FloatArray:
        """Active columns of at most the allowed number of rows of each person."""
        return capped_rows(self._pairs(), self.unit.max_rows, 2 * self.sparse.n_kept)

    def _pairs(self) -> Iterator[tuple[pa.Array, FloatArray]]:
        unit = self.unit.column
        assert unit is not None
        for batch in self._batches():
            ids = read_names(unit, column_of(batch, unit), self.source.text)
            active = cut_rows(self.sparse, read_entries(self.sparse, batch))
            complete = complete_active(self.sparse, active, self.missing)
            known = ids.is_valid().to_numpy(zero_copy_only=False)
            if self.missing == "error" and not known.all():
                raise DataError(f"column {unit!r} must name a person in every row, got none. {DROP}")
            yield ids.filter(pa.array(known & complete)), active[known & complete]


def open_rows(X: Any, sparse: Sparse, missing: Missing, unit: Unit) -> SparseRows:
    """The sparse rows of a SciPy array, or of a table with lists."""
    if issparse(X):
        if unit.column is not None:
            raise ParameterError(
                f"`unit` must be None for a sparse array, which has no column that names people, got "
                f"{unit.column!r}. Use a table with lists: Sparse(lists='tags', n_columns=...)"
            )
        return CsrRows.of(X, sparse, missing)
    is_table = isinstance(X, pa.Table | pa.RecordBatch) or is_lazy(X) or hasattr(X, "columns")
    if isinstance(X, str | os.PathLike):
        files = Files.at(X)
        source: FrameSource | FileSource | None = None if files.kind == "text" else FileSource.at(files)
    elif isinstance(X, ds.Dataset):
        source = FileSource.of(X)
    else:
        source = FrameSource.of(X) if is_table and not is_spark(X) else None
    if source is None:
        raise ParameterError(
            "`X` must be a sparse array of SciPy, or a table with lists in memory or in Parquet or Feather "
            f"files, if `bounds` are `Sparse`, got {type(X).__name__}. Use scipy.sparse.csr_array(X) for an "
            "array"
        )
    return ListRows(source, sparse.of_columns(None), missing, unit)
