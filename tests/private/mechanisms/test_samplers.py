"""The kernels against exhaustive enumeration of bit strings and against a slow twin in Fractions."""

import itertools
import json
import math
import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numba
import numpy as np
import pytest

from sfumato.private.mechanisms import entropy as entropy_module
from sfumato.private.mechanisms import samplers
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.laws import BORDER_BITS, binomial_table, gaussian_table, laplace_table
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace, drawn
from sfumato.private.mechanisms.selection import exponential, permute_and_flip

SCALES = [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(10), Fraction(2**35 + 1), Fraction(2**52, 3)]
SCORES = np.array([3, -4, 0, 3, 7, 6], dtype=np.int64)


class Twin:
    """The same laws from the same bits, with Fractions and without concern for speed."""

    def __init__(self, seed):
        self.entropy = Entropy(seed)
        self.bits = iter(())

    def take(self, n):
        return sum(self.bit() << place for place in range(n))

    def bit(self):
        for bit in self.bits:
            return bit
        word = int(self.entropy.words(1)[0])
        self.bits = iter([word >> place & 1 for place in range(64)])
        return next(self.bits)

    def uniform(self, n):
        n_bits = (n - 1).bit_length()
        size, value = 2**n_bits, self.take(n_bits)
        while value >= n:
            size, value = size - n, value - n
            while size < n:
                size, value = 2 * size, 2 * value + self.bit()
        return value

    def bernoulli(self, p):
        low, width = Fraction(0), Fraction(1)
        while low < p < low + width:
            width /= 2
            low += self.bit() * width
        return low < p

    def exp_small(self, *factors):
        k = 1
        while all(self.bernoulli(p) for p in (*factors, Fraction(1, k))):
            k += 1
        return k % 2 == 1

    def exp(self, gamma):
        return all(self.exp_small(Fraction(1)) for _ in range(math.floor(gamma))) and self.exp_small(
            gamma % 1
        )

    def exp_product(self, u, v):
        i, j = math.floor(u), math.floor(v)
        trials = [(Fraction(1),)] * (i * j) + [(v % 1,)] * i + [(u % 1,)] * j + [(u % 1, v % 1)]
        return all(self.exp_small(*factors) for factors in trials)

    def geometric(self, t, s):
        while True:
            low = self.uniform(t)
            if self.exp_small(Fraction(low, t)):
                high = 0
                while self.exp_small(Fraction(1)):
                    high += 1
                return (low + t * high) // s

    def laplace(self, scale):
        while True:
            magnitude, negative = self.geometric(scale.numerator, scale.denominator), self.bit()
            if not (negative and magnitude == 0):
                return -magnitude if negative else magnitude

    def gaussian(self, sigma):
        while True:
            value = self.laplace(sigma)
            u = abs(abs(value) / sigma - 1)
            if self.exp_product(u, u / 2):
                return value

    def gaussian_tail(self, a, b, s, peak):
        value = self.geometric(a, s)
        u = abs(Fraction(value * b - peak, a))
        return value if self.exp_product(u, u / 2) else -1

    def table(self, first, borders):
        """Borders as Fractions: bits are read until the interval in which the number lies holds none."""
        low, width = Fraction(0), Fraction(1)
        while width > Fraction(1, 2**BORDER_BITS) and any(low < border < low + width for border in borders):
            width /= 2**16
            low += self.take(16) * width
        return first + sum(border <= low for border in borders)

    def cells(self, blocks, n_bits):
        found = []
        for block in sorted(set(blocks)):
            chosen = set()
            while len(chosen) < blocks.count(block):
                chosen.add(block * 2**n_bits + self.take(n_bits))
            found += sorted(chosen)
        return found

    def exponential(self, scores, rate):
        while True:
            index = self.uniform(len(scores))
            if self.exp(rate * (max(scores) - scores[index])):
                return index

    def permute_and_flip(self, scores, rate):
        left = list(range(len(scores)))
        while True:
            other = self.uniform(len(left))
            if self.exp(rate * (max(scores) - scores[left[other]])):
                return left[other]
            left[other], left[0] = left[0], left[other]
            left.pop(0)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_noise_equals_twin(scale):
    for mechanism, law in ((discrete_laplace, "laplace"), (discrete_gaussian, "gaussian")):
        twin = Twin(seed=11)
        expected = [getattr(twin, law)(scale) for _ in range(60)]
        assert mechanism(scale, 60, Entropy(seed=11)).tolist() == expected


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_tails_equal_twin(scale):
    a, b = scale.as_integer_ratio()
    for kernel, law, arguments in (
        (samplers.fill_geometric, "geometric", (a, b)),
        (samplers.fill_gaussian_tail, "gaussian_tail", (a, b, 3 * b, a - a // 3)),
        (samplers.fill_gaussian_tail, "gaussian_tail", (a, b, 2**62, a)),
    ):
        twin = Twin(seed=12)
        expected = [getattr(twin, law)(*arguments) for _ in range(80)]
        assert drawn(kernel, 80, Entropy(seed=12), 20, *arguments).tolist() == expected


TABLES = {
    "laplace": laplace_table(Fraction(2, 3)),
    "gaussian": gaussian_table(Fraction(9)),
    "binomial": binomial_table(2**40, Decimal(2) ** -40),
    "one value": laplace_table(Fraction(1, 2**52)),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_equal_twin(name):
    table = TABLES[name]
    values = [int.from_bytes(border.astype(">u2").tobytes()) for border in table.borders]
    borders = [Fraction(value, 2**BORDER_BITS) for value in values]
    twin = Twin(seed=13)
    expected = [twin.table(table.first, borders) for _ in range(100)]
    assert drawn(samplers.fill_table, 100, Entropy(seed=13), 16, *table).tolist() == expected


BLOCKS = [0, 0, 0, 3, 4, 4, 4, 4, 9, 2**20, 2**20]


@pytest.mark.parametrize("n_bits", [2, 3, 20, 41])
def test_cells_equal_twin(n_bits):
    for seed in range(30):
        cells = drawn(samplers.fill_cells, len(BLOCKS), Entropy(seed), n_bits, np.array(BLOCKS), n_bits)
        assert cells.tolist() == Twin(seed).cells(BLOCKS, n_bits)
        assert (np.diff(cells) > 0).all()
        assert (cells >> n_bits).tolist() == BLOCKS


def test_merging_equals_a_dictionary():
    rng = np.random.default_rng(0)
    for _ in range(50):
        (a, b), threshold = rng.integers(0, 12, size=2), int(rng.integers(-5, 5))
        lists = [(np.sort(rng.choice(15, n, replace=False)), rng.integers(-9, 9, n)) for n in (a, b)]
        one, other = (dict(zip(*map(np.ndarray.tolist, pair), strict=True)) for pair in lists)
        out = np.empty((2, a + b), dtype=np.int64)
        n = samplers.merge_above(*lists[0], *lists[1], threshold, out)
        expected = {cell: count for cell, count in sorted({**other, **one}.items()) if count >= threshold}
        assert dict(zip(*out[:, :n].tolist(), strict=True)) == expected
        assert out[0, :n].tolist() == list(expected)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 7), Fraction(5, 2)], ids=str)
