"""What every estimator must satisfy: scikit-learn's contract, and ours about what leaves the object."""

import copy
import inspect
import json
import pickle
import struct
from collections.abc import Sized
from dataclasses import dataclass
from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.conftest import ONE, all_estimators

from sfumato import Budget, Ledger, Release
from sfumato.cluster import PrivateClusterer
from sfumato.curator import Curator, Table
from sfumato.errors import DataError, ParameterError
from sfumato.private.aggregates.limbs import LimbSums
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.public.models import CentreModel

SECRET = 0.12345678901234567  # a value that no computation on a coarse grid can produce by chance
SEED = 918273645
EXPECTED_FAILURES = {
    "check_estimators_empty_data_messages": "no rows are a neighbour of one row, and must work",
}
OF_TEN_COLUMNS = dict.fromkeys(
    ["check_dtype_object", "check_fit2d_1sample"], "cells of a given width are too many in ten columns"
)
KINDS = [{"epsilon": 2}, {"epsilon": 2, "delta": 1e-6}, {"rho": 0.5}]
FIRST = [KINDS[0], *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS[1:])]
IDS = ["pure", "approximate", "zcdp"]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=IDS)


def with_public_bounds(cls):
    known = inspect.signature(cls).parameters
    wanted = {"n_clusters": 3, "bounds": (-3, 3), "epsilon": 10, "max_cells": 1024}
    wanted |= {"radius": 0.5, "cell": 0.8}
    if "n_components" in known:  # asks so often that the fifty rows of scikit-learn need more
        wanted["epsilon"] = 100
    return cls(**{name: value for name, value in wanted.items() if name in known})


def expected_failures(estimator):
    by_width = hasattr(estimator, "radius") or hasattr(estimator, "cell")
    return EXPECTED_FAILURES | (OF_TEN_COLUMNS if by_width else {})


checked_by_scikit_learn = partial(parametrize_with_checks, expected_failed_checks=expected_failures)


