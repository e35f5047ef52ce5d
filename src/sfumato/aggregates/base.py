"""What every aggregate provides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.errors import ParameterError


@dataclass(frozen=True)
class Sensitivity:
    """How far one privacy unit can move an integer vector, in exact integers.

    Parameters
    ----------
    l1 : int
        Largest change in L1 norm.
    l2_squared : int
        Largest change in squared L2 norm.
    spread : int
        Largest value of (greatest change - least change) over the entries. Selection depends on differences
        of scores only, so this is what it pays for.
    coordinates : int
        Largest number of entries that change.
    """

    l1: int = 1
    l2_squared: int = 1
    spread: int = 1
    coordinates: int = 1

    def times(self, max_rows: int) -> Sensitivity:
        """Sensitivity for a person with at most `max_rows` rows.

        By the triangle inequality every norm grows at most by the factor `max_rows`. The rows may fall on
        different entries, so up to `max_rows` times as many entries change.
        """
        return Sensitivity(
            l1=self.l1 * max_rows,
            l2_squared=self.l2_squared * max_rows**2,
            spread=self.spread * max_rows,
            coordinates=self.coordinates * max_rows,
        )


class Aggregate(Protocol):
    """A summary that engines fold over rows. States are int64 arrays."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for adding or removing one row."""

    def zero(self) -> IntArray:
        """Return the state of no rows."""

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add a block of finite float64 rows to `state`, in place, and return it."""

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Combine the states of two disjoint sets of rows."""


def check_shape(name: str, array: NDArray[Any], *shape: int) -> None:
    """Refuse a public array that a kernel would read beyond its end."""
    if array.shape != shape:
        raise ParameterError(f"`{name}` must have shape {shape}, got {array.shape}")


def check_columns(rows: FloatArray, n_features: int) -> None:
    """Refuse rows with other columns than a kernel expects. The message says nothing about the rows."""
    if rows.shape[1] != n_features:
        raise ParameterError(f"rows must have {n_features} columns, got {rows.shape[1]}")
