"""Rows that were transformed by values bought with a budget. They remember what these cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sfumato.budget.bought import purchases
from sfumato.budget.statement import PrivacyStatement
from sfumato.domain import FloatArray
from sfumato.errors import ParameterError


class PaidRows(np.ndarray):
    """An array of rows that remembers what the transformation of these rows cost.

    A fit on such rows must state this cost, or its release would promise too much. The memory is a net, not a
    wall: it survives slices and arithmetic, but no data frames, files or other libraries.

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


def check_cost_follows(rows: object, parameters: Iterable[object]) -> None:
    """Raise if rows were transformed at a cost that none of the parameters of a fit carries."""
    if not isinstance(rows, PaidRows):
        return
    carried = list(purchases(*parameters))
    for statement in rows.privacy:
        if statement not in carried:
            raise ParameterError(
                f"the rows were transformed by values that cost {statement.budget}. `bounds` must carry this "
                "into the release: use the `bounds_` of the transformer or, before it is fitted, its "
                "`ball(n_features)`, with the same parameters"
            )
        carried.remove(statement)
