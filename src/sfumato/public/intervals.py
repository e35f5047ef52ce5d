"""Intervals for released numbers: how far noise may have moved them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray

CONFIDENCE = 0.95  # of all intervals that are shown
_WITHIN = 1.96  # standard deviations of normal noise on either side of an interval of this confidence


def half_widths(stds: FloatArray) -> FloatArray:
    """Half the width of the interval around each number, given the standard deviation of its noise."""
    halves: FloatArray = _WITHIN * stds
    return halves


class Sizes(NamedTuple):
    """Estimated number of records in each group."""

    group: str  # name of a group: "cluster", "component" or "span"
    estimates: FloatArray  # (k,)
    ends: FloatArray | None  # (2, k); lower and upper ends of the intervals, if the noise is known

    @classmethod
    def of(cls, group: str, estimates: FloatArray, stds: FloatArray | None) -> Sizes:
        """Sizes with noise of these standard deviations. An interval never goes below 0."""
        if stds is None:
            return cls(group, estimates, None)
        halves = half_widths(stds)
        return cls(group, estimates, np.maximum([estimates - halves, estimates + halves], 0.0))
