"""Clusters of a noisy histogram: regions that valleys separate, and where each of them ends.

A histogram is smoothed at many scales (`scales`), its peaks are joined where no valley lies between them
(`joins`), and each region is cut off where its density falls to that of its surroundings. No radius and no
least number of rows are needed. What was tried and measured: docs/notes/density.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.ndimage import label, maximum_filter

from sfumato.domain import FloatArray, IntArray
from sfumato.public.density.joins import Joins, join_regions
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.peak_tree import grow_peak_tree
from sfumato.public.density.regions import Regions, regions_of_leaves
from sfumato.public.density.scales import Layer, Scales
from sfumato.public.density.stencils import adjacent_offsets
from sfumato.public.density.tails import log_moments

# Tuned: docs/notes/density.md, docs/notes/constants.md#density-tree
# Precisions of the layers, where there are enough rows for them.
_PRECISIONS = (5.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 2048.0, 8192.0, 32768.0)
_ROWS_PER_KERNEL = 4  # kernels that the rows must fill for a layer to show anything
_EDGE_PRECISION = 14.0  # of the layer that shows where clusters end
# The deepest valley that sampling makes among n kernels grows as the largest of n normal numbers. Added noise
# is smooth within a leaf, and makes fewer valleys; it also blurs the sharp gaps of sampling, for which the
# limit is steeper.
_PER_LARGEST, _LESS = 1.5, 3.3
_PER_LARGEST_GAP, _LESS_GAP = 0.5, 1.6  # more of both, in proportion to the power of the share of sampling
_GAP_POWER = 4
_LEAST_SCORE = 0.1

# Largest probability that a mean of so many noisy counts is this far from zero anywhere in an empty domain.
# Kernels of many sizes are tried, so a region of noise is a few times as likely; a span must pass again.
_FALSE_CHANCE = 0.02
_RATES = 60  # candidate exponents of Chernoff's bound, which holds for any of them

# Where a cluster ends. With rows around it: half-way, in logarithms, between the density around it and its
# typical one. With none around it: at a small share of its typical density, because tails belong to it.
_TAIL_SHARE = 0.02
# Rows lie around it if three things hold. Places below a share of the typical density hold enough of the
# rows, tails of clusters included. The density two cells away from all places above a share, if it were
# that of the whole domain, would make enough rows. And it does not fall off farther away, as tails do.
_OUTSIDE_SHARE, _OUTSIDE_ROWS = 0.3, 0.04
_AWAY_SHARE, _AWAY_ROWS = 0.2, 0.01
_NEAR, _FAR = 5, 17  # cells along the sides of a box that must not meet such places
_FALLS_OFF, _STAYS = 0.25, 0.45  # the density far away over the one nearby
_SURE = 2.0  # standard deviations of noise: it is a sign at one time as many, and sure at two


@dataclass(frozen=True, eq=False)
class LevelTree:
    """Peaks of the smoothed density from the highest to the lowest, and where they join.

    Parameters
    ----------
    positions : float array of shape (n_peaks, d)
    heights : float array of shape (n_peaks,)
        Density at the peak, in rows per cell of the fine grid.
    saddles : float array of shape (n_peaks,)
        Density on the border at which the peak's region joins another; 0 for the last one.
    parents : int array of shape (n_peaks,)
        The peak of that other region, or -1 if none.
    prominences : float array of shape (n_peaks,)
        Depth of the valley between the two, in standard errors, as a multiple of what noise seldom makes. A
        region of its own has at least the `prominence` of the cut.
    """

    positions: FloatArray
    heights: FloatArray
    saddles: FloatArray
    parents: IntArray
    prominences: FloatArray


class Levels:
    """Smoothed densities of a histogram, the regions around their peaks, and how these join.

    Parameters
    ----------
    histogram : NestedHistogram
    min_rows : float
        Regions with fewer rows are joined to others first.
    """

    def __init__(self, histogram: NestedHistogram, min_rows: float = 0.0) -> None:
        self.histogram, self.min_rows = histogram, min_rows
        self.shape = histogram.grid.shape
        scales = Scales.of(histogram)
        rows = max(float(histogram.estimates.sum()), 1.0)
        wanted = [p for p in _PRECISIONS if p == _PRECISIONS[0] or p * _ROWS_PER_KERNEL < rows]
        *layers, edges = scales.layers([*wanted, _EDGE_PRECISION])
        self.edges: Layer = edges
        tree = grow_peak_tree(
            np.arange(histogram.grid.n_cells),
            layers[0].density,
            self.shape,
            adjacent_offsets(len(self.shape)),
        )
        self.density: FloatArray = layers[0].density
        self.peaks: IntArray = tree.peaks
        self.heights: FloatArray = tree.heights
        self.evidence: FloatArray = self._evidence(scales)
        self.joins: Joins = join_regions(
            self.peaks, self.shape, layers, np.array(wanted), self.evidence, min_rows
        )

    def _evidence(self, scales: Scales) -> FloatArray:
        """Largest smoothed count in each region, as a multiple of what noise seldom makes anywhere."""
        nested = self.histogram.nested
        volumes, place = np.unique(nested.volumes, return_inverse=True)
        kinds, found = place[nested.leaves], np.zeros(len(nested.leaves))
        for size, density, noise in zip(scales.sizes, scales.densities, scales.noises, strict=True):
            limits = self.unlikely(np.maximum(size / volumes, 1.0))
            np.maximum(found, density / np.maximum(noise * limits[kinds], 1e-300), out=found)
        largest = np.zeros(len(self.heights))
        np.maximum.at(largest, self.peaks, found)
        return largest

    def unlikely(self, n_counts: FloatArray) -> FloatArray:
        """Standard deviations that the mean of so many noisy counts seldom exceeds anywhere (Chernoff)."""
        noise = self.histogram.noise
        log_chance = math.log(_FALSE_CHANCE / self.histogram.nested.n_cells)
        sigma = math.sqrt(self.histogram.variance)
        most = 8.0 if noise.mechanism == "discrete Gaussian" else 0.98  # of Laplace noise, moments end at 1
        rates = np.geomspace(1e-3, most, _RATES) / noise.scale
        logs = log_moments(noise, rates)
        table = 2.0 ** np.arange(0, 41)
        limits = np.array([((n * logs - log_chance) / rates).min() / (sigma * math.sqrt(n)) for n in table])
        return np.asarray(np.interp(np.log2(n_counts), np.arange(0, 41), limits))

    def by_chance(self, n_counts: FloatArray, std: FloatArray, anyway: FloatArray) -> FloatArray:
        """Rows that so many noisy counts seldom add anywhere to those that would be there anyway.

        Added noise and sampling have limits of their own: the tails of noise are wider the smaller it is in
        rows, those of sampling are about normal.
        """
        sampled = np.sqrt(2 * math.log(self.histogram.nested.n_cells / _FALSE_CHANCE) * anyway)
        return np.asarray(np.hypot(std * self.unlikely(n_counts), sampled))

    @cached_property
    def noise_share(self) -> float:
        """Part of the added noise in the variance of a count, in the mean over the rows."""
        rows = np.maximum(self.histogram.estimates, 0.0)
        shares = self.histogram.variances / (self.histogram.variances + rows)
        return float(np.average(shares, weights=rows)) if rows.any() else 1.0

    @cached_property
    def least_score(self) -> float:
        """Depth of a valley, in standard errors, that noise seldom makes."""
        largest = math.sqrt(2 * math.log(max(self.joins.n_kernels, 1.0)))
        if len(self.shape) == 1:
            return max(_LEAST_SCORE, largest)  # any place of a line may be its border
        sampling = 1 - self.noise_share
        gaps = sampling**_GAP_POWER * (_PER_LARGEST_GAP * largest - _LESS_GAP)
        return max(_LEAST_SCORE, sampling * (_PER_LARGEST * largest - _LESS + gaps))

    def n_joins(self, prominence: float) -> int:
        """Number of joins until all valleys that are left are deep enough."""
        return self.joins.n_before(self.least_score * prominence)

    def separate(self, n_joins: int) -> IntArray:
        """Region of each cell after some joins; -1 if noise may have made it, or if it is too small."""
        owners = self.joins.owners(n_joins)
        evident, rows = np.zeros((2, self.joins.n_regions))
        np.maximum.at(evident, owners, self.evidence)
        np.add.at(rows, owners[self.peaks], self.edges.density)
        stands = (evident >= 1) & (rows >= self.min_rows)
        stands &= owners == np.arange(len(owners))
        number = np.where(stands, np.cumsum(stands) - 1, -1)
        return np.asarray(number[owners][self.peaks], dtype=np.int64)

    def above(self, level: float) -> IntArray:
        """Connected places at or above a level; -1 elsewhere, and where noise may have made them."""
        touching = np.ones((3,) * len(self.shape))
        found = label((self.edges.density >= level).reshape(self.shape), touching)[0].ravel()
        evident = np.zeros(int(found.max()) + 1)
        np.maximum.at(evident, found, self.evidence[self.peaks])
        stands = (evident >= 1) & (np.arange(len(evident)) > 0)
        return np.asarray(np.where(stands, np.cumsum(stands) - 1, -1)[found], dtype=np.int64)

    def floors(self, labels: IntArray, edge: float | None = None) -> tuple[FloatArray, float]:
        """Density at which each cluster ends, and the density around all of them.

        Clusters end by their surroundings, or at a share of what is typical of them.
        """
        n_clusters = int(labels.max(initial=-1)) + 1
        if not n_clusters:
            return np.zeros(0), 0.0
        density, inside = self.edges.density, labels >= 0
        typical = _typical(labels[inside], density[inside], n_clusters)
        around, share = self._surroundings(labels, typical)
        if edge is not None:
            return edge * typical, share * around
        ends = self._ends(labels, np.sqrt(around * typical), n_clusters)
        return np.asarray(share * ends + (1 - share) * _TAIL_SHARE * typical), share * around

    def _ends(self, labels: IntArray, least: FloatArray, n_clusters: int) -> FloatArray:
        """Smoothed density down to which each cluster has more rows than `least` per cell.

        Blurred edges have a high smoothed density, but few rows. So cells are taken in the order of their
        smoothed density, as long as the counts themselves make up for `least`.
        """
        inside = np.flatnonzero(labels >= 0)
        order = inside[np.lexsort((-self.edges.density[inside], labels[inside]))]
        gains = np.cumsum(
            self.histogram.nested.spread(self.histogram.estimates).ravel()[order] - least[labels[order]]
        )
        borders = np.searchsorted(labels[order], np.arange(n_clusters + 1))
        ends = np.zeros(n_clusters)
        for k, (first, last) in enumerate(pairwise(borders)):
            ends[k] = self.edges.density[order[first + int(np.argmax(gains[first:last]))]]
        return ends

    def _surroundings(self, labels: IntArray, typical: FloatArray) -> tuple[float, float]:
        """Density away from all clusters, and how clearly rows lie there: from 0 (none seen) to 1."""
        nested, counts = self.histogram.nested, self.histogram.estimates
        relative = np.where(labels >= 0, self.edges.density / np.append(typical, 1.0)[labels], 0.0)
        total = max(1.0, float(counts.sum()))
        rows = nested.spread(counts).ravel()
        outside = 1 - float(rows[relative >= _OUTSIDE_SHARE].sum()) / total
        dense = (relative >= _AWAY_SHARE).reshape(self.shape).view(np.uint8)
        away, farther = (maximum_filter(dense, side, mode="constant").ravel() == 0 for side in (_NEAR, _FAR))
        if not away.any():
            return 0.0, 0.0
        around = max(float(rows[away].mean()), 0.0)
        far = float(rows[farther].mean()) if farther.any() else around
        noise = math.sqrt(float(nested.spread(self.histogram.variances).ravel()[away].sum())) / away.sum()
        stays = (far - _FALLS_OFF * around) / max((_STAYS - _FALLS_OFF) * around, 1e-300)
        share = min(outside / _OUTSIDE_ROWS, around * len(rows) / total / _AWAY_ROWS, stays)
        share = min(share, around / max(_SURE * noise, 1e-300) - 1)
        return around, float(np.clip(share, 0.0, 1.0))

    @cached_property
    def published(self) -> LevelTree:
        """The tree with positions of its peaks. When two regions join, the lower peak ends."""
        grid, joins, n_peaks = self.histogram.grid, self.joins, self.joins.n_regions
        at_top = np.flatnonzero(self.density == self.heights[self.peaks])
        tops = np.empty(n_peaks, dtype=np.int64)
        tops[self.peaks[at_top]] = at_top
        highest, levels = (
            np.arange(n_peaks),
            self.heights.copy(),
        )  # of the region that each one now stands for
        parents = np.full(n_peaks, -1, dtype=np.int64)
        saddles, prominences = np.zeros(n_peaks), np.full(n_peaks, np.inf)
        for pair, score, saddle in zip(joins.pairs, joins.scores, joins.saddles, strict=True):
            elder, younger = sorted(highest[pair], key=lambda peak: (-self.heights[peak], peak))
            level = min(saddle, *levels[pair])
            highest[pair[0]], levels[pair[0]] = elder, level
            parents[younger], saddles[younger] = elder, level
            prominences[younger] = max(score, 0.0) / self.least_score
        order = np.lexsort((np.arange(n_peaks), -self.heights))
        rank = np.empty(n_peaks + 1, dtype=np.int64)
        rank[order], rank[n_peaks] = np.arange(n_peaks), -1
        return LevelTree(
            grid.centers_of(tops[order]),
            self.heights[order],
            saddles[order],
            rank[parents[order]],
            prominences[order],
        )


def _typical(labels: IntArray, density: FloatArray, n_clusters: int) -> FloatArray:
    """Mean density of each cluster, weighted by itself."""
    mass = np.bincount(labels, density, n_clusters)
    found: FloatArray = np.bincount(labels, density**2, n_clusters) / np.maximum(mass, 1e-300)
    return found


def cut_levels(
    levels: Levels,
    prominence: float,
    n_clusters: int | None = None,
    level: float | None = None,
    edge: float | None = None,
) -> Regions:
    """Clusters of a smoothed density: those that valleys separate, a number of them, or all above a level.

    Parameters
    ----------
    levels : Levels
    prominence : float
    n_clusters : int, optional
    level : float, optional
        In rows per cell of the fine grid.
    edge : float, optional
        Share of its typical density at which a cluster ends. By default its surroundings decide.
    """
    if level is not None:
        labels = levels.above(level)
        return _published(levels, labels, np.full(int(labels.max(initial=-1)) + 1, level), 0.0)
    n_joins = levels.n_joins(prominence) if n_clusters is None else levels.joins.n_regions - n_clusters
    while True:
        labels = levels.separate(max(n_joins, 0))
        regions = _published(levels, labels, *levels.floors(labels, edge))
        if n_clusters is None or regions.n_spans >= n_clusters or n_joins <= levels.joins.n_doubtful:
            return regions
        n_joins -= n_clusters - regions.n_spans  # undoing a join adds at most one


def _published(levels: Levels, labels: IntArray, floors: FloatArray, around: float) -> Regions:
    kept = levels.edges.density >= np.append(floors, np.inf)[labels]
    labels = np.where(kept, labels, -1)
    return regions_of_leaves(levels.histogram, labels, levels.edges, floors, around, levels.by_chance)


def noise_in_empty_places(levels: Levels) -> float:
    """Typical standard deviation of the noise of the smoothed density where nothing is."""
    edges = levels.edges
    return float(np.median(edges.density / np.sqrt(edges.precision)))
