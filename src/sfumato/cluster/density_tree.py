"""DensityTree: clusters of any shape, without a radius, from the level sets of a noisy density."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.budget import Plan, Step
from sfumato.cluster.shared.density_base import HISTOGRAM, DensityClusterer, release_histogram
from sfumato.cluster.shared.grid_release import ROWS_SHARE
from sfumato.cluster.shared.parameters import MOST_CLUSTERS, parameter
from sfumato.cluster.shared.traits import Traits
from sfumato.curator import Questions
from sfumato.domain import Domain, FloatArray, Grid, IntArray
from sfumato.domain.constraints import between, none_or, positive, whole
from sfumato.domain.nested import NestedGrid
from sfumato.errors import ParameterError
from sfumato.public.density import geometry
from sfumato.public.density.levels import Levels
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.models import DensityModel

# Tuned: docs/notes/density.md, docs/notes/constants.md#density-tree
OUTLINE_SHARE = Fraction(3, 10)  # of what the number of rows leaves
_OUTLINE_CELLS_PER_ROW = 0.15  # at epsilon 1 and below in proportion
_MOST_OUTLINE_EPSILON = 1.0  # beyond, rows are few rather than noise large
_LEAST_OUTLINE, _MOST_OUTLINE = (
    64,
    2048,
)  # cells; more would sharpen nothing that a person sees. One column: 64
# Few rows show small groups if noise does not hide them: the least outline grows with epsilon, up to this.
_MOST_LEAST_EPSILON = 4.0
_ROWS_PER_LEAF = 2.0  # at epsilon 1, in inverse proportion to it
_FILLED = 4.0  # rows of a cell in a cluster over those of any cell, for a forecast
_LEAF_BITS = 6  # a cell of the outline has at most 2^6 leaves
_MOST_ELONGATED = 6.0  # a column whose width is farther from the others' is taken to be of another unit

_PLACES = 0.3  # on a map, the share of its typical density at which a place ends
_LEAST_SIDE = 4  # cells per column: with fewer there is nothing to smooth
_BYTES_PER_FINE_CELL = 900  # all smoothed densities and layers
# A limit: up to 3^d neighbours of each cell are looked up, which takes seconds. It allows 11 cells per column
# in six columns, and 6 in seven.
_MOST_LOOKUPS = 1.3e9


class DensityTree(DensityClusterer):
    """Find clusters of any shape, and their number, without a radius or a minimum density.

    A coarse outline of the table is released first. Where it shows many rows, its cells are cut into smaller
    ones, whose counts are released too. They are smoothed at many scales: narrowly where rows are many,
    widely where they are few. Peaks are joined unless a valley between them is deeper, at some scale, than
    noise makes likely. Everything after the release is free: `cut` takes any number of clusters or any level.
    Best in two and three columns.

    Parameters
    ----------
    cell : float, optional
        Width of all cells, in the units of the columns, or in metres with ``metric="geo"``. By default cells
        are as small as rows and budget allow, place by place; a twentieth of the budget pays for the number
        of rows and three tenths of the rest for the outline.
    prominence : float
        Two places are clusters of their own if the valley between them is this many times as deep as noise
        seldom makes one. Use a larger value to join more.
    min_rows : float
        Clusters with fewer rows are joined to others or left out.
    edge : float, optional
        Share of its typical density at which a cluster ends. By default its surroundings decide: without rows
        around it, thin tails belong to it. With ``metric="geo"`` the default is 0.3, which leaves the places
        that stand out of a town rather than the town.
    metric : {"euclidean", "geo"}
        With "geo", the first two columns are longitude and latitude in degrees, and distances are in metres.
        Further columns, such as the time of day, each count as wide as the map: clusters are then places at
        certain times.
    max_memory : float
        Limit in bytes on the memory of the grid, about 900 bytes per cell. From six columns on, time limits
        the grid further. More than eight columns are refused.

    Attributes
    ----------
    n_clusters_ : int
    spans_ : tuple of Span
        Clusters, the largest first. Each has an estimated number of rows, an interval, boxes, and in two
        columns polygons.
    tree_ : LevelTree
        Peaks, where they join, and how deep the valleys between them are.
    cells_ : ndarray of shape (n_cells,)
        Flat indices of the cells in clusters, on the fine grid ``histogram_.grid``.
    cell_labels_ : ndarray of shape (n_cells,)
        Cluster of each of these cells.
    histogram_ : NestedHistogram
        The released counts. Its `range_count` estimates the rows in any box.

    Privacy
    -------
    Unit: one row added or removed. Step "rows": noisy number of rows. Step "outline": noisy counts of
    disjoint cells, on a grid that depends only on the noisy number of rows. Step "cells": noisy counts of
    disjoint parts of these cells, whose number depends only on the noisy outline. The three compose to the
    budget; with `cell`, only the last is asked. Smoothing, tree and cuts are post-processing. Public inputs:
    all parameters. Not private: ``labels_``, ``predict`` and ``strengths``. Proof: docs/proofs/counts.md.

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
    prominence: float = parameter(positive(), default=1.0)
    min_rows: float = parameter(between(0, 1e18), default=0.0)
    edge: float | None = parameter(none_or(between(0, 1, open_low=True, open_high=True)), default=None)
    metric: geometry.Metric = parameter(default="euclidean")
    max_memory: float = parameter(positive(), default=1e9)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        return Traits(cells=HISTOGRAM, metric=self.metric)

    def cut(
        self, *, n_clusters: int | None = None, level: float | None = None, edge: float | None = None
    ) -> Self:
        """Return a fitted copy with the tree cut elsewhere, from the same release. Spends nothing.

        Parameters
        ----------
        n_clusters : int, optional
            Join peaks until this many are left that noise alone can hardly have made.
        level : float, optional
            Clusters are the connected places where the smoothed density is at least `level` rows per cell of
            the fine grid. Places that noise alone may have made are left out.
        edge : float, optional
            Share of its typical density at which a cluster ends; as fitted by default.

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
        none_or(between(0, 1, open_low=True, open_high=True))("edge", edge)
        return self._again(self.release_.model.cut(n_clusters, level, edge))  # type: ignore[attr-defined]

    @property
    def _shared_unit(self) -> str | None:
        return "`cell` is a length" if self.cell is not None else super()._shared_unit

    def _plan(self, domain: Domain) -> Plan:
        self._check_grid(domain)
        if self.cell is not None:
            return Plan(Step("cells", share=1))
        outline = OUTLINE_SHARE * (1 - ROWS_SHARE)
        return Plan(
            Step("rows", share=ROWS_SHARE),
            Step("outline", share=outline),
            Step("cells", share=1 - ROWS_SHARE - outline),
        )

    def _cluster(self, curator: Questions) -> DensityModel:
        levels = Levels(self._histogram(curator), float(self.min_rows))
        edge = _PLACES if self.edge is None and self.metric == "geo" else self.edge
        return DensityModel.of(levels, float(self.prominence), self.metric, edge=edge)

    def _histogram(self, curator: Questions) -> NestedHistogram:
        if self.cell is not None:
            units = geometry.column_units(self.metric, curator.domain)
            grid = geometry.square_grid(curator.domain, units, float(self.cell))
            return NestedHistogram.plain(release_histogram(curator, "cells", grid, math.inf))
        coarse = self._coarse_grid(curator)
        outline = curator.cells("outline", coarse)
        nested = NestedGrid(coarse, self._depths(outline.values, curator), self._deepest(curator.domain))
        leaves = curator.cells("cells", nested)
        return NestedHistogram(
            nested,
            leaves.values,
            leaves.record.mechanism,
            float(leaves.record.scale),
            outline.values,
            float(outline.record.scale),
        )

    def rehearse(self, questions: Questions) -> DensityModel:
        """Ask for cells as wide as those in a cluster will be."""
        if self.cell is None:
            coarse, rows = self._coarse_grid(questions), float(questions.count("rows").values[0])
            typical = np.array([_FILLED * rows / coarse.n_cells])
            questions.cells("cells", coarse.refined(2 ** int(self._depths(typical, questions)[0])))
        return self._cluster(questions)

    def _coarse_grid(self, curator: Questions) -> Grid:
        """Grid of the outline: cells in proportion to the rows, and to the budget where noise matters.

        A person counts as one row, because noise grows with the rows per person.
        """
        domain = curator.domain
        noisy_rows = curator.count("rows")
        rows = max(float(noisy_rows.values[0]), noisy_rows.std) / domain.unit.max_rows
        epsilon = _laplace_epsilon(curator)
        wanted = rows * _OUTLINE_CELLS_PER_ROW * min(epsilon, _MOST_OUTLINE_EPSILON)
        least = _LEAST_OUTLINE * min(max(epsilon, 1.0), _MOST_LEAST_EPSILON)
        enough = _MOST_OUTLINE if domain.n_features > 1 else _LEAST_OUTLINE
        most = min(enough, self._most_cells(domain) / 2 ** (domain.n_features * self._deepest(domain)))
        n_cells = min(max(wanted, least), most)
        widths = geometry.widths_of(domain, geometry.column_units(self.metric, domain))
        middle = np.exp(np.log(widths).mean())
        sides = widths.clip(middle / _MOST_ELONGATED, middle * _MOST_ELONGATED)
        sides *= (n_cells / sides.prod()) ** (1 / domain.n_features)
        shape = [max(_LEAST_SIDE // 2 ** self._deepest(domain), 1, round(float(side))) for side in sides]
        while math.prod(shape) > most and max(shape) > 1:
            shape[int(np.argmax(shape))] -= 1
        return Grid(domain.low, domain.high, tuple(shape))

    def _depths(self, outline: IntArray | FloatArray, curator: Questions) -> IntArray:
        """How often each cell of the outline is halved: the more rows it seems to have, the more often."""
        domain = curator.domain
        of_leaf = _ROWS_PER_LEAF * domain.unit.max_rows / _laplace_epsilon(curator)
        halvings = np.log2(np.maximum(outline / of_leaf, 1.0)) / domain.n_features
        return np.asarray(halvings.round().clip(0, self._deepest(domain)), dtype=np.int64)

    def _deepest(self, domain: Domain) -> int:
        """How often a cell of the outline may be halved along each column."""
        room = math.floor(math.log2(self._most_cells(domain)) / domain.n_features)
        return min(_LEAF_BITS // domain.n_features, max(room - 1, 0))

    def _most_cells(self, domain: Domain) -> float:
        """Number of cells for which memory and time are enough."""
        return min(self.max_memory / _BYTES_PER_FINE_CELL, _MOST_LOOKUPS / 3.0 ** min(domain.n_features, 600))

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
        geometry.check_lengths(self.metric, domain, "cell")
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


def _laplace_epsilon(curator: Questions) -> float:
    """The epsilon at which Laplace noise on one row would be as large as that of the leaves on a person's."""
    return math.sqrt(2) * curator.domain.unit.max_rows / max(curator.noise_std("cells"), 1e-9)
