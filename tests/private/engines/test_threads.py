"""Threads of a fold: results in order, errors, and interrupts at any moment."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from sfumato.private.engines.threads import on_threads

LONGEST = 60  # seconds, after which a test fails instead of waiting
SOON = 0.5  # seconds, after which the main thread surely waits

# Interrupts folds at random moments. A lock left behind makes the next fold wait for ever.
INTERRUPTED = """
import random, signal, sys
from sfumato.private.engines.threads import on_threads

drawn = random.Random(int(sys.argv[1]))
signal.signal(signal.SIGALRM, signal.default_int_handler)
n_interrupted = 0

# Apart from the `try`, which in Python 3.14 misses an interrupt at the jump back of a loop inside it.
def fold_for_ever():
    while True:
        assert on_threads([lambda: 1, lambda: 2]) == [1, 2]

for _ in range(1000):
    try:
        signal.setitimer(signal.ITIMER_REAL, drawn.uniform(1e-5, 2e-3))
        fold_for_ever()
    except KeyboardInterrupt:
        n_interrupted += 1
print(n_interrupted)
"""


def test_results_in_order():
    first_may_end = threading.Event()

    def first():
        first_may_end.wait(LONGEST)
        return "first"

    def second():
        first_may_end.set()
        return "second"

    assert on_threads([first, second]) == ["first", "second"]


def test_the_first_error_in_order_is_raised():
    def fail(error):
        raise error

    with pytest.raises(ValueError, match="one"):
        on_threads([lambda: 0, lambda: fail(ValueError("one")), lambda: fail(KeyError("two"))])


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the process was started with it ignored, as shells do in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_stops_and_waits(interruptible):
    stopped, ended = threading.Event(), []

    def work():
        time.sleep(SOON)
        os.kill(os.getpid(), signal.SIGINT)
        ended.append(stopped.wait(LONGEST))

    with pytest.raises(KeyboardInterrupt):
        on_threads([work], stop=stopped.set)
    assert ended == [True]


@pytest.mark.parametrize("seed", [0, 1])
def test_interrupts_at_any_moment(seed):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(seed)], capture_output=True, text=True, timeout=LONGEST
    )
    assert done.stdout == "1000\n", done.stderr
