"""How many cases run, how they are counted, and which errors are expected.

As part of the test suite each test runs a few cases, always the same. With ``SFUMATO_FUZZ_CASES`` set, all
tests together run so many, at random, each within limits of time and memory (`make fuzz`).
"""

import functools
import math
import os
import resource
import signal
import traceback
import warnings
from pathlib import Path

import pytest
import sklearn
from hypothesis import HealthCheck, Phase, given, settings
from sklearn.exceptions import NotFittedError

from sfumato.errors import GuaranteeWarning, NoiseWarning, SfumatoError

TOTAL = int(os.environ.get("SFUMATO_FUZZ_CASES", "0"))
N_SHARDS = 8 if TOTAL else 1  # of each test, for progress and for workers to share
MOST_SECONDS = 60  # of the processor, per case: what takes longer may never end
MOST_MEMORY = 6 * 2**30  # beyond what is mapped before the first case

completed = 0  # cases of the test that runs


def fuzz(*, few, share, **strategies):
    """A test of `few` cases, or of its share of a long run, in shards."""
    n_cases = math.ceil(TOTAL * share / N_SHARDS) if TOTAL else few
    chosen = settings(
        max_examples=n_cases,
        derandomize=not TOTAL,
        database=None,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

    def decorate(test):
        @functools.wraps(test)
        def run(*arguments, **keywords):
            global completed
            with limited_time():
                test(*arguments, **keywords)
            completed += 1

        return pytest.mark.parametrize("shard", range(N_SHARDS))(chosen(given(**strategies)(run)))

    return decorate


class limited_time:  # noqa: N801
    """Stop a case that takes long, in a long run: a busy machine must not fail the test suite."""

    def __enter__(self):
        if TOTAL:
            signal.signal(signal.SIGPROF, _give_up)
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)

    def __exit__(self, *_):
        if TOTAL:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _give_up(*_):
    raise TimeoutError(f"the case took more than {MOST_SECONDS} seconds of the processor")


def limit_memory():
    """Let a length in a damaged file fail rather than take the machine along."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MOST_MEMORY, resource.RLIM_INFINITY))


def attempt(call, *arguments, secrets=(), **keywords):
    """What a call returns, or None if it refuses in one of the ways that are documented.

    Neither its error, nor those behind it, nor its warnings may tell a secret.
    """
    found = error = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("error")
        warnings.simplefilter("always", GuaranteeWarning)
        warnings.simplefilter("always", NoiseWarning)
        warnings.filterwarnings("always", "X (does not have valid|has) feature names", UserWarning)
        try:
            found = call(*arguments, **keywords)
        except (SfumatoError, NotFittedError, TypeError) as refusal:
            if isinstance(refusal, TypeError) and not _is_of_sklearn(refusal):
                raise
            error = refusal
    texts = [str(warning.message) for warning in told]
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    for text in texts:
        assert not any(secret in text for secret in secrets), text
    return found


def _is_of_sklearn(error):
    """Whether scikit-learn itself refuses a table: a sparse matrix, for example."""
    raised = traceback.extract_tb(error.__traceback__)[-1].filename
    return Path(raised).is_relative_to(Path(sklearn.__file__).parent)
