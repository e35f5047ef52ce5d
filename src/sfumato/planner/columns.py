"""Columns of a table that is planned: how many there are, and an error of centres in the units of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sfumato.budget.bought import plain
from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.levels import private_columns
from sfumato.domain import MOST_COLUMNS, Unit
from sfumato.domain.columns import Coordinate, named_bounds, names_columns, read_bounds
from sfumato.domain.constraints import whole
from sfumato.errors import ParameterError

EXPECTED_LEVELS = (
    10  # of a category whose levels a fit is to find, unless `d` says how many coordinates there are
)


@dataclass(frozen=True)
class ColumnError:
    """Error of centres in one column.

    Parameters
    ----------
    column : str
    error : float
        Root mean squared error, in the unit of the column. Of a category: of the share of a level. Of a
        cycle: of its mean direction, if rows gather there.
    width : float
        Distance between the bounds: of a category 1, of a cycle its length.
    unit : str
        Unit of the column, if it is known.
    """

    column: str
    error: float
    width: float
    unit: str = ""

    @property
    def of_width(self) -> float:
        """The error as a part of the width."""
        return self.error / self.width


def has_categories(bounds: object) -> bool:
    """Whether bounds that name columns give any of them levels without an order."""
    blocks = read_bounds(plain(bounds), None, Unit())[1].blocks
    return any(block.kind == "simplex" for block in blocks)


def n_coordinates(bounds: object, d: int | None) -> int:
    """Number of coordinates of a table: its columns, with categories and cycles written out.

    Parameters
    ----------
    bounds : object
        As for an estimator. Bounds that name columns say how many there are.
    d : int, optional
        Number of columns, or of coordinates. It must not contradict the bounds.
    """
    if d is not None:
        whole(MOST_COLUMNS)("d", d)
    if not names_columns(bounds):
        if d is None:
            d = _n_pairs(bounds)
        return d
    named = named_bounds(plain(bounds))
    known = read_bounds(plain(bounds), None, Unit())[1].n_features
    n_private = len(private_columns(bounds))
    if d is None or d == len(named):
        return known + EXPECTED_LEVELS * n_private
    if d == known or (n_private and d > known):
        return d
    raise ParameterError(
        f"`d` must be {len(named)}, the number of columns in `bounds`, got {d}. Leave it out: bounds that "
        "name columns say how many there are"
    )


def _n_pairs(bounds: object) -> int:
    """Number of columns of bounds that have one low and one high for each."""
    if isinstance(bounds, Sequence) and not isinstance(bounds, str) and len(bounds) == 2:
        sizes = {np.size(limit) for limit in bounds if np.ndim(limit) == 1}
        if len(sizes) == 1:
            return int(sizes.pop())
    raise ParameterError("`d` must be given, the number of columns, unless `bounds` name them, got None")


def column_errors(estimator: PrivateClusterer, d: int, error: float) -> tuple[ColumnError, ...]:
    """Errors of centres by column, from one in measured units. Empty if columns are alike and unnamed."""
    if names_columns(estimator.bounds):
        space = estimator.domain(1)  # without levels that are not known yet
        coordinates = list(read_bounds(plain(estimator.bounds), None, Unit())[0].coordinates)
    else:
        space = estimator.domain(d)
        if len(set(space.half_width.tolist())) == 1:
            return ()
        coordinates = [Coordinate(f"column {j}") for j in range(1, d + 1)]
    steps = space.measure.step or (1.0,) * space.n_features
    found, j = [], 0
    for _, group in groupby(coordinates, lambda coordinate: coordinate.column):
        own = list(group)
        found.append(_of_column(own[0], error * steps[j], space.high[j] - space.low[j]))
        j += len(own)
    return tuple(found)


def _of_column(first: Coordinate, error: float, width: float) -> ColumnError:
    """Error of a column, from the error of one of its coordinates in the user's units."""
    match first.kind:
        case "cycle":
            length = first.period[1]
            unit = "days" if first.is_time else ""
            return ColumnError(first.column, min(error / (2 * math.pi), 0.5) * length, length, unit)
        case "level" | "other":
            return ColumnError(first.column, error, 1.0, "of a share")
        case "rank":
            return ColumnError(first.column, error, width, "levels")
        case _:
            return ColumnError(first.column, error, width, first.unit)
