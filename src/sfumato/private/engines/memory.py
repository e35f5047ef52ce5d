"""Rows in a NumPy array."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.engines.base import N_THREADS, add_rows, blocks

T = TypeVar("T")
FEW_VALUES = 2**12  # to hand these to another thread takes longer than to fold them


@dataclass(frozen=True)
class MemoryEngine:
    """Rows in a two-dimensional array of any real dtype and memory order, never copied as a whole.

    Each thread folds one stretch of the array; kernels release the interpreter lock. Extra memory: one state
    and one block of rows per thread. Rows are clipped block by block, so no aggregate ever sees one outside
    the domain.
    """

    rows: NDArray[np.generic]  # (n, d); finite numbers
    domain: Domain | None  # None for images of rows that a domain has admitted

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's raw state over all rows, before noise."""

        def of_stretch(rows: NDArray[np.generic]) -> IntArray:
            return add_rows(aggregate, aggregate.zero(), rows, self.domain)

        return reduce(aggregate.merge, self._of_stretches(of_stretch))

    def mapped(self, image: Callable[[FloatArray], FloatArray]) -> MemoryEngine:
        """Engine of the images of all rows, each mapped by itself."""

        def of_stretch(rows: NDArray[np.generic]) -> FloatArray:
            images = [image(block) for block in blocks(rows, self.domain)]
            return np.concatenate(images) if images else image(np.empty((0, self.n_features)))

        return MemoryEngine(np.concatenate(self._of_stretches(of_stretch)), None)

    def _of_stretches(self, work: Callable[[NDArray[np.generic]], T]) -> list[T]:
        """What the threads make of their stretches of rows."""
        if self.rows.size <= FEW_VALUES:
            return [work(self.rows)]
        borders = np.linspace(0, len(self.rows), N_THREADS + 1).astype(np.int64)
        stretches = [self.rows[start:stop] for start, stop in pairwise(borders)]
        others = [self._pool.submit(work, stretch) for stretch in stretches[1:]]
        return [work(stretches[0]), *(other.result() for other in others)]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        # Threads live as long as the engine: starting them for every pass costs more than a short pass.
        return ThreadPoolExecutor(max(1, N_THREADS - 1))
