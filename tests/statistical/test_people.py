"""Audits with a whole person as the neighbour: never above the promise, near it, and above it without a cap.

Each sample is one ask of a real curator over a real table: engine, cap, aggregate, sensitivity, noise. To
open a curator for every sample would be slow, so a plan declares the step N times with N times the budget:
every ask then costs what the only ask of a fit does, which a test checks.
"""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from sfumato import DensityTree
from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.columns import read_bounds
from sfumato.curator import open_curator
from sfumato.domain import Grid, Unit
from sfumato.engine.people import cap_rows

EPSILON, MAX_ROWS = 1, 8
N_ASKS, N_CURATORS = 500, 8  # per table: half to choose the event, half to count it
N_CELLS = 20
BOUNDS = {"x": (0.0, float(N_CELLS))}
GRID = Grid((0.0,), (float(N_CELLS),), (N_CELLS,))
EMPTY_CELL = 19
CONFIDENCE = 0.99


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
    people, x = others()
    return table(people, x), table([*people, *["newcomer"] * len(newcomer)], [*x, *newcomer])


def raw_counts(rows, unit):
    """What an adversary who knows both tables and the public hash can compute."""
    x = rows["x"].to_numpy()[:, None]
    kept = x if unit.column is None else cap_rows(rows["who"].combine_chunks(), x, unit.max_rows)
    return np.bincount(kept.ravel().astype(np.int64), minlength=N_CELLS)


def asks(rows, unit, noise_for, seed, n_asks=N_ASKS):
    """Noisy counts of asks at EPSILON each, and the scale of their noise."""
    columns, domain = read_bounds(BOUNDS, rows.column_names, unit)
    plan = calibrate(Plan(Step("cells", 1, repeats=n_asks)), Budget(EPSILON * n_asks), noise_for)
    curator = open_curator(rows, domain, plan, seed, columns)
    noisy = [curator.cells("cells", GRID).values for _ in range(n_asks)]
    return np.array(noisy), float(curator.records[0].scale)


def lower_bound(one, other):
    """Epsilon is at least this, with the confidence of Clopper and Pearson, for an event chosen beforehand.

    The event is that the score is at or above a threshold; the first halves choose the threshold.
    """
    half = len(one) // 2
    thresholds = np.unique(one[:half])
    guesses = [_bound((one[:half] >= t).sum(), (other[:half] >= t).sum(), half) for t in thresholds]
    threshold = thresholds[int(np.argmax(guesses))]
    return _bound((one[half:] >= threshold).sum(), (other[half:] >= threshold).sum(), len(one) - half)


def _bound(n_one, n_other, n):
    """Log ratio of the ends of two one-sided intervals, which hold together with CONFIDENCE."""
    miss = (1 - CONFIDENCE) / 2
    low = stats.beta.ppf(miss, n_one, n - n_one + 1) if n_one else 0.0
    high = stats.beta.ppf(1 - miss, n_other + 1, n - n_other) if n_other < n else 1.0
    return float(np.log(max(low, 1e-300) / high))


def audit(newcomer, unit, noise_for):
    """Largest lower bound on epsilon in the two directions, by the likelihood ratio."""
    tables = neighbours(newcomer)
    without, with_newcomer = (raw_counts(rows, unit) for rows in tables)
    scores = []
    for i, rows in enumerate(tables):
        seeds = range(i, 2 * N_CURATORS, 2)
        noisy, scales = zip(*(asks(rows, unit, noise_for, seed) for seed in seeds), strict=True)
        noisy = np.concatenate(noisy)
        ratio = np.abs(noisy - without).sum(axis=1) - np.abs(noisy - with_newcomer).sum(axis=1)
        scores.append(ratio / scales[0])
    return max(lower_bound(scores[1], scores[0]), lower_bound(-scores[0], -scores[1]))


@pytest.mark.parametrize(("name", "power"), list(zip(NEWCOMERS, [0.5, 0.5, 0.1], strict=True)))
def test_a_person_is_protected_as_promised_and_hardly_better(name, power):
    found = audit(NEWCOMERS[name], Unit("who", MAX_ROWS), noise_for=MAX_ROWS)
    assert power * EPSILON < found <= EPSILON


@each_newcomer
def test_rows_as_units_do_not_protect_a_person(newcomer):
    assert audit(newcomer, Unit(), noise_for=1) > 2 * EPSILON


@pytest.mark.parametrize("name", ["all rows in an empty cell", "all rows in a cell of others"])
def test_noise_for_half_of_the_cap_would_be_seen(name):
    assert audit(NEWCOMERS[name], Unit("who", 2 * MAX_ROWS), noise_for=MAX_ROWS) > 1.4 * EPSILON


@each_newcomer
def test_one_of_many_asks_is_the_only_ask_of_an_estimator(newcomer):
    rows = neighbours(newcomer)[1]
    unit = {"unit": "who", "max_rows_per_unit": MAX_ROWS}
    model = DensityTree(1.0, epsilon=EPSILON, bounds=BOUNDS, random_state=7, **unit).fit(rows)
    noisy, scale = asks(rows, Unit("who", MAX_ROWS), MAX_ROWS, seed=7, n_asks=1)
    assert model.histogram_.grid == GRID
    assert np.array_equal(noisy[0], model.histogram_.counts)
    assert scale == asks(rows, Unit("who", MAX_ROWS), MAX_ROWS, seed=7, n_asks=3)[1] == MAX_ROWS / EPSILON
