"""Run by the Python of the peers' own environment: rows from a file, and prototypes or synthetic rows to another."""

import json
import sys
import warnings

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
from kmodes.kprototypes import KPrototypes

SYNTHESISERS = {"MST": MSTGM, "AIM": AIMGM}

warnings.simplefilter("ignore")


def main() -> None:
    given, made, job = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    with np.load(given) as rows:
        numbers, codes, n_levels = rows["numbers"], rows["codes"], rows["n_levels"]
    make = prototypes if job.pop("task") == "kmodes" else synthetic
    numbers, codes = make(numbers, codes, n_levels, **job)
    np.savez(made, numbers=numbers, codes=codes)


def prototypes(numbers, codes, n_levels, *, k, gamma, n_starts, seed):
    """Prototypes of KPrototypes, the best of several starts."""
    d = numbers.shape[1]
    X = np.concatenate([numbers.astype(object), codes.astype(object)], axis=1)
    model = KPrototypes(k, gamma=gamma, init="Huang", n_init=n_starts, random_state=seed)
    centers = model.fit(X, categorical=list(range(d, X.shape[1]))).cluster_centroids_
    return centers[:, :d].astype(float), centers[:, d:].astype(float).astype(int)


def synthetic(numbers, codes, n_levels, *, method, epsilon, delta, n_bins, seed, **settings):
    """As many synthetic rows, from numbers in equal bins between the public bounds."""
    d = numbers.shape[1]
    binned = np.minimum((numbers * n_bins).astype(int), n_bins - 1)
    table = pd.DataFrame(np.concatenate([binned, codes], axis=1)).add_prefix("column ")
    sizes = [n_bins] * d + [int(n) for n in n_levels]
    model = SYNTHESISERS[method](epsilon=epsilon, delta=delta, n_jobs=1, **settings)
    np.random.seed(seed)  # noqa: NPY002, some of their noise is drawn from NumPy's global generator
    model.set_random_state(np.random.RandomState(seed))
    model.set_domain(dict(zip(table, sizes, strict=True)))
    model.fit(table)
    drawn = model.generate(n_records=len(table))[list(table)].to_numpy().astype(int)
    return (drawn[:, :d] + 0.5) / n_bins, drawn[:, d:]


if __name__ == "__main__":
    main()
