"""How many clusters: the number that released cells suggest, and whether the intervals of their costs hold.

The rules were tuned on round, stretched and unit-norm clusters. The recipes here are others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.centre_data import in_processes, markdown
from sfumato import cluster

METHODS = ("PrivateKMeans", "DPM", "LloydKMeans", "LocalSearchKMeans")  # those that there are
NUMBERS, COLUMNS = (3, 6, 12, 25, 40), (2, 6, 30, 128, 384)
QUICK_NUMBERS, QUICK_COLUMNS = (3, 12), (2, 30)
LEAST_ROWS, UNEVEN = 1500, 4.0  # rows of the smallest cluster; the largest has up to so many times as many
MOST_VALUES = 12_000_000  # of a table: larger clusters are cut
EPSILON, DELTA = 1.0, 1e-6

Draw = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]


def _heavy(rng: np.random.Generator, labels: np.ndarray, d: int) -> np.ndarray:
    return rng.standard_t(5, (len(labels), d))


def _cubes(rng: np.random.Generator, labels: np.ndarray, d: int) -> np.ndarray:
    return rng.uniform(-1, 1, (len(labels), d))


def _spreads(rng: np.random.Generator, labels: np.ndarray, d: int) -> np.ndarray:
    factors = np.exp(rng.uniform(-0.4, 0.4, labels.max() + 1))
    return rng.normal(size=(len(labels), d)) * factors[labels][:, None]


RECIPES: dict[str, Draw] = {"heavy tails": _heavy, "cubes": _cubes, "several spreads": _spreads}


def table(recipe: str, k: int, d: int, seed: int) -> np.ndarray:
    """Separated clusters in [-1, 1]^d.

    Neighbours are 6 to 9 deviations apart along the line between them. In many columns they are also as far
    apart as 1 to 2 times the spread of a cluster, since noise would hide them otherwise. The bounds hold all but
    one value in a thousand, which is clipped.
    """
    rng = np.random.default_rng([seed, k, d, list(RECIPES).index(recipe)])
    centers = rng.uniform(-1, 1, (1, d))
    while len(centers) < k:  # the farthest of some, so that clusters are apart in few columns
        new = rng.uniform(-1, 1, (20 if d < 10 else 1, d))
        centers = np.vstack([centers, new[cdist(new, centers).min(axis=1).argmax()]])
    sizes = LEAST_ROWS * np.exp(rng.uniform(0, np.log(UNEVEN), k))
    sizes *= min(1.0, MOST_VALUES / (d * sizes.sum()))
    labels = np.repeat(np.arange(k), sizes.astype(int))
    rows = RECIPES[recipe](rng, labels, d)
    variance = max(float(rows[labels == j].var(axis=0).mean()) for j in range(k))
    nearest = float(cdist(centers, centers)[~np.eye(k, dtype=bool)].min())
    apart = max(rng.uniform(6, 9), rng.uniform(1, 2) * np.sqrt(d))  # in deviations of a column
    found = centers[labels] + nearest / (apart * np.sqrt(variance)) * rows
    return np.clip(found / np.quantile(np.abs(found[:: max(len(found) // 2000, 1)]), 0.999), -1, 1)


def tried(method: str, recipe: str, k: int, d: int, seed: int) -> dict[str, Any]:
    """The number of clusters found with "auto", and how the costs for several numbers compare with the rows."""
    rows = table(recipe, k, d, seed)
    model = getattr(cluster, method)("auto", epsilon=EPSILON, delta=DELTA, bounds=(-1, 1), random_state=seed)
    model.fit(rows)
    cells = model.release_.model.any_cells
    numbers = [n for n in (1, k // 2, k - 1, k, k + 1, 2 * k) if 1 <= n <= cells.n_cells]
    curve, costs = cells.curve(numbers), []
    for i, number in enumerate(numbers):
        truth = -model.at(number).score(rows) if number != model.n_clusters_ else _cost(rows, cells, number)
        low, high = curve.cost_ends[:, i]
        costs.append(
            [bool(low <= truth <= high), float(curve.costs[i] / truth), float((high - low) / truth / 2)]
        )
    return {"method": method, "recipe": recipe, "k": k, "d": d, "found": model.n_clusters_, "costs": costs}


def _cost(rows: np.ndarray, cells: Any, number: int) -> float:
    """Cost of the clusters of cells; the released ones, of as many, have moved since."""
    centers = cells.at(number).centers
    parts = np.array_split(rows, max(len(rows) // 5000, 1))
    return float(sum(cdist(part, centers, "sqeuclidean").min(axis=1).sum() for part in parts))


def measure(*, quick: bool) -> dict[str, Any]:
    there = [name for name in METHODS if hasattr(cluster, name)]
    numbers, columns = (QUICK_NUMBERS, QUICK_COLUMNS) if quick else (NUMBERS, COLUMNS)
    jobs = [
        (method, recipe, k, d, seed)
        for seed, recipe in enumerate(RECIPES)
        for k in numbers
        for d in columns
        for method in there
    ]
    return {"runs": list(in_processes(tried, jobs))}


def render(measured: dict[str, Any]) -> str:
    runs = measured["runs"]
    methods = list(dict.fromkeys(run["method"] for run in runs))
    by_columns = [
        [method, *(_right(runs, method=method, d=d) for d in _of(runs, "d")), _right(runs, method=method)]
        for method in methods
    ]
    by_number = [[method, *(_right(runs, method=method, k=k) for k in _of(runs, "k"))] for method in methods]
    costs = [[method, *_costs([run for run in runs if run["method"] == method])] for method in methods]
    d_head, k_head = (
        [f"{n} {name}" for n in _of(runs, key)] for key, name in (("d", "columns"), ("k", "clusters"))
    )
    recipes = ", ".join(_of(runs, "recipe"))
    return "\n".join(
        [
            "## How many clusters",
            "",
            f'`n_clusters="auto"` on separated clusters ({recipes}) of uneven sizes, the smallest with {LEAST_ROWS:,} rows '
            f"(fewer in the widest tables), at epsilon {EPSILON:g} and delta {DELTA:g}. Share of the tables in which the number is "
            "right within one. Other recipes served to tune the rule (docs/notes/how_many.md).",
            "",
            *markdown(["method", *d_head, "all"], by_columns),
            "",
            *markdown(["method", *k_head], by_number),
            "",
            "Stated 95 % intervals of the cost for 1 to 2k clusters: how many hold the cost of the rows, the median half width, and "
            "the root mean square error, both relative to the cost.",
            "",
            *markdown(["method", "intervals that hold", "half width", "error"], costs),
            "",
        ]
    )


def _of(runs: list[dict[str, Any]], key: str) -> list[Any]:
    return list(dict.fromkeys(run[key] for run in runs))


def _right(runs: list[dict[str, Any]], **chosen: Any) -> str:
    some = [run for run in runs if all(run[key] == value for key, value in chosen.items())]
    n_right = sum(abs(run["found"] - run["k"]) <= 1 for run in some)
    return f"{n_right} of {len(some)}"


def _costs(runs: list[dict[str, Any]]) -> list[str]:
    costs = np.array([cost for run in runs for cost in run["costs"]], dtype=float)
    error = np.sqrt(np.mean((costs[:, 1] - 1) ** 2))
    return [f"{costs[:, 0].mean():.1%} of {len(costs):,}", f"{np.median(costs[:, 2]):.1%}", f"{error:.1%}"]
