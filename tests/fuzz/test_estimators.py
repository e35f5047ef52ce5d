"""The public API with any tables, parameters and orders of calls."""

import copy
import inspect
import json
import pickle
import tempfile
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.base import clone
from tests.conftest import all_estimators
from tests.fuzz.cases import attempt, fuzz
from tests.fuzz.tables import SPELLED, tables

import sfumato
from sfumato import Ball, Budget, Ledger, Release

pytestmark = pytest.mark.usefixtures("quick")

CLASSES = [*all_estimators(), sfumato.SourceTargetClustering]

usual = {
    "epsilon": st.sampled_from([1.0, 0.5, 10, "1/3", Fraction(1, 7), 100, np.float32(2)]),
    "delta": st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.0, 1e-6]),
    "bounds": st.sampled_from([(-1, 1), (-1, 1), (0, 1e-3), Ball(1.5), "private", (-1e9, 1e9)]),
    "random_state": st.none() | st.integers(0, 5),
    "missing": st.sampled_from(["error", "drop"]),
    "n_clusters": st.integers(1, 4),
    "n_components": st.integers(1, 4),
    "max_cells": st.integers(1, 30),
    "radius": st.sampled_from([0.5, 1, 0.2]),
    "min_samples": st.integers(1, 30),
    "cell": st.sampled_from([None, 0.25, 1.0]),
    "t": st.sampled_from([0.3, 3, 10]),
    "max_memory": st.just(1e8),
    "max_depth": st.integers(1, 4),
}
NUMBERS = [
    0,
    -1,
    1,
    2,
    3,
    0.5,
    1e-12,
    1e-300,
    1e300,
    1e6,
    2**31,
    2**63,
    10**400,
    True,
    np.nan,
    np.inf,
    -np.inf,
]
ODD = [
    *NUMBERS,
    None,
    "",
    "auto",
    "nan",
    "1/0",
    "1e-400",
    b"1",
    [],
    [1],
    {},
    (),
    object(),
    np.array([1.0, 2.0]),
]
NAMED = [
    {"c0": (-1, 1)},
    {"c0": (-1, 1), "ward": ["icu", "er"], "day": (date(2026, 1, 1), date(2026, 7, 1))},
    {"c0": (date(2026, 1, 1), date(2026, 7, 1))},
    {"c0": [0.5, "level"]},
    {"c0": (1, -1)},
    {"none": (0, 1)},
    {0: (0, 1)},
    {"c0": [[]]},
    {"c0": [float("nan"), float("nan")]},
    {"c0": (None, 1)},
    {"c0": (10**400, 1)},
    {"c0": (np.datetime64("NaT"), np.datetime64("2026-01-01"))},
]
BOUNDS = [
    (1, 1),
    (1, -1),
    (-1e300, 1e300),
    (0, 1e-300),
    (-1e140, 1e140),
    (0, 2e-140),
    (-(10**400), 1),
    "wide",
]
BOUNDS += [(5, np.nan), ([-1, -1], [1, 1]), ([-1, -1], [1, 1, 1]), [[-1], [1]], Ball(1e-300), Ball("x")]
BOUNDS += [Ball(1, [0, 0]), Ball(1, "x"), Ball(1e139, 1e140), np.array([[-1, -1], [1, 1]]), (-1, 1 + 2**-52)]
odd = {
    "bounds": st.sampled_from([*BOUNDS, *NAMED]),
    "unit": st.sampled_from(["who", "c0", "none", 5, ""]),
    "max_rows_per_unit": st.sampled_from([1, 2, 0, 10**30, "1"]),
    "base": st.sampled_from(
        [sfumato.LloydKMeans(2), sfumato.GridKMeans(2, max_cells=9), sfumato.DPDBSCAN, 5]
    ),
}


