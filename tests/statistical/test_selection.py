"""Selection against the exact law, with power, and the theorems of the proofs on exact laws."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.selection import exponential, permute_and_flip

N_DRAWS = 6000
PASS, FAIL = 1e-4, 1e-6
LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
CASES = [
    ([0, 1, 2, 3, 5], Fraction(1, 2)),
    ([-7, 11, 11, 4], Fraction(2, 9)),
    ([-(2**51), 2**51, 0], Fraction(1, 2**52)),
    ([LOWEST + 3, LOWEST, LOWEST + 1], Fraction(3, 5)),
    ([HIGHEST, HIGHEST - 10**9], Fraction(2, 10**9)),
]


def exponential_law(scores, rate):
    weights = np.exp([float(rate * (score - max(scores))) for score in scores])
    return weights / weights.sum()


def permute_and_flip_law(scores, rate):
    heads = np.exp([float(rate * (score - max(scores))) for score in scores])
    law = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for index in order:
            law[index] += reached * heads[index] / len(orders)
            reached *= 1 - heads[index]
    return law


LAWS = {exponential: exponential_law, permute_and_flip: permute_and_flip_law}
each_mechanism = pytest.mark.parametrize("mechanism", LAWS, ids=lambda mechanism: mechanism.__name__)


def p_value(mechanism, scores, rate, law, seed):
    entropy, array = Entropy(seed), np.array(scores, dtype=np.int64)
    chosen = [mechanism(array, rate, entropy) for _ in range(N_DRAWS)]
    return stats.chisquare(np.bincount(chosen, minlength=len(scores)), law * N_DRAWS).pvalue


@each_mechanism
@pytest.mark.parametrize(("scores", "rate"), CASES)
def test_law(mechanism, scores, rate):
    assert p_value(mechanism, scores, rate, LAWS[mechanism](scores, rate), seed=30) > PASS


@each_mechanism
@pytest.mark.parametrize(("scores", "rate"), [CASES[0], CASES[1], CASES[4]])
@pytest.mark.parametrize("factor", [Fraction(7, 10), Fraction(13, 10)], ids=str)
def test_wrong_rate_is_seen(mechanism, scores, rate, factor):
    law = LAWS[mechanism](scores, rate)
    assert p_value(mechanism, scores, factor * rate, law, seed=31) < FAIL


def neighbours(seed):
    """Yield random pairs of scores and a rate with rate * spread at most one."""
    generator = np.random.default_rng(seed)
    for _ in range(200):
        n, spread = generator.integers(2, 6), generator.integers(1, 9)
        scores = generator.integers(-20, 20, n)
        changed = scores + generator.integers(0, spread + 1, n) + generator.integers(-30, 30)
        yield [list(map(int, s)) for s in (scores, changed)], Fraction(1, int(spread))


@each_mechanism
def test_spread_bounds_epsilon(mechanism):
    for pair, rate in neighbours(seed=1):
        loss = np.log(LAWS[mechanism](pair[0], rate) / LAWS[mechanism](pair[1], rate))
        assert abs(loss).max() < 1 + 1e-9


def test_exponential_has_bounded_range_and_zcdp():
    for pair, rate in neighbours(seed=2):
        p, q = (exponential_law(scores, rate) for scores in pair)
        loss = np.log(p / q)
        assert np.ptp(loss) < 1 + 1e-9
        for order in (1.5, 2.0, 8.0, 64.0):
            renyi = np.log((np.exp(order * loss) * q).sum()) / (order - 1)
            assert renyi < order / 8 + 1e-9


def test_permute_and_flip_is_noisy_max_with_exponential_noise():
    scores, generator = np.array([0, 1, 2, 3, 5]), np.random.default_rng(3)
    noisy = scores + generator.exponential(2.0, (300_000, 5))
    counts = np.bincount(noisy.argmax(axis=1), minlength=5)
    law = permute_and_flip_law(scores.tolist(), Fraction(1, 2))
    assert stats.chisquare(counts, law * counts.sum()).pvalue > PASS


def test_permute_and_flip_is_never_worse_and_exceeds_the_bounded_range():
    for (scores, _), rate in neighbours(seed=4):
        assert permute_and_flip_law(scores, rate) @ scores > exponential_law(scores, rate) @ scores - 1e-9
    loss = np.log(permute_and_flip_law([0, 1], Fraction(1)) / permute_and_flip_law([0, 2], Fraction(1)))
    assert np.ptp(loss) > 1.1
