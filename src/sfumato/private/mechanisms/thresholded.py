"""Noisy counts of values that are not public: only values that occur get noise, and few of them are shown."""

import math
from bisect import bisect_left
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.errors import ParameterError
from sfumato.private.mechanisms import samplers
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.laws import DECIMALS, exp_of
from sfumato.private.mechanisms.noise import bits_of_geometric, checked_scale, drawn

Integers = npt.NDArray[np.int64]
LEAST_THRESHOLD = 2  # a count of one is shown only if the noise raises it


def thresholded_counts(
    raw_counts: Integers, scale: Fraction, threshold: int, entropy: Entropy
) -> tuple[Integers, Integers]:
    """Add discrete Laplace noise to the counts of the values that occur, and keep those at a threshold.

    Parameters
    ----------
    raw_counts : ndarray of int64, shape (n_values,)
        How many privacy units have each value: at least 1 each.
    scale : Fraction
        As for `discrete_laplace`.
    threshold : int
        As `least_threshold` gives it.
    entropy : Entropy
        Where the random bits come from.

    Returns
    -------
    passing : ndarray of int64, shape (n_passing,)
        Positions of the values that pass, increasing.
    noisy_counts : ndarray of int64, shape (n_passing,)
        At least ``threshold`` each.

    Privacy
    -------
    If a unit counts for at most D values, the result is (D / scale, delta)-differentially private, where
    delta is that of the threshold. The number of values that occur stays secret. ``scale`` and ``threshold``
    must be public. Running time depends on the number of values and is not hidden. Proof:
    ``docs/proofs/levels.md``.

    Examples
    --------
    >>> scale = Fraction(2)
    >>> threshold = least_threshold(Fraction(1, 10**6), scale, n_values=1)
    >>> passing, _ = thresholded_counts(np.array([1, 900, 2, 800]), scale, threshold, Entropy(seed=0))
    >>> passing
    array([1, 3])
    """
    scale = checked_scale("scale", scale)
    # The number of values is secret, so the choice of sampler must not depend on it.
    bits = bits_of_geometric(scale.numerator)
    noise = drawn(samplers.fill_laplace, raw_counts.size, entropy, bits, *scale.as_integer_ratio())
    noisy_counts = raw_counts + noise
    passing = np.flatnonzero(noisy_counts >= threshold)
    return passing, noisy_counts[passing]


@lru_cache(maxsize=64)
def least_threshold(delta: Fraction, scale: Fraction, n_values: int) -> int:
    """Least threshold that shows any of `n_values` values of one unit alone with probability at most `delta`.

    A count of 1 with noise X of the discrete Laplace law passes t with probability P(X >= t - 1) =
    exp(-(t - 1) / scale) / (1 + exp(-1 / scale)) for t >= 2. The sum over the values may not exceed `delta`.
    It is compared in 500 digits.

    Examples
    --------
    >>> least_threshold(Fraction(1, 10**6), Fraction(10), n_values=1)
    133
    """
    if not 0 < delta < 1:
        raise ParameterError(f"`delta` must be above 0 and below 1, got {delta}.")
    scale = checked_scale("scale", scale)
    with localcontext(DECIMALS):
        most = Decimal(delta.numerator) / Decimal(delta.denominator)
    # exp(-(t - 1) / scale) alone bounds the probability, and this is beyond where it reaches `delta`.
    farthest = 3 + math.ceil(scale * (1 + math.ceil(math.log(n_values / delta))))
    candidates = range(LEAST_THRESHOLD, farthest)
    return LEAST_THRESHOLD + bisect_left(
        candidates, True, key=lambda t: showing_probability(t, scale, n_values) <= most
    )


def showing_probability(threshold: int, scale: Fraction, n_values: int) -> Decimal:
    """Bound on the probability that a threshold shows any of `n_values` values that only one unit has."""
    with localcontext(DECIMALS):
        return n_values * exp_of(-(threshold - 1) / scale) / (1 + exp_of(-1 / scale))