@st.composite
def parameters(draw, cls):
    """Parameters that mostly can be used; one or two of them may be anything."""
    known = list(inspect.signature(cls).parameters)
    chosen = {name: draw(usual[name]) for name in known if name in usual}
    if not draw(st.integers(0, 5)):
        chosen |= draw(st.sampled_from([{"rho": 0.1}, {"rho": "1/9"}])) | {"epsilon": 1.0, "delta": 0.0}
    if "who" in draw(st.sampled_from(["who", "", ""])):
        chosen |= {"unit": "who", "bounds": draw(st.sampled_from(NAMED[:2])), "max_rows_per_unit": 2}
    for name in draw(st.lists(st.sampled_from(known), max_size=1)):
        chosen[name] = draw(odd.get(name, st.nothing()) | st.sampled_from(ODD))
    return chosen


def secretly(call, *arguments, **keywords):
    return attempt(call, *arguments, secrets=SPELLED, **keywords)


def fitted(model, X):
    is_source = isinstance(model, sfumato.SourceTargetClustering)
    targets = [np.linspace(-1, 1, 20).reshape(10, 2)] if is_source else []
    return secretly(model.fit, *targets, X)


def without_checksum(content):
    content.pop("sha256", None)
    return content


def check_fitted(model, path):
    """What holds after every fit, whatever was in the table."""
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), name
    assert model.privacy_.spent <= model.privacy_.budget
    loaded = Release.load(model.release_.save(path))
    assert json.loads(json.dumps(loaded.to_dict())) == json.loads(
        path.read_text(), object_hook=without_checksum
    )
    rows = np.linspace(-2, 2, 4 * model.n_features_in_).reshape(4, -1)
    labels = loaded.model.predict(rows)
    assert (labels == model.release_.model.predict(rows)).all()
    assert labels.min() >= -1
    assert labels.max() < max(getattr(model, "n_clusters_", len(getattr(model, "cluster_centers_", ()))), 1)


CALLS = {
    "fit": lambda model, X, draw: fitted(model, X),
    "fit_predict": lambda model, X, draw: secretly(getattr(model, "fit_predict", repr), X),
    "predict": lambda model, X, draw: secretly(model.predict, X),
    "labels": lambda model, X, draw: secretly(getattr, model, "labels_", None),
    "clone": lambda model, X, draw: clone(model),
    "copy": lambda model, X, draw: copy.deepcopy(model),
    "pickle": lambda model, X, draw: pickle.loads(pickle.dumps(model)),
    "params": lambda model, X, draw: model.set_params(**draw(parameters(type(model)))),
    "repr": lambda model, X, draw: repr(model),
    "plan": lambda model, X, draw: secretly(
        getattr(model, "plan", repr), draw(st.sampled_from([0, 1, 2, 2, 5, -1, 100, "2"]))
    ),
    "at": lambda model, X, draw: secretly(
        getattr(model, "at", repr), draw(st.sampled_from([1, 10, 10**6, 0, -1, 2.5, None]))
    ),
    "cut": lambda model, X, draw: secretly(
        getattr(model, "cut", dict), n_clusters=draw(st.sampled_from([1, 2, 100, 0, None, 2.5]))
    ),
    "release": lambda model, X, draw: hasattr(model, "release_") and secretly(model.release_.predict, X),
}


@fuzz(few=60, share=0.207, data=st.data())
def test_calls_in_any_order(shard, data):
    cls = data.draw(st.sampled_from(CLASSES))
    model = cls(**data.draw(parameters(cls)))
    X, Y = data.draw(tables()), data.draw(tables())
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder, "ledger.db"), "table", Budget(3), allow_seeded=True)
        if data.draw(st.booleans()):
            model.set_params(ledger=ledger)
        names = data.draw(st.lists(st.sampled_from([*CALLS, *["fit"] * 6]), min_size=1, max_size=4))
        for name in names:
            before = vars(model).get("release_")
            table = data.draw(st.sampled_from([X, X, Y]))
            found = CALLS[name](model, table, data.draw)
            model = found if isinstance(found, cls) else model
            if vars(model).get("release_") is not before and before is None:
                check_fitted(model, Path(folder, "release.json"))
        spends = [charge.spend for charge in ledger.history() if charge.outcome == "released"]
        assert sum(spends, Budget.zero()) <= ledger.spent() <= Budget(3)
