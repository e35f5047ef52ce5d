"""Texts beside the rows of a table: their terms can be counted by cluster and person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.curator.tables import Table
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.arrays import numbers
from sfumato.domain.columns import Columns, check_names
from sfumato.domain.partitions import Partition
from sfumato.domain.words import Tokens
from sfumato.errors import DataError, ParameterError
from sfumato.private.engines.terms import TermEngine
from sfumato.private.reading import DROP, column_of, complete_rows, read_coordinates, read_names
from sfumato.private.sources import Source, SparkSource, open_source
from sfumato.private.sources.sparse import SparseRows
from sfumato.private.terms import RawTerms, read_terms

Rows = NDArray[Any] | Source
_BLOCK = 2**14  # rows that are read at a time


def open_terms(
    texts: Any,
    rows: Table | Any,
    columns: Columns | None,
    domain: Domain,
    partition: Partition,
    tokens: Tokens,
) -> Table:
    """A table that can be asked for the terms of texts, by the clusters of rows. Reads no text.

    Parameters
    ----------
    texts : sequence
        One for each row, in their order.
    rows : Table, array or table with named columns
        An opened table, or the rows themselves.
    columns : Columns, optional
        How named columns are read.
    domain : Domain
        Of the release, with the privacy unit.
    partition : Partition
        The released clusters, in measured units.
    tokens : callable
        Gives the terms of one text, and looks at no other.
    """
    held, columns = _opened(rows, columns)
    if isinstance(held, SparkSource):
        raise ParameterError("texts cannot be matched with rows on Spark, which have no order. Collect them")
    listed = _listed(texts)
    if len(listed) != _n_rows(held, columns):
        raise DataError("`texts` must have one text for each row, got another number. Empty ones may be None")
    max_clusters = min(domain.unit.max_rows, partition.n_cells)

    def read() -> RawTerms:
        clusters, people = _clusters_and_people(held, columns, domain, partition)
        return read_terms(_as_list(listed), clusters, people, tokens)

    engine = TermEngine(domain.n_features, partition.n_cells, max_clusters, read)
    return Table(domain, columns, (), np.empty((0, domain.n_features)), lambda: engine)


def _opened(rows: Table | Any, columns: Columns | None) -> tuple[Rows, Columns | None]:
    if isinstance(rows, Table):
        if isinstance(rows._rows, SparseRows):
            raise ParameterError("sparse rows are described by their own columns: see `column_terms_`")
        return rows._rows, rows.columns
    if columns is None:
        return numbers(rows), None
    source = open_source(rows, columns.text)
    check_names(columns.source_names, source.names)
    return source, replace(columns, text=source.text)


def _listed(texts: Any) -> Any:
    """Something with a length and items. Types that cannot hold text are refused; no item is looked at."""
    if isinstance(texts, str | bytes) or not hasattr(texts, "__len__") or isinstance(texts, dict):
        raise ParameterError(f"`texts` must be a list or column of texts, got {type(texts).__name__}")
    kind = getattr(getattr(texts, "dtype", None), "kind", None)
    if kind in ("i", "u", "f", "c", "b", "m", "M"):
        raise ParameterError(f"`texts` must hold text, got {texts.dtype}")
    return texts


def _as_list(texts: Any) -> Sequence[object]:
    for method in ("to_pylist", "to_list", "tolist"):  # of Arrow, of pandas and polars, of NumPy
        if hasattr(texts, method):
            return list(getattr(texts, method)())
    return list(texts)


def _n_rows(rows: Rows, columns: Columns | None) -> int:
    if isinstance(rows, np.ndarray):
        return len(rows)
    assert columns is not None
    return sum(batch.num_rows for batch in rows.batches(columns))


def _clusters_and_people(
    rows: Rows, columns: Columns | None, domain: Domain, partition: Partition
) -> tuple[IntArray, IntArray | None]:
    """Cluster of each row, told by that row alone, and its person, if the table has a unit."""
    clusters, names = [np.empty(0, dtype=np.int64)], [pa.array([], pa.large_string())]
    for coordinates, people in _blocks(rows, columns):
        complete_rows(coordinates, columns.missing if columns else "drop")
        own = np.full(len(coordinates), -1, dtype=np.int64)
        own[domain.admits(coordinates)] = partition.index(domain.admitted(coordinates))
        clusters.append(own)
        names.append(people)
    if columns is None or columns.unit is None:
        return np.concatenate(clusters), None
    codes = pa.concat_arrays(names).dictionary_encode().indices.fill_null(-1)
    return np.concatenate(clusters), codes.to_numpy().astype(np.int64)


def _blocks(rows: Rows, columns: Columns | None) -> Iterator[tuple[FloatArray, pa.Array]]:
    nobody = pa.array([], pa.large_string())
    if isinstance(rows, np.ndarray):
        for start in range(0, len(rows), _BLOCK):
            yield np.ascontiguousarray(rows[start : start + _BLOCK], dtype=np.float64), nobody
        return
    assert columns is not None
    plain = replace(columns, described=())
    for batch in rows.batches(plain):
        people = nobody
        if columns.unit is not None:
            people = read_names(columns.unit, column_of(batch, columns.unit), columns.text)
            people = people.cast(pa.large_string())
            if columns.missing == "error" and people.null_count:
                raise DataError(f"column {columns.unit!r} must name a person in every row. {DROP}")
        yield read_coordinates(plain, batch), people
