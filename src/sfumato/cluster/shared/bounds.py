"""Private bounds: where the rows of each column are, from noisy histograms alone.

The first histogram has bins at powers of two, so that no column is out of reach. The second cuts the interval
found there into many equal bins, in case the rows fill only a small part of it (latitudes of one town, times
of one week). The third measures what the second found. A bound does not depend on a single row or on a
quantile: it is the end of the outermost *run of bins* with more rows than noise alone, or outliers, would
show. So a distant cluster stays inside if the budget can see it, and a few wild values do not.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc, ndtri
from scipy.stats import nbinom

from sfumato.budget import Plan, PrivacyStatement, Step, calibrate
from sfumato.budget.bought import Bought, plain, purchases
from sfumato.cluster.shared.parameters import OF_FITS, SharedParameters, as_budget, as_seed, takes_shared
from sfumato.curator import Noisy, Questions, histograms_sensitivity, open_table, run
from sfumato.domain import FloatArray, Grid, IntArray, Unit
from sfumato.errors import NoiseWarning, ParameterError

LEAST_EXPONENT, LARGEST_EXPONENT = -60, 80  # of the powers of two: values beyond count as absent
ANYWHERE = (-1e60, 1e60)  # where rows may be before bounds are known: beyond all powers of two
ZERO_BIN = LARGEST_EXPONENT - LEAST_EXPONENT  # of the first histogram
NEAR_ZERO = 2.0 ** (LEAST_EXPONENT + 1)  # width of the bin around zero: no bounds are closer together
FALLBACK = (-1.0, 1.0)  # of a column whose rows the noise hides

# Tuned on simulated columns; measured on others: docs/notes/constants.md#bounds
LEAST_BINS, MOST_BINS, ENOUGH_BINS = 8, 1024, 64
NARROW = 4  # rows within this many coarse bins may fill far less, so the search for them takes many fine bins
SPREAD = 0.2  # share of the rows that stands out even if it is spread over half the interval
OCTAVES = 2  # longest run of powers of two: with a longer one a thin tail would widen the interval too much
CUT = 5e-4  # share of the rows that may lie beyond a bound: fewer are outliers
KEPT = 0.9  # share of the rows found before that must be found again; otherwise the interval stays
LOST = 5e-3  # share of the rows in a run of bins that no later round may cut off
LARGEST_CUT = 0.2  # largest share of unseen rows for which a margin is extrapolated


class _Round(NamedTuple):
    """One histogram: its step, and how far its interval is widened.

    Parameters
    ----------
    name : str
    share : Fraction
    false_alarm : float
        Probability that noise looks like rows in any column. In the first round that can cost many powers of
        two. Later it moves a bound by no more than about the interval's width.
    margin : float
        Least margin on each side, as a share of the width.
    tails : float
        Margin for invisible tails, in units of what a normal law needs.
    """

    name: str
    share: Fraction
    false_alarm: float
    margin: float
    tails: float


# Tuned: docs/notes/constants.md#bounds
MAGNITUDES = _Round("magnitudes", Fraction(3, 10), 1e-3, 0.5, 0.0)
COARSE = _Round("coarse bins", Fraction(4, 10), 1e-2, 0.0, 1.0)
FINE = _Round("fine bins", Fraction(3, 10), 1e-2, 0.0, 0.5)


class _Found(NamedTuple):
    """What is known about each column. All arrays have shape (d,).

    Parameters
    ----------
    low, high : float array
    heads, tails : float array
        Right end of the first and left end of the last run of bins with a share `LOST` of the rows. A low
        bound beyond the first, or a high bound before the last, would cut off that run.
    sizes : float array
        Estimated number of rows between the bounds, before these were widened; 0 if none stood out.
    extents : int array
        Number of bins between the bounds.
    """

    low: FloatArray
    high: FloatArray
    heads: FloatArray
    tails: FloatArray
    sizes: FloatArray
    extents: IntArray


def bounds_steps(n_features: int) -> tuple[Step, ...]:
    """Steps that `find_bounds` asks, with shares that sum to 1.

    Examples
    --------
    >>> [(step.name, str(step.share)) for step in bounds_steps(2)]
    [('magnitudes', '3/10'), ('coarse bins', '2/5'), ('fine bins', '3/10')]
    """
    sensitivity = histograms_sensitivity(n_features)
    return tuple(Step(r.name, r.share, sensitivity=sensitivity) for r in (MAGNITUDES, COARSE, FINE))


def find_bounds(curator: Questions) -> tuple[FloatArray, FloatArray]:
    """Bounds of every column that contain all but a few of its rows and are not much wider.

    Parameters
    ----------
    curator : Questions
        Its plan must have the steps of `bounds_steps`, and its domain must contain every row.

    Returns
    -------
    low, high : float array of shape (d,)
        Finite, and at least 2^-59 apart. If nothing in a column stands out from the noise, it gets -1 and 1,
        or the part of that interval that the later histograms confirm; if only zeros do, it gets -1 and 1.
        A warning tells. Values beyond 2^80 count as absent, values within 2^-60 of zero as zero.

    Privacy
    -------
    Three noisy histograms. The bins of the first are fixed. The bins of the others, and the bounds, depend
    only on released values. Proof: docs/proofs/bounds.md.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.budget import Budget, Plan, calibrate
    >>> from sfumato.curator import open_table
    >>> from sfumato.domain import Unit
    >>> rows = np.random.default_rng(0).uniform([37.6, 0], [37.8, 1000], size=(20_000, 2))
    >>> plan = calibrate(Plan(*bounds_steps(2)), Budget(1))
    >>> low, high = find_bounds(open_table(rows, ANYWHERE, Unit()).curator(plan, seed=0))
    >>> bool((low <= rows.min(axis=0)).all() and (high >= rows.max(axis=0)).all())
    True
    >>> bool((high - low < [0.3, 1500]).all())
    True
    """
    d = curator.domain.n_features
    edges = np.tile(magnitude_edges(), (d, 1))
    low, high, head, tail = np.tile([[*FALLBACK, math.inf, -math.inf]], (d, 1)).T
    nothing = _Found(low, high, head, tail, np.zeros(d), np.zeros(d, dtype=np.int64))
    n_bins = np.full(d, edges.shape[1] - 1)
    found = _narrowed(nothing, curator.histograms(MAGNITUDES.name, edges), edges, n_bins, MAGNITUDES)
    for stage in (COARSE, FINE):
        n_bins = _n_bins(curator, found, stage)
        # Columns with fewer bins than others have unused bins beyond their interval.
        widths = (found.high - found.low) / n_bins
        edges = found.low[:, None] + widths[:, None] * np.arange(n_bins.max() + 1)
        found = _narrowed(found, curator.histograms(stage.name, edges), edges, n_bins, stage)
    hidden = np.flatnonzero((found.sizes == 0) | np.isinf(found.sizes))
    if len(hidden):
        warnings.warn(
            f"the noise hides where the rows are in column(s) {', '.join(str(j + 1) for j in hidden)}: they "
            f"are taken to be from {FALLBACK[0]:g} to {FALLBACK[1]:g}. Spend more on bounds, or state them",
            NoiseWarning,
            stacklevel=2,
        )
    return found.low, found.high


def magnitude_edges() -> FloatArray:
    """Powers of two of both signs, with one bin for values near zero between them."""
    powers = 2.0 ** np.arange(LEAST_EXPONENT, LARGEST_EXPONENT + 1)
    return np.concatenate([-powers[::-1], powers])


def _n_bins(curator: Questions, found: _Found, stage: _Round) -> IntArray:
    """Number of bins of each column: many to search, but no more than the noise allows to measure.

    A run over half of B bins has sqrt(B / 2) times the noise of one bin. For a share s of the rows to stand
    out from it, B may be of the order of (s rows / threshold)^2.
    """
    if stage is COARSE:
        return np.full(len(found.low), MOST_BINS)
    universe = Grid((0.0,), (1.0,), (MOST_BINS * len(found.low),))
    visible = curator.threshold_for(stage.name, universe, stage.false_alarm)
    most = np.where(found.extents > NARROW, ENOUGH_BINS, MOST_BINS)
    return np.clip((SPREAD * found.sizes / visible) ** 2, LEAST_BINS, most).astype(np.int64)


def _narrowed(before: _Found, noisy: Noisy, edges: FloatArray, n_bins: IntArray, stage: _Round) -> _Found:
    """Bounds of the rows that stand out in the first `n_bins` bins of each column.

    The bounds stay unchanged if no rows stand out, or if too many do not. In that case the rows are spread
    too thinly over these bins, and narrowing the interval would cut them off. For the same reason one bound
    stays unchanged if narrowing it would cut off a run of bins that held a share `LOST` of the rows before.
    """
    longest = OCTAVES if stage is MAGNITUDES else int(n_bins.max())
    lengths = 2 ** np.arange(longest.bit_length())
    noise = noise_of_runs(noisy, lengths, stage.false_alarm / (int(n_bins.sum()) * len(lengths)))
    outliers = CUT * max(float(np.median(noisy.values.sum(axis=1))), 0.0)
    thresholds = np.maximum(noise, outliers)
    found = copy.deepcopy(before)
    for j, counts in enumerate(noisy.values):
        (first, _), (_, last) = visible_runs(counts[: n_bins[j]], lengths, thresholds)
        if stage is MAGNITUDES and (first, last) == (ZERO_BIN, ZERO_BIN + 1):
            found.sizes[j] = math.inf  # zeros alone stand out. Others may be anywhere: no later round narrows
            continue
        size = max(float(counts[first:last].sum()), 1.0)
        if first < last and size >= KEPT * before.sizes[j]:
            low, high = edges[j, first], edges[j, last]
            # A tail is assumed to be a quarter as long as the visible part; its rows may go unseen.
            quarter = min(int(max((last - first) / 4, 1)).bit_length(), len(lengths)) - 1
            margin = (high - low) * max(stage.margin, stage.tails * _tail_margin(thresholds[quarter] / size))
            margin = max(margin, (NEAR_ZERO - (high - low)) / 2)
            # Beside a spike, rows that stood out before may be spread too thinly now. Their bound stays.
            low_holds, high_holds = low - margin < before.heads[j], high + margin > before.tails[j]
            found.low[j] = low - margin if low_holds else before.low[j]
            found.high[j] = high + margin if high_holds else before.high[j]
            large = np.maximum(thresholds, LOST * size)
            (_, head), (tail, _) = visible_runs(counts[: n_bins[j]], lengths, large)
            found.heads[j] = min(before.heads[j], edges[j, head])
            found.tails[j] = max(before.tails[j], edges[j, tail])
            found.sizes[j] = size
            found.extents[j] = last - first if low_holds and high_holds else n_bins[j]
    return found


def visible_runs(
    counts: IntArray, lengths: IntArray, thresholds: FloatArray
) -> tuple[tuple[int, int], tuple[int, int]]:
    """First and last run of bins that exceeds the threshold for its length: its start, and its end.

    Short runs come first. Longer runs count only if they lie completely beyond those found so far: a long run
    that contains a visible bin says nothing about its other bins.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([0, 0, 5, 6, 0, 90, 80, 1, 0])
    >>> visible_runs(counts, np.array([1, 2]), np.array([7, 10]))
    ((2, 4), (6, 7))
    >>> visible_runs(counts, np.array([1]), np.array([100]))
    ((9, 9), (0, 0))
    """
    below = np.concatenate([[0], np.cumsum(counts)])
    first = head = len(counts)
    tail = last = 0
    for length, threshold in zip(lengths.tolist(), thresholds, strict=True):
        starts = np.flatnonzero(below[length:] - below[:-length] > threshold)
        left = starts[starts + length <= first] if last else starts
        right = starts[starts >= last]
        if len(left):
            first, head = int(left[0]), int(left[0]) + length
        if len(right):
            tail, last = int(right[-1]), int(right[-1]) + length
    return (first, head), (tail, last)


def _tail_margin(invisible: float) -> float:
    """How much further a normal law reaches to `CUT` than to an invisible share, in widths of its rest."""
    seen = -ndtri(min(max(invisible, CUT), LARGEST_CUT))
    return float((-ndtri(CUT) / seen - 1) / 2)


def noise_of_runs(noisy: Noisy, lengths: IntArray, tail: float) -> FloatArray:
    """Level that the noise in a run of bins exceeds with probability `tail`, for each length."""
    record = noisy.record
    gaussian = record.mechanism == "discrete Gaussian"
    quantiles = [_noise_quantile(gaussian, length, tail) for length in lengths.tolist()]
    return float(record.scale) * np.array(quantiles)


@lru_cache(maxsize=1024)
def _noise_quantile(gaussian: bool, n: int, tail: float) -> float:
    """Level that a sum of n noises of scale 1 exceeds with probability `tail`, at most 1/2.

    n Laplace variables sum to the difference of two gamma variables of shape n. The first of these exceeds
    the second by x with probability sum over k < n of NB(k; n, 1/2) Q(n - k, x): by the memoryless law, the
    second uses up k steps of a Poisson process. Discrete noise of scale b is close to b times continuous
    noise, and no privacy guarantee depends on this.
    """
    if gaussian:
        return -math.sqrt(n) * float(ndtri(tail))
    used = np.arange(n)
    weights = nbinom.pmf(used, n, 0.5)
    farthest = 2 * (math.sqrt(-n * math.log(tail)) - math.log(tail))  # Bernstein's inequality

    def surplus(x: float) -> float:
        return math.log(float(weights @ gammaincc(n - used, x))) - math.log(tail)

    return float(brentq(surplus, 0, farthest))


@dataclass(frozen=True)
class EstimatedBounds(Sequence[tuple[Bought, ...]]):
    """Private bounds: a pair (low, high) to pass to a fit as ``bounds``.

    If the bounds name columns, only those are used. A release that uses the bounds includes their cost, also
    if it takes single numbers of them, or multiples. An array would lose the cost and is refused.

    Parameters
    ----------
    low, high : tuple of Bought
    columns : tuple of str
        Names of the columns, if any.
    privacy : PrivacyStatement
        What the bounds cost.
    """

    low: tuple[Bought, ...]
    high: tuple[Bought, ...]
    columns: tuple[str, ...]
    privacy: PrivacyStatement

    @property
    def value(self) -> Any:
        """The numbers alone, to look at: low and high by column, or a pair (low, high) without names."""
        low, high = plain((self.low, self.high))
        if not self.columns:
            return low, high
        return dict(zip(self.columns, zip(low, high, strict=True), strict=True))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        return (self.low, self.high)[index]


@takes_shared("bounds", *OF_FITS)
def estimate_bounds(
    X: Any, columns: Sequence[str] | None = None, *, shared: SharedParameters
) -> EstimatedBounds:
    """Find bounds of numeric columns under differential privacy, for a budget of their own.

    This takes three passes of noisy histograms: powers of two, then twice equal bins within the interval
    found. The result is tight around the rows that stand out from the noise; single outliers do not widen it.
    If the noise hides all rows of a column, its bounds are (-1, 1). Bounds that are public knowledge are
    better, and free.

    Parameters
    ----------
    X : table
        As for a fit.
    columns : sequence of str, optional
        Columns of a table with names; by default all except `unit`.

    Privacy
    -------
    Each histogram has sensitivity 1 per column for one row. Its bins depend only on earlier released values.
    Proof: docs/proofs/bounds.md.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal([37.7, -122.4], 0.02, (50_000, 2))
    >>> bounds = estimate_bounds(rows, epsilon=0.5, random_state=0)
    >>> low, high = bounds.value
    >>> bool((np.array(low) < [37.66, -122.44]).all() and (np.array(high) < [37.9, -122.2]).all())
    True
    """
    if columns is not None and not _are_names(columns):
        raise ParameterError(f"`columns` must be a list of names or None, got {columns!r}")
    bounds = ANYWHERE if columns is None else dict.fromkeys(columns, ANYWHERE)
    unit = Unit(shared.unit, plain(shared.max_rows_per_unit))
    table = open_table(X, bounds, unit, shared.missing)
    plan = Plan(*bounds_steps(table.domain.n_features))
    priced = calibrate(plan, as_budget(shared.epsilon, shared.delta, shared.rho), unit.max_rows)
    seed = as_seed(shared.random_state)
    done = run(table, priced, find_bounds, method="estimate_bounds", ledger=shared.ledger, seed=seed)
    paid = (done.privacy, *purchases(shared.max_rows_per_unit))
    low, high = (tuple(Bought(limit, paid) for limit in limits.tolist()) for limits in done.found)
    return EstimatedBounds(low, high, table.names, done.privacy)


def _are_names(columns: object) -> bool:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        return False
    return all(isinstance(name, str) for name in columns)
