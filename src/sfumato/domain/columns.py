"""Which columns of a table are read, and how. Declarations only: nothing here reads a row."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

import numpy as np

from sfumato.domain.blocks import Block
from sfumato.domain.space import BOUNDS_HELP, LARGEST_BOUND, NARROWEST, Domain, Outside, Unit
from sfumato.domain.text import TextFormat
from sfumato.errors import ParameterError

Level = str | int | float | bool
Missing = Literal["error", "drop"] | Mapping[str, Any]

TICKS_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
MOST_SHOWN = 50  # names of columns in a message
_DATE = datetime.date | np.datetime64  # a datetime is a date


Kind = Literal["number", "date", "level", "other", "rank", "cycle", "code"]
Cycle = Literal["day", "week", "year"]
OTHER = "other"  # stands for the values of a category that are none of its levels
CYCLES = {"day": (0.0, 1.0), "week": (-3.0, 7.0), "year": (0.0, 365.2425)}  # first day and number of days


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a clustering and the column it is read from.

    Parameters
    ----------
    column : str
    kind : {"number", "date", "level", "other", "rank", "cycle", "code"}
        Numbers and booleans are used as they are. Dates and times become days since the start of 1970, in
        UTC. A level is 1 where the category has that level, and 0 elsewhere; "other" is 1 where it has none
        of `levels`. A rank is the place of the value among ordered `levels`. A cycle is the cosine or the
        sine of an angle. A code is the place of the value among `levels`, or their number for any other.
    level : str, int, float or bool, optional
        Of a level. Of a number, True if it is a boolean.
    fill : float, optional
        Coordinate of rows in which the column has no value. Without it, such rows are incomplete.
    levels : tuple
        Of "other", "rank" and "code": all levels of the column.
    period : tuple of float
        Of a cycle: where it starts and its length, in the units of the column, or in days.
    part : {"", "cos", "sin"}
        Of a cycle.
    is_time : bool
        Of a cycle: whether the column has dates and times.
    unit : str
        Unit of the column. Columns with the same unit are measured alike.
    """

    column: str
    kind: Kind = "number"
    level: Level | None = None
    fill: float | None = None
    levels: tuple[Level, ...] = ()
    period: tuple[float, ...] = ()
    part: Literal["", "cos", "sin"] = ""
    is_time: bool = False
    unit: str = ""

    def __str__(self) -> str:
        if self.kind == "cycle":
            return f"{self.column} ({self.part})"
        if self.kind == "other":
            return f"{self.column}={OTHER if OTHER not in self.levels else f'any {OTHER}'}"
        return f"{self.column}={self.level}" if self.kind == "level" else self.column

    @property
    def is_open(self) -> bool:
        """Whether it stands for a category of which no level is known."""
        return self.kind == "other" and not self.levels


