"""Mixed columns: the cost of k-prototypes, beside kmodes without privacy and synthetic tables at the same budget.

Some peers are slow: a run keeps what it has after each job, and goes on from there.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import mixed_peers
from benchmarks.centre_data import in_processes, markdown, short
from benchmarks.kept import folder
from benchmarks.kmeans_accuracy import spread
from benchmarks.prototypes import (
    GAMMA,
    OTHER,
    Mixed,
    best_of,
    descend,
    level_columns,
    mixed_rows,
    nearest,
    number_columns,
)
from benchmarks.real_tables import label_of
from benchmarks.table_bounds import MIXED, TITLES
from sfumato import cluster
from sfumato.datasets import load_table
from sfumato.planner import Recommendation, recommend

SEEDS, OTHER_SEEDS, QUICK_SEEDS = 10, 2, 1  # the others: methods that are not recommended
KS, EPSILON, DELTA = (5, 10), 1.0, 1e-6
OURS = ("DPM", "LloydKMeans", "LocalSearchKMeans", "CoresetKMeans")
TARGET = 1.05
N_STARTS = 10
KMODES_ROWS, QUICK_KMODES_ROWS = 1_000, 200  # kmodes takes milliseconds per row and start
N_BINS = 20  # of a number, for synthesisers
# Seeds of each synthesiser, and how long it may search: both take minutes.
SYNTHESISERS: dict[str, tuple[int, dict[str, Any]]] = {
    "MST": (1, {"n_iters": 500}),
    "AIM": (1, {"n_iters": 50, "rounds": 40, "max_model_size": 0.05}),
}
QUICK_SYNTHESISERS: dict[str, tuple[int, dict[str, Any]]] = {"MST": (1, {"n_iters": 10})}
PART = "mixed_tables_part.json"  # what an unfinished run has
KMODES, BATCH = "kmodes", "batch k-prototypes"


@lru_cache(maxsize=1)
def mixed_table(name: str) -> pa.Table:
    return load_table(name).select(list(MIXED[name]))


@lru_cache(maxsize=1)
def rows_of(name: str) -> Mixed:
    return mixed_rows(mixed_table(name), MIXED[name])


def as_prototypes(name: str, centers: np.ndarray) -> Mixed:
    """Released centres in the user's units as prototypes: numbers in units of the bounds, and the likeliest levels.

    The bounds list numbers first, so that they are the first coordinates; a category has one for each level and "other".
    """
    bounds = MIXED[name]
    low, high = np.array([bounds[column] for column in number_columns(bounds)], dtype=float).T
    n_levels = tuple(len(bounds[column]) + 1 for column in level_columns(bounds))
    ends = np.cumsum((len(low), *n_levels))
    codes = [centers[:, a:b].argmax(axis=1) for a, b in pairwise(ends)]
    return Mixed((centers[:, : len(low)] - low) / (high - low), np.column_stack(codes), n_levels)


def without_privacy(name: str, k: int, n_rows: int) -> dict[str, float]:
    """Mean cost of a row: the best of kmodes on some rows, finished on all, and of a batch version on all rows."""
    rows = rows_of(name)
    some = rows[np.random.default_rng(0).permutation(len(rows))[:n_rows]]
    took, found = mixed_peers.peer(some, task="kmodes", k=k, gamma=GAMMA, n_starts=N_STARTS, seed=0)
    costs = {KMODES: descend(rows, found)[1], BATCH: best_of(rows, k, N_STARTS, seed=0)[1]}
    return {method: cost / len(rows) for method, cost in costs.items()} | {"seconds": took}


def ours_on(name: str, k: int, seed: int) -> dict[str, float]:
    """Mean cost of a row, of each of our methods."""
    rows, best, found = rows_of(name), recommendation(name, k), {}
    makers = {label_of(best): best.make}
    for method in OURS if seed < OTHER_SEEDS else ():
        makers.setdefault(method, partial(getattr(cluster, method), k, epsilon=EPSILON, delta=DELTA))
    missing = dict.fromkeys(level_columns(MIXED[name]), OTHER)
    for label, make in makers.items():
        model = make(bounds=MIXED[name], missing=missing, random_state=seed)
        centers = model.fit(mixed_table(name)).cluster_centers_
        found[label] = nearest(rows, as_prototypes(name, centers))[1] / len(rows)
    return found


def recommendation(name: str, k: int) -> Recommendation:
    return recommend(len(rows_of(name)), k=k, epsilon=EPSILON, delta=DELTA, bounds=MIXED[name])


def synthetic_on(name: str, method: str, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    """Mean cost of a true row, of prototypes of a synthetic table, for each number of clusters; and seconds."""
    rows = rows_of(name)
    took, made = mixed_peers.peer(
        rows,
        task="synthetic",
        method=method,
        epsilon=EPSILON,
        delta=DELTA,
        n_bins=N_BINS,
        seed=seed,
        **settings,
    )
    found = {"seconds": took}
    for k in KS:
        found[str(k)] = nearest(rows, best_of(made, k, N_STARTS, seed)[0])[1] / len(rows)
    return found


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def key_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    return json.dumps([function.__name__, *arguments])


def measure(*, quick: bool) -> dict[str, Any]:
    mixed_peers.prepare()
    n_seeds, n_rows = (QUICK_SEEDS, QUICK_KMODES_ROWS) if quick else (SEEDS, KMODES_ROWS)
    start, (names, ks) = time.perf_counter(), (list(MIXED)[:1], KS[:1]) if quick else (list(MIXED), KS)
    synthesisers = QUICK_SYNTHESISERS if quick else SYNTHESISERS
    jobs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for name in names:
        jobs += [(without_privacy, (name, k, n_rows)) for k in ks]
        jobs += [(ours_on, (name, k, seed)) for k in ks for seed in range(n_seeds)]
    for method, (n, settings) in synthesisers.items():
        jobs += [(synthetic_on, (name, method, seed, settings)) for name in names for seed in range(n)]
    path = folder(quick=quick) / PART
    path.parent.mkdir(parents=True, exist_ok=True)
    part: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    left = [job for job in jobs if key_of(*job) not in part]
    for job, done in zip(left, in_processes(call, left), strict=True):
        part[key_of(*job)] = done
        path.write_text(json.dumps(part, indent=1) + "\n")
        shown = {key: round(value, 4) for key, value in done.items()}
        print(f"{time.perf_counter() - start:.0f} s {key_of(*job)}: {shown}", flush=True)
    found: dict[str, list[Any]] = defaultdict(list)
    for function, arguments in jobs:
        found[function.__name__].append([*arguments, part[key_of(function, arguments)]])
    path.unlink()
    return {
        "seeds": n_seeds,
        "kmodes rows": n_rows,
        "shapes": {name: [len(rows_of(name)), *column_counts(name)] for name in names},
        "columns": {name: list(bounds) for name, bounds in MIXED.items()},
        "rows": [row(name, k, found) for name in names for k in ks],
        "synthesisers": {m: {"seeds": n, **settings} for m, (n, settings) in synthesisers.items()},
        "minutes": (time.perf_counter() - start) / 60,
    }


def column_counts(name: str) -> tuple[int, int]:
    return len(number_columns(MIXED[name])), len(level_columns(MIXED[name]))


def row(name: str, k: int, found: dict[str, list[Any]]) -> dict[str, Any]:
    """One table and number of clusters: costs over that of the best without privacy."""
    (base,) = (costs for *key, _, costs in found["without_privacy"] if key == [name, k])
    best = min(base[KMODES], base[BATCH])
    runs: dict[str, list[float]] = defaultdict(list)
    for *key, _, costs in found["ours_on"]:
        for method, cost in costs.items() if key == [name, k] else ():
            runs[method].append(cost / best)
    for table, method, *_, costs in found["synthetic_on"]:
        if table == name:
            runs[method].append(costs[str(k)] / best)
    ratios = {m: [float(np.mean(r)), float(np.std(r, ddof=len(r) > 1))] for m, r in runs.items()}
    seconds = [(m, costs["seconds"]) for table, m, *_, costs in found["synthetic_on"] if table == name]
    return {
        "data": name,
        "k": k,
        "recommended": label_of(recommendation(name, k)),
        "without privacy": base,
        "ratios": ratios,
        "seconds": {m: float(np.mean([s for method, s in seconds if method == m])) for m, _ in seconds},
    }


def render(measured: dict[str, Any]) -> str:
    shapes = "; ".join(
        f"{TITLES[name]} {n:,} rows, {numbers} numbers and {levels} categories"
        for name, (n, numbers, levels) in measured["shapes"].items()
    )
    settings = "; ".join(
        f"{name}: seeds {given['seeds']}, {', '.join(f'{k}={v}' for k, v in given.items() if k != 'seeds')}"
        for name, given in measured["synthesisers"].items()
    )
    head = ["table, k", "kmodes, cost of a row", f"target ≤ {TARGET:g}: **recommended**", *OURS]
    head += [f"{name}, then k-prototypes" for name in measured["synthesisers"]]
    lines = [
        "## Mixed tables: numbers and categories, public bounds and levels",
        "",
        f"{shapes}. Epsilon {EPSILON:g}, delta {DELTA:g}. The cost of a row is that of k-prototypes (Huang 1998): squared distance in the "
        f"numbers, in units of the bounds, plus {GAMMA:g} for each category whose level differs. Our prototypes are the numbers of a "
        "released centre and the likeliest level of each category; each row counts with its nearest prototype. Missing levels "
        'count as "other". Costs are over that of the best without privacy: the best of '
        f"`kmodes` 0.12.2 ({N_STARTS} starts on {measured['kmodes rows']:,} rows, because of its speed, then finished on all rows) and of a "
        f"batch version ({N_STARTS} starts on all rows). Mean ± standard deviation over {measured['seeds']} seeds (at least {min(measured['seeds'], OTHER_SEEDS)} for methods that are not recommended). MST and AIM make a synthetic "
        f"table at the same budget (dpmm 0.1.9, numbers in {N_BINS} bins between the bounds), from which k-prototypes takes the best "
        f"of {N_STARTS} starts ({settings}).",
        "",
        *markdown(head, [line(measured, row) for row in measured["rows"]]),
        "",
        f"Seconds to make a synthetic table: {seconds(measured)}. Measured in {measured['minutes']:.0f} minutes on two processes.",
        "",
    ]
    return "\n".join(lines)


def line(measured: dict[str, Any], row: dict[str, Any]) -> list[str]:
    base, ratios, best = row["without privacy"], row["ratios"], row["recommended"]
    verdict = "met" if ratios[best][0] <= TARGET else "missed"
    return [
        f"{TITLES[row['data']]}, {row['k']}",
        f"{base[KMODES]:.3f} (batch {base[BATCH]:.3f})",
        f"**{spread(ratios[best])}** {best}, {verdict}",
        *(spread(ratios[name]) for name in OURS),
        *(synthetic(measured, row, name) for name in measured["synthesisers"]),
    ]


def synthetic(measured: dict[str, Any], row: dict[str, Any], name: str) -> str:
    """Cost by way of a synthetic table. One seed has no spread."""
    ratio = row["ratios"][name]
    return spread(ratio) if measured["synthesisers"][name]["seeds"] > 1 else short(ratio[0])


def seconds(measured: dict[str, Any]) -> str:
    found = {(row["data"], m): s for row in measured["rows"] for m, s in row["seconds"].items()}
    return ", ".join(f"{TITLES[name]} {method} {took:.0f}" for (name, method), took in found.items())
