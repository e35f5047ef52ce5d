"""Any aggregate, of rows that went through a public map first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from sfumato.budget.records import Sensitivity
from sfumato.domain import Domain, FloatArray, IntArray, check_shape
from sfumato.domain.partitions import project
from sfumato.private.aggregates.base import Aggregate


@dataclass(frozen=True, eq=False)
class Mapped(ABC):
    """An aggregate of mapped rows.

    Privacy
    -------
    What a row is mapped to is a function of that row and of public numbers, in floating point too, so that
    tables that differ in one row are mapped to tables that differ in one row: the sensitivity is that of
    the aggregate. Proof: docs/proofs/kmeans.md.

    Parameters
    ----------
    aggregate : Aggregate
    """

    aggregate: Aggregate

    @abstractmethod
    def map(self, rows: FloatArray) -> FloatArray:
        """Map each row, independently of all others."""

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for one row."""
        return self.aggregate.sensitivity

    def zero(self) -> IntArray:
        """Return the state of no rows."""
        return self.aggregate.zero()

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add the mapped rows of a block."""
        return self.aggregate.add(state, self.map(rows))

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Merge as the aggregate does."""
        return self.aggregate.merge(a, b)


@dataclass(frozen=True, eq=False)
class Projected(Mapped):
    """An aggregate of ``projection @ row`` instead of the rows themselves.

    Privacy
    -------
    A row is projected independently of all others, so the sensitivity is that of the aggregate, see
    `Mapped`. Proof: docs/proofs/kmeans.md.

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
    """An aggregate of rows clipped to a domain, one that was released.

    Privacy
    -------
    A row is clipped independently of all others, so the sensitivity is that of the aggregate, see
    `Mapped`. Proof: docs/proofs/kmeans.md.

    Parameters
    ----------
    aggregate : Aggregate
    domain : Domain
    """

    domain: Domain

    def map(self, rows: FloatArray) -> FloatArray:
        """Clip each row."""
        return self.domain.clip(rows)
