"""Which columns of a table are read, and how. Declarations only: nothing here reads a row."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.domain.space import BOUNDS_HELP, Domain, Unit
from sfumato.errors import ParameterError

Missing = Literal["error", "drop"]
Level = str | int | float | bool

TICKS_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
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
    """

    column: str
    kind: Literal["number", "date", "level"] = "number"
    level: Level | None = None

    def __str__(self) -> str:
        return self.column if self.kind != "level" else f"{self.column}={self.level}"


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read, and how. Each row is read on its own; nothing is learnt from others.

    Parameters
    ----------
    coordinates : tuple of Coordinate
    unit : str, optional
        Column that names the person.
    missing : {"error", "drop"}
        What to do with rows that have a missing or infinite value.
    """

    coordinates: tuple[Coordinate, ...]
    unit: str | None = None
    missing: Missing = "error"

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
    bounds: object, names: Sequence[str] | None, unit: Unit, missing: Missing = "error"
) -> tuple[Columns, Domain]:
    """Work out from `bounds` which columns are read, how, and between which limits.

    Parameters
    ----------
    bounds : mapping, (low, high) or Ball
        A mapping chooses columns by name and gives each a tuple ``(low, high)`` of numbers or dates, or a
        list of levels. Anything else applies to all columns, which must then be numbers.
    names : sequence of str, optional
        Column names of the table, if known.
    unit : Unit
    missing : {"error", "drop"}
    """
    if named := getattr(bounds, "columns", ()):  # from `estimate_bounds` on named columns
        bounds = dict(zip(named, zip(*bounds, strict=True), strict=True))  # type: ignore[misc]
    if not isinstance(bounds, Mapping):
        chosen = [name for name in names or () if name != unit.column]
        columns = Columns(tuple(Coordinate(name) for name in chosen), unit.column, missing)
        _check_columns(columns, names)
        return columns, Domain.from_bounds(bounds, len(chosen), unit)
    if not bounds or not all(isinstance(name, str) for name in bounds):
        raise ParameterError(f"`bounds` must name at least one column, as a string, got {list(bounds)!r}")
    if unit.column in bounds:
        raise ParameterError(f"`bounds` must not include the `unit` column, got {unit.column!r}")
    limits = [limit for name, value in bounds.items() for limit in _limits(name, value)]
    columns = Columns(tuple(coordinate for coordinate, _, _ in limits), unit.column, missing)
    _check_columns(columns, names)
    low, high = [low for _, low, _ in limits], [high for _, _, high in limits]
    return columns, Domain.from_bounds((low, high), len(limits), unit)


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
        if name not in names:
            raise ParameterError(f"column {name!r} must be in the table, which has {', '.join(names)}")


def _check_columns(columns: Columns, names: Sequence[str] | None) -> None:
    if names is None:
        return
    check_names(columns.source_names, names)
    if not columns.coordinates:
        raise ParameterError("the table must have at least one column besides `unit`")
