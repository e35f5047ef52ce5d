"""What people expect of scikit-learn: transform, score, probabilities; each fold pays for itself."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from tests.conftest import all_estimators

from sfumato import (
    DPDBSCAN,
    Budget,
    DensityTree,
    DPMoG,
    GridKMeans,
    Ledger,
    LloydKMeans,
    MorseClustering,
    metrics,
)
from sfumato.cluster.shared.habits import CentreHabits, MixtureHabits
from sfumato.errors import BudgetExceededError, DataError

OF_CENTRES = [cls for cls in all_estimators() if issubclass(cls, CentreHabits)]
WIDE = {"x": (-1, 1), "income": (-1e6, 1e6)}


def make_small(cls, **parameters):
    known = inspect.signature(cls).parameters
    small = {"n_clusters": 3, "n_components": 3, "bounds": (-1, 1), "max_cells": 100, "random_state": 0}
    return cls(**{**{name: value for name, value in small.items() if name in known}, **parameters})


def frame(rows):
    return pd.DataFrame({"income": 1e6 * rows[:, 1], "note": "n", "x": rows[:, 0]})


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("cls", OF_CENTRES, ids=lambda cls: cls.__name__)
class TestCentres:
    def test_distances_and_score(self, cls, rows):
        model = make_small(cls).fit(rows)
        found = model.transform(rows)
        apart = np.linalg.norm(rows[:, None] - model.cluster_centers_, axis=2)
        assert np.allclose(found, apart)
        assert (found.argmin(axis=1) == model.predict(rows)).all()
        assert model.score(rows) == pytest.approx(-metrics.inertia(rows, model.cluster_centers_))
        assert model.transform(np.empty((0, 2))).shape == (0, model.n_clusters_)
        assert model.score(np.empty((0, 2))) == 0

    def test_fit_transform_and_names(self, cls, rows):
        model = make_small(cls)
        again = clone(model).fit(rows).transform(rows)
        assert (model.fit_transform(rows) == again).all()
        names = [f"{cls.__name__.lower()}{i}" for i in range(model.n_clusters_)]
        assert model.get_feature_names_out().tolist() == names
        named = clone(model).set_output(transform="pandas").fit(rows).transform(rows)
        assert list(named.columns) == names


@pytest.mark.usefixtures("quick")
class TestMeasured:
    def test_distances_are_in_measured_units(self, rows):
        model = LloydKMeans(3, bounds=WIDE, profiles=0, random_state=0).fit(frame(rows))
        found = model.transform(frame(rows))
        centers = model.cluster_centers_ / [2, 2e6]
        assert np.allclose(found, np.linalg.norm(rows[:, None] / 2 - centers, axis=2))
        assert (found.argmin(axis=1) == model.predict(frame(rows))).all()
        assert model.score(frame(rows)) == pytest.approx(-(found.min(axis=1) ** 2).sum())

    def test_the_inertia_is_in_measured_units(self, rows):
        many = np.repeat(rows, 10, axis=0)
        wide = GridKMeans(3, epsilon=5, bounds=WIDE, profiles=0, random_state=0).fit(frame(many))
        alike = GridKMeans(3, epsilon=5, bounds=(-1, 1), random_state=0).fit(many)
        assert 4 * wide.inertia_ == pytest.approx(alike.inertia_, rel=0.3)
        assert -wide.score(frame(many)) == pytest.approx(wide.inertia_, abs=4 * wide.inertia_std_)

    def test_rows_that_are_not_used_have_nan(self, rows):
        table = frame(rows)
        table.loc[3, "x"] = np.nan
        table.loc[5, "income"] = 2e6
        options = {"missing": "drop", "outside": "drop", "profiles": 0, "random_state": 0}
        model = LloydKMeans(3, bounds=WIDE, **options).fit(table)
        unused = np.isnan(model.transform(table)).all(axis=1)
        assert np.flatnonzero(unused).tolist() == [3, 5]
        assert (unused == (model.predict(table) == -1)).all()
        assert model.score(table) == pytest.approx(model.score(table.drop([3, 5])))
        array = np.where(np.isnan(rows), rows, rows)
        array[7] = np.nan
        model = LloydKMeans(3, bounds=(-1, 1), missing="drop", random_state=0).fit(array)
        assert np.flatnonzero(np.isnan(model.transform(array)[:, 0])).tolist() == [7]
        with pytest.raises(DataError):
            LloydKMeans(3, bounds=(-1, 1), random_state=0).fit(rows).transform(array)

    def test_other_columns_are_refused(self, rows):
        model = LloydKMeans(3, bounds=(-1, 1), random_state=0).fit(rows)
        with pytest.raises(DataError, match="X has 3 features"):
            model.transform(np.zeros((2, 3)))
        with pytest.raises(Exception, match="not fitted"):
            LloydKMeans().transform(rows)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("epsilon", [0.3, 1, 5])
def test_the_inertia_of_a_grid_is_within_its_error(epsilon):
    far = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        centers = rng.uniform(-0.7, 0.7, size=(4, 2))
        rows = np.clip(centers[rng.integers(4, size=3000)] + rng.normal(scale=0.1, size=(3000, 2)), -1, 1)
        model = GridKMeans(4, epsilon=epsilon, bounds=(-1, 1), random_state=seed).fit(rows)
        exact = metrics.inertia(rows, model.cluster_centers_)
        far.append((model.inertia_ - exact) / model.inertia_std_)
    assert np.abs(far).max() < 3.5
    assert abs(np.mean(far)) < 1.2
    assert 0.2 < np.std(far) < 1.6


@pytest.mark.usefixtures("quick")
def test_probabilities_and_densities_of_a_mixture(rows):
    model = DPMoG(3, epsilon=5, bounds=(-1, 1), random_state=0).fit(rows)
    parts = np.stack(
        [
            weight * multivariate_normal(mean, covariance).pdf(rows)
            for weight, mean, covariance in zip(model.weights_, model.means_, model.covariances_, strict=True)
        ]
    ).T
    assert np.allclose(model.score_samples(rows), np.log(parts.sum(axis=1)))
    assert np.allclose(model.predict_proba(rows), parts / parts.sum(axis=1, keepdims=True))
    assert (model.predict_proba(rows).argmax(axis=1) == model.predict(rows)).all()
    assert model.score(rows) == pytest.approx(model.score_samples(rows).mean())
    assert model.score(np.empty((0, 2))) == 0
    wide = DPMoG(3, epsilon=5, bounds=WIDE, profiles=0, random_state=0).fit(frame(rows))
    scaled = [covariance / np.outer([1, 1e6], [1, 1e6]) for covariance in wide.covariances_]
    density = sum(
        weight * multivariate_normal(mean, covariance).pdf(rows)
        for weight, mean, covariance in zip(wide.weights_, wide.means_ / [1, 1e6], scaled, strict=True)
    )
    assert np.allclose(wide.score_samples(frame(rows)), np.log(density / 1e6), atol=1e-6)


@pytest.mark.usefixtures("quick")
def test_centres_with_covariances_have_probabilities_too(rows):
    model = LloydKMeans(3, epsilon=5, bounds=(-1, 1), covariances=True, random_state=0).fit(rows)
    found = model.predict_proba(rows)
    assert (found.argmax(axis=1) == model.predict(rows)).all()
    assert np.allclose(found.sum(axis=1), 1)
    assert model.score_samples(rows).shape == (len(rows),)
    assert model.transform(rows).shape == found.shape
    assert model.score(rows) == pytest.approx(-metrics.inertia(rows, model.means_))


@pytest.mark.parametrize("cls", [DPDBSCAN, DensityTree, MorseClustering, DPMoG])
def test_other_methods_say_what_to_use_instead_of_transform(cls):
    model = cls()
    assert not hasattr(model, "transform")
    assert not hasattr(model, "fit_transform")
    assert not isinstance(model, TransformerMixin)
    with pytest.raises(AttributeError, match=rf"{cls.__name__} has no `transform`: .* Use predict\(X\)"):
        _ = model.transform


def test_what_is_missing_says_what_to_use():
    for name, word in {
        "predict_proba": "DPMoG",
        "score_samples": "DPMoG",
        "inertia_": r"-score\(X\)",
    }.items():
        assert not hasattr(LloydKMeans(), name)
        with pytest.raises(AttributeError, match=f"has no `{name}`: .*{word}"):
            getattr(LloydKMeans(), name)
    assert not hasattr(DPDBSCAN(), "score")


def test_every_method_either_has_centres_or_a_mixture_or_neither():
    of_mixtures = [cls for cls in all_estimators() if issubclass(cls, MixtureHabits)]
    others = [cls for cls in all_estimators() if cls not in OF_CENTRES + of_mixtures]
    assert {cls.__name__ for cls in others} == {"DPDBSCAN", "DensityTree", "MorseClustering"}
    assert of_mixtures == [DPMoG]


class Halved(TransformerMixin, BaseEstimator):
    """Takes each row by itself."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / 2


