"""Tables of public laws on the integers. A draw takes 16 bits and, near a border, a few more.

A law is cut where its tails are negligible and stored as its cumulative probabilities, the *borders*, in
binary fixed point. A draw is the number of borders at or below a uniform real number, of which only the bits
that matter are read. Cutting and rounding change the law by less than e^-1000 in total variation:
``docs/proofs/samplers.md``.
"""

from collections.abc import Iterable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DIGIT_BITS = 16
N_DIGITS = 92
BORDER_BITS = DIGIT_BITS * N_DIGITS  # 1472: a last bit on each of 2**16 borders sums to less than e^-1009
WEIGHT_BITS = 1600
ONE = 1 << WEIGHT_BITS
SMALLEST_WEIGHT = 1 << (WEIGHT_BITS - BORDER_BITS)
# 500 digits hold 1660 bits. Powers of e far beyond any float must not vanish.
DECIMALS = Context(prec=500, Emin=MIN_EMIN, Emax=MAX_EMAX)


class LawTable(NamedTuple):
    """A law on ``first, first + 1, ...`` in the form that the kernel reads.

    Parameters
    ----------
    first : int
        The least value.
    guide : int64 array of shape (2**16 + 1,)
        Number of borders with a smaller first digit.
    borders : uint16 array of shape (n_values - 1, N_DIGITS)
        P(value <= first + i), increasing, as binary fractions in digits of 16 bits.
    """

    first: int
    guide: npt.NDArray[np.int64]
    borders: npt.NDArray[np.uint16]


@lru_cache(maxsize=8)
def laplace_table(scale: Fraction) -> LawTable:
    """Law of x with probability proportional to exp(-|x| / scale), for a scale of at most 32."""
    ratio = fixed_point(exp_of(-1 / scale))
    return _symmetric(_products(iter(lambda: ratio, None)))


@lru_cache(maxsize=8)
def gaussian_table(sigma: Fraction) -> LawTable:
    """Law of x with probability proportional to exp(-x**2 / (2 sigma**2)), for a sigma of at most 32."""
    first, step = (fixed_point(exp_of(-1 / (factor * sigma**2))) for factor in (2, 1))
    # exp(-(x + 1)**2 / 2) = exp(-x**2 / 2) exp(-(2 x + 1) / 2), in units of sigma
    ratios = accumulate(iter(lambda: step, None), _times, initial=first)
    return _symmetric(_products(ratios))


@lru_cache(maxsize=8)
def binomial_table(n: int, p: Decimal) -> LawTable:
    """Law of the number of successes in n trials of probability p, for n at most 2**62 and n p at most 1."""
    with localcontext(DECIMALS):
        odds = fixed_point(p / (1 - p))
    return as_table(0, _products(odds * (n - k) // (k + 1) for k in range(min(n, WEIGHT_BITS))))


def as_table(first: int, weights: Iterable[int]) -> LawTable:
    """LawTable of the law on ``first, first + 1, ...`` with these weights, whose sum is at least `ONE`."""
    sums = list(accumulate(weights))
    inverse = (ONE << WEIGHT_BITS) // sums.pop()
    shift, n_bytes = 2 * WEIGHT_BITS - BORDER_BITS, BORDER_BITS // 8
    binary = b"".join((below * inverse >> shift).to_bytes(n_bytes, "big") for below in sums)
    borders = np.frombuffer(binary, dtype=">u2").reshape(-1, N_DIGITS).astype(np.uint16)
    guide = np.searchsorted(borders[:, 0].astype(np.int64), np.arange(2**DIGIT_BITS + 1))
    return LawTable(first, guide.astype(np.int64), borders)


def exp_of(exponent: Fraction) -> Decimal:
    """Exponential of a fraction."""
    with localcontext(DECIMALS):
        return (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def fixed_point(value: Decimal) -> int:
    """Value in units of ``1 / ONE``, rounded down."""
    with localcontext(DECIMALS):
        return int(value * ONE)


def _times(a: int, b: int) -> int:
    return a * b >> WEIGHT_BITS


def _products(ratios: Iterable[int]) -> Iterator[int]:
    """Weights 1, r_1, r_1 r_2, ..., up to the first negligible one."""
    weights = accumulate(ratios, _times, initial=ONE)
    return takewhile(lambda weight: weight >= SMALLEST_WEIGHT, weights)


def _symmetric(weights: Iterable[int]) -> LawTable:
    side = list(weights)
    return as_table(1 - len(side), side[:0:-1] + side)
