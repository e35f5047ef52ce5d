"""Checks of public parameters. Each takes a name and a value, and its error repeats both."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from sfumato.errors import ParameterError

Check = Callable[[str, object], None]


def whole(most: int = 10**18) -> Check:
    """An integer from 1 to `most`."""

    def check(name: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
            raise ParameterError(f"`{name}` must be an integer >= 1 and at most {most:g}, got {value!r}")

    return check


def positive(least: float = 0.0, most: float = 1e300) -> Check:
    """A positive number, from `least` to `most`."""

    def check(name: str, value: object) -> None:
        try:
            number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        except OverflowError:
            number = math.inf
        if not (number > 0 and least <= number <= most):
            limits = f" from {least:g} to {most:g}" if least or most < 1e300 else ""
            raise ParameterError(f"`{name}` must be a positive number{limits}, got {value!r}")

    return check


def between(low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> Check:
    """A number from `low` to `high`; either end can be excluded."""
    limits = f"between {low:g} and {high:g}" if open_low else f"from {low:g} to {high:g}"

    def check(name: str, value: object) -> None:
        number: Any = value if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        above = low < number if open_low else low <= number
        below = number < high if open_high else number <= high
        if not (above and below):
            raise ParameterError(f"`{name}` must be a number {limits}, got {value!r}")

    return check


def flag(name: str, value: object) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise ParameterError(f"`{name}` must be True or False, got {value!r}")


def one_of(*choices: str) -> Check:
    """One of the given strings."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, str) or value not in choices:
            raise ParameterError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}")

    return check


def auto_or(other: Check) -> Check:
    """ "auto", or a value that another check allows."""

    def check(name: str, value: object) -> None:
        if isinstance(value, str) and value == "auto":
            return
        try:
            other(name, value)
        except ParameterError as error:
            raise ParameterError(str(error).replace("must be", "must be 'auto' or", 1)) from None

    return check


def none_or(other: Check) -> Check:
    """None, or a value that another check allows."""

    def check(name: str, value: object) -> None:
        if value is not None:
            other(name, value)

    return check
