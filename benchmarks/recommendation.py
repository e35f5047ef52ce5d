"""`recommend` on settings drawn at random: how far its choice is from the best of our centre methods."""

import json
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min
from threadpoolctl import threadpool_limits

from benchmarks.baselines import kmeans_inertia
from benchmarks.centre_data import markdown, short
from benchmarks.clocks import timed_call
from benchmarks.drawn_tables import COLUMNS, FACTORS, NUMBERS, ROWS, Setting, as_table, bounds_of, rows_of
from benchmarks.drawn_tables import settings as drawn_settings
from benchmarks.kept import folder
from benchmarks.real_tables import label_of
from sfumato import cluster
from sfumato.planner import Recommendation, recommend

SETTINGS, QUICK_SETTINGS = 60, 4
SEEDS, QUICK_SEEDS, N_INIT = 3, 1, 3
METHODS = ("PrivateKMeans", "DPM", "GridKMeans", "LloydKMeans", "LocalSearchKMeans")
GRID_COLUMNS = 6  # more take minutes
EPSILON, DELTA = 1.0, 1e-6
WITHIN, WANTED = 1.05, 0.95  # of the best, in this share of the settings
PART, LOOK = "recommendation_part.json", "recommendation_look.json"  # what an unfinished run has
Row = dict[str, Any]


def measure(*, quick: bool) -> dict[str, Any]:
    n_settings, n_seeds = (QUICK_SETTINGS, QUICK_SEEDS) if quick else (SETTINGS, SEEDS)
    path = folder(quick=quick) / PART
    found = measured_on(n_settings, n_seeds, path)
    path.unlink()
    return found


