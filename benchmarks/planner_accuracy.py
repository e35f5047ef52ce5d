"""Forecast errors of centres and sizes, against those of fits on simulated rows."""

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from benchmarks.centre_data import in_processes, markdown
from benchmarks.density_data import fit
from sfumato import cluster
from sfumato.datasets import separated_gaussians
from sfumato.planner import plan

SEEDS, QUICK_SEEDS = 20, 2
FIRST_SEED = 1000  # formulas and constants were worked out on data sets of seeds 0 to 5 and 100 to 119
WITHIN = 0.2
FOUND = 0.05  # a cluster is found if the rows nearest to its centre are as many as it has, up to this share
BOUNDS = (-1.0, 1.0)

Setting = tuple[str, int, int, int, dict[str, float]]  # method, rows, columns, clusters, budget

REFINED = ("DPM", "LloydKMeans", "CoresetKMeans", "MaxCoverKMeans", "LocalSearchKMeans")
TABLES: tuple[tuple[int, int, int, dict[str, float]], ...] = (
    (20_000, 2, 4, {"epsilon": 1.0}),
    (20_000, 6, 8, {"epsilon": 1.0}),
    (50_000, 4, 5, {"epsilon": 0.2}),
    (50_000, 6, 8, {"rho": 0.05}),
    (60_000, 3, 12, {"rho": 0.02}),
    (50_000, 10, 4, {"epsilon": 0.5, "delta": 1e-6}),
    (50_000, 20, 8, {"epsilon": 1.0, "delta": 1e-6}),
)
OTHERS: tuple[Setting, ...] = (
    ("DPMoG", 50_000, 6, 8, {"epsilon": 1.0}),
    ("DPMoG", 50_000, 10, 4, {"rho": 0.05}),
    ("DPMoG", 50_000, 5, 4, {"epsilon": 1.0, "delta": 1e-6}),
    ("GridKMeans", 2_000, 2, 4, {"epsilon": 1.0}),
    ("GridKMeans", 2_000, 2, 3, {"epsilon": 0.3}),
    ("GridKMeans", 5_000, 2, 4, {"rho": 0.05}),
    ("GridKMeans", 4_000, 3, 3, {"epsilon": 0.5}),
    ("GridKMeans", 10_000, 2, 8, {"epsilon": 0.3}),
    ("GridKMeans", 5_000, 2, 6, {"epsilon": 0.5, "delta": 1e-6}),
    ("GridKMeans", 200_000, 2, 8, {"epsilon": 1.0}),
    ("GridKMeans", 100_000, 3, 8, {"rho": 0.5}),
    ("GridKMeans", 20_000, 4, 6, {"epsilon": 1.0}),
    ("DPMoG", 20_000, 2, 4, {"epsilon": 1.0}),
    ("DPMoG", 20_000, 3, 8, {"rho": 0.1}),
    ("DensityTree", 20_000, 2, 4, {"epsilon": 1.0}),
    ("DensityTree", 50_000, 2, 8, {"rho": 0.05}),
    ("DPDBSCAN", 50_000, 2, 4, {"epsilon": 1.0}),
    ("DPDBSCAN", 50_000, 2, 6, {"rho": 0.2}),
)


def settings() -> list[Setting]:
    return [(method, *table) for table in TABLES for method in REFINED] + list(OTHERS)


def measure(*, quick: bool) -> dict[str, Any]:
    chosen = settings()[::6] if quick else settings()
    n_seeds = QUICK_SEEDS if quick else SEEDS
    jobs = [(*setting, FIRST_SEED + seed) for setting in chosen for seed in range(n_seeds)]
    runs = list(in_processes(run, jobs))
    rows = []
    for i, setting in enumerate(chosen):
        rows.append(summary(setting, runs[i * n_seeds : (i + 1) * n_seeds]))
        print(rows[-1], flush=True)
    return {"seeds": n_seeds, "rows": rows}


@lru_cache(maxsize=1)
def rows_of(n: int, k: int, d: int, seed: int) -> np.ndarray:
    return separated_gaussians(n, k, d, random_state=seed)[0]


def run(method: str, n: int, d: int, k: int, budget: dict[str, float], seed: int) -> dict[str, float]:
    """Mean squared errors over the clusters that a fit finds, and how many these are."""
    X = rows_of(n, k, d, seed)
    if method in ("DPDBSCAN", "DensityTree"):
        return run_density(method, X, k, budget, seed)
    model = getattr(cluster, method)(k, bounds=BOUNDS, random_state=seed, **budget).fit(X)
    centers = model.cluster_centers_
    nearest = pairwise_distances_argmin(X, centers)
    sizes = np.bincount(nearest, minlength=len(centers))
    sums = np.stack([np.bincount(nearest, column, len(centers)) for column in X.T], axis=1)
    found = np.abs(sizes * k / n - 1) < FOUND
    errors = centers[found] - sums[found] / sizes[found, None]
    return {
        "found": float(found.sum() / k),
        "center": float((errors**2).mean()) if found.any() else np.nan,
        "size": float(((model.cluster_sizes_ - sizes)[found] ** 2).mean()) if found.any() else np.nan,
    }


