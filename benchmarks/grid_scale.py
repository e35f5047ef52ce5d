"""GridKMeans on 10 million rows: time against one plain NumPy pass, and memory above the data."""

import json
import statistics
import sys
from typing import Any

import numpy as np

from benchmarks.clocks import in_own_process, peak_above, seconds
from sfumato import GridKMeans

MODES = ("times", "memory")


def measure(*, quick: bool) -> dict[str, Any]:
    """Times and memory in a process each."""
    n = 10**6 if quick else 10**7
    times, memory = (in_own_process("benchmarks.grid_scale", mode, n) for mode in MODES)
    measured: dict[str, Any] = {"rows": n, **times, **memory}
    print(measured, flush=True)
    return measured


def in_this_process(mode: str, n: int) -> dict[str, Any]:
    X, model = clusters(n), GridKMeans(8, epsilon=1.0, bounds=(-1, 1), n_public=n)
    model.fit(X[:1000])  # compiles
    if mode == "memory":
        return {"above_data_mb": peak_above(lambda: model.fit(X))}
    fits = [seconds(lambda: model.fit(X)) for _ in range(5)]
    m = model.grid_.shape[0]
    passes = [seconds(lambda: numpy_pass(X, m)) for _ in range(5)]
    fit, plain = statistics.median(fits), statistics.median(passes)
    return {"cells": m * m, "fit_s": fit, "numpy_pass_s": plain, "ratio": fit / plain}


def clusters(n: int) -> np.ndarray:
    """Eight clusters, made in place."""
    X = np.empty((n, 2))
    rng = np.random.default_rng(0)
    for start in range(0, n, 10**5):
        stop = min(start + 10**5, n)
        centers = rng.integers(0, 8, stop - start)
        X[start:stop, 0] = rng.normal(np.cos(centers * np.pi / 4) * 0.6, 0.08)
        X[start:stop, 1] = rng.normal(np.sin(centers * np.pi / 4) * 0.6, 0.08)
    return X


def numpy_pass(X: np.ndarray, m: int) -> np.ndarray:
    cells = np.clip(((X + 1) * (m / 2)).astype(np.int64), 0, m - 1)
    return np.bincount(cells[:, 0] * m + cells[:, 1], minlength=m * m)


def render(row: dict[str, Any]) -> str:
    above = "" if row["above_data_mb"] is None else f"{row['above_data_mb']:.0f}"
    return (
        "## GridKMeans at scale\n\n"
        f"{row['rows']:,} rows x 2 in memory, 8 clusters, epsilon 1, {row['cells']:,} cells, kernels warm, median of 5; "
        "the plain pass is NumPy computing the same cell counts in the same process. Memory is the peak of one more fit, in a process of its own.\n\n"
        "| fit, s | plain NumPy pass, s | ratio | memory above the data, MB |\n|---|---|---|---|\n"
        f"| {row['fit_s']:.2f} | {row['numpy_pass_s']:.2f} | {row['ratio']:.2f} | {above} |\n"
    )


if __name__ == "__main__":
    print(json.dumps(in_this_process(sys.argv[1], int(sys.argv[2]))))
