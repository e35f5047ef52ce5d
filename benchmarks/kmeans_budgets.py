"""The centre methods over budgets from epsilon 0.1 to 5: a table, and a picture of it."""

import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.baselines import peer_centers
from benchmarks.centre_data import (
    DATA_SETS,
    METHODS,
    data_names,
    in_processes,
    make,
    markdown,
    methods,
    reference_of,
    rows_of,
    short,
)
from benchmarks.diffprivlib_peer import prepare
from benchmarks.papers import inertia_ratios, published
from benchmarks.pictures import PICTURES, STYLE
from sfumato.metrics import inertia

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
SEEDS, PEER_SEEDS = 2, 1
QUICK_ROWS, QUICK_EPSILONS = 2_000, (1.0,)
PEER = "diffprivlib"
PICTURE = PICTURES / "budgets.svg"
PAPER_MARKS = {"dpm": ("DPM, paper", "D"), "lsh_splits": ("LSH-Splits, paper", "s")}


def measure(*, quick: bool) -> dict[str, Any]:
    prepare()
    n_seeds, n_rows = (1, QUICK_ROWS) if quick else (SEEDS, None)
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    start, ratios = time.perf_counter(), defaultdict(list)
    jobs = [(name, seed, n_rows, epsilons) for name in data_names() for seed in range(n_seeds)]
    for job, done in zip(jobs, in_processes(ratios_on, jobs), strict=True):
        for method, epsilon, ratio in done:
            ratios[job[0], method, epsilon].append(ratio)
        print(f"{time.perf_counter() - start:.0f} s {job[:2]} {done}", flush=True)
    rows = [
        {"data": data, "method": method, "epsilon": epsilon, "ratio": float(np.mean(of_seeds))}
        for (data, method, epsilon), of_seeds in ratios.items()
    ]
    return {
        "seeds": n_seeds,
        "peer_seeds": min(n_seeds, PEER_SEEDS),
        "epsilons": list(epsilons),
        "rows": rows,
        "paper": paper_ratios(),
    }


def ratios_on(
    name: str, seed: int, n_rows: int | None, epsilons: tuple[float, ...]
) -> list[tuple[str, float, float]]:
    """Inertia over that of non-private k-means, for each method and epsilon."""
    data, rows = DATA_SETS[name], rows_of(name, seed, n_rows)
    centers = {}
    for epsilon in epsilons:
        for method in methods():
            model = make(method, data, epsilon=epsilon, delta=rows.delta, seed=seed)
            centers[method, epsilon] = model.fit(rows.X).cluster_centers_
        if seed < PEER_SEEDS:
            centers[PEER, epsilon] = peer_centers(
                rows.X, data.n_clusters, epsilon=epsilon, bounds=data.bounds, seed=seed
            )
    base = reference_of(name, seed, n_rows).inertia
    return [(method, epsilon, inertia(rows.X, found) / base) for (method, epsilon), found in centers.items()]


def paper_ratios() -> dict[str, dict[str, float]]:
    """Ratios at epsilon 1 in the DPM paper, by data set and method."""
    return {name: inertia_ratios(published("dpm"), name) for name in DATA_SETS}


def render(measured: dict[str, Any]) -> str:
    draw(measured)
    ratios = {(row["data"], row["method"], row["epsilon"]): row["ratio"] for row in measured["rows"]}
    epsilons = measured["epsilons"]
    lines = [
        [DATA_SETS[name].title, method, *(short(ratios[name, method, epsilon]) for epsilon in epsilons)]
        for name in DATA_SETS
        for method in (*METHODS, PEER)
        if (name, method, epsilons[0]) in ratios
    ]
    return "\n".join(
        [
            "## Centre methods over budgets",
            "",
            "Inertia as a multiple of non-private k-means (scikit-learn, 10 starts) on the same rows, delta 1/(n sqrt n): "
            f"mean over {measured['seeds']} seeds. diffprivlib: pure epsilon, {measured['peer_seeds']} seeds. Hollow marks "
            "in the picture: the DPM paper's figures at epsilon 1.",
            "",
            "![Inertia over epsilon](docs/pictures/budgets.svg)",
            "",
            *markdown(["data set", "method", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines),
            "",
        ]
    )


def draw(measured: dict[str, Any], path: Path = PICTURE) -> None:
    """Draw one panel for each data set. The same figures give the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = [name for name in DATA_SETS if any(row["data"] == name for row in measured["rows"])]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.9), layout="constrained")
        panels = figure.subplots(2, 3).ravel()
        for name, ax in zip(names, panels, strict=False):
            draw_panel(name, measured, ax)
        for ax in panels[::3]:
            ax.set_ylabel("inertia ratio")
        for ax in panels[len(names) :]:
            ax.axis("off")
        handles = {line.get_label(): line for ax in panels for line in ax.get_lines()}
        panels[-1].legend(handles.values(), handles.keys(), loc="center", frameon=False, fontsize=9.5)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def draw_panel(name: str, measured: dict[str, Any], ax: "Axes") -> None:
    from sfumato.plot.style import OKABE_ITO

    ax.axhline(1.0, color="#aaaaaa", linewidth=1.0, label="non-private k-means")
    for method, colour, marker in zip((*METHODS, PEER), (*OKABE_ITO[:6], "#777777"), "o.^vsDx", strict=True):
        points = [
            (r["epsilon"], r["ratio"]) for r in measured["rows"] if (r["data"], r["method"]) == (name, method)
        ]
        if points:
            dash = "--" if method == PEER else "-"
            look = {"color": colour, "marker": marker, "markersize": 3.2, "linewidth": 1.4}
            ax.plot(*zip(*points, strict=True), dash, label=method, **look)
    for method, (label, marker) in PAPER_MARKS.items() if name in measured["paper"] else ():
        mark = {"marker": marker, "markerfacecolor": "none", "markeredgecolor": "#222222", "markersize": 5.5}
        ax.plot([1.0], [measured["paper"][name][method]], linestyle="none", label=label, **mark)
    ax.set(xscale="log", yscale="log", xlabel="epsilon", title=DATA_SETS[name].title)
    scale_axes(measured["epsilons"], ax)


def scale_axes(epsilons: list[float], ax: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    bottom, top = min(ax.get_ylim()[0], 0.9), max(ax.get_ylim()[1], 2.2)
    ax.set_ylim(bottom, top)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 20 else (1,), numticks=12))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(axis="y", color="#eeeeee", linewidth=0.6)
