"""Cost, time and memory of k-medoids against FasterPAM of the package kmedoids, which needs a matrix of all distances."""

import gc
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from benchmarks.centre_data import markdown
from benchmarks.clocks import kilobytes, seconds
from sfumato.public.places.medoids import k_medoids

KINDS = ("50 normals", "uniform")
DIMENSIONS, N_MEDOIDS = (2, 8), (10, 50, 100)
ROWS, QUICK_ROWS = 5000, 1000
REPEATS = 3
N_FREE, TIMES_ROWS = 200, 4  # of the larger problem
# Cost and time over those of FasterPAM, of which the first time includes the matrix; megabytes of a process.
MOST_COST, MOST_TIME, MOST_LARGE_TIME, MOST_MEMORY_MB = 1.01, 1.0, 20.0, 2000.0


def draw(kind: str, n: int, d: int, seed: int = 0) -> np.ndarray:
    """Points in or about the box from -1 to 1; the normals are the same for every seed."""
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.uniform(-1, 1, size=(n, d))
    centres = np.random.default_rng(99).uniform(-1, 1, size=(50, d))
    return centres[rng.integers(50, size=n)] + rng.normal(scale=0.1, size=(n, d))


def measure(*, quick: bool) -> dict[str, Any]:
    """Time each data set in a process of its own, and the larger problem in another."""
    n_rows, repeats = (QUICK_ROWS, 1) if quick else (ROWS, REPEATS)
    rows, large = [], []
    for kind in KINDS[:1] if quick else KINDS:
        for d in DIMENSIONS[:1] if quick else DIMENSIONS:
            timed = in_own_process("times", kind, n_rows, d, repeats)
            rows += timed
            print(*timed, sep="\n", flush=True)
            large.append(in_own_process("with_free", kind, TIMES_ROWS * n_rows, d))
            large[-1]["ratio"] = large[-1]["ours_s"] / timed[-1]["pam_s"]
            print(large[-1], flush=True)
    return {"rows": n_rows, "repeats": repeats, "plain": rows, "large": large}


def in_own_process(*arguments: object) -> Any:
    command = [sys.executable, "-m", "benchmarks.medoids_time", *map(str, arguments)]
    return json.loads(subprocess.check_output(command, text=True))


def times(kind: str, n_rows: int, d: int, repeats: int) -> list[dict[str, Any]]:
    """Take turns, so that other load on the machine falls on all."""
    X = draw(kind, n_rows, d)
    k_medoids(X[:100], 3)  # compiles
    return [turns(kind, X, k, repeats) for k in N_MEDOIDS]


def turns(kind: str, X: np.ndarray, k: int, repeats: int) -> dict[str, Any]:
    from kmedoids import fasterpam

    D, ours, matrix, pam, found, costs = pairwise_distances(X), [], [], {1: [], -1: []}, [], []
    for seed in range(repeats):
        ours.append(seconds(lambda: found.append(k_medoids(X, k).cost)))
        matrix.append(seconds(lambda: pairwise_distances(X)))
        for n_cpu, so_far in pam.items():
            options = {"random_state": seed, "n_cpu": n_cpu}
            so_far.append(seconds(lambda options=options: costs.append(fasterpam(D, k, **options).loss)))
    row = {"kind": kind, "d": X.shape[1], "k": k, "ours_s": statistics.median(ours)}
    row |= {"matrix_s": statistics.median(matrix), "pam_s": min(map(statistics.median, pam.values()))}
    return row | {"cost": found[0] / statistics.median(costs), "cost_of_best": found[0] / min(costs)}


def with_free(kind: str, n_rows: int, d: int) -> dict[str, Any]:
    """Most medoids of the larger problem, beside free centres: seconds, and the peak of the whole process."""
    X, free, k = draw(kind, n_rows, d), draw(kind, N_FREE, d, seed=1), N_MEDOIDS[-1]
    k_medoids(X[:100], 3, free_centres=free)
    gc.collect()
    taken = seconds(lambda: k_medoids(X, k, free_centres=free))
    peak = kilobytes("VmHWM") / 1024 if Path("/proc/self/status").exists() else None
    return {"kind": kind, "n": n_rows, "d": d, "k": k, "ours_s": taken, "peak_mb": peak}


def render(measured: dict[str, Any]) -> str:
    return "\n".join([*plain_section(measured), *large_section(measured)])


def plain_section(measured: dict[str, Any]) -> list[str]:
    head = ["points", "columns", "k", "cost", "of the best", "limit", "ours, s", "FasterPAM, s", "matrix, s"]
    head += ["of FasterPAM's time", "with the matrix", "limit"]
    return [
        "## k-medoids: cost, time and memory",
        "",
        f"`k_medoids` on {measured['rows']:,} points without free centres, against `fasterpam` of the package kmedoids from "
        f"random starts, {measured['repeats']} times on one thread and on all: its median cost and the least of its costs, and "
        "its median time on one or all, whichever is less. It works on a matrix that scikit-learn's `pairwise_distances` computes. Kernels warm; "
        "ours takes one thread and makes two searches, its default.",
        "",
        *markdown(head, [plain_line(row) for row in measured["plain"]]),
        "",
    ]


def plain_line(row: dict[str, Any]) -> list[str]:
    ours, pam, matrix = row["ours_s"], row["pam_s"], row["matrix_s"]
    first = [
        row["kind"],
        str(row["d"]),
        str(row["k"]),
        f"**{row['cost']:.4f}**",
        f"{row['cost_of_best']:.4f}",
    ]
    first += [
        verdict(row["cost"], MOST_COST),
        f"{ours:.3g}",
        f"{pam:.3g}",
        f"{matrix:.3g}",
        f"{ours / pam:.2f}",
    ]
    ratio = ours / (pam + matrix)
    return [*first, f"**{ratio:.2f}**", verdict(ratio, MOST_TIME)]


def large_section(measured: dict[str, Any]) -> list[str]:
    n, k = measured["large"][0]["n"], measured["large"][0]["k"]
    head = ["points", "columns", "ours, s", "of FasterPAM's time", "limit", "memory, MB", "limit"]
    return [
        "### With free centres",
        "",
        f"{n:,} points, k = {k}, {N_FREE} free centres of the same law: one run, against the time of `fasterpam` on "
        f"{measured['rows']:,} points with k = {k} and no free centres, without its matrix. Memory: peak of the whole process.",
        "",
        *markdown(head, [large_line(row) for row in measured["large"]]),
        "",
    ]


def large_line(row: dict[str, Any]) -> list[str]:
    peak = row["peak_mb"]
    memory = ["", ""] if peak is None else [f"{peak:.0f}", verdict(peak, MOST_MEMORY_MB)]
    time = [f"{row['ours_s']:.3g}", f"**{row['ratio']:.2f}**", verdict(row["ratio"], MOST_LARGE_TIME)]
    return [row["kind"], str(row["d"]), *time, *memory]


def verdict(value: float, limit: float) -> str:
    return f"≤ {limit:.4g}: {'met' if value <= limit else 'missed'}"


MODES: dict[str, Callable[..., Any]] = {"times": times, "with_free": with_free}


def main(mode: str, kind: str, *numbers: str) -> None:
    print(json.dumps(MODES[mode](kind, *map(int, numbers))))


if __name__ == "__main__":
    main(*sys.argv[1:])
