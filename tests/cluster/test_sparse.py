"""Estimators on sparse rows: what is found, spent, released and refused."""

import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse as sp
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from sfumato import (
    DPM,
    Budget,
    Ledger,
    LloydKMeans,
    LocalSearchKMeans,
    Release,
    SourceTargetClustering,
    Sparse,
)
from sfumato.datasets import tagged_groups
from sfumato.errors import DataError, ParameterError
from sfumato.planner import plan

N_COLUMNS = 5000
BOUNDS = Sparse(max_active=128, n_components=256)


@pytest.fixture(scope="module")
def data():
    return tagged_groups(4000, n_columns=N_COLUMNS, n_clusters=3, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return model().fit(data[0])


def model(**options):
    return LloydKMeans(3, **{"rho": 5, "bounds": BOUNDS, "random_state": 0} | options)


def test_it_finds_the_groups_and_their_terms(data, fitted):
    X, labels = data
    assert adjusted_rand_score(labels, fitted.predict(X)) > 0.9
    assert np.array_equal(fitted.labels_, fitted.predict(X))
    assert fitted.n_features_in_ == N_COLUMNS
    assert fitted.cluster_centers_.shape == fitted.cluster_center_stds_.shape == (3, N_COLUMNS)
    assert fitted.sketched_centers_.shape == (3, 256)
    scaled = (X / np.sqrt(np.maximum(X.sum(axis=1), 1))[:, None]).tocsr()
    for cluster, top in enumerate(fitted.top_terms_):
        mean = scaled[fitted.labels_ == cluster].mean(axis=0) - scaled.mean(axis=0)
        assert len(set(top) & set(map(str, np.argsort(-mean)[:20]))) >= 8


def test_sizes_are_those_of_the_last_clusters(fitted):
    exact = np.bincount(fitted.labels_, minlength=3)
    assert (np.abs(fitted.cluster_sizes_ - exact) < 5 * fitted.cluster_size_stds_).all()


def test_what_is_spent_is_what_was_promised(fitted):
    promised = fitted.plan(N_COLUMNS)
    assert [str(step.step.name) for step in promised.steps][-1] == "column terms"
    (record,) = [record for record in fitted.privacy_.steps if record.step == "column terms"]
    rho = Fraction(record.sensitivity.l2_squared) / (2 * record.scale**2)
    assert 0.999 * 5 / 6 < float(rho) <= 5 / 6
    assert float(fitted.privacy_.rho) <= 5


@pytest.mark.parametrize("budget", [{"epsilon": 3, "rho": None}, {"epsilon": 2, "delta": 1e-6, "rho": None}])
def test_other_budgets(data, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model(**budget).fit(data[0])
    assert found.privacy_.epsilon <= budget["epsilon"]
    assert found.cluster_centers_.shape == (3, N_COLUMNS)


def test_the_release_predicts_and_holds_only_what_stands_out(data, fitted, tmp_path):
    found = Release.load(fitted.release_.save(tmp_path / "release.json"))
    assert np.array_equal(found.predict(data[0]), fitted.predict(data[0]))
    assert found.column_terms.top(1, 3) == fitted.column_terms_.top(1, 3)
    assert found.sparse.n_columns == N_COLUMNS
    assert len(found.column_terms.means) < N_COLUMNS


def test_names_of_columns(data, tmp_path):
    names = [f"tag {j}" for j in range(N_COLUMNS)]
    found = model(bounds=Sparse(128, 256, feature_names=names)).fit(data[0])
    assert all(name.startswith("tag ") for name in found.top_terms_[0])
    text = found.release_.save(tmp_path / "release.json").read_text()
    assert text.count("tag ") == len(found.column_terms_.means)


def test_without_terms(data):
    found = model(profiles=0).fit(data[0])
    assert found.release_.column_terms is None
    assert not hasattr(found, "cluster_centers_")
    assert "column terms" not in [step.step.name for step in found.plan(N_COLUMNS).steps]


def test_lists_give_the_same_release(data, fitted):
    X, _ = data
    tags = pa.ListArray.from_arrays(pa.array(X.indptr, pa.int32()), pa.array(X.indices, pa.int32()))
    bounds = Sparse(128, 256, n_columns=N_COLUMNS, lists="tags")
    found = model(bounds=bounds).fit(pa.table({"tags": tags}))
    assert np.array_equal(found.cluster_centers_, fitted.cluster_centers_)
    assert np.array_equal(found.predict(pa.table({"tags": tags})), fitted.predict(X))


def test_people(data):
    X, _ = data
    tags = pa.ListArray.from_arrays(pa.array(X.indptr, pa.int32()), pa.array(X.indices, pa.int32()))
    table = pa.table({"tags": tags, "person": np.arange(4000) // 2})
    bounds = Sparse(128, 256, n_columns=N_COLUMNS, lists="tags")
    found = model(bounds=bounds, unit="person", max_rows_per_unit=2, rho=20).fit(table)
    assert found.privacy_.unit.max_rows == 2
    assert len(found.labels_) == 4000


def test_habits_of_scikit_learn(data, fitted):
    X, _ = data
    assert fitted.transform(X[:5]).shape == (5, 3)
    assert np.array_equal(fitted.transform(X[:50]).argmin(axis=1), fitted.predict(X[:50]))
    assert fitted.score(X[:50]) < 0
    assert clone(fitted).bounds == BOUNDS
    assert np.array_equal(model().fit_predict(X), fitted.labels_)
    assert "Sparse(max_active=128" in repr(fitted)


def test_other_methods(data):
    found = LocalSearchKMeans(3, rho=20, bounds=BOUNDS, random_state=0).fit(data[0])
    assert adjusted_rand_score(data[1], found.predict(data[0])) > 0.5


def test_rows_that_are_not_as_declared(data, tmp_path):
    X = data[0].copy()
    X.data[:3] = np.nan
    ledger = Ledger.create(tmp_path / "ledger.db", "tags", Budget(rho=10), allow_seeded=True)
    with pytest.raises(DataError, match="finite values in every row"):
        model(ledger=ledger).fit(X)
    assert ledger.history() == []
    found = model(missing="drop").fit(X)
    assert found.labels_[0] == -1
    assert (found.labels_[1:] >= 0).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"describe": ["a"]}, "`describe` must be None for sparse rows"),
        ({"weights": {"a": 2}}, "`weights` must be None for sparse rows"),
        ({"missing": {"a": 0}}, "`missing` must be 'error' or 'drop' for sparse rows"),
        ({"unit": "person"}, "`unit` must be None for a sparse array"),
        ({"bounds": Sparse(n_columns=7)}, "the 7 columns that `Sparse` declares, got 5000"),
        ({"n_clusters": 10_000, "bounds": Sparse(n_columns=10**6)}, "must have the 1000000 columns"),
    ],
)
def test_what_does_not_fit_is_refused(data, options, words):
    with pytest.raises(ParameterError, match=words):
        model().set_params(**options).fit(data[0])


