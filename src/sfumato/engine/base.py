"""What every engine provides."""

from __future__ import annotations

from typing import Protocol

from sfumato.aggregates import Aggregate
from sfumato.domain import IntArray


class Engine(Protocol):
    """Holds rows and folds aggregates over them."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's state over all rows: raw, before noise."""
