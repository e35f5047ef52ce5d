"""Checks of arrays that callers pass in. Errors name shapes and types, never values."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import DataError, ParameterError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
T = TypeVar("T")

# Some scikit-learn messages quote values or the number of rows. Only these are passed on unchanged.
_HARMLESS = ("X has ", "The feature names should match", "Found array with dim")
_REFUSALS = {
    "contains NaN": "must have no missing values, got NaN somewhere: drop or fill them",
    "contains infinity": "must be finite, got infinity or a number beyond 64-bit floats somewhere",
    "Complex data": "must hold real numbers. Complex data not supported",
    "2D array": "must have two dimensions. Reshape your data: X.reshape(-1, 1) makes one column",
    "0 feature(s)": "must have at least one column",
}
_DATES = re.compile("DateTime64|TimeDelta64|not 'datetime|not 'Timestamp'|not 'Timedelta'")
NO_DATES = (
    "must hold numbers, got dates or times. Give the bounds of each column of a data frame by name, those of "
    "dates as dates: bounds={'day': (date(2026, 1, 1), date(2027, 1, 1)), 'age': (0, 120)}"
)
_NO_NUMBERS = "must be a table of numbers: drop or encode the other columns"


def checked(check: Callable[[], T], name: str = "X") -> T:
    """Run a scikit-learn check of the table `name`. If it fails, raise an error that quotes no data."""
    try:
        with np.errstate(invalid="ignore"):  # from a sum of infinities
            return check()
    except (ValueError, OverflowError) as error:
        problem = str(error)
    except TypeError as error:
        if not _DATES.search(str(error)):
            raise  # scikit-learn expects this type
        problem = NO_DATES
    # Raised outside the handler, so that no traceback contains the original message.
    raise DataError(_without_data(problem, name))


def numbers(values: ArrayLike, name: str = "X") -> FloatArray:
    """Convert the values of the table `name` to floats. If that fails, raise an error that quotes none."""
    with suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values)
        if not np.iscomplexobj(array):
            return array.astype(np.float64, copy=False)
    # Raised outside the handler, so that no traceback contains NumPy's message, which quotes the value.
    raise DataError(f"`{name}` {_NO_NUMBERS}")


def _without_data(problem: str, name: str) -> str:
    if problem.startswith(_HARMLESS):
        return problem.replace("X has ", f"{name} has ", 1)
    if problem == NO_DATES:
        return f"`{name}` {NO_DATES}"
    for sign, answer in _REFUSALS.items():
        if sign in problem:
            return f"`{name}` {answer}"
    return f"`{name}` {_NO_NUMBERS}"


def check_shape(name: str, array: NDArray[Any], *shape: int) -> None:
    """Raise if a public array has the wrong shape: a kernel would read past its end."""
    if array.shape != shape:
        raise ParameterError(f"`{name}` must have shape {shape}, got {array.shape}")
