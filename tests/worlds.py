"""Small worlds that several tests open."""

from sfumato.curator import Curator
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms import Entropy


def curate(rows, domain, plan, seed=0):
    """Curator over rows in memory."""
    return Curator(MemoryEngine(rows, domain), domain, plan, Entropy(seed))
