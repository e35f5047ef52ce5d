"""Composition of privacy losses, with a proved bound on the error of floats.

The delta of many steps together is a sum over the far tail of a convolution. A Fourier transform computes the
convolution fast, but its error is of the size of the largest entries and drowns the tail. So the losses are
first tilted: each probability is multiplied by exp(theta * loss). The tail that matters then becomes the
middle of the law, and the error is small against it. Proof and constants: docs/proofs/composition.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.optimize import brentq

Floats = NDArray[np.float64]

LONGEST = 2**21  # entries of a table: more would take seconds
LARGEST_EXPONENT = 500.0  # of a tilt: keeps the relative error of every entry below RELATIVE
LARGEST_WEIGHT = 300.0  # logarithm: squares stay finite
OUTSIDE = 44.0  # e^-44 of the tilted law may lie above the table
RELATIVE = 2.0**-35  # error of an entry of one table, for each step; also of sums and exponents
PER_LEVEL = 2.0**-49  # error of a Fourier transform, per factor of two in its length (Higham 2002, 24.1)


class Losses(NamedTuple):
    """Law of the privacy loss ln(P/Q) of one step under P.

    Parameters
    ----------
    values, probabilities : float array of the same shape
        Losses in any order, and their probabilities.
    """

    values: Floats
    probabilities: Floats


def laplace_losses(scale: float, shift: int) -> Losses:
    """Losses of discrete Laplace noise on one entry that moves by `shift`.

    With a shift of 1 this is randomised response, the worst mechanism with epsilon 1 / scale.
    """
    ratio = math.exp(-1 / scale)
    between = np.arange(1, shift)
    inner = -math.expm1(-1 / scale) / (1 + ratio) * np.exp(-between / scale)
    ends = np.array([1.0, math.exp(-shift / scale)]) / (1 + ratio)
    values = np.concatenate([[shift, -shift], shift - 2 * between]) / scale
    return Losses(values, np.concatenate([ends, inner]))


def gaussian_losses(sigma: float, shift: int, delta: float) -> Losses:
    """Losses of discrete Gaussian noise on one entry that moves by `shift`, but for e^-60 `delta` of them."""
    reach = math.ceil(sigma * math.sqrt(2 * (61 - math.log(delta)))) + 1
    noise = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(noise**2) / (2 * sigma**2))
    return Losses(shift * (shift - 2 * noise) / (2 * sigma**2), weights / weights.sum())


def composed_epsilon(steps: Sequence[tuple[Losses, int]], delta: float, interval: float) -> float:
    """Epsilon that the steps together are proved to satisfy at this `delta`; infinite if tables get too long.

    Parameters
    ----------
    steps : sequence of (Losses, int)
        Losses of a step, and how often it is taken.
    delta : float
        At least 1e-100.
    interval : float
        Distance of the losses in the tables.
    """
    tables = [_on_grid(losses, times, interval) for losses, times in steps]
    tilt = _good_tilt(tables, delta, interval)
    chernoff = (_total(tables, tilt, interval) - math.log(delta)) / tilt
    law = _tilted_sum(tables, tilt, chernoff, interval)
    if law is None:
        return math.inf
    n_steps = sum(times for _, times in steps)

    def share_of_delta(epsilon: float) -> float:
        above = law.losses > epsilon
        losses = law.losses[above]
        weights = np.exp(tilt * (chernoff - losses)) * -np.expm1(epsilon - losses)
        tail = _dot(weights, law.masses[above]) * (1 + RELATIVE * (n_steps + 64))
        return tail + law.error * math.sqrt(_dot(weights, weights)) + law.beyond + RELATIVE * n_steps

    low, high = max(0.0, chernoff - LARGEST_WEIGHT / tilt), chernoff
    if share_of_delta(low) <= 1:
        return low
    if share_of_delta(high) > 1:
        return math.inf
    precision = 1e-7 * high
    epsilon: float = brentq(lambda x: math.log(share_of_delta(x)), low, high, xtol=precision)
    while share_of_delta(epsilon) > 1:
        epsilon += precision
    return epsilon


class _Table(NamedTuple):
    """Losses of one step as multiples of the interval.

    Parameters
    ----------
    indices : int array
    probabilities : float array of the same shape
    times : int
        How often the step is taken.
    """

    indices: NDArray[np.int64]
    probabilities: Floats
    times: int


class _Law(NamedTuple):
    """Tilted law of the sum of all losses.

    Parameters
    ----------
    losses, masses : float array of the same shape
    error : float
        Bound on the error of the masses, in L2 norm.
    beyond : float
        Bound on what larger losses add to a delta, as a share of it.
    """

    losses: Floats
    masses: Floats
    error: float
    beyond: float


def _on_grid(losses: Losses, times: int, interval: float) -> _Table:
    """Split each loss between the two multiples of the interval around it.

    Both parts together have the probabilities of the whole under P and under Q. So the exact step is
    post-processing of this one (Doroshenko et al. 2022).
    """
    values = (
        losses.values + RELATIVE * np.abs(losses.values).max()
    )  # so that rounding never makes one smaller
    below = np.floor(values / interval)
    upper = np.clip(np.expm1(below * interval - values) / math.expm1(-interval), 0, 1)
    indices = np.concatenate([below, below + 1]).astype(np.int64)
    probabilities = np.concatenate([losses.probabilities * (1 - upper), losses.probabilities * upper])
    first, span = int(indices.min()), int(np.ptp(indices)) + 1
    if span < len(indices):  # wide noise: many losses lie between the same two multiples
        probabilities = np.bincount(indices - first, probabilities, span)
        indices = np.arange(first, first + span)
    can_be = probabilities > 0  # beside what cannot be, all others may vanish when they are tilted
    return _Table(indices[can_be], probabilities[can_be], times)


def _cumulant(table: _Table, tilt: float, interval: float) -> float:
    exponents = tilt * interval * table.indices
    largest = float(exponents.max())
    return largest + math.log(_dot(table.probabilities, np.exp(exponents - largest)))


def _tilted(table: _Table, tilt: float, interval: float) -> Floats:
    exponents = tilt * interval * table.indices - _cumulant(table, tilt, interval)
    masses: Floats = table.probabilities * np.exp(exponents)
    return masses


def _total(tables: Sequence[_Table], tilt: float, interval: float) -> float:
    return sum(table.times * _cumulant(table, tilt, interval) for table in tables)


def _good_tilt(tables: Sequence[_Table], delta: float, interval: float) -> float:
    """Tilt that moves the middle of the law to about the epsilon sought. Any tilt is valid.

    Delta at the mean of the tilted law is about exp(cumulant - tilt * mean) / (1 + tilt), which falls as the
    tilt grows.
    """

    def surplus(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        mean = interval * sum(t.times * _dot(_tilted(t, tilt, interval), t.indices) for t in tables)
        return _total(tables, tilt, interval) - tilt * mean - math.log1p(tilt) - math.log(delta)

    largest = max(int(np.abs(table.indices).max()) for table in tables)
    high = math.log(LARGEST_EXPONENT / (largest * interval))
    low = high - 20
    if surplus(high) >= 0 or surplus(low) <= 0:
        return math.exp(high if surplus(high) >= 0 else low)
    return math.exp(brentq(surplus, low, high, xtol=0.02))


def _tilted_sum(tables: Sequence[_Table], tilt: float, chernoff: float, interval: float) -> _Law | None:
    """Law of the sum, up to mass that wraps around from outside the table and only adds to its tail."""
    tilted = [_tilted(table, tilt, interval) for table in tables]
    first, last = _window(tables, tilted, tilt, interval)
    last = max(last, math.ceil(chernoff / interval))
    n_levels = (last - first).bit_length()
    length = 2**n_levels
    if length > LONGEST:
        return None
    product = np.ones(length // 2 + 1, dtype=np.complex128)
    for table, masses in zip(tables, tilted, strict=True):
        spread = np.bincount(table.indices % length, weights=masses, minlength=length)
        product *= _power(rfft(spread), table.times)
    masses = np.maximum(np.roll(irfft(product, length), -first), 0)
    n_steps = sum(table.times for table in tables)
    error = 2 * PER_LEVEL * n_levels * (n_steps + 1)
    return _Law(interval * np.arange(first, first + length), masses, error, math.exp(-OUTSIDE))


def _window(
    tables: Sequence[_Table], tilted: Sequence[Floats], tilt: float, interval: float
) -> tuple[int, int]:
    """First and last index with all but e^-OUTSIDE of the tilted law on either side, by Chernoff's bound."""
    pairs = zip(tables, tilted, strict=True)
    variance = interval**2 * sum((t.times * _variance(t.indices, masses) for t, masses in pairs), 0.0)
    stride = math.sqrt(2 * OUTSIDE / variance)
    middle = _total(tables, tilt, interval)
    low = (middle - _total(tables, tilt - stride, interval) - OUTSIDE) / stride
    high = (_total(tables, tilt + stride, interval) - middle + OUTSIDE) / stride
    least = sum(table.times * int(table.indices.min()) for table in tables)
    most = sum(table.times * int(table.indices.max()) for table in tables)
    return max(least, math.floor(low / interval)), min(most, math.ceil(high / interval))


def _variance(values: NDArray[np.int64], weights: Floats) -> float:
    return _dot(weights, (values - _dot(weights, values)) ** 2)


def _dot(a: Floats, b: NDArray[Any]) -> float:
    return float((a * b).sum())  # not `@`, whose threads cost more than they save at these lengths


def _power(numbers: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Power by squaring: `times` - 1 roundings at most add up in each entry."""
    result = np.ones_like(numbers)
    while times:
        if times % 2:
            result = result * numbers
        numbers, times = numbers * numbers, times // 2
    return result
