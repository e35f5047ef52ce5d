"""Real tables with public bounds that a stranger would write: numeric columns, and warnings."""

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import pairwise_distances_argmin

from benchmarks.baselines import kmeans_inertia
from benchmarks.centre_data import in_processes, markdown
from benchmarks.diffprivlib_peer import peer_centers, prepare
from benchmarks.kmeans_accuracy import spread
from benchmarks.papers import published
from benchmarks.table_bounds import NUMERIC, TITLES
from sfumato import cluster, errors
from sfumato.datasets import load_table
from sfumato.planner import Recommendation, recommend

SEEDS, OTHER_SEEDS, QUICK_SEEDS = 20, 5, 1  # the others: methods that are not recommended, and the peer
KS, EPSILONS, DELTA = (5, 10), (1.0, 0.1), 1e-6
OURS = ("DPM", "LloydKMeans", "LocalSearchKMeans", "CoresetKMeans")
PEER, UNSCALED = "diffprivlib", "scale=None"
UNSCALED_TABLE = "adult_full"
# Inertia over that of non-private k-means, and error of a centre in per cent of a column's width: at most.
TARGETS = {1.0: (1.03, 2.0), 0.1: (1.15, 10.0)}
FAST_LLOYD = {("adult_full", 1.0): published("fast_lloyd")["ratio"]["Adult"]["1"]}
OUR_WARNINGS = tuple(
    each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Warning)
)
Run = dict[str, Any]
Cells = dict[tuple[str, int, float, str], dict[str, Any]]


@lru_cache(maxsize=2)
def numeric_table(name: str) -> pa.Table:
    """The numeric columns, with the rows that lack a value: our estimators drop them."""
    return load_table(name).select(list(NUMERIC[name]))


@lru_cache(maxsize=2)
def scaled_rows(name: str) -> np.ndarray:
    """Complete rows in units of the bounds, clipped to them."""
    table = numeric_table(name).drop_null()
    X = np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])
    return np.clip(in_units(name, X), 0.0, 1.0)


def in_units(name: str, X: np.ndarray) -> np.ndarray:
    low, high = np.array(list(NUMERIC[name].values()), dtype=float).T
    return (X - low) / (high - low)


@lru_cache(maxsize=8)
def inertia_of_kmeans(name: str, k: int) -> float:
    return kmeans_inertia(scaled_rows(name), k)


def center_errors(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Distance of each centre to the mean of the rows it is assigned, per column; empty clusters are left out."""
    sizes = np.bincount(labels, minlength=len(centers))
    columns = [np.bincount(labels, weights=column, minlength=len(centers)) for column in X.T]
    filled = sizes > 0
    means = np.column_stack(columns)[filled] / sizes[filled, None]
    return np.abs(centers[filled] - means)


def scores(name: str, k: int, centers: np.ndarray) -> Run:
    """Scores of centres in units of the bounds."""
    X = scaled_rows(name)
    labels = pairwise_distances_argmin(X, centers)
    inertia = float(((X - centers[labels]) ** 2).sum())
    return {
        "ratio": inertia / inertia_of_kmeans(name, k),
        "errors": (100 * center_errors(X, centers, labels)).tolist(),
        "clusters": len(np.unique(labels)),
    }


def recommendation(name: str, k: int, epsilon: float) -> Recommendation:
    return recommend(len(scaled_rows(name)), None, k, epsilon, DELTA, bounds=NUMERIC[name])


def recommended(name: str, k: int, epsilon: float) -> str:
    return label_of(recommendation(name, k, epsilon))


def label_of(found: Recommendation) -> str:
    """The method, and parameters that it is not given here anyway."""
    others = [
        f"{p}={v!r}" for p, v in found.parameters.items() if p not in ("n_clusters", "epsilon", "delta")
    ]
    return found.method.__name__ + (f"({', '.join(others)})" if others else "")


def fitted(model: cluster.PrivateClusterer, table: pa.Table) -> tuple[cluster.PrivateClusterer, int]:
    """A model and the number of warnings that its fit gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table)
    return model, sum(issubclass(each.category, OUR_WARNINGS) for each in caught)