def measured_on(n_settings: int, n_seeds: int, path: Path) -> dict[str, Any]:
    """Measure settings one by one, keep each at once, and go on where a run has ended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, Row] = json.loads(path.read_text()) if path.exists() else {}
    with threadpool_limits(1):
        for setting in drawn_settings(n_settings):
            key = f"{setting.number}, {n_seeds} seeds"
            if key not in done:
                done[key] = tried(setting, n_seeds)
                path.write_text(json.dumps(done, indent=1) + "\n")
                print(line_of(done[key]), flush=True)
    rows = [done[f"{number}, {n_seeds} seeds"] for number in range(n_settings)]
    return {"seeds": n_seeds, "rows": rows}


def tried(setting: Setting, n_seeds: int) -> Row:
    """Inertia over that of k-means, by method: the median over seeds."""
    X = rows_of(setting)
    table = as_table(setting, X)
    base = kmeans_inertia(X, setting.k, N_INIT)
    budget = {"epsilon": EPSILON, "delta": DELTA}
    chosen = choice(setting)
    makers = {
        name: partial(getattr(cluster, name), setting.k, **budget)
        for name in METHODS
        if name != "GridKMeans" or setting.d <= GRID_COLUMNS
    } | {label_of(chosen): chosen.make}
    ratios, took, failed = {}, {}, {}
    for name, make in makers.items():
        models = [make(bounds=bounds_of(setting), random_state=seed) for seed in range(n_seeds)]
        try:
            fits = [timed_call(partial(fitted_inertia, model, table, X)) for model in models]
        except Exception as error:  # a bug, which must not hide behind the other figures, nor end the run
            failed[name] = repr(error)
            continue
        ratios[name] = float(np.median([inertia / base for _, inertia in fits]))
        took[name] = float(np.median([seconds for seconds, _ in fits]))
    return {**setting._asdict(), "ratios": ratios, "seconds": took, "failed": failed}


def fitted_inertia(model: cluster.PrivateClusterer, table: Any, X: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table)
    return float((pairwise_distances_argmin_min(X, model.cluster_centers_)[1] ** 2).sum())


def choice(setting: Setting) -> Recommendation:
    return recommend(setting.n, setting.d, setting.k, EPSILON, DELTA, bounds=bounds_of(setting))


def setting_of(row: Row) -> Setting:
    return Setting(**{name: row[name] for name in Setting._fields})


def best_of(row: Row) -> str:
    return min(row["ratios"], key=lambda name: row["ratios"][name])


def loss_of(row: Row, method: str) -> float:
    """Inertia over that of the best method; infinite if the method failed, or was not measured since a rule changed."""
    return float(row["ratios"].get(method, np.inf) / row["ratios"][best_of(row)])


def line_of(row: Row) -> str:
    ratios = "  ".join(f"{name} {ratio:.3f}" for name, ratio in row["ratios"].items())
    what = f"n {row['n']}, d {row['d']}, k {row['k']}, bounds x{row['factor']:.1f}"
    return (
        f"{row['number']:3} {row['shape']:<18} {what}: {ratios}  [best {best_of(row)}] {row['failed'] or ''}"
    )


def render(measured: dict[str, Any]) -> str:
    """The rule of today on what was measured: another rule needs no new measurement of known methods."""
    rows = measured["rows"]
    return "\n".join(
        [
            "## The method that `recommend` names",
            "",
            f"{len(rows)} settings drawn at random with a public seed (`benchmarks/drawn_tables.py`): {ROWS[0]:,} to {ROWS[1]:,} rows and "
            f"{COLUMNS[0]} to {COLUMNS[1]} columns, spread evenly on a logarithmic scale (fewer rows in wide tables), {NUMBERS[0]} to {NUMBERS[1]} clusters, bounds "
            f"{FACTORS[0]} to {FACTORS[1]} times as wide as the rows; round, stretched and uneven clusters, unit vectors, and real tables with named "
            f"columns. Epsilon {EPSILON:g}, delta {DELTA:g}, the number of clusters given. Inertia over that of scikit-learn's k-means "
            f"(best of {N_INIT} starts), median of {measured['seeds']} seeds. GridKMeans up to {GRID_COLUMNS} columns. Wanted: within "
            f"{WITHIN - 1:.0%} of the best of ours in {WANTED:.0%} of the settings. The rule was chosen on another draw of 60 settings; on this one nothing was chosen.",
            "",
            *summary(rows),
            "",
            *every_setting(rows),
            "",
        ]
    )


def summary(rows: list[Row]) -> list[str]:
    """Share of settings within reach of the best, of the choice and of each method alone."""
    halves = {
        "all": rows,
        "even numbers": [row for row in rows if row["number"] % 2 == 0],
        "odd numbers": [row for row in rows if row["number"] % 2],
    }
    rules = ["recommend", *(name for name in METHODS if name != "GridKMeans")]
    lines = [[title, *(verdict(half, rule) for rule in rules)] for title, half in halves.items() if half]
    return markdown(
        ["settings", *(f"`{rule}`" if rule == "recommend" else f"always {rule}" for rule in rules)], lines
    )


def verdict(rows: list[Row], rule: str) -> str:
    """Settings within reach of the best, and the worst case."""
    losses = {row["number"]: loss_of(row, name_of(row, rule)) for row in rows}
    worst = max(losses, key=lambda number: losses[number])
    n_near = sum(loss <= WITHIN for loss in losses.values())
    return (
        f"{n_near} of {len(rows)} ({n_near / len(rows):.0%}); worst {short(losses[worst])} (setting {worst})"
    )


def name_of(row: Row, rule: str) -> str:
    return label_of(choice(setting_of(row))) if rule == "recommend" else rule


def every_setting(rows: list[Row]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row["ratios"]))
    lines = [
        [
            str(row["number"]),
            row["shape"],
            f"{row['n']:,} x {row['d']}",
            str(row["k"]),
            f"{row['factor']:.1f}",
            name_of(row, "recommend"),
            short(loss_of(row, name_of(row, "recommend"))),
            *(cell(row, name) for name in names),
        ]
        for row in rows
    ]
    head = ["setting", "shape", "table", "k", "bounds, times", "choice", "choice over best", *names]
    return markdown(head, lines)


def cell(row: Row, name: str) -> str:
    if name not in row["ratios"]:
        return "failed" if name in row["failed"] else ""
    text = short(row["ratios"][name])
    return f"**{text}**" if name == best_of(row) else text


if __name__ == "__main__":  # SETTINGS SEEDS: a look at a few, which is not kept
    start = time.perf_counter()
    n_settings, n_seeds = (int(argument) for argument in sys.argv[1:])
    path = folder(quick=True) / LOOK
    print(render(measured_on(n_settings, n_seeds, path)))
    path.unlink()
    print(f"{time.perf_counter() - start:.0f} s")
