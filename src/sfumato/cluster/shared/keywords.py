"""Keywords of other libraries: what to use here instead.

People bring the keywords that they know from scikit-learn or diffprivlib. Python alone would say that the
keyword is unexpected. The reason is often privacy, so the message states it.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple


class _Advice(NamedTuple):
    """What to use instead of a keyword.

    Parameters
    ----------
    why : str
        Why the keyword does not exist.
    instead : tuple of str
        Parameters that take its place. The first one that the estimator has is named.
    """

    why: str
    instead: tuple[str, ...] = ()


_NO_START = (
    "starts are public, or found with a part of the budget; rows as starting points would not be private"
)
_ROUNDS = "every round spends budget, so the number of rounds is decided before the fit"
_NO_INDEX = "rows are not kept in an index that could be tuned"
_NUMBER = "the number of clusters goes by that name"

_ADVICE = {
    # scikit-learn: KMeans, MiniBatchKMeans, GaussianMixture
    "n_init": _Advice(
        "it is not needed: starts are public and refined. Each further start would spend budget"
    ),
    "max_iter": _Advice(_ROUNDS, ("n_iter", "n_swaps")),
    "max_no_improvement": _Advice(_ROUNDS, ("n_iter", "n_swaps")),
    "tol": _Advice(f"a rule that stops early would look at the rows, and {_ROUNDS}", ("n_iter", "n_swaps")),
    "init": _Advice(_NO_START),
    "init_size": _Advice(_NO_START),
    "init_params": _Advice(_NO_START),
    "means_init": _Advice(_NO_START),
    "weights_init": _Advice(_NO_START),
    "precisions_init": _Advice(_NO_START),
    "warm_start": _Advice(_NO_START),
    "algorithm": _Advice("each estimator is one algorithm. `sfumato.recommend` names one for your table"),
    "copy_x": _Advice("it is not needed: rows are never changed"),
    "copy": _Advice("it is not needed: rows are never changed"),
    "batch_size": _Advice("it is not needed: tables larger than memory are read in blocks, from files"),
    "n_jobs": _Advice("it is not needed: large tables are read from files or on Spark"),
    "verbose": _Advice("use `with sfumato.progress(): ...` to see how far a fit is"),
    "k": _Advice(_NUMBER, ("n_clusters", "n_components")),
    "n_components": _Advice(_NUMBER, ("n_clusters",)),
    "n_clusters": _Advice(
        "the method finds the number itself, from what stands out of the noise", ("n_components",)
    ),
    "covariance_type": _Advice("the shape of the covariances", ("covariance",)),
    "reg_covar": _Advice("it is not needed: the noise itself sets the least variance"),
    # DBSCAN, HDBSCAN, OPTICS, MeanShift
    "eps": _Advice("a radius is not called eps here, because `epsilon` is the privacy budget", ("radius",)),
    "max_eps": _Advice(
        "a radius is not called eps here, because `epsilon` is the privacy budget", ("radius",)
    ),
    "bandwidth": _Advice("the length over which rows count as near", ("radius", "cell")),
    "min_samples": _Advice("`DPDBSCAN` takes it; `DensityTree` shows the clusters at every density"),
    "min_cluster_size": _Advice(
        "clusters that cannot be told from noise are left out by themselves", ("min_samples", "prominence")
    ),
    "cluster_selection_epsilon": _Advice(
        "clusters that differ too little from noise are joined", ("prominence",)
    ),
    "metric": _Advice(
        "distances are Euclidean, in units of the bounds of each column", ("scale", "weights", "bounds")
    ),
    "metric_params": _Advice(_NO_INDEX),
    "leaf_size": _Advice(_NO_INDEX),
    "p": _Advice("distances are Euclidean"),
    # diffprivlib and others
    "accountant": _Advice("a ledger is a file that counts what is spent on a data set", ("ledger",)),
    "data_norm": _Advice("public bounds may be a ball: bounds=sfumato.Ball(radius)", ("bounds",)),
    "seed": _Advice("the noise of an experiment; its release must not be published", ("random_state",)),
    "standardize": _Advice("columns are measured in units of their public bounds", ("scale", "bounds")),
    "normalize": _Advice("columns are measured in units of their public bounds", ("scale", "bounds")),
}


def with_advice(cls: type[Any]) -> None:
    """Let the constructor of a class say what to use instead of a keyword that it does not have.

    The signature stays as it is, so `clone` and `get_params` work. A constructor that takes any keyword is
    left alone.
    """
    init: Callable[..., None] = vars(cls).get("__init__", cls.__init__)
    parameters = inspect.signature(init).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters][1:]

    @wraps(init)
    def advising(self: Any, *args: Any, **keywords: Any) -> None:
        if unknown := [name for name in keywords if name not in known]:
            raise TypeError(advice(type(self).__name__, unknown[0], known))
        init(self, *args, **keywords)

    cls.__init__ = advising


def advice(estimator: str, keyword: str, known: Sequence[str]) -> str:
    """What to say about a keyword that an estimator does not have.

    Parameters
    ----------
    estimator : str
        Name of the class.
    keyword : str
    known : sequence of str
        Names of its parameters.

    Examples
    --------
    >>> advice("DPDBSCAN", "eps", ["radius", "epsilon"])
    'DPDBSCAN has no parameter `eps`. Use `radius`: a radius is not called eps here, because `epsilon` is \
the privacy budget'
    >>> advice("DPM", "n_cluster", ["n_clusters", "epsilon"])
    'DPM has no parameter `n_cluster`. Did you mean `n_clusters`?'
    """
    refusal = f"{estimator} has no parameter `{keyword}`"
    if (found := _ADVICE.get(keyword)) is not None:
        instead = next((name for name in found.instead if name in known), None)
        return f"{refusal}. Use `{instead}`: {found.why}" if instead else f"{refusal}: {found.why}"
    if near := difflib.get_close_matches(keyword, known, 1):
        return f"{refusal}. Did you mean `{near[0]}`?"
    return f"{refusal}. It has {', '.join(known)}"