def runs_on(name: str, k: int, epsilon: float, seed: int) -> list[Run]:
    """Every method on one table, once."""
    done = []

    def ours(make: Callable[..., cluster.PrivateClusterer], label: str, **given: Any) -> None:
        model = make(bounds=NUMERIC[name], missing="drop", random_state=seed, **given)
        start = time.perf_counter()
        model, n_warnings = fitted(model, numeric_table(name))
        facts = {"seconds": time.perf_counter() - start, "warnings": n_warnings}
        keep(label, scores(name, k, in_units(name, model.cluster_centers_)) | facts)

    def keep(method: str, found: Run) -> None:
        done.append({"data": name, "k": k, "epsilon": epsilon, "method": method} | found)

    best, others = recommendation(name, k, epsilon), seed < OTHER_SEEDS
    ours(best.make, label_of(best))
    if name == UNSCALED_TABLE:
        ours(best.make, UNSCALED, scale=None)
    for method in OURS if others else ():
        if method != label_of(best):
            ours(partial(getattr(cluster, method), k, epsilon=epsilon, delta=DELTA), method)
    if others:
        start = time.perf_counter()
        centers = peer_centers(scaled_rows(name), k, epsilon=epsilon, bounds=(0.0, 1.0), seed=seed)
        keep(PEER, scores(name, k, centers) | {"seconds": time.perf_counter() - start, "warnings": 0})
    return done


def measure(*, quick: bool) -> dict[str, Any]:
    prepare()
    n_seeds, start, runs = QUICK_SEEDS if quick else SEEDS, time.perf_counter(), []
    names, ks = (list(NUMERIC)[:2], KS[:1]) if quick else (list(NUMERIC), KS)
    cells = [(name, k, epsilon) for name in names for k in ks for epsilon in EPSILONS]
    for done in in_processes(runs_on, [(*cell, seed) for cell in cells for seed in range(n_seeds)]):
        runs += done
        first = done[0]
        found = "; ".join(f"{run['method']} {run['ratio']:.3f}" for run in done)
        took = time.perf_counter() - start
        print(f"{took:.0f} s {first['data']} {first['k']} {first['epsilon']}: {found}", flush=True)
    return {
        "seeds": n_seeds,
        "shapes": {name: list(scaled_rows(name).shape) for name in names},
        "bounds": NUMERIC,
        "recommended": [[*cell, recommended(*cell)] for cell in cells],
        "rows": list(summarised(runs)),
        "minutes": (time.perf_counter() - start) / 60,
    }


def summarised(runs: list[Run]) -> Iterator[dict[str, Any]]:
    """Over seeds: mean and deviation of the ratio, medians of the errors of all centres in each column, and warnings."""
    groups = defaultdict(list)
    for run in runs:
        groups[run["data"], run["k"], run["epsilon"], run["method"]].append(run)
    for (data, k, epsilon, method), group in groups.items():
        ratios = [run["ratio"] for run in group]
        yield {
            "data": data,
            "k": k,
            "epsilon": epsilon,
            "method": method,
            "ratio": [float(np.mean(ratios)), float(np.std(ratios, ddof=len(ratios) > 1))],
            "median": float(np.median(ratios)),
            "errors": np.median(np.concatenate([run["errors"] for run in group]), axis=0).tolist(),
            "clusters": float(np.mean([run["clusters"] for run in group])),
            "seeds": len(group),
            "warned": sum(run["warnings"] > 0 for run in group),
            "seconds": float(np.median([run["seconds"] for run in group])),
        }


def render(measured: dict[str, Any]) -> str:
    cells = cells_of(measured)
    return "\n".join(
        [
            "## Real tables: numeric columns, public bounds",
            "",
            *numeric_section(measured, cells),
            *warning_section(measured, cells),
            *bounds_section(measured),
        ]
    )


def cells_of(measured: dict[str, Any]) -> Cells:
    return {(row["data"], row["k"], row["epsilon"], row["method"]): row for row in measured["rows"]}


def best_of_ours(cells: Cells, name: str, k: int, epsilon: float) -> str:
    """The method with the least inertia, chosen after the measurement."""
    ours = [key for *setting, key in cells if setting == [name, k, epsilon] and key not in (PEER, UNSCALED)]
    return min(ours, key=lambda key: cells[name, k, epsilon, key]["ratio"][0])


