"""Audit of private terms: what only one person uses is shown with probability delta, and not much less.

Delta is large here, so that a few thousand runs can tell it from twice delta. Epsilon is large, too: a weight
of a few people then moves the probability a lot.
"""

from fractions import Fraction
from functools import cached_property
from math import exp

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.budget import Budget, calibrate
from sfumato.cluster.shared.terms import TermsAsked
from sfumato.curator.curator import Curator
from sfumato.domain import Domain
from sfumato.domain.words import Words
from sfumato.private import terms as counted
from sfumato.private.engines.terms import TermEngine
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.terms import WEIGHT_UNIT, read_terms

DELTA, N_RUNS = Fraction(1, 10), 2000
OWN_DELTA = float(DELTA) / 2  # of the threshold
SURE = 1e-6  # probability that a right program fails a test here
USUAL = ["usual"] * 400
RARE = {n: " ".join(f"rare{i}" for i in range(n)) for n in (1, 6, counted.MOST_FOUND, 100)}
DOMAIN = Domain.from_bounds((0, 1), 2)


class Counted(TermEngine):
    """Counts once, for many runs."""

    @cached_property
    def _weights(self):
        return super().weights()

    def weights(self):
        return self._weights

    @cached_property
    def _usual(self):
        return super().counts(["usual"], 4)

    def counts(self, vocabulary, max_terms):
        assert (vocabulary, max_terms) == (["usual"], 4)
        return self._usual


def curators(texts, epsilon, n_runs=N_RUNS):
    """Curators that may be asked for the terms of some texts, each of one person."""
    asked = TermsAsked.of("private", 4, 10)
    plan = calibrate(asked.plan(1), Budget(epsilon, DELTA))
    raw = read_terms(texts, np.zeros(len(texts), dtype=np.int64), None, Words())
    engine = Counted(2, 1, 1, lambda: raw)
    for _ in range(n_runs):
        yield Curator(engine, DOMAIN, plan, Entropy())


def n_with_rare(texts, epsilon=30):
    found = (curator.terms("terms").terms for curator in curators(texts, epsilon))
    return sum(any(term.startswith("rare") for term in terms) for terms in found)


@pytest.mark.parametrize("n_rare", RARE)
@pytest.mark.parametrize("epsilon", [1, 30])
def test_what_one_person_uses_is_shown_with_probability_delta_at_most(n_rare, epsilon):
    n_shown = n_with_rare([*USUAL, RARE[n_rare]], epsilon)
    assert binom.sf(n_shown - 1, N_RUNS, OWN_DELTA) > SURE


def test_the_threshold_is_not_much_larger_than_needed():
    """Of the numbers of terms that a person may have, one is shown about as often as delta allows."""
    n_shown = max(n_with_rare([*USUAL, text]) for text in RARE.values())
    assert binom.cdf(n_shown, N_RUNS, 0.6 * OWN_DELTA) > SURE


@pytest.mark.parametrize("wrong", [-3, 0])
def test_a_threshold_lowered_by_three_people_would_be_seen(monkeypatch, wrong):
    from sfumato.curator import curator as module

    right = module.common_threshold
    monkeypatch.setattr(module, "common_threshold", lambda *public: right(*public) + wrong * WEIGHT_UNIT)
    n_shown = max(n_with_rare([*USUAL, text]) for text in RARE.values())
    assert (binom.sf(n_shown - 1, N_RUNS, OWN_DELTA) < SURE) == (wrong < 0)


def test_a_person_who_counts_for_every_term_would_be_seen(monkeypatch):
    monkeypatch.setattr(counted, "_first", lambda people, hashes, numbers, most: np.arange(len(people)))
    monkeypatch.setattr(counted, "weight_of", lambda n: WEIGHT_UNIT * 5)
    monkeypatch.setattr(counted, "MOST_FOUND", 100)
    assert binom.sf(n_with_rare([*USUAL, RARE[100]]) - 1, N_RUNS, OWN_DELTA) < SURE


def test_terms_that_nobody_uses_are_never_shown():
    assert n_with_rare(USUAL) == 0


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_counts_of_neighbours_have_nearly_the_same_odds(epsilon):
    """Events on the counts, with and without one more person who uses the term."""
    n_above = [
        sum(c.term_counts("term counts", ["usual"], 4).values[0, 0] > 400 for c in curators(texts, epsilon))
        for texts in (USUAL, [*USUAL, "usual"])
    ]
    low, high = min(n_above) / N_RUNS, max(n_above) / N_RUNS
    error = 5 * np.sqrt(high * (1 - high) / N_RUNS) * (1 + exp(epsilon))
    assert high <= exp(epsilon) * low + float(DELTA) + error
    assert high > low
