"""Which released cells are parts of one cluster, and which are clusters of their own.

Two groups of cells are parts of one cluster if the gap between their centres is small compared with the
spread of rows along the line between them. In many columns this line is one direction of many: the rows'
distances are much larger than the gap between two clusters, and still the clusters do not touch. So a
silhouette, which compares distances, is close to 0 there. The noise is taken off all squared lengths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray

# Tuned: docs/notes/how_many.md#constants
APART = 3.5  # gap between two clusters, in deviations of their rows along the line between them
STRETCH = 2.0  # variance along the line, in mean variances of a column: clusters are seldom round
MOST_DIRECTIONS = 1 / 0.03  # in which the rows of a cluster spread, however many columns there are
DOUBT = 1.0  # standard deviations by which a gap must exceed its noise


class Noise(NamedTuple):
    """Noise in released cells, and how far rows are from their centres."""

    center_stds: FloatArray  # (m,); in each coordinate of a centre
    size_std: float
    mean_square: float  # of the rows' distances from the centre of their cell
    mean_square_std: float

    def of(self, cells: NDArray[np.bool_]) -> Noise:
        """The same for some of the cells."""
        return self._replace(center_stds=self.center_stds[cells])

    def within(self, sizes: FloatArray, n_features: int) -> float:
        """Mean squared distance of rows from the true means of their cells, without noise."""
        rows = np.maximum(sizes, 0.0)
        noise = n_features * float(rows @ self.center_stds**2) / max(float(rows.sum()), 1.0)
        return max(self.mean_square - noise, self.mean_square / 10)


def separated_groups(centers: FloatArray, sizes: FloatArray, noise: Noise) -> FloatArray:
    """Centres of the clusters that cells form: the closest pair is merged until all pairs are apart.

    Parameters
    ----------
    centers : float array of shape (m, d)
    sizes : float array of shape (m,)
        Positive.
    noise : Noise
    """
    groups = _Groups(centers, sizes, noise)
    n_cells = len(sizes)
    gaps = np.full((n_cells, n_cells), np.inf)
    for one in range(n_cells):
        gaps[one] = groups.gaps_from(one)
    gaps = np.minimum(gaps, gaps.T)
    while (least := int(gaps.argmin())) >= 0 and gaps.flat[least] < APART:
        kept, dropped = divmod(least, n_cells)
        groups.merge(kept, dropped)
        gaps[dropped] = gaps[:, dropped] = np.inf
        gaps[kept] = gaps[:, kept] = groups.gaps_from(kept)
    return groups.centers[groups.alive]


class _Groups:
    """Groups of cells while they are merged."""

    def __init__(self, centers: FloatArray, sizes: FloatArray, noise: Noise) -> None:
        n_cells, d = centers.shape
        within = noise.within(sizes, d)
        self.cells, self.cell_sizes = centers, sizes
        # The mean of a few rows is off by chance as well.
        self.cell_noise = noise.center_stds**2 + within / (d * np.maximum(sizes, 1.0))
        self.labels: IntArray = np.arange(n_cells)
        self.alive = np.ones(n_cells, dtype=bool)
        self.centers, self.sizes, self.noise = centers.copy(), sizes.copy(), self.cell_noise.copy()
        per_column = max(STRETCH / d, 1 / MOST_DIRECTIONS)
        self.along = max(within * min(per_column, 1.0), np.finfo(float).tiny)

    def merge(self, kept: int, dropped: int) -> None:
        """Join two groups."""
        pair = [kept, dropped]
        total = self.sizes[pair].sum()
        shares = self.sizes[pair] / total
        self.centers[kept] = shares @ self.centers[pair]
        self.noise[kept] = shares**2 @ self.noise[pair]
        self.sizes[kept] = total
        self.labels[self.labels == dropped] = kept
        self.alive[dropped] = False

    def gaps_from(self, one: int) -> FloatArray:
        """Gap to each other group, in deviations of the rows along the line; infinite for none."""
        others = np.flatnonzero(self.alive & (np.arange(len(self.alive)) != one))
        d = self.cells.shape[1]
        lines = self.centers[others] - self.centers[one]
        squares = (lines**2).sum(axis=1)
        noise = self.noise[others] + self.noise[one]
        clean = np.maximum(squares - d * noise, 0.0)
        clean = np.maximum(clean - DOUBT * np.sqrt(2 * d * noise**2 + 4 * noise * clean), 0.0)
        lines /= np.sqrt(np.maximum(squares, np.finfo(float).tiny))[:, None]
        spread = self.along + (self._spread_of(one, lines) + self._spreads(others, lines)) / 2
        gaps = np.full(len(self.alive), np.inf)
        gaps[others] = np.sqrt(clean / spread)
        return gaps

    def _parts(self) -> tuple[FloatArray, FloatArray]:
        """Share of each cell in its group, and the noise in its squared distance from the centre."""
        shares = self.cell_sizes / self.sizes[self.labels]
        return shares, shares * self.cell_noise * (1 - shares)

    def _spread_of(self, one: int, lines: FloatArray) -> FloatArray:
        """Variance of the cells of one group along each line."""
        own = self.labels == one
        shares, noise = self._parts()
        apart = (self.cells[own] - self.centers[one]) @ lines.T  # (n_own, n_lines)
        return np.asarray(np.maximum(shares[own] @ apart**2 - noise[own].sum(), 0.0))

    def _spreads(self, groups: IntArray, lines: FloatArray) -> FloatArray:
        """Variance of the cells of each group along its own line."""
        of_group = np.zeros_like(self.centers)
        of_group[groups] = lines
        shares, noise = self._parts()
        apart = ((self.cells - self.centers[self.labels]) * of_group[self.labels]).sum(axis=1)
        found = np.bincount(self.labels, shares * apart**2 - noise, len(self.alive))
        return np.maximum(found[groups], 0.0)
