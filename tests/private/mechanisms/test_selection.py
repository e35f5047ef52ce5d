from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.selection import exponential, permute_and_flip

MECHANISMS = [exponential, permute_and_flip]
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("score", [LOWEST, 0, HIGHEST])
def test_one_candidate(mechanism, score):
    assert mechanism(np.array([score]), Fraction(3, 2), Entropy()) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rate", [Fraction(1, 2**52), Fraction(1), Fraction(2**31)], ids=str)
def test_extreme_scores_choose_the_best(mechanism, rate):
    scores = np.array([LOWEST, LOWEST + 1, -1, 0, HIGHEST, LOWEST])
    for seed in range(50):
        assert mechanism(scores, rate, Entropy(seed)) == 4


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("score", [LOWEST, HIGHEST])
def test_equal_scores_choose_everyone(mechanism, score):
    chosen = {mechanism(np.full(4, score), Fraction(2**31), Entropy(seed)) for seed in range(100)}
    assert chosen == {0, 1, 2, 3}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_rate_zero_ignores_scores(mechanism):
    scores = np.array([LOWEST, 0, HIGHEST])
    chosen = {mechanism(scores, Fraction(0), Entropy(seed)) for seed in range(100)}
    assert chosen == {0, 1, 2}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_one_good_candidate_among_many(mechanism):
    scores = np.zeros(100_000, dtype=np.int64)
    scores[31_415] = 10**6
    assert mechanism(scores, Fraction(1), Entropy(seed=0)) == 31_415


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scores_are_not_changed_and_may_be_strided(mechanism):
    scores = np.arange(20, dtype=np.int64)
    before = scores.copy()
    scores.flags.writeable = False
    every_other = mechanism(scores[::2], Fraction(1, 3), Entropy(seed=8))
    assert every_other == mechanism(before[::2].copy(), Fraction(1, 3), Entropy(seed=8))
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "scores",
    [np.array([], dtype=np.int64), np.array([1.0]), np.array([[1]]), np.array([1], dtype=np.uint64), [1]],
)
def test_bad_scores(mechanism, scores):
    with pytest.raises(ParameterError, match="`scores` must be"):
        mechanism(scores, Fraction(1), Entropy())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "rate",
    [Fraction(-1), 0.5, Fraction(2**31 + 1), Fraction(1, 2**52 + 1), Fraction(2**31 - 1, 2**32)],
    ids=str,
)
def test_bad_rate(mechanism, rate):
    with pytest.raises(ParameterError, match="`rate` must be"):
        mechanism(np.array([1, 2]), rate, Entropy())
