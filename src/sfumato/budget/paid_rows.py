"""Rows that were transformed by values bought with a budget. They remember what these cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.budget.bought import purchases
from sfumato.budget.statement import PrivacyStatement
from sfumato.domain import FloatArray
from sfumato.errors import ParameterError

_KEY = b"sfumato cost"  # in the metadata of an Arrow table


class PaidRows(np.ndarray):
    """An array of rows that remembers what the transformation of these rows cost.

    A fit on such rows must state this cost, or its release would promise too much. The memory is a net, not a
    wall: it survives slices and arithmetic, but not data frames or other libraries.

    Attributes
    ----------
    privacy : tuple of PrivacyStatement
    """

    privacy: tuple[PrivacyStatement, ...]

    def __array_finalize__(self, source: Any) -> None:
        self.privacy = getattr(source, "privacy", ())


def paid_rows(rows: FloatArray, paid: Sequence[PrivacyStatement]) -> FloatArray:
    """The rows, which remember what was paid. If nothing was, they are returned as they are."""
    if not paid:
        return rows
    found = rows.view(PaidRows)
    found.privacy = tuple(paid)
    return found


def paid_table(table: pa.Table, paid: Sequence[PrivacyStatement]) -> pa.Table:
    """The Arrow table, whose metadata say what was paid. Parquet and Feather files keep them."""
    cost = json.dumps([statement.to_dict() for statement in paid]).encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: cost})


def _paid_for(rows: object) -> tuple[PrivacyStatement, ...]:
    """What rows remember to have cost."""
    if isinstance(rows, PaidRows):
        return rows.privacy
    if not isinstance(rows, pa.Table):
        return ()
    stated = json.loads((rows.schema.metadata or {}).get(_KEY, b"[]"))
    return tuple(PrivacyStatement.from_dict(statement) for statement in stated)


def check_cost_follows(rows: object, parameters: Iterable[object]) -> None:
    """Raise if rows were transformed at a cost that none of the parameters of a fit carries."""
    carried = list(purchases(*parameters))
    for statement in _paid_for(rows):
        if statement not in carried:
            raise ParameterError(
                f"the rows were transformed by values that cost {statement.budget}. `bounds` must carry this "
                "into the release: use the `bounds_` of the transformer or, before it is fitted, its "
                "`ball(n_features)`, with the same parameters"
            )
        carried.remove(statement)
