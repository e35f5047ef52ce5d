"""Time and memory of the density methods: on 11 million positions, in a universe of 10^8 cells, and over rows."""

import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import DBSCAN, KMeans
from threadpoolctl import threadpool_limits

from benchmarks.centre_data import markdown
from benchmarks.clocks import kilobytes, seconds
from benchmarks.density_data import CABS_BOX, PAPER_SETS, accelerations, at_hand, cabs, fit, rows_of
from benchmarks.papers import published
from benchmarks.pictures import PICTURES, STYLE
from sfumato import DPDBSCAN, DensityTree, plot
from sfumato.datasets import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# On a busy machine scikit-learn's threads wait for each other: the faster of the two is the one to compare with.
BASES = {"KMeans, 1 thread": 1, "KMeans, all threads": None}
REPEATS, GROWTH_REPEATS = 5, 3
CABS_ROWS, QUICK_CABS_ROWS = 10_995_626, 250_000
GROWTH, QUICK_GROWTH = (1, 2, 4, 8, 11), (0.1, 0.25)  # in millions of rows
WATCH_ROWS = 100_000
WATCH_BOX = (-8.0, 8.0)
# Radius and MinPts: the paper's for HAR70+, and one at which spans are found.
WATCH_SETTINGS = ((0.01, 5), (0.05, 20))
TINY_BOX = ([-122.48, 37.72], [-122.38, 37.82])
SHORT_REPEATS = 15  # of fits that take milliseconds
MOST_OF_KMEANS, MOST_MEMORY_MB = 0.1, 1000.0
MOST_OF_PAPERS_RATIO = 1 / 20
SFO = (-122.386, 37.616)


def on_cabs(seed: int | None = None) -> dict[str, Any]:
    """Our methods with the setting of the paper; the noise of a release unless there is a seed."""
    common: dict[str, Any] = {"metric": "geo", "epsilon": 1.0, "bounds": CABS_BOX, "random_state": seed}
    return {"DPDBSCAN": DPDBSCAN(radius=20, min_samples=500, **common), "DensityTree": DensityTree(**common)}


def measure(*, quick: bool) -> dict[str, Any]:
    """Time each table in a process of its own, and each method's memory in one of its own."""
    full = (CABS_ROWS, REPEATS, GROWTH_REPEATS)
    n_cabs, repeats, growth_repeats = (QUICK_CABS_ROWS, 1, 1) if quick else full
    timed = in_own_process("cabs_times", n_cabs, repeats)
    for row in timed:
        row |= in_own_process("cabs_memory", n_cabs, row["method"])
        print(row, flush=True)
    draw_cabs(n_cabs)
    watch = in_own_process("watch_times", repeats)
    print(watch, flush=True)
    short = in_own_process("short_times", 1 if quick else SHORT_REPEATS)
    print(short, flush=True)
    growth = in_own_process("growth_times", growth_repeats, *(QUICK_GROWTH if quick else GROWTH))
    print(growth, flush=True)
    return {
        "rows": n_cabs,
        "repeats": repeats,
        "cabs": timed,
        "watch": watch,
        "short": short,
        "growth_repeats": growth_repeats,
        "growth": growth,
        "paper": published("dp_dbscan"),
    }


def in_own_process(*arguments: object) -> Any:
    command = [sys.executable, "-m", "benchmarks.density_time", *map(str, arguments)]
    # Large arrays go back to the system when they are freed, so that no peak hides in memory kept for later.
    is_memory = arguments[0] == "cabs_memory"
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)} if is_memory else None
    return json.loads(subprocess.check_output(command, text=True, env=environment))


def cabs_times(n_rows: int, repeats: int) -> list[dict[str, Any]]:
    X, ours = cabs(n_rows), on_cabs()
    taken = in_turns({base: KMeans(3, n_init=1) for base in BASES} | ours, X, repeats)
    base = min(taken[name] for name in BASES)
    rows = {method: {"method": method, "fit_s": time, "ratio": time / base} for method, time in taken.items()}
    for method, model in ours.items():
        outlines = seconds(lambda model=model: [span.polygons for span in model.spans_])
        rows[method] |= {"spans": model.n_clusters_, "outlines_s": outlines}
    return list(rows.values())


