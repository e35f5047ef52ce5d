"""Tables 2 and 3 of the DPM paper by the protocol of its authors' evaluation program (UzL-PrivSec/clustering-evaluation)."""

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances_argmin

from benchmarks.baselines import kmeans, peer_centers
from benchmarks.centre_data import DATA_SETS, data_names, markdown
from benchmarks.diffprivlib_peer import prepare
from benchmarks.kmeans_accuracy import BASE, PAPER_NAMES, PAPER_SCORES, PEER, spread, summarise
from benchmarks.papers import inertia_ratios, published
from sfumato import DPM, cluster, metrics, recommend
from sfumato.datasets import load

SEEDS, PEER_SEEDS, QUICK_ROWS = 10, 2, 2_000
SAMPLE = 10_000  # rows of a silhouette
GOOD_RUNS = 20  # the best of so many runs of k-means by silhouette are what centres are compared with
BLOB_SEED, LETTERS_SEED, LETTERS = 42, 42, 720
EMBEDDING_BOUNDS = (0.0, 13.0)
OUR_DPM = "our DPM"


class Rows(NamedTuple):
    """Rows as the authors prepare them, their classes and bounds."""

    X: np.ndarray
    classes: np.ndarray | None
    bounds: tuple[float, float]


def rows_of(name: str) -> Rows:
    data = DATA_SETS[name]
    if data.n_blob_features:  # one table for all runs, and not clipped
        X, classes = make_blobs(
            100_000,
            data.n_blob_features,
            centers=data.n_clusters,
            center_box=data.bounds,
            random_state=BLOB_SEED,
        )
        return Rows(X, classes, data.bounds)
    X, classes = load(name)
    if name == "letter":
        chosen = resampled(classes, np.random.default_rng(LETTERS_SEED))
        return Rows(X[chosen], classes[chosen], data.bounds)
    if name.endswith("_embs"):
        return Rows(np.clip(X, *EMBEDDING_BOUNDS), classes, EMBEDDING_BOUNDS)
    return Rows(X, classes, data.bounds)


