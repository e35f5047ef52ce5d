"""Any aggregate, of rows that went through a public linear map first."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.aggregates.base import Aggregate, Sensitivity, check_shape
from sfumato.domain import FloatArray, IntArray
from sfumato.partition import project


@dataclass(frozen=True, eq=False)
class Projected:
    """An aggregate of ``projection @ row`` instead of the rows themselves.

    Privacy
    -------
    The projection of a row is a function of that row and of a public matrix, in floating point too, so that
    tables that differ in one row are projected to tables that differ in one row: the sensitivity is that of
    the aggregate. Proof: docs/proofs/kmeans.md.

    Parameters
    ----------
    aggregate : Aggregate
    projection : float array of shape (p, d)
    """

    aggregate: Aggregate
    projection: FloatArray

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for one row."""
        return self.aggregate.sensitivity

    def zero(self) -> IntArray:
        """Return the state of no rows."""
        return self.aggregate.zero()

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add the projected rows of a block."""
        check_shape("rows", rows, len(rows), self.projection.shape[1])
        return self.aggregate.add(state, project(rows, self.projection))

    def merge(self, a: IntArray, b: IntArray) -> IntArray:
        """Merge as the aggregate does."""
        return self.aggregate.merge(a, b)