def run_density(method: str, X: np.ndarray, k: int, budget: dict[str, float], seed: int) -> dict[str, float]:
    model = fit(
        getattr(cluster, method)(bounds=BOUNDS, random_state=seed, **parameters_of(method, X, k, budget)), X
    )
    inside = model.predict(X)
    errors = [span.count - np.count_nonzero(inside == i) for i, span in enumerate(model.spans_)]
    return {"found": model.n_clusters_ / k, "center": np.nan, "size": float(np.mean(np.square(errors)))}


def parameters_of(method: str, X: np.ndarray, k: int, budget: dict[str, float]) -> dict[str, Any]:
    if method == "DensityTree":
        return budget
    planned = plan(*X.shape, k, method=method, bounds=BOUNDS, **({"epsilon": None} | budget))
    return budget | {"radius": planned.fitting_radius, "min_samples": planned.fitting_min_samples}


def summary(setting: Setting, runs: list[dict[str, float]]) -> dict[str, Any]:
    method, n, d, k, budget = setting
    own = parameters_of(method, np.empty((n, d)), k, budget) if method == "DPDBSCAN" else budget
    planned = plan(n, d, k, method=method, bounds=BOUNDS, **({"epsilon": None} | own))
    (center, center_se), (size, size_se) = (
        root_mean([run[name] for run in runs]) for name in ("center", "size")
    )
    return {
        "method": method,
        "n": n,
        "d": d,
        "k": k,
        "budget": ", ".join(f"{name} {value:g}" for name, value in budget.items()),
        "found": float(np.mean([run["found"] for run in runs])),
        "smallest": planned.smallest_cluster,
        "center forecast": planned.center_error,
        "center": None if np.isnan(center) else center,
        "center se": None if np.isnan(center) else center_se,
        "size forecast": planned.size_error,
        "size": size,
        "size se": size_se,
        "noted": bool(planned.notes),
    }


def root_mean(squares: list[float]) -> tuple[float, float]:
    """Root of the mean of squared errors over data sets, and its standard error."""
    root = float(np.sqrt(np.mean(squares)))
    return root, float(np.std(squares, ddof=1) / np.sqrt(len(squares)) / (2 * root))


def is_within(row: dict[str, Any], name: str) -> bool | None:
    if row[name] is None:
        return None
    return abs(row[f"{name} forecast"] / row[name] - 1) <= WITHIN


def render(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    head = [
        "method",
        "rows",
        "d",
        "k",
        "budget",
        "smallest visible",
        "found",
        "centre: forecast",
        "measured",
        "ratio",
    ]
    head += ["size: forecast", "measured", "ratio"]
    lines = [
        "## Planner: forecast and measured errors",
        "",
        "`sfumato.planner.plan` against fits on `separated_gaussians` with equal clusters of the default spread. "
        f"Root mean squared errors over {measured['seeds']} data sets, which were drawn after formulas and constants were fixed; "
        "some of the settings had served to find them. The error of a centre is per coordinate, in spreads, against the mean of the "
        "rows nearest to the released centre. The error of a size is in rows. Only clusters that were found count: their rows differ "
        f"from the true number by at most {FOUND:.0%}. Standard errors are in parentheses. Ratios are forecast over measured. An "
        "asterisk marks forecasts that call themselves rough.",
        "",
        *headline(rows),
        "",
        *markdown(head, [line(row) for row in rows]),
        "",
    ]
    return "\n".join(lines)


def headline(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for name, title in (("center", "centres"), ("size", "sizes")):
        plain = [is_within(row, name) for row in rows if not row["noted"]]
        rough = [is_within(row, name) for row in rows if row["noted"]]
        counted = [[each for each in some if each is not None] for some in (plain, rough)]
        lines.append(
            f"- {title}: within {WITHIN:.0%} in {sum(counted[0])} of {len(counted[0])} settings; of those with an asterisk, "
            f"in {sum(counted[1])} of {len(counted[1])}"
        )
    return lines


def line(row: dict[str, Any]) -> list[str]:
    spread = 0.16 / row["k"] ** (1 / row["d"])
    centre = ["", "", ""]
    if row["center"] is not None:
        forecast, found = row["center forecast"], row["center"]
        measured = f"{found / spread:.4f} ({row['center se'] / spread:.4f})"
        centre = [f"{forecast / spread:.4f}", measured, f"{forecast / found:.2f}"]
    method = row["method"] + ("\\*" if row["noted"] else "")
    numbers = [f"{row['n']:,}", str(row["d"]), str(row["k"]), row["budget"], f"{row['smallest']:,.0f}"]
    measured = f"{row['size']:.1f} ({row['size se']:.1f})"
    size = [f"{row['size forecast']:.1f}", measured, f"{row['size forecast'] / row['size']:.2f}"]
    return [method, *numbers, f"{row['found']:.0%}", *centre, *size]