@pytest.mark.usefixtures("quick")
@checked_by_scikit_learn([with_public_bounds(ONE)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
@pytest.mark.usefixtures("quick")
@checked_by_scikit_learn([with_public_bounds(cls) for cls in all_estimators() if cls is not ONE])
def test_scikit_learn_on_the_others(estimator, check):
    check(estimator)


def test_there_are_estimators():
    assert "GridKMeans" in [cls.__name__ for cls in all_estimators()]


def sections(doc):
    lines = inspect.cleandoc(doc).splitlines()
    return {lines[i] for i in range(len(lines) - 1) if lines[i] and lines[i + 1] == "-" * len(lines[i])}


def test_estimators_state_their_privacy(estimator_class):
    wanted = {"Parameters", "Attributes", "Privacy", "References", "Examples"}
    assert wanted <= sections(estimator_class.__doc__)
    assert "docs/proofs/" in estimator_class.__doc__


@pytest.mark.parametrize("cls", [PrivateClusterer, Curator, Release, Ledger])
def test_the_path_of_a_release_states_its_privacy(cls):
    assert "Privacy" in sections(cls.__doc__)


def test_constructor_only_stores(estimator_class):
    junk = {name: object() for name in inspect.signature(estimator_class).parameters}
    stored = estimator_class(**junk).get_params(deep=False)
    assert all(stored[name] is value for name, value in junk.items())


def test_shared_parameters(estimator_class):
    defaults = {n: p.default for n, p in inspect.signature(estimator_class).parameters.items()}
    shared = {"epsilon": 1.0, "delta": 0.0, "rho": None, "bounds": None, "unit": None, "max_rows_per_unit": 1}
    shared |= {"ledger": None, "random_state": None}
    assert shared.items() <= defaults.items()


def test_an_epsilon_that_was_not_given_stays_so(estimator_class):
    """Copies with a rho, in this process or another, must not look as if epsilon had been given, too."""
    model = estimator_class(rho=0.1)
    for copied in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert copied._budget() == Budget(rho=0.1)
        assert copied.get_params(deep=False)["epsilon"] == 1.0
    with pytest.raises(ParameterError, match="rho"):
        clone(model).set_params(epsilon=1.0)._budget()


def has_length(value, n):
    return (
        value.shape[:1] == (n,) if hasattr(value, "shape") else isinstance(value, Sized) and len(value) == n
    )


@pytest.mark.usefixtures("quick")
class TestFitted:
    @pytest.fixture
    def table(self, rows):
        rows[0] = SECRET
        return rows

    @pytest.fixture(params=FIRST, ids=IDS)
    def model(self, request, make, table):
        return make(**request.param, random_state=SEED).fit(table)

    def test_pickles_predict_and_hold_no_rows(self, model, table):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            dumped = pickle.dumps(model, protocol)
            assert_free_of_rows(dumped, table)
            again = pickle.loads(dumped)
            assert (again.predict(table) == model.predict(table)).all()
            assert again.privacy_ == model.privacy_
            assert not hasattr(again, "labels_")

    def test_copies_predict_and_hold_no_rows(self, model, table):
        again = copy.deepcopy(model)
        assert (again.predict(table) == model.labels_).all()
        assert "_table" not in vars(again)
        with pytest.raises(AttributeError, match="only the fitted object keeps"):
            _ = again.labels_
        assert "_table" not in vars(copy.copy(model))

    def test_joblib(self, model, table, tmp_path):
        joblib.dump(model, tmp_path / "model")
        assert_free_of_rows((tmp_path / "model").read_bytes(), table)
        assert (joblib.load(tmp_path / "model").predict(table) == model.predict(table)).all()

    def test_clone_is_unfitted_with_the_same_parameters(self, model):
        again = clone(model)
        assert not hasattr(again, "release_")
        assert not hasattr(again, "privacy_")
        assert repr(again) == repr(model)

    def test_the_release_holds_neither_rows_nor_labels_nor_seed(self, model, table, tmp_path):
        text = model.release_.save(tmp_path / "release.json").read_text()
        assert_free_of_rows(text.encode(), table)
        content = json.loads(text)
        assert str(SEED) not in text
        of_cells = not isinstance(model.release_.model, CentreModel)
        assert of_cells or "label" not in text
        assert "random_state" not in text
        assert "ledger" not in text
        assert content["privacy"]["seeded"] is True
        # A fine grid may have more cells than there are rows.
        assert longest_list(content) != len(table) if of_cells else longest_list(content) < len(table)

    def test_labels_are_computed_on_demand(self, model, table, monkeypatch):
        assert "labels_" not in vars(model)
        assert "labels_" not in model.__getstate__()
        calls = []
        predict = type(model.release_.model).predict
        monkeypatch.setattr(
            type(model.release_.model), "predict", lambda m, rows: calls.append(len(rows)) or predict(m, rows)
        )
        assert calls == []
        assert (model.labels_ == model.predict(table)).all()
        assert calls == [len(table)] * 2

    def test_nothing_that_is_kept_has_an_entry_per_row_but_the_rows_themselves(self, model, table):
        assert model._table._rows is table
        everything = vars(model) | vars(model._table)
        kept = {name: value if isinstance(value, tuple) else (value,) for name, value in everything.items()}
        as_long = {
            name for name, parts in kept.items() if any(has_length(part, len(table)) for part in parts)
        }
        assert as_long == {"_rows"}

    def test_fitted_attributes(self, model, table):
        assert model.n_features_in_ == 2
        assert model.release_.privacy is model.privacy_
        assert isinstance(model.release_, Release)
        assert model.predict(table).dtype == np.int64
        assert "seeded: do not publish" in str(model.privacy_)

    def test_the_same_seed_gives_the_same_release(self, model, table):
        again = clone(model).fit(table)
        assert encoded_model(again) == encoded_model(model)
        assert encoded_model(clone(model).set_params(random_state=1).fit(table)) != encoded_model(model)


def assert_free_of_rows(dumped, table):
    for value in (SECRET, *table[1]):
        value = float(value)
        for spelled in (struct.pack("<d", value), struct.pack(">d", value), repr(value).encode()):
            assert spelled not in dumped


def longest_list(content):
    """Length of the longest list in a release: labels would be as long as the table."""
    if isinstance(content, dict):
        return max(map(longest_list, content.values()), default=0)
    if isinstance(content, list):
        return max(len(content), *map(longest_list, content), 0)
    return 0


def with_centres(model):
    """The model, if its clusters have centres: for tests that are about these."""
    if not isinstance(model.release_.model, CentreModel):
        pytest.skip("has no centres")
    return model


def encoded_model(model):
    return json.dumps(model.release_.to_dict()["model"])


@pytest.mark.usefixtures("quick")
class TestTables:
    @pytest.mark.parametrize("kind", FIRST, ids=IDS)
    @pytest.mark.parametrize("n", [0, 1])
    def test_no_row_and_one_row(self, make, kind, n):
        model = make(**kind).fit(np.full((n, 2), 0.5))
        assert model.labels_.shape == (n,)
        assert model.predict(np.empty((0, 2))).shape == (0,)

    def test_all_rows_equal(self, make):
        model = make(epsilon=5).fit(np.full((500, 2), 0.25))
        assert model.labels_.min() >= 0
        assert len(set(model.labels_)) == 1

    def test_without_a_seed_two_fits_differ(self, make, rows):
        assert encoded_model(make().fit(rows)) != encoded_model(make().fit(rows))
        assert "seeded" not in str(make().fit(rows).privacy_)

    @pytest.mark.parametrize("n", [0, 1, 300])
    def test_centres_and_sizes(self, make, rows, n):
        for kind in KINDS:
            model = with_centres(make(**kind).fit(rows[:n]))
            assert model.cluster_centers_.shape == (model.n_clusters_, 2)
            assert model.cluster_sizes_.shape == (model.n_clusters_,)
            assert (np.abs(model.cluster_centers_) <= 1).all()
            assert (model.cluster_sizes_ >= 0).all()
            assert np.isfinite(model.cluster_sizes_).all()

    def test_outliers_are_clipped(self, make, rows):
        far = np.concatenate([rows, [[1e300, -1e300], [np.finfo(float).max, 5e-324]]])
        model = make(random_state=0, outside="clip").fit(far)
        clipped = make(random_state=0, outside="clip").fit(np.clip(far, -1, 1))
        assert encoded_model(model) == encoded_model(clipped)

    def test_fit_again_forgets(self, make, rows):
        model = make(random_state=0).fit(rows)
        model.fit(rows[:, :1])
        assert model.n_features_in_ == 1
        assert model.labels_.shape == (len(rows),)
        assert model.release_.model.n_features == 1

    def test_a_failed_first_fit_is_not_fitted(self, make, rows):
        model = make(epsilon=-1)
        with pytest.raises(ParameterError):
            model.fit(rows)
        with pytest.raises(Exception, match="not fitted"):
            model.predict(rows)
        assert not hasattr(model, "labels_")


@every_kind
def test_a_plan_costs_what_it_says_and_spends_nothing(make, kind, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(**kind))
    model = make(**kind, ledger=ledger)
    plan = model.plan(n_features=2)
    assert "total" in str(plan)
    assert plan.cost() <= Budget(**kind)
    assert not ledger.spent()
    assert model.plan(2).steps == plan.steps


@pytest.mark.usefixtures("quick")
def test_the_ledger_is_charged_the_plan_before_the_first_row(make, rows, tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    seen = []

    def crash(*arguments):
        seen.append(ledger.spent())
        raise RuntimeError("power cut")

    model = make(epsilon=0.25, ledger=ledger)
    model.fit(rows)
    monkeypatch.setattr(Table, "curator", crash)
    with pytest.raises(RuntimeError, match="power cut"):
        make(epsilon=0.5, ledger=ledger).fit(rows)
    assert seen == [Budget(0.75)]
    released, failed = ledger.history()
    assert (released.outcome, failed.outcome) == ("released", "failed")
    assert released.plan == str(model.plan(2))
    assert released.method == type(model).__name__
    assert released.seeded is False


@pytest.mark.usefixtures("quick")
def test_copies_draw_on_the_same_ledger(make, rows, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    model = make(epsilon=0.25, ledger=ledger).fit(rows)
    for again in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        again.fit(rows)
    assert ledger.spent() == Budget(1)


@dataclass(frozen=True)
class Public:
    """An engine that forgets its rows and answers with public numbers."""

    n_features: int
    log: list

    def fold(self, aggregate):
        state = aggregate.zero()
        state += np.arange(state.size).reshape(state.shape) % 7
        if isinstance(aggregate, LimbSums):
            state[1] = 0
        self.log.append((type(aggregate), pickle.dumps(aggregate), state.shape))
        return state


NEIGHBOURS = {
    "no row, one row": (np.empty((0, 2)), np.zeros((1, 2))),
    "one row, two rows": (np.zeros((1, 2)), np.array([[0.0, 0.0], [1e300, -1e300]])),
    "all equal, one outside": (np.full((40, 2), 0.5), np.concatenate([np.full((40, 2), 0.5), [[-7.0, 9.0]]])),
}


@pytest.mark.parametrize(("pair", "kind"), list(zip(NEIGHBOURS.values(), KINDS, strict=True)), ids=NEIGHBOURS)
@pytest.mark.usefixtures("quick")
def test_rows_reach_the_result_through_the_curator_only(make, pair, kind, monkeypatch):
    """Equal answers of the curator must give equal results: no branch on rows, no shape, no error, no log."""
    results = []
    for table in pair:
        log = []
        monkeypatch.setattr(
            Table,
            "curator",
            lambda table, plan, seed, log=log: Curator(Public(2, log), table.domain, plan, Entropy(seed)),
        )
        model = make(**kind, random_state=3).fit(table)
        published = {k: v for k, v in model.release_.to_dict().items() if k != "created"}
        kept = set(vars(model))
        results.append((log, published, kept))
    assert results[0] == results[1]
    assert results[0][0], "nothing was asked"


@pytest.mark.usefixtures("quick")
def test_predict_refuses_other_columns_without_echoing(make, rows):
    model = make(random_state=0).fit(rows)
    with pytest.raises(DataError, match="X has 3 features, but"):
        model.predict(np.full((4, 3), SECRET))
    with pytest.raises(DataError) as error:
        model.predict(np.full(3, SECRET))
    assert "0.123" not in str(error.value)
