"""Rows in a NumPy array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.engines.base import N_THREADS, add_rows, admitted_blocks
from sfumato.private.engines.threads import on_threads

FEW_VALUES = 2**14  # to hand these to another thread takes longer than to fold them
KEPT_BYTES = 2**25  # of clipped rows: a larger table is clipped anew for every fold

T = TypeVar("T")


@dataclass(eq=False)
class MemoryEngine:
    """Rows in a two-dimensional array of any real dtype and memory order.

    Each thread folds one stretch of the array; kernels release the interpreter lock. Rows are clipped block
    by block, so no aggregate ever sees one outside the domain. At the second fold, the clipped blocks of a
    table of up to `KEPT_BYTES` are kept for the next ones, as long as the engine lives: to the end of a fit.

    Extra memory: one state and one block of rows per thread, and what is kept. Whether rows are kept depends
    on the shape of the table alone.
    """

    rows: NDArray[np.generic]  # (n, d); finite numbers
    domain: Domain | None  # None for images of rows that a domain has admitted
    _n_folds: int = field(default=0, init=False)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.rows.shape[1])

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's raw state over all rows, before noise."""
        self._n_folds += 1
        if self._n_folds > 1 and self.domain is not None and 8 * self.rows.size <= KEPT_BYTES:
            folds = [partial(_fold_blocks, aggregate, blocks) for blocks in self._kept]
        else:
            folds = [partial(self._fold_stretch, aggregate, rows) for rows in self._stretches()]
        return reduce(aggregate.merge, _run(folds))

    def _stretches(self) -> list[NDArray[np.generic]]:
        """The part of the table that each thread folds."""
        n_threads = 1 if self.rows.size <= FEW_VALUES else N_THREADS
        borders = np.linspace(0, len(self.rows), n_threads + 1).astype(np.int64)
        return [self.rows[start:stop] for start, stop in pairwise(borders)]

    def _fold_stretch(self, aggregate: Aggregate, rows: NDArray[np.generic]) -> IntArray:
        return add_rows(aggregate, aggregate.zero(), rows, self.domain)

    @cached_property
    def _kept(self) -> list[list[FloatArray]]:
        """Clipped blocks of each stretch. Private: they never leave this file but into an aggregate."""
        return _run([partial(self._clipped, rows) for rows in self._stretches()])

    def _clipped(self, rows: NDArray[np.generic]) -> list[FloatArray]:
        return list(admitted_blocks(rows, self.domain))


def _fold_blocks(aggregate: Aggregate, blocks: list[FloatArray]) -> IntArray:
    return reduce(aggregate.add, blocks, aggregate.zero())


def _run(works: Sequence[Callable[[], T]]) -> list[T]:
    return on_threads(works) if len(works) > 1 else [works[0]()]
