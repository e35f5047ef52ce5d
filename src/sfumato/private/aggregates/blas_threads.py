"""Engines fold on threads of their own, so a matrix product within a fold must not start more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_n_inside = 0
_limits: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep matrix products of the whole process to one thread each, until the last caller leaves."""
    global _n_inside, _limits
    with _lock:
        if _n_inside == 0:
            _limits = _controller().limit(limits=1, user_api="blas")
        _n_inside += 1
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limits.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds
