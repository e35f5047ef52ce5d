"""A released noisy grid, and what can be computed from it at no further cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import uniform_filter

from sfumato.domain import FloatArray, Grid, IntArray, Measure, check_shape
from sfumato.domain.blocks import Block, moved_into
from sfumato.domain.measure import AS_THEY_ARE
from sfumato.errors import ParameterError
from sfumato.public.grid.chains import Noise, NoisyGrid
from sfumato.public.grid.posterior import (
    GLANCE_SWEEPS,
    N_CHAINS,
    N_SWEEPS,
    START_RUNS,
    CellMeans,
    affordable_sweeps,
    cell_means,
)
from sfumato.public.kmeans import nearest_centres, one_thread, weighted_kmeans
from sfumato.public.means import project_to_simplex, shrunk_means

# Tuned: docs/notes/constants.md#grid
COARSE_CELLS = 2_000  # of the grid on which k-means starts
CLEAR_CELL = 4.0  # standard deviations of the noise in a mean of neighbours, which noise seldom reaches
NEARLY_ALL = 0.98  # of the rows: if clear cells hold as many, the others are taken for empty
N_MOVES = 10

CELLS_AT_A_TIME = 2**18  # whose coordinates are held


@dataclass(frozen=True, eq=False)
class GridSynopsis:
    """Noisy counts of rows on a public grid.

    Released once, it answers any number of questions: centres for another number of clusters, counts in
    boxes, synthetic points. All of these are post-processing of noisy values and spend nothing.

    Parameters
    ----------
    grid : Grid
    noisy_counts : int64 array
        One per cell in C order; may be negative.
    noise_std : float
        Standard deviation of the noise in each count.
    laplace : bool
        Whether the noise is discrete Laplace; otherwise it is discrete Gaussian.
    noisy_rows : float
        Number of rows, released with noise or public.
    rows_std : float
        Standard deviation of the noise in `noisy_rows`.
    measure : Measure
        From the units of the grid to those in which distances are taken.
    blocks : tuple of Block
        Coordinates that belong together, as those of a category: centres are distributions there.
    """

    grid: Grid
    noisy_counts: IntArray
    noise_std: float
    laplace: bool
    noisy_rows: float
    rows_std: float
    measure: Measure = AS_THEY_ARE
    blocks: tuple[Block, ...] = ()

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        check_shape("noisy_counts", self.noisy_counts, self.grid.n_cells)
        if min(self.noise_std, self.rows_std) < 0:
            raise ParameterError(
                f"noise deviations must not be negative, got {self.noise_std!r} and {self.rows_std!r}"
            )

    def moved(self, measure: Measure) -> GridSynopsis:
        """The same counts in other units. Distances are taken in the same units as before."""
        back = measure.inverse if not self.measure else AS_THEY_ARE
        return replace(self, grid=self.grid.moved(measure), measure=back)

    def rows_estimate(self) -> float:
        """Number of rows, at least 1: the released count and the grid's sum, weighted by precision."""
        grid_variance = self.noise_std**2 * self.grid.n_cells
        trust = grid_variance / (grid_variance + self.rows_std**2) if self.rows_std else 1.0
        return max(trust * self.noisy_rows + (1 - trust) * float(self.noisy_counts.sum()), 1.0)

    def estimated_counts(self) -> FloatArray:
        """Model-free estimate of each cell's true count: non-negative, with the right sum."""
        return project_to_simplex(self.noisy_counts.astype(np.float64), self.rows_estimate())

    def cluster(self, n_clusters: int) -> tuple[FloatArray, FloatArray]:
        """Centres and sizes of k-means clusters. Spends nothing, however often you ask.

        Small grids are read with a Bayesian model of `n_clusters` compact clusters in known noise (see
        `public.grid.posterior`). On large grids cells stand out from the noise by themselves, so counts are
        only projected onto possible values.

        Parameters
        ----------
        n_clusters : int

        Returns
        -------
        centers : ndarray of shape (n_clusters, d)
        sizes : ndarray of shape (n_clusters,)
        """
        if self.measure:
            centers, sizes = self.moved(self.measure).cluster(n_clusters)
            return self.measure.inverse.of(centers), sizes
        with one_thread(self.grid.n_cells):
            centers, sizes = self._clustered(n_clusters)
        return moved_into(self.blocks, centers, np.array(self.grid.high)), sizes

    def _clustered(self, n_clusters: int) -> tuple[FloatArray, FloatArray]:
        """Centres anywhere in the box, and sizes."""
        counts = self.estimated_counts()
        if n_clusters > self.grid.n_cells:
            return self._cluster_within_cells(counts, n_clusters)
        means = self._denoised(counts, n_clusters)
        if means is None:
            start, _ = weighted_kmeans(*_coarsened(self.grid, counts, n_clusters), n_clusters, n_init=10)
            centers, _ = weighted_kmeans(*self._weighed(counts, n_clusters), n_clusters, starts=[start])
            centers = self._unbiased(centers)
            return centers, self._noisy_sizes(centers)
        starts = [centers for centers in means.centers if len(centers) == n_clusters]
        return weighted_kmeans(means.positions, means.counts, n_clusters, n_init=10, starts=starts)

    def noise_in(self, centers: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Standard deviations of the noise in centres and sizes of clusters, if no model reduced it.

        The counts nearest to a centre have independent noise, and a centre is their weighted mean. To first
        order, this is the noise of plain weighted k-means. Denoised centres have less.

        Parameters
        ----------
        centers : float array of shape (n_clusters, d)
        sizes : float array of shape (n_clusters,)

        Returns
        -------
        center_stds : ndarray of shape (n_clusters, d)
        size_stds : ndarray of shape (n_clusters,)
        """
        if self.measure:
            center_stds, size_stds = self.moved(self.measure).noise_in(self.measure.of(centers), sizes)
            return self.measure.inverse.lengths(center_stds), size_stds
        k, squares, n_cells = len(centers), np.zeros_like(centers), np.zeros(len(centers))
        for cells in self._stretches():
            points = self.grid.centers_of(cells)
            with one_thread(len(cells)):
                nearest = nearest_centres(points, centers)
            gaps = (points - centers[nearest]) ** 2
            squares += np.stack([np.bincount(nearest, column, k) for column in gaps.T], axis=1)
            n_cells += np.bincount(nearest, minlength=k)
        size_stds = self.noise_std * np.sqrt(n_cells)
        rows = np.maximum(sizes, np.maximum(size_stds, 1.0))
        return self.noise_std * np.sqrt(squares) / rows[:, None], size_stds

    def _unbiased(self, centers: FloatArray) -> FloatArray:
        """Centres moved towards the means of the noisy counts, where these are more than noise.

        Projected counts are never negative, so the noise left in many empty cells pulls centres to the middle
        of the domain. The noisy counts have no such bias. Their means are shrunk towards the given centres,
        depending on the noise (James and Stein 1961).
        """
        points, counts = self._cells_with_rows()
        k, low, high = len(centers), np.array(self.grid.low), np.array(self.grid.high)
        for _ in range(N_MOVES):
            nearest = nearest_centres(points, centers)
            apart = points - centers[nearest]
            cells = np.maximum(np.bincount(nearest, minlength=k), 1)
            sizes = np.maximum(np.bincount(nearest, counts, k), 2 * self.noise_std * np.sqrt(cells) + 1)
            columns = [np.bincount(nearest, counts * column, k) for column in apart.T]
            sums = np.stack(columns, axis=1, dtype=np.float64)
            squares = np.bincount(nearest, (apart**2).mean(axis=1), k)
            moves = shrunk_means(sums, sizes, self.noise_std * np.sqrt(squares))
            centers = (centers + moves).clip(low, high)
        return centers

    def _cells_with_rows(self) -> tuple[FloatArray, FloatArray]:
        """Centres and noisy counts of the cells that stand out from the noise with their neighbours.

        If these do not contain nearly all rows, the others may be anywhere, and all cells are returned.
        """
        counts = self.noisy_counts.astype(np.float64)
        around = uniform_filter(counts.reshape(self.grid.shape), 3, mode="constant").ravel()
        clear = around > CLEAR_CELL * self.noise_std * 3.0 ** (-len(self.grid.shape) / 2)
        if float(counts[clear].sum()) > NEARLY_ALL * self.rows_estimate():
            return self.grid.centers_of(np.flatnonzero(clear)), counts[clear]
        return self.grid.centers(), counts

    def _noisy_sizes(self, centers: FloatArray) -> FloatArray:
        """Sum of the noisy counts nearest to each centre: unbiased, unlike projected counts."""
        sizes = np.zeros(len(centers))
        for cells in self._stretches():
            nearest = nearest_centres(self.grid.centers_of(cells), centers)
            sizes += np.bincount(nearest, self.noisy_counts[cells], len(centers))
        return np.maximum(sizes, 0.0)

    def _stretches(self) -> Iterator[IntArray]:
        """Flat indices of all cells, some at a time: the coordinates of all would take most of the memory."""
        for start in range(0, self.grid.n_cells, CELLS_AT_A_TIME):
            yield np.arange(start, min(start + CELLS_AT_A_TIME, self.grid.n_cells))

    def _weighed(self, counts: FloatArray, n_clusters: int) -> tuple[FloatArray, FloatArray]:
        """Centres and counts of the cells that have a count, or of all if these are too few."""
        used = np.flatnonzero(counts > 0)
        if len(used) < n_clusters:
            return self.grid.centers(), counts
        return self.grid.centers_of(used), counts[used]

    def _denoised(self, counts: FloatArray, n_clusters: int) -> CellMeans | None:
        """Posterior means with as many clusters as fit, at least `n_clusters`; None if too costly."""
        if self.noise_std == 0 or affordable_sweeps(self.grid, n_clusters) == 0:
            return None
        noise, rows = Noise(self.laplace, self.noise_std), (self.rows_estimate(), self.rows_std)
        seen = NoisyGrid(self.grid, self.noisy_counts.astype(np.float64), noise, rows)
        best = _posterior(seen, counts, n_clusters, N_CHAINS)
        while best is not None:
            # One short chain shows whether more clusters are worth several.
            for n_chains, sweeps in ((1, GLANCE_SWEEPS), (N_CHAINS, N_SWEEPS)):
                finer = _posterior(seen, counts, 2 * len(best.centers[0]), n_chains, sweeps)
                if finer is None or not finer.fits_better(best, rows[0]):
                    return best
            best = finer
        return best

    def _cluster_within_cells(self, counts: FloatArray, n_clusters: int) -> tuple[FloatArray, FloatArray]:
        """With more clusters than cells, spread each cell's count evenly over parts of it."""
        d = len(self.grid.shape)
        factor = math.ceil(math.pow(n_clusters / self.grid.n_cells, 1 / d)) + 1
        parts = counts.reshape(self.grid.shape)
        for axis in range(d):
            parts = np.repeat(parts / factor, factor, axis=axis)
        return weighted_kmeans(self.grid.refined(factor).centers(), parts.ravel(), n_clusters, n_init=10)

    def range_count(self, low: ArrayLike, high: ArrayLike) -> tuple[float, float]:
        """Estimated number of rows in a box, and the standard deviation of its noise.

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
        from sklearn.utils import check_random_state

        rng = check_random_state(random_state)
        weights = self.estimated_counts()
        total = weights.sum()
        shares = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
        cells = rng.choice(len(shares), size=n, p=shares)
        offsets = rng.uniform(-0.5, 0.5, size=(n, len(self.grid.shape)))
        points: FloatArray = self.grid.centers()[cells] + offsets * self.grid.widths
        return points


def _posterior(
    seen: NoisyGrid, counts: FloatArray, n_clusters: int, n_chains: int, most_sweeps: int = N_SWEEPS
) -> CellMeans | None:
    """Posterior means with so many clusters; None if too costly."""
    sweeps = min(affordable_sweeps(seen.grid, n_clusters), most_sweeps)
    if sweeps == 0 or n_clusters > seen.grid.n_cells:
        return None
    starts = [
        weighted_kmeans(seen.middles, counts, n_clusters, n_init=START_RUNS, seed=i) for i in range(n_chains)
    ]
    return cell_means(seen, starts, sweeps)


def _coarsened(grid: Grid, counts: FloatArray, n_clusters: int) -> tuple[FloatArray, FloatArray]:
    """Points and counts of a grid with fewer cells, where many k-means starts are cheap."""
    d = len(grid.shape)
    side = max(2, math.ceil(math.pow(max(COARSE_CELLS, 20 * n_clusters), 1 / d)))
    coarse, middles = counts.reshape(grid.shape), []
    for axis, edges in enumerate(grid.edges()):
        firsts = np.arange(0, grid.shape[axis], max(1, grid.shape[axis] // side))
        coarse = np.add.reduceat(coarse, firsts, axis=axis)
        middles.append((edges[firsts] + edges[np.append(firsts[1:], grid.shape[axis])]) / 2)
    points = np.stack([axis.ravel() for axis in np.meshgrid(*middles, indexing="ij")], axis=1)
    return points, coarse.ravel()
