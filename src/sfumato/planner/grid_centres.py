"""Errors of centres and sizes that are read off a noisy grid, for normal clusters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from sfumato.cluster.shared.traits import Denoising
from sfumato.domain import FloatArray, Grid
from sfumato.planner.rehearsal import Rehearsal
from sfumato.public.density.histogram import NoisyHistogram

_NOTHING = 1e-12
_REACH = 4.0  # of a cluster, in spreads
_PHASE = 0.25  # of a cluster's centre in its cell: neither at a border nor in the middle
_SETTLED = 200  # sweeps after which chains have settled; fewer make some runs much worse (docs/budget.md)
_CHAINS = 1.35  # error of short chains, relative to the best linear reading; measured from 1.1 to 1.7


@dataclass(frozen=True, eq=False)
class _Cluster:
    """One cluster in its cells, each array of shape (n_cells,) or (d, n_cells)."""

    rows: FloatArray  # expected rows
    around: FloatArray  # their mean over a cell and its neighbours
    places: FloatArray  # mean place of these rows along each column, from the centre
    slopes: FloatArray  # how the expected rows change with the centre

    @classmethod
    def on(cls, grid: Grid, size: float, spread: float) -> _Cluster:
        """A normal cluster somewhere in the middle of a grid."""
        columns = [_along(float(h) / spread, m) for h, m in zip(grid.widths, grid.shape, strict=True)]
        masses, slopes = ([column[i] for column in columns] for i in range(2))
        rows = size * _outer(masses)
        around = size * _outer([np.convolve(mass, np.full(3, 1 / 3))[1:-1] for mass in masses])
        of_centre = [_outer([*masses[:j], slopes[j], *masses[j + 1 :]]) for j in range(len(columns))]
        gradients = size / spread * np.array(of_centre)
        seen = rows > _NOTHING * size  # elsewhere differences of probabilities are rounding
        return cls(
            rows, around, np.where(seen, spread**2 * gradients / np.where(seen, rows, 1.0), 0.0), gradients
        )


def _along(width: float, n_cells: int) -> tuple[FloatArray, FloatArray]:
    """Masses of cells along one column, and their derivatives by the centre, all in spreads."""
    half = math.ceil(_REACH / width) + 1
    n_cells = min(2 * half + 1, n_cells)
    edges = (np.arange(n_cells + 1) - n_cells // 2 - _PHASE) * width
    edges[0], edges[-1] = -np.inf, np.inf
    return np.diff(norm.cdf(edges)), -np.diff(norm.pdf(edges))


def _outer(factors: list[FloatArray]) -> FloatArray:
    product = np.ones(())
    for factor in factors:
        product = np.multiply.outer(product, factor)
    return product.ravel()


def is_settled(rehearsal: Rehearsal, grid: Grid, denoising: Denoising | None) -> bool:
    """Whether a model reads the cells whose chains settle."""
    return denoising is not None and denoising.n_sweeps(grid, rehearsal.k) >= _SETTLED


def errors(
    rehearsal: Rehearsal, histogram: NoisyHistogram, denoising: Denoising | None
) -> tuple[float, float]:
    """Root mean squared errors of a coordinate of a centre, and of a size."""
    cluster = _Cluster.on(histogram.grid, rehearsal.size, rehearsal.spread)
    size_error = math.sqrt(_variance(histogram) * histogram.grid.n_cells / rehearsal.k)
    if denoising is None:
        return _projected(cluster, histogram, rehearsal), size_error
    if not is_settled(rehearsal, histogram.grid, denoising):
        return _unbiased(cluster, histogram, rehearsal, denoising), size_error
    center_error, size_error = _denoised(cluster, _variance(histogram), rehearsal, denoising.misfit)
    rows_error = _rows_error(rehearsal, histogram, denoising.rows)
    return center_error, math.hypot(size_error, rows_error / rehearsal.k)


def _rows_error(rehearsal: Rehearsal, histogram: NoisyHistogram, step: str | None) -> float:
    """Error of the number of rows, to which all sizes add up: bought, and summed over the cells."""
    bought = 0.0 if step is None else rehearsal.noise_std(step) ** 2
    summed = _variance(histogram) * histogram.grid.n_cells
    return math.sqrt(bought * summed / (bought + summed))


def smallest_cluster(rehearsal: Rehearsal, histogram: NoisyHistogram) -> float:
    """Rows with which a cluster raises the likelihood by as much as Schwarz's criterion asks.

    As in `CellMeans.fits_better`. A cluster gains the sum of its squared expected counts over twice the
    variance.
    """
    shares = _Cluster.on(histogram.grid, 1.0, rehearsal.spread).rows
    asked = (rehearsal.d + 1) * max(math.log(rehearsal.n) - 1, 1.0)
    return math.sqrt(_variance(histogram) * asked / float((shares**2).sum()))


def _denoised(
    cluster: _Cluster, variance: float, rehearsal: Rehearsal, relative_misfit: float
) -> tuple[float, float]:
    """Errors of the posterior mean, as if it were linear in the noisy counts.

    Counts y are read as E + trust (y - E), where E is the model with its centre (or size) fitted to y by
    weighted least squares. The error is measured against the rows of the table: chance that is read
    correctly is no error. Where rows lie within a cell is not seen.
    """
    misfit = (relative_misfit * cluster.rows) ** 2
    total = variance + cluster.rows + misfit
    trust = (cluster.rows + misfit) / total

    def squared(slopes: FloatArray, wanted: FloatArray) -> float:
        steepness = float((slopes**2 / total).sum())  # none where a cluster lies within one cell
        fitted = slopes / total / (steepness or 1.0)
        weights = fitted * (float((wanted * slopes).sum()) - float((trust * wanted * slopes).sum()))
        weights += trust * wanted
        return float(((weights - wanted) ** 2 * cluster.rows + weights**2 * variance).sum())

    size, spread = rehearsal.size, rehearsal.spread
    columns = zip(cluster.slopes, cluster.places, strict=True)
    seen = [squared(slopes, places / size) for slopes, places in columns]
    within = (spread**2 - float((cluster.rows * cluster.places**2).sum(axis=1).mean()) / size) / size
    of_size = squared(cluster.rows / size, np.ones_like(cluster.rows))
    return _CHAINS * math.sqrt(float(np.mean(seen)) + max(within, 0.0)), math.sqrt(of_size)


def _unbiased(
    cluster: _Cluster, histogram: NoisyHistogram, rehearsal: Rehearsal, denoising: Denoising
) -> float:
    """Error of a mean of noisy counts: over the cells that stand out, or over a cluster's part of the domain.

    As in `GridSynopsis._unbiased`.
    """
    grid, size = histogram.grid, rehearsal.size
    clear = cluster.around > denoising.clear * math.sqrt(_variance(histogram)) * 3.0 ** (-rehearsal.d / 2)
    if float(cluster.rows[clear].sum()) > denoising.nearly_all * size:
        squares = float((cluster.places[:, clear] ** 2).sum(axis=1).mean())
    else:
        squares = grid.n_cells / rehearsal.k * _side(grid, rehearsal) ** 2 / 12
    unseen = float((grid.widths**2).mean()) / 12 / size  # where rows lie within a cell
    return math.sqrt(_variance(histogram) * squares / size**2 + unseen)


def _side(grid: Grid, rehearsal: Rehearsal) -> float:
    """Side of a cube that is a cluster's part of the domain."""
    sides = np.array(grid.high) - np.array(grid.low)
    return math.pow(float(sides.prod()) / rehearsal.k, 1 / rehearsal.d)