@dataclass(frozen=True)
class Described:
    """A column that a profile tells about.

    Parameters
    ----------
    column : str
    kind : {"number", "date", "level", "cycle"}
    low, high : float
        Bounds of numbers and of dates, in days since the start of 1970; ends of a cycle.
    levels : tuple
        Levels of a category, without "other".
    ordered : bool
        Whether the levels have an order.
    unit : str
        Unit of a number; of a cycle of times "day", "week" or "year".
    """

    column: str
    kind: Literal["number", "date", "level", "cycle"] = "number"
    low: float = 0.0
    high: float = 1.0
    levels: tuple[Level, ...] = ()
    ordered: bool = False
    unit: str = ""


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
    described : tuple of Coordinate
        Columns that a profile tells about. They follow the coordinates, with NaN where a value is missing: no
        row is left out for them.
    """

    coordinates: tuple[Coordinate, ...]
    unit: str | None = None
    missing: Literal["error", "drop"] = "error"
    text: TextFormat = field(default_factory=TextFormat)
    described: tuple[Coordinate, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(str(coordinate) for coordinate in self.coordinates)

    @property
    def width(self) -> int:
        """Number of values that are read from a row."""
        return len(self.coordinates) + len(self.described)

    @property
    def source_names(self) -> list[str]:
        """Columns to read, each once, with the unit's column last."""
        names = [coordinate.column for coordinate in (*self.coordinates, *self.described)]
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
        A mapping chooses columns by name and gives each a tuple ``(low, high)`` of numbers or dates, also
        with a unit, ``(0, 40, "km")``; ``bool``; a list of levels, also as ``{"levels": [...]}``, with
        ``"ordered": True`` if they have an order; or a cycle, ``{"cycle": (0, 24)}`` of numbers or
        ``{"cycle": "day"}`` (``"week"``, ``"year"``) of times. With ``{"levels": "private"}`` a fit finds the
        levels. Anything else applies to all columns, which must then be numbers.
    names : sequence of str, optional
        Column names of the table, if known.
    unit : Unit
    missing : {"error", "drop"} or mapping
        A mapping gives columns the value that stands in for missing ones: a number, a date, a level, or
        "other" for none of the levels.
        Incomplete rows are then dropped.
    outside : {"clip", "drop"}
        What to do with rows outside the bounds.
    text : TextFormat, optional
        How text is read.
    """
    domain: Domain | None
    if getattr(bounds, "columns", ()):
        bounds = named_bounds(bounds)
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
    coordinates = [coordinate for coordinate, _, _ in limits]
    domain = Domain.from_bounds((low, high), len(limits), unit, outside)
    return coordinates, replace(domain, blocks=blocks_of(coordinates))


def blocks_of(coordinates: Sequence[Coordinate]) -> tuple[Block, ...]:
    """Coordinates of the same category, or of the same cycle."""
    blocks, start = [], 0
    for _, group in groupby(coordinates, lambda c: (c.column, c.kind if c.kind != "other" else "level")):
        own = list(group)
        if own[0].kind in ("level", "other", "cycle"):
            blocks.append(Block("disc" if own[0].kind == "cycle" else "simplex", start, start + len(own)))
        start += len(own)
    return tuple(blocks)


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


def _check_stand_in(coordinate: Coordinate, value: object, allowed: Sequence[Level | None]) -> None:
    if value not in allowed:
        also = f" or {OTHER!r}" if OTHER in allowed else ""
        raise ParameterError(
            f"`missing` of column {coordinate.column!r} must be one of its levels{also}, got {value!r}. Add "
            "it to the levels to give missing values a level of their own"
        )


def _fill(coordinate: Coordinate, value: object, levels: list[Level | None]) -> float:
    if coordinate.kind == "other":
        return 1.0  # less what the levels have
    if coordinate.kind == "level":
        _check_stand_in(coordinate, value, [*levels, OTHER])
        return float(coordinate.level == value)
    if coordinate.kind == "rank":
        _check_stand_in(coordinate, value, coordinate.levels)
        return float(coordinate.levels.index(value))
    if coordinate.kind == "cycle":
        return _on_cycle(coordinate, value)
    if coordinate.kind == "date" and isinstance(value, _DATE):
        return days(value)
    if coordinate.kind == "date" or isinstance(value, bool) or not isinstance(value, int | float):
        kind = "date" if coordinate.kind == "date" else "number"
        raise ParameterError(f"`missing` of column {coordinate.column!r} must be a {kind}, got {value!r}")
    if not math.isfinite(value):
        raise ParameterError(f"`missing` of column {coordinate.column!r} must be finite, got {value!r}")
    return float(value)


def named_bounds(bounds: object) -> dict[str, Any]:
    """Bounds by the name of a column; empty if they name none."""
    if named := getattr(bounds, "columns", ()):  # from `estimate_bounds` on named columns
        return dict(zip(named, zip(*bounds, strict=True), strict=True))  # type: ignore[misc]
    return dict(bounds) if isinstance(bounds, Mapping) else {}


def names_columns(bounds: object) -> bool:
    """Whether `bounds` name the columns they apply to."""
    return isinstance(bounds, Mapping) or len(getattr(bounds, "columns", ())) > 0


def days(date: _DATE) -> float:
    """Days from the start of 1970 to a date or time. Without a time zone, UTC is assumed."""
    if isinstance(date, datetime.datetime) and date.tzinfo is not None:
        date = date.astimezone(datetime.UTC).replace(tzinfo=None)
    ticks = np.array(date, dtype="datetime64[us]")
    return float("nan") if np.isnat(ticks) else float(ticks.astype(np.int64)) / TICKS_PER_DAY["us"]


def _limits(name: str, value: object) -> list[tuple[Coordinate, float, float]]:
    """Coordinates of a column, with their bounds."""
    if isinstance(value, Mapping):
        return _table_limits(name, value)
    if (found := getattr(value, "levels", None)) is not None:  # from `estimate_levels`
        return _category(name, list(found))
    if isinstance(value, list):
        return _category(name, _levels(name, value))
    if value is bool:
        return [(Coordinate(name, level=True), 0.0, 1.0)]
    if not isinstance(value, tuple) or len(value) not in (2, 3):
        raise ParameterError(
            f"`bounds` of column {name!r} must be a tuple (low, high) of numbers or dates, a list of levels, "
            f"bool, or a cycle, got {value!r}. {BOUNDS_HELP}"
        )
    unit = value[2] if len(value) == 3 else ""
    if not isinstance(unit, str):
        raise ParameterError(f"the unit of column {name!r} must be a text such as 'km', got {unit!r}")
    if all(isinstance(limit, _DATE) for limit in value[:2]):
        return [(Coordinate(name, "date", unit="days"), days(value[0]), days(value[1]))]
    try:
        return [(Coordinate(name, unit=unit), float(value[0]), float(value[1]))]
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"`bounds` of column {name!r} must be two numbers or two dates, got {value!r}"
        ) from None


def _table_limits(name: str, value: Mapping[Any, Any]) -> list[tuple[Coordinate, float, float]]:
    """Coordinates of a column that is declared by a mapping."""
    if set(value) == {"cycle"}:
        return _cycle(name, value["cycle"])
    levels, ordered = value.get("levels"), value.get("ordered", False)
    if not set(value) <= {"levels", "ordered"} or not isinstance(ordered, bool):
        raise ParameterError(
            f"`bounds` of column {name!r} must have 'levels', with 'ordered' if they are, or 'cycle', got "
            f"{dict(value)!r}"
        )
    if isinstance(levels, str) and levels == "private" and not ordered:  # found by the fit
        return _category(name, [])
    if (found := getattr(levels, "levels", None)) is not None:  # from `estimate_levels`
        levels = list(found)
    if not isinstance(levels, list):
        raise ParameterError(f"the levels of column {name!r} must be a list, got {levels!r}")
    if not ordered:
        return _category(name, _levels(name, levels))
    known = _levels(name, levels)
    if len(known) < 2:
        raise ParameterError(f"the ordered levels of column {name!r} must be two or more, got {levels!r}")
    return [(Coordinate(name, "rank", levels=tuple(known)), 0.0, float(len(known) - 1))]


def _category(name: str, levels: Sequence[Level]) -> list[tuple[Coordinate, float, float]]:
    """One coordinate for each level, and one for all other values."""
    return [(coordinate, 0.0, 1.0) for coordinate in category(Coordinate(name, "other"), levels)]


def category(other: Coordinate, levels: Sequence[Level]) -> list[Coordinate]:
    """Coordinates of a category, from that of other values."""
    of_levels = [replace(other, kind="level", level=level) for level in levels]
    return [*of_levels, replace(other, levels=tuple(levels))]


def _cycle(name: str, value: object) -> list[tuple[Coordinate, float, float]]:
    """Cosine and sine of a cycle of numbers or of times."""
    if isinstance(value, str) and value in CYCLES:
        period, is_time = CYCLES[value], True
        unit = value
    elif isinstance(value, tuple | list) and len(value) == 2 and _is_interval(value):
        period, is_time, unit = (float(value[0]), float(value[1]) - float(value[0])), False, ""
    else:
        raise ParameterError(
            f"the cycle of column {name!r} must be two numbers where it starts and ends, such as (0, 24), or "
            f"one of {', '.join(CYCLES)} for times, got {value!r}"
        )
    whole = Coordinate(name, "cycle", period=period, is_time=is_time, unit=unit)
    return [(replace(whole, part="cos"), -1.0, 1.0), (replace(whole, part="sin"), -1.0, 1.0)]


def _is_interval(pair: Sequence[Any]) -> bool:
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in pair):
        return False
    return bool(NARROWEST * max(map(abs, pair)) < pair[1] - pair[0] < LARGEST_BOUND)


def _on_cycle(coordinate: Coordinate, value: object) -> float:
    """Coordinate of a value that stands in for missing ones."""
    start, length = coordinate.period
    if coordinate.is_time and isinstance(value, _DATE):
        at = days(value)
    elif not coordinate.is_time and isinstance(value, int | float) and math.isfinite(value):
        at = float(value)
    else:
        kind = "time" if coordinate.is_time else "number"
        raise ParameterError(f"`missing` of column {coordinate.column!r} must be a {kind}, got {value!r}")
    angle = 2 * math.pi * ((at - start) / length)
    return math.cos(angle) if coordinate.part == "cos" else math.sin(angle)


def described_columns(bounds: Mapping[str, Any]) -> list[tuple[Coordinate, Described]]:
    """How the columns of a mapping like `bounds` are read and told about in a profile."""
    found = []
    for name, value in bounds.items():
        if value is bool:  # written as true and false, or as 1 and 0
            told = Described(name, "level", levels=(False, True))
            found.append((Coordinate(name, "code", levels=(0, 1)), told))
            continue
        own = _limits(name, value)
        first, low, high = own[0]
        if first.kind in ("level", "other"):
            levels = own[-1][0].levels
            found.append((Coordinate(name, "code", levels=levels), Described(name, "level", levels=levels)))
        elif first.kind == "rank":
            told = Described(name, "level", levels=first.levels, ordered=True)
            found.append((replace(first, kind="code"), told))
        elif first.kind == "cycle":
            start, length = first.period
            read = replace(first, part="")
            told = Described(name, "cycle", start, start + length, unit=first.unit)
            found.append((read, told))
        else:
            unit = "" if first.kind == "date" else first.unit
            found.append((first, Described(name, first.kind, low, high, unit=unit)))  # type: ignore[arg-type]
    return found


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
