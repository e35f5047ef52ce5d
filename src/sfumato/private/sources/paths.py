"""What all tables in files share: where the files are, what their folders say, and progress while reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from glob import glob, has_magic
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs

from sfumato.errors import DataError, ParameterError

KINDS = {"parquet": "parquet", "pq": "parquet", "feather": "feather", "arrow": "feather", "ipc": "feather"}
KINDS |= dict.fromkeys(("csv", "tsv", "tab", "txt"), "text")
_COMPRESSED = ("gz", "bz2", "zst")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# Reported one after the other, however many rows there are: a share of the rows read would tell their number.
_TICKS = tuple(i / 20 for i in range(1, 20))
T = TypeVar("T")


@dataclass(frozen=True)
class Files:
    """The files of a table.

    Parameters
    ----------
    place : str
        What the user gave: a file, a folder or a pattern. Messages quote nothing else, because the name of a
        folder may be a person's.
    paths : tuple of str
    kind : {"parquet", "feather", "text"}
    filesystem : pyarrow.fs.FileSystem
    root : str
        Folders below it may hold values of columns, as in ``day=1/part.parquet``.
    folders_say : bool
        Whether they do.
    """

    place: str
    paths: tuple[str, ...]
    kind: str
    filesystem: pa.fs.FileSystem
    root: str
    folders_say: bool = True

    @classmethod
    def at(cls, path: str | os.PathLike[str], kind: str | None = None) -> Files:
        """The files at a path, in a folder, or that match a pattern such as ``trips/*.parquet``.

        Their kind follows from their names unless it is given.
        """
        place = os.fspath(path)
        filesystem, root, paths = _listed(place)
        found = {kind or KINDS.get(_suffix(file)) for file in paths}
        if len(found) != 1 or None in found:
            suffixes = ", ".join(sorted({_suffix(file) for file in paths})) or "none"
            raise ParameterError(
                f"`X` must be a table, or a path to files of one kind ({', '.join(KINDS)}), got {place!r} "
                f"with files of kind: {suffixes}"
            )
        if not all(map(_is_utf8, paths)):
            raise DataError(f"the names of all files and folders of {place!r} must be in UTF-8: rename them")
        return cls(place, tuple(paths), str(found.pop()), filesystem, root)

    def in_path(self, path: str) -> dict[str, str | None]:
        """Values that the folders of a file give to columns, as text. None where a folder gives none."""
        if not self.folders_say:
            return {}
        folders = path.removeprefix(self.root).replace(os.sep, "/").split("/")[:-1]
        pairs = (folder.split("=", 1) for folder in folders if "=" in folder)
        return {unquote(name): None if value in ("", _NO_VALUE) else unquote(value) for name, value in pairs}

    @cached_property
    def in_path_names(self) -> list[str]:
        """Columns that folders hold."""
        return list(dict.fromkeys(name for path in self.paths for name in self.in_path(path)))

    def check_in_path(self, names: Iterable[str]) -> None:
        """Raise if a column is in the files and in the names of folders."""
        if both := set(names) & set(self.in_path_names):
            raise DataError(
                f"column {both.pop()!r} must be in the files or in the names of folders, not both"
            )

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(info.size or 0 for info in self.filesystem.get_file_info(list(self.paths)))

    def unreadable(self) -> DataError:
        """The error for a file that is damaged, without its path."""
        which = repr(self.place) if len(self.paths) == 1 else f"a file of {self.place!r}"
        return DataError(f"{which} could not be read: it is truncated, or not what its name says")


def ticking(
    batches: Iterator[tuple[pa.RecordBatch, int]], total: int, report: Callable[[float], Any]
) -> Iterator[pa.RecordBatch]:
    """Batches, with progress by the amount that each one brings."""
    done, ticks = 0, _TICKS
    for batch, amount in without_quotes(batches):
        yield batch
        done += amount
        while total and ticks and done >= ticks[0] * total:
            report(ticks[0])
            ticks = ticks[1:]
    for tick in ticks:
        report(tick)


def without_quotes(batches: Iterator[T]) -> Iterator[T]:
    """Batches that are read from files. Arrow's errors, which may quote values, are replaced."""
    try:
        yield from batches
        return
    except (pa.ArrowException, OSError, EOFError):
        pass
    raise DataError(
        "the files could not be read to the end: one is damaged, changed while it was read, or changes "
        "its types further down. No result was released, but the charge counts"
    )


def _listed(place: str) -> tuple[pa.fs.FileSystem, str, list[str]]:
    """File system, root and files of a place."""
    if "://" in place:
        filesystem, root = pa.fs.FileSystem.from_uri(place)
        if filesystem.get_file_info(root).type != pa.fs.FileType.Directory:
            return filesystem, "", [root]
        found = filesystem.get_file_info(pa.fs.FileSelector(root, recursive=True))
        files = [info.path for info in found if info.type == pa.fs.FileType.File]
        return filesystem, root, sorted(file for file in files if not _is_hidden(file))
    local = pa.fs.LocalFileSystem()
    if has_magic(place) and not Path(place).exists():
        return local, "", sorted(glob(place, recursive=True))  # noqa: PTH207
    if not Path(place).is_dir():
        return local, "", [place] if Path(place).exists() else []
    files = sorted(str(file) for file in Path(place).rglob("*") if file.is_file())
    return local, str(Path(place)), [file for file in files if not _is_hidden(file)]


def _is_hidden(file: str) -> bool:
    return Path(file).name.startswith((".", "_"))


def _is_utf8(path: str) -> bool:
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def _suffix(file: str) -> str:
    names = Path(file).name.lower().split(".")
    return names[-2] if names[-1] in _COMPRESSED and len(names) > 2 else names[-1]
