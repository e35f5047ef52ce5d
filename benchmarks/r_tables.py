"""Tables that nobody tuned on: the method that `recommend` names on tables of R packages, and whether bad results are silent."""

import time
from itertools import pairwise
from statistics import fmean, median
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.baselines import kmeans_inertia, peer_centers
from benchmarks.centre_data import in_processes, markdown, short
from benchmarks.diffprivlib_peer import prepare as prepare_peer
from benchmarks.kmeans_accuracy import PEER, spread
from benchmarks.r_data import ARCHIVE, LEAST_ROWS, MOST_COLUMNS, Bounds, bounds_of, prepare, tables
from benchmarks.real_tables import fitted
from sfumato import metrics, recommend

KS, EPSILONS, DELTA = (4, 8), (1.0, 0.3), 1e-6
SEEDS, PEER_SEEDS, QUICK_TABLES = 10, 2, 4
BAD = 1.3  # inertia over that of k-means from which on a result should come with a warning
CLASSES = (0, 150, 300, 600, 1_200, 2_400, 10**9)  # of rows per cluster, times epsilon
Row = dict[str, Any]


def in_units(values: np.ndarray, bounds: Bounds) -> np.ndarray:
    low, high = np.array(list(bounds.values())).T
    return (values - low) / (high - low)


def compared(name: str, k: int, epsilon: float, quick: bool) -> Row:
    """Ratios of the recommended method and of diffprivlib to k-means without privacy, in units of the bounds."""
    table = tables()[name]
    bounds = bounds_of(table)
    X, rows = in_units(table.to_numpy(), bounds), pa.Table.from_pandas(table, preserve_index=False)
    base = kmeans_inertia(X, k)
    found = recommend(len(table), None, k, epsilon, DELTA, bounds=bounds)
    ratios, warned = [], []
    for seed in range(1 if quick else SEEDS):
        model, n_warnings = fitted(found.make(bounds=bounds, random_state=seed), rows)
        ratios.append(metrics.inertia(X, in_units(model.cluster_centers_, bounds)) / base)
        warned.append(n_warnings > 0)
    n_peers = 1 if quick else PEER_SEEDS
    peers = [
        metrics.inertia(X, peer_centers(X, k, epsilon=epsilon, bounds=(0.0, 1.0), seed=seed)) / base
        for seed in range(n_peers)
    ]
    return {
        "data": name,
        "k": k,
        "epsilon": epsilon,
        "shape": list(table.shape),
        "method": found.method.__name__,
        "ratio": mean_and_deviation(ratios),
        "seeds": len(ratios),
        "bad": sum(ratio > BAD for ratio in ratios),
        "bad_and_warned": sum(ratio > BAD and said for ratio, said in zip(ratios, warned, strict=True)),
        "warned": sum(warned),
        PEER: mean_and_deviation(peers),
        "peer_seeds": n_peers,
    }


def mean_and_deviation(ratios: list[float]) -> list[float]:
    return [float(np.mean(ratios)), float(np.std(ratios, ddof=len(ratios) > 1))]


def measure(*, quick: bool) -> dict[str, Any]:
    prepare()
    prepare_peer()
    start = time.perf_counter()
    names = list(tables())[: QUICK_TABLES if quick else None]
    ks, epsilons = (KS[:1], EPSILONS[:1]) if quick else (KS, EPSILONS)
    jobs = [(name, k, epsilon, quick) for name in names for k in ks for epsilon in epsilons]
    rows = []
    for row in in_processes(compared, jobs):
        rows.append(row)
        print(f"{time.perf_counter() - start:.0f} s {row}", flush=True)
    return {"rows": rows, "minutes": (time.perf_counter() - start) / 60}


def rows_per_cluster(row: Row) -> float:
    """Rows of an average cluster, times epsilon: what there is to hide the noise."""
    return float(row["shape"][0] * row["epsilon"] / row["k"])


def summary(rows: list[Row], low: float, high: float) -> list[str]:
    """A line on settings with so many rows per cluster."""
    here = [row for row in rows if low <= rows_per_cluster(row) < high]
    name = f"{low:,} and more" if high == CLASSES[-1] else f"{low:,} to {high:,}"
    if not here:
        return [name, "0", *[""] * 5]
    ratios = sorted(row["ratio"][0] for row in here)
    bad, told, runs = (sum(row[key] for row in here) for key in ("bad", "bad_and_warned", "seeds"))
    return [
        name,
        str(len(here)),
        f"**{short(median(ratios))}**, {short(fmean(ratios))}",
        short(ratios[-1]),
        f"{short(median(row[PEER][0] for row in here))}",
        f"{bad} of {runs}",
        f"{told} of {bad}" if bad else "",
    ]


def render(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    names = list(dict.fromkeys(row["data"] for row in rows))
    bad, told, runs = (sum(row[key] for row in rows) for key in ("bad", "bad_and_warned", "seeds"))
    rest = sum(row["warned"] for row in rows) - told
    return "\n".join(
        [
            "## Tables of R packages, which nothing was tuned on",
            "",
            f"Every table of the archive `{ARCHIVE}` with {LEAST_ROWS:,} complete rows or more and at least two numeric columns: {len(names)} tables, "
            f"as they are, up to {MOST_COLUMNS} columns each (`benchmarks/r_data.py` has the rules). No rule or constant of ours was chosen on them. A first run "
            "with other bounds was looked at, and nothing was changed. Bounds are the range of each column, rounded outwards, and from 0 if that is near: a rule that reads the rows, in place of "
            f"somebody who knows the columns. The method is the one that `recommend` names, with delta {DELTA:g} and "
            "default parameters, which give a sixth of the budget to profiles. Inertia is in units of the bounds, over non-private k-means "
            f"(scikit-learn, best of 10 starts): means over {rows[0]['seeds']} seeds. diffprivlib 0.6.6 has rows scaled for it, pure epsilon, and {rows[0]['peer_seeds']} seeds.",
            "",
            "### By rows per cluster",
            "",
            f"Rows of an average cluster times epsilon decide. *Bad*: runs with more than {BAD:g} times the inertia of k-means; a reader is told of noise in {told} of the {bad} "
            f"(of {runs} runs), and in {rest} of the others.",
            "",
            *markdown(
                [
                    "rows per cluster x epsilon",
                    "settings",
                    "**median**, mean",
                    "worst",
                    "diffprivlib, median",
                    "bad runs",
                    "warned of these",
                ],
                [summary(rows, *ends) for ends in pairwise(CLASSES)],
            ),
            "",
            "### Every table",
            "",
            *markdown(
                [
                    "table",
                    "rows x columns",
                    *(f"k {k}, epsilon {e:g}" for k in KS for e in EPSILONS),
                    "diffprivlib, k 8, epsilon 1",
                ],
                [line(rows, name) for name in names],
            ),
            "",
            f"Measured in {measured['minutes']:.0f} minutes on two processes.",
            "",
        ]
    )


def line(rows: list[Row], name: str) -> list[str]:
    cells = {(row["k"], row["epsilon"]): row for row in rows if row["data"] == name}
    n, d = next(iter(cells.values()))["shape"]
    ours = [spread(cells[k, e]["ratio"]) if (k, e) in cells else "" for k in KS for e in EPSILONS]
    peer = cells.get((KS[-1], EPSILONS[0]))
    return [name, f"{n:,} x {d}", *ours, spread(peer[PEER]) if peer else ""]
