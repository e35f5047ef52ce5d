"""Which terms set the clusters of a release apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray, check_shape
from sfumato.domain.words import is_term
from sfumato.errors import ParameterError
from sfumato.public.density.histogram import NOISES
from sfumato.public.profiles.estimates import Estimate
from sfumato.public.profiles.near_zero import interval_of
from sfumato.public.profiles.wording import percent
from sfumato.public.terms.contrasts import Shares, contrasts, shares_of

MOST_TERMS = 10**5  # of a vocabulary
_LAPLACE_WIDTH = 1.08  # a Laplace interval of 95 % is so much wider than a normal one of equal variance


class Term(NamedTuple):
    """A term that sets a cluster apart."""

    term: str
    share: Estimate  # of the people of the cluster who use it
    elsewhere: Estimate  # of the people of all other clusters
    score: float  # its part of the divergence between the cluster and all others, by which terms are ranked


@dataclass(frozen=True, eq=False, repr=False)
class Terms:
    """How many people of each cluster use each term. All numbers follow from released noisy counts.

    ``terms[c]`` lists the terms that set cluster c apart, the strongest first. People are rows unless the fit
    had a `unit`. Intervals hold 95 % for one term that was chosen before; of many, the most striking ones are
    striking partly by luck.

    Parameters
    ----------
    terms : tuple of str
        The vocabulary.
    counts : int array of shape (k, n_terms)
        Noisy number of people who count for each term in each cluster.
    sizes : int array of shape (k,)
        Noisy number of people in each cluster.
    mechanism : str
        Noise of all counts.
    std : float
        Its standard deviation.
    max_terms : int
        Maximum number of terms that a person counted for.
    kept : float
        Estimated part of all uses that counted, the others being beyond that maximum. Shares are divided by
        it, as if it were the same for all terms.
    top : int
        Maximum number of terms to show for a cluster.
    found : bool
        Whether the vocabulary was found in the texts. Otherwise it was public.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[410, 12, 300], [9, 388, 310]])
    >>> sizes, noise = np.array([1000, 1000]), ("discrete Gaussian", 8.0)
    >>> told = Terms(("ball", "bank", "new"), counts, sizes, *noise, max_terms=8, kept=1.0)
    >>> [term.term for term in told[0]], told.share(1, "bank").value
    (['ball'], 0.388)
    >>> print(told)
    Cluster 0: ball (41 %, elsewhere under 3 %)
    Cluster 1: bank (39 %, elsewhere under 3 %)
    """

    terms: tuple[str, ...]
    counts: IntArray
    sizes: IntArray
    mechanism: str
    std: float
    max_terms: int
    kept: float
    top: int = 10
    found: bool = False

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        if len(set(self.terms)) < len(self.terms) or not all(map(is_term, self.terms)):
            raise ParameterError("the terms of a release must be distinct, short and printable")
        if self.sizes.ndim != 1:
            raise ParameterError("the sizes of terms must have a number for each cluster")
        check_shape("counts", self.counts, len(self.sizes), len(self.terms))
        largest = max(np.abs(part).max(initial=0) for part in (self.counts, self.sizes))
        if self.mechanism not in NOISES or not 0 <= self.std <= 2.0**52 or largest > 2**52:
            raise ParameterError(f"the noise of terms must be {' or '.join(NOISES)}, of a finite size")
        if not 0 < self.kept <= 1 or self.max_terms < 1 or self.top < 1:
            raise ParameterError("`kept` of terms must be from 0 to 1, `max_terms` and `top` at least 1")

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[list[Term]]:
        return (self[cluster] for cluster in range(len(self)))

    def __getitem__(self, cluster: int) -> list[Term]:
        """Terms that set a cluster apart, the strongest first: at most `top`; none if noise hides them."""
        scores, are_clear = self._contrasts
        own = scores[self._cluster(cluster)]
        order = np.argsort(-own, kind="stable")
        chosen = order[are_clear[self._cluster(cluster)][order]][: self.top]
        return [self._term(cluster, j) for j in chosen.tolist()]

    def __repr__(self) -> str:
        return f"<Terms of {len(self)} clusters: {len(self.terms)} terms>"

    def __str__(self) -> str:
        return "\n".join(f"Cluster {c}: {self.sentence(c)}" for c in range(len(self)))

    def share(self, cluster: int, term: str) -> Estimate:
        """Share of the people of a cluster who use a term of the vocabulary."""
        return self._share(self._cluster(cluster), self._place(term))

    def elsewhere(self, cluster: int, term: str) -> Estimate:
        """Share of the people of all other clusters who use a term of the vocabulary."""
        return self._rest(self._cluster(cluster), self._place(term))

    def sentence(self, cluster: int) -> str:
        """The terms of a cluster in words, with their shares."""
        told = [
            f"{term.term} ({percent(*term.share)}, elsewhere {percent(*term.elsewhere)})"
            for term in self[cluster]
        ]
        return ", ".join(told) or "no term stands out from the noise"

    def rows(self) -> list[dict[str, Any]]:
        """All terms that are shown, as a list of plain numbers."""
        return [
            {
                "cluster": c,
                "term": term.term,
                "share": term.share.value,
                "low": term.share.low,
                "high": term.share.high,
                "elsewhere": term.elsewhere.value,
                "elsewhere_low": term.elsewhere.low,
                "elsewhere_high": term.elsewhere.high,
                "score": term.score,
            }
            for c, told in enumerate(self)
            for term in told
        ]

    @cached_property
    def _contrasts(self) -> tuple[FloatArray, NDArray[np.bool_]]:
        return contrasts(self.counts, self.sizes, self.std, self.mechanism)

    @cached_property
    def _shares(self) -> Shares:
        return shares_of(self.counts, self.sizes, self.std)

    def _term(self, cluster: int, j: int) -> Term:
        score = float(self._contrasts[0][cluster, j])
        return Term(self.terms[j], self._share(cluster, j), self._rest(cluster, j), score)

    def _share(self, c: int, j: int) -> Estimate:
        return self._estimate(float(self._shares.own[c, j]), float(self._shares.own_stds[c, j]))

    def _rest(self, c: int, j: int) -> Estimate:
        return self._estimate(float(self._shares.others[c, j]), float(self._shares.others_stds[c, j]))

    def _estimate(self, share: float, std: float) -> Estimate:
        wide = _LAPLACE_WIDTH if self.mechanism == "discrete Laplace" else 1.0
        ends = interval_of(np.array([share]), np.array([wide * std]))
        value, low, high = (min(max(float(x) / self.kept, 0.0), 1.0) for x in (share, ends[0][0], ends[1][0]))
        return Estimate(value, min(low, value), max(high, value))

    def _cluster(self, cluster: int) -> int:
        if not 0 <= cluster < len(self):
            raise IndexError(f"`cluster` must be from 0 to {len(self) - 1}, got {cluster!r}")
        return int(cluster)

    def _place(self, term: str) -> int:
        if term not in self.terms:
            raise ParameterError(
                f"`term` must be one of the {len(self.terms)} of the vocabulary, got {term!r}"
            )
        return self.terms.index(term)
