"""Files that a command writes: never over others unasked, and whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_new(*paths: Path | None, force: bool) -> None:
    """Refuse places that cannot be written, or that hold a file already, before anything is spent."""
    from sfumato.errors import ParameterError

    given = [path for path in paths if path is not None]
    if len({path.absolute() for path in given}) < len(given):
        raise ParameterError(f"the files to write must differ, got {given[0]} twice")
    for path in given:
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ParameterError(f"{path} must be a file in a folder that exists. Create the folder first")
        if not os.access(path.absolute().parent, os.W_OK):
            raise ParameterError(f"{path} must be in a folder that can be written. Choose another")
        if path.exists() and not force:
            raise ParameterError(f"{path} exists already. Choose another name, or overwrite it with --force")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to, which becomes `path` if all goes well. Only the user may read it."""
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
