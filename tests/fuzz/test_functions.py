"""Functions of the public API with any arguments: the planner, questions before a fit, and scores."""

import inspect

import numpy as np
from hypothesis import strategies as st
from tests.fuzz.cases import attempt, fuzz
from tests.fuzz.tables import SPELLED, arrays, tables
from tests.fuzz.test_estimators import BOUNDS, CLASSES, NAMED, ODD, parameters

import sfumato
from sfumato import Budget, metrics, planner
from sfumato.cli.methods import BUILT_IN

counts = st.sampled_from([1, 2, 3, 8, 100])
amounts = st.sampled_from([1.0, 0.1, 10, "1/3", 1e-3])
usual = {
    "n": st.sampled_from([100, 5000, 1e6, 0.5]),
    "d": st.sampled_from([1, 2, 2, 3, 8]),
    "k": st.none() | counts,
    "epsilon": amounts,
    "method": st.sampled_from(sorted(BUILT_IN)) | st.sampled_from(CLASSES),
    "center_error": st.none() | st.sampled_from([0.1, 0.01, 1e-9]),
    "size_error": st.none() | st.sampled_from([1, 100.0, 1e6]),
    "smallest_cluster": st.none() | st.sampled_from([10, 1000]),
    "bounds": st.sampled_from([(-1, 1), (-1, 1), *BOUNDS, *NAMED]),
    "X": tables(),
    "unit": st.sampled_from(["who", "who", "c0", None]),
    "columns": st.sampled_from([None, ["c0"], ["c0", "c1"], ["none"], [], "c0"]),
    "centers": arrays(2),
    "reference_centers": st.lists(arrays(2), max_size=2) | arrays(2),
    "labels_true": st.lists(st.integers(-1, 3), max_size=5) | tables(),
    "labels_pred": st.lists(st.integers(-1, 3), max_size=5) | tables(),
    "centers_or_labels": st.lists(st.integers(-1, 3), max_size=60) | tables(),
    "n_clusters": counts,
    "n_best": st.integers(1, 2),
    "n_runs": st.integers(1, 2),
    "budget": st.sampled_from([None, Budget(1), Budget(rho=1), 5]),
    "missing": st.sampled_from(["error", "drop"]),
    "seed": st.integers(0, 3),
}
FUNCTIONS = [planner.plan, planner.budget_for, planner.recommend, sfumato.grid_size, Budget]
FUNCTIONS += [sfumato.estimate_bounds, sfumato.estimate_levels, sfumato.suggest_max_rows]
SCORES = [getattr(metrics, name) for name in metrics.__all__]


@st.composite
def arguments(draw, function):
    """Arguments that mostly fit; one of them may be anything."""
    known = [name for name, p in inspect.signature(function).parameters.items() if p.kind != p.VAR_KEYWORD]
    needed = {
        name for name in known if inspect.signature(function).parameters[name].default is inspect._empty
    }
    chosen = {
        name: draw(usual[name]) for name in known if name in usual and (name in needed or draw(st.booleans()))
    }
    for name in draw(st.lists(st.sampled_from(known), max_size=1)):
        chosen[name] = draw(st.sampled_from(ODD))
    return chosen


@fuzz(few=30, share=0.05, data=st.data())
def test_functions(shard, data):
    function = data.draw(st.sampled_from(FUNCTIONS))
    found = attempt(function, **data.draw(arguments(function)), secrets=SPELLED)
    assert str(found)


@fuzz(few=10, share=0.02, data=st.data())
def test_forecasts_of_any_estimator(shard, data):
    cls = data.draw(st.sampled_from(CLASSES[:-1]))
    model = cls(**data.draw(parameters(cls)))
    found = attempt(planner.forecast, model, data.draw(usual["n"]), data.draw(usual["d"]), secrets=SPELLED)
    assert str(found)


@fuzz(few=20, share=0.04, data=st.data())
def test_scores(shard, data):
    """Of the holder's own rows: their errors are of the same classes, and tell nothing either."""
    score = data.draw(st.sampled_from(SCORES))
    found = attempt(score, **data.draw(arguments(score)), secrets=SPELLED)
    assert (
        found is None or np.isfinite(np.concatenate([np.ravel(part) for part in np.atleast_1d(found)])).all()
    )


@fuzz(few=10, share=0.02, data=st.data())
def test_projections(shard, data):
    chosen = {
        "n_components": data.draw(counts),
        "bounds": data.draw(usual["bounds"]),
        "seed": data.draw(usual["seed"]),
    }
    model = sfumato.RandomProjection(
        **chosen | data.draw(st.just({}) | st.fixed_dictionaries({"seed": st.sampled_from(ODD)}))
    )
    for name in data.draw(st.lists(st.sampled_from(["fit", "transform", "inverse_transform"]), max_size=4)):
        attempt(getattr(model, name), data.draw(tables()), secrets=SPELLED)