def _projected(cluster: _Cluster, histogram: NoisyHistogram, rehearsal: Rehearsal) -> float:
    """Error of a mean of counts that were projected onto possible ones.

    The projection subtracts a threshold from every cell. Noise above it in empty cells pulls a centre towards
    the middle of its part of the domain: for centres at random, by the side of this part over the root of
    12 d, in quadratic mean.
    """
    d, size = rehearsal.d, rehearsal.size
    n_cells = histogram.grid.n_cells / rehearsal.k
    most = np.argsort(-cluster.rows)[: max(1, int(n_cells))]
    rows, places = cluster.rows[most], cluster.places[:, most]
    n_empty = max(n_cells - len(rows), 0.0)

    def surplus(threshold: float) -> float:
        kept = float(_kept(rows - threshold, histogram)[0].sum())
        return kept + n_empty * float(_kept(np.array([-threshold]), histogram)[0][0]) - size

    std = math.sqrt(_variance(histogram))
    threshold = brentq(surplus, -std, rows.max() + 50 * std)
    variances = _kept(rows - threshold, histogram)[1]
    mean, spread = (float(moment[0]) for moment in _kept(np.array([-threshold]), histogram))
    side = _side(histogram.grid, rehearsal)
    pull = mean * n_cells / size * side / math.sqrt(12 * d)
    chance = float((variances * places**2).sum(axis=1).mean()) + spread * n_cells * side**2 / 12
    unseen = float((histogram.grid.widths**2).mean()) / 12 / size  # where rows lie within a cell
    return math.sqrt(pull**2 + chance / size**2 + unseen)


def _variance(histogram: NoisyHistogram) -> float:
    """Variance of the noise in a count; above zero even with a very large budget."""
    return max(histogram.variance, _NOTHING)


def _kept(counts: FloatArray, histogram: NoisyHistogram) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of max(count + noise, 0)."""
    std = math.sqrt(_variance(histogram))
    if histogram.mechanism == "discrete Gaussian":
        z = counts / std
        mean = std * (z * norm.cdf(z) + norm.pdf(z))
        square = std**2 * ((z**2 + 1) * norm.cdf(z) + z * norm.pdf(z))
    else:
        scale = std / math.sqrt(2)
        tail = scale / 2 * np.exp(-np.abs(counts) / scale)
        mean = np.maximum(counts, 0.0) + tail
        square = np.where(counts >= 0, counts**2 + 2 * scale**2 - 2 * scale * tail, 2 * scale * tail)
    return mean, np.maximum(square - mean**2, 0.0)
