"""Rows seen along public directions, for questions that are asked about nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.aggregates.mapped import Clipped, Projected
from sfumato.private.engines.base import Engine
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.engines.sparse import SparseEngine

LESS = 4  # rows are projected once and kept if that takes at most this part of their memory


@dataclass(frozen=True, eq=False)
class ProjectedEngine:
    """Rows of another engine, projected anew for every fold.

    Parameters
    ----------
    engine : Engine
    projection : float array of shape (p, d)
    domain : Domain, optional
        Rows are clipped to it first.
    """

    engine: Engine
    projection: FloatArray
    domain: Domain | None

    @property
    def n_features(self) -> int:
        """Number of directions."""
        return len(self.projection)

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's raw state over all projected rows, before noise."""
        projected = Projected(aggregate, self.projection)
        return self.engine.fold(Clipped(projected, self.domain) if self.domain else projected)


def projected(engine: Engine, projection: FloatArray, domain: Domain | None) -> Engine:
    """The rows of an engine along public directions, after clipping to a domain.

    Rows in memory are projected once if their images are much smaller. Every row is mapped by itself, so both
    ways give the same bits.
    """
    seen = ProjectedEngine(engine, projection, domain)
    is_held = isinstance(engine, MemoryEngine) or (isinstance(engine, SparseEngine) and engine.is_held)
    if not is_held or LESS * len(projection) > engine.n_features:
        return seen
    images = seen.fold(_Listed())  # type: ignore[arg-type]
    return MemoryEngine(np.concatenate([np.empty((0, len(projection))), *images]), None)


class _Listed:
    """Not a summary: the state lists the blocks themselves. It never leaves this file."""

    def zero(self) -> list[FloatArray]:
        return []

    def add(self, state: list[FloatArray], rows: FloatArray) -> list[FloatArray]:
        return [*state, rows]

    def merge(self, a: list[FloatArray], b: list[FloatArray]) -> list[FloatArray]:
        return a + b