def test_selection_equals_twin(rate):
    for mechanism, law in ((exponential, "exponential"), (permute_and_flip, "permute_and_flip")):
        fast = [mechanism(SCORES, rate, Entropy(seed)) for seed in range(50)]
        slow = [getattr(Twin(seed), law)(SCORES.tolist(), rate) for seed in range(50)]
        assert fast == slow


@cache
def compiled(kernel):
    """A kernel that only kernels call, for Python."""
    return numba.njit(kernel)


def all_outcomes(n_bits, kernel, *arguments):
    """Run a kernel on every string of n_bits; return its outcomes and how many strings were too short."""
    outcomes, n_short, run = {}, 0, compiled(kernel)
    for string in range(2**n_bits):
        cursor = np.array([0, n_bits], dtype=np.int64)
        value = int(run(np.array([string], dtype=np.uint64), cursor, *arguments))
        if cursor[0] > n_bits:
            n_short += 1
        else:
            outcomes[value] = outcomes.get(value, 0) + 1
    return outcomes, n_short


def assert_brackets(p, count, n_short, n_bits):
    # The strings that end in this outcome, without and with the undecided ones, bracket its probability.
    assert count <= p * 2**n_bits + 1e-6
    assert p * 2**n_bits <= count + n_short + 1e-6


GAPS = [
    ((np.uint64(7), 3, 5), math.exp(-21 / 5)),
    ((np.uint64(2**52 + 2**50), 1, 2**52), math.exp(-5 / 4)),
    ((np.uint64(2**64 - 1), 0, 1), 1.0),
    ((np.uint64(2**64 - 1), 2**31, 1), 0.0),
    ((np.uint64(2**64 - 1), 1, 2**52), 0.0),
    ((np.uint64(2**31 - 2), 2**31 - 1, 2**31 - 3), 0.0),
    ((np.uint64(1), 2**31 - 1, 2**31 - 3), math.exp(-(2**31 - 1) / (2**31 - 3))),
]


@pytest.mark.parametrize(
    ("kernel", "arguments", "p"),
    [
        *[(samplers.bernoulli, (a, 6), a / 6) for a in range(7)],
        *[(samplers.bernoulli_exp_fraction, (a, 5), math.exp(-a / 5)) for a in range(6)],
        (samplers.bernoulli_exp, (2, 1, 3), math.exp(-7 / 3)),
        (samplers.bernoulli_exp_product, (2, 3, 3, 4), math.exp(-1 / 2)),
        (samplers.bernoulli_exp_product, (5, 4, 7, 3), math.exp(-35 / 12)),
        *[(samplers.accept_gap, arguments, p) for arguments, p in GAPS],
    ],
)
def test_bernoulli_probabilities_are_bracketed_by_enumeration(kernel, arguments, p):
    outcomes, n_short = all_outcomes(12, kernel, *arguments)
    assert n_short < 2**12 / 8
    assert_brackets(p, outcomes.get(1, 0), n_short, 12)
    assert_brackets(1 - p, outcomes.get(0, 0), n_short, 12)


