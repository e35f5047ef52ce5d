import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.private.mechanisms import entropy as entropy_module
from sfumato.private.mechanisms.entropy import BitStream, Entropy
from sfumato.private.mechanisms.noise import discrete_laplace

FORK = """
import multiprocessing, os
from fractions import Fraction
from sfumato.private.mechanisms.noise import discrete_laplace
from sfumato.private.mechanisms.entropy import Entropy

entropy = Entropy()

def draw(_=None):
    return discrete_laplace(Fraction(2**40), 4, entropy).tolist()

draws = [draw()]
for _ in range(3):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(draw()).encode())
        os._exit(0)
    os.wait()
    draws.append(eval(os.read(read, 10_000)))
with multiprocessing.get_context("fork").Pool(2) as pool:
    draws += pool.map(draw, range(4))
draws.append(draw())
print(len({x for d in draws for x in d}))
"""


def test_forked_processes_never_share_words():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 4 * 9


def test_threads_and_copies_never_share_words():
    entropy = Entropy()
    sources = [entropy, copy.deepcopy(entropy), pickle.loads(pickle.dumps(entropy))] * 4
    with ThreadPoolExecutor(4) as pool:
        words = np.concatenate(list(pool.map(lambda source: source.words(1000), sources)))
    assert np.unique(words).size == words.size


def test_words_of_the_operating_system_use_every_bit():
    words = Entropy().words(4096)
    assert words.dtype == np.uint64
    ones = ((words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).sum(axis=0)
    assert (abs(ones.astype(np.int64) - 2048) < 10 * 32).all()


def test_seeded_words_are_one_stream_whatever_the_request_sizes():
    whole = Entropy(seed=7).words(100)
    entropy = Entropy(seed=7)
    parts = np.concatenate([entropy.words(n) for n in (1, 0, 60, 39)])
    np.testing.assert_array_equal(whole, parts)


def test_seeded_flag_and_repr():
    assert Entropy(seed=0).seeded
    assert not Entropy().seeded
    assert repr(Entropy(seed=12345)) == "Entropy(seeded)"


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_bad_seed(seed):
    with pytest.raises(ParameterError, match="`seed` must be"):
        Entropy(seed=seed)


def test_stream_keeps_unread_bits_on_refill():
    stream = BitStream(Entropy(seed=3))
    stream.refill(3 * 64 - 1)
    stream.cursor[0] = 64 + 10
    stream.refill(1)
    np.testing.assert_array_equal(stream.words, Entropy(seed=3).words(4)[1:])
    assert stream.cursor.tolist() == [10, 3 * 64]


def test_requests_are_bounded(monkeypatch):
    monkeypatch.setattr(entropy_module, "MAX_WORDS", 5)
    stream = BitStream(Entropy(seed=3))
    stream.refill(10**9)
    assert stream.words.size == 5


def test_consecutive_calls_on_one_seed_differ():
    entropy = Entropy(seed=1)
    first, second = (discrete_laplace(Fraction(2**40), 50, entropy) for _ in range(2))
    assert not (first == second).any()
