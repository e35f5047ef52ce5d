"""Clusters of new points: each point belongs to the peak that its ascent reaches.

Most ascents need not be followed. Let c be the level of the highest saddle between a cluster and any other.
Suppose that a component k of this cluster contributes pi_k N_k(x) > c to the density at x. Then the density
is above c on the whole segment from x to the mean of k, because that contribution only grows on the way. So x
lies in the connected part of {p > c} that contains the mean, whose peaks all belong to the cluster. An ascent
never leaves the connected part of {p >= p(x)} in which it starts, so it ends at one of these peaks. The same
holds in an ellipsoid around each peak m, where the quadratic that touches the log density from below at m is
above c.

Other points take EM steps until one of the two holds. Points that linger on a ridge take longer steps, of at
most one local unit, as long as the density rises half way and at the end. This is checked, not proved: a
label could be wrong only where a valley is narrower than half the local scale.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.peaks import Peaks, climb, nearest_peak

_PLAIN_STEPS = 4  # before longer ones are tried: only the time depends on it
_MOST_STEPS = 30  # before the rest of an ascent is climbed by itself: only the time depends on it


class Basins(NamedTuple):
    """The levels that decide where an ascent certainly ends.

    Parameters
    ----------
    mixture : Mixture
    peaks : Peaks
    clusters : int array of shape (S,)
        Cluster of each peak.
    outer : float array of shape (n_clusters,)
        Log density of the highest saddle between each cluster and any other. Infinite where only a lower
        bound is known: nothing is then certain, and all ascents of the cluster are followed.
    """

    mixture: Mixture
    peaks: Peaks
    clusters: IntArray
    outer: FloatArray

    def predict(self, points: ArrayLike) -> IntArray:
        """Cluster of each point."""
        points = self.mixture.checked(points)
        found = np.empty(len(points), dtype=np.int64)
        of_component = self.clusters[self.peaks.owners[self.mixture.live]]
        lingering = []
        for rows in self.mixture.blocks(len(points)):
            margins = self.mixture.log_joint(self.mixture.deviations(points[rows])) - self.outer[of_component]
            surest = margins.argmax(axis=1)
            found[rows] = of_component[surest]
            lingering.append(rows.start + np.flatnonzero(margins[np.arange(len(surest)), surest] <= 0))
        going = np.concatenate(lingering) if lingering else np.empty(0, dtype=np.int64)
        for rows in self.mixture.blocks(len(going)):
            found[going[rows]] = self._followed(points[going[rows]])
        return found

    def _followed(self, points: FloatArray) -> IntArray:
        """Cluster at the end of each ascent."""
        found = np.empty(len(points), dtype=np.int64)
        going, stretch = np.arange(len(points)), np.ones(len(points))
        for n_steps in range(_MOST_STEPS):
            points, stretch = self._step(points, stretch)
            if n_steps >= _PLAIN_STEPS:
                stretch = 2 * stretch
            certain, clusters = self._certain(points)
            found[going[certain]] = clusters[certain]
            going, points, stretch = going[~certain], points[~certain], stretch[~certain]
            if not len(going):
                return found
        tops = climb(self.mixture, points)
        nearest = nearest_peak(self.peaks, tops)
        # A peak that no mean leads to belongs to the cluster of its likeliest component.
        nearest = np.where(nearest >= 0, nearest, self.peaks.owners[self.mixture.predict(tops)])
        found[going] = self.clusters[nearest]
        return found

    def _step(self, points: FloatArray, stretch: FloatArray) -> tuple[FloatArray, FloatArray]:
        """EM steps, stretched where the density still rises, and the stretch that was used."""
        here = self.mixture.local(points)
        step = np.linalg.solve(here.precision, here.gradient[..., None])[..., 0]
        length = np.sqrt(np.maximum(np.einsum("ni,ni->n", step, here.gradient), np.finfo(float).tiny))
        stretch = np.maximum(np.minimum(stretch, 1 / length), 1.0)
        long = np.flatnonzero(stretch > 1)
        if len(long):
            half = step[long] * stretch[long, None] / 2
            middle, end = (self.mixture.log_density(points[long] + part) for part in (half, 2 * half))
            stretch[long[(middle < here.log_density[long]) | (end < middle)]] = 1.0
        return points + step * stretch[:, None], stretch

    def _certain(self, points: FloatArray) -> tuple[NDArray[np.bool_], IntArray]:
        """Whether the end of each ascent is certain, and its cluster if so."""
        of_component = self.clusters[self.peaks.owners[self.mixture.live]]
        parts = self.mixture.log_joint(self.mixture.deviations(points)) - self.outer[of_component]
        apart = points[:, None] - self.peaks.positions
        squares = np.einsum("nsi,sij,nsj->ns", apart, self.peaks.precisions, apart, optimize=True)
        tops = self.peaks.log_densities - squares / 2 - self.outer[self.clusters]
        margins = np.concatenate([parts, tops], axis=1)
        surest = margins.argmax(axis=1)
        certain = margins[np.arange(len(points)), surest] > 0
        return certain, np.concatenate([of_component, self.clusters])[surest]
