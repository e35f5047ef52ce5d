"""Noisy histograms of distances: their public borders, and what is read from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import Domain, FloatArray, IntArray


def distance_edges(domain: Domain, bins_per_octave: int, n_octaves: int) -> FloatArray:
    """Public borders of a histogram: a geometric series up to the diameter of the domain."""
    edges: FloatArray = (
        2 * domain.reach * 2.0 ** (np.arange(1 - bins_per_octave * n_octaves, 1) / bins_per_octave)
    )
    return edges


CLEAR_COUNT = 4  # standard deviations at which a count is not noise


class Reach(NamedTuple):
    """How far rows are from their centres: the share of them below each edge. Public."""

    edges: FloatArray
    share: FloatArray

    @classmethod
    def read(cls, noisy_counts: IntArray, edges: FloatArray, noise: float = 0.0) -> Reach:
        """Make noisy counts, of which the last is beyond all edges, a share that never falls.

        With `noise`, its standard deviation, counts after the last that stands out of it are taken for none.
        """
        counts = noisy_counts[:-1]
        if noise:
            clear = np.flatnonzero(counts > CLEAR_COUNT * noise)
            counts = np.where(np.arange(len(counts)) <= clear.max(initial=0), counts, 0)
        reached = np.maximum.accumulate(np.maximum(np.cumsum(counts), 0))
        return cls(edges, reached / max(float(reached[-1]), 1.0))

    def holding(self, share: float) -> float:
        """Radius that holds this share of the rows; the largest if none are seen."""
        return float(self.edges[min(int(np.searchsorted(self.share, share)), len(self.edges) - 1)])

    @property
    def mean_square(self) -> float:
        """Mean of the squared distances, with every row in the middle of its bin."""
        return float(self._in_bins @ self._middles**2)

    def widened(self, factor: float) -> Reach:
        """The same rows, so much further away."""
        return self._replace(edges=self.edges * factor)

    def beyond(self, radius: float) -> float:
        """Mean over all rows of how far beyond the radius they are."""
        return float(self._in_bins @ np.maximum(self._middles - radius, 0.0))

    @property
    def _middles(self) -> FloatArray:
        return np.asarray(self.edges * np.sqrt(self.edges[0] / self.edges[1]))

    @property
    def _in_bins(self) -> FloatArray:
        """Share of the rows in each bin."""
        return np.asarray(np.diff(self.share, prepend=0.0))
