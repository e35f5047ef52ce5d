"""Tables in files: Parquet, CSV and Feather, read by pyarrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from sfumato.domain import Domain
from sfumato.domain.columns import Columns, Missing
from sfumato.errors import DataError, ParameterError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.files import FileEngine
from sfumato.private.sources.frames import check_schema, names_of, people_engine
from sfumato.progress import reporter

BATCH_VALUES = 2**19  # per batch: 4 MB of numbers
# Reported one after the other, however many rows there are: a share of the rows read would tell their number.
_TICKS = tuple(i / 20 for i in range(1, 20))
READ_AHEAD = 4  # batches
FORMATS = {
    "parquet": "parquet",
    "pq": "parquet",
    "csv": "csv",
    "feather": "feather",
    "arrow": "feather",
    "ipc": "feather",
}


@dataclass(frozen=True)
class FileSource:
    """A table in files. Before a fold, only the schema of the first file is read.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    strict : bool
        Whether all files must have the columns and types of the first. A dataset built by the user decides
        for itself how its files are read.
    """

    dataset: ds.Dataset
    strict: bool = False

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> FileSource:
        """The table in a file, a folder, or the files that match a pattern such as ``trips/*.parquet``."""
        return cls(open_dataset(path), strict=True)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return names_of(self.dataset.schema)

    def check_types(self, columns: Columns) -> None:
        """Raise if the schema shows a column of another type than declared."""
        check_schema(columns, self.dataset.schema)

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        return FileEngine(_Scan(self, columns).batches, columns, domain)

    def people(self, unit: str, missing: Missing, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        columns = Columns((), unit, missing)
        return people_engine(columns, _Scan(self, columns).batches(), domain)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Batches of the columns to be read."""
        return _Scan(self, columns).batches()


@dataclass(frozen=True)
class _Scan:
    """The columns of a table in files, for repeated reading. All files are checked the first time."""

    source: FileSource
    columns: Columns

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of rows. Arrow's error messages may quote values, so they are replaced."""
        return self._read(self._n_rows, reporter())  # created here: threads have no listener of their own

    def _read(self, n_rows: int, report: Callable[[float], None]) -> Iterator[pa.RecordBatch]:
        done, ticks = 0, _TICKS
        try:
            for batch in self._scanner().to_batches():
                yield batch
                done += batch.num_rows
                while n_rows and ticks and done >= ticks[0] * n_rows:
                    report(ticks[0])
                    ticks = ticks[1:]
            for tick in ticks:
                report(tick)
            return
        except (pa.ArrowException, OSError):
            pass
        raise DataError(
            "the files could not be read to the end: one is damaged, changed while it was read, or changes "
            "its types further down. No result was released, but the charge counts"
        )

    def _scanner(self) -> ds.Scanner:
        dataset, names = self.source.dataset, self.columns.source_names
        if self.source.strict:
            dataset = _readable(dataset, self.columns)
        is_parquet = getattr(getattr(dataset, "format", None), "default_extname", None) == "parquet"
        return dataset.scanner(
            columns=names,
            batch_size=max(1024, BATCH_VALUES // len(names)),
            batch_readahead=READ_AHEAD,
            fragment_readahead=1,
            fragment_scan_options=_STREAMED if is_parquet else None,
        )

    @cached_property
    def _n_rows(self) -> int:
        """Number of rows in all files, for the progress, or 0 if unknown. Raises if files do not match."""
        return _check_files(self.source.dataset, self.columns) if self.source.strict else 0


# Without buffers for whole files: what is decoded is all that is held.
_STREAMED = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)


def open_dataset(path: str | os.PathLike[str]) -> ds.Dataset:
    """Dataset of a file, a folder, or the files that match a pattern such as ``trips/*.parquet``.

    Only the schema of the first file is read.
    """
    place = os.fspath(path)
    source: str | list[str] = sorted(glob(place, recursive=True)) if has_magic(place) else place  # noqa: PTH207
    files = _files(source)
    kinds = {FORMATS.get(_suffix(file)) for file in files}
    if not files or None in kinds or len(kinds) > 1:
        found = ", ".join(sorted({_suffix(file) for file in files})) or "none"
        raise ParameterError(
            f"`X` must be a table, or a path to files of one kind ({', '.join(FORMATS)}), got {place!r} with "
            f"files of kind: {found}"
        )
    kind = kinds.pop()
    try:
        return ds.dataset(source, format=_CSV if kind == "csv" else kind, partitioning="hive")
    except (pa.ArrowException, OSError):
        pass
    raise DataError(f"{files[0]} could not be read: it is truncated, or not what its name says")


_CSV = ds.CsvFileFormat(convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True))


def _files(source: str | list[str]) -> list[str]:
    if isinstance(source, list) or "://" in source:
        return [source] if isinstance(source, str) else source
    if not Path(source).is_dir():
        return [source] if Path(source).exists() else []
    files = sorted(file for file in Path(source).rglob("*") if file.is_file())
    return [str(file) for file in files if not file.name.startswith((".", "_"))]


def _suffix(file: str) -> str:
    names = Path(file).name.lower().split(".")
    return names[-2] if names[-1] in ("gz", "bz2", "zst") and len(names) > 2 else names[-1]


def _readable(dataset: ds.FileSystemDataset, columns: Columns) -> ds.Dataset:
    """The dataset, with types that do not depend on the first rows of CSV files.

    All numbers are floats. People are identified by the text as written: "7" and "007" are two.
    """
    schema = dataset.schema
    if dataset.format.default_extname != "csv":
        return dataset
    wanted = {"number": pa.float64(), "date": pa.timestamp("us"), "level": pa.string()}
    for coordinate in columns.coordinates:
        place = schema.get_field_index(coordinate.column)
        found = schema.field(place)
        if pa.types.is_null(found.type) or (coordinate.kind == "number" and pa.types.is_integer(found.type)):
            schema = schema.set(place, found.with_type(wanted[coordinate.kind]))
    if columns.unit is not None and columns.unit not in _in_path(next(dataset.get_fragments())):
        place = schema.get_field_index(columns.unit)
        schema = schema.set(place, schema.field(place).with_type(pa.string()))
    return ds.FileSystemDataset(list(dataset.get_fragments()), schema, dataset.format, dataset.filesystem)


def _in_path(fragment: ds.Fragment) -> dict[str, Any]:
    """Columns encoded in folder names."""
    found: dict[str, Any] = ds.get_partition_keys(fragment.partition_expression)
    return found


def _check_files(dataset: ds.Dataset, columns: Columns) -> int:
    """Check the columns and types of all files. Return their number of rows by the footers, or 0 if unknown.

    Without the check, missing columns would be read as missing values, and other types would be cast.
    """
    is_csv = dataset.format.default_extname == "csv"
    n_rows = 0
    for fragment in dataset.get_fragments():
        try:
            schema, count = fragment.physical_schema, 0 if is_csv else fragment.count_rows()
        except (pa.ArrowException, OSError):
            schema = None
        if schema is None:
            raise DataError(f"{fragment.path} could not be read: it is truncated, or not what its name says")
        n_rows += count
        in_path = _in_path(fragment)
        for name in (name for name in columns.source_names if name not in in_path):
            expected = dataset.schema.field(name).type
            if name not in schema.names:
                raise DataError(f"{fragment.path} must have a column {name!r}, as the first file has")
            if not is_csv and schema.field(name).type != expected:
                raise DataError(
                    f"column {name!r} of {fragment.path} must be of type {expected}, as in the first file, "
                    f"got {schema.field(name).type}"
                )
    return n_rows
