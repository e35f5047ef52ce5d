"""Noisy histograms of distances: their public borders, and how to read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import Domain, FloatArray, IntArray


def distance_edges(domain: Domain, bins_per_octave: int, n_octaves: int) -> FloatArray:
    """Public borders of a histogram, in a geometric series up to the diameter of the domain."""
    edges: FloatArray = (
        2 * domain.reach * 2.0 ** (np.arange(1 - bins_per_octave * n_octaves, 1) / bins_per_octave)
    )
    return edges


def excess(shares: FloatArray) -> FloatArray:
    """Mean distance by which rows exceed a radius, in units of it, from the shares of rows that do.

    Distances are taken to fall off exponentially: beyond a radius r with a share p, by r / -log p on average.

    Examples
    --------
    >>> import numpy as np
    >>> excess(np.array([0.1, 0.25, 0.5])).round(3)
    array([0.043, 0.18 , 0.721])
    """
    known = np.clip(shares, 1e-12, 1 - 1e-12)
    return np.asarray(-known / np.log(known))


# Tuned: docs/notes/constants.md#refine
MOST_ROWS = 0.9  # share of the rows within the radius of a sum; rows beyond it are clipped
CLEAR_COUNT = 4  # standard deviations at which a count is not noise


class Reach(NamedTuple):
    """How far rows are from their centres: the share of rows below each edge. Public."""

    edges: FloatArray
    share: FloatArray

    @classmethod
    def read(cls, noisy_counts: IntArray, edges: FloatArray, noise: float = 0.0) -> Reach:
        """Turn noisy counts into shares that never fall. The last count is beyond all edges.

        `noise` is its standard deviation. Counts after the last one that exceeds the noise are taken as zero.
        If none does, as in small tables, all are taken as they are: the first alone would say that all rows
        are next to their centres, and that means are exact.
        """
        counts = noisy_counts[:-1]
        clear = np.flatnonzero(counts > CLEAR_COUNT * noise) if noise else np.empty(0)
        if len(clear):
            counts = np.where(np.arange(len(counts)) <= clear[-1], counts, 0)
        reached = np.maximum.accumulate(np.maximum(np.cumsum(counts), 0))
        return cls(edges, reached / max(float(reached[-1]), 1.0))

    def holding(self, share: float) -> float:
        """Radius that contains this share of the rows; the largest if no rows are seen."""
        return float(self.edges[min(int(np.searchsorted(self.share, share)), len(self.edges) - 1)])

    def within(self, share: float) -> float:
        """Radius that contains this share of the rows, with the rows of a bin spread evenly over it."""
        i = min(int(np.searchsorted(self.share, share)), len(self.edges) - 1)
        if i == 0:
            return float(self.edges[0])
        below, in_bin = self.share[i - 1], self.share[i] - self.share[i - 1]
        part = min(max(share - below, 0.0) / in_bin, 1.0) if in_bin > 0 else 1.0
        return float(self.edges[i - 1] * (self.edges[i] / self.edges[i - 1]) ** part)

    @property
    def mean_square(self) -> float:
        """Mean squared distance, with every row in the middle of its bin."""
        return float(self._in_bins @ self._middles**2)

    def widened(self, factor: float) -> Reach:
        """The same rows, with all distances multiplied by `factor`."""
        return self._replace(edges=self.edges * factor)

    def beyond(self, radius: float) -> float:
        """Mean distance by which rows exceed the radius, over all rows."""
        return float(self._in_bins @ np.maximum(self._middles - radius, 0.0))

    @property
    def _middles(self) -> FloatArray:
        return np.asarray(self.edges * np.sqrt(self.edges[0] / self.edges[1]))

    @property
    def _in_bins(self) -> FloatArray:
        """Share of the rows in each bin."""
        return np.asarray(np.diff(self.share, prepend=0.0))
