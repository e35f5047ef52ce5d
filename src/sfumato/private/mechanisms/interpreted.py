"""The samplers in plain Python, bit for bit: a few draws are not worth the seconds that compiling takes.

Python's integers do not wrap around and need no types, so the code of the kernels runs as it is, with plain
numbers in place of NumPy's. A draw takes about 30 microseconds. To compile what it needs takes as long as
100,000 draws, and to load it in a later process as long as a few thousand.

Only noise of a public size is drawn here, and the choice counts public sizes alone. The number of occupied
cells or levels is secret, and so are the scores of a selection, on which its time depends: these draws are
always compiled.
"""

from collections.abc import Callable
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.private.mechanisms import samplers

FEW_DRAWS = 6000  # of a process, before it takes the compiled kernels


class _Patience:
    """Draws that this process may still make in plain Python: a count of public sizes."""

    left = FEW_DRAWS


def quickest(kernel: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Return the kernel, or its twin in plain Python if this process has made few draws.

    Parameters
    ----------
    kernel : callable
        A kernel of `samplers` that draws noise, and takes words and a cursor first.
    size : int
        Public number of draws.
    """
    if size > _Patience.left:
        return kernel
    _Patience.left -= size
    return _twin(getattr(kernel, "py_func", kernel).__name__)


@cache
def _twin(name: str) -> Callable[..., Any]:
    function = _namespace()[name]

    def twin(words: npt.NDArray[np.uint64], cursor: npt.NDArray[np.int64], *rest: Any) -> Any:
        place: list[int] = cursor.tolist()
        found = function(words.tolist(), place, *map(_plain, rest))
        cursor[:] = place
        return found

    return twin


def _plain(value: Any) -> Any:
    # Kernels write to arrays of int64 and only read those of uint64, which may then hold Python's integers.
    return value.astype(object) if isinstance(value, np.ndarray) and value.dtype == np.uint64 else value


@cache
def _namespace() -> dict[str, Any]:
    """Globals of the kernels, with functions and numbers that are not compiled."""
    names = dict(vars(samplers))
    for name, value in names.items():
        if hasattr(value, "py_func"):
            names[name] = FunctionType(value.py_func.__code__, names, name)
        elif isinstance(value, FunctionType) and value.__module__ == samplers.__name__:  # with the JIT off
            names[name] = FunctionType(value.__code__, names, name)
        elif isinstance(value, np.integer):
            names[name] = int(value)
    names["np"] = SimpleNamespace(uint64=int, int64=int)
    return names
