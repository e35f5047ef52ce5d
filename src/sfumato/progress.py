"""Progress of a long fit. It reports shares of the work, never numbers of rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_step: ContextVar[str] = ContextVar("step", default="")


@contextmanager
def progress(listener: Listener | None = None) -> Iterator[None]:
    """Follow the fits inside a ``with`` block.

    Parameters
    ----------
    listener : callable, optional
        Called with the name of the current step and the share of its data already read, from 0 to 1. Engines
        that read files report as they go, others at the start and the end. By default, prints a line to the
        terminal.

    Examples
    --------
    >>> from sfumato import GridKMeans, progress
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(2000, n_clusters=4, n_features=2, random_state=0)
    >>> steps = []
    >>> with progress(lambda step, share: steps.append((step, share))):
    ...     model = GridKMeans(n_clusters=4, bounds=(-1, 1), random_state=0).fit(X)
    >>> steps
    [('rows', 0.0), ('rows', 1.0), ('grid', 0.0), ('grid', 1.0)]
    """
    token = _listener.set(listener or _show)
    try:
        yield
    finally:
        _listener.reset(token)


def begin(step: str) -> None:
    """Announce the step that begins."""
    _step.set(step)
    reporter()(0.0)


def reporter() -> Callable[[float], None]:
    """Function to call with the finished share of the current step, from any thread."""
    listener, step = _listener.get(), _step.get()
    return (lambda share: listener(step, share)) if listener else (lambda share: None)


def _show(step: str, share: float) -> None:
    end = "\n" if share >= 1 else ""
    sys.stderr.write(f"\r{step}: {share:4.0%}{end}")
    sys.stderr.flush()
