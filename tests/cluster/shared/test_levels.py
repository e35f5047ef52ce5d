"""Levels that are not public: found for a budget of their own or inside a fit, priced, charged and stated."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import all_estimators

from sfumato import Budget, Ledger, LloydKMeans, Release, SourceTargetClustering, estimate_levels
from sfumato.cluster.shared.levels import LEVELS_SHARE, MOST_LEVELS, most_levels, private_columns
from sfumato.errors import BudgetExceededError, DataError, GuaranteeWarning, NoiseWarning, ParameterError

PRIVATE = {"levels": "private"}
BUDGET = {"epsilon": 1, "delta": 1e-6}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    jobs = rng.choice(["baker", "cook", "judge", "king"], 6000, p=[0.5, 0.3, 0.1999, 0.0001])
    return pd.DataFrame({"age": rng.uniform(20, 60, 6000), "job": jobs, "code": rng.integers(0, 3, 6000)})


def fitted(people, bounds, **options):
    return LloydKMeans(3, bounds=bounds, **(BUDGET | {"random_state": 0} | options)).fit(people)


def test_levels_of_several_columns(people):
    found = estimate_levels(people, ["job", "code"], random_state=0, **BUDGET)
    assert found["job"].levels == ("baker", "cook", "judge")
    assert found["code"].levels == ("0", "1", "2")
    exact = people["job"].value_counts()
    shown = dict(zip(found["job"].levels, found["job"].noisy_people, strict=True))
    assert all(abs(n - exact[str(job)]) < 60 for job, n in shown.items())
    assert min(shown.values()) >= found["job"].threshold
    assert list(found["job"]) == ["baker", "cook", "judge"]
    assert len(found["job"]) == 3


def test_what_they_cost(people):
    found = estimate_levels(people, ["job", "code"], random_state=0, **BUDGET)
    privacy = found["job"].privacy
    assert privacy is found["code"].privacy
    assert privacy.spent == privacy.budget == Budget(1, 1e-6)
    assert [record.step for record in privacy.steps] == ["levels"]
    assert privacy.steps[0].sensitivity.l1 == 2


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.5}])
def test_delta_is_needed_before_anything_is_charged(people, budget, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(5, 0.1), allow_seeded=True)
    with pytest.raises(ParameterError, match="need a budget with `epsilon` and `delta`"):
        estimate_levels(people, ["job"], ledger=ledger, **budget)
    with pytest.raises(ParameterError, match="need a budget with `epsilon` and `delta`"):
        LloydKMeans(3, bounds={"age": (0, 99), "job": PRIVATE}, ledger=ledger, **budget).fit(people)
    assert ledger.history() == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("job", "list of distinct names"),
        (["job", "job"], "distinct"),
        (["who"], "'who' must be in the table"),
    ],
)
def test_bad_columns(people, columns, message):
    with pytest.raises(ParameterError, match=message):
        estimate_levels(people, columns, **BUDGET)


def test_numbers_have_no_levels_and_nothing_is_charged(people, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(5, 0.1), allow_seeded=True)
    with pytest.raises(DataError, match="'age' must hold text, integers or booleans"):
        estimate_levels(people, ["age"], ledger=ledger, **BUDGET)
    with pytest.raises(DataError, match="'age' must hold text, integers or booleans"):
        fitted(people, {"age": PRIVATE}, ledger=ledger)
    assert ledger.history() == []


def test_arrays_have_no_names():
    with pytest.raises(ParameterError, match="named columns"):
        estimate_levels(np.zeros((5, 2)), ["job"], **BUDGET)


def test_only_the_most_common(people):
    found = estimate_levels(people, ["job"], max_levels=2, random_state=0, **BUDGET)
    assert found["job"].levels == ("baker", "cook")


def test_everywhere_the_same(people, tmp_path):
    pq.write_table(pa.Table.from_pandas(people), tmp_path / "people.parquet")
    people.to_csv(tmp_path / "people.csv", index=False)
    tables = [
        people,
        people.astype({"job": "category"}),
        pl.from_pandas(people),
        pa.Table.from_pandas(people),
    ]
    tables += [people.astype(object), people[::-1], tmp_path / "people.parquet", tmp_path / "people.csv"]
    found = [estimate_levels(table, ["job", "code"], random_state=0, **BUDGET) for table in tables]
    assert all(one == found[0] for one in found)


def test_a_person_counts_once(people):
    alone = people.assign(who=0)
    with pytest.warns(NoiseWarning, match="no level of column 'job' was found"):
        found = estimate_levels(alone, ["job"], unit="who", max_rows_per_unit=1000, random_state=0, **BUDGET)
    assert found["job"].levels == ()
    many = people.assign(who=np.arange(6000) // 2)
    found = estimate_levels(many, ["job"], unit="who", random_state=0, **BUDGET)
    assert sum(found["job"].noisy_people) == pytest.approx(3000, abs=100)


def test_a_fit_finds_levels_and_spends_what_was_promised(people):
    model = fitted(people, {"age": (0, 99), "job": PRIVATE, "code": PRIVATE})
    names = ["age", "job=baker", "job=cook", "job=judge", "job=other", "code=0", "code=1", "code=2"]
    assert model.feature_names_in_.tolist() == [*names, "code=other"]
    assert model.n_features_in_ == model.cluster_centers_.shape[1] == 9
    assert model.privacy_.spent == model.privacy_.budget == Budget(1, 1e-6)
    first = model.privacy_.steps[0]
    assert first.step == "levels"
    assert first.epsilon == LEVELS_SHARE
    assert first.delta == Budget(1, "5e-7").delta


def test_the_plan_shows_the_levels_and_its_total_is_the_budget():
    model = LloydKMeans(3, bounds={"age": (0, 99), "job": PRIVATE}, **BUDGET)
    for n_features in (2, 9):
        plan = model.plan(n_features)
        assert plan.steps[0].step.name == "levels"
        assert "delta 5e-07" in str(plan)
        assert plan.cost() == Budget(1, 1e-6)
        assert model.domain(n_features).n_features == n_features


@pytest.mark.parametrize("budget", [("0.1", "1e-9"), ("1", "1e-6"), ("5", "0.01")])
@pytest.mark.parametrize("unit", [None, "code"])
def test_spend_of_many_settings(people, budget, unit):
    epsilon, delta = budget
    options = {"unit": unit, "max_rows_per_unit": 3} if unit else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        model = fitted(people, {"age": (0, 99), "job": PRIVATE}, epsilon=epsilon, delta=delta, **options)
    promised = Budget(epsilon, delta)
    assert model.privacy_.spent <= model.privacy_.budget == promised
    assert float(model.privacy_.spent.epsilon) >= 0.999 * float(epsilon)
    assert sum(record.delta for record in model.privacy_.steps) == promised.delta / 2


def test_charged_once_and_in_full_before_anything_is_read(people, tmp_path):
    bounds = {"age": (0, 99), "job": PRIVATE}
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1.5, 1e-5), allow_seeded=True)
    fitted(people, bounds, ledger=ledger)
    assert ledger.spent() == Budget(1, 1e-6)
    assert len(ledger.history()) == 1
    with pytest.raises(BudgetExceededError):
        fitted(people, bounds, ledger=ledger)
    assert len(ledger.history()) == 1


def test_the_release_knows_the_levels(people, tmp_path):
    model = fitted(people, {"age": (0, 99), "job": PRIVATE})
    model.release_.save(tmp_path / "release.json")
    release = Release.load(tmp_path / "release.json")
    assert release.reading.labels == ("age", "job=baker", "job=cook", "job=judge", "job=other")
    assert release.privacy == model.privacy_
    assert (release.predict(people) == model.labels_).all()
    assert len(model.labels_) == len(people)


def test_a_fit_uses_bought_levels(people):
    bought = estimate_levels(people, ["job", "code"], random_state=0, **BUDGET)
    model = fitted(people, {"age": (0, 99), **bought}, epsilon=2)
    assert model.feature_names_in_.tolist()[1:4] == ["job=baker", "job=cook", "job=judge"]
    assert model.privacy_.budget == Budget(3, 2e-6)
    assert [record.step for record in model.privacy_.steps].count("levels") == 1


def test_nothing_found_is_no_error(people):
    few = people[:5]
    with pytest.warns(NoiseWarning, match="The column says nothing about the rows"):
        model = fitted(few, {"job": PRIVATE, "code": PRIVATE})
    assert model.feature_names_in_.tolist() == ["job=other", "code=other"]
    assert len(model.labels_) == 5
    with pytest.warns(NoiseWarning):
        bought = estimate_levels(few, ["job"], random_state=0, **BUDGET)
    model = fitted(few, {"age": (0, 99), **bought})
    assert model.feature_names_in_.tolist() == ["age", "job=other"]


def test_missing_values(people):
    holes = people.assign(job=people["job"].where(people["age"] < 50))
    with pytest.raises(DataError, match="'job' must have a value in every row"):
        fitted(holes, {"age": (0, 99), "job": PRIVATE})
    dropped = fitted(holes, {"age": (0, 99), "job": PRIVATE}, missing="drop")
    assert dropped.feature_names_in_.tolist() == ["age", "job=baker", "job=cook", "job=judge", "job=other"]
    assert ((dropped.labels_ == -1) == holes["job"].isna()).all()
    filled = fitted(holes, {"age": (0, 99), "job": PRIVATE}, missing={"job": "unknown"})
    names = ["age", "job=baker", "job=cook", "job=judge", "job=unknown", "job=other"]
    assert filled.feature_names_in_.tolist() == names
    assert (filled.labels_ >= 0).all()
    with pytest.raises(DataError, match="values like its levels"):
        fitted(people, {"code": PRIVATE}, missing={"code": "unknown"})


def test_public_levels_may_be_written_alike(people):
    one = fitted(people, {"age": (0, 99), "job": ["baker", "cook"]})
    other = fitted(people, {"age": (0, 99), "job": {"levels": ["baker", "cook"]}})
    assert (one.cluster_centers_ == other.cluster_centers_).all()
    assert private_columns({"job": {"levels": ["baker"]}, "code": PRIVATE, "age": (0, 1)}) == ("code",)


@pytest.mark.parametrize("method", all_estimators(), ids=lambda method: method.__name__)
def test_every_method_takes_as_many_levels_as_it_can(method):
    """Also where many levels would be found: no error after the charge, whatever the rows are."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(0, 1, 1500), "code": rng.integers(0, 40, 1500)})
    model = method(bounds={"x": (0, 1), "code": PRIVATE}, epsilon=20, delta=0.01, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        model.fit(table)
    n_levels = model.n_features_in_ - 2  # beside x, and other values
    assert 1 <= n_levels <= MOST_LEVELS
    assert n_levels == most_levels(lambda n: model._plan(model.domain(n).measured), 2, 1, model._most_columns)
    assert model.privacy_.spent <= model.privacy_.budget


def test_public_points_need_public_levels(people):
    model = SourceTargetClustering(2, bounds={"age": (0, 99), "job": PRIVATE}, **BUDGET)
    with pytest.raises(ParameterError, match="levels of all columns must be public"):
        model.fit(people, people)