def in_turns(models: dict[str, Any], X: np.ndarray, repeats: int) -> dict[str, float]:
    """Median seconds of a fit; taking turns, so that other load on the machine falls on all."""
    taken: dict[str, list[float]] = {name: [] for name in models}
    for name, model in models.items():
        if name not in BASES:
            fit(model, X)  # compiles
    for seed in range(1, repeats + 1):
        for name, model in models.items():
            if name in BASES:
                model.set_params(random_state=seed)
            with threadpool_limits(BASES.get(name)):
                taken[name].append(seconds(lambda model=model: fit(model, X)))
    return {name: statistics.median(times) for name, times in taken.items()}


def cabs_memory(n_rows: int, method: str) -> dict[str, Any]:
    """Peak of one fit above what is held before it, kernels warm."""
    X = cabs(n_rows)
    models = {base: KMeans(3, n_init=1, random_state=1) for base in BASES} | on_cabs()
    fit(models[method], X[:1000])
    gc.collect()
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():  # only Linux keeps a peak that can be reset
        return {"above_data_mb": None}
    reset.write_text("5")
    before = kilobytes("VmRSS")
    with threadpool_limits(BASES.get(method)):
        fit(models[method], X)
    return {"above_data_mb": (kilobytes("VmHWM") - before) / 1024, "data_mb": X.nbytes / 2**20}


def watch_times(repeats: int) -> list[dict[str, Any]]:
    X, rows = accelerations(WATCH_ROWS), []
    for radius, min_samples in WATCH_SETTINGS:
        ours = DPDBSCAN(radius, min_samples, epsilon=1.0, bounds=WATCH_BOX)
        exact = [DBSCAN(eps=radius, min_samples=min_samples, n_jobs=jobs) for jobs in (None, -1)]
        taken = in_turns({"ours": ours, "1": exact[0], "all": exact[1]}, X, repeats)
        base = min(taken["1"], taken["all"])
        row = {"radius": radius, "min_samples": min_samples, "cells": ours.histogram_.grid.n_cells}
        row |= {"dbscan_s": base, "fit_s": taken["ours"], "ratio": taken["ours"] / base}
        rows.append(row | {"spans": ours.n_clusters_, "clusters": int(exact[0].labels_.max()) + 1})
    return rows


def short_times(repeats: int) -> list[dict[str, Any]]:
    """The smaller data sets of the paper's Table 3, with its settings."""
    rows = []
    for name, X, models in short_tables():
        taken = in_turns(models, X, repeats)
        rows += [{"data": name, "method": method, "fit_s": time} for method, time in taken.items()]
    return rows


def short_tables() -> Iterator[tuple[str, np.ndarray, dict[str, Any]]]:
    for name in at_hand(PAPER_SETS):
        data, common = PAPER_SETS[name], {"epsilon": 1.0, "bounds": PAPER_SETS[name].bounds}
        dbscan = DPDBSCAN(data.radius, data.min_samples, **common)
        yield name, rows_of(name)[0], {"DPDBSCAN": dbscan, "DensityTree": DensityTree(**common)}
    common = {"epsilon": 1.0, "bounds": TINY_BOX, "metric": "geo"}
    dbscan = DPDBSCAN(radius=50, min_samples=1000, **common)
    yield "cabs_tiny", load("cabs_tiny")[0], {"DPDBSCAN": dbscan, "DensityTree": DensityTree(**common)}


def growth_times(repeats: int, *millions: float) -> list[dict[str, Any]]:
    X = cabs()
    rows = []
    for million in millions:
        part = X[: round(million * 1e6)]
        taken = in_turns(on_cabs(), part, repeats)
        rows += [{"rows": len(part), "method": method, "fit_s": time} for method, time in taken.items()]
    return rows


def render(measured: dict[str, Any]) -> str:
    draw_growth(measured["growth"])
    return "\n".join([*cabs_section(measured), *watch_section(measured), *growth_section(measured)])


