"""Rows in a NumPy array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, IntArray
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.engines.base import N_THREADS, add_rows
from sfumato.private.engines.threads import on_threads

FEW_VALUES = 2**14  # to hand these to another thread takes longer than to fold them


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
        if self.rows.size <= FEW_VALUES:
            return self._fold_stretch(aggregate, 0, len(self.rows))
        borders = np.linspace(0, len(self.rows), N_THREADS + 1).astype(np.int64)
        folds = [partial(self._fold_stretch, aggregate, *stretch) for stretch in pairwise(borders)]
        return reduce(aggregate.merge, on_threads(folds))

    def _fold_stretch(self, aggregate: Aggregate, start: int, stop: int) -> IntArray:
        return add_rows(aggregate, aggregate.zero(), self.rows[start:stop], self.domain)
