"""The suite of FastLloyd: public tables scaled to [-1, 1], and generated grids of k and columns, epsilon 0.1 to 1."""

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.centre_data import markdown
from benchmarks.diffprivlib_peer import prepare
from benchmarks.kmeans_accuracy import PEER, spread
from benchmarks.neutral import N_STARTS, Row, Table, inertia_of_kmeans, min_max, row_of, rows_of, shown_peer
from benchmarks.papers import published

EPSILONS, GRID_EPSILONS = (0.1, 0.5, 1.0), (0.1, 1.0)
GRID_KS, GRID_COLUMNS, GRID_ROWS = (2, 8, 32), (2, 8, 32, 128, 512), 10_000
SEPARATION, N_OUTLIERS, DRAWS = 6.0, 50, 100
SEEDS, GRID_SEEDS, PEER_SEEDS, QUICK_ROWS = 5, 3, 2, 2_000
BOUNDS = (-1.0, 1.0)


class Public(NamedTuple):
    """A table of the suite under our name, its number of clusters, starts of non-private k-means, and seeds."""

    name: str
    title: str
    k: int
    n_starts: int = N_STARTS
    n_seeds: int = SEEDS


TABLES = (
    Public("s_set1", "S1", 15),
    Public("birch_rg1", "Birch (rg1)", 100, n_seeds=3),
    Public("adult", "Adult", 3),
    Public("letter", "Letter", 26),
    Public("gas_turbine", "Gas", 5),
    Public("shuttle", "Shuttle", 7),
    Public("mnist", "MNIST", 10, 1, 3),
)


def delta_of(n: int) -> float:
    return float(f"{1 / (n * math.log(n)):.3g}")


def generated(k: int, d: int, n_rows: int) -> Table:
    """Gaussians of sizes 1 : 2 : ... : k around separated centres, and outliers in the box around them."""
    rng = np.random.default_rng([k, d])
    draws = [rng.uniform(size=(k, d)) for _ in range(DRAWS)]
    closest = [closest_pair(centers) for centers in draws]
    best = int(np.argmax(closest))
    centers = draws[best] * SEPARATION / closest[best]
    shares = np.arange(1, k + 1) / (k * (k + 1) / 2)
    X = centers[rng.choice(k, n_rows - N_OUTLIERS, p=shares)]
    X = X + rng.normal(size=X.shape)
    outliers = rng.uniform(X.min(axis=0), X.max(axis=0), (N_OUTLIERS, d))
    X = np.concatenate([X, outliers])
    low, high = X.min(axis=0), X.max(axis=0)
    return Table(f"{d} columns", min_max(X), BOUNDS, 2 * (centers - low) / (high - low) - 1)


def closest_pair(centers: np.ndarray) -> float:
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    return float(distances[np.triu_indices(len(centers), 1)].min())


def measure(*, quick: bool) -> dict[str, Any]:
    prepare()
    start = time.perf_counter()
    return {
        "tables": list(table_rows(quick=quick)),
        "grid": list(grid_rows(quick=quick)),
        "minutes": (time.perf_counter() - start) / 60,
    }


def table_rows(*, quick: bool) -> Iterator[Row]:
    for public in TABLES:
        X = min_max(rows_of(public.name, QUICK_ROWS if quick else None))
        table = Table(public.title, X, BOUNDS)
        inertia = inertia_of_kmeans(table, public.k, 1 if quick else public.n_starts)
        for epsilon in EPSILONS[-1:] if quick else EPSILONS:
            n_seeds, n_peer_seeds = (
                (1, 1) if quick else (public.n_seeds, PEER_SEEDS * (epsilon in GRID_EPSILONS))
            )
            delta = delta_of(len(X))
            yield row_of(table, public.k, epsilon, delta, inertia, n_seeds=n_seeds, n_peer_seeds=n_peer_seeds)


def grid_rows(*, quick: bool) -> Iterator[Row]:
    for d in GRID_COLUMNS[:3:2] if quick else GRID_COLUMNS:
        for k in GRID_KS[:2] if quick else GRID_KS:
            table = generated(k, d, QUICK_ROWS if quick else GRID_ROWS)
            inertia = inertia_of_kmeans(table, k)
            for epsilon in GRID_EPSILONS[-1:] if quick else GRID_EPSILONS:
                n_seeds, n_peer_seeds = (1, 1) if quick else (GRID_SEEDS, PEER_SEEDS)
                delta = delta_of(len(table.X))
                yield row_of(table, k, epsilon, delta, inertia, n_seeds=n_seeds, n_peer_seeds=n_peer_seeds)


