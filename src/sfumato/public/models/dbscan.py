"""Spans of dense places at a given radius."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.domain import FloatArray, IntArray
from sfumato.errors import ParameterError
from sfumato.public.density.dbscan import LARGEST_ETA, Guarantee, dbscan
from sfumato.public.density.geometry import Metric
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.regions import Regions, check_same_columns
from sfumato.public.density.spans import Span


@dataclass(frozen=True, eq=False)
class DBSCANModel:
    """Spans of dense places, from a noisy histogram.

    Parameters
    ----------
    histogram : NoisyHistogram
    regions : Regions
    guarantee : Guarantee
    eta : float
        Width of the histogram's cells: eta / 4 times the radius over the root of the number of columns.
    valleys : bool
        Whether valleys part places that are joined.
    metric : {"euclidean", "geo"}
    """

    histogram: NoisyHistogram
    regions: Regions
    guarantee: Guarantee
    eta: float
    valleys: bool
    metric: Metric

    @classmethod
    def of(
        cls,
        histogram: NoisyHistogram,
        radius: float,
        min_samples: int,
        *,
        eta: float,
        beta: float,
        valleys: bool,
        metric: Metric,
    ) -> DBSCANModel:
        """Find the spans of a noisy histogram whose cells have the width that `cell_width` says."""
        regions, guarantee = dbscan(histogram, radius, min_samples, eta=eta, beta=beta, valleys=valleys)
        return cls(histogram, regions, guarantee, eta, valleys, metric)

    def check(self) -> None:
        """Refuse parts that do not fit together: a file may hold such."""
        check_same_columns(self.histogram.grid, self.regions.grid)
        if not (0 < self.eta <= LARGEST_ETA and 0 < self.guarantee.beta < 1):
            raise ParameterError(
                f"`eta` must be from 0 to {LARGEST_ETA:g} and `beta` from 0 to 1, got {self.eta!r} and "
                f"{self.guarantee.beta!r}"
            )

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.histogram.grid.shape)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Spans, the largest first."""
        return self.regions.spans()

    def at(self, min_samples: int) -> DBSCANModel:
        """Spans of the same histogram for another `min_samples`: post-processing, spends nothing."""
        return DBSCANModel.of(
            self.histogram,
            self.guarantee.radius,
            min_samples,
            eta=self.eta,
            beta=self.guarantee.beta,
            valleys=self.valleys,
            metric=self.metric,
        )

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {
            "histogram": self.histogram,
            "cells": self.regions.cells,
            "cell_labels": self.regions.labels,
            "n_clusters": self.regions.n_spans,
            "guarantee": self.guarantee,
        }

    def predict(self, rows: FloatArray) -> IntArray:
        """Span of each row, -1 for none."""
        return self.regions.predict(rows)
