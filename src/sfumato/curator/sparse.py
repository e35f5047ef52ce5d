"""Tables of sparse rows as the curator holds them."""

from __future__ import annotations

from typing import Any

from sfumato.curator.curator import Curator
from sfumato.curator.tables import Table
from sfumato.domain import Domain, Outside, Unit
from sfumato.domain.columns import Missing
from sfumato.domain.scaling import Scaling
from sfumato.domain.sparse import Sparse
from sfumato.errors import ParameterError
from sfumato.private.sources.sparse import SparseRows, open_rows


def open_sparse(
    X: Any, sparse: Sparse, unit: Unit, missing: Missing, outside: Outside, scaling: Scaling
) -> Table:
    """Check the public facts of a table of sparse rows. Reads no rows from files.

    Parameters
    ----------
    X : sparse array or table
        An array of SciPy, or a table with lists in memory or in Parquet or Feather files.
    sparse : Sparse
    unit : Unit
    missing : {"error", "drop"}
        What to do with rows that have a column out of range, or a value that is missing or infinite.
    outside : {"clip", "drop"}
        Makes no difference: rows are scaled into their ball.
    scaling : Scaling
    """
    if missing not in ("error", "drop"):
        raise ParameterError(f"`missing` must be 'error' or 'drop' for sparse rows, got {missing!r}")
    if scaling.weights is not None:
        raise ParameterError(
            "`weights` must be None for sparse rows. Multiply the columns by public weights before the fit"
        )
    rows = open_rows(X, sparse, missing, unit)
    rows.check()
    assert rows.sparse.n_columns is not None
    domain = scaling.applied(Domain.from_bounds(rows.sparse, rows.sparse.n_columns, unit, outside))
    return Table(domain, None, (), rows, lambda: rows.engine(domain), scaling, rows.sparse)


def show_active(curator: Curator, table: Table) -> None:
    """Let a curator of a table of sparse rows read their active columns too."""
    rows = table._rows
    assert isinstance(rows, SparseRows)
    curator.describe(rows.engine(table.domain, with_active=True))
