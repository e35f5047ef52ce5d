"""Released cells, and what they tell about any number of clusters, at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from sfumato.domain import FloatArray, IntArray, Measure, check_shape
from sfumato.domain.measure import AS_THEY_ARE
from sfumato.errors import ParameterError
from sfumato.public.cell_costs import CellCost, cell_cost, silhouettes
from sfumato.public.intervals import half_widths
from sfumato.public.kmeans import WARD_CELLS, ward_means, ward_merges, weighted_kmeans
from sfumato.public.separation import Noise, separated_groups

MOST_SHOWN = 60  # clusters on a curve, a limit: more cannot be read

# Tuned: docs/notes/how_many.md#constants
SEEN_ABOVE = 3.0  # a cell is told from an empty one if its size is this many times the noise in it
BORDER = 0.05  # of a cluster's rows: they may be nearer to another centre than their cell is


class CellClusters(NamedTuple):
    """Clusters of cells, with the errors of their centres and sizes."""

    centers: FloatArray  # (k, d)
    sizes: FloatArray  # (k,)
    center_stds: FloatArray  # (k, d)
    size_stds: FloatArray  # (k,)


class CellCurve(NamedTuple):
    """What cells tell about numbers of clusters. Costs are in measured units, as those of `score`."""

    numbers: IntArray  # (n,); of clusters
    costs: FloatArray  # (n,); sum of squared distances of the rows to the nearest centre
    cost_ends: FloatArray  # (2, n); lower and upper ends of the intervals
    silhouettes: FloatArray  # (n,); 0 for a single cluster
    silhouette_ends: FloatArray  # (2, n)
    suggested: int  # number of clusters


@dataclass(frozen=True, eq=False)
class CellSynopsis:
    """Noisy cells: more of them than there are clusters, each with its size and centre.

    Released once, they answer any number of questions: clusters for another number, their cost and
    silhouette, and how many clusters are separated. All of these are post-processing of noisy values and
    spend nothing.

    Parameters
    ----------
    centers : float array of shape (m, d)
    sizes : float array of shape (m,)
        As released, so they may be below 0.
    center_stds : float array of shape (m,)
        Standard deviation of the noise in each coordinate of a centre, in measured units.
    size_std : float
        Standard deviation of the noise in each size.
    mean_square : float
        Mean squared distance of the rows from the centre of their cell, in measured units.
    mean_square_std : float
        Standard deviation of its error.
    measure : Measure
        From the units of the centres to those in which distances are taken.
    """

    centers: FloatArray
    sizes: FloatArray
    center_stds: FloatArray
    size_std: float
    mean_square: float
    mean_square_std: float
    measure: Measure = AS_THEY_ARE

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        if self.centers.ndim != 2 or not self.centers.size:
            raise ParameterError(f"cells must have rows and columns, got shape {self.centers.shape}")
        check_shape("sizes", self.sizes, self.n_cells)
        check_shape("center_stds", self.center_stds, self.n_cells)
        least = min(self.size_std, self.mean_square, self.mean_square_std, float(self.center_stds.min()))
        if least < 0:
            raise ParameterError(f"deviations and mean squares of cells must not be negative, got {least!r}")

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.centers)

    @property
    def n_visible(self) -> int:
        """Number of cells whose sizes stand out from the noise, at least 1."""
        return max(int(self._visible.sum()), 1)

    def moved(self, measure: Measure) -> CellSynopsis:
        """The same cells in other units. Distances are taken in the same units as before."""
        back = measure.inverse if not self.measure else AS_THEY_ARE
        return replace(self, centers=measure.of(self.centers), measure=back)

    def at(self, n_clusters: int) -> CellClusters:
        """Clusters for another number of them: weighted k-means on the cells. Spends nothing.

        Parameters
        ----------
        n_clusters : int
            At most the number of cells.
        """
        if not 1 <= n_clusters <= self.n_cells:
            raise ParameterError(
                f"`n_clusters` must be from 1 to the {self.n_cells} cells that were released, got "
                f"{n_clusters}. Ask for more clusters in a new fit."
            )
        centers = self._clustered(n_clusters)
        labels, rows = self._labels(centers), np.maximum(self.sizes, 0.0)
        member = np.eye(n_clusters)[labels].T  # (k, m)
        sizes = np.maximum(member @ self.sizes, 0.0)
        shares = member * rows / np.maximum(member @ rows, max(self.size_std, 1.0))[:, None]
        apart = member @ (self._points - centers[labels]) ** 2  # (k, d)
        of_sizes = self.size_std / np.maximum(sizes, max(self.size_std, 1.0))
        of_noise = shares**2 @ self._noise.center_stds**2
        stds = np.sqrt(of_noise[:, None] + of_sizes[:, None] ** 2 * apart)
        size_stds = np.hypot(self.size_std * np.sqrt(member.sum(axis=1)), BORDER * sizes)
        back = self.measure.inverse
        return CellClusters(
            back.of(self._length * centers), sizes, back.lengths(self._length * stds), size_stds
        )

    def cost(self, centers: FloatArray) -> CellCost:
        """Estimated cost of any centres: the sum of squared distances of the rows to the nearest one.

        Parameters
        ----------
        centers : float array of shape (k, d)
            In the units of the cells.
        """
        points = self.measure.of(centers) / self._length
        found = cell_cost(self._points, self.sizes, self._noise, points, self._labels(points))
        return found.times(self._length**2)

    @property
    def suggested(self) -> int:
        """Number of separated clusters that stand out from the noise."""
        return len(self._groups)

    def separated(self) -> FloatArray:
        """Centres of the separated clusters, in the units of the cells."""
        return self.measure.inverse.of(self._length * self._groups)

    def curve(self, numbers: Sequence[int] | None = None) -> CellCurve:
        """Cost and silhouette for several numbers of clusters, with intervals. Spends nothing.

        Parameters
        ----------
        numbers : sequence of int, optional
            By default all from 1 to the number of cells that stand out from the noise, at most 60.
        """
        asked = numbers if numbers is not None else range(1, self._most_shown + 1)
        found = [self._clustered(int(k)) for k in asked]
        labels = [self._labels(centers) for centers in found]
        costs = [
            cell_cost(self._points, self.sizes, self._noise, centers, label, chosen=True).times(
                self._length**2
            )
            for centers, label in zip(found, labels, strict=True)
        ]
        values, stds = np.array([cost.value for cost in costs]), np.array([cost.std for cost in costs])
        halves = half_widths(stds)
        scores, score_stds = silhouettes(self._points, self.sizes, self._noise, labels)
        score_halves = half_widths(score_stds)
        return CellCurve(
            np.array(list(asked), dtype=np.int64),
            values,
            np.maximum([values - halves, values + halves], 0.0),
            scores,
            np.clip([scores - score_halves, scores + score_halves], -1.0, 1.0),
            self.suggested,
        )

    @property
    def _most_shown(self) -> int:
        return min(max(self.n_visible, self.suggested), MOST_SHOWN, self.n_cells)

    @property
    def _visible(self) -> NDArray[np.bool_]:
        return np.asarray(self.sizes > SEEN_ABOVE * self.size_std)

    @property
    def _noise(self) -> Noise:
        length = self._length
        squares = self.mean_square / length**2, self.mean_square_std / length**2
        return Noise(self.center_stds / length, self.size_std, *squares)

    @cached_property
    def _points(self) -> FloatArray:
        """Centres in measured units and lengths of the cells, so that no power of them overflows."""
        return self.measure.of(self.centers) / self._length

    @cached_property
    def _length(self) -> float:
        measured = self.measure.of(self.centers)
        longest = max(float(np.abs(measured).max()), float(np.sqrt(self.mean_square)))
        return max(longest, float(self.center_stds.max()), np.finfo(float).tiny ** 0.5)

    @cached_property
    def _weights(self) -> FloatArray:
        """Sizes with those that are mere noise shrunk towards 0."""
        kept = np.maximum(self.sizes, 0.0)
        return np.maximum(kept**3 / np.maximum(kept**2 + self.size_std**2, 1e-300), 1e-6)

    @cached_property
    def _groups(self) -> FloatArray:
        """Centres of separated clusters, in units of `_points`."""
        seen = self._visible
        if not seen.any():
            return np.average(self._points, axis=0, weights=self._weights)[None]
        return separated_groups(self._points[seen], self.sizes[seen], self._noise.of(seen))

    @cached_property
    def _merges(self) -> list[tuple[int, int]]:
        return ward_merges(self._points, self._weights, 1)

    def _clustered(self, n_clusters: int) -> FloatArray:
        """Centres of weighted k-means on the cells, in units of `_points`."""
        if n_clusters == self.n_cells:
            return self._points
        if n_clusters == len(self._groups):
            start = self._groups
        elif self.n_cells <= WARD_CELLS:
            start = ward_means(self._points, self._weights, self._merges[: self.n_cells - n_clusters])
        else:
            return weighted_kmeans(self._points, self._weights, n_clusters, n_init=1)[0]
        return weighted_kmeans(self._points, self._weights, n_clusters, starts=[start])[0]

    def _labels(self, centers: FloatArray) -> IntArray:
        return np.asarray(cdist(self._points, centers, "sqeuclidean").argmin(axis=1))
