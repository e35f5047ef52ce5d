"""Spans of dense areas at a given radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.errors import ParameterError
from sfumato.public.density.dbscan import LARGEST_ETA, Guarantee, dbscan
from sfumato.public.density.geometry import Metric
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.models.spanned import SpannedModel


@dataclass(frozen=True, eq=False)
class DBSCANModel(SpannedModel):
    """Spans of dense areas at a given radius, from a noisy histogram.

    Parameters
    ----------
    histogram : NoisyHistogram
    regions : Regions
    guarantee : Guarantee
    eta : float
        Width of the histogram's cells, as a multiple of radius / 4 over the root of the number of columns.
    valleys : bool
        Whether valleys separate areas that would otherwise be joined.
    metric : {"euclidean", "geo"}
    """

    histogram: NoisyHistogram
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
        """Find the spans of a noisy histogram, whose cells must have the width from `cell_width`."""
        regions, guarantee = dbscan(histogram, radius, min_samples, eta=eta, beta=beta, valleys=valleys)
        return cls(histogram, regions, guarantee, eta, valleys, metric)

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        super().check()
        if not (0 < self.eta <= LARGEST_ETA and 0 < self.guarantee.beta < 1):
            raise ParameterError(
                f"`eta` must be from 0 to {LARGEST_ETA:g} and `beta` from 0 to 1, got {self.eta!r} and "
                f"{self.guarantee.beta!r}"
            )

    def at(self, min_samples: int) -> DBSCANModel:
        """Spans of the same histogram for another `min_samples`. This post-processing costs no budget."""
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
