"""Labelled cells, the number of rows in them, and labels for new rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf, ndtri

from sfumato.domain import MOST_CELLS, FloatArray, Grid, IntArray, check_shape
from sfumato.errors import ParameterError
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.scales import Layer
from sfumato.public.density.spans import Span
from sfumato.public.density.tails import allowances
from sfumato.public.intervals import CONFIDENCE

_LAPLACE_EXCESS = 0.08  # of the 95 % interval of one count
_BIAS_DOUBT = 0.5  # standard deviation of the true excess, as a share of the estimated one
_FEW_CELLS = 32  # up to here the law of a sum is computed; beyond, a normal law shows the same digits


@dataclass(frozen=True, eq=False)
class Regions:
    """Spans in the form that is stored: cells, the span of each cell, and a count with interval per span."""

    grid: Grid  # grid of `cells`
    cells: IntArray  # flat indices in increasing order
    labels: IntArray  # span of each cell. Spans are numbered from the largest count down
    counts: FloatArray  # (n_spans, 3); estimated number of rows, and the ends of its interval
    confidence: float
    strengths: FloatArray | None = None  # of each cell, from 0 to 1: its density over the span's typical one

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        self.grid.check_cells(self.cells)
        check_shape("counts", self.counts, self.n_spans, 3)
        check_shape("labels", self.labels, len(self.cells))
        if not np.array_equal(np.unique(self.labels), np.arange(self.n_spans)):
            raise ParameterError(f"`labels` must name each of the {self.n_spans} spans")
        if self.strengths is not None:
            check_shape("strengths", self.strengths, len(self.cells))
        if (self.counts < 0).any() or not 0 < self.confidence < 1:
            raise ParameterError("`counts` must be at least 0, and `confidence` between 0 and 1")

    @property
    def n_spans(self) -> int:
        """Number of spans."""
        return len(self.counts)

    @property
    def n_cells(self) -> int:
        """Number of spans, as groups of rows."""
        return self.n_spans

    def index(self, rows: FloatArray) -> IntArray:
        """Span of each row, or -1 for none."""
        return self.predict(rows)

    def predict(self, rows: FloatArray) -> IntArray:
        """Span of each row, or -1 for none. Rows outside the grid count in the nearest cell."""
        return np.append(self.labels, -1)[self._places(rows)]

    def strength(self, rows: FloatArray) -> FloatArray:
        """How dense each row's place is, relative to what is typical of its span, at most 1; 0 outside."""
        known = np.ones(len(self.cells)) if self.strengths is None else self.strengths
        return np.append(known, 0.0)[self._places(rows)]

    def _places(self, rows: FloatArray) -> IntArray:
        """Position of each row's cell among the cells, -1 if it is not there."""
        if not len(self.cells):
            return np.full(len(rows), -1, dtype=np.int64)
        index = self.grid.index(rows)
        place = np.searchsorted(self.cells, index).clip(max=len(self.cells) - 1)
        return np.where(self.cells[place] == index, place, -1)

    def spans(self) -> tuple[Span, ...]:
        """Spans as objects, the largest first."""
        order = np.argsort(self.labels, kind="stable")
        borders = np.searchsorted(self.labels[order], np.arange(1, self.n_spans))
        groups = np.split(self.cells[order], borders) if self.n_spans else []
        return tuple(
            Span(label, float(count), float(low), float(high), self.confidence, self.grid, cells)
            for label, ((count, low, high), cells) in enumerate(zip(self.counts, groups, strict=True))
        )


def check_same_columns(grid: Grid, other: Grid) -> None:
    """Raise if two grids have different numbers of columns."""
    if len(grid.shape) != len(other.shape):
        raise ParameterError(
            f"the grids must have the same columns, got {len(grid.shape)} and {len(other.shape)}"
        )


