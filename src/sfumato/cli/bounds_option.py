"""The option ``--bounds``: numbers on the command line, or a file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import ParameterError

PRIVATE = "private"
_HELP = "Write --bounds 0,100 for all columns, or --bounds bounds.toml with a line per column: age = [0, 120]"


def parse_bounds(text: str, columns: Sequence[str] | None) -> Any:
    """Bounds for an estimator: one pair for all columns, or a mapping of the chosen columns.

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
        return PRIVATE
    if text.partition("#")[0].endswith(".toml"):
        return _chosen(_from_file(text), columns)
    try:
        low, high = (float(number) for number in text.split(","))
    except ValueError:
        raise ParameterError(f"`--bounds` must be two numbers or a file, got {text!r}. {_HELP}") from None
    return dict.fromkeys(columns, (low, high)) if columns else (low, high)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Contents of a TOML file, or an error that names the file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"{path} must be a TOML file, got: {error.strerror}") from None
    except ValueError as error:
        raise ParameterError(f"{path} must be a TOML file, got: {error}") from None


def _from_file(text: str) -> dict[str, Any]:
    path, _, table = text.partition("#")
    content = read_toml(path)
    found = content.get(table) if table else content
    if not isinstance(found, dict):
        raise ParameterError(f"{path} must have a table {table!r}, got {list(content)}")
    return {name: _of_column(name, value) for name, value in found.items()}


def _of_column(name: str, value: Any) -> tuple[Any, Any] | list[Any]:
    if isinstance(value, list) and len(value) == 2:
        return value[0], value[1]
    if isinstance(value, dict) and set(value) == {"levels"} and isinstance(value["levels"], list):
        return value["levels"]
    raise ParameterError(
        f"bounds of column {name!r} must be [low, high] or {{ levels = [...] }}, got {value!r}"
    )


def _chosen(bounds: dict[str, Any], columns: Sequence[str] | None) -> dict[str, Any]:
    for name in columns or ():
        if name not in bounds:
            raise ParameterError(f"column {name!r} must have bounds in the file, which has {list(bounds)}")
    return {name: bounds[name] for name in columns or bounds}