def test_terms_that_would_not_fit_into_memory_are_refused():
    wide = sp.csr_array((3, 10**6))
    with pytest.raises(ParameterError, match="the terms of 10000 clusters in 1000000 columns"):
        model().set_params(n_clusters=10_000).fit(wide)


def test_another_number_of_columns_is_refused(fitted):
    with pytest.raises(ParameterError, match="the 5000 columns"):
        fitted.predict(sp.csr_array((3, 7)))


def test_nothing_is_written_out_in_full():
    """A table that would take 8 TB: rows without active columns are zero, and its centres have no terms."""
    X = sp.csr_array((np.ones(2000), (np.arange(2000), np.arange(2000) * 400)), shape=(1_000_000, 1_000_000))
    found = LloydKMeans(2, rho=1, bounds=Sparse(4, 16), n_iter=1, refine=False, random_state=0).fit(
        X[:20_000]
    )
    assert found.cluster_centers_.shape == (2, 1_000_000)


def test_a_method_that_finds_the_number_itself(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = DPM(rho=10, bounds=BOUNDS, random_state=0).fit(data[0])
    assert len(found.top_terms_) == found.n_clusters_


def test_sparse_rows_need_their_declaration(data):
    with pytest.raises(TypeError, match=r"Sparse data was passed .* bounds=sfumato.Sparse"):
        model(bounds=(0, 1)).fit(data[0])


def test_a_method_that_takes_no_sparse_rows_says_so(data):
    with pytest.raises(ParameterError, match="SourceTargetClustering takes no sparse rows"):
        SourceTargetClustering(3, bounds=BOUNDS).fit(data[0], data[0])


def test_a_forecast_knows_the_coordinates():
    told = plan(50_000, 75_688, 16, rho=0.5, method="LloydKMeans", bounds=Sparse())
    assert told is not None
