"""Fits of one wide table: ours, other methods of ours, and scikit-learn's k-means to compare with."""

import warnings
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    pairwise_distances_argmin,
    pairwise_distances_argmin_min,
)

import sfumato
from benchmarks.baselines import kmeans
from benchmarks.clocks import peak_above, timed_call
from benchmarks.wide_data import RECIPES, TEXTS, WideTable, wide_table
from sfumato import cluster

OURS, OTHERS = "PrivateKMeans", ("DPM", "LloydKMeans", "LocalSearchKMeans")
DELTA = 1e-6
STARTS = {"unit_384": 3, "unit_768": 2}  # of k-means, whose best is compared with; others have 4
MANY_STARTS, QUICK_STARTS = 4, 1
LONGEST = 60.0  # seconds of a fit, after which another method gets no more seeds
EPSILONS = (1.0, 0.25, 4.0)
TEXT_CLUSTERS = {"wordnet_glosses": 45, "ag_news": 10, "clinc150": 50, "dblp_titles": 20}
SWEEP, SWEEP_KS = ("letter", "gas_turbine", "synth_100d", "mnist_embs"), (2, 4, 8, 16, 32, 64)
TOO_WIDE, FACTORS = {"gas_turbine": 6, "letter": 16, "synth_100d": 64}, (1, 2, 4, 8, 16)
SPARSE_CLUSTERS, RHOS, MAX_ACTIVE = 16, (0.1, 0.5), 128
WITH_MEMORY = ("unit A 384", "unit A 768", "wordnet_glosses", "mnist", "tagged_groups")
WARM_ROWS = 2_000


class Case(NamedTuple):
    """A table, a number of clusters, a budget, and bounds that are `factor` times too wide."""

    part: str
    data: str
    k: int
    budget: str = "epsilon"
    amount: float = 1.0
    factor: float = 1.0

    @property
    def key(self) -> str:
        return f"{self.part}; {self.data}; {self.k}; {self.budget} {self.amount:g}; x{self.factor:g}"

    @property
    def is_sparse(self) -> bool:
        return self.part == "sparse"

    @property
    def has_others(self) -> bool:
        """Whether other methods are fitted as well."""
        return self.amount == 1.0 and self.part not in ("sparse", "unit_768")

    @property
    def has_memory(self) -> bool:
        """Whether the memory of a fit is taken, in a process of its own."""
        return self.data in WITH_MEMORY and self.amount == (RHOS[0] if self.is_sparse else 1.0)


def _unit(d: int) -> list[Case]:
    return [
        Case(f"unit_{d}", f"unit {recipe} {d}", 50, amount=epsilon)
        for recipe in RECIPES
        for epsilon in EPSILONS
    ]


# By part; cases of one table follow each other, so that it is made once.
CASES = {
    "unit_384": _unit(384),
    "unit_768": _unit(768),
    "texts": [Case("texts", name, TEXT_CLUSTERS[name]) for name in TEXTS],
    "mnist": [Case("mnist", "mnist", 10)],
    "sweep": [Case("sweep", name, k) for name in SWEEP for k in SWEEP_KS],
    "bounds": [Case("bounds", name, k, factor=factor) for name, k in TOO_WIDE.items() for factor in FACTORS],
    "sparse": [Case("sparse", "tagged_groups", SPARSE_CLUSTERS, "rho", rho) for rho in RHOS],
}


def bounds_of(case: Case, X: Any) -> Any:
    """Public bounds, written as if the widths of the rows were known."""
    if case.part == "mnist":
        return (0.0, 255.0)
    if case.is_sparse:
        return sfumato.Sparse(max_active=MAX_ACTIVE)
    if case.part == "sweep":  # as Google's: the ball that holds the rows
        middle = X.mean(axis=0)
        return sfumato.Ball(float(np.linalg.norm(X - middle, axis=1).max()), tuple(middle.tolist()))
    if case.part == "bounds":  # the same for all columns, which are of one unit
        middle = (X.min() + X.max()) / 2
        half = case.factor * (X.max() - middle)
        return (float(middle - half), float(middle + half))
    return sfumato.Ball(1.0)


