"""Errors and warnings of sfumato. Messages echo parameters and never data."""

# scikit-learn quotes values and the number of rows in some of its messages: only these pass as they are.
_HARMLESS = ("X has ", "The feature names should match", "Found array with dim")
_REFUSALS = {
    "contains NaN": "must have no missing values, got NaN somewhere: drop or fill them",
    "contains infinity": "must be finite, got infinity or a number beyond 64-bit floats somewhere",
    "Complex data": "must hold real numbers. Complex data not supported",
    "2D array": "must have two dimensions. Reshape your data: X.reshape(-1, 1) makes one column",
    "0 feature(s)": "must have at least one column",
}


class SfumatoError(Exception):
    """Base class of every error that sfumato raises on purpose."""


class ParameterError(SfumatoError, ValueError):
    """A public parameter (bounds, budget, number of clusters, ...) is not usable."""


class DataError(SfumatoError, ValueError):
    """The table is not of the declared shape or type. The message never names a value or a row."""


class PlanError(SfumatoError, RuntimeError):
    """A step was asked that the plan does not declare, or asked more often than declared."""


class BudgetExceededError(SfumatoError, RuntimeError):
    """A charge asks for more than is left of a budget."""


class LedgerError(SfumatoError, RuntimeError):
    """The ledger file cannot be read or written, or does not know the data set."""


class ReleaseError(SfumatoError, ValueError):
    """A release file is truncated, altered, or of an unknown version."""


class GuaranteeWarning(UserWarning):
    """A parameter is usable, but the guarantee that comes with it is weak. Depends on public numbers only."""


class LedgerWarning(UserWarning):
    """A run was charged and released, but the ledger could not note that it was."""


def without_data(problem: str, name: str) -> str:
    """What scikit-learn says about a table, without what it quotes from it."""
    if problem.startswith(_HARMLESS):
        return problem.replace("X has ", f"{name} has ", 1)
    for sign, answer in _REFUSALS.items():
        if sign in problem:
            return f"`{name}` {answer}"
    return f"`{name}` must be a table of numbers: drop or encode the other columns"
