"""What all models with spans share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from sfumato.domain import FloatArray, IntArray, Measure
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.regions import Regions, check_same_columns
from sfumato.public.density.spans import Span
from sfumato.public.exports.exported import Exported, exported_spans
from sfumato.public.intervals import Sizes


@dataclass(frozen=True, eq=False)
class SpannedModel(ABC):
    """Spans: areas where the rows lie dense, found from a noisy histogram."""

    histogram: NoisyHistogram | NestedHistogram
    regions: Regions

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        check_same_columns(self.histogram.grid, self.regions.grid)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.histogram.grid.shape)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Spans, the largest first."""
        return self.regions.spans()

    @property
    def estimated_sizes(self) -> Sizes:
        """Estimated rows in each span, with intervals."""
        counts = self.regions.counts
        return Sizes("span", counts[:, 0], counts[:, 1:].T)

    @property
    def exported(self) -> tuple[Exported, ...]:
        """Spans for files of other programs, the largest first."""
        return exported_spans(self.spans, is_in_degrees=self.is_in_degrees)

    @property
    def picture(self) -> str:
        """Picture in `sfumato.plot` that suits the model."""
        return "spans" if self.n_features == 2 or self.is_in_degrees else "sizes"

    @property
    def is_in_degrees(self) -> bool:
        """Whether the first two columns are longitude and latitude."""
        return bool(getattr(self, "metric", "euclidean") == "geo")

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""

    @property
    def partition(self) -> Regions:
        """Spans as groups of rows."""
        return self.regions

    def moved(self, measure: Measure) -> Self:
        """The same spans in other units."""
        regions = replace(self.regions, grid=self.regions.grid.moved(measure))
        return replace(self, histogram=self.histogram.moved(measure), regions=regions)

    def predict(self, rows: FloatArray) -> IntArray:
        """Span of each row, or -1 outside all spans."""
        return self.regions.predict(rows)

    def strength(self, rows: FloatArray) -> FloatArray:
        """How dense each row's place is, relative to what is typical of its span, at most 1; 0 outside."""
        return self.regions.strength(rows)
