"""DP-DBSCAN: dense places of any shape, published as spans (Qiu and Yi 2025)."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, replace
from typing import Self

from sklearn.utils.validation import check_is_fitted

from sfumato.budget import Plan, Step
from sfumato.cluster.shared import density_base
from sfumato.cluster.shared.parameters import parameter
from sfumato.cluster.shared.traits import Promise, Traits
from sfumato.curator import Questions
from sfumato.domain import MOST_CELLS, Domain, Grid
from sfumato.domain.constraints import flag, none_or, one_of, positive, whole
from sfumato.domain.scaling import Scale
from sfumato.errors import GuaranteeWarning, ParameterError
from sfumato.public.density import geometry
from sfumato.public.density.dbscan import LARGEST_ETA, Guarantee, cell_width, guarantee_of, stencils_of
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.neighbourhoods import block_bytes
from sfumato.public.models import DBSCANModel


class DPDBSCAN(density_base.DensityClusterer):
    """Find dense places of any shape, at a given radius and density.

    The domain is cut into cells a little smaller than the radius, and their counts are released with noise. A
    place is in a span if the cells within the radius contain enough rows, whatever the noise. Places closer
    than the radius belong together. The spans are published, with an estimate of the rows in each; labels of
    the rows themselves cannot be published usefully. Best in two and three columns. `DensityTree` needs
    neither radius nor density and is usually more accurate.

    Parameters
    ----------
    radius : float
        Largest distance to a neighbour; ``eps`` in scikit-learn's DBSCAN. In metres with ``metric="geo"``.
    min_samples : int
        Minimum number of rows within the radius. Use `at` to re-cluster with another number, free of charge.
    eta : float
        Cells are ``eta / 4 * radius / sqrt(n_columns)`` wide; at most 4. Smaller is sharper and noisier.
    beta : float
        Probability that the guarantee fails, see ``guarantee_``.
    valleys : bool
        Keep places apart if they are joined only across a valley that may be due to noise or to the width of
        the cells. True is more accurate; False gives a smaller tau.
    metric : {"euclidean", "geo"}
        With "geo", the two columns are longitude and latitude in degrees, and distances are in metres.
    max_memory : float
        Limit in bytes on the memory that can be predicted before the fit. If the grid has at most
        ``max_memory / 100`` cells, all cells are released; otherwise (up to 2^62 cells) only those that stand
        out from the noise.

    Attributes
    ----------
    n_clusters_ : int
        Number of spans.
    spans_ : tuple of Span
        The largest first. Each has an estimated number of rows, an interval, boxes, and in two columns
        polygons.
    guarantee_ : Guarantee
        How the spans relate to exact DBSCAN. Prints as a sentence.
    cells_ : ndarray of shape (n_cells,)
        Flat indices of the cells in spans, on the grid ``spans_[i].grid``. Its cells are halves of the cells
        that were counted.
    cell_labels_ : ndarray of shape (n_cells,)
        Span of each of these cells.
    histogram_ : NoisyHistogram
        The released histogram.

    Privacy
    -------
    Unit: one row added or removed. Step "cells" spends the whole budget: noisy counts of disjoint cells of a
    grid that depends only on public parameters. For a large grid, only counts that reach a public threshold
    are released; they have the law of the full histogram cut there. Everything else is post-processing.
    Public inputs: all parameters. Not private: ``labels_`` and ``predict``. Proof: docs/proofs/counts.md,
    docs/proofs/histogram.md; accuracy: docs/proofs/dbscan.md.

    References
    ----------
    .. [1] Y. Qiu, K. Yi. Approximate DBSCAN under differential privacy. 2025.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sfumato import DPDBSCAN
    >>> X, _ = make_moons(10_000, noise=0.05, random_state=0)
    >>> bounds = ([-1.5, -1], [2.5, 1.5])
    >>> model = DPDBSCAN(radius=0.12, min_samples=120, epsilon=1.0, bounds=bounds, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    """

    radius: float = parameter(positive(1e-300), default=0.5)
    min_samples: int = parameter(whole(), default=5)
    _: KW_ONLY
    eta: float = parameter(positive(0.01, LARGEST_ETA), default=4.0)
    beta: float = parameter(positive(1e-9, 0.99), default=0.5)
    valleys: bool = parameter(flag, default=True)
    metric: geometry.Metric = parameter(default="euclidean")
    max_memory: float = parameter(positive(), default=1e9)
    # `radius` is a length, so columns must share a unit.
    scale: Scale | None = parameter(none_or(one_of("bounds")), default=None)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        return Traits(cells=replace(density_base.HISTOGRAM, promise=self._promise), metric=self.metric)

    def _promise(self, histogram: NoisyHistogram) -> Promise:
        stencils = stencils_of(len(histogram.grid.shape), float(self.radius), float(self.eta))
        numbers = float(self.radius), int(self.min_samples), float(self.beta)
        found, levels = guarantee_of(histogram, stencils, *numbers, self.valleys)
        return Promise(found, levels.report, stencils.size())

    def at(self, min_samples: int) -> Self:
        """Return a fitted copy with another `min_samples`, from the same release. Spends nothing."""
        check_is_fitted(self, "release_")
        whole()("min_samples", min_samples)
        model: DBSCANModel = self.release_.model.at(int(min_samples))  # type: ignore[attr-defined]
        _warn_if_weak(model.guarantee, stacklevel=3)
        return self._again(model, min_samples=min_samples)

    def _plan(self, domain: Domain) -> Plan:
        if not self._private_bounds:  # else known only after the first steps
            self._grid(domain)
        return Plan(Step("cells", share=1))

    def _cluster(self, curator: Questions) -> DBSCANModel:
        grid = self._grid(curator.domain)
        histogram = density_base.release_histogram(curator, "cells", grid, self.max_memory)
        model = DBSCANModel.of(
            histogram,
            float(self.radius),
            int(self.min_samples),
            eta=float(self.eta),
            beta=float(self.beta),
            valleys=self.valleys,
            metric=self.metric,
        )
        _warn_if_weak(model.guarantee, stacklevel=7)
        return model

    def _grid(self, domain: Domain) -> Grid:
        """Grid of the histogram. Raises if the radius, grid or memory is out of range."""
        geometry.check_lengths(self.metric, domain, "radius")
        units = geometry.column_units(self.metric, domain)
        widest = float(geometry.widths_of(domain, units).max())
        if self.radius > widest:
            raise ParameterError(
                f"`radius` must be at most the width of the domain, {widest:.6g}, got {self.radius!r}"
            )
        d = domain.n_features
        stencils = stencils_of(d, float(self.radius), float(self.eta))
        width = cell_width(float(self.radius), float(self.eta), d)
        sides, most = geometry.widths_of(domain, units), MOST_CELLS / 2**d
        if geometry.log_cells(sides, width / stencils.parts) > math.log(most):
            least = float(self.radius) / width * stencils.parts * geometry.least_width(sides, most)
            raise ParameterError(
                f"`radius`={self.radius!r} cuts the domain into more than 2^62 cells: use at least "
                f"{geometry.rounded_up(least):.3g}, or fewer columns"
            )
        grid = geometry.square_grid(domain, units, width)
        all_released = density_base.is_dense(grid, self.max_memory)
        listed = 0 if all_released else density_base.BYTES_PER_LISTED * density_base.N_FALSE
        predicted = block_bytes(stencils) + listed
        if predicted > self.max_memory:
            raise ParameterError(
                f"`radius`={self.radius!r} in {d} column(s) needs about {predicted / 1e9:.3g} GB: use fewer "
                f"columns or a larger `radius` or `eta`, or raise `max_memory` from {self.max_memory:g} bytes"
            )
        return grid


def _warn_if_weak(guarantee: Guarantee, stacklevel: int) -> None:
    if guarantee.min_samples < guarantee.tau:
        warnings.warn(
            f"`min_samples`={guarantee.min_samples} is below tau={guarantee.tau}: only clusters whose core "
            f"rows have at least {guarantee.min_samples + guarantee.tau} neighbours are sure to be found. "
            "Use a larger epsilon, radius or min_samples for a stronger guarantee",
            GuaranteeWarning,
            stacklevel=stacklevel,
        )
