"""Which steps of a scikit-learn pipeline keep the guarantee of the clustering at its end.

A fit sees only the rows that reach it. It cannot see that an earlier step was fitted on all rows, so its
statement would be too good. The classes of the steps can be seen, and for many it is known what they learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from sfumato.budget.bought import purchases
from sfumato.cluster.shared.base import PrivateEstimator
from sfumato.errors import GuaranteeWarning, ParameterError
from sfumato.pca import PrivatePCA
from sfumato.preprocessing import PublicScaler
from sfumato.projection import RandomProjection

Verdict = Literal["safe", "unsafe", "not known"]


class CheckedStep(NamedTuple):
    """What is known about one step of a pipeline.

    Parameters
    ----------
    name : str
        Name of the step; for a step within a step, both names with a dot between.
    kind : str
        Its class.
    verdict : {"safe", "unsafe", "not known"}
        "safe" maps each row by itself, with public numbers or numbers that were paid for.
    why : str
        What it learns from the rows, and what to use instead.
    """

    name: str
    kind: str
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}): {self.verdict}. {self.why}"


Rule = Callable[[Any], str]  # why a step with these parameters is unsafe; empty if it is safe

_SCALED = "it learns from the rows how wide the columns are. Use PublicScaler, or nothing: estimators scale"
_FILLED = "it learns from the rows what to fill in. Use `missing` of the estimator"
_PROJECTED = "its directions depend on the rows. Use PrivatePCA or RandomProjection"
_CHOSEN = "it chooses columns by the rows. Choose them by name in `bounds`"
_COUNTED = "it learns its words from the rows. Use HashingVectorizer"
_BINNED = "it learns borders from the rows. Use FunctionTransformer with public borders"
_ENCODED = (
    "it learns the levels from the rows. Give `categories` and handle_unknown='ignore', or give the levels "
    "in `bounds` of the estimator"
)

_LEARNS = {
    **dict.fromkeys(["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"], _SCALED),
    **dict.fromkeys(["QuantileTransformer", "PowerTransformer"], _SCALED),
    **dict.fromkeys(["KBinsDiscretizer", "SplineTransformer"], _BINNED),
    **dict.fromkeys(["KNNImputer", "IterativeImputer", "MissingIndicator"], _FILLED),
    **dict.fromkeys(
        ["PCA", "IncrementalPCA", "KernelPCA", "SparsePCA", "TruncatedSVD", "FastICA"], _PROJECTED
    ),
    **dict.fromkeys(["FactorAnalysis", "NMF", "LatentDirichletAllocation", "DictionaryLearning"], _PROJECTED),
    **dict.fromkeys(["Isomap", "LocallyLinearEmbedding", "Nystroem", "KernelCenterer"], _PROJECTED),
    **dict.fromkeys(["VarianceThreshold", "SelectKBest", "SelectPercentile", "SelectFromModel"], _CHOSEN),
    **dict.fromkeys(["RFE", "RFECV", "SequentialFeatureSelector"], _CHOSEN),
    **dict.fromkeys(["CountVectorizer", "TfidfVectorizer", "TfidfTransformer", "DictVectorizer"], _COUNTED),
    **dict.fromkeys(["TargetEncoder", "LabelEncoder", "LabelBinarizer", "MultiLabelBinarizer"], _ENCODED),
}


def _function(step: Any) -> str:
    return "" if step.func is None else "it is safe only if its function takes each row by itself; read it"


def _encoder(step: Any) -> str:
    public = not isinstance(step.categories, str) and step.handle_unknown != "error"
    grouped = getattr(step, "min_frequency", None) is not None or step.max_categories is not None
    drops = isinstance(
        getattr(step, "drop", None), str
    )  # "if_binary" and "first" look at the categories only
    return "" if public and not grouped and not drops else _ENCODED


def _imputer(step: Any) -> str:
    is_public = step.strategy == "constant" and step.keep_empty_features and not step.add_indicator
    return "" if is_public else f"{_FILLED}, or strategy='constant' with keep_empty_features=True"


def _random_projection(step: Any) -> str:
    drawn = isinstance(step.n_components, int | np.integer)
    return "" if drawn else "n_components='auto' depends on the number of rows. Give a number"


def _kernel_sampler(step: Any) -> str:
    return "gamma='scale' depends on the rows. Give a number" if isinstance(step.gamma, str) else ""


def _never(step: Any) -> str:
    return ""


_RULES: dict[str, Rule] = {
    **dict.fromkeys(["Normalizer", "Binarizer", "PolynomialFeatures"], _never),
    **dict.fromkeys(["HashingVectorizer", "FeatureHasher", "SkewedChi2Sampler"], _never),
    "FunctionTransformer": _function,
    "OneHotEncoder": _encoder,
    "OrdinalEncoder": _encoder,
    "SimpleImputer": _imputer,
    "GaussianRandomProjection": _random_projection,
    "SparseRandomProjection": _random_projection,
    "RBFSampler": _kernel_sampler,
}


def check_pipeline(pipeline: Any) -> tuple[CheckedStep, ...]:
    """Say which steps of a pipeline keep the guarantee of its last step, and warn about the others.

    Nothing is fitted, and no rows are needed. Steps are judged by their class and parameters. What is not
    known to be safe is reported, because what it learns from the rows would be neither noisy nor counted.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Whose last step is an estimator of this library. Pipelines, `ColumnTransformer` and `FeatureUnion`
        inside it are checked too.

    Returns
    -------
    tuple of CheckedStep
        One for each step.

    Warns
    -----
    GuaranteeWarning
        If any step is not safe. The warning lists all of them.

    Privacy
    -------
    It cannot prove a pipeline private: a function that is passed to a step may do anything, and rows may have
    been transformed before. See docs/pipelines.md.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from sfumato import Ball, GridKMeans, check_pipeline
    >>> for step in check_pipeline(make_pipeline(Normalizer(), GridKMeans(bounds=Ball(1)))):
    ...     print(step)
    normalizer (Normalizer): safe. it maps each row by itself
    gridkmeans (GridKMeans): safe. it is private, within its budget
    """
    if not hasattr(pipeline, "steps"):
        raise ParameterError(f"`pipeline` must be a scikit-learn Pipeline, got {type(pipeline).__name__}")
    *steps, (name, last) = pipeline.steps
    found = [*_checked(steps), _checked_last(name, last), *_uncounted(steps, last)]
    if doubtful := [step for step in found if step.verdict != "safe"]:
        listed = "".join(f"\n- {step}" for step in doubtful)
        warnings.warn(
            f"the guarantee of the last step may not hold for the rows that enter the pipeline:{listed}",
            GuaranteeWarning,
            stacklevel=2,
        )
    return tuple(found)


def _checked(steps: Iterable[tuple[str, Any]], within: str = "") -> Iterator[CheckedStep]:
    for name, step in steps:
        inner = _inner(step)
        if inner is None:
            yield CheckedStep(within + name, _kind(step), *_verdict(step))
        else:
            yield from _checked(inner, f"{within}{name}.")


def _inner(step: Any) -> list[tuple[str, Any]] | None:
    """Steps inside a step; None if it has none."""
    if not _is_of_sklearn(step) or type(step).__name__ not in (
        "Pipeline",
        "FeatureUnion",
        "ColumnTransformer",
    ):
        return None
    if hasattr(step, "steps"):
        return list(step.steps)
    if type(step).__name__ == "FeatureUnion":
        return list(step.transformer_list)
    chosen = [(name, _Chosen(columns)) for name, _, columns in step.transformers if callable(columns)]
    return [*((name, inner) for name, inner, _ in step.transformers), *chosen, ("remainder", step.remainder)]


class _Chosen(NamedTuple):
    """Columns of a `ColumnTransformer` that a function chooses."""

    columns: Callable[[Any], Any]


def _verdict(step: Any) -> tuple[Verdict, str]:
    alone: tuple[Verdict, str] = ("safe", "it maps each row by itself")
    if step is None or isinstance(step, str):  # "passthrough" and "drop"
        return alone
    if isinstance(step, _Chosen):
        return "not known", "a function chooses the columns. Name them"
    if isinstance(step, PublicScaler | RandomProjection):
        return alone
    if isinstance(step, PrivatePCA):
        return "safe", "it is private, within its budget"
    name = type(step).__name__
    if _is_of_sklearn(step) and name in _LEARNS:
        return "unsafe", _LEARNS[name]
    if not _is_of_sklearn(step) or name not in _RULES:
        return "not known", "it may learn from the rows. If each row is mapped by itself, it is safe"
    problem = _RULES[name](step)
    if not problem:
        return alone
    return ("not known" if name == "FunctionTransformer" else "unsafe"), problem


def _checked_last(name: str, last: Any) -> CheckedStep:
    if isinstance(last, PrivateEstimator):
        return CheckedStep(name, _kind(last), "safe", "it is private, within its budget")
    return CheckedStep(name, _kind(last), "unsafe", "it is no estimator of sfumato, so it promises nothing")


def _uncounted(steps: Iterable[tuple[str, Any]], last: Any) -> Iterator[CheckedStep]:
    """Steps that spend budget, if the last step does not carry as many purchases."""
    if not isinstance(last, PrivateEstimator):
        return
    n_carried = len(purchases(*last.get_params(deep=False).values()))
    bought = [(name, step) for name, step in steps if isinstance(step, PrivatePCA)]
    for name, step in bought[n_carried:]:
        why = "`bounds` of the last step do not carry its cost. Use the ball of this step: `ball(n_features)`"
        yield CheckedStep(name, _kind(step), "unsafe", why)


def _kind(step: Any) -> str:
    return step if isinstance(step, str) else type(step).__name__.removeprefix("_")


def _is_of_sklearn(step: Any) -> bool:
    return type(step).__module__.partition(".")[0] == "sklearn"