def numeric_section(measured: dict[str, Any], cells: Cells) -> list[str]:
    lines = [line(cells, *setting) for setting in measured["recommended"]]
    shapes = "; ".join(f"{TITLES[name]} {n:,} x {d}" for name, (n, d) in measured["shapes"].items())
    return [
        "### Numeric columns",
        "",
        f"{shapes}. The tables go in as they are, with the bounds listed below, delta {DELTA:g} and default parameters, which give "
        "a sixth of the budget to profiles. Inertia is in units of the bounds, over non-private k-means (scikit-learn, best of 10 "
        f"starts) in the same units on the same clipped rows: mean ± standard deviation over {measured['seeds']} seeds "
        f"(at least {min(measured['seeds'], OTHER_SEEDS)} for methods that are not recommended and diffprivlib). In "
        "parentheses: the error of a centre against the mean of the rows that it is nearest to, in per cent of the width of a "
        "column, as the median over all centres and seeds; the worst column, then the median column. The number of clusters is "
        "given. diffprivlib 0.6.6 has rows scaled for it and pure epsilon. FastLloyd: what its authors publish for Adult at epsilon 1; "
        "their bounds and number of clusters may differ.",
        "",
        *markdown(
            [
                "table, k, epsilon",
                "target",
                "**recommended**",
                "**best of ours**",
                *OURS,
                PEER,
                "paper: FastLloyd",
            ],
            lines,
        ),
        "",
        f"Measured in {measured['minutes']:.0f} minutes on two processes.",
        "",
    ]


def line(cells: Cells, name: str, k: int, epsilon: float, method: str) -> list[str]:
    def cell(key: str) -> dict[str, Any]:
        return cells[name, k, epsilon, key]

    ratio, error = TARGETS[epsilon]
    best = best_of_ours(cells, name, k, epsilon)
    return [
        f"{TITLES[name]}, {k}, {epsilon:g}",
        f"≤ {ratio:g} ({error:g} %)",
        f"**{shown(cell(method))}** {method}, {verdict(cell(method), epsilon)}",
        f"**{shown(cell(best))}** {best}, {verdict(cell(best), epsilon)}",
        *(shown(cell(key)) for key in OURS),
        shown(cell(PEER)),
        f"{FAST_LLOYD[name, epsilon]:g}" if (name, epsilon) in FAST_LLOYD else "",
    ]


def shown(row: dict[str, Any]) -> str:
    worst, middle = worst_and_median(row)
    return f"{spread(row['ratio'])} ({worst:.2g} %, {middle:.2g} %)"


def worst_and_median(row: dict[str, Any]) -> tuple[float, float]:
    return max(row["errors"]), float(np.median(row["errors"]))


def verdict(row: dict[str, Any], epsilon: float) -> str:
    ratio, error = TARGETS[epsilon]
    return "met" if row["ratio"][0] <= ratio and max(row["errors"]) <= error else "missed"


def warning_section(measured: dict[str, Any], cells: Cells) -> list[str]:
    seeds, warned = measured["seeds"], []
    for epsilon in EPSILONS:
        found = [(setting, cells[tuple(setting)]["warned"]) for setting in measured["recommended"]]
        at = [(setting, n) for setting, n in found if setting[2] == epsilon]
        where = ", ".join(f"{TITLES[name]} {k} ({method}) {n}" for (name, k, _, method), n in at if n)
        total = f"epsilon {epsilon:g}: {sum(n for _, n in at)} of {seeds * len(at)}"
        warned.append(f"{total} ({where})" if where else total)
    lines = [
        [
            f"{TITLES[name]}, {k}, {epsilon:g}",
            shown(cells[name, k, epsilon, UNSCALED]),
            shown(cells[name, k, epsilon, method]),
            f"{cells[name, k, epsilon, UNSCALED]['warned']} of {seeds}",
            f"{cells[name, k, epsilon, method]['warned']} of {seeds}",
        ]
        for name, k, epsilon, method in measured["recommended"]
        if name == UNSCALED_TABLE
    ]
    return [
        "### Warnings, and what columns of different units cost",
        "",
        f"Fits of the recommended method that warned, at {'; at '.join(warned)}. Below, that method on Adult with "
        "`scale=None`, which takes all columns for one unit, beside the default. Inertia and errors in units of the bounds, as above.",
        "",
        *markdown(
            ["table, k, epsilon", "scale=None", "default", "scale=None warned", "default warned"], lines
        ),
        "",
    ]


def bounds_section(measured: dict[str, Any]) -> list[str]:
    lines = [
        [TITLES[name], ", ".join(f"`{column}` {low:g} to {high:g}" for column, (low, high) in bounds.items())]
        for name, bounds in measured["bounds"].items()
    ]
    return [
        "### Public bounds",
        "",
        "Written from what the columns mean, before anything was measured (`benchmarks/table_bounds.py`).",
        "",
        *markdown(["table", "bounds"], lines),
        "",
    ]
