"""Numbers, dates and times as a person writes them, rounded to what the noise allows."""

from __future__ import annotations

import datetime
import math

from sfumato.domain.columns import Described
from sfumato.public.profiles.readable import is_readable_share

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September"]
MONTHS += ["October", "November", "December"]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_EPOCH = datetime.datetime(1970, 1, 1)  # days are in UTC throughout
_FIRST, _LAST = -719_162.0, 2_932_896.0  # days of the years 1 to 9999
_DAYS_OF_MONTH, _DAYS_OF_YEAR = 30.0, 365.0
_MINUTES = (1, 5, 10, 15, 30, 60)  # to which a time of day is rounded
_YEARS = (1000, 2999)  # numbers between these may be years, and have no commas


def unit_for(half_width: float, least: float = 0.0) -> float:
    """Power of ten to which a number with an interval of this half width is rounded.

    Examples
    --------
    >>> unit_for(460), unit_for(9.5), unit_for(0.07), unit_for(0.07, least=1.0)
    (100.0, 1.0, 0.01, 1.0)
    """
    if half_width <= 0:
        return max(least, 1e-12)
    return max(10.0 ** math.floor(math.log10(half_width) + 1e-9), least)


def number(value: float, unit: float) -> str:
    """A number rounded to a power of ten, with commas.

    Examples
    --------
    >>> number(5012.3, 100), number(41.6, 1), number(0.0349, 0.01), number(-0.2, 1)
    ('5,000', '42', '0.03', '0')
    """
    if unit < 1:
        digits = min(round(-math.log10(unit)), 12)
        text = f"{value:,.{digits}f}"
        return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text
    return f"{round(value / unit) * round(unit):,}"


def percent(share: float, low: float, high: float) -> str:
    """A share in per cent, rounded to what its interval allows.

    Near 0 and 100, and if noise alone explains the share or hides it, an end of the interval or both.

    Examples
    --------
    >>> percent(0.713, 0.70, 0.72), percent(0.713, 0.6, 0.82), percent(0, 0, 0.013), percent(1, 0.94, 1)
    ('71 %', '70 %', 'under 2 %', 'over 94 %')
    >>> percent(0.097, 0, 0.195), percent(0.2, 0.094, 0.35), percent(0.6, 0.2, 1), percent(0.5, 0, 1)
    ('under 20 %', '9 to 35 %', 'over 20 %', 'unknown')
    """
    unit = min(unit_for(50 * (high - low), least=1.0), 10.0)
    least, most = math.floor(100 * low + 1e-9), max(math.ceil(100 * high - 1e-9), 1)
    is_bare = is_readable_share(share, low, high)
    if least <= 0 and most >= 100:
        return "unknown"
    if round(100 * share / unit) == 0 or (least <= 0 and not is_bare):
        return f"under {most} %"
    if round(100 * share / unit) * unit >= 100 or (most >= 100 and not is_bare):
        return f"over {min(least, 99)} %"
    return f"{number(100 * share, unit)} %" if is_bare else f"{least} to {most} %"


def as_time(days: float) -> datetime.datetime:
    """The time that lies this many days after the start of 1970; within the years 1 to 9999."""
    return _EPOCH + datetime.timedelta(days=min(max(days, _FIRST), _LAST))


def iso_date(days: float) -> str:
    """A date as text, such as 2024-03-02; with a time unless it is midnight."""
    time = as_time(days)
    if time.time() == datetime.time():
        return time.date().isoformat()
    return time.isoformat(timespec="seconds")


def date_in_words(days: float, half_width: float) -> str:
    """A date: its day, its month or its year, as far as the noise lets one tell.

    Examples
    --------
    >>> date_in_words(19784.3, 2), date_in_words(19784.3, 40), date_in_words(19784.3, 900)
    ('2 March 2024', 'March 2024', '2024')
    """
    time = as_time(days)
    if half_width > _DAYS_OF_YEAR:
        return str(time.year)
    month = f"{MONTHS[time.month - 1]} {time.year}"
    return month if half_width > _DAYS_OF_MONTH else f"{time.day} {month}"


def on_cycle(column: Described, value: float, half_width: float) -> str:
    """A point of a cycle: a time of day, a day of the week, a day or month of the year, or a number.

    Examples
    --------
    >>> on_cycle(Described("at", "cycle", 0, 1, unit="day"), 0.355, 0.005)
    '08:30'
    >>> on_cycle(Described("at", "cycle", -3, 4, unit="week"), -0.5, 0.3)
    'Wednesday'
    >>> on_cycle(Described("at", "cycle", 0, 365.2425, unit="year"), 70.0, 3)
    '12 March'
    """
    length = column.high - column.low
    place = (value - column.low) % length
    if column.unit == "day" or (column.low, column.high, column.unit) in _HOURS:
        return _time_of_day(place / length, half_width / length)
    if column.unit == "week":
        return WEEKDAYS[int(place / length * 7) % 7]
    if column.unit == "year":
        time = as_time(min(math.floor(place), 364.0))
        return MONTHS[time.month - 1] if half_width > 10 else f"{time.day} {MONTHS[time.month - 1]}"
    return _with_unit(number(column.low + place, unit_for(half_width)), column.unit)


_HOURS = [(0.0, 24.0, unit) for unit in ("", "h", "hours")]


def _time_of_day(part: float, half_width: float) -> str:
    minutes = max((step for step in _MINUTES if step <= half_width * 1440), default=1)
    at = round(part * 1440 / minutes) * minutes % 1440
    return f"{at // 60:02d}:{at % 60:02d}"


def cycle_in_words(column: Described) -> str:
    """The whole of a cycle: "the day", "the week", "the year" or "the cycle"."""
    if column.unit in ("day", "week", "year"):
        return f"the {column.unit}"
    return "the day" if (column.low, column.high, column.unit) in _HOURS else "the cycle"


def quantity(column: Described, value: float, half_width: float, *, is_whole: bool = False) -> str:
    """A value of a column of numbers or dates, with its unit."""
    if column.kind == "date":
        return date_in_words(value, half_width)
    # Without any width, three digits of the column's range remain.
    unit = unit_for(half_width) if half_width > 0 else unit_for((column.high - column.low) / 1000)
    if is_whole or (half_width <= 0 and value == round(value)):
        unit = max(unit, 1.0) if half_width > 0 else 1.0
    text = number(value, unit)
    may_be_years = _YEARS[0] <= column.low and column.high <= _YEARS[1]
    return _with_unit(text.replace(",", "") if may_be_years else text, column.unit)


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
