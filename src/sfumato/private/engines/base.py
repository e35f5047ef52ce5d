"""What every engine provides, and how it passes rows to an aggregate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from numpy.typing import NDArray

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.few_blocks import BLOCK_VALUES
from sfumato.private.aggregates.base import Aggregate


class Engine(Protocol):
    """Holds rows and folds aggregates over them."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's raw state over all rows, before noise."""


def add_rows(aggregate: Aggregate, state: IntArray, rows: NDArray[Any], domain: Domain | None) -> IntArray:
    """Add rows to a state, block by block: those that the domain admits, clipped."""
    for block in admitted_blocks(rows, domain):
        state = aggregate.add(state, block)
    return state


def admitted_blocks(rows: NDArray[Any], domain: Domain | None) -> Iterator[FloatArray]:
    """The rows that a domain admits, clipped, block by block.

    This is the only way to an aggregate. So none ever sees NaN, infinity or a row outside, whatever was
    checked before. Only images of admitted rows come without a domain.
    """
    stride = max(1, BLOCK_VALUES // (rows.shape[1] if domain is None else domain.n_features))
    for first in range(0, len(rows), stride):
        block = rows[first : first + stride]
        yield block if domain is None else domain.admitted(block)