def measured_regions(
    histogram: NoisyHistogram,
    parts: int,
    cells: IntArray,
    labels: IntArray,
    bias: FloatArray,
    confidence: float,
) -> Regions:
    """Regions with estimated counts.

    A span counts the cells that lie completely inside it. Cells that it cuts count in proportion to the part
    inside, and the interval allows for the uncertainty.

    Parameters
    ----------
    histogram : NoisyHistogram
    parts : int
        Number of cells of the regions' grid along each side of a cell of the histogram.
    cells, labels : int array
        Cells of the regions' grid in increasing order, and their labels, from 0 without gaps.
    bias : float array of shape (n_spans,)
        Expected excess of a span's noisy count, because its cells were chosen for being large.
    confidence : float
    """
    fine = histogram.grid.refined(parts)
    n_spans = len(bias)
    homes, span, pieces = _pairs(_coarse(cells, histogram.grid.shape, parts), labels, histogram.grid.n_cells)
    counts = histogram.at(homes).astype(np.float64)
    share = pieces / parts ** len(fine.shape)
    whole = share == 1
    estimate = np.bincount(span, share * counts, n_spans) - bias
    inner = np.bincount(span[whole], counts[whole], n_spans) - bias
    outer = np.bincount(span, counts, n_spans)
    low = inner - _spread(histogram, np.bincount(span[whole], minlength=n_spans), confidence)[0]
    high = outer + _spread(histogram, np.bincount(span, minlength=n_spans), confidence)[1]
    table = np.stack([estimate, low, high], axis=1).clip(min=0)
    table[:, 0] = table[:, 0].clip(table[:, 1], table[:, 2])
    order = np.argsort(-table[:, 0], kind="stable")
    rank = np.empty(n_spans, dtype=np.int64)
    rank[order] = np.arange(n_spans)
    return Regions(fine, cells, rank[labels], table[order], confidence)


