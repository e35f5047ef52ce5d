"""How a command fails: one line on stderr, and an exit code for scripts."""

from __future__ import annotations

import functools
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import typer

from sfumato.errors import GuaranteeWarning, LedgerWarning, NoiseWarning, SfumatoError

UNEXPECTED = 70
INTERRUPTED, TERMINATED = 130, 143  # 128 and the number of the signal, as shells have it
CODES = {
    "ParameterError": 2,  # as typer has it
    "DataError": 3,
    "BudgetExceededError": 4,
    "LedgerError": 5,
    "ReleaseError": 6,
}

# Advice of the library for Python, and the same for the command line.
_OPTIONS = {
    "`X`": "DATA",
    "missing='drop'": "--missing drop",
    "bounds={'age': (0, 120), 'day': (date, date), 'kind': ['a', 'b']}": "--columns a,b or --bounds a.toml",
    "Ledger.create(path, dataset, total)": "`sfumato ledger create PATH DATASET --epsilon 2`",
    "`names` or header=False to `scan_csv`": "--names or --no-header",
    "`names` to `scan_csv`": "--names",
    "write max_parts_per_unit=1": "write --max-parts-per-unit 1",
    "`max_parts_per_unit`": "`--max-parts-per-unit`",
    "unit=Unit() protects each row, unit=Unit('patient') a": "--unit row protects each row, --unit patient a",
    "`unit` must be given with `parts_by`": "`--unit` must be given with --parts-by",
    "Ledger.create(..., unit=..., parts_by=..., parts=...)": "`sfumato ledger create ... --parts-by ...`",
    "max_holders_per_unit=1": "--max-holders-per-unit 1",
    "Give delta=1e-6": "Give --delta 1e-6",
    "scale='bounds'": "--scale bounds",
    "scale=None": "--scale none",
}
_PATTERNS = {
    r"sfumato\.scan_csv\(path, (\w+)=([^)]+)\)": r"--\1 \2",  # of an option with the same name
    r"Ledger\(path, ([^)]+)\)": r"--dataset \1",
    r"\b(center|size)_error=": r"--\1-error ",
    r"\bsmallest_cluster=": "--smallest-cluster ",
}

debugging: ContextVar[bool] = ContextVar("debugging", default=False)


class Terminated(BaseException):
    """The process was asked to end, by SIGTERM."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with its errors explained in one line."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with plain_warnings(), terminable():
                command(*arguments, **options)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except (KeyboardInterrupt, Terminated) as interrupt:
            notes = "; ".join(filter(None, getattr(interrupt, "__notes__", ())))
            say(f"interrupted: {notes}" if notes else "interrupted")
            raise typer.Exit(TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED) from None
        except Exception as error:
            code, line = explained(error)
            if debugging.get():
                traceback.print_exc()
            say(f"error: {line}")
            raise typer.Exit(code) from None

    return run


def explained(error: Exception) -> tuple[int, str]:
    """Exit code and line of an error. Leaves out messages of other libraries, which may quote data."""
    if isinstance(error, SfumatoError):
        return CODES.get(type(error).__name__, UNEXPECTED), _spelled(str(error))
    if isinstance(error, ImportError):
        return UNEXPECTED, str(error)
    if isinstance(error, OSError) and error.strerror:
        return UNEXPECTED, f"{error.filename or 'a file'}: {error.strerror}"
    hint = "`sfumato --debug ...` shows where; its output may contain data"
    return UNEXPECTED, f"unexpected {type(error).__name__}. {hint}"


def _spelled(message: str) -> str:
    """A message in one line, with advice for the command line."""
    line = " ".join(message.split())
    for code, option in _OPTIONS.items():
        line = line.replace(code, option)
    for pattern, option in _PATTERNS.items():
        line = re.sub(pattern, option, line)
    return line


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM, so that what was charged is said and noted, as after Ctrl-C."""

    def end(*_: object) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show our own warnings as lines. Show others, which may quote data, only when debugging."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say(f"warning: {_spelled(str(message))}")

    with warnings.catch_warnings():
        if not debugging.get():
            warnings.simplefilter("ignore")
        for shown in (GuaranteeWarning, LedgerWarning, NoiseWarning):
            warnings.simplefilter("always", shown)
        warnings.showwarning = show
        yield


def say(line: str) -> None:
    """Write a line to stderr."""
    print(line, file=sys.stderr)
