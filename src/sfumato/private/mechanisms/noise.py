"""Discrete Laplace and discrete Gaussian noise, exact for rational scales."""

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.errors import ParameterError
from sfumato.private.mechanisms.entropy import BitStream, Entropy
from sfumato.private.mechanisms.interpreted import quickest
from sfumato.private.mechanisms.laws import DIGIT_BITS, gaussian_table, laplace_table
from sfumato.private.mechanisms.samplers import fill_gaussian, fill_laplace, fill_table

MAX_TERM = 2**52
TABLE_SIZE, TABLE_SCALE = 2**16, 32  # below or beyond, to compute a table takes longer than to draw without

Kernel: TypeAlias = Callable[..., int]


def discrete_laplace(scale: Fraction, size: int, entropy: Entropy) -> npt.NDArray[np.int64]:
    """Draw independent integers x with probability proportional to ``exp(-|x| / scale)``.

    Parameters
    ----------
    scale : Fraction
        Positive, with numerator and denominator of at most 2**52.
    size : int
        How many draws.
    entropy : Entropy
        Where the random bits come from.

    Returns
    -------
    ndarray of int64, shape (size,)
        The draws. None exceeds 2**62 in magnitude.

    Privacy
    -------
    Added to an integer vector that changes by at most D in L1 norm between neighbours, the noise gives
    (D / scale)-differential privacy. The law is exact, without floating point, up to a cut of the far
    tail: a change of total variation below e^-1000 per draw. ``scale`` and ``size`` must be public. Running
    time depends on the noise, not on the data; it is not hidden from someone who can time single draws.
    Proof: ``docs/proofs/samplers.md``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = discrete_laplace(Fraction(5, 2), 1000, Entropy(seed=0))
    >>> noise.dtype, noise.shape
    (dtype('int64'), (1000,))
    """
    scale, size = checked_scale("scale", scale), _checked_size(size)
    if _tabulated(scale, size):
        return drawn(quickest(fill_table, size), size, entropy, DIGIT_BITS, *laplace_table(scale))
    kernel, n_bits = quickest(fill_laplace, size), bits_of_geometric(scale.numerator)
    return drawn(kernel, size, entropy, n_bits, *scale.as_integer_ratio())


def discrete_gaussian(sigma: Fraction, size: int, entropy: Entropy) -> npt.NDArray[np.int64]:
    """Draw independent integers x with probability proportional to exp(-x**2 / (2 sigma**2)).

    Parameters
    ----------
    sigma : Fraction
        Positive, with numerator and denominator of at most 2**52.
    size : int
        How many draws.
    entropy : Entropy
        Where the random bits come from.

    Returns
    -------
    ndarray of int64, shape (size,)
        The draws.

    Privacy
    -------
    Added to an integer vector that changes by at most D in L2 norm between neighbours, the noise gives
    (D**2 / (2 sigma**2))-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4). The law is exact, without
    floating point, up to a cut of the far tail: a change of total variation below e^-1000 per draw. ``sigma``
    and ``size`` must be public. Running time depends on the noise, not on the data; it is not hidden from
    someone who can time single draws. Proof: ``docs/proofs/samplers.md``.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = discrete_gaussian(Fraction(10), 1000, Entropy(seed=0))
    >>> bool(abs(noise).max() < 100)
    True
    """
    sigma, size = checked_scale("sigma", sigma), _checked_size(size)
    if _tabulated(sigma, size):
        return drawn(quickest(fill_table, size), size, entropy, DIGIT_BITS, *gaussian_table(sigma))
    kernel, n_bits = quickest(fill_gaussian, size), bits_of_geometric(sigma.numerator)
    return drawn(kernel, size, entropy, n_bits, *sigma.as_integer_ratio())


def drawn(kernel: Kernel, size: int, entropy: Entropy, n_bits: int, *law: Any) -> npt.NDArray[np.int64]:
    """Fill an array with a kernel. `n_bits` is a guess per draw; it only sets the size of a request."""
    out = np.empty(size, dtype=np.int64)
    stream = BitStream(entropy)
    n_done = 0
    while n_done < size:
        stream.refill((size - n_done) * n_bits)
        n_done = kernel(stream.words, stream.cursor, out, n_done, *law)
    return out


def bits_of_geometric(numerator: int) -> int:
    """Average bits per draw of the kernels that build on `geometric`: measured, not proved."""
    return 12 + 8 * (numerator - 1).bit_length() // 5  # about 1.6 uniform integers below the numerator


def _tabulated(scale: Fraction, size: int) -> bool:
    """Whether a table pays off, judged by public numbers alone."""
    return size >= TABLE_SIZE and scale <= TABLE_SCALE


def _checked_size(size: int) -> int:
    if not (isinstance(size, int | np.integer) and size >= 0):
        raise ParameterError(f"`size` must be a non-negative integer, got {size!r}.")
    return int(size)


def checked_scale(name: str, scale: Fraction) -> Fraction:
    """Raise if a scale would overflow a kernel."""
    if not isinstance(scale, Rational):
        raise ParameterError(
            f"`{name}` must be a Fraction, got {scale!r}. "
            "Round a float up: Fraction(math.ceil(x * 1024), 1024)."
        )
    if not (0 < scale.numerator <= MAX_TERM and scale.denominator <= MAX_TERM):
        raise ParameterError(
            f"`{name}` must be positive with numerator and denominator of at most 2**52, got {scale}. "
            "Round it up to a coarser fraction: Fraction(math.ceil(x * 1024), 1024)."
        )
    return Fraction(int(scale.numerator), int(scale.denominator))