def regions_of_leaves(
    histogram: NestedHistogram,
    labels: IntArray,
    edges: Layer,
    floors: FloatArray,
    around: float,
    by_chance: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
) -> Regions:
    """Regions of whole leaves with estimated counts: a leaf belongs to what most of its cells belong to.

    Parameters
    ----------
    histogram : NestedHistogram
    labels : int array
        Label of each fine cell, -1 for none.
    edges : Layer
        The density that decided on the labels.
    floors : float array of shape (n_spans,)
        Density at which each span ends.
    around : float
        Rows per fine cell around all spans.
    by_chance : callable
        Rows that chance seldom adds, from the number of counts, the standard deviation of their sum and the
        rows that would be there anyway. A span must hold more than that, beyond the latter.
    """
    nested, n_spans = histogram.nested, len(floors)
    owner = _majority(nested.leaves, labels, nested.n_cells, n_spans)
    leaves = np.flatnonzero(owner >= 0)
    estimate, std = histogram.totals(leaves, owner[leaves], n_spans)
    bias = _leaf_bias(histogram, owner, edges, floors)
    estimate -= bias
    n_leaves = np.bincount(owner[leaves], minlength=n_spans)
    # Of very few counts, Laplace noise has wider tails than normal noise of the same variance.
    beyond = -ndtri((1 - CONFIDENCE) / 2) * (1 + _LAPLACE_EXCESS / np.maximum(n_leaves, 1))
    beyond = beyond * np.hypot(std, _BIAS_DOUBT * bias)
    table = np.stack([estimate, estimate - beyond, estimate + beyond], axis=1).clip(min=0)
    order = np.argsort(-table[:, 0], kind="stable")
    anyway: FloatArray = around * np.bincount(owner[leaves], nested.volumes[leaves], n_spans).astype(
        np.float64
    )
    sure = (n_leaves > 0) & (estimate - anyway > by_chance(np.maximum(n_leaves, 1.0), std, anyway))
    order = order[sure[order]]
    rank = np.full(n_spans + 1, -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    of_cells = rank[owner[nested.leaves]]
    cells = np.flatnonzero(of_cells >= 0).astype(np.int64)
    found = of_cells[cells]
    density = edges.density[cells]
    mass = np.maximum(np.bincount(found, density, len(order)), 1e-300)
    strengths = (density / (np.bincount(found, density**2, len(order)) / mass)[found]).clip(0.0, 1.0)
    return Regions(nested.fine, cells, found, table[order], CONFIDENCE, strengths.round(3))


def _majority(leaves: IntArray, labels: IntArray, n_leaves: int, n_spans: int) -> IntArray:
    """Most frequent label of the fine cells of each leaf."""
    pairs, times = np.unique(leaves * (n_spans + 1) + labels + 1, return_counts=True)
    leaf, found = np.divmod(pairs, n_spans + 1)
    order = np.argsort(times, kind="stable")
    owner = np.full(n_leaves, -1, dtype=np.int64)
    owner[leaf[order]] = found[order] - 1  # the last one written is the most frequent
    return owner


def _leaf_bias(histogram: NestedHistogram, owner: IntArray, edges: Layer, floors: FloatArray) -> FloatArray:
    """Expected excess of the count of each span, because its leaves were chosen for being large."""
    nested, d = histogram.nested, len(histogram.grid.shape)
    share = 1 / nested.volumes[nested.leaves]
    mean = [np.bincount(nested.leaves, share * values, nested.n_cells) for values in edges]
    density, kernel, precision = mean
    own_weight = np.minimum(nested.volumes / (math.sqrt(2 * math.pi) * kernel) ** d, 1.0)
    spread = np.maximum(density / np.sqrt(precision), 1e-300)
    near = (owner >= 0) & (density < np.append(floors, 0.0)[owner] + spread)
    # Errors of leaves of a coarse cell are correlated if the cell was counted as a whole, too. The kernel
    # sees as much of the cell as if the leaf were in its middle.
    seen = erf(2.0**nested.deepest / (2 * math.sqrt(2) * kernel)) ** d
    gain = (histogram.variance * own_weight - histogram.lessening[nested.homes] * seen) / nested.volumes
    return np.bincount(owner[near], gain[near] / spread[near], len(floors)).astype(np.float64)


def selection_bias(
    scores: FloatArray, labels: IntArray, levels: FloatArray, spread: float, gain: float
) -> FloatArray:
    """Expected excess of a sum of noisy counts over cells that were chosen for a score above a level.

    By Stein's identity each cell contributes (variance of a count) x (weight of its own count in its score)
    x (density of the score at the level). The number of scores within `spread` above the level estimates the
    sum of these densities. This is exact for Gaussian noise and close for sums of other noise.

    Parameters
    ----------
    scores, labels : arrays
        Scores and labels of the chosen cells.
    levels : float array of shape (n_spans,)
    spread : float
        About one standard deviation of the noise of a score.
    gain : float
        Variance of a count times its weight in the score of its own cell, and in the sum.
    """
    if not spread:
        return np.zeros(len(levels))
    near = scores < levels[labels] + spread
    return gain / spread * np.bincount(labels[near], minlength=len(levels)).astype(np.float64)


def _coarse(cells: IntArray, shape: tuple[int, ...], parts: int) -> IntArray:
    """Cell of a grid of this shape that holds each cell of the grid refined by `parts`."""
    if parts == 1:
        return cells
    out, stride = np.zeros(len(cells), dtype=np.int64), 1
    for m in reversed(shape):
        cells, along = np.divmod(cells, m * parts)
        out += along // parts * stride
        stride *= m
    return out


def _pairs(homes: IntArray, labels: IntArray, n_homes: int) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct pairs of a home and a label in their order, and how often each occurs."""
    n_labels = int(labels.max(initial=0)) + 1
    if n_homes * n_labels <= MOST_CELLS:
        pairs, times = np.unique(homes * n_labels + labels, return_counts=True)
        home, label = np.divmod(pairs, n_labels)
        return home, label, times
    distinct, place = np.unique(homes, return_inverse=True)
    place, label, times = _pairs(place, labels, len(distinct))
    return distinct[place], label, times


def _spread(histogram: NoisyHistogram, n_cells: IntArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """How far sums over `n_cells` cells may be too high and too low."""
    tail = (1 - confidence) / 2
    if histogram.is_dense:
        normal = -ndtri(tail) * np.sqrt(histogram.variance * n_cells)
        above, below = normal.copy(), normal
        chosen = n_cells <= _FEW_CELLS
    else:
        above, below = np.zeros((2, len(n_cells)))
        chosen = np.ones(len(n_cells), dtype=bool)
    for n in np.unique(n_cells[chosen & (n_cells > 0)]):
        above[n_cells == n], below[n_cells == n] = allowances(histogram, int(n), (tail, tail))
    return above, below


def noise_of_sum(histogram: NoisyHistogram, n_cells: int) -> float:
    """Standard deviation of the noise of a sum over `n_cells` counts."""
    return math.sqrt(n_cells * histogram.variance)
