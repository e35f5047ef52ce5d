"""A released histogram at two scales: an outline, and finer counts where it shows many rows. Public."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domain import FloatArray, Grid, IntArray, Measure, check_shape
from sfumato.domain.nested import NestedGrid
from sfumato.public.density.histogram import NoisyHistogram

_NOTHING = 1e-12  # variance of counts that have next to no noise


@dataclass(frozen=True, eq=False)
class NestedHistogram:
    """Noisy counts of the leaves of a nested grid, and of its coarse cells if these were released too.

    A coarse cell was counted twice: as a whole, and by its leaves. `estimates` weighs both by their noise.

    Parameters
    ----------
    nested : NestedGrid
    counts : int array
        Noisy counts of the leaves.
    mechanism : str
        ``"discrete Laplace"`` or ``"discrete Gaussian"``.
    scale : float
        Scale of the noise of `counts`.
    outline : int array, optional
        Noisy counts of the coarse cells, by the same mechanism.
    outline_scale : float
        Scale of their noise.
    """

    nested: NestedGrid
    counts: IntArray
    mechanism: str
    scale: float
    outline: IntArray | None = None
    outline_scale: float = 1.0

    @classmethod
    def plain(cls, histogram: NoisyHistogram) -> NestedHistogram:
        """The counts of all cells of one grid."""
        return cls(NestedGrid.plain(histogram.grid), histogram.counts, histogram.mechanism, histogram.scale)

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        check_shape("counts", self.counts, self.nested.n_cells)
        self._noise(self.scale).check()
        if self.outline is not None:
            check_shape("outline", self.outline, self.nested.coarse.n_cells)
            self._noise(self.outline_scale).check()

    def __getstate__(self) -> dict[str, Any]:
        """Only the parts: what is computed from them is computed again."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def grid(self) -> Grid:
        """The fine grid: no leaf's border cuts its cells."""
        return self.nested.fine

    def moved(self, measure: Measure) -> NestedHistogram:
        """The same counts in other units."""
        return replace(self, nested=self.nested.moved(measure))

    @property
    def noise(self) -> NoisyHistogram:
        """An empty histogram with the noise of a leaf's count."""
        return self._noise(self.scale)

    def _noise(self, scale: float) -> NoisyHistogram:
        one = Grid((0.0,), (1.0,), (1,))
        return NoisyHistogram(one, np.zeros(1, dtype=np.int64), self.mechanism, scale)

    @cached_property
    def variance(self) -> float:
        """Variance of the noise of a leaf's count."""
        return max(self.noise.variance, _NOTHING)

    @cached_property
    def _outline_variance(self) -> float:
        return math.inf if self.outline is None else max(self._noise(self.outline_scale).variance, _NOTHING)

    @cached_property
    def lessening(self) -> FloatArray:
        """By how much the outline lessens the covariance of any two leaves of each coarse cell."""
        own = self.nested.n_parts * self.variance + self._outline_variance
        return np.asarray(self.variance**2 / own, dtype=np.float64)

    @cached_property
    def estimates(self) -> FloatArray:
        """Estimated rows of each leaf.

        The difference between the two counts of a coarse cell is shared evenly among its leaves: the best
        linear unbiased estimate.
        """
        found = self.counts.astype(np.float64)
        if self.outline is not None:
            homes, n_coarse = self.nested.homes, self.nested.coarse.n_cells
            missing = self.outline - np.bincount(homes, found, n_coarse)
            found += (missing * self.lessening / self.variance)[homes]
        return found

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of the noise of each leaf's estimate."""
        found: FloatArray = self.variance - self.lessening[self.nested.homes]
        return found

    def totals(self, leaves: IntArray, groups: IntArray, n_groups: int) -> tuple[FloatArray, FloatArray]:
        """Estimated rows of groups of whole leaves, and the standard deviations of their noise."""
        return self._weighted(leaves, np.ones(len(leaves)), groups, n_groups)

    def range_count(self, low: ArrayLike, high: ArrayLike) -> tuple[float, float]:
        """Estimated number of rows in a box, and the standard deviation of its noise.

        Leaves that the box cuts count in proportion to the part inside, as if rows were spread evenly in
        them; the standard deviation does not cover that.

        Parameters
        ----------
        low, high : array-like of shape (d,)
        """
        ends = [
            np.broadcast_to(np.asarray(end, dtype=np.float64), len(self.grid.shape)) for end in (low, high)
        ]
        share = np.ones(1)
        for edges, start, stop in zip(self.grid.edges(), *ends, strict=True):
            inside = np.minimum(edges[1:], stop) - np.maximum(edges[:-1], start)
            share = np.multiply.outer(share, (inside / np.diff(edges)).clip(0, 1))
        shares = np.bincount(self.nested.leaves, share.ravel(), self.nested.n_cells) / self.nested.volumes
        touched = np.flatnonzero(shares)
        count, std = self._weighted(touched, shares[touched], np.zeros(len(touched), dtype=np.int64), 1)
        return float(count[0]), float(std[0])

    def _weighted(
        self, leaves: IntArray, weights: FloatArray, groups: IntArray, n_groups: int
    ) -> tuple[FloatArray, FloatArray]:
        counts = np.bincount(groups, weights * self.estimates[leaves], n_groups).astype(np.float64)
        variances = self.variance * np.bincount(groups, weights**2, n_groups)
        pairs, place = np.unique(
            groups * self.nested.coarse.n_cells + self.nested.homes[leaves], return_inverse=True
        )
        group, home = np.divmod(pairs, self.nested.coarse.n_cells)
        in_home = np.bincount(place, weights, len(pairs))
        variances -= np.bincount(group, in_home**2 * self.lessening[home], n_groups)
        return counts, np.sqrt(np.maximum(variances, 0.0))