def cabs_section(measured: dict[str, Any]) -> list[str]:
    head = ["method", "fit, s", "of KMeans's time", "limit", "memory above the data, MB", "limit"]
    head += ["spans", "outlines, s"]
    times = paper_ratio(measured["paper"], "cabs", "kmeans")
    printed = f" In the paper DP-DBSCAN takes {times:.1f} times as long as KMeans." if times else ""
    return [
        "## Density methods: time and memory",
        "",
        f"{measured['rows']:,} positions of cabs in San Francisco, epsilon 1, metric geo; `DPDBSCAN` with radius 20 m and "
        f"MinPts 500, `DensityTree` with its default setting. Kernels warm, median of {measured['repeats']} fits in turns "
        "with scikit-learn's `KMeans(3, n_init=1)` on the same array in the same process, on one thread or all, whichever "
        f"is faster.{printed} Memory: peak of one fit above what the process held before it, with "
        f"{measured['cabs'][0].get('data_mb', 0):.0f} MB of data. Outlines are computed when they are asked for.",
        "",
        *markdown(head, [cabs_line(row) for row in measured["cabs"]]),
        "",
        "![Spans of the cabs](docs/pictures/cabs.svg)",
        "",
        "The spans of `DPDBSCAN`, from a seeded run on these public data: downtown, and US-101 to the airport.",
        "",
    ]


def paper_ratio(paper: dict[str, Any] | None, data: str, base: str) -> float | None:
    """Printed time of DP-DBSCAN over that of another method."""
    if paper is None:
        return None
    printed = dict(zip(paper["seconds"]["columns"], paper["seconds"][data], strict=True))
    return printed["linear"] / printed[base]


def cabs_line(row: dict[str, Any]) -> list[str]:
    above = row["above_data_mb"]
    memory = "" if above is None else f"{above:.0f}"
    first = [row["method"], f"{row['fit_s']:.3g}"]
    if row["method"] in BASES:
        return [*first, f"{row['ratio']:.2f}", "", memory, "", "", ""]
    is_bound = row["method"] == "DPDBSCAN"
    ratio_limit = verdict(row["ratio"], MOST_OF_KMEANS) if is_bound else ""
    memory_limit = verdict(above, MOST_MEMORY_MB) if is_bound and above is not None else ""
    found = [f"{row['spans']:,}", f"{row['outlines_s']:.2f}"]
    return [*first, f"**{row['ratio']:.3f}**", ratio_limit, memory, memory_limit, *found]


def verdict(value: float, limit: float) -> str:
    return f"≤ {limit:.4g}: {'met' if value <= limit else 'missed'}"


def watch_section(measured: dict[str, Any]) -> list[str]:
    head = ["radius", "MinPts", "cells", "DPDBSCAN, s", "DBSCAN, s", "ratio", "limit"]
    head += ["spans", "clusters of DBSCAN"]
    times = paper_ratio(measured["paper"], "har70", "dbscan")
    printed = f", where DP-DBSCAN takes {times:.1f} times as long" if times else ""
    lines = [watch_line(row, times) for row in measured["watch"]]
    return [
        "### Three columns, a large universe",
        "",
        f"{WATCH_ROWS:,} rows of the accelerations of a watch, bounds {WATCH_BOX[0]:g} to {WATCH_BOX[1]:g}, "
        "epsilon 1, against scikit-learn's DBSCAN on the same rows with `n_jobs` None or -1, whichever is faster. The first "
        f"setting is the paper's for HAR70+{printed}.",
        "",
        *markdown(head, lines),
        "",
    ]


def watch_line(row: dict[str, Any], papers_ratio: float | None) -> list[str]:
    line = [f"{row['radius']:g}", str(row["min_samples"]), f"{row['cells']:.2e}"]
    line += [f"{row['fit_s']:.3g}", f"{row['dbscan_s']:.3g}", f"**{row['ratio']:.2f}**"]
    limit = verdict(row["ratio"], papers_ratio * MOST_OF_PAPERS_RATIO) if papers_ratio else ""
    return [*line, limit, str(row["spans"]), str(row["clusters"])]


