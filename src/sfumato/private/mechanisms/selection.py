"""Private selection of a candidate by its score: exponential mechanism and permute-and-flip."""

from fractions import Fraction
from numbers import Rational

import numpy as np
import numpy.typing as npt

from sfumato.errors import ParameterError
from sfumato.private.mechanisms.entropy import BitStream, Entropy
from sfumato.private.mechanisms.samplers import select_exponential, select_permute_and_flip

MAX_NUMERATOR = 2**31
MAX_DENOMINATOR = 2**52
MAX_PRODUCT = 2**62
_FIRST_REQUEST = 1024  # bits; doubled at every refill


def exponential(scores: npt.NDArray[np.int64], rate: Fraction, entropy: Entropy) -> int:
    """Draw index i with probability proportional to exp(rate * scores[i]).

    Parameters
    ----------
    scores : ndarray of int64, shape (n_candidates,)
        Higher is better. Any int64 values.
    rate : Fraction
        Non-negative; numerator at most 2**31, denominator at most 2**52, their product at most 2**62.
    entropy : Entropy
        Where the random bits come from.

    Returns
    -------
    int
        The chosen index.

    Privacy
    -------
    Let the *spread* be the largest value of max_i d_i - min_i d_i over all pairs of neighbours, where d_i is
    the change of score i. With ``rate = epsilon / spread`` the choice is epsilon-differentially private,
    has bounded range epsilon, and is therefore (epsilon**2 / 8)-zCDP. A score that changes by at most D
    has spread at most 2 D; scores that all move in the same direction have spread at most D. ``rate`` and
    the number of candidates must be public. Exponents are capped at 2**20, which changes the law by less
    than n_candidates * e^(-2**20) and leaves the guarantee exact. Running time depends on the scores and is
    not hidden. Proof: ``docs/proofs/selection.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> exponential(np.array([0, 900, 3]), Fraction(1, 2), Entropy(seed=0))
    1
    """
    gaps, rate = _gaps(scores), _checked_rate(rate)
    stream = BitStream(entropy)
    index, request = -1, _FIRST_REQUEST
    while index < 0:
        stream.refill(request)
        index = int(select_exponential(stream.words, stream.cursor, gaps, rate.numerator, rate.denominator))
        request *= 2
    return index


def permute_and_flip(scores: npt.NDArray[np.int64], rate: Fraction, entropy: Entropy) -> int:
    """Visit the candidates in random order and stop at i with probability exp(-rate * (max - scores[i])).

    At the same rate, the expected score is never below `exponential`'s (McKenna and Sheldon 2020).

    Parameters
    ----------
    scores : ndarray of int64, shape (n_candidates,)
        Higher is better. Any int64 values.
    rate : Fraction
        Non-negative; numerator at most 2**31, denominator at most 2**52, their product at most 2**62.
    entropy : Entropy
        Where the random bits come from.

    Returns
    -------
    int
        The chosen index.

    Privacy
    -------
    With ``rate = epsilon / spread`` (the spread is defined in `exponential`) the choice is
    epsilon-differentially private. It has the law of the largest score after adding independent exponential
    noise, where only differences of scores matter. Its range is not bounded by epsilon, so it is charged its
    pure epsilon. ``rate`` and the number of candidates must be public. The cap on exponents (see
    `exponential`) leaves the guarantee exact. Running time depends on the scores and is not hidden. Proof:
    ``docs/proofs/selection.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> permute_and_flip(np.array([0, 900, 3]), Fraction(1, 2), Entropy(seed=0))
    1
    """
    gaps, rate = _gaps(scores), _checked_rate(rate)
    order = np.arange(gaps.size, dtype=np.int64)
    stream = BitStream(entropy)
    index, n_done, request = -1, 0, _FIRST_REQUEST
    while index < 0:
        stream.refill(request)
        index, n_done = select_permute_and_flip(
            stream.words, stream.cursor, order, n_done, gaps, rate.numerator, rate.denominator
        )
        request *= 2
    return int(index)


def _gaps(scores: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    # Shape and type are public. Unsigned arithmetic wraps, so gaps of up to 2**64 - 1 are right.
    if not isinstance(scores, np.ndarray) or scores.dtype != np.int64 or scores.ndim != 1 or not scores.size:
        raise ParameterError(
            "`scores` must be a non-empty one-dimensional int64 array. Scale scores to integers first."
        )
    best: npt.NDArray[np.int64] = scores.max(keepdims=True)
    return best.astype(np.uint64) - scores.astype(np.uint64)


def _checked_rate(rate: Fraction) -> Fraction:
    if not isinstance(rate, Rational):
        raise ParameterError(
            f"`rate` must be a Fraction, got {rate!r}. "
            "Round a float down: Fraction(math.floor(x * 1024), 1024)."
        )
    num, den = int(rate.numerator), int(rate.denominator)
    if not (0 <= num <= MAX_NUMERATOR and den <= MAX_DENOMINATOR and num * den <= MAX_PRODUCT):
        raise ParameterError(
            "`rate` must be non-negative with numerator at most 2**31, denominator at most 2**52 and their "
            f"product at most 2**62, got {rate}. Round it down to a coarser fraction."
        )
    return Fraction(num, den)
