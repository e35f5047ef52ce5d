"""Clusters of any shape from the levels of a density."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.errors import ParameterError
from sfumato.public.density.geometry import Metric
from sfumato.public.density.levels import Levels, LevelTree, cut_levels
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.models.spanned import SpannedModel


@dataclass(frozen=True, eq=False)
class DensityModel(SpannedModel):
    """Clusters of any shape, from a noisy histogram.

    Parameters
    ----------
    histogram : NestedHistogram
    regions : Regions
    prominence : float
    metric : {"euclidean", "geo"}
    min_rows : float
    edge : float, optional
    """

    histogram: NestedHistogram
    prominence: float
    metric: Metric
    min_rows: float = 0.0
    edge: float | None = None

    @classmethod
    def of(
        cls,
        levels: Levels,
        prominence: float,
        metric: Metric,
        n_clusters: int | None = None,
        level: float | None = None,
        edge: float | None = None,
    ) -> DensityModel:
        """Cut the tree of a smoothed density. See `cut_levels`."""
        regions = cut_levels(levels, prominence, n_clusters, level, edge)
        model = cls(levels.histogram, regions, prominence, metric, levels.min_rows, edge)
        vars(model)["levels"] = levels  # what the cached property would compute again
        return model

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        super().check()
        if self.prominence <= 0 or self.min_rows < 0:
            raise ParameterError("`prominence` must be positive and `min_rows` at least 0, got others")
        if self.edge is not None and not 0 < self.edge < 1:
            raise ParameterError(f"`edge` must be between 0 and 1, got {self.edge!r}")

    def cut(
        self, n_clusters: int | None = None, level: float | None = None, edge: float | None = None
    ) -> DensityModel:
        """The same tree cut elsewhere. This post-processing costs no budget."""
        edge = self.edge if edge is None else edge
        return DensityModel.of(self.levels, self.prominence, self.metric, n_clusters, level, edge)

    @cached_property
    def levels(self) -> Levels:
        """The smoothed density and its regions."""
        return Levels(self.histogram, self.min_rows)

    @cached_property
    def tree(self) -> LevelTree:
        """The tree of levels."""
        return self.levels.published

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {
            "histogram": self.histogram,
            "tree": self.tree,
            "cells": self.regions.cells,
            "cell_labels": self.regions.labels,
            "n_clusters": self.regions.n_spans,
        }
