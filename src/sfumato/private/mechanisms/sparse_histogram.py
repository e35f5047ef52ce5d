"""Noisy histogram over a universe too large to list: only counts that reach a threshold, empty cells too."""

import math
from bisect import bisect_left
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import count, takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp

from sfumato.errors import ParameterError
from sfumato.private.mechanisms import samplers
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.laws import DECIMALS, DIGIT_BITS, binomial_table, exp_of
from sfumato.private.mechanisms.noise import Kernel, bits_of_geometric, checked_scale, drawn

MAX_CELLS = 2**62
MAX_THRESHOLD = 2**62
MAX_BLOCKS = 2**28  # about as many empty cells may pass: 4 GB of them
_WIDE = 2**10  # a sigma from which on sums of Gaussian weights and integrals differ by less than 10^-5

Integers = npt.NDArray[np.int64]


class _Noise(NamedTuple):
    fill: Kernel
    tail: Callable[[Fraction, int], "_Tail"]
    log_passing: Callable[[Fraction, int], float]


class _Tail(NamedTuple):
    """How to draw noise that is at or above a threshold.

    Parameters
    ----------
    candidate : Decimal
        Probability that a cell is a candidate. A candidate draws an excess over the threshold, or -1 if it
        does not pass after all. Each excess then has exactly its probability under the noise.
    fill : Kernel
    law : tuple of int
        Arguments of the kernel.
    """

    candidate: Decimal
    fill: Kernel
    law: tuple[int, ...]


def sparse_histogram(
    raw_cells: Integers,
    raw_counts: Integers,
    n_cells: int,
    mechanism: str,
    scale: Fraction,
    threshold: int,
    entropy: Entropy,
) -> tuple[Integers, Integers]:
    """Add noise to every cell of a universe and return the noisy counts that reach a threshold.

    Time and memory grow with the numbers of occupied and passing cells, not with the universe.

    Parameters
    ----------
    raw_cells : ndarray of int64, shape (n_occupied,)
        The occupied cells, increasing.
    raw_counts : ndarray of int64, shape (n_occupied,)
        Their counts.
    n_cells : int
        Size of the universe, at most 2**62.
    mechanism : {"discrete Laplace", "discrete Gaussian"}
    scale : Fraction
        As for `discrete_laplace` and `discrete_gaussian`.
    threshold : int
        At least 1.
    entropy : Entropy
        Where the random bits come from.

    Returns
    -------
    cells : ndarray of int64, shape (n_passing,)
        Increasing.
    noisy_counts : ndarray of int64, shape (n_passing,)
        At least ``threshold`` each.

    Privacy
    -------
    The result has the law of the dense histogram with independent noise in all ``n_cells`` cells, with
    everything below the threshold dropped, up to a total variation of e^-1000 for each number drawn. It is
    post-processing of that histogram, costs the same and reveals nothing more, not even the number of
    occupied cells. All parameters but the first two must be public. Running time depends on the number of
    occupied cells and is not hidden. Proof: ``docs/proofs/histogram.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> universe = 2**60
    >>> raw = np.array([7, 2**59]), np.array([1000, 2000])
    >>> laplace = "discrete Laplace", Fraction(2)
    >>> threshold = threshold_for(universe, *laplace, n_expected=1)
    >>> cells, noisy_counts = sparse_histogram(*raw, universe, *laplace, threshold, Entropy(seed=0))
    >>> bool(np.isin(raw[0], cells).all()), bool((noisy_counts >= threshold).all())
    (True, True)
    """
    n_cells, mechanism, scale, threshold = checked_histogram(n_cells, mechanism, scale, threshold)
    empty_cells, noise = _noise_above(threshold, n_cells, mechanism, scale, entropy)
    # The number of occupied cells is secret, so the choice of sampler must not depend on it.
    fill, bits = _NOISES[mechanism].fill, bits_of_geometric(scale.numerator)
    own_noise = drawn(fill, raw_cells.size, entropy, bits, *scale.as_integer_ratio())
    out = np.empty((2, raw_cells.size + empty_cells.size), dtype=np.int64)
    n_passing = samplers.merge_above(raw_cells, raw_counts + own_noise, empty_cells, noise, threshold, out)
    return out[0, :n_passing].copy(), out[1, :n_passing].copy()


