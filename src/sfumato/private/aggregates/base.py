"""What every aggregate provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.domain.partitions import Partition
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


class Grouped(Aggregate, ABC):
    """A summary by public groups. An engine that knows the groups of rows already may hand them over."""

    partition: Partition

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns of a row."""

    @abstractmethod
    def add_to_groups(self, state: IntArray, rows: FloatArray, groups: IntArray) -> IntArray:
        """Add a block of rows, whose groups are those of the partition."""

    def check(self, rows: FloatArray) -> None:
        """Raise if rows do not have the columns that the partition and the kernels expect."""
        check_columns(rows, self.n_features)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add a block of rows to their groups."""
        self.check(rows)
        return self.add_to_groups(state, rows, self.partition.index(rows))


def check_columns(rows: FloatArray, n_features: int) -> None:
    """Raise if rows do not have the columns that a kernel expects. The message quotes no row."""
    if rows.shape[1] != n_features:
        raise ParameterError(f"rows must have {n_features} columns, got {rows.shape[1]}")
