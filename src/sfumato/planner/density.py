"""What density methods will show: guarantees, radii that fit, and least heights."""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.special import gamma
from scipy.stats import chi, ncx2
from sklearn.base import clone

from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.traits import Promise
from sfumato.domain import FloatArray
from sfumato.errors import ParameterError
from sfumato.planner.rehearsal import Rehearsal
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.tails import log_moments

_TYPICAL_SHARE = 0.1  # of a cluster's typical density, where DensityTree ends it
_FALSE_CHANCE = 0.02  # largest probability that noise alone makes a cluster anywhere in an empty domain
_HALVINGS = 12  # of the interval that holds the radius
_FARTHEST = 6.0  # spreads within which all rows of a cluster lie
_WIDEST = 4.0  # radius to consider, in spreads: it holds all of a cluster


def promise(rehearsal: Rehearsal, histogram: NoisyHistogram) -> Promise | None:
    """What the method promises for its radius; None for a method without one."""
    cells = rehearsal.traits.cells
    return None if cells is None or cells.promise is None else cells.promise(histogram)


def fitting(rehearsal: Rehearsal) -> tuple[float, int] | None:
    """Least radius that is sure to find the clusters, and the `min_samples` for it.

    A ball around the middle of a cluster holds some rows. `min_samples` is half of them, so a cluster is sure
    to be found if tau is at most the other half. None if no radius will do.
    """
    low, high, found = math.log(rehearsal.spread / 50), math.log(_WIDEST * rehearsal.spread), None
    for step in range(_HALVINGS + 1):
        middle = (low + high) / 2 if step else high
        radius = float(f"{math.exp(middle):.3g}")
        half = rehearsal.size * chi.cdf(radius / rehearsal.spread, rehearsal.d) / 2
        min_samples = max(1, math.floor(half))
        method: PrivateClusterer = clone(rehearsal.estimator)
        method.set_params(radius=radius, min_samples=min_samples)
        if _tau(rehearsal.with_parameters(method)) <= half:
            high, found = middle, (radius, min_samples)
        elif found is None:
            return None
        else:
            low = middle
    return found


def _tau(rehearsal: Rehearsal) -> float:
    try:
        promised = promise(rehearsal, rehearsal.histogram())
    except ParameterError:  # a radius that is too small for its grid, or too large for the domain
        return math.inf
    return math.inf if promised is None else promised.guarantee.tau


def least_height(histogram: NoisyHistogram) -> float:
    """Rows per cell, under a kernel of one cell, that noise alone seldom reaches anywhere (Chernoff)."""
    n_features, weights, times = len(histogram.grid.shape), np.ones(1), np.ones(1)
    log_chance = math.log(_FALSE_CHANCE / histogram.grid.n_cells)
    impulse = np.zeros(11)
    impulse[5] = 1.0
    kernel = gaussian_filter1d(impulse, 1.0, mode="constant")
    for _ in range(n_features):  # distinct weights of the product of kernels, and how often each
        products = np.multiply.outer(weights, kernel).round(12).ravel()
        weights, place = np.unique(products, return_inverse=True)
        times = np.bincount(place, np.repeat(times, len(kernel))).astype(np.float64)
    rates = np.linspace(0, min(0.98 / histogram.scale, 50.0), 100)[1:] / weights.max()
    logs = [times @ log_moments(histogram, rate * weights) for rate in rates]
    return float(np.min((np.array(logs) - log_chance) / rates))


def cell_widths(rehearsal: Rehearsal, histogram: NoisyHistogram) -> FloatArray:
    """Width of a cell along each column, in lengths."""
    return np.asarray(histogram.grid.widths * rehearsal.lengths)


def smallest_cluster(rehearsal: Rehearsal, histogram: NoisyHistogram) -> float:
    """Rows of the smallest cluster that is sure, or likely, to be found."""
    if promised := promise(rehearsal, histogram):
        guarantee = promised.guarantee
        inside = chi.cdf(guarantee.radius / rehearsal.spread, rehearsal.d)
        return (guarantee.min_samples + guarantee.tau) / float(inside)
    widths = cell_widths(rehearsal, histogram)
    peak = np.prod(widths / np.sqrt(2 * math.pi * (rehearsal.spread**2 + widths**2)))
    return least_height(histogram) / float(peak)


def size_error(rehearsal: Rehearsal, histogram: NoisyHistogram) -> float:
    """Noise in the rows of a span, summed over the cells that a normal cluster fills."""
    volume = _unit_ball(rehearsal.d) * _reach(rehearsal, histogram) ** rehearsal.d
    n_cells = max(1.0, volume / float(cell_widths(rehearsal, histogram).prod()))
    return math.sqrt(histogram.variance * n_cells)


def _unit_ball(d: int) -> float:
    return float(math.pi ** (d / 2) / gamma(d / 2 + 1))


def _reach(rehearsal: Rehearsal, histogram: NoisyHistogram) -> float:
    """How far a span reaches from the middle of a normal cluster."""
    d, spread, widths = rehearsal.d, rehearsal.spread, cell_widths(rehearsal, histogram)
    promised = promise(rehearsal, histogram)
    if promised is None:
        blurred = math.sqrt(spread**2 + float((widths**2).mean()))
        return blurred * math.sqrt(2 * math.log(2 ** (d / 2) / _TYPICAL_SHARE))
    radius = math.pow(promised.n_cells * float(widths.prod()) / _unit_ball(d), 1 / d) / spread
    distances = np.linspace(0.0, radius + _FARTHEST, 1001)
    near = rehearsal.size * ncx2.cdf(radius**2, d, distances**2)
    return spread * float(distances[max(int(np.count_nonzero(near >= promised.report)) - 1, 0)])
