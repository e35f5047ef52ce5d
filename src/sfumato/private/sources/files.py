"""Tables in files with types: Parquet and Feather, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_

import pyarrow as pa
import pyarrow.dataset as ds

from sfumato.domain import Domain
from sfumato.domain.columns import Columns
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError, ParameterError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.files import FileEngine
from sfumato.private.reading import check_schema
from sfumato.private.sources.frames import TYPED, names_of, people_engine
from sfumato.private.sources.paths import Files, ticking
from sfumato.progress import reporter

BATCH_VALUES = 2**19  # per batch: 4 MB of numbers
READ_AHEAD = 4  # batches


@dataclass(frozen=True)
class FileSource:
    """A table in files. Before a fold, only the schema of the first file is read.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    files : Files, optional
        Where the files are. All must then have the columns and types of the first. A dataset built by the
        user decides for itself how its files are read.
    """

    dataset: ds.Dataset
    files: Files | None = None
    text: TextFormat = TYPED

    @classmethod
    def at(cls, files: Files) -> FileSource:
        """The table in some files. What folders say is text."""
        fragments = [fragment_of(files, path) for path in files.paths]
        try:
            schema = fragments[0].physical_schema
        except (pa.ArrowException, OSError):
            raise files.unreadable() from None
        files.check_in_path(names_of(schema))
        for name in files.in_path_names:
            schema = schema.append(pa.field(name, pa.string()))
        return cls(dataset_of(files, fragments, schema), files)

    @classmethod
    def of(cls, dataset: ds.Dataset) -> FileSource:
        """The table of a dataset that the user built."""
        extension = getattr(getattr(dataset, "format", None), "default_extname", "")
        if extension in ("csv", "json"):
            raise ParameterError(
                f"`X` must not be a dataset of {extension} files, whose types pyarrow guesses from rows. "
                "Give the path of CSV files, or sfumato.scan_csv(path)"
            )
        return cls(dataset)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return names_of(self.dataset.schema)

    def check_types(self, columns: Columns) -> None:
        """Raise if the schema shows a column of another type than declared."""
        in_path = set(self.files.in_path_names) if self.files else set()
        typed = tuple(c for c in (*columns.coordinates, *columns.described) if c.column not in in_path)
        unit = None if columns.unit in in_path else columns.unit
        check_schema(Columns(typed, unit, text=columns.text), self.dataset.schema)

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        return FileEngine(_Scan(self, columns).batches, columns, domain)

    def people(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        return people_engine(columns, _Scan(self, columns).batches(), domain)

    def batches(self, columns: Columns, values_per_row: int = 1) -> Iterator[pa.RecordBatch]:
        """Batches of the columns to be read, with fewer rows if a column has several values in each."""
        return _Scan(self, columns, values_per_row).batches()


def fragment_of(files: Files, path: str, row_groups: Sequence[int] | None = None) -> ds.Fragment:
    """A file, or some row groups of a Parquet file."""
    some = {} if row_groups is None else {"row_groups": row_groups}
    return _format(files).make_fragment(
        path, files.filesystem, partition_expression=_in_path(files, path), **some
    )


def dataset_of(files: Files, fragments: Sequence[ds.Fragment], schema: pa.Schema) -> ds.Dataset:
    """The table in some fragments."""
    return ds.FileSystemDataset(fragments, schema, _format(files), files.filesystem)


def _format(files: Files) -> ds.FileFormat:
    return ds.ParquetFileFormat() if files.kind == "parquet" else ds.IpcFileFormat()


def _in_path(files: Files, path: str) -> ds.Expression:
    """What the folders of a file say about its rows. Arrow then gives them these values."""
    known = dict.fromkeys(files.in_path_names) | files.in_path(path)
    given = [ds.field(n).is_null() if v is None else ds.field(n) == ds.scalar(v) for n, v in known.items()]
    return reduce(and_, given, ds.scalar(True))


@dataclass(frozen=True)
class _Scan:
    """The columns of a table in files, for repeated reading. All files are checked the first time."""

    source: FileSource
    columns: Columns
    values_per_row: int = 1

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of rows."""
        # The reporter is created here: threads have no listener of their own.
        return ticking(self._counted(), self._n_rows, reporter())

    def _counted(self) -> Iterator[tuple[pa.RecordBatch, int]]:
        for batch in scanned(self.source.dataset, self.columns.source_names, self.values_per_row):
            yield batch, batch.num_rows

    @cached_property
    def _n_rows(self) -> int:
        """Number of rows in all files, for the progress, or 0 if unknown. Raises if files do not match."""
        source = self.source
        return 0 if source.files is None else check_files(source.dataset, source.files, self.columns)


def scanned(dataset: ds.Dataset, names: Sequence[str], values_per_row: int = 1) -> Iterator[pa.RecordBatch]:
    """Batches of some columns of a dataset."""
    is_parquet = getattr(getattr(dataset, "format", None), "default_extname", None) == "parquet"
    scanner = dataset.scanner(
        columns=list(names),
        batch_size=max(1024, BATCH_VALUES // (len(names) * values_per_row)),
        batch_readahead=READ_AHEAD,
        fragment_readahead=1,
        fragment_scan_options=_STREAMED if is_parquet else None,
    )
    yield from scanner.to_batches()


# Without buffers for whole files: what is decoded is all that is held.
_STREAMED = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)


def check_files(dataset: ds.Dataset, files: Files, columns: Columns) -> int:
    """Check the columns and types of all files. Return their number of rows by the footers.

    Without the check, missing columns would be read as missing values, and other types would be cast.
    """
    n_rows = 0
    names = [name for name in columns.source_names if name not in files.in_path_names]
    for fragment in dataset.get_fragments():
        try:
            schema, count = fragment.physical_schema, fragment.count_rows()
        except (pa.ArrowException, OSError):
            schema = None
        if schema is None:
            raise files.unreadable()
        n_rows += count
        for name in names:
            expected = dataset.schema.field(name).type
            if name not in schema.names:
                raise DataError(
                    f"every file of {files.place!r} must have a column {name!r}, as the first has"
                )
            if schema.field(name).type != expected:
                raise DataError(
                    f"column {name!r} must be of type {expected} in every file of {files.place!r}, as in the "
                    f"first, got {schema.field(name).type}"
                )
    return n_rows
