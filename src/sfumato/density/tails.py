"""How far a sum of noisy counts can be from the true sum: the allowance Gamma of DP-DBSCAN.

Every count that is listed carries independent noise of a known law, so the tail of a sum of k of them is
known too: by convolution, not by a concentration bound. Where a histogram lists only counts above a
threshold, the error of a cell also depends on its true count, and the worst true count is taken (Chernoff's
bound, which is then sharp enough). Proof: docs/proofs/dbscan.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from sfumato.density.histogram import NoisyHistogram
from sfumato.domain import FloatArray

_TAIL = 45.0  # in scales: beyond lies less than 1e-19 of the law of one count
_MOST_POINTS = 2**21  # of a convolution; noise of larger scale is rounded outwards to multiples of a step
_RATES = 400  # candidate exponents of Chernoff's bound


def allowances(histogram: NoisyHistogram, n_cells: int, tail: tuple[float, float]) -> tuple[int, int]:
    """Numbers that the error of a sum over `n_cells` cells exceeds with small probability.

    Parameters
    ----------
    histogram : NoisyHistogram
    n_cells : int
    tail : (float, float)
        Probabilities allowed for the noisy sum to be too high, and to be too low.

    Returns
    -------
    above, below : int
        The noisy sum exceeds the true one by more than `above` with probability at most ``tail[0]``, and
        falls short of it by more than `below` with probability at most ``tail[1]``.
    """
    if histogram.is_dense:
        return _exact(histogram, n_cells, tail[0]), _exact(histogram, n_cells, tail[1])
    errors = _worst_moments(histogram)
    return _chernoff(errors[0], n_cells, tail[0]), _chernoff(errors[1], n_cells, tail[1])


def noise_law(histogram: NoisyHistogram, step: int = 1) -> tuple[FloatArray, FloatArray]:
    """Values and probabilities of the noise of one count, rounded up to multiples of `step`."""
    reach = math.ceil(_reach(histogram) / step) * step
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    if histogram.mechanism == "discrete Gaussian":
        weights = np.exp(-((values / histogram.scale) ** 2) / 2)
    else:
        weights = np.exp(-np.abs(values) / histogram.scale)
    if step > 1:
        weights = np.append(weights[:1], weights[1:].reshape(-1, step).sum(axis=1))
        values = values[::step]
    return values, weights / weights.sum()


def _reach(histogram: NoisyHistogram) -> int:
    scales = 9.5 if histogram.mechanism == "discrete Gaussian" else _TAIL
    return math.ceil(scales * histogram.scale) + 1


def _exact(histogram: NoisyHistogram, n_cells: int, tail: float) -> int:
    step = max(1, math.ceil(2 * _reach(histogram) * n_cells / _MOST_POINTS))
    values, law = noise_law(histogram, step)
    n = n_cells * (len(law) - 1) + 1
    size = next_fast_len(n)
    summed = irfft(rfft(law, size) ** n_cells, size)[:n]
    beyond = np.cumsum(summed[::-1])[::-1]  # P(sum >= value)
    first = int(np.argmax(beyond <= tail))
    return math.ceil(n_cells * float(values[0])) + (first - 1) * step


def _worst_moments(histogram: NoisyHistogram) -> tuple[FloatArray, FloatArray]:
    """Rates, and the largest log moment of a cell's error over its true count, upwards and downwards.

    A cell with true count x and noise z is listed as x + z if that reaches the threshold, and counts as 0
    otherwise: its error is z or -x. Beyond a true count of threshold + reach it is always listed.
    """
    values, law = noise_law(histogram)
    limit = 1.0 if histogram.mechanism == "discrete Gaussian" else 0.98
    rates = np.linspace(0, 8 / histogram.scale if limit == 1.0 else limit / histogram.scale, _RATES + 1)[1:]
    up, down = np.zeros((2, _RATES))
    growth = np.exp(np.outer(rates, values)) * law  # (rates, values)
    above = np.cumsum(growth[:, ::-1], axis=1)[:, ::-1]
    fall = np.exp(-np.outer(rates, values)) * law
    below = np.cumsum(fall[:, ::-1], axis=1)[:, ::-1]
    hidden = np.append(0, np.cumsum(law))
    for count in range(histogram.threshold + len(values) // 2 + 1):
        first = int(np.searchsorted(values, histogram.threshold - count))  # noise from here on is listed
        first = min(first, len(values) - 1)
        unlisted = hidden[first]
        up = np.maximum(up, above[:, first] + np.exp(-rates * count) * unlisted)
        down = np.maximum(down, below[:, first] + np.exp(rates * count) * unlisted)
    return np.stack([rates, np.log(up)]), np.stack([rates, np.log(down)])


def _chernoff(moments: FloatArray, n_cells: int, tail: float) -> int:
    rates, logs = moments
    return math.ceil(float(np.min((n_cells * logs - math.log(tail)) / rates)))
