"""Count how many people use each term, in each cluster. Every text is read for itself.

A rule of a person's texts alone bounds how much that person counts for: a fixed public hash picks among the
clusters and terms of a person with too many. Proof: docs/proofs/terms.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.budget import Sensitivity
from sfumato.domain import IntArray
from sfumato.domain.words import Tokens, is_term
from sfumato.private.people import HashArray, spelling_hashes

Mask = NDArray[np.bool_]
WEIGHT_UNIT = 2**8  # weights are whole numbers of it
MOST_FOUND = 32  # terms that a person counts for when terms are found. Tuned: docs/notes/constants.md#terms
_BLOCK = 2**14  # texts that are split at a time


class RawTerms(NamedTuple):
    """Who uses which terms in which clusters. Raw: each person, cluster and term is listed once."""

    n_people: int
    members: IntArray  # (2, m): people and the clusters that they are in
    uses: IntArray  # (3, n): people, clusters and terms, as positions in `terms`
    terms: pa.Array  # (n_terms,); sorted, large_string


def found_sensitivity() -> Sensitivity:
    """Sensitivity of `term_weights` for a whole privacy unit."""
    return Sensitivity(
        l1=WEIGHT_UNIT * MOST_FOUND,
        l2_squared=WEIGHT_UNIT**2 * MOST_FOUND,
        spread=weight_of(1),
        coordinates=MOST_FOUND,
    )


def weight_of(n_terms: int) -> int:
    """Weight of each term of a person who counts for `n_terms`: their squares sum to the same for all."""
    return isqrt(WEIGHT_UNIT**2 * MOST_FOUND // n_terms)


# How many terms a person may count for when terms are found, and the weight of each then.
TERM_WEIGHTS = tuple((n, weight_of(n)) for n in range(MOST_FOUND, 0, -1))


def counts_sensitivity(max_terms: int, max_clusters: int) -> Sensitivity:
    """Sensitivity of `term_counts` for a whole privacy unit: each entry that changes does so by 1."""
    n_entries = max_terms + max_clusters
    return Sensitivity(l1=n_entries, l2_squared=n_entries, spread=1, coordinates=n_entries)


def read_terms(
    texts: Sequence[object], clusters: IntArray, people: IntArray | None, tokens: Tokens
) -> RawTerms:
    """Split texts into terms.

    Parameters
    ----------
    texts : sequence
        What is no text has no terms.
    clusters : int array of shape (n,)
        -1 for rows that do not count.
    people : int array of shape (n,), optional
        Number of each row's person, -1 for rows that do not count. By default each row is a person.
    tokens : callable
        Gives the terms of one text. A text on which it fails has none.
    """
    used = np.flatnonzero(clusters >= 0 if people is None else (clusters >= 0) & (people >= 0))
    owners = used if people is None else people[used]
    names, codes = np.unique(owners, return_inverse=True)
    rows, words = [np.zeros(0, dtype=np.int64)], [pa.array([], pa.large_string())]
    for start in range(0, len(used), _BLOCK):
        block = [_terms_of(tokens, texts[i]) for i in used[start : start + _BLOCK].tolist()]
        rows.append(start + np.repeat(np.arange(len(block)), [len(terms) for terms in block]))
        words.append(pa.array([term for terms in block for term in terms], pa.large_string()))
    encoded = pa.concat_arrays(words).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
    ranks = np.argsort(order)
    at = np.concatenate(rows)
    uses = np.stack([codes[at], clusters[used][at], ranks[encoded.indices.to_numpy()]])
    members = np.stack([codes, clusters[used]])
    terms = encoded.dictionary.take(pa.array(order))
    return RawTerms(len(names), _distinct(members), _distinct(uses), terms)


def term_weights(raw: RawTerms) -> tuple[IntArray, IntArray]:
    """Terms that occur, as positions, and the sum of the weights of their people. Raw, before noise."""
    pairs = _distinct(raw.uses[[0, 2]])
    hashes = _hashes(raw, pairs[0], spelling_hashes(raw.terms)[pairs[1]])
    kept = pairs[:, _first(pairs[0], hashes, pairs[1], MOST_FOUND)]
    n_terms = np.bincount(kept[0], minlength=raw.n_people)
    by_number = np.array([0, *(weight_of(n) for n in range(1, MOST_FOUND + 1))])
    weights = np.zeros(len(raw.terms), dtype=np.int64)
    np.add.at(weights, kept[1], by_number[n_terms[kept[0]]])
    occurring = np.flatnonzero(weights)
    return occurring, weights[occurring]


def terms_per_person(raw: RawTerms, vocabulary: Iterable[str], max_clusters: int, most: int) -> IntArray:
    """How many people have 0, 1, ..., `most` or more of the terms, over their clusters. Raw, before noise."""
    uses = _uses_of(raw, vocabulary, kept_members(raw, max_clusters))
    numbers = np.bincount(uses[0], minlength=raw.n_people)
    return np.bincount(np.minimum(numbers, most), minlength=most + 1).astype(np.int64)


def term_counts(
    raw: RawTerms, vocabulary: Sequence[str], n_clusters: int, max_terms: int, max_clusters: int
) -> IntArray:
    """How many people of each cluster use each term, and how many are in it. Raw, before noise.

    Returns
    -------
    int array of shape (n_clusters, n_vocabulary + 1)
        The last column counts the people of each cluster.
    """
    members = kept_members(raw, max_clusters)
    uses = _uses_of(raw, vocabulary, members)
    # Places in the public vocabulary; those in `raw.terms` would depend on other people.
    hashes = _hashes(raw, uses[0], *uses[1:].astype(np.uint64))
    kept = uses[:, _first(uses[0], hashes, uses[2], max_terms)]
    counts = np.zeros((n_clusters, len(vocabulary) + 1), dtype=np.int64)
    np.add.at(counts, (kept[1], kept[2]), 1)
    np.add.at(counts, (members[1], -1), 1)
    return counts


def kept_members(raw: RawTerms, max_clusters: int) -> IntArray:
    """People and their clusters, at most `max_clusters` of each person."""
    people, clusters = raw.members
    hashes = _hashes(raw, people, clusters.astype(np.uint64))
    return raw.members[:, _first(people, hashes, clusters, max_clusters)]


def _uses_of(raw: RawTerms, vocabulary: Iterable[str], members: IntArray) -> IntArray:
    """People, clusters and terms as positions in the vocabulary, in clusters where the person counts."""
    wanted = pa.array(list(vocabulary), pa.large_string())
    places = pc.index_in(raw.terms, wanted).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    people, clusters, terms = raw.uses
    stride = 1 + int(max(members[1].max(initial=0), clusters.max(initial=0)))
    counts = np.isin(people * stride + clusters, members[0] * stride + members[1])
    used = counts & (places[terms] >= 0)
    return np.stack([people[used], clusters[used], places[terms[used]]])


def _terms_of(tokens: Tokens, text: object) -> list[str]:
    """Distinct terms of a text. The rule is the same for every text, and looks at no other."""
    if not isinstance(text, str):
        return []
    try:
        return list({term for term in tokens(text) if is_term(term)})
    except Exception:  # an error would tell about the text
        return []


def _distinct(entries: IntArray) -> IntArray:
    """Distinct columns, in order of the first row, then the second, ..."""
    order = np.lexsort(entries[::-1])
    ordered = entries[:, order]
    is_new = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))[: len(order)]
    return np.ascontiguousarray(ordered[:, is_new])


def _hashes(raw: RawTerms, people: IntArray, *entries: HashArray) -> HashArray:
    """Public hash of each entry and of all that its person uses, by how terms are spelled."""
    seeds = np.zeros(raw.n_people, dtype=np.uint64)
    own = spelling_hashes(raw.terms)[raw.uses[2]]
    np.add.at(seeds, raw.uses[0], _mixed(own + raw.uses[1].astype(np.uint64)))
    found = _mixed(seeds[people])
    for words in entries:
        found = _mixed(found + words)
    return found


def _first(people: IntArray, hashes: HashArray, numbers: IntArray, most: int) -> IntArray:
    """Positions of the `most` entries of smallest hash of each person. Ties are broken by the entry."""
    order = np.lexsort((numbers, hashes, people))
    ordered = people[order]
    starts = np.append(True, ordered[1:] != ordered[:-1])[: len(order)]
    places = np.arange(len(order))
    first = np.maximum.accumulate(np.where(starts, places, 0)) if len(order) else places
    return order[places - first < most]


def _mixed(words: HashArray) -> HashArray:
    # SplitMix64, as in `people`; arrays wrap around.
    bits = words + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: HashArray = bits ^ (bits >> np.uint64(31))
    return found
