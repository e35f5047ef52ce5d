"""How well DensityTree finds shapes: without noise beside HDBSCAN, and over budgets and numbers of rows.

Rules and constants were chosen on one half of the recipes and tables, and are reported on the other; docs/notes/density.md names
the exceptions.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.baselines import hdbscan_labels
from benchmarks.centre_data import in_processes, markdown
from benchmarks.density_data import DATA_SETS, at_hand, rows_of
from benchmarks.density_families import FAMILIES
from sfumato import DensityTree

SEEDS, QUICK_SEEDS, CURVE_SEEDS = 5, 1, 3
NOISELESS = 1e4
EPSILONS = (NOISELESS, 4.0, 1.0, 0.25)
CURVE_EPSILONS = (NOISELESS, 4.0, 1.0)
MOST_ROWS_OF_HDBSCAN = 20_000  # it takes a minute for 100,000
# Tables that were looked at; all others of two columns were only reported on.
CHOSEN = ("circles", "moons", "cluto_t4_8k", "s_set1", "r15", "bars", "noisy_moons", "shapes")
HALVES = {
    "chosen": "rules were chosen on these",
    "reported": "rules were chosen on others, but for a few that the notes name",
}


def measure(*, quick: bool) -> dict[str, Any]:
    jobs = list(_jobs(QUICK_SEEDS if quick else SEEDS, quick=quick))
    groups = defaultdict(list)
    for (name, rows, epsilon, _), score in zip(jobs, in_processes(score_of, jobs), strict=True):
        groups[name, rows, epsilon].append(score)
    rows = [
        {
            "table": name,
            "half": half_of(name),
            "rows": len(draw(name, n_rows, 0)[1]) if n_rows is None else n_rows,
            "epsilon": epsilon,
            "ari": [float(np.mean(scores)), float(np.std(scores, ddof=len(scores) > 1))],
            "seeds": len(scores),
        }
        for (name, n_rows, epsilon), scores in groups.items()
    ]
    return {"rows": rows}


def _jobs(n_seeds: int, *, quick: bool) -> Iterator[tuple[str, int | None, float | None, int]]:
    """Table, rows, epsilon (None for HDBSCAN) and seed."""
    for name, n_rows in tables(quick=quick):
        usual = n_rows is None or n_rows == FAMILIES[name].rows[0]
        for epsilon in (None, *EPSILONS) if usual else CURVE_EPSILONS:
            fixed = name not in FAMILIES and (epsilon is None or epsilon == NOISELESS)
            for seed in range(1 if fixed else n_seeds if usual else min(n_seeds, CURVE_SEEDS)):
                yield name, n_rows, epsilon, seed


def tables(*, quick: bool) -> Iterator[tuple[str, int | None]]:
    """Names, and numbers of rows of those that are drawn."""
    for family in FAMILIES.values():
        for n_rows in family.rows[:1] if quick else family.rows:
            yield family.name, n_rows
    for name in at_hand(DATA_SETS):
        if len(DATA_SETS[name].bounds[0]) == 2:
            yield name, None


def draw(name: str, n_rows: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return rows_of(name) if n_rows is None else FAMILIES[name].draw(n_rows, seed)


def half_of(name: str) -> str:
    return FAMILIES[name].half if name in FAMILIES else "chosen" if name in CHOSEN else "reported"


def score_of(name: str, n_rows: int | None, epsilon: float | None, seed: int) -> float:
    X, classes = draw(name, n_rows, seed)
    if epsilon is None:
        X, classes = X[:MOST_ROWS_OF_HDBSCAN], classes[:MOST_ROWS_OF_HDBSCAN]
        return float(adjusted_rand_score(classes, hdbscan_labels(X)))
    bounds = (FAMILIES[name] if n_rows else DATA_SETS[name]).bounds
    model = DensityTree(epsilon=epsilon, bounds=bounds, random_state=seed).fit(X)
    return float(adjusted_rand_score(classes, model.labels_))


def render(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    usual = {row["table"]: row["rows"] for row in rows if row["epsilon"] is None}
    cells = {(row["table"], row["epsilon"]): row for row in rows if row["rows"] == usual[row["table"]]}
    halves = {
        half: [name for name in usual if cells[name, 1.0]["half"] == half] for half in ("reported", "chosen")
    }
    lines = [
        "## DensityTree on shapes, beside HDBSCAN",
        "",
        "ARI over all rows, noise as a class of its own, mean ± standard deviation over "
        f"{max(row['seeds'] for row in rows)} seeds, which draw the rows of recipes and the noise. HDBSCAN: scikit-learn's, "
        f"with its default parameters, not private, on at most {MOST_ROWS_OF_HDBSCAN:,} rows. Epsilon {NOISELESS:g} is without "
        "noise for all that matters. `DensityTree` has its default setting everywhere. `benchmarks/density_families.py` "
        "draws the recipes.",
        "",
    ]
    for half, names in halves.items():
        lines += [f"### The {half} half: {HALVES[half]}", "", *_table(names, cells), ""]
    return "\n".join([*lines, *_curves(rows, usual)])


def _table(names: list[str], cells: dict[tuple[str, float | None], dict[str, Any]]) -> list[str]:
    head = ["table", "rows", "HDBSCAN", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    lines = [
        [
            name,
            f"{cells[name, None]['rows']:,}",
            *(_score(cells[name, epsilon]) for epsilon in (None, *EPSILONS)),
        ]
        for name in names
    ]
    means = [np.mean([cells[name, epsilon]["ari"][0] for name in names]) for epsilon in (None, *EPSILONS)]
    below = [name for name in names if cells[name, NOISELESS]["ari"][0] < cells[name, None]["ari"][0] - 0.1]
    said = f"More than .1 below HDBSCAN without noise: {', '.join(below) or 'none'}."
    return [*markdown(head, [*lines, ["**mean**", "", *(f"**{mean:.3f}**" for mean in means)]]), "", said]


def _curves(rows: list[dict[str, Any]], usual: dict[str, int]) -> list[str]:
    shown = sorted(
        {
            (row["table"], row["rows"])
            for row in rows
            if row["table"] in FAMILIES and len(FAMILIES[row["table"]].rows) > 1
        }
    )
    cells = {(row["table"], row["rows"], row["epsilon"]): row for row in rows}
    head = ["recipe", "rows", *(f"epsilon {epsilon:g}" for epsilon in CURVE_EPSILONS)]
    lines = [
        [name, f"{n:,}", *(_score(cells[name, n, epsilon]) for epsilon in CURVE_EPSILONS)]
        for name, n in shown
        if (name, n, 1.0) in cells
    ]
    return [
        "### Over rows and budgets",
        "",
        f"The same over {CURVE_SEEDS} seeds, for recipes of the reported half (and two of the other) at several sizes.",
        "",
        *markdown(head, lines),
        "",
    ]


def _score(row: dict[str, Any]) -> str:
    mean, std = row["ari"]
    return f"{mean:.3f}" if row["seeds"] == 1 else f"{mean:.3f} ± {std:.3f}"
