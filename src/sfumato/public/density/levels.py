"""The tree of density levels of a noisy histogram, cut where peaks are more than noise.

The histogram is smoothed by a normal kernel of one cell. The noise of a smoothed count is known: the added
noise, weighted by the kernel, and the sampling noise of a Poisson count. A root transform makes this noise
the same everywhere. On that scale, a peak is a cluster of its own if its bulk stands further above the
saddle, where it joins a higher peak, than noise makes likely. No radius and no least number of rows are
needed. What was tried and measured: docs/notes/density.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, gaussian_filter1d, maximum_filter
from scipy.stats import chi2

from sfumato.domain import FloatArray, IntArray
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.peak_tree import PeakTree, grow_peak_tree
from sfumato.public.density.regions import Regions, measured_regions, selection_bias
from sfumato.public.density.stencils import adjacent_offsets
from sfumato.public.density.tails import log_moments
from sfumato.public.intervals import CONFIDENCE

_NOTHING = 1e-9  # rows per cell: rounding leaves as much where nothing is

# Tuned: docs/notes/density.md, docs/notes/constants.md#density-tree
FLOOR = 2.0  # standard deviations of the noise of an empty place: lower levels are not looked at

# Where little is known, a valley that takes a quarter of the height between bulk and nothing is enough, as
# long as it is deeper than those of an even cloud. For the usual prominence; others scale all of it.
_VALLEY_SHARE, _CLOUD_PROMINENCE, USUAL_PROMINENCE = 0.25, 1.6, 2.5

_FALSE_CHANCE = 0.02  # largest probability that noise alone makes a cluster anywhere in an empty domain

# Where a cluster ends, as a share of its typical density: low, because tails belong to it; but nearer to one
# half, where a blurred edge is in its true place, if its edges are sharp and rows lie around it.
_TAIL_SHARE = 0.1
_EDGE_SHARE = 0.52
# Rows lie around it if two things hold. Places below a share of the typical density hold enough of the rows,
# tails of clusters included. The density two cells away from all places above a share, if it were that of the
# whole domain, would make enough rows.
_OUTSIDE_SHARE, _OUTSIDE_ROWS = 0.3, 0.04
_AWAY_SHARE, _AWAY_ROWS = 0.2, 0.01


@dataclass(frozen=True, eq=False)
class LevelTree:
    """Peaks of the smoothed density from the highest to the lowest, and where they join.

    Parameters
    ----------
    positions : float array of shape (n_peaks, d)
    heights : float array of shape (n_peaks,)
        Density at the peak, in rows per cell.
    saddles : float array of shape (n_peaks,)
        Density at which the peak joins a higher one; 0 if it never does.
    parents : int array of shape (n_peaks,)
        The higher peak, or -1 if none.
    prominences : float array of shape (n_peaks,)
        How far the peak's bulk stands above the saddle, in standard deviations of the noise. If the side it
        joins has a lower bulk, that one counts.
    """

    positions: FloatArray
    heights: FloatArray
    saddles: FloatArray
    parents: IntArray
    prominences: FloatArray


class Levels:
    """Smoothed density of a histogram, its noise, and its merge tree."""

    def __init__(self, histogram: NoisyHistogram) -> None:
        grid = histogram.grid
        self.histogram = histogram
        smooth = gaussian_filter(
            histogram.counts.reshape(grid.shape).astype(np.float64), 1.0, mode="constant"
        )
        self.cells = np.flatnonzero(smooth.ravel() > max(FLOOR * self.noise, _NOTHING)).astype(np.int64)
        self.density: FloatArray = smooth.ravel()[self.cells]
        self.tree: PeakTree = grow_peak_tree(
            self.cells, self.density, grid.shape, adjacent_offsets(len(grid.shape))
        )

    @cached_property
    def _kernel(self) -> FloatArray:
        """Weights of the kernel along one column."""
        impulse = np.zeros(11)
        impulse[5] = 1.0
        return np.asarray(gaussian_filter1d(impulse, 1.0, mode="constant"))

    @property
    def _n_features(self) -> int:
        return len(self.histogram.grid.shape)

    @property
    def own_weight(self) -> float:
        """Weight of a cell's own count in its smoothed count."""
        return float(self._kernel.max() ** self._n_features)

    @property
    def _concentration(self) -> float:
        """Sum of the squared weights of the kernel: one over the number of cells it averages."""
        return float((self._kernel**2).sum() ** self._n_features)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise of a smoothed count in an empty place."""
        return math.sqrt(self.histogram.variance * self._concentration)

    def _stable(self, density: FloatArray) -> FloatArray:
        """Density on the scale where its noise has unit variance everywhere."""
        variance = self.histogram.variance
        raised = np.maximum(density, -0.99 * variance) + max(variance, 1e-9)
        return np.asarray(2 * np.sqrt(raised / self._concentration))

    @cached_property
    def least_height(self) -> float:
        """Density that noise seldom reaches anywhere in an empty domain (Chernoff's bound over all cells)."""
        log_chance = math.log(_FALSE_CHANCE / self.histogram.grid.n_cells)
        if self.histogram.mechanism == "discrete Gaussian":
            return self.noise * math.sqrt(-2 * log_chance)
        weights, times = np.ones(1), np.ones(1)
        for _ in range(self._n_features):  # distinct weights of the product of kernels, and how often each
            products = np.multiply.outer(weights, self._kernel).round(12).ravel()
            weights, place = np.unique(products, return_inverse=True)
            times = np.bincount(place, np.repeat(times, len(self._kernel))).astype(np.float64)
        rates = np.linspace(0, min(0.98 / self.histogram.scale, 50.0), 100)[1:] / weights.max()
        logs = [times @ log_moments(self.histogram, rate * weights) for rate in rates]
        return float(np.min((np.array(logs) - log_chance) / rates))

    @cached_property
    def prominences(self) -> FloatArray:
        """How far the bulk of each peak stands above its saddle, or above nothing, in standard deviations."""
        saddles = np.maximum(self.tree.saddles, 0.0)
        return self._stable(self.tree.bulks) - self._stable(saddles)

    def standing(self, prominence: float, n_clusters: int | None) -> NDArray[np.bool_]:
        """Peaks that are clusters: those of enough prominence, or the `n_clusters` most prominent."""
        if n_clusters is None:
            heights = self._stable(self.tree.bulks) - self._stable(np.zeros(1))
            usual = np.clip(_VALLEY_SHARE * heights, _CLOUD_PROMINENCE, USUAL_PROMINENCE)
            least = usual * (prominence / USUAL_PROMINENCE)
            alone = self.tree.parents < 0
            return np.where(alone, self.tree.heights >= self.least_height, self.prominences >= least)
        order = np.argsort(-self.prominences, kind="stable")
        stands = np.zeros(self.tree.n_peaks, dtype=bool)
        stands[order[:n_clusters]] = True
        return stands

    def above(self, level: float) -> IntArray:
        """Clusters of the cells at or above a level: their connected components."""
        stands = (self.tree.heights >= level) & (self.tree.saddles < level)
        return np.where(self.density >= level, self.tree.clusters(stands), -1)

    def floors(self, labels: IntArray) -> FloatArray:
        """Density at which each cluster ends."""
        n_clusters = int(labels.max(initial=-1)) + 1
        inside = labels >= 0
        mass = np.bincount(labels[inside], self.density[inside], n_clusters)
        squares = np.bincount(labels[inside], self.density[inside] ** 2, n_clusters)
        typical = squares / np.maximum(mass, 1e-300)
        if not n_clusters:
            return typical
        fringe = inside & (self.density < typical[labels] / 2)
        fringes = np.bincount(labels[fringe], self.density[fringe], n_clusters) / np.maximum(mass, 1e-300)
        of_normal = float(chi2.sf(2 * math.log(2 * 2 ** (self._n_features / 2)), self._n_features))
        sharp = ((of_normal - fringes) / (0.16 * of_normal)).clip(0, 1)
        around = self._rows_around(labels, typical)
        return np.asarray(typical * (_TAIL_SHARE + (_EDGE_SHARE - _TAIL_SHARE) * sharp * around))

    def _rows_around(self, labels: IntArray, typical: FloatArray) -> float:
        """How clearly rows lie around the clusters, beyond their tails: from 0 (none seen) to 1."""
        counts, shape = self.histogram.counts, self.histogram.grid.shape
        relative = np.where(labels >= 0, self.density / typical[labels], 0.0)
        total = max(1, int(counts.sum()))
        outside = 1 - float(counts[self.cells[relative >= _OUTSIDE_SHARE]].sum()) / total
        near = np.zeros(len(counts), dtype=np.uint8)
        near[self.cells[relative >= _AWAY_SHARE]] = 1
        away = maximum_filter(near.reshape(shape), 5, mode="constant").ravel() == 0  # by more than two cells
        spread = float(counts[away].mean()) * len(counts) / total if away.any() else 0.0
        return float(np.clip(min(outside / _OUTSIDE_ROWS, spread / _AWAY_ROWS), 0.0, 1.0))

    def published(self) -> LevelTree:
        """The tree with positions of its peaks."""
        grid, tree = self.histogram.grid, self.tree
        first = np.full(tree.n_peaks, -1, dtype=np.int64)
        highest = np.argsort(self.density, kind="stable")
        first[tree.peaks[highest]] = self.cells[highest]  # the last one written is the peak itself
        at = (
            np.stack(np.unravel_index(first, grid.shape), axis=1)
            if tree.n_peaks
            else np.empty((0, len(grid.shape)))
        )
        positions = np.array(grid.low) + (at + 0.5) * grid.widths
        return LevelTree(
            positions, tree.heights, np.maximum(tree.saddles, 0.0), tree.parents, self.prominences
        )


def cut_levels(
    levels: Levels, prominence: float, n_clusters: int | None = None, level: float | None = None
) -> Regions:
    """Clusters of a smoothed density: significant peaks, the most prominent peaks, or all above a level.

    Parameters
    ----------
    levels : Levels
    prominence : float
    n_clusters : int, optional
    level : float, optional
        In rows per cell.
    """
    if level is not None:
        labels = levels.above(level)
        floors = np.full(int(labels.max(initial=-1)) + 1, level)
    else:
        labels = levels.tree.clusters(levels.standing(prominence, n_clusters))
        floors = levels.floors(labels)
    labels = np.where(levels.density < floors[labels], -1, labels) if len(floors) else labels
    kept, histogram = labels >= 0, levels.histogram
    bias = selection_bias(
        levels.density[kept], labels[kept], floors, levels.noise, histogram.variance * levels.own_weight
    )
    order = np.argsort(levels.cells[kept])
    return measured_regions(histogram, 1, levels.cells[kept][order], labels[kept][order], bias, CONFIDENCE)
