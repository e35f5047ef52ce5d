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
from sfumato.private.mechanisms.noise import Kernel, bits_of_geometric, checked_scale, drawn
from sfumato.private.mechanisms.sparse_histogram import pi

Integers = npt.NDArray[np.int64]
_FILLS: dict[str, Kernel] = {
    "discrete Laplace": samplers.fill_laplace,
    "discrete Gaussian": samplers.fill_gaussian,
}


def thresholded_counts(
    raw_counts: Integers,
    scale: Fraction,
    threshold: int,
    entropy: Entropy,
    mechanism: str = "discrete Laplace",
) -> tuple[Integers, Integers]:
    """Add discrete noise to the counts of the values that occur, and keep those at a threshold.

    Parameters
    ----------
    raw_counts : ndarray of int64, shape (n_values,)
        How many privacy units have each value: at least 1 each.
    scale : Fraction
        As for `discrete_laplace` or `discrete_gaussian`.
    threshold : int
        As `least_threshold` gives it.
    entropy : Entropy
        Where the random bits come from.
    mechanism : {"discrete Laplace", "discrete Gaussian"}

    Returns
    -------
    passing : ndarray of int64, shape (n_passing,)
        Positions of the values that pass, increasing.
    noisy_counts : ndarray of int64, shape (n_passing,)
        At least ``threshold`` each.

    Privacy
    -------
    If a unit counts for at most D values, the result is (D / scale, delta)-differentially private, where
    delta is that of the threshold. With Gaussian noise, and counts that a unit moves by at most D in L2 norm,
    it is delta-approximately (D^2 / (2 scale^2))-zCDP. The number of values that occur stays secret.
    ``scale`` and ``threshold`` must be public. Running time depends on the number of values and is not
    hidden. Proofs: ``docs/proofs/levels.md``, ``docs/proofs/terms.md``.

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
    fill = _FILLS[mechanism]
    noise = drawn(fill, raw_counts.size, entropy, bits, *scale.as_integer_ratio())
    noisy_counts = raw_counts + noise
    passing = np.flatnonzero(noisy_counts >= threshold)
    return passing, noisy_counts[passing]


@lru_cache(maxsize=256)
def least_threshold(
    delta: Fraction, scale: Fraction, n_values: int, mechanism: str = "discrete Laplace", weight: int = 1
) -> int:
    """Least threshold that shows any of `n_values` values of one unit alone with probability at most `delta`.

    Each such value has the count `weight`, and passes t if its noise is at least t - weight. The sum of these
    probabilities, see `showing_probability`, may not exceed `delta`. It is compared in 500 digits.

    Examples
    --------
    >>> least_threshold(Fraction(1, 10**6), Fraction(10), n_values=1)
    133
    >>> least_threshold(Fraction(1, 10**6), Fraction(10), n_values=1, mechanism="discrete Gaussian")
    50
    """
    if not 0 < delta < 1:
        raise ParameterError(f"`delta` must be above 0 and below 1, got {delta}.")
    scale = checked_scale("scale", scale)
    with localcontext(DECIMALS):
        most = Decimal(delta.numerator) / Decimal(delta.denominator)
    # exp(-x / scale) bounds the Laplace tail, and exp(-x / scale + 1/2) the other: this is beyond `delta`.
    farthest = weight + 3 + math.ceil(scale * (2 + math.ceil(math.log(n_values / delta))))
    candidates = range(weight + 1, farthest)
    least = weight + 1  # a value that one unit has is shown only if the noise raises it
    return least + bisect_left(
        candidates, True, key=lambda t: showing_probability(t, scale, n_values, mechanism, weight) <= most
    )


@lru_cache(maxsize=64)
def common_threshold(
    delta: Fraction, scale: Fraction, mechanism: str, weights: tuple[tuple[int, int], ...]
) -> int:
    """Threshold for units that have any of several numbers of values: the largest of `least_threshold`.

    Parameters
    ----------
    delta, scale, mechanism
        As for `least_threshold`.
    weights : tuple of (int, int)
        How many values a unit may have, and the count of each then.
    """
    threshold = 0
    for n_values, weight in weights:
        # One comparison tells whether the largest so far is enough.
        probability = showing_probability(max(threshold, weight + 1), scale, n_values, mechanism, weight)
        if threshold <= weight or Fraction(probability) > delta:
            threshold = least_threshold(delta, scale, n_values, mechanism, weight)
    return threshold


def showing_probability(
    threshold: int, scale: Fraction, n_values: int, mechanism: str = "discrete Laplace", weight: int = 1
) -> Decimal:
    """Bound on the probability that a threshold shows any of `n_values` values that only one unit has.

    For x = threshold - weight >= 1, Laplace noise is at least x with probability exp(-x / scale) / (1 +
    exp(-1 / scale)). Gaussian noise is so with at most the probability that a normal number is at least x - 1
    (Canonne, Kamath and Steinke 2020, Proposition 25), which is below exp(-z^2) / (z + sqrt(z^2 + 4 / pi)) /
    sqrt(pi) for z = (x - 1) / (scale sqrt(2)) (Abramowitz and Stegun 1964, 7.1.13).
    """
    excess = threshold - weight
    with localcontext(DECIMALS):
        if mechanism == "discrete Laplace":
            return n_values * exp_of(-excess / scale) / (1 + exp_of(-1 / scale))
        squared = Fraction((excess - 1) ** 2) / (2 * scale**2)
        z = (Decimal(squared.numerator) / Decimal(squared.denominator)).sqrt()
        return n_values * exp_of(-squared) / (z + (z * z + 4 / pi()).sqrt()) / pi().sqrt()
