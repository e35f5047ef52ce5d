"""Tables as the curator holds them: their public facts can be read, their rows cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from sfumato.budget import PricedPlan
from sfumato.curator.curator import Curator
from sfumato.domain import ALL_ROWS, Domain, Outside, Unit
from sfumato.domain.arrays import NO_DATES, checked
from sfumato.domain.columns import (
    Columns,
    Coordinate,
    Missing,
    check_names,
    check_spoken,
    names_columns,
    read_bounds,
)
from sfumato.domain.scaling import Scaling
from sfumato.domain.sparse import Sparse
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError, ParameterError
from sfumato.private.engines.base import Engine
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.parsing import parse_numbers, spell
from sfumato.private.reading import complete_rows
from sfumato.private.sources import Source, is_outside, open_source
from sfumato.private.sources.sparse import SparseRows

AS_DECLARED = Scaling(None)
# These types are kept: the engine casts block by block. All others are cast before anything is charged.
_DTYPES = [np.float64, np.float32, np.float16, np.bool_]
_DTYPES += [np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """An opened table: its public facts, and a curator over its rows."""

    domain: Domain
    columns: Columns | None  # how named columns are read. None for an array
    names: tuple[str, ...]  # names of the coordinates, if any
    _rows: NDArray[Any] | Source | SparseRows  # private: only for the curator and for `curator.holder`
    _open_engine: Callable[[], Engine]  # private: only for the curator and for `curator.holder`
    scaling: Scaling = AS_DECLARED  # the rule by which its columns are measured
    sparse: Sparse | None = None  # how sparse rows become coordinates

    def curator(self, plan: PricedPlan, seed: int | None) -> Curator:
        """Curator over the table, with noise from the operating system or a seed."""
        return Curator(self._open_engine(), self.domain, plan, Entropy(seed))


def open_table(
    X: Any,
    bounds: object,
    unit: Unit,
    missing: Missing = "error",
    outside: Outside = "clip",
    *,
    scaling: Scaling = AS_DECLARED,
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
    missing : {"error", "drop"} or mapping
    outside : {"clip", "drop"}
    scaling : Scaling
        The rule by which columns are measured. By default, as they are.
    name : str
        Name of the table in messages.
    validate : callable
        A scikit-learn check of an array, such as `check_array`.
    """
    if unit.column is None and not names_columns(bounds) and not is_outside(X):
        return _open_array(X, bounds, missing, outside, scaling, name, validate)
    source = open_source(X)
    columns, space = read_bounds(bounds, source.names, unit, missing, outside, source.text)
    domain = scaling.applied(space, columns.coordinates)
    source.check_types(columns)
    return Table(domain, columns, columns.labels, source, lambda: source.engine(columns, domain), scaling)


def column_names(X: Any) -> list[str]:
    """Column names of a table. For files, reads the schema or the first line of the first."""
    return open_source(X).names


def open_people(X: Any, unit: str, missing: Missing) -> Table:
    """A table with one row per person and one column: that person's number of rows in `X`."""
    source = open_source(X)
    check_names([unit], source.names)
    columns = Columns((), unit, "error" if missing == "error" else "drop", source.text)
    source.check_types(columns)
    domain = Domain.from_bounds((1, ALL_ROWS), 1)
    return Table(domain, None, (), source, lambda: source.people(columns, domain))


def describe(curator: Curator, table: Table, described: Sequence[Coordinate] | None) -> None:
    """Let a curator of a table read described columns too; those of an array are its own.

    Parameters
    ----------
    curator : Curator
    table : Table
    described : sequence of Coordinate, optional
        None for an array.
    """
    if table.columns is None or described is None:
        rows = np.asarray(table._rows)
        curator.describe(MemoryEngine(np.hstack([rows, rows]), table.domain))
        return
    source, columns = table._rows, replace(table.columns, described=tuple(described))
    assert not isinstance(source, np.ndarray | SparseRows)
    curator.describe(source.engine(columns, table.domain))


def check_described(table: Table, described: Sequence[Coordinate]) -> None:
    """Raise if a table lacks a described column, or has it with another type than declared. Reads no row."""
    source = table._rows
    if table.columns is None or isinstance(source, np.ndarray | SparseRows):
        raise ParameterError("`describe` must be None unless columns have names: name them in `bounds`")
    check_names([coordinate.column for coordinate in described], source.names)
    source.check_types(replace(table.columns, described=tuple(described)))


def _open_array(
    X: Any,
    bounds: object,
    missing: Missing,
    outside: Outside,
    scaling: Scaling,
    name: str,
    validate: Callable[..., Any],
) -> Table:
    if not isinstance(missing, str):
        raise ParameterError(
            f"`missing` must be 'error' or 'drop' unless `bounds` name columns, got {missing!r}"
        )
    if issparse(X):  # a TypeError, as of scikit-learn
        raise TypeError(
            f"Sparse data was passed for `{name}`, but `bounds` are for dense rows. Declare sparse rows: "
            "bounds=sfumato.Sparse(max_active=128)"
        )
    if (dates := _dates(X)) is not None:
        raise DataError(f"{f'column {dates!r}' if dates else f'`{name}`'} {NO_DATES}")
    if missing == "drop":
        X = as_numbers(X)
    # Whether rows are finite is checked here: scikit-learn can be configured not to.
    options = {"ensure_min_samples": 0, "dtype": _DTYPES, "ensure_all_finite": False}
    rows = checked(lambda: validate(X, **options), name)
    if missing == "error":
        complete_rows(rows, missing, name)
    names = _names(X)
    check_spoken(names)
    domain = scaling.applied(Domain.from_bounds(bounds, rows.shape[1], outside=outside), (), names)
    return Table(domain, None, names, rows, lambda: MemoryEngine(rows, domain), scaling)


def _dates(X: Any) -> str | None:
    """Name of a column whose type shows dates or times. NumPy would turn them into numbers of some unit."""
    if isinstance(X, pa.Table | pa.RecordBatch):
        return next((field.name for field in X.schema if pa.types.is_temporal(field.type)), None)
    if hasattr(X, "schema"):  # of polars
        return next((name for name, kind in X.schema.items() if kind.is_temporal()), None)
    types = X.dtypes.items() if hasattr(X, "columns") else [("", getattr(X, "dtype", None))]
    return next((str(name) for name, kind in types if getattr(kind, "kind", None) in ("m", "M")), None)


def as_numbers(X: Any) -> Any:
    """The table itself if it holds numbers. Otherwise its values as numbers, each for itself."""
    objects = np.asarray(X)
    if objects.dtype.kind in "biuf" or objects.ndim != 2:
        return X
    columns = [parse_numbers(spell(column), TextFormat()) for column in np.asarray(X, dtype=object).T]
    found = np.column_stack([*columns, np.empty((len(objects), 0))])
    return found if not hasattr(X, "columns") else X.__class__(dict(zip(X.columns, found.T, strict=True)))


def _names(X: Any) -> tuple[str, ...]:
    """Column names of a data frame if all are strings, the rule of scikit-learn."""
    if not hasattr(X, "__dataframe__"):
        return ()
    names = tuple(X.column_names if hasattr(X, "column_names") else X.columns)
    return names if all(isinstance(name, str) for name in names) else ()
