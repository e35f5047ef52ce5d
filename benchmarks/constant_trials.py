"""What a constant is judged by: methods on small tables, each giving one number that should be low.

Two kinds of tables. Those of the kinds that constants were chosen on: simulated clusters for the centre methods,
and what docs/notes says for the others. And those that no constant was chosen on.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.baselines import kmeans_inertia
from benchmarks.density_data import DATA_SETS, fit
from benchmarks.density_families import FAMILIES
from benchmarks.source_target import cost_of
from benchmarks.source_target_data import BALL, HOUSING_HIGH, HOUSING_LOW, pair_of
from sfumato import (
    DPDBSCAN,
    DPM,
    Budget,
    CoresetKMeans,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    LocalSearchKMeans,
    MaxCoverKMeans,
    MorseClustering,
    SourceTargetClustering,
    suggest_max_rows,
)
from sfumato.datasets import load, separated_gaussians
from sfumato.metrics import inertia

N_ROWS = 5_000
EPSILON, DELTA = 1.0, 1e-6


class Table(NamedTuple):
    """Rows, the number of clusters to find, public bounds, and classes if there are any."""

    X: np.ndarray
    n_clusters: int
    bounds: Any
    classes: np.ndarray | None = None


SIMULATED = {
    "gauss_2": partial(separated_gaussians, N_ROWS, 8, 2),
    "gauss_3": partial(separated_gaussians, N_ROWS, 8, 3),
    "gauss_5": partial(separated_gaussians, N_ROWS, 8, 5),
    "gauss_10": partial(separated_gaussians, 2 * N_ROWS, 16, 10, separation=4.0),
}
REAL = {
    "letter": 26,
    "magic": 8,
    "s_set1": 15,
    "california_housing": 8,
    "r15": 15,
    "pulsar_kaggle": 6,
    "housing_3": 8,
}
HOUSING = {
    "california_housing": list(range(8)),
    "housing_3": [0, 6, 7],
}  # columns: all but the value; income and place
RADII = {"corners": (0.3, 40), "arches": (0.25, 40)}  # of DPDBSCAN, where no paper gives them
MERGED = {"pulsar_kaggle": 2, "magic": 2}  # number of classes


@lru_cache(maxsize=64)
def table(name: str, seed: int) -> Table:
    """Simulated rows are drawn anew for every seed; of a larger real table the same rows are taken."""
    if name in SIMULATED:
        X, classes = SIMULATED[name](random_state=seed)
        return Table(X, int(classes.max()) + 1, (-1.0, 1.0), classes)
    return real(name)


@lru_cache(maxsize=16)
def real(name: str) -> Table:
    if name not in REAL:
        data = DATA_SETS[name]
        X, classes = data.make() if data.make else load(name)
        return Table(X, len(np.unique(classes[classes >= 0])), data.bounds, classes)
    X, classes = load("california_housing" if name == "housing_3" else name)
    low, high = X.min(axis=0), X.max(axis=0)  # taken as public, as in the papers
    if name in HOUSING:
        columns = HOUSING[name]
        X, low, high = X[:, columns], np.array(HOUSING_LOW)[columns], np.array(HOUSING_HIGH)[columns]
    if name == "s_set1":
        low, high = np.zeros(2), np.full(2, 1e6)
    chosen = np.random.default_rng(0).permutation(len(X))[: 2 * N_ROWS]
    X = np.clip(X[chosen], low, high)
    return Table(X, REAL[name], (low, high), None if classes is None else classes[chosen])


def in_units(X: np.ndarray, bounds: Any) -> np.ndarray:
    """Columns in units of their bounds, as the methods measure them."""
    low, high = np.asarray(bounds[0], dtype=float), np.asarray(bounds[1], dtype=float)
    return np.asarray((X - low) / (high - low))


@lru_cache(maxsize=64)
def non_private(name: str, seed: int) -> float:
    of = table(name, seed)
    return kmeans_inertia(in_units(of.X, of.bounds), of.n_clusters, 3)


def cost(make: Callable[[int], Any], name: str, seed: int, **parameters: Any) -> float:
    """Cost of the centres, as a multiple of non-private k-means."""
    of = table(name, seed)
    common = {"epsilon": EPSILON, "delta": DELTA, "bounds": of.bounds, "random_state": seed} | parameters
    centers = make(of.n_clusters).set_params(**common).fit(of.X).cluster_centers_
    return inertia(in_units(of.X, of.bounds), in_units(centers, of.bounds)) / non_private(name, seed)


def stated_error(name: str, seed: int) -> float:
    """How wrong the stated errors of the centres are: |log| of the true root mean squared error over the stated one."""
    of = table(name, seed)
    model = LloydKMeans(of.n_clusters, epsilon=EPSILON, delta=DELTA, bounds=of.bounds, random_state=seed).fit(
        of.X
    )
    true = KMeans(of.n_clusters, init=model.cluster_centers_, n_init=1).fit(of.X).cluster_centers_
    low, high = (np.asarray(limit, dtype=float) for limit in of.bounds)
    errors, stated = (model.cluster_centers_ - true) / (high - low), model.cluster_center_stds_ / (high - low)
    return float(abs(np.log((errors**2).mean() / (stated**2).mean()) / 2))


def disagreement(
    make: Callable[[str, Table], Any], name: str, seed: int, *, epsilon: float = EPSILON
) -> float:
    """Minus the adjusted Rand index."""
    of = table(name, seed)
    model = make(name, of).set_params(epsilon=epsilon, delta=DELTA, bounds=of.bounds, random_state=seed)
    return -float(adjusted_rand_score(of.classes, fit(model, of.X).labels_))


def shape_disagreement(name: str, seed: int) -> float:
    """Minus the adjusted Rand index of DensityTree on a recipe of shapes."""
    family = FAMILIES[name]
    X, classes = family.draw(family.rows[0], seed)
    model = DensityTree(epsilon=EPSILON, bounds=family.bounds, random_state=seed)
    return -float(adjusted_rand_score(classes, model.fit(X).labels_))


def surprise(make: Callable[[int], Any], name: str, seed: int) -> float:
    """Minus the mean log density of the rows, with columns in units of their bounds."""
    of = table(name, seed)
    X = in_units(of.X, of.bounds)
    model = (
        make(of.n_clusters)
        .set_params(epsilon=EPSILON, delta=DELTA, bounds=(0.0, 1.0), random_state=seed)
        .fit(X)
    )
    return -float(model.release_.model.mixture.log_density(X).mean())


def dbscan(name: str, of: Table) -> Any:
    data = DATA_SETS[name]
    return DPDBSCAN(*RADII.get(name, (data.radius, data.min_samples)))


def merged(name: str, of: Table) -> Any:
    n_clusters = MERGED.get(name, of.n_clusters)
    return MorseClustering(DPMoG(20 if of.X.shape[1] == 2 else of.n_clusters), n_clusters)


def merged_centres(name: str, of: Table) -> Any:
    return MorseClustering(LloydKMeans(of.n_clusters), MERGED[name])


def source_target_cost(name: str, seed: int) -> float:
    pair = _pair(name)
    model = SourceTargetClustering(20, epsilon=3.0, bounds=BALL, random_state=seed)
    return cost_of(pair, model.fit(pair.target, pair.source).center_indices_)


_pair = lru_cache(maxsize=8)(pair_of)


def cap_loss(name: str, seed: int) -> float:
    """Relative variance of the size of a cluster under the suggested cap, over the least of all caps."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    rows_of_each = {
        "geometric": lambda: rng.geometric(0.05, 2_000),
        "lognormal": lambda: np.ceil(rng.lognormal(2.0, 1.0, 1_000)).astype(int),
        "pareto": lambda: np.ceil(np.minimum(rng.pareto(1.2, 500) + 1, 5_000)).astype(int),
    }[name]()
    people = pd.DataFrame({"who": np.repeat(np.arange(len(rows_of_each)), rows_of_each), "x": 1.0})
    cap = suggest_max_rows(
        people, "who", 8, budget=Budget(EPSILON), epsilon=0.1, random_state=seed
    ).max_rows.value

    def variance(m: int) -> float:
        kept = np.minimum(rows_of_each, m).sum()
        return 8 / kept + (8 * m * np.sqrt(2) / EPSILON / kept) ** 2

    return float(variance(cap) / min(variance(m) for m in range(1, int(rows_of_each.max()) + 1)))


