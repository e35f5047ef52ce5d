"""A map of hot spots that protects drivers: the cab is the unit, over caps on its rows and budgets."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import adjusted_rand_score

from benchmarks.centre_data import in_processes, markdown
from benchmarks.density_accuracy import summary
from benchmarks.density_data import CABS_BOX, fit
from benchmarks.density_time import SFO, save
from benchmarks.pictures import PICTURES, STYLE
from sfumato import DPDBSCAN, Budget, DensityTree, plot, suggest_max_rows
from sfumato.datasets import load_table
from sfumato.domain import Domain
from sfumato.private.people import cap_rows
from sfumato.public.density.geometry import column_units, widths_of

SEEDS, QUICK_SEEDS = 10, 2
CAPS, QUICK_CAPS = (1, 10, 50, 100, 200, 500, 1000, 2000), (200,)
BUDGETS: dict[str, dict[str, float]] = {
    "epsilon 1": {"epsilon": 1.0},
    "epsilon 2": {"epsilon": 2.0},
    "epsilon 4": {"epsilon": 4.0},
    "epsilon 1, delta 1e-6": {"epsilon": 1.0, "delta": 1e-6},
    "rho 1/2": {"rho": 0.5},
}
PURE = ("epsilon 1", "epsilon 2", "epsilon 4")
NO_NOISE = {"epsilon": 1e6}
# Public: a guess of the fleet, and what a hot spot is. Set before any map was drawn.
N_CABS = 500
TIMES_MEAN = 20  # as dense as the mean of the map
Z = 5.0  # standard deviations of the noise by which such a place stands out
KERNEL = 1 / (2 * math.sqrt(math.pi))  # of the noise is left where DensityTree has smoothed it
FINE_CELL = 100.0  # metres, of the map without noise that all are compared with
N_JUDGED = 200_000  # positions
N_CLUSTERS = 8  # for `suggest_max_rows`
PICTURE_CAP, PICTURE_BUDGET = 200, "epsilon 1"
DBSCAN_CAP = 200

Labels = tuple[np.ndarray, np.ndarray]  # of judged positions, and of places all over the map


@lru_cache(maxsize=1)
def positions() -> tuple[np.ndarray, np.ndarray]:
    """Positions inside the box and their cabs, cab after cab."""
    table = load_table("cabs").select(["lon", "lat", "cab"])
    X = np.round(np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()]).astype(np.float64), 5)
    cabs, (low, high) = table["cab"].to_numpy(), CABS_BOX
    inside = ((low <= X) & (high >= X)).all(axis=1)
    order = np.argsort(cabs[inside], kind="stable")
    return X[inside][order], cabs[inside][order]


def as_table(X: np.ndarray, cabs: np.ndarray | None = None) -> pa.Table:
    columns = {"lon": X[:, 0], "lat": X[:, 1]}
    return pa.table(columns if cabs is None else columns | {"cab": cabs})


@lru_cache(maxsize=1)
def capped(max_rows: int) -> pa.Table:
    """What the cap leaves, once for all budgets and seeds; to cap it again changes nothing.

    The choice for a cab depends on that cab alone, so that one at a time gives what all at once would.
    """
    X, cabs = positions()
    starts = np.flatnonzero(np.append(True, cabs[1:] != cabs[:-1]))
    ends = np.append(starts[1:], len(cabs))
    kept = [cap_rows(pa.array(cabs[a:b]), X[a:b], max_rows) for a, b in zip(starts, ends, strict=True)]
    return as_table(np.concatenate(kept), np.repeat(cabs[starts], [len(rows) for rows in kept]))


def map_area() -> float:
    """Area of the map in square metres."""
    domain = Domain.from_bounds(CABS_BOX, 2)
    return float(widths_of(domain, column_units("geo", domain)).prod())


def cell_for(budget: dict[str, float]) -> float:
    """Least cell, in metres, at which a hot spot stands out of the noise: from public numbers alone.

    A cell of area A_c in a hot spot holds at least TIMES_MEAN * N_CABS * m * A_c / A of the rows that the cap m
    leaves, and the smoothed noise is KERNEL * m times that of a row. The cap cancels.
    """
    _, noise = noise_of(budget)
    return float(round(math.sqrt(Z * KERNEL * noise * map_area() / (TIMES_MEAN * N_CABS))))


def tree_map(table: Any, cell: float, n_rows: float, **parameters: Any) -> DensityTree:
    """Places TIMES_MEAN times as dense as `n_rows` rows would be if they were spread evenly."""
    model = DensityTree(cell, bounds=CABS_BOX, metric="geo", **parameters).fit(table)
    return model.cut(level=TIMES_MEAN * n_rows / model.histogram_.grid.n_cells)


def cab_map(max_rows: int, budget: str, seed: int) -> DensityTree:
    return tree_map(
        capped(max_rows),
        cell_for(BUDGETS[budget]),
        N_CABS * max_rows,
        unit="cab",
        max_rows_per_unit=max_rows,
        random_state=seed,
        **BUDGETS[budget],
    )


@lru_cache(maxsize=1)
def dbscan_setting(budget: str, max_rows: int) -> tuple[float, int]:
    """Least radius at which DBSCAN is sure to find hot spots without its warning, and MinPts.

    Tau is a public number: a fit on nobody shows it.
    """
    nobody = as_table(np.empty((0, 2)), np.empty(0, dtype=np.int32))
    for radius in np.arange(100.0, 5001.0, 50.0):
        model = make_dbscan(radius, 10**9, budget, max_rows, seed=0)
        tau = fit(model, nobody).guarantee_.tau
        if 2 * tau <= TIMES_MEAN * N_CABS * max_rows * math.pi * radius**2 / map_area():
            return float(radius), int(tau)
    raise ValueError(budget)


def make_dbscan(radius: float, min_samples: int, budget: str, max_rows: int, seed: int) -> DPDBSCAN:
    return DPDBSCAN(
        radius,
        min_samples,
        valleys=False,
        metric="geo",
        bounds=CABS_BOX,
        unit="cab",
        max_rows_per_unit=max_rows,
        random_state=seed,
        **BUDGETS[budget],
    )


@lru_cache(maxsize=1)
def judged() -> tuple[pa.Table, pa.Table]:
    """Positions drawn from all, and the middles of fine cells all over the map."""
    X, _ = positions()
    low, high = np.array(CABS_BOX)
    domain = Domain.from_bounds(CABS_BOX, 2)
    sides = np.rint(widths_of(domain, column_units("geo", domain)) / FINE_CELL).astype(int)
    middles = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b, n in zip(low, high, sides, strict=True)]
    places = np.stack(np.meshgrid(*middles), axis=-1).reshape(-1, 2)
    drawn = X[np.random.default_rng(0).permutation(len(X))[:N_JUDGED]]
    return as_table(drawn), as_table(places)


@lru_cache(maxsize=1)
def fine_map() -> DensityTree:
    """Hot spots of all positions without noise that matters."""
    X, _ = positions()
    return tree_map(as_table(X), FINE_CELL, len(X), random_state=0, **NO_NOISE)


def labels_of(model: Any) -> Labels:
    rows, places = judged()
    return model.predict(rows), model.predict(places)


@lru_cache(maxsize=1)
def true_labels() -> Labels:
    return labels_of(fine_map())


def scores(model: Any) -> dict[str, float]:
    (true_rows, true_places), (rows, places) = true_labels(), labels_of(model)
    return {
        "rows": overlap(true_rows, rows),
        "area": overlap(true_places, places),
        "ari": float(adjusted_rand_score(true_rows, rows)),
        "spans": float(model.n_clusters_),
        "km2": float((places >= 0).mean()) * map_area() / 1e6,
        "airport": float(model.predict(as_table(np.array([SFO])))[0] >= 0),
    }


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    """What is in both maps, of what is in either."""
    either = ((one >= 0) | (other >= 0)).sum()
    return float(((one >= 0) & (other >= 0)).sum() / either) if either else 1.0


def maps_under(max_rows: int, n_seeds: int) -> list[tuple[str, dict[str, float]]]:
    return [(b, scores(cab_map(max_rows, b, seed))) for b in BUDGETS for seed in range(n_seeds)]


def maps_beside(n_seeds: int) -> list[tuple[str, str, dict[str, float]]]:
    """Maps without noise, those that protect rows only, and those of DPDBSCAN."""
    X, _ = positions()
    table, n = as_table(X), len(X)
    done = []
    for name in PURE:
        cell = cell_for(BUDGETS[name])
        done.append(("no noise", name, scores(tree_map(table, cell, n, random_state=0, **NO_NOISE))))
        for seed in range(n_seeds):
            private = BUDGETS[name] | {"random_state": seed}
            done.append(("rows", name, scores(tree_map(table, cell, n, **private))))
            done.append(("rows, fine", name, scores(tree_map(table, FINE_CELL, n, **private))))
            model = make_dbscan(*dbscan_setting(name, DBSCAN_CAP), name, DBSCAN_CAP, seed)
            done.append(("DPDBSCAN", name, scores(fit(model, capped(DBSCAN_CAP)))))
    return done


def measure(*, quick: bool) -> dict[str, Any]:
    n_seeds, caps = (QUICK_SEEDS, QUICK_CAPS) if quick else (SEEDS, CAPS)
    jobs: list[tuple[Callable[..., Any], tuple[int, ...]]] = [(maps_beside, (min(n_seeds, 5),))]
    jobs += [(maps_under, (m, n_seeds)) for m in caps]
    results = iter(in_processes(call, jobs))
    beside = defaultdict(list)
    for kind, budget, found in next(results):
        beside[kind, budget].append(found)
    under = defaultdict(list)
    for max_rows, done in zip(caps, results, strict=True):
        print(max_rows, {budget: round(found["rows"], 3) for budget, found in done}, flush=True)
        for budget, found in done:
            under[max_rows, budget].append(found)
    draw()
    _, cabs = positions()
    return {
        "seeds": n_seeds,
        "cabs": len(np.unique(cabs)),
        "positions": len(cabs),
        "true": scores(fine_map()),
        "likeness": likeness(),
        "cells": {budget: cell_for(given) for budget, given in BUDGETS.items()},
        "noise": {budget: noise_of(given) for budget, given in BUDGETS.items()},
        "radii": {budget: dbscan_setting(budget, DBSCAN_CAP)[0] for budget in PURE},
        "beside": [{"kind": k, "budget": b, **summary(runs)} for (k, b), runs in beside.items()],
        "under": [{"cap": m, "budget": b, **summary(runs)} for (m, b), runs in under.items()],
        "suggested": {budget: list(suggested(budget, n_seeds)) for budget in PURE},
    }


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def noise_of(budget: dict[str, float]) -> list[Any]:
    """Mechanism, and standard deviation of the noise of a count under a cap of 1000, in thousands."""
    model = DensityTree(
        FINE_CELL, bounds=CABS_BOX, metric="geo", unit="cab", max_rows_per_unit=1000, **budget
    )
    record = model.plan(2).records()[0]
    return [record.mechanism, record.noise_std / 1000]


def likeness() -> float:
    """Intraclass correlation of the cells in which a cab's positions are, over those cabs that have many.

    If 1, all positions of a cab are in one cell; if 0, cabs differ as independent draws from all would.
    """
    (X, cabs), (low, high) = positions(), np.array(CABS_BOX)
    domain = Domain.from_bounds(CABS_BOX, 2)
    sides = np.rint(widths_of(domain, column_units("geo", domain)) / cell_for(BUDGETS["epsilon 1"])).astype(
        int
    )
    places = np.minimum((X - low) / (high - low) * sides, sides - 1).astype(np.int64)
    _, codes, sizes = np.unique(cabs, return_inverse=True, return_counts=True)
    flat = codes * sides.prod() + np.ravel_multi_index(tuple(places.T), tuple(sides))
    counts = np.bincount(flat, minlength=len(sizes) * sides.prod()).reshape(len(sizes), -1)
    many = sizes >= max(CAPS)
    shares, mean = counts[many] / sizes[many, None], (counts[many] / sizes[many, None]).mean(axis=0)
    chance = (shares * (1 - shares) / sizes[many, None]).mean(axis=0)
    return float((shares.var(axis=0, ddof=1) - chance).sum() / (mean * (1 - mean)).sum())


def suggested(budget: str, n_seeds: int) -> Iterator[int]:
    table = pa.table({"cab": positions()[1]})
    for seed in range(n_seeds):
        asked = Budget(BUDGETS[budget]["epsilon"])
        yield suggest_max_rows(table, "cab", N_CLUSTERS, budget=asked, random_state=seed).max_rows.value


def render(measured: dict[str, Any]) -> str:
    return "\n".join([*cap_section(measured), *beside_section(measured), *suggestion_section(measured)])


def cap_section(measured: dict[str, Any]) -> list[str]:
    cells = {(row["cap"], row["budget"]): row for row in measured["under"]}
    caps = list(dict.fromkeys(cap for cap, _ in cells))
    head = ["rows of a cab, at most", *BUDGETS]
    widths = ["width of cells, metres", *(f"{measured['cells'][budget]:.0f}" for budget in BUDGETS)]
    noise = [
        "noise of a count over the cap",
        *("{1:.2f}, {0}".format(*measured["noise"][b]) for b in BUDGETS),
    ]
    lines = [[f"{cap:,}", *(overlaps(cells[cap, budget]) for budget in BUDGETS)] for cap in caps]
    true = measured["true"]
    return [
        "## People: a map of hot spots that protects drivers",
        "",
        f"{measured['positions']:,} positions of {measured['cabs']} cabs in San Francisco; the unit is the cab. Hot spots are "
        f"places {TIMES_MEAN} times as dense as the mean of the map: `DensityTree(cell, metric='geo', unit='cab', "
        f"max_rows_per_unit=m)`, cut at that level for a fleet guessed at {N_CABS}. The cell is the least at which such a "
        f"place stands {Z:g} standard deviations above the smoothed noise; neither looks at the data. Each map is compared with "
        f"the hot spots of all positions without noise in cells of {FINE_CELL:.0f} m ({true['spans']:.0f} spans, "
        f"{true['km2']:.1f} km²): rows in both maps over rows in either / the same for area, mean ± standard deviation over "
        f"{measured['seeds']} seeds, which draw the noise.",
        "",
        *markdown(head, [widths, noise, *lines]),
        "",
        "![Hot spots, with and without privacy of drivers](docs/pictures/people.png)",
        "",
    ]


def beside_section(measured: dict[str, Any]) -> list[str]:
    cells = {(row["kind"], row["budget"]): row for row in measured["beside"]}
    radii = ", ".join(f"{measured['radii'][budget]:.0f}" for budget in PURE)
    titles = {
        "no noise": "all positions, same cells, no noise",
        "rows": "row as unit, same cells",
        "rows, fine": f"row as unit, cells of {FINE_CELL:.0f} m",
        "DPDBSCAN": f"`DPDBSCAN`, cab as unit, m = {DBSCAN_CAP}, radius {radii} m",
    }
    under = [row for row in measured["under"] if row["cap"] == PICTURE_CAP]
    cells |= {("cab", row["budget"]): row for row in under}
    titles = ({"cab": f"cab as unit, m = {PICTURE_CAP}"} if under else {}) | titles
    lines = [[title, *(everything(cells[kind, b]) for b in PURE)] for kind, title in titles.items()]
    return [
        "### Beside maps without noise, and maps that protect rows only",
        "",
        "Overlap of rows / of area; adjusted Rand index of the labels of rows, spans, area in km², how often "
        "the airport is found. `DPDBSCAN` has the least "
        "radius (in steps of 50 m) at which its guarantee says that it finds such hot spots, MinPts being tau.",
        "",
        *markdown(["map", *PURE], lines),
        "",
    ]


def suggestion_section(measured: dict[str, Any]) -> list[str]:
    found = "; ".join(
        f"{np.mean(caps):,.0f} ± {np.std(caps, ddof=1):,.0f} for {budget}"
        for budget, caps in measured["suggested"].items()
    )
    return [
        f"`suggest_max_rows` with `n_clusters={N_CLUSTERS}` and epsilon 1 for its histogram suggests {found} (mean ± standard "
        "deviation over seeds). It takes the rows of a cab for independent draws, which they are not: the intraclass correlation "
        f"of the cells of {measured['cells']['epsilon 1']:.0f} m is {measured['likeness']:.4f}, so that however many rows of a "
        f"cab tell no more about such cells than {1 / measured['likeness']:.0f} independent ones.",
        "",
    ]


def overlaps(row: dict[str, Any]) -> str:
    return " / ".join(f"{mean:.2f} ± {std:.2f}" for mean, std in (row["rows"], row["area"]))


def everything(row: dict[str, Any]) -> str:
    ari, spans, area, airport = (row[name][0] for name in ("ari", "spans", "km2", "airport"))
    return f"{overlaps(row)}; {ari:.2f}, {spans:.1f}, {area:.0f}, {airport:.0%}"


def draw(path: Path = PICTURES / "people.png") -> None:
    """Draw the map without noise beside one that protects drivers, of a seeded run on these public data."""
    import matplotlib as mpl

    private = cab_map(PICTURE_CAP, PICTURE_BUDGET, seed=0)
    titles = {
        f"all positions, no noise, cells of {FINE_CELL:.0f} m": fine_map(),
        f"drivers protected: {PICTURE_BUDGET},\nat most {PICTURE_CAP} positions of each, cells of "
        f"{cell_for(BUDGETS[PICTURE_BUDGET]):.0f} m": private,
    }
    with mpl.rc_context(STYLE):
        figure = plot.blank(8.4, 5.2)
        for ax, (title, model) in zip(figure.subplots(1, 2), titles.items(), strict=True):
            plot.spans(model, ax)
            ax.set_title(title, color="black", fontweight="normal")
            ax.set(xlabel="longitude", ylabel="latitude", xticks=np.linspace(-122.6, -122.3, 4))
            ax.annotate("SFO", SFO, (8, -8), textcoords="offset points", color="#444444", fontsize=9)
        save(figure, path)
