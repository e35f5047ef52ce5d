"""Audits with a whole person as the neighbour: never above the promise, near it, and above it without a cap.

Each sample is one ask of a real curator over a real table: engine, cap, aggregate, sensitivity, noise. To
open a curator for every sample would be slow, so a plan declares the step N times with N times the budget:
every ask then costs what the only ask of a fit does, which a test checks.
"""

import numpy as np
import pyarrow as pa
import pytest

from sfumato import DensityTree
from sfumato.audit import compare
from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.curator import open_table
from sfumato.domain import Grid, Unit
from sfumato.private.people import cap_rows

EPSILON, MAX_ROWS = 1, 8
N_ASKS, N_CURATORS = 500, 4  # per table: half to choose the event, half to count it
N_CELLS = 20
BOUNDS = {"x": (0.0, float(N_CELLS))}
GRID = Grid((0.0,), (float(N_CELLS),), (N_CELLS,))
EMPTY_CELL = 19


def others():
    """Forty people with 1 to 30 rows each, nobody in the last cell."""
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(40), rng.integers(1, 31, size=40)).astype(str)
    return people.tolist(), rng.uniform(0, EMPTY_CELL, size=len(people)).tolist()


NEWCOMERS = {
    "all rows in an empty cell": [EMPTY_CELL + 0.5] * (10 * MAX_ROWS),
    "all rows in a cell of others": [3.5] * (10 * MAX_ROWS),
    "one row in each of many cells": [cell + 0.25 for cell in range(MAX_ROWS)],
}
each_newcomer = pytest.mark.parametrize("newcomer", NEWCOMERS.values(), ids=NEWCOMERS.keys())


def table(people, x):
    return pa.table({"who": pa.array(people, pa.string()), "x": pa.array(x, pa.float64())})


def neighbours(newcomer):
    """The table with the newcomer, and the one without."""
    people, x = others()
    return table([*people, *["newcomer"] * len(newcomer)], [*x, *newcomer]), table(people, x)


def raw_counts(rows, unit):
    """What an adversary who knows both tables and the public hash can compute."""
    x = rows["x"].to_numpy()[:, None]
    kept = x if unit.column is None else cap_rows(rows["who"].combine_chunks(), x, unit.max_rows)
    return np.bincount(kept.ravel().astype(np.int64), minlength=N_CELLS)


def asks(rows, unit, noise_for, seed, n_asks=N_ASKS):
    """Noisy counts of asks at EPSILON each, and the scale of their noise."""
    plan = calibrate(Plan(Step("cells", 1, repeats=n_asks)), Budget(EPSILON * n_asks), noise_for)
    curator = open_table(rows, BOUNDS, unit).curator(plan, seed)
    noisy = [curator.cells("cells", GRID).values for _ in range(n_asks)]
    return np.array(noisy), float(curator.records[0].scale)


def lower_bound(newcomer, unit, noise_for):
    """Lower bound on epsilon, by the likelihood ratio of the noisy counts."""
    tables = neighbours(newcomer)
    raw_with, raw_without = (raw_counts(rows, unit) for rows in tables)
    scores = []
    for i, rows in enumerate(tables):
        seeds = range(i, 2 * N_CURATORS, 2)
        noisy = np.concatenate([asks(rows, unit, noise_for, seed)[0] for seed in seeds])
        ratio = np.abs(noisy - raw_without).sum(axis=1) - np.abs(noisy - raw_with).sum(axis=1)
        scores.append(ratio.astype(np.float64)[:, None])
    return compare(*scores, Budget(EPSILON)).lower


@pytest.mark.parametrize(("name", "power"), list(zip(NEWCOMERS, [0.5, 0.5, 0.1], strict=True)))
def test_a_person_is_protected_as_promised_and_hardly_better(name, power):
    found = lower_bound(NEWCOMERS[name], Unit("who", MAX_ROWS), noise_for=MAX_ROWS)
    assert power * EPSILON < found <= EPSILON


@each_newcomer
def test_rows_as_units_do_not_protect_a_person(newcomer):
    assert lower_bound(newcomer, Unit(), noise_for=1) > 2 * EPSILON


@pytest.mark.parametrize("name", ["all rows in an empty cell", "all rows in a cell of others"])
def test_noise_for_half_of_the_cap_would_be_seen(name):
    assert lower_bound(NEWCOMERS[name], Unit("who", 2 * MAX_ROWS), noise_for=MAX_ROWS) > 1.4 * EPSILON


@each_newcomer
def test_one_of_many_asks_is_the_only_ask_of_an_estimator(newcomer):
    rows = neighbours(newcomer)[0]
    unit = {"unit": "who", "max_rows_per_unit": MAX_ROWS}
    model = DensityTree(1.0, epsilon=EPSILON, bounds=BOUNDS, random_state=7, **unit).fit(rows)
    noisy, scale = asks(rows, Unit("who", MAX_ROWS), MAX_ROWS, seed=7, n_asks=1)
    assert model.histogram_.grid == GRID
    assert np.array_equal(noisy[0], model.histogram_.counts)
    assert scale == asks(rows, Unit("who", MAX_ROWS), MAX_ROWS, seed=7, n_asks=3)[1] == MAX_ROWS / EPSILON
