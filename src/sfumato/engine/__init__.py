"""Where rows live. An engine has one method, ``fold(aggregate)``, and nothing else leaves it."""

from sfumato.engine.base import Engine
from sfumato.engine.memory import MemoryEngine

__all__ = ["Engine", "MemoryEngine"]
