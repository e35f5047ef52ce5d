"""Which steps of a pipeline keep the guarantee: judged by class and parameters, never by rows."""

import warnings

import numpy as np
import pytest
from sklearn import decomposition, feature_selection, preprocessing
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from sfumato import Ball, GridKMeans, PrivatePCA, PublicScaler, RandomProjection, check_pipeline
from sfumato.errors import GuaranteeWarning, ParameterError

MODEL = GridKMeans(3, bounds=(0, 1))
LEVELS = [["a", "b"]]

SAFE = [
    PublicScaler((0, 1)),
    RandomProjection(2, bounds=(0, 1)),
    preprocessing.Normalizer(),
    preprocessing.Binarizer(threshold=3),
    preprocessing.PolynomialFeatures(2),
    preprocessing.FunctionTransformer(),
    preprocessing.OneHotEncoder(categories=LEVELS, handle_unknown="ignore"),
    preprocessing.OrdinalEncoder(categories=LEVELS, handle_unknown="use_encoded_value", unknown_value=-1),
    SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
    HashingVectorizer(),
    GaussianRandomProjection(2),
    SparseRandomProjection(2),
    RBFSampler(gamma=1.0),
    "passthrough",
    None,
]
UNSAFE = [
    preprocessing.StandardScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.RobustScaler(),
    preprocessing.KBinsDiscretizer(),
    preprocessing.QuantileTransformer(),
    preprocessing.OneHotEncoder(),
    preprocessing.OneHotEncoder(categories=LEVELS),  # raises for a level in a row
    preprocessing.OneHotEncoder(categories=LEVELS, handle_unknown="ignore", min_frequency=3),
    preprocessing.OrdinalEncoder(),
    decomposition.PCA(2),
    decomposition.TruncatedSVD(2),
    feature_selection.VarianceThreshold(),
    SimpleImputer(),
    SimpleImputer(strategy="constant", fill_value=0),  # drops columns without any value
    SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
    KNNImputer(),
    TfidfVectorizer(),
    GaussianRandomProjection(),
    RBFSampler(gamma="scale"),
    Nystroem(),
]


class Mystery(TransformerMixin, BaseEstimator):
    """Nobody knows what it learns."""


class StandardScaler(Mystery):
    """Has the name of a known class, and is another."""


UNKNOWN = [Mystery(), StandardScaler(), preprocessing.FunctionTransformer(np.log1p), KMeans(3)]


def kind(step):
    return type(step).__name__


@pytest.mark.parametrize("step", SAFE, ids=kind)
def test_safe_steps(step):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = check_pipeline(make_pipeline(step, MODEL))
    assert [checked.verdict for checked in found] == ["safe", "safe"]


@pytest.mark.parametrize("step", UNSAFE, ids=kind)
def test_unsafe_steps_say_what_to_use(step):
    with pytest.warns(GuaranteeWarning, match=rf"{type(step).__name__}\): unsafe\. .*(Use|Give|Choose|or) "):
        found = check_pipeline(make_pipeline(step, MODEL))
    assert [checked.verdict for checked in found] == ["unsafe", "safe"]


@pytest.mark.parametrize("step", UNKNOWN, ids=kind)
def test_other_steps_are_not_known(step):
    with pytest.warns(GuaranteeWarning, match=r"\): not known\. "):
        found = check_pipeline(make_pipeline(step, MODEL))
    assert [checked.verdict for checked in found] == ["not known", "safe"]


def test_the_last_step_must_be_private():
    with pytest.warns(GuaranteeWarning, match="KMeans.* promises nothing"):
        (found,) = check_pipeline(make_pipeline(KMeans(3)))
    assert found.verdict == "unsafe"


def test_steps_within_steps():
    columns = ColumnTransformer(
        [
            ("scaled", make_pipeline(PublicScaler((0, 1)), preprocessing.StandardScaler()), ["age"]),
            ("chosen", preprocessing.Normalizer(), make_column_selector(dtype_include=float)),
            ("dropped", "drop", ["name"]),
        ],
        remainder=decomposition.PCA(2),
    )
    union = FeatureUnion([("both", preprocessing.MaxAbsScaler()), ("same", "passthrough")])
    with pytest.warns(GuaranteeWarning) as caught:
        found = check_pipeline(make_pipeline(columns, union, MODEL))
    assert len(caught) == 1
    doubtful = {step.name: step.verdict for step in found if step.verdict != "safe"}
    assert doubtful == {
        "columntransformer.scaled.standardscaler": "unsafe",
        "columntransformer.chosen": "not known",
        "columntransformer.remainder": "unsafe",
        "featureunion.both": "unsafe",
    }
    assert all(name in str(caught[0].message) for name in doubtful)


def test_the_cost_of_components_must_follow():
    pca = PrivatePCA(2, epsilon=0.5, bounds=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_pipeline(make_pipeline(pca, GridKMeans(bounds=pca.ball(5))))
    with pytest.warns(GuaranteeWarning, match=r"do not carry its cost\. Use the ball of this step"):
        check_pipeline(make_pipeline(pca, GridKMeans(bounds=Ball(3))))


def test_other_things_are_refused():
    with pytest.raises(ParameterError, match="must be a scikit-learn Pipeline, got GridKMeans"):
        check_pipeline(MODEL)
