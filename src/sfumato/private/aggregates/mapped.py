"""Aggregates of rows that first pass through a public map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from sfumato.budget.records import Sensitivity
from sfumato.domain import Domain, FloatArray, IntArray, check_shape
from sfumato.domain.row_products import project
from sfumato.private.aggregates.base import Aggregate


@dataclass(frozen=True, eq=False)
class Mapped(Aggregate, ABC):
    """An aggregate of mapped rows.

    Privacy
    -------
    The image of a row depends only on that row and on public numbers, even in floating point. Tables that
    differ in one row are therefore mapped to tables that differ in one row, and the aggregate keeps its
    sensitivity. Proof: docs/proofs/projections.md.
    """

    aggregate: Aggregate

    @abstractmethod
    def map(self, rows: FloatArray) -> FloatArray:
        """Map each row, independently of all others."""

    @property
    def sensitivity(self) -> Sensitivity:
        return self.aggregate.sensitivity

    def zero(self) -> IntArray:
        return self.aggregate.zero()

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add the mapped rows of a block."""
        return self.aggregate.add(state, self.map(rows))

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Merge two states of the aggregate."""
        return self.aggregate.merge(a, b)


@dataclass(frozen=True, eq=False)
class Projected(Mapped):
    """An aggregate of ``projection @ row`` instead of the rows themselves.

    Privacy
    -------
    Each row is projected independently of all others, so the aggregate keeps its sensitivity, see `Mapped`.
    Proof: docs/proofs/kmeans.md.

    Parameters
    ----------
    aggregate : Aggregate
    projection : float array of shape (p, d)
    """

    projection: FloatArray

    def map(self, rows: FloatArray) -> FloatArray:
        """Project each row."""
        check_shape("rows", rows, len(rows), self.projection.shape[1])
        return project(rows, self.projection)


@dataclass(frozen=True, eq=False)
class Clipped(Mapped):
    """An aggregate of rows clipped to a released domain.

    Privacy
    -------
    Each row is clipped independently of all others, so the aggregate keeps its sensitivity, see `Mapped`.
    Proof: docs/proofs/projections.md.
    """

    domain: Domain

    def map(self, rows: FloatArray) -> FloatArray:
        """The rows that the domain admits, clipped."""
        return self.domain.admitted(rows)
