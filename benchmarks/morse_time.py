"""Time of merge trees against the fit of the mixture that they merge, and of their labels against its own."""

import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks.centre_data import markdown
from benchmarks.clocks import seconds
from sfumato.public.mixtures import merge_tree
from sfumato.public.mixtures.mixture import Mixture

N_ROWS = 20_000
N_LABELS, QUICK_LABELS = 1_000_000, 50_000
REPEATS, QUICK_REPEATS = 5, 1
SEEDS = (0, 1, 2)
# Components and columns of a mixture, and the largest part of scikit-learn's time.
SIZES = {(50, 10): 1.0, (20, 2): 0.1}
MOST_OF_LABELS = 5.0


def measure(*, quick: bool) -> dict[str, Any]:
    """Time all in one process of its own."""
    command = [sys.executable, "-m", "benchmarks.morse_time", "quick" if quick else "full"]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    print(found, flush=True)
    return found


def blobs(d: int, n_components: int, seed: int) -> np.ndarray:
    return make_blobs(N_ROWS, d, centers=n_components, random_state=seed)[0]


def moons(d: int, n_components: int, seed: int) -> np.ndarray:
    """Two moons; what columns there are beyond two hold noise."""
    X = make_moons(N_ROWS, noise=0.05, random_state=seed)[0]
    return np.hstack([X, np.random.default_rng(seed).normal(scale=0.1, size=(N_ROWS, d - 2))])


def slanted(d: int, n_components: int, seed: int) -> np.ndarray:
    """A slanted box, filled evenly."""
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(N_ROWS, d)) @ rng.normal(size=(d, d))


KINDS = {"blobs": blobs, "moons": moons, "slanted box": slanted}


def times(repeats: int, n_labels: int) -> dict[str, Any]:
    trees, labels, quick = [], [], repeats == QUICK_REPEATS
    for n_components, d in list(SIZES)[-1:] if quick else SIZES:
        for kind, rows in KINDS.items():
            for seed in SEEDS[:1] if quick else SEEDS:
                X = rows(d, n_components, seed)
                base = GaussianMixture(n_components, random_state=seed).fit(X)
                case = {"data": kind, "seed": seed, "components": n_components, "columns": d}
                trees.append(case | tree_times(base, X, repeats))
                if d == 2 and seed == 0:
                    labels += [case | row for row in label_times(base, repeats, n_labels)]
    return {"repeats": repeats, "labels": n_labels, "tree_rows": trees, "label_rows": labels}


def mixture_of(base: GaussianMixture) -> Mixture:
    return Mixture(base.weights_, base.means_, base.covariances_)


def tree_times(base: GaussianMixture, X: np.ndarray, repeats: int) -> dict[str, Any]:
    tree = merge_tree(mixture_of(base))
    fit_s, tree_s = in_turns([lambda: base.fit(X), lambda: merge_tree(mixture_of(base))], repeats)
    found = {"peaks": tree.n_peaks, "steps": int(base.n_iter_)}
    return found | {"fit_s": fit_s, "tree_s": tree_s, "ratio": tree_s / fit_s}


def label_times(base: GaussianMixture, repeats: int, n_labels: int) -> list[dict[str, Any]]:
    tree = merge_tree(mixture_of(base))
    points = tree.mixture.sample(n_labels, 0)
    wanted = {"default": tree.n_clusters, "all peaks": tree.n_peaks}
    base_s, *ours = in_turns(
        [lambda: base.predict(points), *(lambda k=k: tree.predict(points, k) for k in wanted.values())],
        repeats,
    )
    return [
        {"cut": cut, "clusters": k, "base_s": base_s, "labels_s": taken, "ratio": taken / base_s}
        for (cut, k), taken in zip(wanted.items(), ours, strict=True)
    ]


def in_turns(calls: list[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each; taking turns, so that other load on the machine falls on all."""
    taken = [[seconds(call) for call in calls] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def render(found: dict[str, Any]) -> str:
    tree_head = [
        "components x columns",
        "data",
        "seed",
        "EM steps",
        "peaks",
        "fit, s",
        "tree, s",
        "ratio",
        "limit",
    ]
    label_head = ["data", "clusters", "mixture, s", "tree, s", "ratio", "limit"]
    return "\n".join(
        [
            "## Merge trees: time",
            "",
            f"`merge_tree` of the mixture that scikit-learn's `GaussianMixture` fits to {N_ROWS:,} rows, against that "
            f"fit; kernels warm, one thread for all, median of {found['repeats']} in one process, taking turns.",
            "",
            *markdown(tree_head, [tree_line(row) for row in found["tree_rows"]]),
            "",
            f"Labels of {found['labels']:,} new points by the tree of 20 components in 2 columns (first seed), against "
            "`GaussianMixture.predict`.",
            "",
            *markdown(label_head, [label_line(row) for row in found["label_rows"]]),
            "",
        ]
    )


def tree_line(row: dict[str, Any]) -> list[str]:
    size = (row["components"], row["columns"])
    first = [f"{size[0]} x {size[1]}", row["data"], str(row["seed"]), str(row["steps"]), str(row["peaks"])]
    return [*first, f"{row['fit_s']:.3g}", f"{row['tree_s']:.3g}", *verdict(row["ratio"], SIZES[size])]


def label_line(row: dict[str, Any]) -> list[str]:
    first = [
        row["data"],
        f"{row['clusters']} ({row['cut']})",
        f"{row['base_s']:.3g}",
        f"{row['labels_s']:.3g}",
    ]
    return [*first, *verdict(row["ratio"], MOST_OF_LABELS)]


def verdict(ratio: float, limit: float) -> list[str]:
    return [f"**{ratio:.3f}**", f"≤ {limit:g}: {'met' if ratio <= limit else 'missed'}"]


def main(mode: str) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that stops at 100 steps is a fit all the same
    with threadpool_limits(1):
        quick = mode == "quick"
        found = times(QUICK_REPEATS if quick else REPEATS, QUICK_LABELS if quick else N_LABELS)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
