"""Errors and warnings of sfumato. Messages repeat parameters, never data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SfumatoError(Exception):
    """Base class of every error that sfumato raises on purpose."""


class ParameterError(SfumatoError, ValueError):
    """A public parameter (bounds, budget, number of clusters, ...) is invalid."""


class DataError(SfumatoError, ValueError):
    """The table does not have the declared shape or type. The message never names a value or a row."""


class PlanError(SfumatoError, RuntimeError):
    """A step was asked that the plan does not declare, or more often than declared."""


class BudgetExceededError(SfumatoError, RuntimeError):
    """A charge asks for more than the remaining budget."""


class LedgerError(SfumatoError, RuntimeError):
    """The ledger file cannot be read or written, or does not know the data set."""


class ReleaseError(SfumatoError, ValueError):
    """A release file is truncated, altered, or of an unknown version."""


class GuaranteeWarning(UserWarning):
    """A parameter is valid, but its guarantee is weak. Depends on public numbers only."""


class NoiseWarning(UserWarning):
    """The noise hides what was to be found, bounds or levels. Depends on released values only."""


class LedgerWarning(UserWarning):
    """A run was charged and released, but the ledger could not record the outcome."""


@contextmanager
def told_if_interrupted(note: Callable[[], str]) -> Iterator[None]:
    """Add a note about what is spent to an interrupt, such as Ctrl-C, on its way to the caller."""
    try:
        yield
    except Exception:
        raise
    except BaseException as interrupt:
        interrupt.add_note(note())
        raise
