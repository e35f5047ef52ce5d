"""How much the truncated k-means cost would fall if one centre were replaced by a candidate."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.private.aggregates.base import Aggregate, check_columns

COST_UNITS = 1024  # cost of a row at the radius or beyond; scores are integers


@dataclass(frozen=True, eq=False)
class Swaps(Aggregate):
    """Per pair of a centre to drop and a candidate to add: the decrease of the truncated cost.

    A row costs ``floor(1024 min(squared distance / radius^2, 1))`` at its nearest centre. Entry
    ``i * m + j`` is the decrease when candidate j replaces centre i. The last entry is for no swap, and is 0.

    Privacy
    -------
    A cost depends only on one row and on public numbers, and lies in [0, U] with U = 1024. A row that costs f
    before and g_e after swap e adds f - g_e to entry e. All these numbers lie in [f - U, f], so their spread
    is at most U for any number of pairs. Each is at most U in size, hence L1 <= k m U and L2^2 <= k m U^2
    over k m entries. Centres, candidates and radius must be public. Proof: docs/proofs/kmeans.md.
    """

    centers: FloatArray  # (k, d)
    candidates: FloatArray  # (m, d)
    radius: float  # positive

    def __post_init__(self) -> None:
        check_shape("centers", self.centers, len(self.centers), self.candidates.shape[-1])

    @staticmethod
    def sensitivity_of(n_pairs: int) -> Sensitivity:
        """Sensitivity for one row and `n_pairs` pairs, for a plan to declare in advance."""
        return Sensitivity(n_pairs * COST_UNITS, n_pairs * COST_UNITS**2, COST_UNITS, n_pairs)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_of(len(self.centers) * len(self.candidates))

    def zero(self) -> IntArray:
        return np.zeros(len(self.centers) * len(self.candidates) + 1, dtype=np.int64)

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add the savings of every swap on the rows of a block."""
        check_columns(rows, self.candidates.shape[1])
        centers, candidates = np.ascontiguousarray(self.centers.T), np.ascontiguousarray(self.candidates.T)
        # Floats here hold integers below 2^53, so sums are exact in any order.
        gains = np.zeros(candidates.shape[1])
        losses = np.zeros((centers.shape[1], candidates.shape[1]))
        _add_savings(rows, centers, candidates, COST_UNITS / self.radius**2, gains, losses)
        state[:-1] += (gains + losses).astype(np.int64).ravel()
        return state


@numba.njit(cache=True, nogil=True)
def _fill_costs(row: FloatArray, columns: FloatArray, units: float, costs: FloatArray) -> None:
    n_features, n_points = columns.shape
    for c in range(n_points):
        costs[c] = 0.0
    for j in range(n_features):
        value = row[j]
        for c in range(n_points):
            gap = value - columns[j, c]
            costs[c] += gap * gap
    for c in range(n_points):
        cost = costs[c] * units
        costs[c] = np.floor(cost) if cost < COST_UNITS else float(COST_UNITS)


@numba.njit(cache=True, nogil=True)
def _add_savings(
    rows: FloatArray,
    centers: FloatArray,
    candidates: FloatArray,
    units: float,
    gains: FloatArray,
    losses: FloatArray,
) -> None:
    # As in FastPAM (Schubert and Rousseeuw 2019): a candidate's savings do not depend on the dropped centre,
    # except for that centre's rows, which fall back on their second nearest.
    of_center, of_candidate = np.empty(centers.shape[1]), np.empty(candidates.shape[1])
    for i in range(rows.shape[0]):
        _fill_costs(rows[i], centers, units, of_center)
        _fill_costs(rows[i], candidates, units, of_candidate)
        nearest, first, second = 0, of_center[0], float(COST_UNITS)
        for c in range(1, centers.shape[1]):
            if of_center[c] < first:
                nearest, first, second = c, of_center[c], first
            elif of_center[c] < second:
                second = of_center[c]
        loss = losses[nearest]
        for c in range(candidates.shape[1]):
            saved = first - of_candidate[c]
            gains[c] += max(saved, 0.0)
            loss[c] += max(min(saved, 0.0), first - second)
