"""The protocol of the page of Google's clustering: four tables, 2 to 64 clusters, epsilon 1, delta 1e-6."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.centre_data import markdown
from benchmarks.diffprivlib_peer import prepare
from benchmarks.neutral import N_STARTS, Row, Table, inertia_of_kmeans, row_of, rows_of, shown, shown_peer
from benchmarks.papers import published
from sfumato import Ball

KS, EPSILON, DELTA = (2, 4, 8, 16, 32, 64), 1.0, 1e-6
SEEDS, PEER_SEEDS, QUICK_ROWS, QUICK_KS = 10, 2, 5_000, (2, 16)
CENTRED = {"letter": "UCI Letters", "gas_turbine": "UCI Gas"}  # as the page does it
EMBEDDINGS = "MNIST embeddings"
N_DRAWN, N_CENTERS, N_COLUMNS, RADIUS, DEVIATION = 100_000, 64, 100, 0.875, 0.0125


def drawn(n_rows: int) -> Table:
    """Equal Gaussians around centres that are uniform in a ball; rows outside the unit ball are put on its rim."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(N_CENTERS, N_COLUMNS))
    lengths = RADIUS * rng.uniform(size=(N_CENTERS, 1)) ** (1 / N_COLUMNS)
    centers = directions / np.linalg.norm(directions, axis=1, keepdims=True) * lengths
    X = centers[rng.integers(N_CENTERS, size=n_rows)] + rng.normal(0, DEVIATION, (n_rows, N_COLUMNS))
    return Table("Synthetic", X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), Ball(1.0), centers)


def tables(*, quick: bool) -> Iterator[Table]:
    n_rows = QUICK_ROWS if quick else None
    for name, title in CENTRED.items():
        X = rows_of(name, n_rows)
        yield in_ball(title, X - X.mean(axis=0))
    yield in_ball(EMBEDDINGS, rows_of("mnist_embs", n_rows))
    yield drawn(n_rows or N_DRAWN)


def in_ball(title: str, X: np.ndarray) -> Table:
    return Table(title, X, Ball(float(np.linalg.norm(X, axis=1).max())))


def measure(*, quick: bool) -> dict[str, Any]:
    prepare()
    start = time.perf_counter()
    n_seeds, n_peer_seeds, n_starts = (1, 1, 1) if quick else (SEEDS, PEER_SEEDS, N_STARTS)
    rows = [
        row_of(
            table,
            k,
            EPSILON,
            DELTA,
            inertia_of_kmeans(table, k, n_starts),
            n_seeds=n_seeds,
            n_peer_seeds=n_peer_seeds,
        )
        for table in tables(quick=quick)
        for k in (QUICK_KS if quick else KS)
    ]
    return {"rows": rows, "minutes": (time.perf_counter() - start) / 60}


def google_at(row: Row) -> float | None:
    """What Google's page plots for a row, or nothing."""
    curve = published("google_page")["ratio"].get(row["data"])
    return curve[KS.index(row["k"])] if curve else None


def render(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    lines = [
        [*shown(row), "" if google_at(row) is None else f"{google_at(row):g}", shown_peer(row)]
        for row in rows
    ]
    return "\n".join(
        [
            "## The page of Google's clustering",
            "",
            "The protocol of `learning/clustering` in google/differential-privacy: the cost of k-means over that of scikit-learn "
            f"(here the best of {N_STARTS} starts), epsilon {EPSILON:g}, delta {DELTA:g}, bounds the ball around the origin that holds the "
            "rows, which is computed without privacy. UCI Letters and UCI Gas are centred without privacy, as there. Ours is what "
            f"`recommend` names, with default parameters: mean ± standard deviation over {rows[0]['seeds']} seeds, which draw the noise; "
            "seconds are those of a fit.",
            "",
            "Google's figures are read off the plots of the page (means of 20 runs); those of Synthetic and the embeddings are not at hand. "
            "Its program is in no package index, so it is not run here. Its embeddings of MNIST are not published either: "
            f"ours stand in for them. Synthetic is drawn by the page's recipe: {N_CENTERS} equal Gaussians of deviation {DEVIATION:g} in "
            f"{N_COLUMNS} columns, centres uniform in the ball of radius {RADIUS:g}; with {N_CENTERS} clusters k-means starts from the true centres. "
            f"diffprivlib 0.6.6 has pure epsilon {EPSILON:g}, the least box that holds the rows, and {rows[0]['peer_seeds']} seeds.",
            "",
            *markdown(
                [
                    "table",
                    "k",
                    "**ours**",
                    "method",
                    "fit, s",
                    "Google's page",
                    "diffprivlib",
                ],
                lines,
            ),
            "",
            f"Measured in {measured['minutes']:.0f} minutes.",
            "",
        ]
    )
