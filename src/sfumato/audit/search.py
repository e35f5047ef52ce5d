"""Search for the neighbour of a table on which a run loses most."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from sfumato.audit.meter import MeterResult, meter_estimator, path_losses
from sfumato.audit.pairs import HIGH, LOW, MAX_ROWS, Pair
from sfumato.audit.step_losses import total_loss
from sfumato.audit.tape import Tape, watched
from sfumato.cluster import PrivateClusterer
from sfumato.domain import FloatArray

N_BLOBS, N_ROWS, SPREAD = 3, 40, 0.15
MOST_CORNERS = 16
BEYOND = 1e6  # a row far outside
N_REFINED = 3  # of the best candidates, whose coordinates are moved one by one


def worst_neighbour(
    estimator: PrivateClusterer,
    n_features: int = 2,
    *,
    by_person: bool = False,
    n_random: int = 16,
    n_paths: int = 2,
    random_state: int = 0,
) -> MeterResult:
    """Meter an estimator on a made-up table and the worst neighbour of it that a search finds.

    Candidates are corners, the middle, rows of the table, a row far outside, centres that were released,
    points between them, and random rows. Coordinates of the best are then moved to the ends and the middle of
    their columns, one by one, as long as more is lost.

    Parameters
    ----------
    estimator : PrivateClusterer
        With its budget and its own parameters. Bounds and unit are set here.
    n_features : int
    by_person : bool
        Whether the unit is a person with several rows, all in one place or in two.
    n_random : int
        Random candidates.
    n_paths : int
        Seeds with which the worst neighbour is metered in the end, each in both directions.
    random_state : int

    Examples
    --------
    >>> from sfumato import LloydKMeans
    >>> found = worst_neighbour(LloydKMeans(2, epsilon=1))
    >>> found.broken, found.share > 0.9
    (False, True)
    """
    rng = np.random.default_rng(random_state)
    rows = _blobs(n_features, rng)
    table = _people if by_person else _rows
    parameters = _parameters(n_features, by_person)
    own = clone(estimator).set_params(**parameters, ledger=None, random_state=random_state)
    first = Tape()
    fitted = watched(lambda X: clone(own).fit(X), table(rows, None), first)
    promise = own._budget()

    def lost(unit: FloatArray) -> float:
        steps, _ = path_losses(lambda X: clone(own).fit(X), fitted, first, table(rows, unit))
        return total_loss(steps, promise)

    unit = _climb(lost, _candidates(rows, fitted.result, n_random, rng), by_person)
    pair = Pair("worst found", table(rows, unit), table(rows, None), unit[:1], parameters)
    (found,) = meter_estimator(estimator, [pair], n_paths=n_paths)
    return found


def _blobs(n_features: int, rng: np.random.Generator) -> FloatArray:
    middles = rng.uniform(LOW, HIGH, size=(N_BLOBS, n_features))
    return np.asarray(rng.normal(np.repeat(middles, N_ROWS, axis=0), SPREAD).clip(LOW, HIGH))


def _parameters(n_features: int, by_person: bool) -> dict[str, Any]:
    if not by_person:
        return {"bounds": (LOW, HIGH)}
    bounds = {f"x{j}": (LOW, HIGH) for j in range(n_features)}
    return {"bounds": bounds, "unit": "person", "max_rows_per_unit": MAX_ROWS}


def _rows(rows: FloatArray, unit: FloatArray | None) -> FloatArray:
    return rows if unit is None else np.concatenate([rows, unit[:1]])


def _people(rows: FloatArray, unit: FloatArray | None) -> pa.Table:
    """Two rows for each person, and a newcomer with as many as are used."""
    names = [f"person {i // 2}" for i in range(len(rows))]
    if unit is not None:
        rows = np.concatenate([rows, np.resize(unit, (MAX_ROWS, rows.shape[1]))])
        names += ["newcomer"] * MAX_ROWS
    columns = {f"x{j}": rows[:, j] for j in range(rows.shape[1])}
    return pa.table({"person": pa.array(names, pa.string()), **columns})


def _candidates(rows: FloatArray, fitted: Any, n_random: int, rng: np.random.Generator) -> FloatArray:
    d = rows.shape[1]
    corners = rng.choice([LOW, HIGH], size=(MOST_CORNERS, d))
    found = [np.unique(corners, axis=0), np.full((1, d), HIGH), np.zeros((1, d)), rows[:: N_ROWS // 2]]
    found += [np.full((1, d), BEYOND), rng.uniform(LOW, HIGH, size=(n_random, d))]
    centers = np.asarray(getattr(fitted, "cluster_centers_", np.empty((0, d))))
    if centers.ndim == 2 and centers.shape[1] == d:
        between = [(a + b) / 2 for a, b in combinations(centers[:6], 2)]
        found += [centers[:6], np.array(between).reshape(-1, d)]
    return np.concatenate(found)


def _climb(lost: Callable[[FloatArray], float], candidates: FloatArray, by_person: bool) -> FloatArray:
    """The unit on which most is lost: rows of shape (1, d), or (2, d) for a person in two places."""
    units = [row[None] for row in candidates]
    if by_person:
        units += [np.stack(pair) for pair in zip(candidates, candidates[::-1], strict=True)]
    ranked = sorted(((lost(unit), unit) for unit in units), key=lambda found: -found[0])
    return max((_refined(lost, *start) for start in ranked[:N_REFINED]), key=lambda found: found[0])[1]


def _refined(lost: Callable[[FloatArray], float], most: float, unit: FloatArray) -> tuple[float, FloatArray]:
    """Move one coordinate after the other. At most two dozen moves: each costs a run."""
    for j, value in product(range(min(unit.shape[1], 8)), (LOW, 0.0, HIGH)):
        moved = unit.copy()
        moved[0, j] = value
        if (found := lost(moved)) > most:
            most, unit = found, moved
    return most, unit
