"""Kernels or their twins in NumPy: a few blocks of rows are not worth the time that compiling takes.

A twin gives the same bits. It takes up to 7 ms longer for a full block, while to compile a kernel takes up
to 2 s. So every process folds its first blocks with NumPy, and compiles what later ones need.

What decides counts blocks, whatever is in them: it tells nothing that the number of blocks read does not.
That the bits are the same is part of the guarantee: what a row adds must depend on the row alone, not on the
block that it falls into. Both sides do the same additions, products, divisions and roots in the same order,
each rounded as IEEE 754 asks; neither NumPy's element-wise functions nor numba without `fastmath` fuses two
of them. A twin must not use a product of matrices or a sum along an axis of floats, whose order is not fixed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

BLOCK_VALUES = 2**17  # a block stays in the processor's cache
N_THREADS = min(os.cpu_count() or 1, 8)
FEW_BLOCKS = 32 * N_THREADS  # that one twin takes in a process: docs/notes/quick_start.md

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_taken: Counter[Callable[..., Any]] = Counter()


def quickest(kernel: Kernel, twin: Kernel) -> Kernel:
    """Return the kernel, or its twin in NumPy if this process has handed it few blocks."""
    if _taken[twin] >= FEW_BLOCKS:
        return kernel
    _taken[twin] += 1
    # A kernel never warns. A warning would tell of a row.
    return np.errstate(all="ignore")(twin)