def growth_section(measured: dict[str, Any]) -> list[str]:
    methods = list(on_cabs())
    times = {method: [r for r in measured["growth"] if r["method"] == method] for method in methods}
    sizes = [row["rows"] for row in times[methods[0]]]
    lines = [
        [method, *(f"{row['fit_s']:.3g}" for row in rows), f"{exponent(rows):.2f}", straight(rows)]
        for method, rows in times.items()
    ]
    head = ["method", *(f"{n / 1e6:.3g} million rows, s" for n in sizes), "exponent", "least squares, s"]
    return [
        "### Time over rows",
        "",
        f"The first positions of the same data, median of {measured['growth_repeats']} fits. The exponent is the slope of the "
        "logarithms; it is below 1 where a cost that does not grow with the rows takes a part.",
        "",
        "![Time over rows](docs/pictures/density_rows.svg)",
        "",
        *markdown(head, lines),
        "",
    ]


def exponent(rows: list[dict[str, Any]]) -> float:
    sizes, times = zip(*((row["rows"], row["fit_s"]) for row in rows), strict=True)
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def line_through(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Seconds per million rows, and seconds without any."""
    sizes, times = zip(*((row["rows"] / 1e6, row["fit_s"]) for row in rows), strict=True)
    slope, start = np.polyfit(sizes, times, 1)
    return float(slope), float(start)


def straight(rows: list[dict[str, Any]]) -> str:
    slope, start = line_through(rows)
    return f"{start:.2f} + {slope:.3f} per million"


def draw_cabs(n_rows: int, path: Path = PICTURES / "cabs.svg") -> None:
    """Draw the spans of a seeded run. The same rows give the same bytes."""
    import matplotlib as mpl

    model = fit(on_cabs(seed=0)["DPDBSCAN"], cabs(n_rows))
    with mpl.rc_context(STYLE):
        figure = plot.blank(5.6, 6.6)
        ax = plot.spans(model, figure.add_subplot())
        title = f"DPDBSCAN, radius 20 m, MinPts 500, epsilon 1\n{n_rows:,} cab positions, {model.n_clusters_} spans"
        ax.set_title(title, color="black", fontweight="normal")
        ax.set(xlabel="longitude", ylabel="latitude")
        away = {"textcoords": "offset points", "color": "#444444", "fontsize": 9}
        ax.annotate("SFO airport", SFO, (10, -8), **away)
        ax.annotate("US-101", (-122.39, 37.68), (8, 0), **away)
        save(figure, path)


def draw_growth(rows: list[dict[str, Any]], path: Path = PICTURES / "density_rows.svg") -> None:
    """Draw the medians and the straight line through them. The same figures give the same bytes."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure = plot.blank(4.6, 3.0)
        ax = figure.add_subplot()
        for method, colour, marker in zip(on_cabs(), plot.style.OKABE_ITO, "os", strict=False):
            draw_method([row for row in rows if row["method"] == method], method, colour, marker, ax)
        ax.set(xlabel="million rows", ylabel="fit, s", title="Time of a fit", xlim=(0, None), ylim=(0, None))
        ax.grid(axis="y", color="#eeeeee", linewidth=0.6)
        ax.legend(frameon=False, loc="upper left")
        save(figure, path)


def draw_method(rows: list[dict[str, Any]], method: str, colour: str, marker: str, ax: "Axes") -> None:
    slope, start = line_through(rows)
    sizes = [row["rows"] / 1e6 for row in rows]
    ax.plot([0, sizes[-1]], [start, start + slope * sizes[-1]], "-", color=colour, linewidth=1.2, alpha=0.5)
    ax.plot(sizes, [row["fit_s"] for row in rows], marker, color=colour, markersize=4, label=method)


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None}, dpi=150)


MODES: dict[str, Callable[..., Any]] = {
    call.__name__: call for call in (cabs_times, cabs_memory, watch_times, short_times, growth_times)
}


def main(mode: str, *arguments: str) -> None:
    print(json.dumps(MODES[mode](*(a if a[0].isalpha() else json.loads(a) for a in arguments))))


if __name__ == "__main__":
    main(*sys.argv[1:])
