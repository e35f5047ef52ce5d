"""DensityTree: clusters of any shape, without a radius, from the level sets of a noisy density."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.budget import Plan, Step
from sfumato.cluster.shared.density_base import BYTES_PER_CELL, HISTOGRAM, DensityClusterer, release_histogram
from sfumato.cluster.shared.grid_release import ROWS_SHARE
from sfumato.cluster.shared.parameters import MOST_CLUSTERS, parameter
from sfumato.cluster.shared.traits import Traits
from sfumato.curator import Questions
from sfumato.domain import Domain, Grid
from sfumato.domain.constraints import none_or, positive, whole
from sfumato.errors import ParameterError
from sfumato.public.density import geometry
from sfumato.public.density.levels import Levels
from sfumato.public.models import DensityModel

# Tuned: docs/notes/density.md, docs/notes/constants.md#density-tree
_CELLS_PER_ROW = 0.9  # in two columns, where noise does not matter
_FEW_ROWS = 10_000  # beyond, more rows per cell sharpen the levels more than smaller cells would
_MOST_ELONGATED = 6.0  # a column whose width is farther from the others' is taken to be of another unit

_KERNEL_SIDE = 2 * math.sqrt(math.pi)  # cells that a normal kernel of one cell averages along each column
_LEAST_SIDE = 4  # cells per column: with fewer there is nothing to smooth
# A limit: up to 3^d neighbours of each cell are looked up, which takes seconds. It allows 11 cells per column
# in six columns, and 6 in seven.
_MOST_LOOKUPS = 1.3e9


class DensityTree(DensityClusterer):
    """Find clusters of any shape, and their number, without a radius or a minimum density.

    The counts of a grid are released with noise and smoothed. As the density level falls, peaks appear and
    join. A peak is a cluster if its bulk stands further above the saddle to the next peak than noise makes
    likely. The grid is chosen from a noisy number of rows. Everything after the release is free: `cut` takes
    any number of clusters or any level. Best in two and three columns.

    Parameters
    ----------
    cell : float, optional
        Width of a cell, in the units of the columns, or in metres with ``metric="geo"``. By default a cell
        has about two rows at epsilon 1, and a twentieth of the budget pays for the number of rows.
    prominence : float
        A peak is a cluster of its own if its bulk stands this many standard deviations of the noise above the
        saddle to the next peak. A peak that barely stands out itself needs less, down to two thirds of it. An
        even cloud is practically never split. Thin curved shapes sometimes are: use a larger value for them.
    metric : {"euclidean", "geo"}
        With "geo", the two columns are longitude and latitude in degrees, and distances are in metres.
    max_memory : float
        Limit in bytes on the memory of the grid, about 100 bytes per cell. From six columns on, time limits
        the grid further: to 6 cells per column in seven columns and 4 in eight. More columns are refused.

    Attributes
    ----------
    n_clusters_ : int
    spans_ : tuple of Span
        Clusters, the largest first. Each has an estimated number of rows, an interval, boxes, and in two
        columns polygons.
    tree_ : LevelTree
        Peaks, where they join, and how far they stand above the noise.
    cells_ : ndarray of shape (n_cells,)
        Flat indices of the cells in clusters, on the grid of the histogram.
    cell_labels_ : ndarray of shape (n_cells,)
        Cluster of each of these cells.
    histogram_ : NoisyHistogram
        The released histogram.

    Privacy
    -------
    Unit: one row added or removed. Step "rows" (unless `cell` is given): noisy number of rows. Step "cells":
    noisy counts of disjoint cells, on a grid that depends only on the noisy number of rows. The two compose
    to the budget. Smoothing, tree and cuts are post-processing. Public inputs: all parameters. Not private:
    ``labels_`` and ``predict``. Proof: docs/proofs/counts.md.

    References
    ----------
    .. [1] Y. Qiu, K. Yi. Approximate DBSCAN under differential privacy. 2025 (the histogram).
    .. [2] F. Chazal, L. Guibas, S. Oudot, P. Skraba. Persistence-based clustering in Riemannian manifolds.
       Journal of the ACM 60(6), 2013 (the tree).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sfumato import DensityTree
    >>> X, _ = make_moons(10_000, noise=0.05, random_state=0)
    >>> model = DensityTree(epsilon=1.0, bounds=([-1.5, -1], [2.5, 1.5]), random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> model.cut(n_clusters=1).n_clusters_
    1
    """

    cell: float | None = parameter(none_or(positive(1e-300)), default=None)
    _: KW_ONLY
    prominence: float = parameter(positive(), default=2.5)
    metric: geometry.Metric = parameter(default="euclidean")
    max_memory: float = parameter(positive(), default=1e9)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        return Traits(cells=HISTOGRAM, metric=self.metric)

    def cut(self, *, n_clusters: int | None = None, level: float | None = None) -> Self:
        """Return a fitted copy with the tree cut elsewhere, from the same release. Spends nothing.

        Parameters
        ----------
        n_clusters : int, optional
            Keep this many of the most prominent peaks, or all if there are fewer.
        level : float, optional
            Clusters are the connected places where the smoothed density is at least `level` rows per cell. A
            level that noise alone often reaches is raised to two standard deviations of the noise.
        Returns
        -------
        DensityTree
            Without arguments, the automatic cut.
        """
        check_is_fitted(self, "release_")
        if n_clusters is not None and level is not None:
            raise ParameterError(f"use `n_clusters` or `level`, not both, got {n_clusters!r} and {level!r}")
        if n_clusters is not None:
            whole(MOST_CLUSTERS)("n_clusters", n_clusters)
        if level is not None:
            positive()("level", level)
        return self._again(self.release_.model.cut(n_clusters, level))  # type: ignore[attr-defined]

    @property
    def _shared_unit(self) -> str | None:
        return "`cell` is a length" if self.cell is not None else super()._shared_unit

    def _plan(self, domain: Domain) -> Plan:
        self._check_grid(domain)
        if self.cell is not None:
            return Plan(Step("cells", share=1))
        return Plan(Step("rows", share=ROWS_SHARE), Step("cells", share=1 - ROWS_SHARE))

    def _cluster(self, curator: Questions) -> DensityModel:
        if self.cell is not None:
            grid = geometry.square_grid(
                curator.domain, geometry.column_units(self.metric, curator.domain), float(self.cell)
            )
        else:
            noisy_rows = curator.count("rows")
            grid = self._grid_for(max(float(noisy_rows.values[0]), noisy_rows.std), curator)
        histogram = release_histogram(curator, "cells", grid, self.max_memory)
        return DensityModel.of(Levels(histogram), float(self.prominence), self.metric)

    def _grid_for(self, rows: float, curator: Questions) -> Grid:
        """Grid on which smoothing averages about thirty evenly spread rows; coarser if noise is large.

        A person counts as one row, because noise grows with the rows per person.
        """
        domain, of_each = curator.domain, curator.domain.unit.max_rows
        laplace_epsilon = math.sqrt(2) * of_each / max(curator.noise_std("cells"), 1e-9)
        cells_per_row = _CELLS_PER_ROW * laplace_epsilon / (1 + laplace_epsilon)
        counted = min(rows / of_each, math.sqrt(rows / of_each * _FEW_ROWS))
        wanted = cells_per_row * counted * _KERNEL_SIDE ** (domain.n_features - 2)
        widths = geometry.widths_of(domain, geometry.column_units(self.metric, domain))
        middle = np.exp(np.log(widths).mean())
        sides = widths.clip(middle / _MOST_ELONGATED, middle * _MOST_ELONGATED)
        most = self._most_cells(domain)
        sides *= (min(wanted, most) / sides.prod()) ** (1 / domain.n_features)
        shape = [max(_LEAST_SIDE, round(float(side))) for side in sides]
        while math.prod(shape) > most and max(shape) > 1:
            shape[int(np.argmax(shape))] -= 1
        return Grid(domain.low, domain.high, tuple(shape))

    def _most_cells(self, domain: Domain) -> float:
        """Number of cells for which memory and time are enough."""
        return min(self.max_memory / BYTES_PER_CELL, _MOST_LOOKUPS / 3.0 ** min(domain.n_features, 600))

    def _check_grid(self, domain: Domain) -> None:
        most = self._most_cells(domain)
        if domain.n_features * math.log(_LEAST_SIDE) > math.log(most):
            raise ParameterError(
                f"a grid over {domain.n_features} columns needs more memory than `max_memory`="
                f"{self.max_memory:g} bytes, or more than {_MOST_LOOKUPS:g} pairs of neighbours: use fewer "
                "columns, a PrivatePCA before it, or a method made for many columns (LocalSearchKMeans)"
            )
        if self._private_bounds:  # the rest is known only after the first steps
            return
        units = geometry.column_units(self.metric, domain)
        if self.cell is None:
            return
        widths = geometry.widths_of(domain, units)
        if self.cell > widths.max():
            raise ParameterError(
                f"`cell` must be at most the width of the domain, {widths.max():.6g}, got {self.cell!r}"
            )
        most /= 2**domain.n_features
        if geometry.log_cells(widths, float(self.cell)) > math.log(most):
            least = geometry.rounded_up(geometry.least_width(widths, most))
            raise ParameterError(
                f"`cell`={self.cell!r} makes a grid of more than {self.max_memory / 1e9:.3g} GB: use at "
                f"least {least:.3g}, or raise `max_memory` from {self.max_memory:g} bytes"
            )
