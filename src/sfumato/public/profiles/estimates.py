"""What a profile tells: numbers with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sfumato.domain import FloatArray
from sfumato.domain.columns import Described


class Estimate(NamedTuple):
    """A number, and an interval that holds the exact one with a probability of 95 %."""

    value: float
    low: float
    high: float


class Direction(NamedTuple):
    """Where a cyclic column gathers, in the units of the column.

    Ends may lie past the end of the cycle: from 23:00 to 25:30 is until half past one.
    """

    value: float  # mean direction
    low: float  # ends of its interval; the whole cycle if no direction stands out from the noise
    high: float
    strength: float  # length of the mean vector: 1 if all rows are at one point of the cycle, 0 if balanced
    half: tuple[float, float]  # shortest run of bins with half of the rows
    is_clear: bool  # a direction stands out from the noise
    is_flat: bool  # all parts of the cycle are about equal, and noise cannot hide that they are not


class Bars(NamedTuple):
    """Distribution of a column, for a picture. The last bar is that of missing values."""

    labels: tuple[Any, ...]  # level of each bar; for numbers, dates and cycles a pair (from, to)
    shares: FloatArray  # (n_bars,)
    lows: FloatArray  # (n_bars,); lower ends of the intervals
    highs: FloatArray  # (n_bars,)


class Contrast(NamedTuple):
    """How far a column sets a cluster apart from all other rows."""

    column: str
    score: float  # share of the cluster's rows that differ from the others, beyond what noise alone shows
    is_clear: bool  # more than noise would show


class Tells(Protocol):
    """What `Profiles` tell, for sentences and lists. They document it."""

    @property
    def columns(self) -> tuple[Described, ...]: ...  # noqa: D102
    @property
    def n_clusters(self) -> int: ...  # noqa: D102
    def column(self, name: str) -> Described: ...  # noqa: D102
    def is_whole(self, column: str) -> bool: ...  # noqa: D102
    def size(self, cluster: int | None = None) -> Estimate: ...  # noqa: D102
    def share(self, cluster: int | None, column: str) -> Mapping[Any, Estimate]: ...  # noqa: D102
    def missing(self, cluster: int | None, column: str) -> Estimate: ...  # noqa: D102
    def bars(self, cluster: int | None, column: str) -> Bars: ...  # noqa: D102
    def elsewhere(self, cluster: int, column: str) -> Bars: ...  # noqa: D102
    def quantile(self, cluster: int | None, column: str, q: float) -> Estimate: ...  # noqa: D102
    def direction(self, cluster: int | None, column: str) -> Direction: ...  # noqa: D102
    def distinct(self, cluster: int) -> Sequence[Contrast]: ...  # noqa: D102
