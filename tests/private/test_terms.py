"""Terms of people: what one person changes, by brute force over small neighbours, and against slow twins."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from sfumato.domain.words import Words
from sfumato.private import terms as module
from sfumato.private.terms import (
    MOST_FOUND,
    RawTerms,
    counts_sensitivity,
    found_sensitivity,
    read_terms,
    term_counts,
    term_weights,
    terms_per_person,
    weight_of,
)

VOCABULARY = ("aa", "bb", "cc", "dd")
K = 3
WORDS = Words()


def raw_of(people):
    """Raw terms of a list of people, each with rows of cluster and text."""
    rows = [(who, cluster, text) for who, own in enumerate(people) for cluster, text in own]
    who, clusters = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    return read_terms([row[2] for row in rows], clusters, who, WORDS)


def weights_by_term(raw):
    places, weights = term_weights(raw)
    return {raw.terms[int(j)].as_py(): int(w) for j, w in zip(places, weights, strict=True)}


def people_with(n_rows):
    texts = ["", "aa", "aa bb", "bb cc dd", "zz yy", "ab ac ad ae"]
    return [list(rows) for rows in combinations_with_replacement(product(range(K), texts), n_rows)]


OTHERS = [
    [],
    [[(0, "aa bb"), (1, "cc")], [(2, "aa zz")]],
    [[(0, "bb cc dd ab"), (1, "bb dd"), (2, "dd ee")], [(1, "")], [(1, "a0 b0 c0 ab ac")]],
]


def norms(after, before):
    moved = after - before
    return (
        int(np.abs(moved).sum()),
        int((moved**2).sum()),
        int(np.count_nonzero(moved)),
        int(np.abs(moved).max()),
    )


@pytest.mark.parametrize("max_terms", [1, 2, 5])
@pytest.mark.parametrize("max_clusters", [1, 2])
def test_counts_move_by_no_more_than_declared_over_all_small_neighbours(max_terms, max_clusters):
    declared = counts_sensitivity(max_terms, max_clusters)
    reached = 0
    for others in OTHERS:
        before = term_counts(raw_of(others), VOCABULARY, K, max_terms, max_clusters)
        for person in [own for n in (1, 2) for own in people_with(n)] + [
            [(c, "aa bb cc dd") for c in range(K)]
        ]:
            after = term_counts(raw_of([*others, person]), VOCABULARY, K, max_terms, max_clusters)
            l1, l2_squared, entries, largest = norms(after, before)
            assert l1 <= declared.l1
            assert l2_squared <= declared.l2_squared
            assert entries <= declared.coordinates
            assert largest <= 1
            reached = max(reached, l1)
    assert reached == min(declared.l1, max_clusters * (1 + len(VOCABULARY)))  # not declared too large


def test_weights_move_by_no_more_than_declared(monkeypatch):
    monkeypatch.setattr(module, "MOST_FOUND", 3)
    declared = found_sensitivity()
    reached = 0
    for others in OTHERS:
        before = weights_by_term(raw_of(others))
        for person in [own for n in (1, 2) for own in people_with(n)]:
            after = weights_by_term(raw_of([*others, person]))
            names = sorted({*before, *after})
            l1, l2_squared, entries, _ = norms(
                *(np.array([found.get(name, 0) for name in names] or [0]) for found in (after, before))
            )
            assert l1 <= declared.l1
            assert l2_squared <= declared.l2_squared
            assert entries <= declared.coordinates
            reached = max(reached, l2_squared)
    assert reached == declared.l2_squared


def test_people_per_number_of_terms_move_by_one():
    for others in OTHERS:
        before = terms_per_person(raw_of(others), VOCABULARY, 2, 3)
        for person in people_with(2):
            after = terms_per_person(raw_of([*others, person]), VOCABULARY, 2, 3)
            assert norms(after, before)[:3] == (1, 1, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 7, MOST_FOUND])
def test_squares_of_weights_stay_within_the_sensitivity(n):
    declared = found_sensitivity()
    assert n * weight_of(n) ** 2 <= declared.l2_squared
    assert n * weight_of(n) <= declared.l1
    assert weight_of(n) <= declared.spread
    assert n * (weight_of(n) + 1) ** 2 > declared.l2_squared  # no smaller than needed


def test_what_others_count_for_does_not_depend_on_a_person():
    """A new person brings words that sort before, between and after those of the others."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(60)]
    people = [[(int(rng.integers(K)), " ".join(rng.choice(words, 50, replace=False)))] for _ in range(30)]
    newcomer = [[(0, "a0 w10a w29b zz " + " ".join(words[::7]))]]
    with_, without = raw_of([*people, *newcomer]), raw_of(people)
    own = raw_of(newcomer)
    total = weights_by_term(without)
    for term, weight in weights_by_term(own).items():
        total[term] = total.get(term, 0) + weight
    assert weights_by_term(with_) == total
    counts = [term_counts(raw, words, K, 5, 1) for raw in (with_, without, own)]
    assert (counts[0] == counts[1] + counts[2]).all()


def test_rows_order_and_repetition_do_not_matter():
    person = [(0, "aa bb"), (1, "bb cc"), (1, "cc dd")]
    wanted = term_counts(raw_of([person]), VOCABULARY, K, 2, 2)
    for other in (person[::-1], [*person, *person], [person[1], person[0], person[2], person[1]]):
        assert (term_counts(raw_of([other]), VOCABULARY, K, 2, 2) == wanted).all()


def test_against_a_slow_twin_without_caps():
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice([*VOCABULARY, "zz"], rng.integers(0, 5))) for _ in range(200)]
    clusters = rng.integers(-1, K, 200)
    found = term_counts(read_terms(texts, clusters, None, WORDS), VOCABULARY, K, 10, 1)
    twin = np.zeros((K, len(VOCABULARY) + 1), dtype=int)
    for text, cluster in zip(texts, clusters, strict=True):
        if cluster >= 0:
            twin[cluster] += [*(term in text.split() for term in VOCABULARY), 1]
    assert (found == twin).all()


def test_the_choice_among_terms_is_not_biased_to_early_ones():
    rng = np.random.default_rng(2)
    words = [f"w{i:02d}" for i in range(20)]
    texts = [" ".join([*words, f"own{rng.integers(10**9)}"]) for _ in range(4000)]
    raw = read_terms(texts, np.zeros(4000, dtype=np.int64), None, WORDS)
    counts = term_counts(raw, words, 1, 5, 1)[0, :-1]
    assert counts.sum() == 5 * 4000
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000 * 0.75)


def test_what_is_no_text_has_no_terms():
    def fails(text):
        if text == "bb":
            raise RuntimeError(text)
        return [text, 3, "x" * 99, "a\nb"]

    texts = ["aa", None, float("nan"), 7, b"aa", "bb"]
    raw = read_terms(texts, np.zeros(6, dtype=np.int64), None, fails)
    assert isinstance(raw, RawTerms)
    assert raw.terms.to_pylist() == ["aa"]
    assert term_counts(raw, ["aa"], 1, 3, 1).tolist() == [[1, 6]]


def test_nothing_gives_nothing():
    raw = read_terms([], np.zeros(0, dtype=np.int64), None, WORDS)
    assert term_counts(raw, VOCABULARY, K, 3, 1).tolist() == [[0] * 5] * 3
    assert weights_by_term(raw) == {}
    assert terms_per_person(raw, VOCABULARY, 1, 3).tolist() == [0, 0, 0, 0]