def fast_lloyd_at(row: Row) -> float | None:
    """What FastLloyd publishes for a row, or nothing."""
    printed: dict[str, float] = published("fast_lloyd")["ratio"].get(row["data"], {})
    return printed.get(f"{row['epsilon']:g}")


def render(measured: dict[str, Any]) -> str:
    return "\n".join(
        [
            "## The suite of FastLloyd",
            "",
            "The protocol of FastLloyd (arXiv:2405.02437) and of its program: every column from -1 to 1 by its least and largest value "
            "(not private, as there), delta 1/(n ln n), cost over non-private k-means. Ours is what `recommend` names, with default "
            "parameters: mean ± standard deviation over seeds, which draw the noise. diffprivlib 0.6.6 has pure epsilon.",
            "",
            *table_section(measured["tables"]),
            *grid_section(measured["grid"]),
            f"Measured in {measured['minutes']:.0f} minutes.",
            "",
        ]
    )


def table_section(rows: list[Row]) -> list[str]:
    starts = ", ".join(f"{public.title} {public.n_starts}" for public in TABLES if public.n_starts < N_STARTS)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["data"], []).append(row)
    lines = [
        [
            f"{title}, {group[0]['rows']:,} x {group[0]['columns']}",
            str(group[0]["k"]),
            *(f"**{spread(row['ratio'])}**{note(row)}" for row in group),
            both(group, lambda row: "" if fast_lloyd_at(row) is None else f"{fast_lloyd_at(row):g}"),
            both(group, shown_peer),
        ]
        for title, group in groups.items()
    ]
    head = [f"epsilon {row['epsilon']:g}" for row in next(iter(groups.values()))]
    return [
        "### Public tables",
        "",
        f"Ours over {rows[0]['seeds']} seeds (Birch and MNIST {min(row['seeds'] for row in rows)}), by PrivateKMeans unless another method is named; k-means is the best of {N_STARTS} starts "
        f"({starts}). FastLloyd's figures and diffprivlib's are at epsilon 0.1 and 1. The number of clusters is that of "
        "FastLloyd's program for S1, Birch2, Adult and MNIST; for Letter and Shuttle the number of classes, for Gas, which has none, 5: "
        "what FastLloyd took there we do not know. Birch2 is replaced by a table of the same family (rg1, also 100,000 rows); MNIST has all "
        "784 pixels; Adult its six numeric columns; Gas is the table of gas turbines. FastLloyd's figures are quoted: its program is not run here. Its "
        "other tables (Iris, House, Lsun, Wine, Yeast, Breast, G2) are not at hand.",
        "",
        *markdown(["table", "k", *head, "FastLloyd", PEER], lines),
        "",
    ]


def note(row: Row) -> str:
    return "" if row["method"] == "PrivateKMeans" else f" {row['method']}"


def both(group: list[Row], text: Any) -> str:
    """The smallest and the largest epsilon, as far as there is a figure."""
    return " / ".join(filter(None, (text(group[0]), text(group[-1]))))


def grid_section(rows: list[Row]) -> list[str]:
    lines = []
    for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
        for data in dict.fromkeys(row["data"] for row in rows):
            group = [row for row in rows if (row["data"], row["epsilon"]) == (data, epsilon)]
            ours = [f"**{spread(row['ratio'])}**{note(row)} ({spread(row[PEER])})" for row in group]
            lines.append([f"{data}, epsilon {epsilon:g}", *ours])
    ks = list(dict.fromkeys(row["k"] for row in rows))
    return [
        "### Generated: clusters and columns",
        "",
        f"In parentheses diffprivlib. {rows[0]['rows']:,} rows: Gaussians of deviation 1 and of sizes 1 : 2 : ... : k; centres uniform in a cube, of "
        f"{DRAWS} draws the one whose closest pair is farthest apart, scaled so that this pair lies {SEPARATION:g} deviations apart (a separation index "
        f"of 0.21; FastLloyd draws 0.16 to 0.26 with genRandomClust); {N_OUTLIERS} rows uniform in the box of the others. k-means starts from the true "
        f"centres. {rows[0]['seeds']} seeds. FastLloyd draws its grids as maps of colours, so no figure is quoted.",
        "",
        *markdown(["", *(f"{k} clusters" for k in ks)], lines),
        "",
    ]
