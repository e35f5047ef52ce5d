"""Which columns of a table are read, and how. Declarations only: nothing here reads a row."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from sfumato.domain.space import BOUNDS_HELP, Domain, Outside, Unit
from sfumato.domain.text import TextFormat
from sfumato.errors import ParameterError

Level = str | int | float | bool
Missing = Literal["error", "drop"] | Mapping[str, Any]

TICKS_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
MOST_SHOWN = 50  # names of columns in a message
_DATE = datetime.date | np.datetime64  # a datetime is a date


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a clustering and the column it is read from.

    Parameters
    ----------
    column : str
    kind : {"number", "date", "level"}
        Numbers and booleans are used as they are. Dates and times become days since the start of 1970, in
        UTC. A level is 1 where the category has that level, and 0 elsewhere.
    level : str, int, float or bool, optional
        Without it, the coordinate is 0 in every row: no level of the category is known yet.
    fill : float, optional
        Coordinate of rows in which the column has no value. Without it, such rows are incomplete.
    """

    column: str
    kind: Literal["number", "date", "level"] = "number"
    level: Level | None = None
    fill: float | None = None

    def __str__(self) -> str:
        if self.kind != "level":
            return self.column
        return f"{self.column}={'other' if self.level is None else self.level}"

    @property
    def is_open(self) -> bool:
        """Whether it stands for a category of which no level is known."""
        return self.kind == "level" and self.level is None


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read, and how. Each row is read on its own; nothing is learnt from others.

    Parameters
    ----------
    coordinates : tuple of Coordinate
    unit : str, optional
        Column that names the person.
    missing : {"error", "drop"}
        What to do with incomplete rows: those with a missing or infinite value that no `fill` stands in for.
    text : TextFormat
        How text is read.
    """

    coordinates: tuple[Coordinate, ...]
    unit: str | None = None
    missing: Literal["error", "drop"] = "error"
    text: TextFormat = field(default_factory=TextFormat)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(str(coordinate) for coordinate in self.coordinates)

    @property
    def source_names(self) -> list[str]:
        """Columns to read, each once, with the unit's column last."""
        names = [coordinate.column for coordinate in self.coordinates]
        return list(dict.fromkeys([*names, self.unit] if self.unit else names))


def read_bounds(
    bounds: object,
    names: Sequence[str] | None,
    unit: Unit,
    missing: Missing = "error",
    outside: Outside = "clip",
    text: TextFormat | None = None,
) -> tuple[Columns, Domain]:
    """Work out from `bounds` which columns are read, how, and between which limits.

    Parameters
    ----------
    bounds : mapping, (low, high) or Ball
        A mapping chooses columns by name and gives each a tuple ``(low, high)`` of numbers or dates, or a
        list of levels, also as ``{"levels": [...]}``. With ``{"levels": "private"}`` a fit finds the levels.
        Anything else applies to all columns, which must then be numbers.
    names : sequence of str, optional
        Column names of the table, if known.
    unit : Unit
    missing : {"error", "drop"} or mapping
        A mapping gives columns the value that stands in for missing ones: a number, a date or a level.
        Incomplete rows are then dropped.
    outside : {"clip", "drop"}
        What to do with rows outside the bounds.
    text : TextFormat, optional
        How text is read.
    """
    if named := getattr(bounds, "columns", ()):  # from `estimate_bounds` on named columns
        bounds = dict(zip(named, zip(*bounds, strict=True), strict=True))  # type: ignore[misc]
    domain: Domain | None
    if isinstance(bounds, Mapping):
        coordinates, domain = _named(bounds, unit, outside)
    elif text is not None and not text.tells_names:
        raise ParameterError(
            "`bounds` must name columns of a table without a header, for example {'column1': (0, 1)}, got "
            f"{bounds!r}. Or give its `names` to `scan_csv`"
        )
    else:
        chosen = [name for name in names or () if name != unit.column]
        check_spoken(chosen)
        coordinates = [Coordinate(name) for name in chosen]
        domain = Domain.from_bounds(bounds, len(chosen), unit, outside) if chosen else None
    filled = _filled(coordinates, missing)
    rule: Literal["error", "drop"] = "error" if missing == "error" else "drop"
    columns = Columns(tuple(filled), unit.column, rule, text or TextFormat())
    if names is not None:
        check_names(columns.source_names, names)
    if domain is None:
        raise ParameterError("the table must have at least one column besides `unit`")
    return columns, domain


def check_spoken(names: Iterable[str]) -> None:
    """Raise if a column's name is a number: it may be a value of the first row, and names are published."""
    if any(map(_is_number, names)):
        raise ParameterError(
            "the names of the columns must not be numbers: the first line of a file may be a row. If it is, "
            "give `names` or header=False to `scan_csv`; otherwise choose columns by name in `bounds`"
        )


