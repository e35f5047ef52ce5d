"""Marginal histograms of groups, and a score for splitting between two bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.budget.records import Sensitivity
from sfumato.domain import ALL_ROWS, FloatArray, IntArray, check_shape
from sfumato.domain.few_blocks import quickest
from sfumato.domain.partitions import Partition
from sfumato.private.aggregates.base import Grouped
from sfumato.private.aggregates.displacements import of_groups

SMALLEST_WIDTH = 1e-290  # a box of no width has all its rows in the border bins
MANY_SPLITS = 2**16  # which a kernel scores quicker than NumPy, even if it must be loaded
_UNIT = 1024  # scores are integers: one row in the tail of a split counts t / q of these


@dataclass(frozen=True, eq=False)
class Marginals(Grouped):
    """Per group and column: number of rows in each of the equal bins of a public box.

    Privacy
    -------
    A row's group, and its bin in each column, depend only on that row and on public numbers. Adding or
    removing one row changes one bin in each of d columns by 1: L1 = d, L2^2 = d, spread 1. Rows outside the
    box count in the border bins. Proof: docs/proofs/dpm.md.
    """

    partition: Partition
    low: FloatArray  # (n_groups, d); the box of each group
    high: FloatArray  # (n_groups, d); the box of each group
    n_bins: int  # at least 2

    def __post_init__(self) -> None:
        check_shape("low", self.low, self.partition.n_cells, self.low.shape[-1])
        check_shape("high", self.high, *self.low.shape)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for one row."""
        d = self.low.shape[1]
        return Sensitivity(l1=d, l2_squared=d, spread=1, coordinates=d)

    def zero(self) -> IntArray:
        return np.zeros((*self.low.shape, self.n_bins), dtype=np.int64)

    @property
    def n_features(self) -> int:
        return int(self.low.shape[1])

    def add_to_groups(self, state: IntArray, rows: FloatArray, groups: IntArray) -> IntArray:
        """Count the rows of a block in their bins."""
        firsts = np.arange(rows.shape[1], dtype=np.int32) * self.n_bins
        counts = state.reshape(len(state), rows.shape[1] * self.n_bins)
        count = quickest(_count_marginals, _marginals_with_numpy)
        count(rows, groups, self.low, self._bins_per_unit, firsts, counts)
        return state

    @cached_property
    def _bins_per_unit(self) -> FloatArray:
        return self.n_bins / np.maximum(self.high - self.low, SMALLEST_WIDTH)

    def split_at(self, choice: IntArray) -> tuple[IntArray, FloatArray]:
        """Column and position of one split per group, numbered as in `SplitRule.scores`."""
        columns, bins = np.divmod(choice, self.n_bins - 1)
        groups = np.arange(len(choice))
        low, high = self.low[groups, columns], self.high[groups, columns]
        return columns, low + (high - low) * ((bins + 1) / self.n_bins)

    def sides(self, raw_counts: IntArray, choice: IntArray) -> IntArray:
        """Rows left and right of one split per group, shape (n_groups, 2). Disjoint, so sensitivity 1."""
        columns, bins = np.divmod(choice, self.n_bins - 1)
        of_column = raw_counts[np.arange(len(choice)), columns]  # (n_groups, n_bins)
        left = np.where(np.arange(self.n_bins) <= bins[:, None], of_column, 0).sum(axis=1)
        return np.stack([left, of_column.sum(axis=1) - left], axis=1)


