"""What every aggregate provides."""

from __future__ import annotations

from typing import Protocol

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.errors import ParameterError


class Aggregate(Protocol):
    """A summary that engines fold over rows. States are int64 arrays."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for adding or removing one row."""

    def zero(self) -> IntArray:
        """Return the state of no rows."""

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add a block of finite float64 rows to `state`, in place, and return it. Rows are not changed."""

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Combine the states of two disjoint sets of rows: their sum, unless a state says otherwise.

        The result takes the memory of one of them, so neither is used afterwards.
        """
        a += b
        return a


def check_columns(rows: FloatArray, n_features: int) -> None:
    """Raise if rows do not have the columns that a kernel expects. The message quotes no row."""
    if rows.shape[1] != n_features:
        raise ParameterError(f"rows must have {n_features} columns, got {rows.shape[1]}")
