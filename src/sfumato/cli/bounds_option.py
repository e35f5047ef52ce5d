"""Options about columns: ``--bounds`` (numbers or a file), ``--missing``, ``--weights``, ``--describe``."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.cli.text_options import check_keys
from sfumato.errors import ParameterError

PRIVATE = "private"
# Tables in a file of bounds that are no columns: how text is written, what is described, texts for a report.
WRITTEN, DESCRIBE, LABELS = "csv", "describe", "labels"
KEYS = {"bounds", "levels", "cycle", "type"}  # one of them says what a column is
_BESIDE = {  # ... and what may stand beside it
    "bounds": {"unit", "missing", "format"},
    "levels": {"ordered", "missing"},
    "cycle": {"missing", "format"},
    "type": {"missing"},
}
BOOL, AUTO = "bool", "auto"
CYCLES = ("day", "week", "year")  # as in `domain.columns`, which would take a second to import
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
    describe : dict
        Bounds of columns that are only described.
    labels : dict
        Texts for columns in a report.
    """

    bounds: Any
    missing: dict[str, Any] = field(default_factory=dict)
    written: dict[str, Any] = field(default_factory=dict)
    describe: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


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
    path, found = _read_table(text)
    tables = {name: found.pop(name) for name in (WRITTEN, DESCRIBE, LABELS) if _is_table(found.get(name, []))}
    written, beside = tables.get(WRITTEN, {}), _as_tables(tables.get(DESCRIBE, {}))
    check_keys(written, f"[{WRITTEN}] in {path}")
    if _is_table(found.get("bounds", [])):
        raise ParameterError(
            f"{path} must have its columns at the top, got a table [bounds]. Write them above all tables and "
            f"delete the line [bounds], or take that table alone: --bounds {path}#bounds"
        )
    own = _as_tables(found)
    bounds = {name: _of_column(name, value) for name, value in own.items()}
    for name in columns or ():
        if name not in bounds:
            raise ParameterError(f"column {name!r} must have bounds in the file, which has {list(bounds)}")
    chosen = list(columns or bounds)
    described = {name: _of_column(name, value) for name, value in beside.items() if name not in chosen}
    for name, value in beside.items():
        if "missing" in value:
            raise ParameterError(
                f"column {name!r} must have no `missing` in [{DESCRIBE}]: missing values are counted as such"
            )
    used = [*(own[name] for name in chosen), *(beside[name] for name in described)]
    formats = [value["format"] for value in used if "format" in value]
    if formats:
        written = {**written, "date_format": list(dict.fromkeys([*formats, *_listed(written)]))}
    missing = {name: _stand_in(own[name]) for name in chosen if "missing" in own[name]}
    labels = _labels(tables.get(LABELS, {}), path, {*own, *beside})
    kept = {name: label for name, label in labels.items() if name in chosen or name in described}
    return Declared({name: bounds[name] for name in chosen}, missing, written, described, kept)


def _read_table(text: str) -> tuple[str, dict[str, Any]]:
    """Path of ``file.toml`` or ``file.toml#table``, and what is in it."""
    path, _, table = text.partition("#")
    content = read_toml(path)
    found = content.get(table) if table else content
    if not isinstance(found, dict):
        raise ParameterError(f"{path} must have a table {table!r}, got {list(content)}")
    return path, dict(found)


def _is_table(value: Any) -> bool:
    """Whether a table of a file of bounds is one of its own, and not a column of the same name."""
    return isinstance(value, dict) and not any(
        isinstance(value.get(key), list) or value.get(key) in (PRIVATE, BOOL, *CYCLES) for key in KEYS
    )


