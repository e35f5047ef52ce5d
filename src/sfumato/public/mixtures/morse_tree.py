"""The merge tree of a mixture: peaks join at saddles as the level of the density falls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sfumato.domain import FloatArray, IntArray
from sfumato.errors import ParameterError
from sfumato.public.mixtures.basins import Basins
from sfumato.public.mixtures.doubt import joining_order
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.peaks import Peaks, find_peaks
from sfumato.public.mixtures.saddles import Passes, find_passes, no_passes
from sfumato.public.mixtures.shoulders import shoulder_pairs


@dataclass(frozen=True, eq=False)
class MorseTree:
    """Peaks of a mixture, the saddles that join them, and their cuts into any number of clusters.

    The tree is computed from the parameters of the mixture alone, so it spends no budget.

    Parameters
    ----------
    mixture : Mixture
    peaks : Peaks
        Stable points, the densest first, and the stable point of each component.
    saddles : Passes
        The S - 1 passes at which the S peaks join, the densest first.
    order : int array of shape (S - 1,), optional
        Order in which cuts use the saddles to join clusters; from the densest down by default.
    n_doubtful : int
        The first `n_doubtful` of these join clusters that may be noise.

    Notes
    -----
    The level of a pass is the largest at which the peaks it joins are connected: the lowest density on the
    best path between them. Levels are never overestimated, up to rounding, because each belongs to a path
    that was found.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.public.mixtures import merge_tree
    >>> from sfumato.public.mixtures.mixture import Mixture
    >>> means = [[0.0, 0.0], [2.2, 0.0], [4.4, 0.0], [0.0, 9.0], [2.2, 9.0]]
    >>> tree = merge_tree(Mixture([0.2] * 5, means, [np.eye(2)] * 5))
    >>> tree.n_clusters
    2
    >>> tree.cut()
    array([0, 0, 0, 1, 1])
    >>> tree.predict([[1.0, 5.0], [3.0, 2.0]])
    array([1, 0])
    """

    mixture: Mixture
    peaks: Peaks
    saddles: Passes
    order: IntArray | None = None
    n_doubtful: int = 0

    def doubting(self, sizes: FloatArray, stds: FloatArray) -> MorseTree:
        """The same tree, but cuts first join clusters that may be noise in the components' sizes.

        Parameters
        ----------
        sizes, stds : float arrays of shape (K,)
            Noisy sizes of the components, and the standard deviations of the noise. See `joining_order`.
        """
        order, n_doubtful = joining_order(self.peaks, self.saddles, sizes, stds)
        return replace(self, order=order, n_doubtful=n_doubtful)

    @property
    def n_peaks(self) -> int:
        """Number of stable points, S."""
        return len(self.peaks.positions)

    @cached_property
    def linkage(self) -> FloatArray:
        """The tree in SciPy's form, of shape (S - 1, 4), for dendrograms.

        A height is the log of the highest peak's density over the saddle's density. It has no unit and does
        not change with the scale of the columns.
        """
        heights = self.peaks.log_densities[0] - self.saddles.log_densities
        number, size = np.arange(self.n_peaks), np.ones(2 * self.n_peaks)
        rows = np.empty((self.n_peaks - 1, 4))
        for row, (pair, height) in enumerate(zip(self.saddles.peaks, heights, strict=True)):
            low, high = sorted(number[pair])
            merged = self.n_peaks + row
            size[merged] = size[low] + size[high]
            rows[row] = low, high, height, size[merged]
            number[(number == low) | (number == high)] = merged
        rows[:, 2] = np.maximum.accumulate(np.maximum(rows[:, 2], 0.0))
        return rows

    @cached_property
    def persistences(self) -> FloatArray:
        """Height of the lower of the two peaks above each saddle, in log density."""
        highest = np.arange(self.n_peaks)  # peak of the cluster of each peak so far; the densest comes first
        found = np.empty(self.n_peaks - 1)
        for row, pair in enumerate(self.saddles.peaks):
            elder, younger = sorted(highest[pair])
            found[row] = self.peaks.log_densities[younger] - self.saddles.log_densities[row]
            highest[highest == younger] = elder
        return np.maximum(found, 0.0)

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters by the largest gap between persistences.

        The depth of a saddle is 1 - exp(-persistence): the share of the lower peak's density that is lost on
        the way to the higher one. The highest peak has depth 1, and a 0 is added at the end. With depths
        sorted from high to low, without doubtful clusters, the clusters are the peaks above the largest gap
        between neighbours. One peak, or several that are hardly separated, form one cluster.
        """
        sure = self._joins[self.n_doubtful :]
        depths = np.sort(-np.expm1(-self.persistences[sure]))[::-1]
        return 1 + int(np.argmax(-np.diff(np.concatenate([[1.0], depths, [0.0]]))))

    @property
    def _joins(self) -> IntArray:
        return np.arange(self.n_peaks - 1) if self.order is None else self.order

    def cut(self, n_clusters: int | None = None) -> IntArray:
        """Cluster of each component, of shape (K,), numbered from the highest peak down.

        Parameters
        ----------
        n_clusters : int, optional
            From 1 to the number of components. Clusters beyond the number of peaks are components that share
            a peak, see `sfumato.public.mixtures.shoulders`. By default the `n_clusters` of the tree.
        """
        wanted = self._checked(n_clusters)
        if wanted <= self.n_peaks:
            return self._peak_clusters(wanted)[self.peaks.owners]
        n_components = self.mixture.n_components
        by_peak = np.argsort(self.peaks.owners, kind="stable")
        place = np.argsort(by_peak)
        pairs = shoulder_pairs(self.mixture, self.peaks.owners)[: n_components - wanted]
        return _components(place[pairs], n_components)[place]

    def predict(self, points: ArrayLike, n_clusters: int | None = None) -> IntArray:
        """Cluster of each point, by the peak that its ascent reaches.

        An ascent stops as soon as its end is certain, see `basins`. If there are more clusters than peaks, a
        point belongs to the cluster of its most probable component.

        Parameters
        ----------
        points : array-like of shape (n, d)
        n_clusters : int, optional
            As for `cut`.
        """
        wanted = self._checked(n_clusters)
        if wanted > self.n_peaks:
            return self.cut(wanted)[self.mixture.predict(self.mixture.checked(points))]
        clusters = self._peak_clusters(wanted)
        apart = clusters[self.saddles.peaks[:, 0]] != clusters[self.saddles.peaks[:, 1]]
        outer = np.full(clusters.max() + 1, -np.inf)
        levels = np.where(self.saddles.exact, self.saddles.log_densities, np.inf)  # bounds prove nothing
        for pair, level in zip(self.saddles.peaks[apart], levels[apart], strict=True):
            outer[clusters[pair]] = np.maximum(outer[clusters[pair]], level)
        return Basins(self.mixture, self.peaks, clusters, outer).predict(points)

    def _peak_clusters(self, n_clusters: int) -> IntArray:
        """Cluster of each peak, for at most as many clusters as peaks."""
        joined = self._joins[: self.n_peaks - n_clusters]
        return _components(self.saddles.peaks[joined], self.n_peaks)

    def _checked(self, n_clusters: int | None) -> int:
        wanted = self.n_clusters if n_clusters is None else n_clusters
        n_components = self.mixture.n_components
        if isinstance(wanted, bool) or not isinstance(wanted, int | np.integer):
            raise ParameterError(f"`n_clusters` must be an integer or None, got {wanted!r}")
        if not 1 <= wanted <= n_components:
            raise ParameterError(
                f"`n_clusters` must be from 1 to the {n_components} components, got {wanted}: "
                "fit more components or ask for fewer clusters"
            )
        return int(wanted)


def merge_tree(mixture: Mixture) -> MorseTree:
    """Find the peaks of a mixture and the saddles at which they join: see `MorseTree`.

    The search sorts the components first, so their order makes no difference.
    """
    flat = np.column_stack(
        [mixture.weights, mixture.means, mixture.covariances.reshape(len(mixture.means), -1)]
    )
    order = np.lexsort(flat.T[::-1])
    search = Mixture(mixture.weights[order], mixture.means[order], mixture.covariances[order])
    peaks = find_peaks(search)
    saddles = find_passes(search, peaks) if len(peaks.positions) > 1 else no_passes(search)
    return MorseTree(mixture, peaks._replace(owners=peaks.owners[np.argsort(order)]), saddles)


def _components(pairs: IntArray, n: int) -> IntArray:
    """Connected components of n nodes, numbered by their first node."""
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
