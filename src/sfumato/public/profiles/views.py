"""One column of one cluster, of the rest, or of the table: estimated counts and what is unsure about them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray
from sfumato.public.profiles.near_zero import interval_of

_ROUNDS = 4  # of finding an interval's end at which the standard deviation belongs to the end itself
# A size of fewer standard deviations says nothing about shares: they may be anything.
LEAST_SIZE = 2.0


@dataclass(frozen=True, eq=False)
class View:
    """Counts of one column in some rows, or in each of several clusters. Missing values are in the last bin.

    Parameters
    ----------
    linear : float array of shape (..., n_bins)
        Unbiased estimates; they may be negative.
    counts : float array of shape (..., n_bins)
        Estimates that are not negative.
    covariance : float array of shape (n_bins, n_bins)
        Of the linear estimates; the same for all clusters.
    tails : float
        Excess kurtosis of the noise in one count, and 0 for sums of many.
    variance : float
        Of the noise in one count.
    """

    linear: FloatArray
    counts: FloatArray
    covariance: FloatArray
    tails: float
    variance: float

    @property
    def sizes(self) -> FloatArray:
        """Estimated number of rows, shape (..., 1)."""
        return np.asarray(self.counts.sum(axis=-1, keepdims=True))

    @property
    def linear_sizes(self) -> FloatArray:
        """Unbiased number of rows, shape (..., 1)."""
        return np.asarray(self.linear.sum(axis=-1, keepdims=True))

    @property
    def size_std(self) -> float:
        """Standard deviation of each linear size."""
        return math.sqrt(max(float(self.covariance.sum()), 0.0))

    @property
    def is_hidden(self) -> NDArray[np.bool_]:
        """Whether noise hides how many rows there are, so that shares are unknown; shape (..., 1)."""
        return np.asarray((self.linear_sizes <= LEAST_SIZE * self.size_std) | (self.sizes <= 0))

    def shares(self) -> FloatArray:
        """Estimated share of each bin; equal shares if there are no rows."""
        sizes = self.sizes
        shares = self.counts / np.where(sizes > 0, sizes, 1.0)
        return np.where(sizes > 0, shares, 1 / self.counts.shape[-1])

    def share_intervals(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals of all shares.

        A share p is refused if count - p size is too far from 0 for its noise, which depends on p (Fieller
        1954). Near 0 and near 1 the ends follow `near_zero`.
        """
        shares, is_hidden = self.shares(), self.is_hidden
        sizes = np.where(is_hidden, 1.0, self.linear_sizes)
        low, high = self._ends(self.linear, sizes, mirrored=False)
        other_low, other_high = self._ends(sizes - self.linear, sizes, mirrored=True)
        is_large = self.linear > sizes / 2
        low, high = np.where(is_large, 1 - other_high, low), np.where(is_large, 1 - other_low, high)
        low, high = np.where(is_hidden, 0.0, low), np.where(is_hidden, 1.0, high)
        return np.minimum(low, shares).clip(0, 1), np.maximum(high, shares).clip(0, 1)

    def _ends(
        self, counts: FloatArray, sizes: FloatArray, *, mirrored: bool
    ) -> tuple[FloatArray, FloatArray]:
        found = []
        for end in (0, 1):
            shares = np.clip(counts / sizes, 0.0, 1.0)
            for _ in range(_ROUNDS):
                stds = self._stds(1 - shares if mirrored else shares)
                shares = np.clip(interval_of(counts, stds)[end] / sizes, 0.0, 1.0)
            found.append(shares)
        return found[0], found[1]

    def _stds(self, shares: FloatArray) -> FloatArray:
        """Standard deviation of count - share * size in each bin, widened for noise with long tails.

        95 % of Laplace noise is within 2.12 standard deviations instead of 1.96. The estimate of a bin is a
        sum of its own noise and small parts of the noise in others, so that its excess kurtosis is about
        own^4 / variance^2 times that of Laplace noise (Cornish and Fisher 1938).
        """
        with_size, of_size = self.covariance.sum(axis=0), float(self.covariance.sum())
        own = np.diagonal(self.covariance)
        variance = np.maximum(own - 2 * shares * with_size + shares**2 * of_size, 1e-300)
        part = (own - shares * with_size) / self.variance  # weight of the bin's own noise
        tails = self.tails * part**4 * self.variance**2 / variance**2
        found: FloatArray = np.sqrt(variance) * (1 + _LONG * np.clip(tails, 0.0, 3.0))
        return found


_LONG = 0.08 / 3  # by which 95 % intervals of Laplace noise are wider, per unit of excess kurtosis
