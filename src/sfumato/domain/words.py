"""How a text is split into terms: a public rule that looks at one text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sfumato.errors import ParameterError

LONGEST = 64  # characters of a term; longer ones are left out
_WORD = re.compile(r"[^\W_]{2,}")
_SAMPLE = "a plain text of some words"  # on which a callable is tried

Tokens = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Words:
    """Words of a text in lower case: runs of at least two letters and digits, in any script.

    Parameters
    ----------
    stop_words : frozenset of str
        Words to leave out.
    pairs : bool
        Whether two words that follow one another are a term, too. Stop words are left out before.

    Examples
    --------
    >>> Words()("The cat's 9 lives: CAT!")
    ['the', 'cat', 'lives', 'cat']
    >>> Words(frozenset(["the"]), pairs=True)("The red cat")
    ['red', 'cat', 'red cat']
    """

    stop_words: frozenset[str] = frozenset()
    pairs: bool = False

    def __call__(self, text: str) -> list[str]:
        """Terms of a text, in its order."""
        words = [word for word in _WORD.findall(text.lower()) if word not in self.stop_words]
        return words + [" ".join(pair) for pair in pairwise(words)] if self.pairs else words


def words_by(tokens: Any, stop_words: Any) -> Tokens:
    """The rule that parameters describe. Raises for others.

    Parameters
    ----------
    tokens : {"words", "pairs"} or callable
        "pairs" adds two words that follow one another. A callable gives the terms of one text.
    stop_words : "english", sequence of str or None
    """
    if callable(tokens):
        return _tried(tokens)
    if not isinstance(tokens, str) or tokens not in ("words", "pairs"):
        raise ParameterError(f"`tokens` must be 'words', 'pairs' or a function of one text, got {tokens!r}")
    if isinstance(stop_words, str) and stop_words == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return Words(frozenset(ENGLISH_STOP_WORDS), pairs=tokens == "pairs")
    is_list = isinstance(stop_words, Sequence | set | frozenset) and not isinstance(stop_words, str)
    if stop_words is not None and not (is_list and all(isinstance(word, str) for word in stop_words)):
        raise ParameterError(f"`stop_words` must be 'english', a list of words or None, got {stop_words!r}")
    return Words(frozenset(word.lower() for word in stop_words or ()), pairs=tokens == "pairs")


def _tried(tokens: Tokens) -> Tokens:
    """A callable that gives terms for a public sample. What it does with other texts is not known here."""
    try:
        found = list(tokens(_SAMPLE))
    except Exception as error:
        raise ParameterError(f"`tokens` must take a text, but failed on a sample: {error!r}") from error
    if not all(isinstance(term, str) for term in found):
        raise ParameterError("`tokens` must give texts, got others for a sample")
    return tokens


def is_term(term: object) -> bool:
    """Whether a term may be published: a short text without control characters."""
    return isinstance(term, str) and 0 < len(term) <= LONGEST and term.isprintable()
