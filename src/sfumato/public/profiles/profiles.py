"""What the clusters of a release are like, column by column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.domain.columns import Described, Level
from sfumato.errors import ParameterError
from sfumato.public.density.histogram import NOISES
from sfumato.public.intervals import Sizes
from sfumato.public.profiles.consistent import ColumnCounts, Fit, agreed, not_negative, reconcile
from sfumato.public.profiles.contrasts import contrasts
from sfumato.public.profiles.cycles import direction
from sfumato.public.profiles.estimates import Bars, Contrast, Direction, Estimate
from sfumato.public.profiles.listing import list_rows
from sfumato.public.profiles.near_zero import interval_of
from sfumato.public.profiles.quantiles import UNLIKE, Shape, quantile, variances
from sfumato.public.profiles.sentences import sentence
from sfumato.public.profiles.views import View

LAPLACE_TAILS = 3.0  # excess kurtosis


@dataclass(frozen=True, eq=False, repr=False)
class Profiles:
    """Distribution of every described column in each cluster and in the whole table, with 95 % intervals.

    All numbers follow from the noisy counts that were released. Intervals say how far noise, and the width of
    the bins, may have moved a number from that of the rows which were counted. They do not say how far these
    rows differ from others.

    Parameters
    ----------
    columns : tuple of Described
    table_edges : tuple of float arrays
        Edges of the table's bins, for each column. Those of levels are around their numbers; the last level
        is "other".
    table_counts : tuple of int arrays
        Noisy counts of the whole table, for each column: its bins, then missing values.
    edges : tuple of float arrays
        Edges of the clusters' bins.
    counts : tuple of int arrays of shape (k, n_bins + 1)
        Noisy counts of the clusters.
    mechanism : str
        Noise of the counts of clusters.
    table_std, std : float
        Standard deviation of the noise in each count of the table, and of the clusters.
    complete : bool
        Whether every row is in a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> ward = Described("ward", "level", levels=("Medicine", "Surgery"))
    >>> edges = (np.array([-0.5, 0.5, 1.5, 2.5]),)
    >>> table, clusters = np.array([600, 395, 0, 1]), np.array([[410, 92, 2, 1], [190, 302, 1, -1]])
    >>> found = Profiles((ward,), edges, (table,), edges, (clusters,), "discrete Gaussian", 5.0, 3.0, True)
    >>> [round(number, 2) for number in found.share(0, "ward")["Medicine"]]
    [0.81, 0.8, 0.83]
    >>> found.distinct(1)[0].is_clear
    True
    >>> print(found.sentence(0, noun="stays"))
    About 500 stays (494 to 515): ward mostly Medicine (81 %, elsewhere 39 %).
    """

    columns: tuple[Described, ...]
    table_edges: tuple[FloatArray, ...]
    table_counts: tuple[IntArray, ...]
    edges: tuple[FloatArray, ...]
    counts: tuple[IntArray, ...]
    mechanism: str
    table_std: float
    std: float
    complete: bool = True

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        parts = (self.table_edges, self.table_counts, self.edges, self.counts)
        if not self.columns or any(len(part) != len(self.columns) for part in parts):
            raise ParameterError(
                f"profiles must have edges and counts of each column, got {len(self.columns)}"
            )
        if len(set(self.names)) < len(self.names):
            raise ParameterError("the columns of profiles must have different names")
        if self.counts[0].ndim != 2:
            raise ParameterError("the counts of profiles must have a row for each cluster")
        for column, fine, table, edges, counts in zip(self.columns, *parts, strict=True):
            for line in (fine, edges):
                if line.ndim != 1 or len(line) < 2 or not (np.diff(line) > 0).all():
                    raise ParameterError("`edges` of profiles must increase in every column")
            check_shape("table_counts", table, len(fine))
            check_shape("counts", counts, self.n_clusters, len(edges))
            if fine[0] != edges[0] or fine[-1] != edges[-1]:
                raise ParameterError("the bins of a table and of its clusters must have the same ends")
            if column.kind == "level" and len(edges) != len(column.levels) + 2:
                raise ParameterError("a profile of levels must have a bin for each, and one for others")
            if not math.isfinite(column.low) or not column.low < column.high < math.inf:
                raise ParameterError("the bounds of a described column must be finite and increase")
        if self.mechanism not in NOISES or not all(0 <= s <= 2.0**52 for s in (self.table_std, self.std)):
            raise ParameterError(f"the noise of profiles must be {' or '.join(NOISES)}, of a finite size")

    def __repr__(self) -> str:
        return f"<Profiles of {self.n_clusters} clusters and {len(self.columns)} columns>"

    def __str__(self) -> str:
        return "\n".join(f"Cluster {c}. {self.sentence(c)}" for c in range(self.n_clusters))

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.counts[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the described columns."""
        return tuple(column.column for column in self.columns)

    def column(self, name: str) -> Described:
        """The described column of a name."""
        return self.columns[self._place(name)]

    @property
    def sizes(self) -> Sizes:
        """Estimated rows in each cluster, with intervals."""
        if not self.n_clusters:
            return Sizes("cluster", np.zeros(0), np.zeros((2, 0)))
        fit = self._fit
        stds = np.full(self.n_clusters, fit.size_std)
        low, high = interval_of(fit.linear_sizes, stds)
        ends = np.array([np.minimum(low, fit.sizes), np.maximum(high, fit.sizes)])
        return Sizes("cluster", fit.sizes, ends)

    def size(self, cluster: int | None = None) -> Estimate:
        """Estimated rows of a cluster, or of the whole table."""
        if cluster is not None:
            sizes = self.sizes
            assert sizes.ends is not None
            c = self._cluster(cluster)
            return Estimate(float(sizes.estimates[c]), float(sizes.ends[0, c]), float(sizes.ends[1, c]))
        table = self._tables[0]
        low, high = interval_of(table.linear_sizes, np.array([table.size_std]))
        value = float(table.sizes[0])
        return Estimate(value, min(float(low[0]), value), max(float(high[0]), value))

    def bars(self, cluster: int | None, column: str) -> Bars:
        """Distribution of a column in a cluster, or in the whole table, over the bins that were counted."""
        j = self._place(column)
        if cluster is None:
            return self._bars(self._tables[j], j)
        own, c = self._all_bars[j], self._cluster(cluster)
        return Bars(own.labels, own.shares[c], own.lows[c], own.highs[c])

    def elsewhere(self, cluster: int, column: str) -> Bars:
        """Distribution of a column in all other clusters together."""
        j = self._place(column)
        own, c = self._all_rests[j], self._cluster(cluster)
        return Bars(own.labels, own.shares[c], own.lows[c], own.highs[c])

    def share(self, cluster: int | None, column: str) -> dict[Any, Estimate]:
        """Share of each level of a category, of other values, and of missing ones.

        Of numbers, dates and cycles: shares of bins, by their two ends.
        """
        bars = self.bars(cluster, column)
        found = zip(bars.shares.tolist(), bars.lows.tolist(), bars.highs.tolist(), strict=True)
        return {label: Estimate(*three) for label, three in zip(bars.labels, found, strict=True)}

    def missing(self, cluster: int | None, column: str) -> Estimate:
        """Share of the rows that have no value in a column."""
        bars = self.bars(cluster, column)
        return Estimate(float(bars.shares[-1]), float(bars.lows[-1]), float(bars.highs[-1]))

    def quantile(self, cluster: int | None, column: str, q: float) -> Estimate:
        """Quantile of a column of numbers or dates, of the rows with a value. Dates are in days since 1970.

        Parameters
        ----------
        cluster : int, optional
            None for the whole table.
        column : str
        q : float
            Between 0 and 1: 0.5 is the median.
        """
        j = self._place(column)
        if self.columns[j].kind not in ("number", "date"):
            raise ParameterError(
                f"`column` must be one of numbers or dates, got {column!r}. Use `share`, or `direction`"
            )
        if not 0 <= q <= 1:
            raise ParameterError(f"`q` must be from 0 to 1, got {q!r}")
        view, shape, is_table = self._view(cluster, j), self._shapes[j], cluster is None
        key = (j, q, is_table)  # the noise is the same for all clusters
        if key not in self._variances:
            self._variances[key] = variances(shape, view.covariance[:-1, :-1], q)
        unlike = 0.0 if is_table else UNLIKE
        return quantile(view, shape, self.columns[j], q, unlike=unlike, noise=self._variances[key])

    def direction(self, cluster: int | None, column: str) -> Direction:
        """Where a cyclic column gathers."""
        j = self._place(column)
        if self.columns[j].kind != "cycle":
            raise ParameterError(f"`column` must be a cycle, got {column!r}. Use `share` or `quantile`")
        return direction(self._view(cluster, j), self._shapes[j], self.columns[j])

    def is_whole(self, column: str) -> bool:
        """Whether a column is told in whole numbers: it holds no others, or its bins are no narrower."""
        j = self._place(column)
        low, high = self.columns[j].low, self.columns[j].high
        is_coarse = low == round(low) and high == round(high) and np.diff(self.table_edges[j]).min() >= 1
        return self.columns[j].kind == "number" and (self._shapes[j].is_whole or bool(is_coarse))

    def distinct(self, cluster: int) -> list[Contrast]:
        """How far each column sets a cluster apart from all other clusters, the farthest first."""
        c = self._cluster(cluster)
        if self.n_clusters == 1:
            return [Contrast(name, 0.0, False) for name in self.names]
        found = [
            Contrast(name, float(scores[c]), bool(are_clear[c]))
            for name, (scores, are_clear) in zip(self.names, self._contrasts, strict=True)
        ]
        return sorted(found, key=lambda one: (not one.is_clear, -one.score))

    def sentence(
        self, cluster: int, noun: str = "rows", labels: Mapping[str, str] | None = None, most: int = 4
    ) -> str:
        """Describe a cluster in a sentence: its size, and the columns that set it apart.

        Every number comes from a method of this class, rounded to what the noise allows.

        Parameters
        ----------
        cluster : int
        noun : str
            What a row is, in the plural: "stays".
        labels : mapping, optional
            Text before the value of a column, by its name: ``{"age": "aged", "ward": ""}``.
        most : int
            Columns to name.
        """
        return sentence(self, self._cluster(cluster), noun, labels or {}, most)

    def rows(self) -> list[dict[str, Any]]:
        """All numbers as a list: one entry for each cluster, column, and level or quantile.

        Keys are cluster (None for the whole table), column, kind, statistic, value, low, high, table: the
        value of the whole table, and readable: whether the value stands out from the noise. If not, take the
        interval alone. Dates are ISO texts.
        """
        return list_rows(self)

    def to_frame(self) -> Any:
        """`rows` as a pandas data frame."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "`to_frame` needs pandas. Install it with: pip install pandas. Or use `rows()`, a list"
            ) from None
        return pd.DataFrame(self.rows())

    def labels_of(self, name: str) -> tuple[Any, ...]:
        """What the bins of a column are: levels, then others; or pairs (from, to). The last is "missing"."""
        j = self._place(name)
        column, edges = self.columns[j], self.edges[j].tolist()
        if column.kind != "level":
            pairs = pairwise(edges)
            return (
                *((max(low, column.low), min(high, column.high)) for low, high in pairs),
                MISSING,
            )
        return (*column.levels, _free(OTHER, column.levels), _free(MISSING, column.levels))

    def _bars(self, view: View, j: int) -> Bars:
        return Bars(self.labels_of(self.names[j]), view.shares(), *view.share_intervals())

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise ParameterError(f"`column` must be one of {', '.join(self.names)}, got {name!r}")
        return self.names.index(name)

    def _cluster(self, cluster: int) -> int:
        if not isinstance(cluster, int | np.integer) or not 0 <= cluster < self.n_clusters:
            raise ParameterError(f"`cluster` must be from 0 to {self.n_clusters - 1}, got {cluster!r}")
        return int(cluster)

    @cached_property
    def _variances(self) -> dict[tuple[int, float, bool], FloatArray]:
        return {}

    @cached_property
    def _fit(self) -> Fit:
        return reconcile([self._released(j) for j in range(len(self.columns))], self.std)

    def _released(self, j: int) -> ColumnCounts:
        """Counts of one column: those of the table belong to the edges that it shares with the clusters."""
        fine, edges = self.table_edges[j], self.edges[j]
        common = np.intersect1d(fine, edges)
        cells = np.searchsorted(common, edges[:-1], side="right") - 1
        of_table = np.searchsorted(common, fine[:-1], side="right") - 1
        n = len(common) - 1
        table = np.append(np.bincount(of_table, self.table_counts[j][:-1], n), self.table_counts[j][-1])
        variance = np.append(np.bincount(of_table, minlength=n), 1) * max(self.table_std, 1e-6) ** 2
        if not self.complete:
            variance = np.full(n + 1, math.inf)
        return ColumnCounts(self.counts[j].astype(np.float64), np.append(cells, n), table, variance)

    @cached_property
    def _shapes(self) -> list[Shape]:
        lines = zip(self.columns, self.table_edges, self.table_counts, self._tables, self.edges, strict=True)
        return [
            Shape.of(column, fine, noisy[:-1], self.table_std, float(table.counts[:-1].sum()), edges)
            for column, fine, noisy, table, edges in lines
        ]

    @cached_property
    def _tables(self) -> list[View]:
        """Views of the whole table: the sum of the clusters, or its own counts if rows are in no cluster."""
        variance = max(self.std, 1e-6) ** 2
        if self.complete and self.n_clusters:
            return [
                View(c.linear.sum(axis=0), c.counts.sum(axis=0), c.total, 0.0, variance)
                for c in self._fit.columns
            ]
        estimates = []
        for fine, edges, counts in zip(self.table_edges, self.edges, self.table_counts, strict=True):
            spread = np.zeros((len(edges), len(fine)))
            spread[:-1, :-1] = _overlaps(fine, edges)
            spread[-1, -1] = 1.0
            covariance = max(self.table_std, 1e-6) ** 2 * spread @ spread.T
            estimates.append((spread @ counts, covariance))
        moved, total, _ = agreed(estimates)
        totals = np.array([max(total, 0.0)])
        return [View(x, not_negative(x[None, :], totals)[0], c, 0.0, variance) for x, c in moved]

    def _view(self, cluster: int | None, j: int) -> View:
        if cluster is None:
            return self._tables[j]
        c, own = self._cluster(cluster), self._clusters[j]
        return View(own.linear[c], own.counts[c], own.covariance, own.tails, own.variance)

    @cached_property
    def _clusters(self) -> list[View]:
        """Views of all clusters together."""
        tails = LAPLACE_TAILS if self.mechanism == "discrete Laplace" else 0.0
        return [View(c.linear, c.counts, c.own, tails, self._fit.variance) for c in self._fit.columns]

    @cached_property
    def _rests(self) -> list[View]:
        """Views of all rows in other clusters, for each cluster."""
        found = []
        for c in self._fit.columns:
            linear, counts = c.linear.sum(axis=0) - c.linear, c.counts.sum(axis=0) - c.counts
            covariance = c.total + c.own - 2 * c.total / self.n_clusters
            found.append(View(linear, np.maximum(counts, 0.0), covariance, 0.0, self._fit.variance))
        return found

    @cached_property
    def _all_bars(self) -> list[Bars]:
        return [self._bars(view, j) for j, view in enumerate(self._clusters)]

    @cached_property
    def _all_rests(self) -> list[Bars]:
        return [self._bars(view, j) for j, view in enumerate(self._rests)]

    @cached_property
    def _contrasts(self) -> list[tuple[FloatArray, NDArray[np.bool_]]]:
        found = []
        for j, fitted in enumerate(self._fit.columns):
            between = fitted.total / self.n_clusters - fitted.own
            in_order = self.columns[j].kind != "level"
            found.append(contrasts(self._clusters[j], self._rests[j], between, in_order=in_order))
        return found


OTHER, MISSING = "other", "missing"


def _free(label: str, levels: tuple[Level, ...]) -> str:
    """A label that no level has."""
    while label in levels:
        label = f"({label})"
    return label


def _overlaps(fine: FloatArray, edges: FloatArray) -> FloatArray:
    """Part of each fine bin that lies in each bin, shape (n_bins, n_fine)."""
    low = np.maximum(fine[None, :-1], edges[:-1, None])
    high = np.minimum(fine[None, 1:], edges[1:, None])
    found: FloatArray = np.maximum(high - low, 0.0) / np.diff(fine)
    return found
