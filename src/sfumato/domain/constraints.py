"""What a public parameter may be. A constraint takes a name and a value, and echoes both if it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from sfumato.errors import ParameterError


@dataclass(frozen=True)
class Constraint:
    """A rule for one parameter: which values it allows, and how to say so."""

    words: str  # after "must be"
    allows: Callable[[Any], bool]

    def __call__(self, name: str, value: object) -> None:
        """Raise an error unless the value is allowed."""
        if not self.allows(value):
            raise ParameterError(f"`{name}` must be {self.words}, got {value!r}")


def whole(most: int = 10**18) -> Constraint:
    """An integer from 1 to `most`."""

    def allows(value: Any) -> bool:
        return isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= most

    return Constraint(f"an integer >= 1 and at most {most:g}", allows)


def positive(least: float = 0.0, most: float = 1e300) -> Constraint:
    """A positive number, from `least` to `most`."""

    def allows(value: Any) -> bool:
        try:
            return float(_number(value)) > 0 and least <= float(value) <= most
        except OverflowError:
            return False

    limits = f" from {least:g} to {most:g}" if least or most < 1e300 else ""
    return Constraint(f"a positive number{limits}", allows)


def between(low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> Constraint:
    """A number from `low` to `high`; either end may be excluded."""

    def allows(value: Any) -> bool:
        number = _number(value)
        return bool(
            (low < number if open_low else low <= number) and (number < high if open_high else number <= high)
        )

    words = f"between {low:g} and {high:g}" if open_low else f"from {low:g} to {high:g}"
    return Constraint(f"a number {words}", allows)


def one_of(*choices: str) -> Constraint:
    """One of some strings."""
    return Constraint(
        f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices
    )


def auto_or(other: Constraint) -> Constraint:
    """Either "auto", or a value that another constraint allows."""
    is_auto = one_of("auto").allows
    return Constraint(f"'auto' or {other.words}", lambda value: is_auto(value) or other.allows(value))


def none_or(other: Constraint) -> Constraint:
    """None, or a value that another constraint allows."""
    return Constraint(other.words, lambda value: value is None or other.allows(value))


missing_rule = Constraint(
    "'error', 'drop' or a mapping from columns to values",
    lambda value: isinstance(value, Mapping) or (isinstance(value, str) and value in ("error", "drop")),
)
flag = Constraint("True or False", lambda value: isinstance(value, bool))
seed = none_or(Constraint("None or an integer >= 0", lambda value: _is_count(value)))


def _number(value: Any) -> Any:
    """The value if it is a real number of any size, else NaN, which fits nowhere."""
    return value if isinstance(value, Real) and not isinstance(value, bool) else math.nan


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