@pytest.mark.usefixtures("quick")
class TestFolds:
    """Every fit on the rows is a release, so every fold pays."""

    @pytest.fixture
    def ledger(self, tmp_path):
        return Ledger.create(tmp_path / "ledger.db", "people", Budget(10), allow_seeded=True)

    def model(self, ledger, **parameters):
        return LloydKMeans(3, bounds=(-1, 1), ledger=ledger, **parameters)

    def test_each_fold_of_a_cross_validation_is_charged(self, ledger, rows):
        found = cross_validate(self.model(ledger, epsilon=0.5), rows, cv=5)
        assert (found["test_score"] < 0).all()
        assert ledger.spent() == Budget("2.5")
        assert [charge.method for charge in ledger.history()] == ["LloydKMeans"] * 5

    def test_so_is_each_fold_of_a_pipeline(self, ledger, rows):
        cross_validate(make_pipeline(Halved(), self.model(ledger, epsilon=0.5)), rows, cv=5)
        assert ledger.spent() == Budget("2.5")

    def test_a_search_pays_for_each_candidate_each_fold_and_the_last_fit(self, ledger, rows):
        search = GridSearchCV(self.model(ledger, epsilon=0.5), {"n_clusters": [2, 3]}, cv=3).fit(rows)
        assert ledger.spent() == Budget((2 * 3 + 1) / 2)
        assert search.best_estimator_.privacy_.epsilon == 0.5

    def test_a_budget_for_fewer_folds_says_that_each_is_charged(self, ledger, rows):
        with pytest.raises(BudgetExceededError, match=r"The last 4 charges .* once for each fold"):
            cross_validate(self.model(ledger, epsilon=2.5), rows, cv=5, error_score="raise")
        assert ledger.spent() == Budget(10)
