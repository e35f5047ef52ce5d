"""The columns behind the coordinates of a release, and their values in words.

A category has one coordinate for each level and a cycle has two, but to a reader each is one column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import numpy as np

from sfumato.domain import FloatArray
from sfumato.domain.columns import CYCLES, Coordinate, Described
from sfumato.public.intervals import half_widths
from sfumato.public.profiles.wording import on_cycle
from sfumato.release import Release

Kind = Literal["number", "flag", "date", "category", "rank", "cycle"]

UNREADABLE = 0.25  # of a column's width: a number that noise may move further is not shown as a number
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
OTHER = "other"
_HOURS = 24.0
_FINE = 20.0  # days between bounds below which times of day are written
_MOST_LEVELS = 3  # named in words
_LEAST_SHARE = 0.01  # of a level named in words
_GATHERED = 0.3  # length of the mean direction of a cycle from which its values lie on one side
_CLOCK = (0.0, 24.0)  # numbers that are times of day


@dataclass(frozen=True)
class Column:
    """A column of the table that was clustered by.

    Parameters
    ----------
    name : str
        As it is shown.
    source : str
        As the table has it.
    kind : {"number", "flag", "date", "category", "rank", "cycle"}
        A flag is true or false.
    at : tuple of int
        Its coordinates: several for a category, two for a cycle.
    low, high : float
        Bounds of its first coordinate.
    levels : tuple of str
        Names of the levels of a category, one for each coordinate, or of a rank, from the lowest.
    unit : str
        What numbers are counted in, or "".
    cycle : str or (float, float)
        The period of a cycle: "day", "week" or "year", or the numbers where it begins and ends.
    """

    name: str
    source: str
    kind: Kind
    at: tuple[int, ...]
    low: float
    high: float
    levels: tuple[str, ...] = ()
    unit: str = ""
    cycle: str | tuple[float, float] = ""

    @property
    def is_plain(self) -> bool:
        """Whether its values are numbers along an axis."""
        return self.kind in ("number", "flag", "date", "rank")

    @property
    def between(self) -> str:
        """Its public bounds in words, or its number of levels."""
        match self.kind:
            case "number":
                return f"{self.low:,.10g} to {self.high:,.10g}{self._unit}"
            case "date":
                return f"{day(self.low, self.low, self.high)} to {day(self.high, self.low, self.high)}"
            case "flag":
                return "false to true"
            case "rank":
                return f"{self.levels[0]} to {self.levels[-1]}"
            case "cycle":
                return self.cycle if isinstance(self.cycle, str) else "{:g} to {:g}".format(*self.cycle)
            case _:
                return f"{len(self.levels)} levels"

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""

    def written(self, value: float) -> str:
        """A value of a plain column, to a thousandth of its bounds."""
        match self.kind:
            case "date":
                return day(value, self.low, self.high)
            case "flag":
                return f"{value:.0%} true"
            case "rank":
                return self.levels[min(max(round(value - self.low), 0), len(self.levels) - 1)]
            case _:
                return f"{coordinate(value, self.low, self.high)}{self._unit}"

    def is_hidden(self, stds: FloatArray | None) -> bool:
        """Whether noise of these standard deviations hides the column: nobody can read its value."""
        if stds is None:
            return False
        width = 1.0 if self.kind == "category" else self.high - self.low
        worst = float(np.max(half_widths(stds[list(self.at)])))
        return worst > UNREADABLE * width

    def in_words(self, place: FloatArray, stds: FloatArray | None) -> str:
        """A centre in this column, with half of its 95% interval if the noise is known.

        Parameters
        ----------
        place : float array
            All coordinates of the centre.
        stds : float array, optional
            Standard deviations of all its coordinates.
        """
        own = place[list(self.at)]
        halves = np.zeros(len(own)) if stds is None else half_widths(stds[list(self.at)])
        match self.kind:
            case "category":
                return self._levels_in_words(own, halves)
            case "cycle":
                return self._cycle_in_words(own, halves)
            case "date":
                return day_with_error(float(own[0]), float(halves[0]), self.low, self.high)
            case "rank":
                about = f" ± {halves[0]:.2g}" if halves[0] > 0 else ""
                rank = f"{own[0] - self.low + 1:.2g}{about} of {len(self.levels)}"
                return f"{self.written(float(own[0]))} ({rank})"
            case "flag":
                return f"{_share(float(own[0]), float(halves[0]))} true"
            case _:
                return with_error(float(own[0]), float(halves[0]), self.low, self.high) + self._unit

    def shares(self, place: FloatArray) -> FloatArray:
        """Share of each level of a category at a centre: at least 0, and 1 in all."""
        own = np.clip(place[list(self.at)] / self.high, 0.0, 1.0)
        total = float(own.sum())
        shares: FloatArray = own / total if total > 0 else own
        return shares

    def _levels_in_words(self, own: FloatArray, halves: FloatArray) -> str:
        shares = np.clip(own / self.high, 0.0, 1.0)
        order = np.argsort(-shares, kind="stable")[:_MOST_LEVELS]
        halves = halves / self.high
        least = np.maximum(halves, _LEAST_SHARE)
        shown = [i for i in order.tolist() if shares[i] >= least[i]] or order[:1].tolist()
        return ", ".join(f"{self.levels[i]} {_share(float(shares[i]), float(halves[i]))}" for i in shown)

    def _cycle_in_words(self, own: FloatArray, halves: FloatArray) -> str:
        turn, length = direction(own / self.high)
        if length < _GATHERED:
            return "all around"
        half = float(np.max(halves)) / self.high / length / (2 * math.pi)  # of a turn
        return moment(turn, self.cycle, half)


def columns_of(release: Release) -> tuple[Column, ...]:
    """The columns of a release, in the order of its coordinates."""
    names = release.columns or tuple(f"column {j}" for j in range(1, release.domain.n_features + 1))
    coordinates = release.reading.coordinates if release.reading is not None else ()
    if len(coordinates) != len(names):
        coordinates = tuple(Coordinate(name) for name in names)
    numbered = list(enumerate(coordinates))
    groups = groupby(numbered, key=_of_column)
    return tuple(_column(release, names, list(group)) for _, group in groups)


def is_map(release: Release) -> bool:
    """Whether two columns are drawn as a map: both are numbers or dates."""
    found = columns_of(release)
    return len(found) == 2 and all(column.kind in ("number", "date") for column in found)


def relabelled(release: Release, labels: dict[str, str]) -> tuple[str, ...]:
    """Names of the coordinates, with other names for some columns."""
    if release.reading is None:
        return tuple(labels.get(name, name) for name in release.columns)
    return tuple(f"{labels.get(one.column, one.column)}{_suffix(one)}" for one in release.reading.coordinates)


def _suffix(coordinate: Coordinate) -> str:
    """What the name of a coordinate adds to the name of its column."""
    return str(coordinate).removeprefix(coordinate.column)


def _of_column(numbered: tuple[int, Coordinate]) -> tuple[str, int]:
    """What coordinates of one column have in common. A plain coordinate is a column of its own."""
    place, coordinate = numbered
    return coordinate.column, -1 if coordinate.kind in ("level", "other", "cycle") else place


def _column(release: Release, names: tuple[str, ...], group: list[tuple[int, Coordinate]]) -> Column:
    at, first = tuple(i for i, _ in group), group[0][1]
    name = names[at[0]].removesuffix(_suffix(first)) or names[at[0]]
    about = Column(name, first.column, "number", at, release.domain.low[at[0]], release.domain.high[at[0]])
    match first.kind:
        case "level" | "other":
            levels = tuple(OTHER if one.level is None else str(one.level) for _, one in group)
            return replace(about, kind="category", levels=levels)
        case "rank":
            return replace(about, kind="rank", levels=tuple(map(str, first.levels)))
        case "cycle":
            start, length = first.period
            return replace(
                about, kind="cycle", cycle=first.unit if first.is_time else (start, start + length)
            )
        case "date":
            return replace(about, kind="date")
        case _:
            return replace(about, kind="flag" if first.level is True else "number", unit=first.unit)


def _share(share: float, half: float) -> str:
    """A share with half of its interval; the upper end alone if noise explains the share."""
    if half <= 0:
        return f"{share:.0%}"
    if share <= half:
        return f"under {min(math.ceil(100 * (max(share, 0.0) + half)), 100)}%"
    return f"{share:.0%} ± {100 * half:.2g}"


def coordinate(value: float, low: float, high: float) -> str:
    """Write a coordinate to a thousandth of its public range."""
    digits = 3 - math.floor(math.log10(high - low))
    return f"{value:,.{max(digits, 0)}f}" if -3 <= digits <= 8 else f"{value:.6g}"


def with_error(value: float, half: float, low: float, high: float) -> str:
    """Write a coordinate and half of its interval, which gets two digits."""
    if half <= 0:
        return coordinate(value, low, high)
    digits = 1 - math.floor(math.log10(half))
    if not -3 <= digits <= 8:
        return f"{value:.6g} ± {half:.2g}"
    digits = max(digits, 0)
    return f"{value:,.{digits}f} ± {half:,.{digits}f}"


def day(value: float, low: float, high: float) -> str:
    """Write days since the start of 1970 as a date, with the time if the bounds are close together."""
    value = min(max(value, low - (high - low)), high + (high - low))
    minutes = np.datetime64("1970-01-01T00:00") + np.timedelta64(round(value * 24 * 60), "m")
    year, month, rest = str(minutes).split("-")[-3:]
    date = f"{int(rest[:2])} {MONTHS[int(month) - 1]} {year}"
    return f"{date} {rest[3:]}" if high - low < _FINE else date


def day_with_error(value: float, half: float, low: float, high: float) -> str:
    """Write a date and half of its interval."""
    return day(value, low, high) + (f" ± {duration(half)}" if half > 0 else "")


def duration(days: float) -> str:
    """Write a number of days, or hours or minutes if there are few."""
    for size, one in ((1.0, "day"), (1 / _HOURS, "hour"), (1 / _HOURS / 60, "minute")):
        if days >= size or one == "minute":
            number = f"{days / size:,.2g}" if days < 10 * size else f"{days / size:,.0f}"
            return f"{number} {one}" if number == "1" else f"{number} {one}s"
    raise AssertionError


def direction(place: FloatArray) -> tuple[float, float]:
    """Where on a cycle a mean of its points lies, as a share of a turn, and how closely they lie together."""
    x, y = place
    return math.atan2(y, x) / (2 * math.pi) % 1.0, math.hypot(x, y)


def moment(turn: float, cycle: str | tuple[float, float], half: float = 0.0) -> str:
    """Write a place on a cycle, given as a share of a turn, and half of its interval as another."""
    if isinstance(cycle, tuple) and cycle != _CLOCK:
        low, high = cycle
        return with_error(low + turn * (high - low), half * (high - low), low, high)
    name = "day" if isinstance(cycle, tuple) else cycle
    start, length = CYCLES[name]
    at = on_cycle(Described("", "cycle", start, start + length, unit=name), start + turn * length, 0.0)
    return f"{at} ± {duration(half * length)}" if half > 0 else at
