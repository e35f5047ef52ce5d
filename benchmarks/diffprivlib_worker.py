"""k-means of diffprivlib, run by the Python of its own environment: python THIS tables.npz out.json."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import KMeans

warnings.simplefilter("ignore")


def main(tables_path: str, out_path: str) -> None:
    tables = np.load(tables_path)
    epsilons = tables["epsilons"]
    costs = {}
    for name in tables.files:
        if name == "epsilons":
            continue
        k, _, d, seed = (int(part) for part in name.split("-"))
        X, bounds = tables[name], (np.full(d, -1.0), np.full(d, 1.0))
        for epsilon in epsilons:
            centers = KMeans(k, epsilon=epsilon, bounds=bounds, random_state=seed).fit(X).cluster_centers_
            squares = ((X[:, None, :] - centers[None]) ** 2).sum(axis=2)
            costs[f"{name}-{epsilon:g}"] = float(squares.min(axis=1).sum())
    Path(out_path).write_text(json.dumps(costs))


if __name__ == "__main__":
    main(*sys.argv[1:])