def threshold_for(n_cells: int, mechanism: str, scale: Fraction, n_expected: float) -> int:
    """Return the least threshold at which at most `n_expected` empty cells pass on average.

    Parameters
    ----------
    n_cells : int
        Size of the universe, at most 2**62.
    mechanism : {"discrete Laplace", "discrete Gaussian"}
    scale : Fraction
        As for `discrete_laplace` and `discrete_gaussian`.
    n_expected : float
        Positive.

    Returns
    -------
    int
        At least 1. It is computed in floating point, so a borderline case may go either way.

    Privacy
    -------
    Takes public numbers only. If ``n_expected`` depends on the number of rows, use a released number.

    Examples
    --------
    >>> from fractions import Fraction
    >>> threshold_for(2**40, "discrete Laplace", Fraction(1), n_expected=1000)
    21
    """
    n_cells, mechanism, scale = _checked_universe(n_cells, mechanism, scale)
    if not 0 < n_expected < math.inf:
        raise ParameterError(f"`n_expected` must be positive and finite, got {n_expected!r}.")
    log_rate = math.log(n_expected) - math.log(n_cells)
    # Both tails are below exp(log_rate) there: exp(-x / scale) and exp(-(x / scale)**2 / 2) bound them.
    farthest = math.ceil(scale * Fraction(2 + max(0.0, -log_rate))) + 1
    log_passing = _NOISES[mechanism].log_passing
    return 1 + bisect_left(range(1, farthest), True, key=lambda x: log_passing(scale, x) <= log_rate)


def checked_histogram(
    n_cells: int, mechanism: str, scale: Fraction, threshold: int
) -> tuple[int, str, Fraction, int]:
    """Raise if a histogram cannot be drawn with these public parameters."""
    n_cells, mechanism, scale = _checked_universe(n_cells, mechanism, scale)
    threshold = _checked_integer("threshold", threshold, MAX_THRESHOLD)
    if _n_blocks(n_cells, mechanism, scale, threshold) > MAX_BLOCKS:
        later = range(threshold + 1, threshold_for(n_cells, mechanism, scale, 1) + 1)
        fits = bisect_left(later, True, key=lambda x: _n_blocks(n_cells, mechanism, scale, x) <= MAX_BLOCKS)
        raise ParameterError(
            f"`threshold` must be at least {later[fits]} for {n_cells} cells and {mechanism} noise of scale "
            f"{float(scale):g}, got {threshold}. A lower one lets too many empty cells pass."
        )
    return n_cells, mechanism, scale, threshold


def _checked_universe(n_cells: int, mechanism: str, scale: Fraction) -> tuple[int, str, Fraction]:
    if mechanism not in _NOISES:
        raise ParameterError(f"`mechanism` must be one of {', '.join(_NOISES)}, got {mechanism!r}.")
    return _checked_integer("n_cells", n_cells, MAX_CELLS), mechanism, checked_scale("scale", scale)


def _checked_integer(name: str, value: int, largest: int) -> int:
    if not (isinstance(value, int | np.integer) and 1 <= value <= largest):
        raise ParameterError(f"`{name}` must be an integer from 1 to 2**62, got {value!r}.")
    return int(value)


def _noise_above(
    threshold: int, n_cells: int, mechanism: str, scale: Fraction, entropy: Entropy
) -> tuple[Integers, Integers]:
    """Return the cells of an empty universe whose noise reaches the threshold, and that noise."""
    tail = _tail(mechanism, scale, threshold)
    n_bits = _block_bits(n_cells, tail.candidate)
    n_blocks = -(-n_cells >> n_bits)
    sizes = drawn(
        samplers.fill_table, n_blocks, entropy, DIGIT_BITS, *binomial_table(1 << n_bits, tail.candidate)
    )
    blocks = np.repeat(np.arange(n_blocks, dtype=np.int64), sizes)
    cells = drawn(samplers.fill_cells, blocks.size, entropy, n_bits, blocks, n_bits)
    excess = drawn(tail.fill, blocks.size, entropy, bits_of_geometric(scale.numerator), *tail.law)
    passing = (excess >= 0) & (cells < n_cells)  # the last block may extend past the end
    return cells[passing], threshold + excess[passing]


