"""Tables as the curator holds them: their public facts can be read, their rows cannot."""

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
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.reading import complete_rows
from sfumato.private.sources import Source, is_outside, open_source

# These types are kept: the engine casts block by block. All others are cast before anything is charged.
_DTYPES = [np.float64, np.float32, np.float16, np.bool_]
_DTYPES += [np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """An opened table: its public facts, and a curator over its rows."""

    domain: Domain
    columns: Columns | None  # how named columns are read. None for an array
    names: tuple[str, ...]  # names of the coordinates, if any
    _rows: NDArray[Any] | Source  # private: only for the curator and for `curator.holder`
    _open_engine: Callable[[], Engine]  # private: only for the curator and for `curator.holder`

    def curator(self, plan: PricedPlan, seed: int | None) -> Curator:
        """Curator over the table, with noise from the operating system or a seed."""
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
    """Check the public facts of a table: its columns and bounds. Reads no rows from files.

    Parameters
    ----------
    X : table
        An array, a data frame, an Arrow table, files, or a Spark data frame.
    bounds : mapping, (low, high) or Ball
    unit : Unit
    missing : {"error", "drop"}
    name : str
        Name of the table in messages.
    validate : callable
        A scikit-learn check of an array, such as `check_array`.
    """
    if unit.column is None and not names_columns(bounds) and not is_outside(X):
        return _open_array(X, bounds, unit, missing, name, validate)
    source = open_source(X)
    columns, domain = read_bounds(bounds, source.names, unit, missing)
    source.check_types(columns)
    return Table(domain, columns, columns.labels, source, lambda: source.engine(columns, domain))


def column_names(X: Any) -> list[str]:
    """Column names of a table. For files, reads the schema of the first."""
    return open_source(X).names


def open_people(X: Any, unit: str, missing: Missing) -> Table:
    """A table with one row per person and one column: that person's number of rows in `X`."""
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
    """Column names of a data frame if all are strings, the rule of scikit-learn."""
    if not hasattr(X, "__dataframe__"):
        return ()
    names = tuple(X.column_names if hasattr(X, "column_names") else X.columns)
    return names if all(isinstance(name, str) for name in names) else ()
