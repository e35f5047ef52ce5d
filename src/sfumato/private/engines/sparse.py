"""Sparse rows: each block becomes coordinates just before it is folded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.sparse import Sparse
from sfumato.private.active import complete_active
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.engines.files import fold_batches


@dataclass(frozen=True)
class SparseEngine:
    """Rows with few active columns, never written out in full.

    Memory: one state and one block of coordinates per thread.

    Parameters
    ----------
    items : callable
        Starts reading and returns an iterator of parts of the table.
    read : callable
        Active columns and values of the rows of a part, as `Sparse.coordinates` takes them.
    sparse : Sparse
    domain : Domain
    missing : {"error", "drop"}
    with_active : bool
        Whether coordinates are followed by the active columns and their values.
    is_held : bool
        Whether the rows are in memory anyway.
    """

    items: Callable[[], Iterator[Any]]
    read: Callable[[Any], FloatArray]
    sparse: Sparse
    domain: Domain
    missing: Literal["error", "drop"]
    with_active: bool = False
    is_held: bool = False

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return self.domain.n_features

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's raw state over all rows, before noise."""
        return fold_batches(aggregate, self.items(), self._rows, self.domain)

    def _rows(self, item: Any) -> FloatArray:
        active = self.read(item)
        complete = complete_active(self.sparse, active, self.missing)
        active = active if complete.all() else active[complete]
        rows = self.sparse.coordinates(active)
        return np.hstack([rows, active]) if self.with_active else rows
