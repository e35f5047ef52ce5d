"""Small worlds that several tests open."""

import pytest

from sfumato.curator import Curator
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy


def curate(rows, domain, plan, seed=0):
    """Curator over rows in memory."""
    return Curator(MemoryEngine(rows, domain), domain, plan, Entropy(seed))


def rarely(*values):
    """Parameters of a test that only `make test-all` runs."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