def _is_number(name: object) -> bool:
    try:
        float(str(name).strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _named(bounds: Mapping[Any, Any], unit: Unit, outside: Outside) -> tuple[list[Coordinate], Domain]:
    if not bounds or not all(isinstance(name, str) for name in bounds):
        raise ParameterError(f"`bounds` must name at least one column, as a string, got {list(bounds)!r}")
    if unit.column in bounds:
        raise ParameterError(f"`bounds` must not include the `unit` column, got {unit.column!r}")
    limits = [limit for name, value in bounds.items() for limit in _limits(name, value)]
    low, high = [low for _, low, _ in limits], [high for _, _, high in limits]
    domain = Domain.from_bounds((low, high), len(limits), unit, outside)
    return [coordinate for coordinate, _, _ in limits], domain


def _filled(coordinates: list[Coordinate], missing: Missing) -> list[Coordinate]:
    """The coordinates, with the values that stand in for missing ones."""
    if isinstance(missing, str):
        return coordinates
    check_names(missing, [coordinate.column for coordinate in coordinates])
    levels: dict[str, list[Level | None]] = {}
    for coordinate in coordinates:
        levels.setdefault(coordinate.column, []).append(coordinate.level)
    return [
        replace(c, fill=_fill(c, missing[c.column], levels[c.column])) if c.column in missing else c
        for c in coordinates
    ]


def _fill(coordinate: Coordinate, value: object, levels: list[Level | None]) -> float:
    if coordinate.is_open:
        return 0.0
    if coordinate.kind == "level":
        if value not in levels:
            raise ParameterError(
                f"`missing` of column {coordinate.column!r} must be one of its levels, got {value!r}. Add it "
                "to the levels to give missing values a level of their own"
            )
        return float(coordinate.level == value)
    if coordinate.kind == "date" and isinstance(value, _DATE):
        return days(value)
    if coordinate.kind == "date" or isinstance(value, bool) or not isinstance(value, int | float):
        kind = "date" if coordinate.kind == "date" else "number"
        raise ParameterError(f"`missing` of column {coordinate.column!r} must be a {kind}, got {value!r}")
    if not math.isfinite(value):
        raise ParameterError(f"`missing` of column {coordinate.column!r} must be finite, got {value!r}")
    return float(value)


def names_columns(bounds: object) -> bool:
    """Whether `bounds` name the columns they apply to."""
    return isinstance(bounds, Mapping) or len(getattr(bounds, "columns", ())) > 0


def days(date: _DATE) -> float:
    """Days from the start of 1970 to a date or time. Without a time zone, UTC is assumed."""
    if isinstance(date, datetime.datetime) and date.tzinfo is not None:
        date = date.astimezone(datetime.UTC).replace(tzinfo=None)
    ticks = np.array(date, dtype="datetime64[us]")
    return float("nan") if np.isnat(ticks) else float(ticks.astype(np.int64)) / TICKS_PER_DAY["us"]


def _limits(name: str, value: object) -> Iterable[tuple[Coordinate, float, float]]:
    if isinstance(value, Mapping) and set(value) == {"levels"}:
        value = value["levels"]
        if isinstance(value, str) and value == "private":  # found by the fit
            return [(Coordinate(name, "level"), 0.0, 1.0)]
    if (found := getattr(value, "levels", None)) is not None:  # from `estimate_levels`
        return _limits(name, {"levels": list(found) or "private"})
    if isinstance(value, list):
        return [(Coordinate(name, "level", level), 0.0, 1.0) for level in _levels(name, value)]
    if not isinstance(value, tuple) or len(value) != 2:
        raise ParameterError(
            f"`bounds` of column {name!r} must be a tuple (low, high) of numbers or dates, or a list of "
            f"levels, got {value!r}. {BOUNDS_HELP}"
        )
    if all(isinstance(limit, _DATE) for limit in value):
        return [(Coordinate(name, "date"), days(value[0]), days(value[1]))]
    try:
        return [(Coordinate(name), float(value[0]), float(value[1]))]
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"`bounds` of column {name!r} must be two numbers or two dates, got {value!r}"
        ) from None


def _levels(name: str, levels: list[Any]) -> list[Level]:
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    if not plain or not all(isinstance(level, Level) for level in plain) or len(set(plain)) < len(plain):
        raise ParameterError(
            f"the levels of column {name!r} must be distinct strings, numbers or booleans, got {levels!r}"
        )
    return plain


def check_names(wanted: Iterable[str], names: Sequence[str]) -> None:
    """Raise if the table lacks one of the wanted columns."""
    for name in wanted:
        if name in names:
            continue
        check_spoken(names)  # the message repeats the names
        hint = ""
        if len(names) == 1 and (marks := [mark for mark in ";\t|" if mark in names[0]]):
            hint = f". If {marks[0]!r} stands between values: sfumato.scan_csv(path, delimiter={marks[0]!r})"
        shown = ", ".join([*names[:MOST_SHOWN], *["..."] * (len(names) > MOST_SHOWN)])
        raise ParameterError(f"column {name!r} must be in the table, which has {shown}{hint}")
