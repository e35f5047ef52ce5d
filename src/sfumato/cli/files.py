"""Files that a command writes. It overwrites no file unless it is told to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from sfumato.errors import ParameterError

_TRIAL = bytes(1_000_000)  # more than most releases and reports


def check_new(*paths: Path | None, force: bool) -> None:
    """Refuse paths that cannot be written or exist already, before anything is spent."""
    given = [path for path in paths if path is not None]
    if len({path.absolute() for path in given}) < len(given):
        raise ParameterError(f"the files to write must differ, got {given[0]} twice")
    for path in given:
        if not path.absolute().parent.is_dir() or (path.exists() and not path.is_file()):
            raise ParameterError(f"{path} must be a file in a folder that exists. Create the folder first")
        if path.exists() and not force:
            raise ParameterError(f"{path} exists already. Choose another name, or overwrite it with --force")
        try:
            _write_trial(path.absolute().parent)
        except OSError as error:
            raise ParameterError(
                f"{path} must be in a folder that can be written, got: {error.strerror}. Choose another"
            ) from None


def _write_trial(folder: Path) -> None:
    """Fill an unnamed temporary file. It fails where rights, space or quotas are missing."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(_TRIAL)
        file.flush()
        os.fsync(file.fileno())
