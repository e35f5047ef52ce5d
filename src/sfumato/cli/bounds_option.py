"""The option ``--bounds``: numbers on the command line, or a file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.cli.text_options import check_keys
from sfumato.errors import ParameterError

PRIVATE = "private"
WRITTEN = "csv"  # the table in a file of bounds that says how text is written
_HELP = "Write --bounds 0,100 for all columns, or --bounds bounds.toml with a line per column: age = [0, 120]"


@dataclass(frozen=True)
class Declared:
    """What ``--bounds`` says about a table.

    Parameters
    ----------
    bounds : object
        Bounds for an estimator: one pair for all columns, or a mapping of the chosen columns.
    missing : dict
        Values to use where a column has none.
    written : dict
        How text is written: options of `text_options`.
    """

    bounds: Any
    missing: dict[str, Any] = field(default_factory=dict)
    written: dict[str, Any] = field(default_factory=dict)


def parse_bounds(text: str, columns: Sequence[str] | None) -> Declared:
    """Bounds of the chosen columns, and what a file of bounds says beside them.

    Parameters
    ----------
    text : str
        ``low,high``, a TOML file (``file.toml#table`` for one of its tables), or ``private``.
    columns : sequence of str, optional
    """
    if text == PRIVATE:
        if columns:
            raise ParameterError(
                "`--bounds private` must not be given with --columns: it takes all columns of a table. "
                "Use --estimate-bounds, which has its own budget"
            )
        return Declared(PRIVATE)
    if text.partition("#")[0].endswith(".toml"):
        return _from_file(text, columns)
    try:
        low, high = (float(number) for number in text.split(","))
    except ValueError:
        raise ParameterError(f"`--bounds` must be two numbers or a file, got {text!r}. {_HELP}") from None
    return Declared(dict.fromkeys(columns, (low, high)) if columns else (low, high))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Contents of a TOML file, or an error that names the file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{path} must be a TOML file, got: {error.strerror}") from None
    except ValueError as error:
        raise ParameterError(f"{path} must be a TOML file, got: {error}") from None


def _from_file(text: str, columns: Sequence[str] | None) -> Declared:
    path, _, table = text.partition("#")
    content = read_toml(path)
    found = content.get(table) if table else content
    if not isinstance(found, dict):
        raise ParameterError(f"{path} must have a table {table!r}, got {list(content)}")
    found = {name: value if isinstance(value, dict) else {"bounds": value} for name, value in found.items()}
    about = found.get(WRITTEN, {})
    written = {} if {"bounds", "levels"} & set(about) else found.pop(WRITTEN, {})
    check_keys(written, f"[{WRITTEN}] in {path}")
    bounds = {name: _of_column(name, value) for name, value in found.items()}
    for name in columns or ():
        if name not in bounds:
            raise ParameterError(f"column {name!r} must have bounds in the file, which has {list(bounds)}")
    chosen = list(columns or bounds)
    formats = [found[name]["format"] for name in chosen if "format" in found[name]]
    if formats:
        written = {**written, "date_format": list(dict.fromkeys([*formats, *_listed(written)]))}
    missing = {name: found[name]["missing"] for name in chosen if "missing" in found[name]}
    return Declared({name: bounds[name] for name in chosen}, missing, written)


def _of_column(name: str, value: dict[str, Any]) -> Any:
    """Bounds of a column, from its table in the file."""
    limits, levels = value.get("bounds"), value.get("levels")
    known = set(value) <= {"bounds", "levels", "missing", "format"} and (limits is None) != (levels is None)
    if known and isinstance(limits, list) and len(limits) == 2:
        return limits[0], limits[1]
    if known and (isinstance(levels, list) or levels == PRIVATE):
        return levels if isinstance(levels, list) else {"levels": PRIVATE}
    raise ParameterError(
        f"column {name!r} must have bounds [low, high], {{ bounds = [low, high], missing = value }}, or "
        f"{{ levels = [...] }}, got {value!r}"
    )


def _listed(written: dict[str, Any]) -> list[str]:
    formats = written.get("date_format", [])
    return [formats] if isinstance(formats, str) else formats


def parse_missing(text: str | None, declared: Declared) -> Any:
    """What to do about missing values: a word, or a value for each named column.

    Parameters
    ----------
    text : str, optional
        ``error``, ``drop`` or ``age=40,job=unknown``.
    declared : Declared
        Its values hold for columns that `text` does not name.
    """
    if text is None:
        return declared.missing or "error"
    if text in ("error", "drop"):
        return text
    if "=" not in text:
        raise ParameterError(f"`--missing` must be error, drop or column=value, got {text!r}")
    pairs = [pair.partition("=") for pair in text.split(",")]
    given = {name.strip(): _value(name.strip(), value.strip(), declared.bounds) for name, _, value in pairs}
    return {**declared.missing, **given}


def _value(name: str, text: str, bounds: Any) -> Any:
    """A value as its column has it: one of the levels, a number or a date, or else the text itself."""
    levels = bounds.get(name) if isinstance(bounds, dict) else None
    if isinstance(levels, list | dict):
        return next((level for level in levels if str(level) == text), text)
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
