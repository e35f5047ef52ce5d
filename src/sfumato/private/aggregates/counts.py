"""The number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray
from sfumato.private.aggregates.base import Aggregate


@dataclass(frozen=True)
class RowCount(Aggregate):
    """The number of rows.

    Privacy
    -------
    Adding or removing one row changes the only entry by exactly 1: L1 = L2 = spread = 1.
    Proof: docs/proofs/counts.md.
    """

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity()

    def zero(self) -> IntArray:
        return np.zeros(1, dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Count the rows of a block."""
        state[0] += len(rows)
        return state
