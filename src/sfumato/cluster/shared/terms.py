"""Terms of clusters: which words set each cluster apart, by noisy counts of people, after a fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.budget import Plan, PricedPlan, Step
from sfumato.curator import Noisy, Questions, term_counts_sensitivity, terms_sensitivity
from sfumato.domain import FloatArray
from sfumato.domain.constraints import whole
from sfumato.domain.words import LONGEST, is_term
from sfumato.errors import NoiseWarning, ParameterError
from sfumato.public.terms import Terms
from sfumato.public.terms.terms import MOST_TERMS

FOUND, PER_PERSON, COUNTS = "terms", "terms per person", "term counts"  # names of the steps
PRIVATE = "private"

# Tuned: docs/notes/constants.md#terms
FOUND_SHARE = Fraction(2, 5)  # of the budget, to find a vocabulary
PER_PERSON_SHARE = Fraction(1, 20)
MAX_TERMS = 16
MOST_KEPT = 10_000  # terms of a vocabulary that is found: those that most people use
MOST_BINS = 32  # people with more terms are in the last bin
VISIBLE = 4.0  # standard deviations from which on a bin counts


@dataclass(frozen=True)
class TermsAsked:
    """What is asked about terms.

    Parameters
    ----------
    vocabulary : tuple of str, optional
        None to find one.
    max_terms : int
        Maximum number of pairs of cluster and term that a person counts for.
    top : int
        Maximum number of terms to show per cluster.
    """

    vocabulary: tuple[str, ...] | None
    max_terms: int
    top: int

    @classmethod
    def of(cls, vocabulary: Any, max_terms: Any, top: Any) -> TermsAsked:
        """Check what a user asks for."""
        whole(10**6)("max_terms", max_terms)
        whole(10**6)("top", top)
        if isinstance(vocabulary, str) and vocabulary == PRIVATE:
            return cls(None, int(max_terms), int(top))
        if isinstance(vocabulary, str | bytes) or not isinstance(vocabulary, Sequence):
            raise ParameterError(f"`vocabulary` must be 'private' or a list of terms, got {vocabulary!r}")
        if not 0 < len(vocabulary) <= MOST_TERMS or len(set(vocabulary)) < len(vocabulary):
            raise ParameterError(f"`vocabulary` must be of 1 to {MOST_TERMS} distinct terms")
        if not all(map(is_term, vocabulary)):
            raise ParameterError(f"the terms of `vocabulary` must be texts of 1 to {LONGEST} characters")
        return cls(tuple(map(str, vocabulary)), int(max_terms), int(top))

    def plan(self, max_clusters: int) -> Plan:
        """Steps that `find_terms` asks.

        Examples
        --------
        >>> [step.name for step in TermsAsked.of("private", 16, 10).plan(1).steps]
        ['terms', 'terms per person', 'term counts']
        """
        sensitivity = term_counts_sensitivity(self.max_terms, max_clusters)
        first = Step(FOUND, FOUND_SHARE, sensitivity=terms_sensitivity(), threshold=True, joint=True)
        share = 1 - PER_PERSON_SHARE - (FOUND_SHARE if self.vocabulary is None else 0)
        others = (Step(PER_PERSON, PER_PERSON_SHARE), Step(COUNTS, share, sensitivity=sensitivity))
        return Plan(*([first] if self.vocabulary is None else []), *others)


def find_terms(asked: TermsAsked, max_clusters: int, curator: Questions) -> Terms:
    """Ask which terms are in use, if they are not public, and how many people of each cluster use each.

    Parameters
    ----------
    asked : TermsAsked
    max_clusters : int
        Maximum number of clusters that a person counts in.
    curator : Questions
        Its plan must have the steps of `TermsAsked.plan`.

    Privacy
    -------
    A sum of weights for each term that occurs, of which only those above a public threshold are released; a
    noisy histogram of people; and one table of noisy counts. The histogram decides how many terms a person
    counts for in the last, never more than the plan declares. Proof: docs/proofs/terms.md.
    """
    vocabulary = asked.vocabulary
    if vocabulary is None:
        noisy = curator.terms(FOUND)
        kept_terms = sorted(np.argsort(-noisy.weights, kind="stable")[:MOST_KEPT].tolist())
        vocabulary = tuple(noisy.terms[j] for j in kept_terms if is_term(noisy.terms[j]))
        if not vocabulary:
            warnings.warn(
                "no term was found: none is used by so many people that it stands out. Spend more, or give a "
                "`vocabulary` that is public",
                NoiseWarning,
                stacklevel=2,
            )
    per_person = curator.terms_per_person(PER_PERSON, vocabulary, MOST_BINS)
    noise = _noise_by_terms(curator.plan, asked.max_terms, max_clusters)
    max_terms, kept = best_max_terms(per_person, noise)
    noisy_counts = curator.term_counts(COUNTS, vocabulary, max_terms)
    values = noisy_counts.values
    return Terms(
        vocabulary,
        np.ascontiguousarray(values[:, :-1]),
        np.ascontiguousarray(values[:, -1]),
        noisy_counts.record.mechanism,
        noisy_counts.std,
        max_terms,
        kept,
        asked.top,
        asked.vocabulary is None,
    )


def best_max_terms(per_person: Noisy, noise: FloatArray) -> tuple[int, float]:
    """How many terms a person should count for, and which part of all uses then counts.

    Counting for more terms raises the counts, and the noise as well: the best number has the largest ratio.

    Parameters
    ----------
    per_person : Noisy
        People with 0, 1, ... terms.
    noise : float array of shape (n,)
        Standard deviation of the noise in each count if a person counts for 1, ..., n terms.
    """
    people = np.where(per_person.values > VISIBLE * per_person.std, per_person.values, 0)
    numbers = np.arange(len(people))
    uses = np.array([np.minimum(numbers, n) @ people for n in range(1, len(noise) + 1)], dtype=np.float64)
    best = int(np.argmax(uses / np.maximum(noise, 1e-9)))
    total = float(numbers @ people)
    return best + 1, float(uses[best] / total) if total else 1.0


def _noise_by_terms(plan: PricedPlan, max_terms: int, max_clusters: int) -> FloatArray:
    priced = plan[COUNTS]
    records = [priced.record(term_counts_sensitivity(n, max_clusters)) for n in range(1, max_terms + 1)]
    return np.array([record.noise_std for record in records])
