"""What the protocols of other people share: the method that `recommend` names and diffprivlib, over non-private k-means."""

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.baselines import kmeans_inertia, peer_centers
from benchmarks.kmeans_accuracy import PEER, spread
from sfumato import Ball, metrics, recommend
from sfumato.datasets import load

N_STARTS = 10
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows, their bounds as the protocol has them, and the true centres of rows that are drawn."""

    title: str
    X: np.ndarray
    bounds: Ball | tuple[float, float]
    centers: np.ndarray | None = None

    @property
    def box(self) -> tuple[float, float]:
        """The bounds for diffprivlib, which takes no ball: the least box that holds the rows."""
        if isinstance(self.bounds, tuple):
            return self.bounds
        most = float(np.abs(self.X).max())
        return (-most, most)


def rows_of(name: str, n_rows: int | None) -> np.ndarray:
    """Rows of the data folder, or so many of them at random."""
    X = np.asarray(load(name)[0], dtype=np.float64)
    return X[np.random.default_rng(0).permutation(len(X))[:n_rows]] if n_rows else X


def min_max(X: np.ndarray) -> np.ndarray:
    """Each column from -1 to 1, as the protocols do it: by its least and largest value, which is not private."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return np.where(high > low, 2 * (X - low) / width - 1, 0.0)


def inertia_of_kmeans(table: Table, k: int, n_starts: int = N_STARTS) -> float:
    """The best of several starts; from the true centres, if they are known and as many."""
    if table.centers is not None and k == len(table.centers):
        return float(KMeans(k, init=table.centers, n_init=1).fit(table.X).inertia_)
    return kmeans_inertia(table.X, k, n_starts)


def row_of(
    table: Table,
    k: int,
    epsilon: float,
    delta: float,
    inertia: float,
    *,
    n_seeds: int,
    n_peer_seeds: int,
) -> Row:
    """Ratios of the recommended method and of diffprivlib to non-private k-means: mean and deviation over seeds."""
    n, d = table.X.shape
    found = recommend(n, d, k, epsilon, delta)

    def ours(seed: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return found.make(bounds=table.bounds, random_state=seed).fit(table.X).cluster_centers_

    def peer(seed: int) -> np.ndarray:
        return peer_centers(table.X, k, epsilon=epsilon, bounds=table.box, seed=seed)

    def ratios(centers: Iterable[np.ndarray]) -> list[float]:
        found = [metrics.inertia(table.X, each) / inertia for each in centers]
        return [float(np.mean(found)), float(np.std(found, ddof=len(found) > 1))]

    start = time.perf_counter()
    row: Row = {"data": table.title, "rows": n, "columns": d, "k": k, "epsilon": epsilon, "delta": delta}
    row |= {"method": found.method.__name__, "seeds": n_seeds, "ratio": ratios(map(ours, range(n_seeds)))}
    row["seconds"] = (time.perf_counter() - start) / n_seeds
    if n_peer_seeds:
        row |= {"peer_seeds": n_peer_seeds, PEER: ratios(map(peer, range(n_peer_seeds)))}
    print(
        f"{table.title} k {k} epsilon {epsilon:g}: {row['method']} {spread(row['ratio'])} in {row['seconds']:.1f} s, "
        f"{PEER} {shown_peer(row)}",
        flush=True,
    )
    return row


def shown(row: Row) -> list[str]:
    """Cells of a line: the table, the number of clusters, and what ours did."""
    table = f"{row['data']}, {row['rows']:,} x {row['columns']}"
    return [table, str(row["k"]), f"**{spread(row['ratio'])}**", row["method"], f"{row['seconds']:.1f}"]


def shown_peer(row: Row) -> str:
    return spread(row[PEER]) if PEER in row else ""
