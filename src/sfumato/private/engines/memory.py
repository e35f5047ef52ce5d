"""Rows in a NumPy array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.few_blocks import N_THREADS
from sfumato.private.aggregates.base import Aggregate, Grouped
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.engines.base import admitted_blocks
from sfumato.private.engines.known_groups import KnownGroups
from sfumato.private.engines.threads import on_threads

FEW_VALUES = 2**14  # to hand these to another thread takes longer than to fold them
KEPT_BYTES = 2**27  # of clipped rows: a larger table is clipped anew for every fold
KEPT_GROUPS = 2**21  # rows, of 2 bytes each: the groups of a larger table are found anew for every fold

T = TypeVar("T")


@dataclass(eq=False)
class MemoryEngine:
    """Rows in a two-dimensional array of any real dtype and memory order.

    Each thread folds one stretch of the array; kernels release the interpreter lock. Rows are clipped block
    by block, so no aggregate ever sees one outside the domain. At the second fold, or a count of rows, the
    clipped blocks of a table of up to `KEPT_BYTES` are kept for the next ones, to the end of a fit.
    So are the groups of up to `KEPT_GROUPS` rows under the last partition.

    Extra memory: one state and one block of rows per thread, and what is kept. Whether rows and groups are
    kept depends on the shape of the table alone.
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
        is_one_of_many = self._n_folds > 1 or isinstance(aggregate, RowCount)  # which is never the last one
        is_kept = is_one_of_many and self.domain is not None and 8 * self.rows.size <= KEPT_BYTES
        folds = [partial(stretch.fold, aggregate, is_kept) for stretch in self._stretches]
        return reduce(aggregate.merge, _run(folds))

    @cached_property
    def _stretches(self) -> list[_Stretch]:
        """The part of the table that each thread folds."""
        n_threads = 1 if self.rows.size <= FEW_VALUES else N_THREADS
        borders = np.linspace(0, len(self.rows), n_threads + 1).astype(np.int64)
        known = [KnownGroups() if len(self.rows) <= KEPT_GROUPS else None for _ in range(n_threads)]
        parts = [self.rows[start:stop] for start, stop in pairwise(borders)]
        return [_Stretch(rows, self.domain, groups) for rows, groups in zip(parts, known, strict=True)]


@dataclass(eq=False)
class _Stretch:
    """A part of a table, and what is kept of it between folds. Private: it leaves only into an aggregate."""

    rows: NDArray[np.generic]
    domain: Domain | None
    known: KnownGroups | None

    def fold(self, aggregate: Aggregate, is_kept: bool) -> IntArray:
        """State over these rows, clipped anew or taken from what is kept."""
        blocks: Iterable[FloatArray] = self.kept if is_kept else admitted_blocks(self.rows, self.domain)
        if self.known is not None and isinstance(aggregate, Grouped):
            return self.known.fold(aggregate, blocks)
        return reduce(aggregate.add, blocks, aggregate.zero())

    @cached_property
    def kept(self) -> list[FloatArray]:
        """Clipped blocks."""
        return list(admitted_blocks(self.rows, self.domain))


def _run(works: Sequence[Callable[[], T]]) -> list[T]:
    return on_threads(works) if len(works) > 1 else [works[0]()]