@dataclass(frozen=True)
class SplitRule:
    """DPM's score of a split: high in sparse regions not too far from the median (Definitions 5 to 7).

    Multiplied by the group's released size n and rounded to integers, the score is
    ``a * min(m, n q) + b * max(m - n q, 0) - e * rows in the interval + bonus(width)``,
    where m is the number of rows on the smaller side, and the best of several interval widths is taken.

    Privacy
    -------
    The released size n is the same for both neighbours. One row moves the rank of a split by 0 or 1, hence m,
    clamped to [0, n / 2], by -1, 0 or 1, and the first two terms by at most a, since a >= b. It adds at most
    1 to the interval. The maximum over widths moves no further than its parts. So every score changes within
    [-(a + e), a], and the spread is 2 a + e. No offset and no delta are needed. Proof: docs/proofs/dpm.md.

    Parameters
    ----------
    n_bins : int
        Bins per column; a split lies between two of them.
    tail_slope, inner_slope, emptiness : int
        a, b and e above.
    tail : float
        q, the share of rows in each tail.
    width_bonus : float
        Gain from doubling the interval, as a share of the group's size. Ignored with a fixed `interval`.
    interval : float, optional
        Width of the interval around a split, in the units of the data. None tries several.
    """

    n_bins: int
    tail_slope: int
    inner_slope: int
    emptiness: int
    tail: float
    width_bonus: float
    interval: float | None

    @classmethod
    def of(
        cls, n_bins: int, t: float, q: float, alpha: float, interval: float | None, width_bonus: float
    ) -> SplitRule:
        """Rule with the paper's parameters, where t >= 2 q."""
        tail_slope = math.ceil(_UNIT * t / q)
        inner_slope = max(0, math.floor(_UNIT * (1 - t) / (0.5 - q)))
        return cls(n_bins, tail_slope, inner_slope, math.ceil(_UNIT * alpha), q, width_bonus, interval)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the scores for one row: selection pays for the spread."""
        slope = max(self.tail_slope, self.inner_slope)
        most = slope + self.emptiness
        return Sensitivity(l1=most, l2_squared=most**2, spread=2 * slope + self.emptiness)

    def scores(self, marginals: Marginals, raw_counts: IntArray, noisy_sizes: IntArray) -> IntArray:
        """Score of every split of every group, shape (n_groups, d * (n_bins - 1)).

        Split ``j * (n_bins - 1) + b`` lies between bins b and b + 1 of column j.
        """
        groups, d, n_bins = raw_counts.shape
        halves = self._half_widths(marginals)
        check_shape("noisy_sizes", noisy_sizes, groups)
        sizes = np.clip(noisy_sizes, 1, ALL_ROWS)  # no score overflows
        bonus = np.floor(_UNIT * self.width_bonus * np.arange(halves.shape[2]) * sizes[:, None])
        tails = np.floor(self.tail * sizes).astype(np.int64)
        out = np.empty((groups, d, n_bins - 1), dtype=np.int64)
        slopes = (self.tail_slope, self.inner_slope, self.emptiness)
        score = _score_splits if out.size > MANY_SPLITS else _scores_with_numpy
        score(raw_counts, sizes, tails, halves, bonus.astype(np.int64), slopes, out)
        return out.reshape(groups, d * (n_bins - 1))

    def _half_widths(self, marginals: Marginals) -> IntArray:
        """Number of bins on each side of a split for each interval, shape (n_groups, d, n_widths)."""
        if self.interval is None:
            powers: IntArray = 2 ** np.arange(max(1, int(math.log2(marginals.n_bins)) - 2), dtype=np.int64)
            return np.broadcast_to(powers, (*marginals.low.shape, len(powers)))
        widths = np.maximum(marginals.high - marginals.low, SMALLEST_WIDTH)
        bins = np.minimum(self.interval / 2 / widths, 1.0) * marginals.n_bins
        half_widths: IntArray = np.clip(np.rint(bins), 1, marginals.n_bins).astype(np.int64)
        return half_widths[:, :, None]


@numba.njit(cache=True, nogil=True)
def _count_marginals(
    rows: FloatArray,
    groups: IntArray,
    low: FloatArray,
    bins_per_unit: FloatArray,
    firsts: NDArray[np.int32],
    state: IntArray,
) -> None:
    """Count rows in the bins of their groups, shape (n_groups, d * n_bins); `firsts` begin each column's."""
    d = rows.shape[1]
    last = float(state.shape[1] // d - 1)
    places = np.empty(d, dtype=np.int32)
    for i in range(rows.shape[0]):
        if groups[i] < 0:
            continue
        group = np.uint64(groups[i])
        row, lows, factors, counts = rows[i], low[group], bins_per_unit[group], state[group]
        for j in range(d):  # in vector instructions, which the counts below are not made for
            places[j] = np.int32(min(max((row[j] - lows[j]) * factors[j], 0.0), last)) + firsts[j]
        for j in range(d):
            counts[np.uint32(places[j])] += 1


def _marginals_with_numpy(
    rows: FloatArray,
    groups: IntArray,
    low: FloatArray,
    bins_per_unit: FloatArray,
    firsts: NDArray[np.int32],
    state: IntArray,
) -> None:
    last, ones = float(state.shape[1] // rows.shape[1] - 1), (groups >= 0).astype(np.int64)
    counts, starts = state.reshape(-1), np.maximum(groups, 0) * state.shape[1]
    for j, column in enumerate(rows.T):
        place = (column - of_groups(low[:, j], groups)) * of_groups(bins_per_unit[:, j], groups)
        bins = np.minimum(np.maximum(place, 0.0), last).astype(np.int64)
        np.add.at(counts, starts + firsts[j] + bins, ones)


@numba.njit(cache=True, nogil=True)
def _score_splits(
    counts: IntArray,
    sizes: IntArray,
    tails: IntArray,
    halves: IntArray,
    bonus: IntArray,
    slopes: tuple[int, int, int],
    out: IntArray,
) -> None:
    """Score all splits. Loops over those of a column have no branch: processors score several at once."""
    n_bins = counts.shape[2]
    tail_slope, inner_slope, emptiness = slopes
    most = 2**61 // max(1, emptiness)  # more rows than this count as so many, and no score overflows
    # Rows before each bin, with as many bins again on both sides: no interval ends beyond them.
    below = np.zeros(3 * n_bins + 1, dtype=np.int64)
    for g in range(counts.shape[0]):
        for j in range(counts.shape[1]):
            for b in range(n_bins):
                below[n_bins + b + 1] = below[n_bins + b] + counts[g, j, b]
            below[2 * n_bins :] = below[2 * n_bins]
            scores = out[g, j]
            for b in range(n_bins - 1):
                scores[b] = -(2**62)
            for w in range(halves.shape[2]):
                half, gain = halves[g, j, w], bonus[g, w]
                first, last = below[n_bins + 1 - half :], below[n_bins + 1 + half :]
                for b in range(n_bins - 1):
                    scores[b] = max(scores[b], gain - emptiness * min(last[b] - first[b], most))
            rows = below[n_bins + 1 :]
            for b in range(n_bins - 1):
                smaller = max(0, min(rows[b], sizes[g] - rows[b]))
                in_tail = min(smaller, tails[g])
                scores[b] += tail_slope * in_tail + inner_slope * (smaller - in_tail)


def _scores_with_numpy(
    counts: IntArray,
    sizes: IntArray,
    tails: IntArray,
    halves: IntArray,
    bonus: IntArray,
    slopes: tuple[int, int, int],
    out: IntArray,
) -> None:
    n_bins = counts.shape[2]
    tail_slope, inner_slope, emptiness = slopes
    below = np.zeros((*counts.shape[:2], 3 * n_bins + 1), dtype=np.int64)
    np.cumsum(counts, axis=2, out=below[:, :, n_bins + 1 : 2 * n_bins + 1])
    below[:, :, 2 * n_bins + 1 :] = below[:, :, 2 * n_bins, None]
    places = np.arange(n_bins + 1, 2 * n_bins)
    out[:] = -(2**62)
    for w in range(halves.shape[2]):
        half = halves[:, :, w, None]
        first, last = (np.take_along_axis(below, places + shift, axis=2) for shift in (-half, half))
        inside = np.minimum(last - first, 2**61 // max(1, emptiness))
        np.maximum(out, bonus[:, w, None, None] - emptiness * inside, out=out)
    rows = below[:, :, n_bins + 1 : 2 * n_bins]
    smaller = np.maximum(np.minimum(rows, sizes[:, None, None] - rows), 0)
    in_tail = np.minimum(smaller, tails[:, None, None])
    out += tail_slope * in_tail + inner_slope * (smaller - in_tail)
