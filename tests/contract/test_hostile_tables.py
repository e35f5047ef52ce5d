"""With missing="drop", no table is refused for its values, before or after the charge.

Tables are small, of every kind, and full of values that are missing, wrong or hostile.
"""

import inspect
import os
import random
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.conftest import QUICK, WEAK, all_estimators
from tests.media import DAYS, HOSTILE, NO_VALUES, NUMBER_OBJECTS, NUMBERS, draw_medium, draw_rows

from sfumato import LloydKMeans
from sfumato.cluster import DPM, DensityTree

run_module = import_module("sfumato.curator.run")
pytestmark = [WEAK, pytest.mark.usefixtures("quick")]
CHEAP = [LloydKMeans, LloydKMeans, LloydKMeans, DensityTree, DPM]
FRACTION = float(os.environ.get("SFUMATO_CASES", "400")) / 10_000  # of the cases of the slow suite
N_CASES = {  # of each medium in the default suite, and in all tests: 10,000 together if SFUMATO_CASES=10000
    "arrays": (50, 2500),
    "text": (20, 1000),
    "text in folders": (10, 500),
    "typed files": (20, 700),
    "typed files in folders": (10, 500),
    "arrow and polars": (30, 1500),
    "objects": (30, 1800),
    "pandas": (30, 1500),
}
LIMITS = (-10.0, 10.0)


@pytest.fixture
def charges(monkeypatch):
    """What happened to each charge."""
    outcomes = []

    @contextmanager
    def charged(*_, **__):
        outcomes.append("charged")
        yield
        outcomes[-1] = "released"

    monkeypatch.setattr(run_module, "_charged", charged)
    return outcomes


def build(rng, estimator_class, **parameters):
    known = inspect.signature(estimator_class).parameters
    quick = QUICK | {
        "max_cells": 300,
        "max_iter": 2,
        "n_clusters": rng.choice([1, 3]),
        "epsilon": rng.choice([0.1, 1, 100]),
    }
    return estimator_class(**{name: value for name, value in (quick | parameters).items() if name in known})


def draw_array(rng):
    """Rows of two numbers or of anything else, in anything that holds rows without a name."""
    pool = [*NUMBER_OBJECTS * 3, *NUMBERS, *HOSTILE, *NO_VALUES[:-6]]
    objects = [[rng.choice(pool), rng.choice(pool)] for _ in range(rng.randint(1, 12))]
    finite = [0.5, -1.0, 1e308, -1e308, 5e-324]
    numbers = np.array([rng.choice([*finite, np.nan, np.inf, -np.inf]) for _ in range(16)]).reshape(8, 2)
    array = np.array([*objects, [None, object()]], dtype=object)[:-1]
    with np.errstate(all="ignore"):
        narrow = numbers.astype(rng.choice(["f8", "f4", "f2", "g", ">f8"]))
    return rng.choice(
        [
            objects,
            array,
            pd.DataFrame(array, columns=["a", "b"], dtype=object),
            pl.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1]}),
            pa.table({"a": numbers[:, 0], "b": numbers[:, 1]}),
            pd.DataFrame(numbers, columns=["a", "b"]).astype("Float64"),
            narrow,
            np.asfortranarray(narrow),
            numbers.tolist(),
        ]
    )


def draw_table(rng, kind, folder):
    """A table, its number of rows, and what must be declared to read it."""
    if kind == "arrays":
        X = draw_array(rng)
        return X, len(X), {"bounds": LIMITS}
    medium = draw_medium(rng, kind)
    rows = draw_rows(rng, medium)
    bounds = {"x": LIMITS, "y": LIMITS, "day": DAYS, "kind": medium.levels}
    chosen = rng.sample(list(bounds), rng.randint(1, 4))
    declared = {"bounds": {name: bounds[name] for name in chosen}, "unit": rng.choice([None, "who"])}
    return medium.write(rows, folder), len(rows), declared


def check_table(rng, kind, folder, charges):
    X, n_rows, declared = draw_table(rng, kind, folder)
    estimator_class = rng.choice(all_estimators() if rng.random() < 0.005 else CHEAP)
    outside = rng.choice(["clip", "drop"])
    model = build(rng, estimator_class, missing="drop", outside=outside, **declared)
    charges.clear()
    labels = model.fit_predict(X)
    assert charges == ["released"]
    assert len(labels) == n_rows
    assert np.array_equal(labels, model.predict(X))


CASES = [pytest.param(kind, n[0], id=f"{kind}-few") for kind, n in N_CASES.items()]
CASES += [
    pytest.param(kind, round(FRACTION * n[1]), id=f"{kind}-many", marks=pytest.mark.slow)
    for kind, n in N_CASES.items()
]


@pytest.mark.parametrize(("kind", "n_cases"), CASES)
def test_no_table_is_refused_for_its_values(kind, n_cases, tmp_path, charges):
    for case in range(n_cases):
        rng = random.Random(f"{kind} {case} {n_cases}")
        try:
            check_table(rng, kind, tmp_path / "table", charges)
        except Exception as error:
            error.add_note(f"case {case} of {kind!r}, {charges}")
            raise
