"""Checks of parameters that several estimators share. Messages echo parameters, never data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

from sfumato.errors import ParameterError

MOST_CLUSTERS = 10**6


def check_whole(name: str, value: object, most: int = 10**18) -> None:
    """Refuse all but an integer from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
        raise ParameterError(f"`{name}` must be an integer >= 1 and at most {most:g}, got {value!r}")


def check_whole_or_auto(name: str, value: object, most: int) -> None:
    """Refuse all but "auto" and an integer from 1 to `most`."""
    if not (isinstance(value, str) and value == "auto"):
        check_whole(name, value, most)


def check_positive(name: str, value: object, least: float = 0.0, most: float = 1e300) -> None:
    """Refuse all but a positive number, from `least` to `most`."""
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not (number > 0 and least <= number <= most):
        limits = f" from {least:g} to {most:g}" if least or most < 1e300 else ""
        raise ParameterError(f"`{name}` must be a positive number{limits}, got {value!r}")


def check_flag(name: str, value: object) -> None:
    """Refuse all but True and False."""
    if not isinstance(value, bool):
        raise ParameterError(f"`{name}` must be True or False, got {value!r}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse all but one of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"`{name}` must be one of {', '.join(choices)}, got {value!r}")
