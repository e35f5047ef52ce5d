"""Tables in text files. Every column is read as text, and each value is parsed for itself later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import pyarrow as pa

from sfumato.domain import Domain
from sfumato.domain.columns import Columns
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError, ParameterError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.files import FileEngine
from sfumato.private.records import decoded, first_record, split_records
from sfumato.private.sources.frames import people_engine
from sfumato.private.sources.paths import Files, ticking
from sfumato.progress import reporter

MOST_UNNAMED = 2**10  # columns that may be chosen by place, where no names tell how many there are
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class TextSource:
    """A table in text files. Before a fold, only the header is read, for the names.

    Parameters
    ----------
    files : Files
    text : TextFormat
    """

    files: Files
    text: TextFormat

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        own = self._names_in(self.files.paths[0])
        self.files.check_in_path(own)
        return [*own, *self.files.in_path_names]

    def check_types(self, columns: Columns) -> None:
        """Do nothing: text has no type, and what does not parse is missing."""

    def engine(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over the rows."""
        return FileEngine(partial(self.batches, columns), columns, domain)

    def people(self, columns: Columns, domain: Domain) -> Engine:
        """Engine over one row per person: that person's number of rows."""
        return people_engine(columns, self.batches(columns), domain)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Batches of the columns to be read, as text."""
        wanted = columns.source_names
        return ticking(self.sized(wanted, self.files.paths), self.files.n_bytes, reporter())

    def sized(self, wanted: list[str], paths: Iterable[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches of some columns of some of the files, as text, and the bytes that each one took."""
        for path in paths:
            names, in_path = self._names_in(path), self.files.in_path(path)
            here = [name for name in wanted if name not in self.files.in_path_names]
            if lacking := set(here) - set(names):
                raise DataError(
                    f"every file of {self.files.place!r} must have a column {lacking.pop()!r}, as the first "
                    "has"
                )
            with self._opened(path) as stream:
                chunks = decoded(stream.read, self.text.encoding)
                read = here or names[:1]  # to know the number of rows
                places = [names.index(name) for name in read]
                n_columns = len(names) if self.text.tells_names else None
                skip = self.text.header
                for arrays, n_bytes in split_records(chunks, self.text, n_columns, places):
                    values = dict(zip(read, (array[skip:] for array in arrays), strict=True))
                    yield _batch(values, in_path, wanted, len(arrays[0]) - skip), n_bytes
                    skip = False

    def first_line(self, path: str) -> list[str] | None:
        """Values of the first line of a file, or None if there is none."""
        try:
            with self._opened(path) as stream:
                return first_record(decoded(stream.read, self.text.encoding, 2**16), self.text)
        except (pa.ArrowException, OSError, EOFError):
            pass
        raise self.files.unreadable()

    def _names_in(self, path: str) -> list[str]:
        """Names of the columns of a file: as given, or from its header. No row is looked at."""
        if not self.text.header:
            return list(self.text.names or (f"column{i + 1}" for i in range(MOST_UNNAMED)))
        first = self.first_line(path)
        if first is None:
            raise DataError(
                f"{self.files.place!r} must have a first line with the names of the columns, got none"
            )
        if self.text.names:
            if len(self.text.names) != len(first):
                raise ParameterError(
                    f"`names` must name all {len(first)} columns, got {len(self.text.names)}"
                )
            return list(self.text.names)
        if any(_UNKNOWN in name for name in first):
            raise DataError(
                f"the first line must be in the encoding {self.text.encoding!r}, got other bytes. Give the "
                "encoding: sfumato.scan_csv(path, encoding='latin-1')"
            )
        if len(set(first)) < len(first):
            raise DataError(
                "the names in the first line must be distinct. If it is a row, give `names` or header=False "
                "to `scan_csv`"
            )
        return first

    def _opened(self, path: str) -> pa.NativeFile:
        return self.files.filesystem.open_input_stream(path)


def _batch(
    values: dict[str, pa.Array], in_path: dict[str, str | None], wanted: list[str], n_rows: int
) -> pa.RecordBatch:
    arrays = [
        values[name] if name in values else pa.repeat(pa.scalar(in_path.get(name), pa.large_string()), n_rows)
        for name in wanted
    ]
    return pa.record_batch(arrays, names=wanted)
