"""Rows in a NumPy array."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sfumato.aggregates import Aggregate
from sfumato.domain import IntArray

BLOCK_ROWS = 2**15  # a block of a few columns stays in the processor's cache
N_THREADS = min(os.cpu_count() or 1, 8)


@dataclass(frozen=True)
class MemoryEngine:
    """Rows in a two-dimensional array of any real dtype and memory order, never copied as a whole.

    The array is cut into one stretch per thread; kernels release the interpreter lock. Memory beyond the
    array: one state and one block of rows per thread.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Finite numbers.
    """

    rows: NDArray[np.generic]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's state over all rows: raw, before noise."""
        borders = np.linspace(0, len(self.rows), N_THREADS + 1).astype(np.int64)
        with ThreadPoolExecutor(N_THREADS) as pool:
            states = list(pool.map(lambda a, b: self._fold_stretch(aggregate, a, b), borders, borders[1:]))
        return reduce(aggregate.merge, states)

    def _fold_stretch(self, aggregate: Aggregate, start: int, stop: int) -> IntArray:
        state = aggregate.zero()
        for first in range(start, stop, BLOCK_ROWS):
            block = self.rows[first : min(first + BLOCK_ROWS, stop)]
            state = aggregate.add(state, np.ascontiguousarray(block, dtype=np.float64))
        return state
