"""Neighbouring tables that reveal mistakes: one of them has a unit that the other lacks."""

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
MAX_STAYS = 3  # of a patient


@dataclass(frozen=True, eq=False)
class Pair:
    """Two tables that differ in one unit, and where to look for it.

    Parameters
    ----------
    name : str
    with_unit, without_unit : table
        Arrays or Arrow tables, passed to `run` in turn.
    places : float array of shape (n, d)
        Points where an attacker who knows both tables would look, the unit's own first.
    parameters : mapping
        Public parameters that an estimator needs for these tables: bounds and unit, and what profiles tell.
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
    """Rows around a place; the same rows in every call."""
    return np.random.default_rng(0).uniform(-width, width, size=(N_OTHERS, 2)) + center


def _person() -> Pair:
    """A person with many more rows than the cap, all in one place."""
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


def _patient() -> Pair:
    """A mixed table with profiles: the person has more rows than the cap, and levels that nobody else has."""
    stays = pa.table(
        {
            "patient": pa.array([f"patient {i // 2}" for i in range(N_OTHERS)], pa.string()),
            "age": np.linspace(20.0, 40.0, N_OTHERS),
            "ward": pa.array(["surgery", "medicine"] * (N_OTHERS // 2), pa.string()),
            "insured": pa.array(["public"] * N_OTHERS, pa.string()),
        }
    )
    n_stays = 5 * MAX_STAYS
    newcomer = {"patient": ["newcomer"] * n_stays, "age": [90.0] * n_stays}
    newcomer |= {"ward": ["hospice"] * n_stays, "insured": ["private"] * n_stays}
    return Pair(
        "patient",
        pa.concat_tables([stays, pa.table(newcomer)]),
        stays,
        np.array([[90.0, 0.0, 0.0, 1.0, 0.0], [30.0, 0.5, 0.5, 0.0, 0.0]]),
        {
            "bounds": {"age": (0, 100), "ward": ["surgery", "medicine", "hospice"]},
            "describe": {"insured": ["public", "private"]},
            "profiles": 0.5,
            "unit": "patient",
            "max_rows_per_unit": MAX_STAYS,
        },
    )


PAIRS: dict[str, Pair] = {
    pair.name: pair
    for pair in (
        # No row moves sums further than one in the far corner.
        _pair("outlier", _spread((-0.5, -0.5)), (HIGH, HIGH)),
        # One more copy of a row that occurs many times.
        _pair("duplicate", np.repeat(_rows((0.5, 0.5)), 2 * N_OTHERS, axis=0), (0.5, 0.5)),
        # All other rows are equal, so one cluster has this row alone and is empty without it. There are
        # enough of them that noise seldom moves their centre away.
        _pair("emptied cluster", np.repeat(_rows((-0.5, -0.5)), N_ALIKE, axis=0), (0.75, 0.75)),
        # On a border between cells of a grid, and between two clusters.
        _pair("border", np.concatenate([_spread((-0.5, -0.5)), _spread((0.5, 0.5))]), MIDDLE),
        # A table with one row, and an empty one.
        Pair("nobody", _rows((0.75, 0.75)), np.empty((0, 2)), _rows((0.75, 0.75), MIDDLE)),
        _person(),
        _patient(),
    )
}
"""Pairs by name: outlier, duplicate, emptied cluster, border, nobody, person, patient."""