def _as_tables(columns: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is said about each column, as a table: ``[0, 120]`` is short for ``{ bounds = [0, 120] }``."""
    return {name: _as_table(value) for name, value in columns.items()}


def _as_table(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if _are_levels(value):
        return {"levels": value}
    if isinstance(value, list) and len(value) == 3 and isinstance(value[2], str):
        return {"bounds": value[:2], "unit": value[2]}
    return {"type" if value == BOOL else "bounds": value}


def _are_levels(value: Any) -> bool:
    """Whether a list names levels: ``["icu", "er"]``, but not two dates that should have no quotes."""
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        return False
    return len(value) != 2 or not all(map(_is_date, value))


def _is_date(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _of_column(name: str, value: dict[str, Any]) -> Any:
    """Bounds of a column, from its table in the file."""
    what = next((key for key in value if key in KEYS), "bounds")
    said = value.get(what)
    if set(value) <= {what, *_BESIDE[what]}:
        if what == "bounds" and isinstance(said, list) and len(said) == 2:
            if _is_empty(*said):
                raise ParameterError(
                    f"column {name!r} must have bounds [low, high] with low < high, got {said!r}"
                )
            return (*said, value["unit"]) if "unit" in value else tuple(said)
        if what == "levels" and value.get("ordered", False):
            return {"levels": said, "ordered": value["ordered"]}
        if what == "levels" and (isinstance(said, list) or said == PRIVATE):
            return said if isinstance(said, list) else {"levels": PRIVATE}
        if what == "cycle":
            return {"cycle": tuple(said) if isinstance(said, list) else said}
        if what == "type" and said == BOOL:
            return bool
    if not set(value) & KEYS:  # TOML has read `emp.rate = [0, 5]` as a table
        dotted = f"{name}.{next(iter(value), 'b')}"
        raise ParameterError(
            f"column {name!r} must have bounds, got {value!r}. If there is a dot in the name of the column, "
            f'write it in quotes: "{dotted}" = [0, 120]'
        )
    raise ParameterError(
        f"column {name!r} must have bounds [low, high], {{ bounds = [low, high], missing = value }}, "
        "{ bounds = [0, 40], unit = 'km' }, ['icu', 'er'], { levels = [...] }, "
        "{ levels = [...], ordered = true }, "
        f"{{ cycle = [0, 24] }}, {{ cycle = 'day' }} or {{ type = 'bool' }}, got {value!r}"
    )


def _is_empty(low: Any, high: Any) -> bool:
    """Whether no number or date is between two bounds. What else is wrong with them is found later."""
    are_numbers = all(isinstance(end, int | float) for end in (low, high))
    are_dates = type(low) is type(high) is datetime.date
    return (are_numbers or are_dates) and not low < high


def _stand_in(value: dict[str, Any]) -> Any:
    """Value that stands in for missing ones. That of a boolean is 0 or 1."""
    missing = value["missing"]
    return int(missing) if value.get("type") == BOOL and isinstance(missing, bool) else missing


def _labels(labels: Mapping[str, Any], path: str, known: set[str]) -> dict[str, str]:
    for name, text in labels.items():
        if name not in known or not isinstance(text, str):
            raise ParameterError(
                f"[{LABELS}] in {path} must have a text for each of some columns of the file, got {name!r}"
            )
    return dict(labels)


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
    declared = bounds.get(name) if isinstance(bounds, dict) else None
    levels = declared.get("levels", ()) if isinstance(declared, dict) else declared
    if isinstance(levels, list):
        return next((level for level in levels if str(level) == text), text)
    if levels == PRIVATE:
        return text
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    return int(value) if declared is bool and isinstance(value, bool) else value


def parse_weights(text: str | None) -> Any:
    """Weights of columns: ``age=2,job=0.5``, or one for each column of an array, ``1,2``."""
    if text is None:
        return None
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    try:
        numbers = [float(number) for _, _, number in pairs]
    except ValueError:
        numbers = []
    names = [name.strip() for name, _, _ in pairs if name.strip()]
    if not numbers or len(set(names)) not in (0, len(pairs)):
        raise ParameterError(
            f"`--weights` must be column=number, for each column once, got {text!r}. Try age=2"
        )
    return dict(zip(names, numbers, strict=True)) if names else numbers


def parse_profiles(text: str | None) -> Any:
    """Share of the budget for profiles, or ``auto``."""
    if text is None or text == AUTO:
        return AUTO
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"`--profiles` must be a share such as 0.2, 0 or auto, got {text!r}") from None


def parse_describe(text: str | None, declared: Declared, profiles: Any) -> Any:
    """Columns that are only described, with their bounds.

    Parameters
    ----------
    text : str, optional
        Names of columns, or a TOML file with their bounds. By default the columns of ``[describe]`` in the
        file of bounds.
    declared : Declared
        Has bounds of columns that are named. The levels of others are found by the fit.
    profiles : object
        Without a share for profiles, columns that only the file of bounds names are not described.
    """
    if text is None:
        return declared.describe if declared.describe and profiles != 0 else None
    clustered = declared.bounds if isinstance(declared.bounds, dict) else {}
    if text.partition("#")[0].endswith(".toml"):
        beside = _as_tables(_read_table(text)[1])
        return {name: _of_column(name, value) for name, value in beside.items() if name not in clustered}
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = {**{name: {"levels": PRIVATE} for name in names}, **declared.describe}
    return {name: found[name] for name in names if name not in clustered}
