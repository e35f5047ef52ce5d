"""Rows that arrive in batches, from files of any size."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import pyarrow as pa

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.columns import Columns
from sfumato.domain.few_blocks import N_THREADS
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.engines.base import add_rows
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.engines.threads import on_threads
from sfumato.private.people import capped_rows
from sfumato.private.reading import read_people, read_rows


@dataclass(frozen=True)
class FileEngine:
    """Rows in files that are read again for every fold.

    Up to eight threads fold while pyarrow decodes ahead. Memory: one state per thread, and a few batches.
    With a privacy unit, the first fold groups and caps the rows of each person, see `capped_rows`.

    Parameters
    ----------
    batches : callable
        Starts reading and returns an iterator of record batches with the columns to be read.
    columns : Columns
    domain : Domain
    """

    batches: Callable[[], Iterator[pa.RecordBatch]]
    columns: Columns
    domain: Domain

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.columns.width

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's raw state over all rows, before noise."""
        if self.domain.unit.column:
            return self._capped.fold(aggregate)
        return fold_batches(aggregate, self.batches(), partial(read_rows, self.columns), self.domain)

    @cached_property
    def _capped(self) -> MemoryEngine:
        pairs = map(partial(read_people, self.columns), self.batches())
        return MemoryEngine(capped_rows(pairs, self.domain.unit.max_rows, self.n_features), self.domain)


def fold_batches(
    aggregate: Aggregate, items: Iterator[Any], read: Callable[[Any], FloatArray], domain: Domain
) -> IntArray:
    """Fold an aggregate over batches. Several threads take them in turn and read their rows."""
    batches = _Shared(items)

    def work() -> IntArray:
        state = aggregate.zero()
        try:
            while (batch := batches.take()) is not None:
                state = add_rows(aggregate, state, read(batch), domain)
        finally:
            batches.end()
        return state

    return reduce(aggregate.merge, on_threads([work] * N_THREADS, stop=batches.end))


class _Shared:
    """An iterator that several threads share. If one fails, it ends for all."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items = items
        self._lock = threading.Lock()
        self._ended = False

    def take(self) -> Any:
        """Next item, or None at the end."""
        with self._lock:
            item = None if self._ended else next(self._items, None)
            self._ended |= item is None
            return item

    def end(self) -> None:
        """Give no more items."""
        self._ended = True
