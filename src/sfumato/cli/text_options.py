"""How a text file is written: options of the command, or a table ``[csv]`` in a file of bounds."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.domain.text import TextFormat, TextTable

TAB = "\t"
_TYPED = ("parquet", "pq", "feather", "arrow", "ipc")  # endings of files that state their types


def _option(kind: Any, help_: str, *names: str, metavar: str | None = None) -> Any:
    return Annotated[kind, typer.Option(*names, help=help_, metavar=metavar, rich_help_panel="Text files")]


OPTIONS: dict[str, Any] = {
    "delimiter": _option(str | None, "Character between values, e.g. --delimiter ';' or --delimiter tab."),
    "decimal": _option(str | None, "Decimal mark of numbers, e.g. --decimal ,"),
    "thousands": _option(str | None, "Mark between the thousands of numbers, e.g. --thousands ,"),
    "encoding": _option(str | None, "Encoding of the file, e.g. --encoding latin-1. By default UTF-8."),
    "quote": _option(str | None, "Character around values, e.g. --quote \"'\"; --quote '' for none."),
    "header": _option(
        bool | None,
        "Whether the first line has the names of the columns. With --no-header they are column1, column2 ... "
        "unless --names gives them; --header is the default unless it does.",
        "--header/--no-header",
    ),
    "names": _option(
        str | None,
        "Names of the columns of a file without a header, e.g. --names age,job. With --header they replace "
        "those in it.",
        metavar="A,B",
    ),
    "date_format": _option(
        list[str] | None,
        "Format of dates, e.g. --date-format %d.%m.%Y. By default ISO 8601. May be repeated.",
        metavar="FORMAT",
    ),
    "missing_values": _option(
        str | None,
        "What stands for a missing value, instead of the usual (nothing, NA, NaN, null, ...), e.g. "
        "--missing-values '?,-9'.",
        metavar="A,B",
    ),
}


def takes_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of text files. It receives those that were given in `written`."""
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters.values()
    kept = [part.replace(annotation=hints[part.name]) for part in own if part.name != "written"]
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, keyword, default=None, annotation=OPTIONS[name]) for name in OPTIONS]

    @functools.wraps(command)
    def with_options(*arguments: Any, **options: Any) -> None:
        given = {name: options.pop(name, None) for name in OPTIONS}
        written = {name: value for name, value in given.items() if value is not None and value != []}
        command(*arguments, **options, written=written)

    with_options.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    with_options.__annotations__ = {part.name: part.annotation for part in [*kept, *added]}
    return with_options


def check_keys(written: Mapping[str, Any], place: str) -> None:
    """Raise if a table of a TOML file has other keys than the options."""
    if unknown := sorted(set(written) - set(OPTIONS)):
        raise ParameterError(f"{place} must have only {', '.join(OPTIONS)}, got {', '.join(unknown)}")


def described(
    path: str, given: Mapping[str, Any], beside: Mapping[str, Any], base: TextFormat | None = None
) -> str | TextTable:
    """The table at a path, as the options describe it. The one place where they become a `TextTable`.

    Parameters
    ----------
    path : str
    given : mapping
        Options of the command line. They win, and are refused for files that are not text.
    beside : mapping
        Options from a file of bounds.
    base : TextFormat, optional
        What holds for other options: the format that a release remembers.
    """
    from sfumato.domain.text import TextTable, scan_csv

    if "://" not in path and not has_magic(path) and not Path(path).exists():
        raise ParameterError(
            f"DATA must be a file, a folder or a pattern, got {path!r}, which does not exist"
        )
    if _is_typed(path):
        if given:
            raise ParameterError(f"`--{min(given).replace('_', '-')}` must be given for text files only")
        return path
    settings = _settings({**beside, **given})
    if not settings:
        return path
    table = scan_csv(path, **settings)
    if base is None:
        return table
    changed = {*settings, "header"} if "names" in settings else settings
    return TextTable(path, replace(base, **{name: getattr(table.format, name) for name in changed}))


def as_options(settings: Mapping[str, Any]) -> str:
    """Parameters of `scan_csv` and of a fit, as the command line has them."""
    return " ".join(_as_option(name, value) for name, value in settings.items())


def _as_option(name: str, value: Any) -> str:
    if name == "header":
        return "--header" if value else "--no-header"
    if name == "dates":
        return " ".join(f"--date-format {shlex.quote(one)}" for one in value)
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={one}" for key, one in value.items())
    elif not isinstance(value, str):
        value = ",".join(value)
    return f"--{name} {'tab' if value == TAB else shlex.quote(value)}"


def _is_typed(path: str) -> bool:
    """Whether a path leads to files that state their types."""
    files = Path(path).rglob("*") if Path(path).is_dir() else [Path(path)]
    return any(file.suffix.lstrip(".").lower() in _TYPED for file in files)


def _settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of `scan_csv`."""
    found = dict(written)
    if found.get("delimiter") in ("tab", "\\t"):
        found["delimiter"] = TAB
    for name in ("names", "missing_values"):
        if isinstance(found.get(name), str):
            found[name] = [part.strip() for part in found[name].split(",")]
    if "date_format" in found:
        found["dates"] = found.pop("date_format")
    return found
