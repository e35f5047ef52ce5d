"""Tables as the curator holds them: what is public about each can be read, its rows cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from sfumato.budget import PricedPlan
from sfumato.curator.curator import Curator
from sfumato.domain import ALL_ROWS, Domain, Unit
from sfumato.domain.arrays import checked
from sfumato.domain.columns import Columns, Missing, check_names, names_columns, read_bounds
from sfumato.private.engines.base import Engine
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms import Entropy
from sfumato.private.reading import complete_rows
from sfumato.private.sources import Source, is_outside, open_source

# Kept as they are: the engine casts block by block. All else is cast before anything is charged.
_DTYPES = [np.float64, np.float32, np.float16, np.bool_]
_DTYPES += [np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table that was opened: what is public about it, and a curator over its rows.

    Parameters
    ----------
    domain : Domain
    columns : Columns, optional
        How named columns are read; an array needs none.
    names : tuple of str
        Names of the coordinates, if they have any.
    _rows, _open_engine : array or Source, callable
        Private: for the curator, and for the holder's own door.
    """

    domain: Domain
    columns: Columns | None
    names: tuple[str, ...]
    _rows: NDArray[Any] | Source
    _open_engine: Callable[[], Engine]

    def curator(self, plan: PricedPlan, seed: int | None) -> Curator:
        """Curator over the table, with noise from the operating system or from a seed."""
        return Curator(self._open_engine(), self.domain, plan, Entropy(seed))


def open_table(
    X: Any,
    bounds: object,
    unit: Unit,
    missing: Missing = "error",
    *,
    name: str = "X",
    validate: Callable[..., Any] = check_array,
) -> Table:
    """Check all that is public about a table: its columns and its bounds. Reads no row of files.

    Parameters
    ----------
    X : table
        An array, a data frame, an Arrow table, files, or a data frame of Spark.
    bounds : mapping, (low, high) or Ball
    unit : Unit
    missing : {"error", "drop"}
    name : str
        Of the table, for messages.
    validate : callable
        scikit-learn's check of an array, `check_array` or the like.
    """
    if unit.column is None and not names_columns(bounds) and not is_outside(X):
        return _open_array(X, bounds, unit, missing, name, validate)
    source = open_source(X)
    columns, domain = read_bounds(bounds, source.names, unit, missing)
    source.check_types(columns)
    return Table(domain, columns, columns.labels, source, lambda: source.engine(columns, domain))


def column_names(X: Any) -> list[str]:
    """Names of the columns of a table. Of files, reads the schema of the first."""
    return open_source(X).names


def open_people(X: Any, unit: str, missing: Missing) -> Table:
    """A table with one row per person and one column: how many rows the person has in `X`."""
    source = open_source(X)
    check_names([unit], source.names)
    domain = Domain.from_bounds((1, ALL_ROWS), 1)
    return Table(domain, None, (), source, lambda: source.people(unit, missing, domain))


def _open_array(
    X: Any, bounds: object, unit: Unit, missing: Missing, name: str, validate: Callable[..., Any]
) -> Table:
    options = {"ensure_min_samples": 0, "dtype": _DTYPES, "ensure_all_finite": missing != "drop"}
    rows = checked(lambda: validate(X, **options), name)
    if missing == "drop" and (complete := complete_rows(rows, missing)) is not None:
        rows = rows[complete]
    domain = Domain.from_bounds(bounds, rows.shape[1], unit)
    return Table(domain, None, _names(X), rows, lambda: MemoryEngine(rows, domain))


def _names(X: Any) -> tuple[str, ...]:
    """Names of the columns of a data frame, if all of them are text, as scikit-learn has it."""
    if not hasattr(X, "__dataframe__"):
        return ()
    names = tuple(X.column_names if hasattr(X, "column_names") else X.columns)
    return names if all(isinstance(name, str) for name in names) else ()
