"""Texts whose terms can be counted, by person and cluster: only these can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import pyarrow as pa

from sfumato.budget import Sensitivity
from sfumato.domain import IntArray
from sfumato.errors import PlanError
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.terms import (
    RawTerms,
    counts_sensitivity,
    found_sensitivity,
    term_counts,
    term_weights,
    terms_per_person,
)


@dataclass(frozen=True)
class TermEngine:
    """Counts how many people use each term, in each cluster.

    Parameters
    ----------
    n_features : int
        Number of columns of the table that was clustered.
    n_clusters : int
    max_clusters : int
        Maximum number of clusters that a person counts in.
    read : callable
        Reads the texts, with the clusters and people of their rows.
    """

    n_features: int
    n_clusters: int
    max_clusters: int
    read: Callable[[], RawTerms]

    @cached_property
    def _raw(self) -> RawTerms:
        return self.read()

    @property
    def found_sensitivity(self) -> Sensitivity:
        """Sensitivity of `weights` for a whole privacy unit."""
        return found_sensitivity()

    def counts_sensitivity(self, max_terms: int) -> Sensitivity:
        """Sensitivity of `counts` for a whole privacy unit."""
        return counts_sensitivity(max_terms, self.max_clusters)

    def weights(self) -> tuple[pa.Array, IntArray]:
        """Terms that occur, and the sums of their weights. Raw, before noise."""
        occurring, weights = term_weights(self._raw)
        return self._raw.terms.take(pa.array(occurring)), weights

    def per_person(self, vocabulary: Sequence[str], most: int) -> IntArray:
        """How many people have 0, 1, ..., `most` or more of the terms. Raw, before noise."""
        return terms_per_person(self._raw, vocabulary, self.max_clusters, most)

    def counts(self, vocabulary: Sequence[str], max_terms: int) -> IntArray:
        """How many people of each cluster use each term, then how many there are. Raw, before noise."""
        return term_counts(self._raw, vocabulary, self.n_clusters, max_terms, self.max_clusters)

    def fold(self, aggregate: Aggregate) -> NoReturn:
        """Raise: texts have no coordinates."""
        raise PlanError("only terms can be asked for")