class Trial(NamedTuple):
    """One way to judge constants.

    Parameters
    ----------
    loss : callable
        Takes the name of a table and a seed.
    measure : str
        "cost", whose change is relative, "ARI" or "log", whose changes are differences.
    title : str
        What it measures, in words.
    chosen_on, reported_on : tuple of str
        Tables of the kinds that constants were chosen on, and others.
    """

    loss: Callable[[str, int], float]
    measure: str
    chosen_on: tuple[str, ...]
    reported_on: tuple[str, ...]
    title: str
    times_seeds: int = 1  # more seeds where a fit takes a hundredth of a second


RATIO, ARI, LOG_DENSITY = "cost over non-private k-means", "adjusted Rand index", "mean log density"
GAUSS, TABLES = ("gauss_2", "gauss_5", "gauss_10"), ("letter", "magic", "s_set1", "california_housing")
SHAPES, NEW_SHAPES = ("circles", "moons", "cluto_t4_8k"), ("corners", "arches")
TRIALS = {
    "DPM": Trial(partial(cost, DPM), "cost", GAUSS, TABLES, RATIO),
    "DPM, k open": Trial(
        partial(disagreement, lambda *_: DPM()), "ARI", GAUSS, ("letter", "s_set1", "r15"), ARI, 2
    ),
    "LloydKMeans": Trial(partial(cost, LloydKMeans), "cost", GAUSS, TABLES, RATIO),
    "stated errors": Trial(
        stated_error, "log", GAUSS, TABLES, "log of true over stated errors of LloydKMeans' centres"
    ),
    "private bounds": Trial(
        partial(cost, LloydKMeans, bounds="private"), "cost", GAUSS, TABLES, f"{RATIO}, LloydKMeans"
    ),
    "CoresetKMeans": Trial(partial(cost, CoresetKMeans), "cost", GAUSS, TABLES, RATIO),
    "MaxCoverKMeans": Trial(partial(cost, MaxCoverKMeans), "cost", GAUSS, TABLES, RATIO),
    "LocalSearchKMeans": Trial(partial(cost, LocalSearchKMeans), "cost", GAUSS, TABLES, RATIO),
    "GridKMeans": Trial(
        partial(cost, GridKMeans, epsilon=0.2),
        "cost",
        ("gauss_2",),
        ("s_set1", "r15"),
        f"{RATIO}, epsilon 0.2",
    ),
    "GridKMeans, fine": Trial(
        partial(cost, GridKMeans, epsilon=4.0), "cost", ("gauss_3",), ("housing_3",), f"{RATIO}, epsilon 4"
    ),
    "DPMoG, centres": Trial(
        partial(surprise, lambda k: DPMoG(k, start="centers")),
        "log",
        ("magic", "pulsar_kaggle"),
        ("gauss_10", "letter", "california_housing"),
        LOG_DENSITY,
    ),
    "DPMoG, grid": Trial(
        partial(surprise, DPMoG), "log", ("cluto_t4_8k", "s_set1"), ("gauss_3", *NEW_SHAPES), LOG_DENSITY, 2
    ),
    "MorseClustering": Trial(
        partial(disagreement, merged), "ARI", ("moons", "cluto_t4_8k", "pulsar_kaggle"), NEW_SHAPES, ARI, 4
    ),
    "MorseClustering, centres": Trial(
        partial(disagreement, merged_centres), "ARI", ("pulsar_kaggle",), ("magic",), ARI, 4
    ),
    "DensityTree": Trial(
        shape_disagreement,
        "ARI",
        (
            "nested rings",
            "straight bands",
            "shapes, 40 % noise",
            "normals on a grid",
            "thin curves",
            "few groups",
        ),
        ("rings in rings", "wavy bands", "letters, 20 % noise", "thirty normals", "nine curves", "dumbbells"),
        f"{ARI}, epsilon 1",
        1,
    ),
    "DPDBSCAN": Trial(
        partial(disagreement, dbscan, epsilon=0.5), "ARI", SHAPES, NEW_SHAPES, f"{ARI}, epsilon 0.5", 4
    ),
    "SourceTargetClustering": Trial(
        source_target_cost,
        "cost",
        ("wide_2", "groups_18", "mnist_0_1", "letters_O_Q"),
        ("synthetic_1", "synthetic_2", "housing_low"),
        "mean distance, epsilon 3, 20 centres",
        1,
    ),
    "suggest_max_rows": Trial(
        cap_loss, "cost", ("geometric",), ("lognormal", "pareto"), "variance over the least, epsilon 0.1", 4
    ),
}
