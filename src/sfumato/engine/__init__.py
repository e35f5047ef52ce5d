"""Where rows live. An engine has one method, ``fold(aggregate)``, and nothing else leaves it."""

from sfumato.engine.base import Engine
from sfumato.engine.memory import MemoryEngine
from sfumato.engine.spark import labelled
from sfumato.engine.tables import (
    blocks_of,
    check_types,
    column_names,
    held,
    is_outside,
    open_engine,
    open_people_engine,
)

__all__ = [
    "Engine",
    "MemoryEngine",
    "blocks_of",
    "check_types",
    "column_names",
    "held",
    "is_outside",
    "labelled",
    "open_engine",
    "open_people_engine",
]
