"""Where random words come from, and how kernels read them."""

import os
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from sfumato.errors import ParameterError

MAX_WORDS = 2**17  # 1 MB per request: the words stay in the processor's cache


@final
class Entropy:
    """A source of uniform 64-bit words.

    Without a seed the words come from the operating system. Nothing is buffered between calls, so forked
    processes and threads never receive the same words, and copies and pickles are harmless.

    Parameters
    ----------
    seed : int or None, default=None
        A non-negative integer makes the words reproducible (NumPy's PCG64).

    Attributes
    ----------
    seeded : bool
        True if the words are reproducible.

    Privacy
    -------
    The guarantees of all mechanisms assume words that nobody can predict. Seeded words are for tests and
    demonstrations: anyone who knows or guesses the seed can subtract the noise, and a copy or a forked
    process repeats it. Never publish a result drawn from seeded words.

    Examples
    --------
    >>> Entropy().seeded
    False
    >>> bool((Entropy(seed=1).words(3) == Entropy(seed=1).words(3)).all())
    True
    """

    seeded: Final[bool]

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None and not (isinstance(seed, int | np.integer) and seed >= 0):
            raise ParameterError(
                f"`seed` must be a non-negative integer or None, got {seed!r}. "
                "Leave it out to draw from the operating system."
            )
        self.seeded = seed is not None
        self._generator = None if seed is None else np.random.PCG64(seed)

    @classmethod
    def resumed(cls, state: Any) -> Self:
        """Source that goes on where another one was when it gave its `state`.

        Parameters
        ----------
        state : dict or None
        """
        entropy = cls(None if state is None else 0)
        if entropy._generator is not None:
            entropy._generator.state = state
        return entropy

    @property
    def state(self) -> dict[str, Any] | None:
        """Where a seeded source is: integers and names. ``None`` for the operating system."""
        return None if self._generator is None else {**self._generator.state}

    def __repr__(self) -> str:
        return "Entropy(seeded)" if self.seeded else "Entropy()"

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Return fresh words.

        Parameters
        ----------
        n : int
            Number of words.

        Returns
        -------
        ndarray of uint64, shape (n,)
            Independent and uniform on 0, ..., 2**64 - 1.
        """
        if self._generator is not None:
            return np.asarray(self._generator.random_raw(n), dtype=np.uint64)
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class BitStream:
    """The bits that one call of a mechanism reads, in the form that kernels take.

    A stream serves one call and is then dropped, with its unread bits.

    Parameters
    ----------
    entropy : Entropy
        Where more words come from.

    Attributes
    ----------
    words : ndarray of uint64
        The words not yet read completely.
    cursor : ndarray of int64, shape (2,)
        The position of the next bit, and the number of bits in ``words``.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self.words: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self.cursor: npt.NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    def refill(self, n_bits: int) -> None:
        """Append about ``n_bits`` fresh bits to the unread ones: at least one word, at most ``MAX_WORDS``."""
        n_words = min(n_bits // 64 + 1, MAX_WORDS)
        n_read, offset = divmod(int(self.cursor[0]), 64)
        self.words = np.concatenate([self.words[n_read:], self._entropy.words(n_words)])
        self.cursor[:] = offset, 64 * self.words.size
