"""Terms of clusters of sparse rows: the columns whose means stand out from the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.errors import ParameterError
from sfumato.public.intervals import Sizes
from sfumato.public.models.base import check_sizes

SEEN_ABOVE = 2.0  # a size is told from zero if it is this many times the noise in it


class ColumnTerm(NamedTuple):
    """A column of a cluster."""

    name: str  # of the column, or its number as text
    column: int
    mean: float  # noisy mean of the column over the cluster's rows, after they were scaled
    std: float  # standard deviation of the noise in it
    others: float  # mean over the rows of all clusters, from columns that stand out


@dataclass(frozen=True, eq=False)
class ColumnTerms:
    """Means of clusters in all columns of sparse rows, where they stand out from the noise.

    A mean is kept if it is ``sqrt(2 log(m))`` times its noise or more, where m is the number of all means: of
    means that are zero, fewer than one is kept on average. The others count as zero.

    Parameters
    ----------
    n_columns : int
    clusters, columns : int arrays of shape (n_kept,)
        Of each mean that is kept, in order.
    means : float array of shape (n_kept,)
    stds : float array of shape (n_clusters,)
        Standard deviation of the noise in each mean of a cluster.
    sizes, size_stds : float arrays of shape (n_clusters,)
        Noisy number of rows per cluster, at least 0, and standard deviation of the noise in it.
    names : tuple of str
        Names of the columns that are kept, one per mean, or empty.

    Privacy
    -------
    Post-processing of one answer of the curator.
    """

    n_columns: int
    clusters: IntArray
    columns: IntArray
    means: FloatArray
    stds: FloatArray
    sizes: FloatArray
    size_stds: FloatArray
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        sizes: FloatArray,
        sums: FloatArray,
        size_std: float,
        sum_std: float,
        names: tuple[str, ...] | None = None,
    ) -> ColumnTerms:
        """From noisy sizes of shape (k,) and noisy sums of shape (k, d), and the noise in each."""
        divisors = np.maximum(sizes, max(1.0, SEEN_ABOVE * size_std))
        threshold = math.sqrt(2 * math.log(max(sums.size, 2))) * sum_std
        clusters, columns = np.nonzero(np.abs(sums) >= threshold)
        return cls(
            sums.shape[1],
            clusters.astype(np.int64),
            columns.astype(np.int64),
            sums[clusters, columns] / divisors[clusters],
            sum_std / divisors,
            np.maximum(sizes, 0.0),
            np.full(len(sizes), size_std),
            () if names is None else tuple(names[column] for column in columns),
        )

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        for name in ("columns", "means"):
            check_shape(name, getattr(self, name), len(self.clusters))
        for name in ("stds", "sizes", "size_stds"):
            check_sizes(name, getattr(self, name), self.n_clusters)
        for name, limit in (("clusters", self.n_clusters), ("columns", self.n_columns)):
            values = getattr(self, name)
            if values.ndim != 1 or not ((values >= 0) & (values < limit)).all():
                raise ParameterError(f"`{name}` must be from 0 to {limit - 1}, got others")
        if len(self.names) not in (0, len(self.clusters)):
            raise ParameterError(f"`names` must be {len(self.clusters)} or none, got {len(self.names)}")

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.stds)

    @property
    def estimated_sizes(self) -> Sizes:
        """Noisy number of rows per cluster, with intervals."""
        return Sizes.of("cluster", self.sizes, self.size_stds)

    def centers(self) -> FloatArray:
        """Means of all columns, of shape (n_clusters, n_columns): zero where they do not stand out."""
        found = np.zeros((self.n_clusters, self.n_columns))
        found[self.clusters, self.columns] = self.means
        return found

    @cached_property
    def _overall(self) -> dict[int, float]:
        """Means over all rows of the columns that are kept somewhere."""
        total = max(float(self.sizes.sum()), 1.0)
        columns, places = np.unique(self.columns, return_inverse=True)
        sums = np.bincount(places, self.means * self.sizes[self.clusters], len(columns))
        return dict(zip(columns.tolist(), (sums / total).tolist(), strict=True))

    def top(self, cluster: int, n_terms: int = 10) -> list[ColumnTerm]:
        """Terms that set a cluster apart: those whose mean is furthest above that of all rows.

        Parameters
        ----------
        cluster : int
            From 0, as in `predict`.
        n_terms : int
            Maximum number of terms.
        """
        if not 0 <= cluster < self.n_clusters:
            raise ParameterError(f"`cluster` must be from 0 to {self.n_clusters - 1}, got {cluster}")
        own = np.flatnonzero(self.clusters == cluster)
        terms = [
            ColumnTerm(
                self.names[place] if self.names else str(self.columns[place]),
                int(self.columns[place]),
                float(self.means[place]),
                float(self.stds[cluster]),
                self._overall[int(self.columns[place])],
            )
            for place in own
        ]
        terms = [term for term in terms if term.mean > term.others]
        return sorted(terms, key=lambda term: (term.others - term.mean, term.column))[:n_terms]
