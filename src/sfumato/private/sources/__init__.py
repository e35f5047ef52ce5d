"""Kinds of tables, one file each. A source knows the names, types and batches of its table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sfumato.domain import Domain
from sfumato.domain.columns import Columns
from sfumato.domain.on_spark import TableOnSpark
from sfumato.domain.text import TextFormat, TextTable, default_delimiter
from sfumato.errors import ParameterError
from sfumato.private.engines.base import Engine
from sfumato.private.sources.files import FileSource
from sfumato.private.sources.frames import FrameSource, is_lazy
from sfumato.private.sources.paths import Files
from sfumato.private.sources.spark import OnSpark, SparkFiles, SparkSource, is_spark
from sfumato.private.sources.text import TextSource

__all__ = ["FileSource", "FrameSource", "OnSpark", "Source", "SparkFiles", "SparkSource", "TextSource"]
__all__ += ["is_outside", "open_source"]


class Source(Protocol):
    """A table with named columns."""

    @property
    def text(self) -> TextFormat:
        """How text in it is read."""

    @property
    def names(self) -> list[str]:
        """Names of the columns. For files, reads the schema or the first line of the first."""

    def check_types(self, columns: Columns) -> None:
        """Raise if the schema shows a column of another type than declared."""

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""

    def people(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch | pa.Table]:
        """Batches with at least the columns to be read."""


def is_outside(X: object) -> bool:
    """Whether the table is in files, on Spark or a plan of polars: it has named columns, but no rows here."""
    known = isinstance(X, str | os.PathLike | ds.Dataset | TextTable | TableOnSpark)
    return known or is_spark(X) or is_lazy(X)


def open_source(X: Any, text: TextFormat | None = None) -> Source:
    """Source of a table with named columns. Text files are read by `text` unless `X` says how."""
    if is_spark(X):
        return SparkSource(X)
    if isinstance(X, TableOnSpark):
        source = open_source(X.table, text)
        assert isinstance(source, FileSource | TextSource)
        return SparkFiles(source, X.spark)
    if isinstance(X, ds.Dataset):
        return FileSource.of(X)
    if isinstance(X, TextTable):
        return TextSource(Files.at(X.path, "text"), X.format)
    if isinstance(X, str | os.PathLike):
        files = Files.at(X)
        if files.kind == "text":
            return TextSource(files, text or TextFormat(default_delimiter(files.paths[0])))
        return FileSource.at(files)
    if isinstance(X, np.ndarray) or not (
        isinstance(X, pa.RecordBatch) or is_lazy(X) or hasattr(X, "columns")
    ):
        raise ParameterError(
            f"`X` must have named columns if `unit` or `bounds` name columns, got {type(X).__name__}. Use a "
            "data frame, an Arrow table, a path to files, or a Spark data frame"
        )
    return FrameSource.of(X)
