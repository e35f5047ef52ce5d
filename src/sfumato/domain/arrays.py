"""Arrays as callers give them. Errors name shapes and types, never values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import DataError, ParameterError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
T = TypeVar("T")

# scikit-learn quotes values and the number of rows in some of its messages: only these pass as they are.
_HARMLESS = ("X has ", "The feature names should match", "Found array with dim")
_REFUSALS = {
    "contains NaN": "must have no missing values, got NaN somewhere: drop or fill them",
    "contains infinity": "must be finite, got infinity or a number beyond 64-bit floats somewhere",
    "Complex data": "must hold real numbers. Complex data not supported",
    "2D array": "must have two dimensions. Reshape your data: X.reshape(-1, 1) makes one column",
    "0 feature(s)": "must have at least one column",
}
_NO_NUMBERS = "must be a table of numbers: drop or encode the other columns"


def checked(check: Callable[[], T], name: str = "X") -> T:
    """What a check of scikit-learn returns, or an error that quotes nothing of the table.

    Parameters
    ----------
    check : callable
    name : str
        Of the table, for the message.
    """
    try:
        with np.errstate(invalid="ignore"):  # of a sum of infinities
            return check()
    except (ValueError, OverflowError) as error:
        problem = str(error)
    # Raised out here, so that no traceback holds the message above.
    raise DataError(_without_data(problem, name))


def numbers(values: ArrayLike, name: str = "X") -> FloatArray:
    """The values as floats, or an error that quotes none of them.

    Parameters
    ----------
    values : array-like
    name : str
        Of the table, for the message.
    """
    with suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values)
        if not np.iscomplexobj(array):
            return array.astype(np.float64, copy=False)
    # Raised out here, so that no traceback holds NumPy's message, which quotes the value.
    raise DataError(f"`{name}` {_NO_NUMBERS}")


def _without_data(problem: str, name: str) -> str:
    if problem.startswith(_HARMLESS):
        return problem.replace("X has ", f"{name} has ", 1)
    for sign, answer in _REFUSALS.items():
        if sign in problem:
            return f"`{name}` {answer}"
    return f"`{name}` {_NO_NUMBERS}"


def check_shape(name: str, array: NDArray[Any], *shape: int) -> None:
    """Refuse a public array that a kernel would read beyond its end."""
    if array.shape != shape:
        raise ParameterError(f"`{name}` must have shape {shape}, got {array.shape}")