def make(method: str, case: Case, X: Any, seed: int) -> cluster.PrivateClusterer:
    budget = {case.budget: case.amount} | ({} if case.budget == "rho" else {"delta": DELTA})
    return getattr(cluster, method)(case.k, bounds=bounds_of(case, X), random_state=seed, **budget)


def fits_of(
    method: str, case: Case, table: WideTable, reference: dict[str, Any] | None, n_seeds: int
) -> dict[str, Any]:
    """Scores and seconds of a method, one per seed."""
    found: dict[str, list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(method, case, table.X, 0).fit(table.X[:WARM_ROWS])  # compiles
        for seed in range(n_seeds):
            took, model = timed_call(partial(make(method, case, table.X, seed).fit, table.X))
            scores = {"seconds": took, "clusters": model.n_clusters_} | scores_of(model, table, reference)
            for name, score in scores.items():
                found.setdefault(name, []).append(float(score))
            if method != OURS and took > LONGEST:
                break
    return {**case._asdict(), "method": method, **found}


def scores_of(
    model: cluster.PrivateClusterer, table: WideTable, reference: dict[str, Any] | None
) -> dict[str, float]:
    if reference is None:  # sparse rows, which have classes
        return of_classes(table.classes, model.predict(table.X))
    labels, distances = pairwise_distances_argmin_min(table.X, model.cluster_centers_)
    ratio = float((distances**2).sum()) / reference["inertia"]
    return {"ratio": ratio} | of_classes(table.classes, labels)


def of_classes(classes: np.ndarray | None, labels: np.ndarray) -> dict[str, float]:
    if classes is None:
        return {}
    return {
        "ari": float(adjusted_rand_score(classes, labels)),
        "nmi": float(normalized_mutual_info_score(classes, labels)),
    }


def starts_of(part: str, *, quick: bool) -> int:
    return QUICK_STARTS if quick else STARTS.get(part, MANY_STARTS)


def reference_of(case: Case, table: WideTable, known: dict[str, Any] | None, n_starts: int) -> dict[str, Any]:
    """k-means without privacy: the best of some starts, and the seconds of one, taken now.

    If a known one has as many starts, only the clock runs again.
    """
    took, first = timed_call(partial(KMeans(case.k, n_init=1, random_state=0).fit, table.X))
    if known is not None and known["starts"] >= n_starts:
        return known | {"seconds": took}
    others = [kmeans(table.X, case.k, 1, seed) for seed in range(1, n_starts)]
    inertia, centers = min([(float(first.inertia_), first.cluster_centers_), *others], key=itemgetter(0))
    return {
        "data": case.data,
        "k": case.k,
        "shape": list(table.X.shape),
        "starts": n_starts,
        "inertia": inertia,
        "seconds": took,
    } | of_classes(table.classes, pairwise_distances_argmin(table.X, centers))


def memory_of(key: str, n_rows: int | None) -> dict[str, Any]:
    """Peaks of memory of one fit above the rows, in MB: ours, and k-means stopped early, whose peak is at its start."""
    case = next(case for cases in CASES.values() for case in cases if case.key == key)
    X, theirs = wide_table(case.data, n_rows).X, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(OURS, case, X, 0).fit(X[:WARM_ROWS])
        ours = peak_above(partial(make(OURS, case, X, 0).fit, X))
        if not case.is_sparse:
            KMeans(case.k, n_init=1, max_iter=2).fit(X[:WARM_ROWS])
            theirs = peak_above(partial(KMeans(case.k, n_init=1, max_iter=2).fit, X))
    arrays = (X.data, X.indices, X.indptr) if case.is_sparse else (X,)
    return {
        "rows_mb": sum(array.nbytes for array in arrays) / 2**20,
        "ours_mb": ours,
        "kmeans_mb": theirs,
    }
