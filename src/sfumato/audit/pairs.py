"""Neighbouring tables on which mistakes show: each has one unit that its neighbour lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.domain import FloatArray

N_OTHERS, N_ALIKE = 24, 1000
LOW, HIGH = -1.0, 1.0
MIDDLE = (0.0, 0.0)
MAX_ROWS = 4  # of a person


@dataclass(frozen=True, eq=False)
class Pair:
    """Two tables that differ in one unit, and where to look for it.

    Parameters
    ----------
    name : str
    with_unit, without_unit : table
        What `run` is given in turn: arrays or tables of Arrow.
    places : float array of shape (n, d)
        Points at which an attacker who knows both tables would look: the unit's own first.
    parameters : mapping
        Public parameters with which an estimator takes these tables: bounds, and the unit.
    """

    name: str
    with_unit: Any
    without_unit: Any
    places: FloatArray
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"bounds": (LOW, HIGH)})


def _rows(*points: tuple[float, float]) -> FloatArray:
    return np.array(points, dtype=np.float64).reshape(-1, 2)


def _pair(name: str, others: FloatArray, unit: tuple[float, float]) -> Pair:
    places = np.concatenate([_rows(unit), others[:1], _rows(MIDDLE)])
    return Pair(name, np.concatenate([others, _rows(unit)]), others, places)


def _spread(center: tuple[float, float], width: float = 0.2) -> FloatArray:
    """Rows around a place, the same every time."""
    return np.random.default_rng(0).uniform(-width, width, size=(N_OTHERS, 2)) + center


def _person() -> Pair:
    """A person whose rows are all in one place, many more of them than are used."""
    others, newcomer = _spread((-0.5, -0.5)), np.repeat(_rows((0.9, 0.9)), 5 * MAX_ROWS, axis=0)
    names = [f"person {i // 2}" for i in range(len(others))]
    bounds = {"east": (LOW, HIGH), "north": (LOW, HIGH)}
    return Pair(
        "person",
        _table(np.concatenate([others, newcomer]), [*names, *["newcomer"] * len(newcomer)]),
        _table(others, names),
        np.concatenate([newcomer[:1], others[:1], _rows(MIDDLE)]),
        {"bounds": bounds, "unit": "person", "max_rows_per_unit": MAX_ROWS},
    )


def _table(rows: FloatArray, people: list[str]) -> pa.Table:
    columns = {"person": pa.array(people, pa.string()), "east": rows[:, 0], "north": rows[:, 1]}
    return pa.table(columns)


PAIRS: dict[str, Pair] = {
    pair.name: pair
    for pair in (
        # In the far corner a row moves sums as much as a row can.
        _pair("outlier", _spread((-0.5, -0.5)), (HIGH, HIGH)),
        # One more of many rows that are the same.
        _pair("duplicate", np.repeat(_rows((0.5, 0.5)), 2 * N_OTHERS, axis=0), (0.5, 0.5)),
        # All others are the same row: a cluster is this row's alone, and empty without it. They are so many
        # that noise seldom moves their centre away.
        _pair("emptied cluster", np.repeat(_rows((-0.5, -0.5)), N_ALIKE, axis=0), (0.75, 0.75)),
        # On the border of cells, of a grid as of two clusters.
        _pair("border", np.concatenate([_spread((-0.5, -0.5)), _spread((0.5, 0.5))]), MIDDLE),
        # A table of one row, and one of none.
        Pair("nobody", _rows((0.75, 0.75)), np.empty((0, 2)), _rows((0.75, 0.75), MIDDLE)),
        _person(),
    )
}
"""Pairs by their names: outlier, duplicate, emptied cluster, border, nobody, person."""
