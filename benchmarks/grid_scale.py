"""GridKMeans on 10 million rows: time against one plain NumPy pass, and memory above the data."""

import json
import resource
import statistics
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.clocks import seconds
from sfumato import GridKMeans


def measure(*, quick: bool) -> dict[str, Any]:
    """Run in a process of its own, whose peak of memory is that of the fit."""
    n = 10**6 if quick else 10**7
    command = [sys.executable, "-m", "benchmarks.grid_scale", str(n)]
    measured: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    print(measured, flush=True)
    return measured


def in_this_process(n: int) -> dict[str, Any]:
    X = np.empty((n, 2))
    rng = np.random.default_rng(0)
    for start in range(0, n, 10**5):  # eight clusters, made in place
        stop = min(start + 10**5, n)
        centers = rng.integers(0, 8, stop - start)
        X[start:stop, 0] = rng.normal(np.cos(centers * np.pi / 4) * 0.6, 0.08)
        X[start:stop, 1] = rng.normal(np.sin(centers * np.pi / 4) * 0.6, 0.08)
    model = GridKMeans(8, epsilon=1.0, bounds=(-1, 1), n_public=n)
    model.fit(X[:1000])  # compiles
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fits = [seconds(lambda: model.fit(X)) for _ in range(5)]
    above = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    m = model.grid_.shape[0]
    passes = [seconds(lambda: numpy_pass(X, m)) for _ in range(5)]
    return {
        "rows": n,
        "cells": m * m,
        "fit_s": statistics.median(fits),
        "numpy_pass_s": statistics.median(passes),
        "ratio": statistics.median(fits) / statistics.median(passes),
        "above_data_mb": above / 1024,
    }


def numpy_pass(X: np.ndarray, m: int) -> np.ndarray:
    cells = np.clip(((X + 1) * (m / 2)).astype(np.int64), 0, m - 1)
    return np.bincount(cells[:, 0] * m + cells[:, 1], minlength=m * m)


def render(row: dict[str, Any]) -> str:
    return (
        "## GridKMeans at scale\n\n"
        f"{row['rows']:,} rows x 2 in memory, 8 clusters, epsilon 1, {row['cells']:,} cells, kernels warm, median of 5; "
        "the plain pass is NumPy computing the same cell counts in the same process.\n\n"
        "| fit, s | plain NumPy pass, s | ratio | memory above the data, MB |\n|---|---|---|---|\n"
        f"| {row['fit_s']:.2f} | {row['numpy_pass_s']:.2f} | {row['ratio']:.2f} | {row['above_data_mb']:.0f} |\n"
    )


if __name__ == "__main__":
    print(json.dumps(in_this_process(int(sys.argv[1]))))
