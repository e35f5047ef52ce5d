"""Intervals for numbers that cannot be negative, such as the size of a cluster or the share of a level.

Cutting off what is below zero from usual intervals makes them hold 97.5 % near zero instead of 95 %. The
intervals of Feldman and Cousins (1998, "Unified approach to the classical statistical analysis of small
signals") hold what they promise everywhere: of all observations that a number may lead to, they take those
for which it is most plausible among numbers that are not negative.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from sfumato.domain import FloatArray
from sfumato.public.intervals import CONFIDENCE

_FARTHEST = 6.0  # standard deviations from zero, from where on usual intervals are the same
_STEP = 0.005  # of the table
_HALVINGS = 60  # of an interval of doubles


def interval_of(observed: FloatArray, stds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of 95 % intervals of numbers that are not negative, from observations with normal noise.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = interval_of(np.array([0.0, 1.5, 500.0]), np.array([1.0, 1.0, 10.0]))
    >>> low.round(2), high.round(2)
    (array([  0. ,   0. , 480.4]), array([  1.96,   3.46, 519.6 ]))
    """
    stds = np.maximum(stds, 1e-300)
    x = observed / stds
    means, least, largest = _acceptance()
    half = float(largest[-1] - means[-1])
    low = np.where(x >= _FARTHEST, x - half, np.interp(x, largest, means, left=0.0))
    high = np.where(x >= _FARTHEST - half, x + half, np.interp(x, least, means))
    return stds * low, stds * high


@lru_cache(maxsize=1)
def _acceptance() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means, and the least and largest observations that are accepted for each.

    For a mean m, an observation x has the plausibility exp(-(x - m)^2 / 2), divided by the largest one that a
    mean >= 0 gives it: 1 for x >= 0 and exp(-x^2 / 2) for x < 0. It is at least exp(-s^2 / 2) from m - s, or
    from (m^2 - s^2) / (2 m) if m < s, to m + s. We look for the s that makes this hold 95 %.
    """
    means = np.arange(_STEP, _FARTHEST + 3, _STEP)
    short, long = np.zeros(len(means)), np.full(len(means), 10.0)
    for _ in range(_HALVINGS):
        s = (short + long) / 2
        least = np.where(s <= means, means - s, (means**2 - s**2) / (2 * means))
        is_enough = ndtr(s) - ndtr(least - means) >= CONFIDENCE
        short, long = np.where(is_enough, short, s), np.where(is_enough, s, long)
    least = np.where(long <= means, means - long, (means**2 - long**2) / (2 * means))
    return means, np.maximum.accumulate(least), np.maximum.accumulate(means + long)