def resampled(classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers of as many rows of each class, drawn with replacement."""
    members = [np.flatnonzero(classes == each) for each in np.unique(classes)]
    return np.concatenate([each[rng.integers(len(each), size=LETTERS)] for each in members])


def measure(*, quick: bool) -> dict[str, Any]:
    prepare()
    start, runs, shapes = time.perf_counter(), [], {}
    for name in [*data_names(), *data_names(with_classes=False)]:
        rows = rows_of(name)
        if quick:
            chosen = np.random.default_rng(0).permutation(len(rows.X))[:QUICK_ROWS]
            rows = rows._replace(
                X=rows.X[chosen], classes=rows.classes[chosen] if rows.classes is not None else None
            )
        runs += runs_on(name, rows, quick=quick)
        shapes[name] = list(rows.X.shape)
        print(f"{time.perf_counter() - start:.0f} s {name}", flush=True)
    return {"shapes": shapes, "rows": summarise(runs), "minutes": (time.perf_counter() - start) / 60}


def runs_on(name: str, rows: Rows, *, quick: bool) -> list[dict[str, Any]]:
    k, n_seeds = DATA_SETS[name].n_clusters, 1 if quick else SEEDS
    (n, d), delta = rows.X.shape, float(f"{len(rows.X) ** -1.5:.3g}")
    bases = [kmeans(rows.X, k, 1, seed) for seed in range(n_seeds)]
    inertia = float(np.mean([each for each, _ in bases]))
    n_runs = 2 if quick else GOOD_RUNS
    good = metrics.reference_kmeans(rows.X, k, n_best=n_runs, n_runs=n_runs, sample_size=2_500)
    found = recommend(n, d, k, 1.0, delta)

    def fitted(model: cluster.PrivateClusterer) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(rows.X).cluster_centers_

    centers: dict[str, Callable[[int], np.ndarray]] = {
        BASE: lambda seed: bases[seed][1],
        found.method.__name__: lambda seed: fitted(found.make(bounds=rows.bounds, random_state=seed)),
        OUR_DPM: lambda seed: fitted(DPM(epsilon=1.0, delta=delta, bounds=rows.bounds, random_state=seed)),
        PEER: lambda seed: peer_centers(rows.X, k, epsilon=1.0, bounds=rows.bounds, seed=seed),
    }
    return [
        {"data": name, "method": method, "variant": "", "seed": seed}
        | scores(rows, make(seed), inertia, good)
        for method, make in centers.items()
        for seed in range(min(n_seeds, PEER_SEEDS) if method == PEER else n_seeds)
    ]


def scores(rows: Rows, centers: np.ndarray, inertia: float, good: list[np.ndarray]) -> dict[str, float]:
    """As the authors compute them. The distance is a mean over centres, divided by range times sqrt(columns)."""
    labels = pairwise_distances_argmin(rows.X, centers)
    diagonal = (rows.bounds[1] - rows.bounds[0]) * np.sqrt(rows.X.shape[1])
    found = {
        "ratio": metrics.inertia(rows.X, centers) / inertia,
        "silhouette": metrics.silhouette(rows.X, labels, sample_size=SAMPLE),
        "distance": metrics.kmeans_distance(centers, good) / (len(centers) * diagonal),
        "clusters": len(centers),
    }
    if rows.classes is not None:
        found["accuracy"] = metrics.clustering_accuracy(rows.classes, labels)
    return found


def render(measured: dict[str, Any]) -> str:
    cells = {(row["data"], row["method"]): row for row in measured["rows"]}
    seeds = max(row["seeds"] for row in measured["rows"])
    lines = [
        "## The DPM paper by its authors' protocol",
        "",
        "As their evaluation program has it (github.com/UzL-PrivSec/clustering-evaluation): epsilon 1, delta 1/(n sqrt n); one table of each Synth for all "
        f"runs; UCI Letters drawn anew with {LETTERS} rows of each class; bounds {EMBEDDING_BOUNDS[0]:g} to {EMBEDDING_BOUNDS[1]:g} for the embeddings; "
        f"k-means with one start, of which all runs count; silhouette on {SAMPLE:,} rows; the distance is a mean over the private centres, divided by range "
        f"times sqrt(columns), from {GOOD_RUNS} runs of k-means (theirs: the 20 best by silhouette). Mean ± standard deviation over {seeds} "
        "seeds (the paper: 20 runs), which draw only noise and starts. Inertia is over the mean of non-private k-means; the paper's is its printed inertia "
        "over its printed non-private inertia.",
        "",
        "The authors' embeddings are part of their artifact, which is not at hand here: ours, of a network of the same size, stand in for them, "
        "with negative values set to 0. So compare the distance to non-private k-means, not the values. PrivateKMeans is what `recommend` names; DPM "
        "is not told the number of clusters.",
        "",
    ]
    for name, (n, d) in measured["shapes"].items():
        lines += [f"### {DATA_SETS[name].title}: {n:,} rows x {d}, {DATA_SETS[name].n_clusters} clusters", ""]
        ours = [row_line(method, row) for (data, method), row in cells.items() if data == name]
        head = ["method", "inertia ratio", "silhouette", "accuracy", "distance", "clusters"]
        lines += [*markdown(head, [*ours, *paper_lines(name)]), ""]
    return "\n".join([*lines, f"Measured in {measured['minutes']:.0f} minutes.", ""])


def row_line(method: str, row: dict[str, Any]) -> list[str]:
    shares = ["{:.3f} ± {:.3f}".format(*row[score]) if score in row else "" for score in OUR_SCORES]
    return [method, spread(row["ratio"]), *shares, f"{row['clusters'][0]:.3g}"]


OUR_SCORES = ("silhouette", "accuracy", "distance")


def paper_lines(name: str) -> list[list[str]]:
    paper = published("dpm")
    return [
        [
            f"paper: {PAPER_NAMES[column]}",
            spread([ratio, paper[name]["inertia"][i][1] * ratio / paper[name]["inertia"][i][0]]),
            *(
                "{:.2f} ± {:.2f}".format(*paper[name][score][i]) if score in paper[name] else ""
                for score in PAPER_SCORES
            ),
            "",
        ]
        for i, (column, ratio) in enumerate(inertia_ratios(paper, name).items())
    ]