@pytest.mark.parametrize("n", [1, 2, 5, 7, 8, 9, 11])
def test_uniform_integers_are_equally_frequent(n):
    outcomes, n_short = all_outcomes(12, samplers.uniform, n)
    assert n_short < n
    assert sorted(outcomes) == list(range(n))
    assert len(set(outcomes.values())) == 1


@pytest.mark.parametrize(
    ("kernel", "weight"),
    [
        (samplers.laplace, lambda x: math.exp(-abs(x) / 2)),
        (samplers.gaussian, lambda x: math.exp(-x * x / 8)),
    ],
    ids=["laplace", "gaussian"],
)
def test_noise_probabilities_are_bracketed_by_enumeration(kernel, weight):
    n_bits = 18
    outcomes, n_short = all_outcomes(n_bits, kernel, 2, 1)
    total = sum(weight(x) for x in range(-200, 201))
    assert n_short < 2**n_bits / 2
    for x in range(-8, 9):
        assert_brackets(weight(x) / total, outcomes.get(x, 0), n_short, n_bits)
    assert all(outcomes[x] == outcomes[-x] for x in range(1, 5))


@pytest.mark.parametrize("most", [1, 2, 7])
def test_refill_size_does_not_matter(monkeypatch, most):
    scores, rate = np.arange(5000, dtype=np.int64), Fraction(1, 500)

    def draw():
        return (
            discrete_laplace(Fraction(2**35 + 1), 300, Entropy(seed=5)).tolist(),
            discrete_gaussian(Fraction(5, 2), 300, Entropy(seed=5)).tolist(),
            [exponential(scores, rate, Entropy(seed)) for seed in range(30)],
            [permute_and_flip(scores, rate, Entropy(seed)) for seed in range(30)],
            drawn(samplers.fill_table, 20_000, Entropy(seed=5), 16, *TABLES["gaussian"]).tolist(),
            drawn(samplers.fill_geometric, 300, Entropy(seed=5), 9, 7, 2).tolist(),
            drawn(samplers.fill_gaussian_tail, 300, Entropy(seed=5), 9, 7, 2, 4, 3).tolist(),
            drawn(samplers.fill_cells, len(BLOCKS), Entropy(seed=5), 40, np.array(BLOCKS), 40).tolist(),
        )

    big = draw()
    monkeypatch.setattr(entropy_module, "MAX_WORDS", most)
    assert draw() == big


def test_take_reads_across_words():
    words = Entropy(seed=2).words(8)
    string = sum(int(word) << 64 * index for index, word in enumerate(words))
    cursor = np.array([0, 512], dtype=np.int64)
    position = 0
    for n_bits in itertools.islice(itertools.cycle([1, 62, 0, 13, 50]), 18):
        assert compiled(samplers.take)(words, cursor, n_bits) == string >> position & (2**n_bits - 1)
        position += n_bits
    assert cursor[0] == position <= 512


WITHOUT_JIT = """
import json
from fractions import Fraction
import numpy as np
from sfumato.private.mechanisms import samplers
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.sparse_histogram import sparse_histogram
from sfumato.private.mechanisms.selection import exponential, permute_and_flip
from sfumato.private.mechanisms.noise import drawn
from sfumato.private.mechanisms.laws import gaussian_table, laplace_table

def draws():
    yield drawn(samplers.fill_table, 5000, Entropy(seed=9), 16, *laplace_table(Fraction(3))).tolist()
    yield drawn(samplers.fill_table, 5000, Entropy(seed=9), 16, *gaussian_table(Fraction(7, 2))).tolist()
    raw = np.array([3, 299]), np.array([9, 20])
    for mechanism, n_cells, threshold in (
        ("discrete Laplace", 2**62, 100),
        ("discrete Laplace", 300, 3),
        ("discrete Gaussian", 2**62, 21),
        ("discrete Gaussian", 300, 2),
    ):
        found = sparse_histogram(*raw, n_cells, mechanism, Fraction(5, 2), threshold, Entropy(seed=9))
        yield [array.tolist() for array in found]
    for scale in (Fraction(5, 2), Fraction(2**52, 3), Fraction(1, 2**52)):
        yield discrete_laplace(scale, 40, Entropy(seed=9)).tolist()
        yield discrete_gaussian(scale, 40, Entropy(seed=9)).tolist()
    extreme = np.iinfo(np.int64)
    for scores in ([0, 4, 4, 3, 1], [extreme.min, 0, extreme.max], [-(2**50), 2**50, 2**50]):
        for mechanism in (exponential, permute_and_flip):
            for rate in (Fraction(1, 2), Fraction(1, 2**52), Fraction(2**31, 3)):
                yield [mechanism(np.array(scores), rate, Entropy(seed)) for seed in range(5)]
"""


def test_same_draws_with_jit_off():
    names = {}
    exec(WITHOUT_JIT, names)
    script = WITHOUT_JIT + "\nprint(json.dumps(list(draws())))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == list(names["draws"]())
