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
from sfumato.public.mixtures.doubt import sure_saddles
from sfumato.public.mixtures.joining import joining_order
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.peaks import Peaks, find_peaks
from sfumato.public.mixtures.saddles import Passes, find_passes, no_passes


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
    sizes, stds : float arrays of shape (K,), optional
        Noisy sizes of the components, and the standard deviations of the noise. By default the weights,
        without noise.

    Notes
    -----
    The level of a pass is the largest at which the peaks it joins are connected: the lowest density on the
    best path between them. Levels are never overestimated, up to rounding, because each belongs to a path
    that was found. Cuts join components by overlap, depth and size together, see `joining`.

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
    sizes: FloatArray | None = None
    stds: FloatArray | None = None

    def doubting(self, sizes: FloatArray, stds: FloatArray) -> MorseTree:
        """The same tree, but cuts first join clusters that may be noise in the components' sizes."""
        return replace(self, sizes=sizes, stds=stds)

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
        sure = sure_saddles(self.peaks, self.saddles, *self._noisy_sizes)
        depths = np.sort(-np.expm1(-self.persistences[sure]))[::-1]
        return 1 + int(np.argmax(-np.diff(np.concatenate([[1.0], depths, [0.0]]))))

    @property
    def _noisy_sizes(self) -> tuple[FloatArray, FloatArray]:
        if self.sizes is None or self.stds is None:
            return self.mixture.weights, np.zeros(self.mixture.n_components)
        return self.sizes, self.stds

    @cached_property
    def _ranked(self) -> tuple[IntArray, IntArray]:
        """Components from the highest peak down, and the pairs of their places that are joined, in order."""
        ranked = np.lexsort([*_flat(self.mixture).T[::-1], self.peaks.owners])
        mixture = _reordered(self.mixture, ranked)
        peaks = self.peaks._replace(owners=self.peaks.owners[ranked])
        sizes, stds = (values[ranked] for values in self._noisy_sizes)
        return ranked, joining_order(mixture, peaks, self.saddles, sizes, stds)

    def cut(self, n_clusters: int | None = None) -> IntArray:
        """Cluster of each component, of shape (K,), numbered from the highest peak down.

        Parameters
        ----------
        n_clusters : int, optional
            From 1 to the number of components. Components that share a peak may be in different clusters. By
            default the `n_clusters` of the tree.
        """
        wanted, n_components = self._checked(n_clusters), self.mixture.n_components
        ranked, pairs = self._ranked
        found = np.empty(n_components, dtype=np.int64)
        found[ranked] = _components(pairs[: n_components - wanted], n_components)
        return found

    def peak_clusters(self, labels: IntArray) -> IntArray:
        """Cluster of each peak, of shape (S,): that of its heaviest component.

        Parameters
        ----------
        labels : int array of shape (K,)
            Cluster of each component.
        """
        found = np.empty(self.n_peaks, dtype=np.int64)
        heaviest_last = np.argsort(self.mixture.weights, kind="stable")
        found[self.peaks.owners[heaviest_last]] = labels[heaviest_last]
        return found

    def is_level(self, labels: IntArray) -> bool:
        """Whether clusters are what a level of the density separates: no lower saddle is within one.

        Parameters
        ----------
        labels : int array of shape (K,)
            Cluster of each component.
        """
        joined = self.saddles.peaks[: max(self.n_peaks - 1 - int(labels.max()), 0)]
        by_level = _components(joined, self.n_peaks)[self.peaks.owners]
        return np.array_equal(_first_seen(by_level), _first_seen(labels))

    def predict(self, points: ArrayLike, n_clusters: int | None = None) -> IntArray:
        """Cluster of each point, by the peak that its ascent reaches.

        An ascent stops as soon as its end is certain, see `basins`. If components that share the peak are in
        different clusters, the most probable of them decides.

        Parameters
        ----------
        points : array-like of shape (n, d)
        n_clusters : int, optional
            As for `cut`.
        """
        points, labels = self.mixture.checked(points), self.cut(n_clusters)
        groups = self.peak_clusters(labels)
        parted = np.unique(self.peaks.owners[labels != groups[self.peaks.owners]])
        groups[parted] = labels.max() + 1 + np.arange(len(parted))
        found = self._basins(groups).predict(points)
        for peak in parted:
            rows, members = np.flatnonzero(found == groups[peak]), np.flatnonzero(self.peaks.owners == peak)
            shares = self.mixture.responsibilities(points[rows])[:, members]
            found[rows] = labels[members[shares.argmax(axis=1)]]
        return found

    def _basins(self, clusters: IntArray) -> Basins:
        """Where ascents end, for a cluster of each peak."""
        apart = clusters[self.saddles.peaks[:, 0]] != clusters[self.saddles.peaks[:, 1]]
        outer = np.full(clusters.max() + 1, -np.inf)
        levels = np.where(self.saddles.exact, self.saddles.log_densities, np.inf)  # bounds prove nothing
        for pair, level in zip(self.saddles.peaks[apart], levels[apart], strict=True):
            outer[clusters[pair]] = np.maximum(outer[clusters[pair]], level)
        return Basins(self.mixture, self.peaks, clusters, outer)

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
    order = np.lexsort(_flat(mixture).T[::-1])
    search = _reordered(mixture, order)
    peaks = find_peaks(search)
    saddles = find_passes(search, peaks) if len(peaks.positions) > 1 else no_passes(search)
    return MorseTree(mixture, peaks._replace(owners=peaks.owners[np.argsort(order)]), saddles)


def _flat(mixture: Mixture) -> FloatArray:
    """All numbers of each component side by side, to sort by."""
    covariances = mixture.covariances.reshape(mixture.n_components, -1)
    return np.column_stack([mixture.weights, mixture.means, covariances])


def _reordered(mixture: Mixture, order: IntArray) -> Mixture:
    return Mixture(mixture.weights[order], mixture.means[order], mixture.covariances[order])


def _components(pairs: IntArray, n: int) -> IntArray:
    """Connected components of n nodes, numbered by their first node."""
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return _first_seen(connected_components(graph, directed=False)[1])


def _first_seen(labels: IntArray) -> IntArray:
    """The same groups, numbered by their first node."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
