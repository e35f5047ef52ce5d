"""A released noisy grid, and all that can be computed from it at no further cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from sfumato.domain import FloatArray, Grid, IntArray


@dataclass(frozen=True, eq=False)
class GridSynopsis:
    """Noisy counts of rows on a public grid.

    Released once, it answers any number of later questions: centres for another number of clusters, counts in
    boxes, synthetic points. All of that is post-processing of noisy values and spends nothing.

    Parameters
    ----------
    grid : Grid
    noisy_counts : int64 array
        One per cell in C order; may be negative.
    noise_std : float
        Standard deviation of the noise in each count.
    noisy_rows : float
        Number of rows: released with noise, or public.
    rows_std : float
        Standard deviation of the noise in `noisy_rows`.
    """

    grid: Grid
    noisy_counts: IntArray
    noise_std: float
    noisy_rows: float
    rows_std: float

    def estimated_counts(self) -> FloatArray:
        """Estimate of each cell's true count: non-negative, summing to the estimated number of rows."""
        return _project_to_simplex(self.noisy_counts.astype(np.float64), max(self.rows_estimate(), 0.0))

    def rows_estimate(self) -> float:
        """Number of rows: the bought count and the sum of the grid, weighted by their precision."""
        grid_variance = self.noise_std**2 * self.grid.n_cells
        trust = grid_variance / (grid_variance + self.rows_std**2)
        return trust * self.noisy_rows + (1 - trust) * float(self.noisy_counts.sum())

    def cluster(self, n_clusters: int) -> tuple[FloatArray, FloatArray]:
        """Centres and sizes of k-means clusters."""
        factor = 1
        while self.grid.refined(factor).n_cells < n_clusters:
            factor += 1
        weights = self.estimated_counts()
        km = KMeans(n_clusters, n_init=10, random_state=0).fit(self.grid.centers(), sample_weight=weights)
        return km.cluster_centers_, np.bincount(km.labels_, weights, n_clusters)

    def range_count(self, low: ArrayLike, high: ArrayLike) -> tuple[float, float]:
        """Estimated rows in a box, and the standard deviation that the noise gives it.

        Cells that the box cuts count in proportion to the part inside.

        Parameters
        ----------
        low, high : array-like of shape (d,)
        """
        inside = np.ones(())
        for edges, a, b in zip(self.grid.edges(), np.atleast_1d(low), np.atleast_1d(high), strict=True):
            overlap = np.minimum(edges[1:], b) - np.maximum(edges[:-1], a)
            inside = np.multiply.outer(inside, np.clip(overlap / np.diff(edges), 0.0, 1.0))
        fractions = inside.ravel()
        return float(fractions @ self.noisy_counts), self.noise_std * float(np.linalg.norm(fractions))

    def sample(self, n: int, random_state: int | None = None) -> FloatArray:
        """Synthetic rows: cells drawn by their estimated counts, positions uniform within a cell.

        Parameters
        ----------
        n : int
        random_state : int, optional
        """
        rng = check_random_state(random_state)
        weights = self.estimated_counts()
        total = weights.sum()
        shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
        cells = rng.choice(len(shares), size=n, p=shares)
        offsets = rng.uniform(-0.5, 0.5, size=(n, len(self.grid.shape)))
        return self.grid.centers()[cells] + offsets * self.grid.widths


def _project_to_simplex(values: FloatArray, total: float) -> FloatArray:
    """Nearest non-negative vector with the given sum (Duchi et al. 2008)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    threshold = excess[np.flatnonzero(ordered > excess)[-1]] if total > 0 else ordered[0]
    return np.maximum(values - threshold, 0.0)
