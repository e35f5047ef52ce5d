"""How far a sum of noisy counts can be from the true sum: the allowance Gamma of DP-DBSCAN.

Every listed count has independent noise of a known law, so the tail of a sum of k counts follows by
convolution rather than by a concentration bound. Two cases use Chernoff's bound for the worst true count:
where convolution is not feasible (very wide noise, very small tails), and where a histogram lists only counts
above a threshold, so that a cell's error depends on its true count. Proof: docs/proofs/dbscan.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from sfumato.domain import FloatArray
from sfumato.public.density.histogram import NoisyHistogram

_TAIL = 45.0  # in scales: beyond lies less than 1e-19 of the law of one count
_MOST_POINTS = 2**21  # of a convolution: a limit on time and memory
_LEAST_TAIL = 1e-12  # that a Fourier transform in double precision still resolves
_RATES = 400  # candidate exponents of Chernoff's bound, which holds for any of them
_LARGEST_RATE = 100.0  # exponentials stay finite
_WIDE = 40.0  # a limit on time: at larger scales a simpler bound takes all true counts at once


def allowances(histogram: NoisyHistogram, n_cells: int, tail: tuple[float, float]) -> tuple[int, int]:
    """Limits that the error of a sum over `n_cells` cells exceeds only with small probability.

    Parameters
    ----------
    histogram : NoisyHistogram
    n_cells : int
    tail : (float, float)
        Allowed probabilities that the noisy sum is too high, and too low.

    Returns
    -------
    above, below : int
        The noisy sum exceeds the true one by more than `above` with probability at most ``tail[0]``, and
        falls short of it by more than `below` with probability at most ``tail[1]``.
    """
    if not histogram.is_dense:
        rates, up, down = _worst_moments(histogram)
        return _chernoff(rates, up, n_cells, tail[0]), _chernoff(rates, down, n_cells, tail[1])
    few = 2 * _reach(histogram) * n_cells <= _MOST_POINTS
    if few and min(tail) >= _LEAST_TAIL:
        return _exact(histogram, n_cells, tail)
    rates = _rates(histogram)
    logs = log_moments(histogram, rates)
    return _chernoff(rates, logs, n_cells, tail[0]), _chernoff(rates, logs, n_cells, tail[1])


def noise_law(histogram: NoisyHistogram) -> tuple[FloatArray, FloatArray]:
    """Values and probabilities of the noise of one count."""
    reach = _reach(histogram)
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    if histogram.mechanism == "discrete Gaussian":
        weights = np.exp(-((values / histogram.scale) ** 2) / 2)
    else:
        weights = np.exp(-np.abs(values) / histogram.scale)
    return values, weights / weights.sum()


def _reach(histogram: NoisyHistogram) -> int:
    scales = 9.5 if histogram.mechanism == "discrete Gaussian" else _TAIL
    return math.ceil(scales * histogram.scale) + 1


def _exact(histogram: NoisyHistogram, n_cells: int, tail: tuple[float, float]) -> tuple[int, int]:
    _, law = noise_law(histogram)
    n = n_cells * (len(law) - 1) + 1
    size = next_fast_len(n)
    summed = irfft(rfft(law, size) ** n_cells, size)[:n]
    beyond = np.cumsum(summed[::-1])[::-1]  # P(sum >= value)
    above, below = (int(np.argmax(beyond <= part)) - n // 2 - 1 for part in tail)
    return above, below


def _rates(histogram: NoisyHistogram) -> FloatArray:
    most = 8.0 if histogram.mechanism == "discrete Gaussian" else 0.98
    return np.linspace(0, min(most / histogram.scale, _LARGEST_RATE), _RATES + 1)[1:]


def log_moments(histogram: NoisyHistogram, rates: FloatArray) -> FloatArray:
    """Logarithm of E exp(rate Z), or a bound on it, for noise Z of one count."""
    if histogram.mechanism == "discrete Gaussian":
        return (rates * histogram.scale) ** 2 / 2  # Canonne, Kamath and Steinke 2020, Lemma 2.2
    q = math.exp(-1 / histogram.scale)
    lost = -math.expm1(-1 / histogram.scale)
    grown = -np.expm1(rates - 1 / histogram.scale)
    return np.asarray(2 * math.log(lost) - np.log(grown) - np.log1p(-q * np.exp(-rates)))


def _worst_moments(histogram: NoisyHistogram) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rates, and the largest log moment of a cell's error over all true counts, upwards and downwards.

    A cell with true count x and noise z is listed as x + z if that reaches the threshold, and counts as 0
    otherwise. Its error is z or -x. Beyond a true count of threshold + reach it is always listed.
    """
    rates = _rates(histogram)
    if histogram.scale > _WIDE:
        # The error is at most max(z, 0), and at least -max(threshold - 1 - z, 0), whatever the true count.
        logs = np.logaddexp(0.0, log_moments(histogram, rates))
        hidden = np.logaddexp(0.0, rates * (histogram.threshold - 1) + log_moments(histogram, rates))
        return rates, logs, hidden
    values, law = noise_law(histogram)
    above = np.cumsum((np.exp(np.outer(rates, values)) * law)[:, ::-1], axis=1)[:, ::-1]
    below = np.cumsum((np.exp(-np.outer(rates, values)) * law)[:, ::-1], axis=1)[:, ::-1]
    unlisted = np.append(0, np.cumsum(law))
    up, down = np.full((2, _RATES), -np.inf)
    for count in range(histogram.threshold + len(values) // 2 + 1):
        first = min(int(np.searchsorted(values, histogram.threshold - count)), len(values) - 1)
        with np.errstate(divide="ignore"):  # the log of a zero probability is minus infinity
            missed, raised, fallen = (np.log(p) for p in (unlisted[first], above[:, first], below[:, first]))
        up = np.maximum(up, np.logaddexp(raised, missed - rates * count))
        down = np.maximum(down, np.logaddexp(fallen, missed + rates * count))
    return rates, up, down


def _chernoff(rates: FloatArray, logs: FloatArray, n_cells: int, tail: float) -> int:
    return math.ceil(float(np.min((n_cells * logs - math.log(tail)) / rates)))
