"""The number of clusters: given, or found from released cells with ``n_clusters="auto"``."""

from __future__ import annotations

from typing import Literal

from sfumato.cluster.shared.refine import Merge
from sfumato.domain.constraints import Constraint, auto_or, whole
from sfumato.errors import ParameterError
from sfumato.public.cells import CellSynopsis

AUTO_CELLS = (
    48  # cells with which a method starts to find the number; tuned: docs/notes/how_many.md#constants
)

Number = int | Literal["auto"]


def number_up_to(most: int) -> Constraint:
    """A number of clusters, or "auto"."""
    number = whole(most)
    return Constraint(f"{number.words} or 'auto'", auto_or(number).allows)


def n_starts(n_clusters: Number, *, refine: bool = True) -> int:
    """Number of centres that a method looks for: public, so that a plan can declare it."""
    if n_clusters != "auto":
        return int(n_clusters)
    if not refine:
        raise ParameterError("`n_clusters` must be a number without `refine`, got 'auto': use refine=True")
    return AUTO_CELLS


def merge_for(n_clusters: Number) -> Merge | None:
    """How refined cells become clusters; None for as many as there were starts."""
    return CellSynopsis.separated if n_clusters == "auto" else None
