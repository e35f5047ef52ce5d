"""What profiles cost the centres: the same fits with a sixth of the budget for profiles, and without."""

from typing import Any

import numpy as np

from benchmarks.centre_data import in_processes, markdown
from benchmarks.kmeans_accuracy import spread
from benchmarks.real_tables import in_units, numeric_table, scores
from benchmarks.table_bounds import NUMERIC, TITLES
from sfumato import cluster

SEEDS, QUICK_SEEDS = 5, 2
K, EPSILONS, DELTA = 5, (1.0, 0.25), 1e-6
METHOD = "DPM"
PROFILES = ("auto", 0)


def cost_on(name: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Inertia over that of k-means, and the median error of a centre in per cent of the width, both ways."""
    found: dict[str, Any] = {"data": name, "epsilon": epsilon}
    for profiles in PROFILES:
        model = getattr(cluster, METHOD)(
            K, epsilon=epsilon, delta=DELTA, bounds=NUMERIC[name], missing="drop"
        )
        model.set_params(profiles=profiles, random_state=seed).fit(numeric_table(name))
        of_centres = scores(name, K, in_units(name, model.cluster_centers_))
        found[str(profiles)] = [of_centres["ratio"], float(np.median(of_centres["errors"]))]
    return found


def measure(*, quick: bool) -> dict[str, Any]:
    n_seeds = QUICK_SEEDS if quick else SEEDS
    jobs = [(name, epsilon, seed) for name in NUMERIC for epsilon in EPSILONS for seed in range(n_seeds)]
    return {"seeds": n_seeds, "runs": list(in_processes(cost_on, jobs))}


def render(measured: dict[str, Any]) -> str:
    lines = []
    for name in NUMERIC:
        for epsilon in EPSILONS:
            runs = [run for run in measured["runs"] if (run["data"], run["epsilon"]) == (name, epsilon)]
            both = np.array([[run[str(profiles)] for profiles in PROFILES] for run in runs])
            ratios = [spread([float(both[:, i, 0].mean()), float(both[:, i, 0].std(ddof=1))]) for i in (0, 1)]
            errors = [f"{np.median(both[:, i, 1]):.2f}" for i in (0, 1)]
            lines.append([TITLES[name], f"{epsilon:g}", *ratios, *errors])
    head = ["table", "epsilon", "inertia, profiles", "inertia, none", "error, profiles", "error, none"]
    return "\n".join(
        [
            "## What profiles cost the centres",
            "",
            f"{METHOD} with {K} clusters, delta 1e-6, {measured['seeds']} seeds. Inertia in units of the bounds over that of "
            "k-means: mean and deviation. Error: median over centres and columns, in per cent of the column's width.",
            "",
            *markdown(head, lines),
            "",
        ]
    )