def _n_blocks(n_cells: int, mechanism: str, scale: Fraction, threshold: int) -> int:
    return -(-n_cells >> _block_bits(n_cells, _tail(mechanism, scale, threshold).candidate))


def _block_bits(n_cells: int, candidate: Decimal) -> int:
    """Log2 of the largest block size with at most one candidate on average."""
    n_bits = (n_cells - 1).bit_length()
    with localcontext(DECIMALS):
        while n_bits > 0 and candidate * 2**n_bits > 1:
            n_bits -= 1
    return n_bits


@lru_cache(maxsize=64)
def _tail(mechanism: str, scale: Fraction, threshold: int) -> _Tail:
    return _NOISES[mechanism].tail(scale, threshold)


def _laplace_tail(scale: Fraction, threshold: int) -> _Tail:
    with localcontext(DECIMALS):
        passing = exp_of(-threshold / scale) / (1 + exp_of(-1 / scale))
    return _Tail(passing, samplers.fill_geometric, scale.as_integer_ratio())


def _gaussian_tail(sigma: Fraction, threshold: int) -> _Tail:
    """Envelope of the tail: a geometric law m + 1 times as steep as exp(-x / sigma).

    With threshold / sigma = m + f and u = x / sigma, the exponent of the tail is
    (m + f + u)**2 / 2 = (m + 1) u + (u - (1 - f))**2 / 2 + ((m + f)**2 - (1 - f)**2) / 2.
    """
    a, b = sigma.as_integer_ratio()
    m, rest = divmod(threshold * b, a)
    peak = Fraction(a - rest, a)
    with localcontext(DECIMALS):
        top = exp_of((peak**2 - (threshold / sigma) ** 2) / 2)
        candidate = top / (1 - exp_of(-(m + 1) / sigma)) / _gaussian_total(sigma)
    # From 2**62 on, every draw is zero, because the kernel's numerators are smaller.
    return _Tail(candidate, samplers.fill_gaussian_tail, (a, b, min((m + 1) * b, 2**62), a - rest))


@lru_cache(maxsize=8)
def _gaussian_total(sigma: Fraction) -> Decimal:
    """Sum of exp(-x**2 / (2 sigma**2)) over all integers; for large sigma by Poisson summation."""
    with localcontext(DECIMALS):
        width = Decimal(sigma.numerator) / Decimal(sigma.denominator)
        if sigma <= 1:
            return _theta(1 / (2 * width**2))
        return width * (2 * pi()).sqrt() * _theta(2 * (pi() * width) ** 2)


def _theta(rate: Decimal) -> Decimal:
    """Sum of exp(-rate k**2) over all integers, for a rate of at least 1/2."""
    with localcontext(DECIMALS):
        smallest = Decimal(10) ** -DECIMALS.prec
        terms = ((-rate * k * k).exp() for k in count(1))
        return 1 + 2 * sum(takewhile(lambda term: term > smallest, terms), Decimal(0))


@lru_cache(maxsize=1)
def pi() -> Decimal:
    """Pi by the arithmetic-geometric mean (Gauss, Brent, Salamin): ten rounds give over 1000 digits."""
    with localcontext(DECIMALS):
        a, b, rest = Decimal(1), 1 / Decimal(2).sqrt(), Decimal(1) / 4
        for k in range(10):
            a, b, difference = (a + b) / 2, (a * b).sqrt(), (a - b) / 2
            rest -= 2**k * difference**2
        return (a + b) ** 2 / (4 * rest)


def _log_laplace_passing(scale: Fraction, threshold: int) -> float:
    return -float(threshold / scale) - math.log1p(math.exp(-1 / scale))


@lru_cache(maxsize=1024)
def _log_gaussian_passing(sigma: Fraction, threshold: int) -> float:
    if sigma > _WIDE:
        return float(log_ndtr(float((Fraction(1, 2) - threshold) / sigma)))
    x = threshold + np.arange(50 * math.ceil(sigma), dtype=np.float64)
    return float(logsumexp(-((x / float(sigma)) ** 2) / 2)) - float(_gaussian_total(sigma).ln(DECIMALS))


_NOISES = {
    "discrete Laplace": _Noise(samplers.fill_laplace, _laplace_tail, _log_laplace_passing),
    "discrete Gaussian": _Noise(samplers.fill_gaussian, _gaussian_tail, _log_gaussian_passing),
}
