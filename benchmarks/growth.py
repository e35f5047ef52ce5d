"""Growth of time and memory with rows, columns and clusters, for all methods, against scikit-learn's k-means."""

import json
import statistics
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.centre_data import markdown, short
from benchmarks.clocks import in_own_process, peak_above, seconds
from benchmarks.density_data import fit
from benchmarks.kmeans_time import BASES
from benchmarks.pictures import PICTURES, STYLE
from sfumato import SourceTargetClustering
from sfumato.cli import methods
from sfumato.datasets import separated_gaussians
from sfumato.plot.style import OKABE_ITO, blank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {"n": "rows", "d": "columns", "k": "clusters"}
VALUES = {
    "n": (10_000, 31_600, 100_000, 316_000, 1_000_000),
    "d": (2, 4, 8, 16, 32, 64),
    "k": (2, 4, 8, 16, 32, 64),
}
MIDDLE = {"n": 100_000, "d": 8, "k": 8}
ENDS = (("n", 100_000), ("n", 1_000_000), ("d", 64), ("k", 64))
QUICK_VALUES = {"n": (5_000, 10_000), "d": (2, 8), "k": (2, 8)}
QUICK_MIDDLE = {"n": 10_000, "d": 8, "k": 8}
QUICK_ENDS = (("n", 10_000),)
REPEATS, QUICK_REPEATS = 3, 1
MOST_SECONDS = 20.0  # a fit that takes longer is the last of its curve
ENOUGH_SECONDS = 5.0  # fits that took so long together are not repeated
N_PASSES = 10  # in each turn, since one takes a millisecond
LAST_POINTS = 3  # through which the exponent goes

PEER, PASS, SOURCE_TARGET = "KMeans", "plain pass", "SourceTargetClustering"
NAMES = {method: name for name, method in methods.BUILT_IN.items()}
METHODS = (*NAMES, SOURCE_TARGET)
FIND_K = ("DPM", "DensityTree", "DPDBSCAN")
OWN = {"DPDBSCAN": {"radius": 0.1, "min_samples": 500}}
FEW_COLUMNS = 2  # of the rows for the density methods, where columns do not vary
MOST_COLUMNS = {"GridKMeans": 8, "DensityTree": 3, "DPDBSCAN": 3}  # by their documentation
N_TARGETS, N_WARM = 1000, 1000

Point = dict[str, int]
Tables = list[tuple[Point, list[str]]]
Row = dict[str, Any]


class Table(NamedTuple):
    """Private rows, public targets of the same law, and the number of blobs."""

    rows: np.ndarray
    targets: np.ndarray
    n_blobs: int


@lru_cache(maxsize=1)
def drawn(n: int, d: int, k: int) -> Table:
    X = separated_gaussians(n + N_TARGETS, k, d, random_state=0)[0]
    return Table(X[N_TARGETS:].copy(), X[:N_TARGETS].copy(), k)


def measure(*, quick: bool) -> dict[str, Any]:
    """Take all times in one process of its own, and the memory at each end in one of its own."""
    values, middle, ends = (QUICK_VALUES, QUICK_MIDDLE, QUICK_ENDS) if quick else (VALUES, MIDDLE, ENDS)
    repeats = QUICK_REPEATS if quick else REPEATS
    tables = {axis: tables_over(axis, values[axis], middle) for axis in AXES}
    timed = in_own_process(__name__, "times", json.dumps(tables), repeats)
    peaks = []
    for axis, value in ends:
        reached = [row["method"] for row in timed[axis] if row[axis] == value]
        found = in_own_process(__name__, "memory", json.dumps(tables_over(axis, (value,), middle)), *reached)
        peaks.append({"axis": axis, "value": value, "of_data": found})
        print(peaks[-1], flush=True)
    return {"repeats": repeats, "middle": middle, "times": timed, "memory": peaks}


def tables_over(axis: str, values: tuple[int, ...], middle: Point) -> Tables:
    """Tables and the methods that are fitted to them; those for few columns have their own, unless columns vary."""
    found: Tables = []
    for value in values:
        at: dict[int, list[str]] = {}
        for method in METHODS:
            d = FEW_COLUMNS if has_few_columns(method) and axis != "d" else (middle | {axis: value})["d"]
            if d <= MOST_COLUMNS.get(method, d):
                at.setdefault(d, []).append(method)
        found += [(middle | {axis: value, "d": d}, group) for d, group in at.items()]
    return found


def has_few_columns(method: str) -> bool:
    return method in MOST_COLUMNS and MOST_COLUMNS[method] < MIDDLE["d"]


def times(tables: dict[str, Tables], repeats: int) -> dict[str, list[Row]]:
    """Rows of each axis; the table in the middle of all of them is taken once."""
    known: dict[str, list[Row]] = {}
    rows: dict[str, list[Row]] = {axis: [] for axis in tables}
    for axis, of_axis in tables.items():
        for point, group in of_axis:
            ended = [row["method"] for row in rows[axis] if row["fit_s"] > MOST_SECONDS]
            key = str((point, left := [method for method in group if method not in ended]))
            if key not in known:
                known[key] = rows_at(point, left, repeats)
            rows[axis] += known[key]
    return rows


def rows_at(point: Point, group: list[str], repeats: int) -> list[Row]:
    taken = in_turns(drawn(**point), group, repeats)
    print(point, *(f"{name} {taken_s:.3g} s" for name, taken_s in taken.items()), file=sys.stderr, flush=True)
    peer = min(taken[base] for base in BASES)
    shown = {} if all(map(has_few_columns, group)) else {PEER: peer}  # one curve of the peer is enough
    shown |= {method: taken[method] for method in group}
    return [
        {**point, "method": method, "fit_s": fit_s, "of_peer": fit_s / peer, "of_pass": fit_s / taken[PASS]}
        for method, fit_s in shown.items()
    ]


def in_turns(table: Table, group: list[str], repeats: int) -> dict[str, float]:
    """Median seconds of each, kernels and calibration warm; taking turns, so that other load falls on all."""
    taken: dict[str, list[float]] = {name: [] for name in (PASS, *BASES, *group)}
    with threadpool_limits(1):
        for name in taken:
            fitter(name, few_of(table), seed=0)()
    for seed in range(1, repeats + 1):
        for name, so_far in taken.items():
            if sum(so_far) < ENOUGH_SECONDS:
                with threadpool_limits(BASES.get(name, 1)):
                    call = fitter(name, table, seed)
                    so_far += [seconds(call) for _ in range(N_PASSES if name == PASS else 1)]
    return {name: statistics.median(so_far) for name, so_far in taken.items()}


def fitter(name: str, table: Table, seed: int) -> Callable[[], object]:
    X, k = table.rows, table.n_blobs
    if name == PASS:
        return lambda: X.sum(axis=0)
    if name in (PEER, *BASES):
        return lambda: KMeans(k, n_init=1, random_state=seed).fit(X)
    shared: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "random_state": seed}
    if name == SOURCE_TARGET:
        return lambda: SourceTargetClustering(k, **shared).fit(table.targets, X)
    return lambda: fit(methods.make(NAMES[name], None if name in FIND_K else k, OWN.get(name, {}), shared), X)


def memory(tables: Tables, *wanted: str) -> dict[str, float | None]:
    """Peak of one fit above what is held before it, as a share of the size of the data."""
    found: dict[str, float | None] = {}
    for point, group in tables:
        table = drawn(**point)
        for method in (name for name in wanted if name in group or (name == PEER and name not in found)):
            with threadpool_limits(1):
                fitter(method, few_of(table), seed=0)()
                above = peak_above(fitter(method, table, seed=1))
            found[method] = None if above is None else above * 2**20 / table.rows.nbytes
    return found


def few_of(table: Table) -> Table:
    """Rows that are enough to compile and to calibrate."""
    return table._replace(rows=table.rows[:N_WARM])


def render(measured: dict[str, Any]) -> str:
    draw(measured["times"])
    return "\n".join(
        [
            *introduction(measured),
            *(line for axis in AXES for line in axis_section(axis, measured)),
            *memory_section(measured["memory"], measured["middle"]),
        ]
    )


def introduction(measured: dict[str, Any]) -> list[str]:
    return [
        "## Growth with rows, columns and clusters",
        "",
        "Blobs in a box (`datasets.separated_gaussians`), as many as clusters are wanted; epsilon 1, delta 1e-6. Kernels and "
        f"calibration warm, median of {measured['repeats']} fits with different seeds, in turns in one process, or of fewer if "
        f"these took {ENOUGH_SECONDS:g} s. The peer is scikit-learn's `KMeans(k, n_init=1)` on the same rows, on one thread or "
        "all, whichever is faster; ours pass over the rows with a thread per core, and give their linear algebra one. A plain "
        f"pass is `X.sum(axis=0)`. `{SOURCE_TARGET}` has the rows as its source, beside {N_TARGETS:,} targets; "
        f"`DPDBSCAN` has radius {OWN['DPDBSCAN']['radius']} and MinPts {OWN['DPDBSCAN']['min_samples']}; DPM and the density "
        "methods find the number of clusters themselves.",
        "",
        f"Exponent: slope of the logarithm of the time over that of what grows, through the last {LAST_POINTS} points; 1 is "
        "linear, below 1 a cost that does not grow takes a part. A dash: the documentation advises against so many columns "
        f"(more than {MOST_COLUMNS['GridKMeans']} for `GridKMeans`, {MOST_COLUMNS['DPDBSCAN']} for the density methods, which "
        f"have {FEW_COLUMNS} where columns do not grow), or the fit before it took more than {MOST_SECONDS:g} s.",
        "",
        "![Growth of time](docs/pictures/growth.svg)",
        "",
        "Time of a fit in plain passes over the same rows.",
        "",
    ]


def axis_section(axis: str, measured: dict[str, Any]) -> list[str]:
    rows = measured["times"][axis]
    values = sorted({row[axis] for row in rows})
    fixed = ", ".join(f"{other} = {at:,}" for other, at in measured["middle"].items() if other != axis)
    head = ["method", *(f"{axis} = {value:,}" for value in values), "plain passes at the last", "exponent"]
    return [
        f"### Time over {AXES[axis]}",
        "",
        f"{fixed}. Time of a fit over that of the peer on the same rows.",
        "",
        *markdown(
            head,
            [time_line(axis, method, values, rows) for method in (PEER, *METHODS) if curve_of(method, rows)],
        ),
        "",
    ]


def time_line(axis: str, method: str, values: list[int], rows: list[Row]) -> list[str]:
    curve = curve_of(method, rows)
    at = {row[axis]: short(row["of_peer"]) for row in curve}
    return [
        titled(method, axis),
        *(at.get(value, "-") for value in values),
        f"{curve[-1]['of_pass']:,.0f}",
        exponent(axis, curve),
    ]


def titled(method: str, axis: str) -> str:
    return f"{method}, d = {FEW_COLUMNS}" if has_few_columns(method) and axis != "d" else method


def curve_of(method: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["method"] == method]


def exponent(axis: str, curve: list[Row]) -> str:
    last = curve[-LAST_POINTS:]
    if len(last) < 2:
        return "-"
    sizes, taken = zip(*((row[axis], row["fit_s"]) for row in last), strict=True)
    return f"{np.polyfit(np.log(sizes), np.log(taken), 1)[0]:z.2f}"


def memory_section(peaks: list[Row], middle: Point) -> list[str]:
    lines = []
    for method in (PEER, *METHODS):
        shares = [at["of_data"].get(method) for at in peaks]
        lines.append([titled(method, "n"), *("-" if share is None else short(share) for share in shares)])
    head = ["method", *(f"{at['axis']} = {at['value']:,}" for at in peaks)]
    fixed = ", ".join(f"{axis} = {value:,}" for axis, value in middle.items())
    return [
        "### Memory",
        "",
        "Peak of one fit above what the process held before it, over the size of the data; one process for each column. "
        f"Where the head says nothing else, {fixed}.",
        "",
        *markdown(head, lines),
        "",
    ]


def draw(timed: dict[str, list[Row]]) -> None:
    """Draw one panel for each axis. The same figures give the same bytes."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure = blank(9.0, 4.4)
        panels = figure.subplots(1, len(AXES), sharey=True)
        for ax, axis in zip(panels, AXES, strict=True):
            draw_panel(axis, timed[axis], ax)
        panels[0].set_ylabel("time / plain pass")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        PICTURES.mkdir(parents=True, exist_ok=True)
        figure.savefig(PICTURES / "growth.svg", metadata={"Date": None})


def draw_panel(axis: str, rows: list[Row], ax: "Axes") -> None:
    from matplotlib.ticker import NullLocator

    for i, method in enumerate((*METHODS, PEER)):
        curve = curve_of(method, rows)
        look = {"color": OKABE_ITO[i % len(OKABE_ITO)], "linestyle": "-" if i < len(OKABE_ITO) else "--"}
        look = {"color": "#222222", "linestyle": ":"} if method == PEER else look
        sizes, passes = [row[axis] for row in curve], [row["of_pass"] for row in curve]
        look |= {"label": titled(method, "n"), "marker": "os^vDP"[i % 6]}
        ax.plot(sizes, passes, markersize=3.2, linewidth=1.3, **look)
    ax.set(xscale="log", yscale="log", xlabel=axis, title=f"Over {AXES[axis]}")
    values = sorted({row[axis] for row in rows})[:: 2 if axis == "n" else 1]  # long numbers need room
    ax.set_xticks(values, [f"{value:,}" for value in values])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:,g}")
    ax.grid(color="#eeeeee", linewidth=0.6)


def main(mode: str, tables: str, *others: str) -> None:
    if mode == "times":
        print(json.dumps(times(json.loads(tables), int(others[0]))))
    else:
        print(json.dumps(memory(json.loads(tables), *others)))


if __name__ == "__main__":
    main(*sys.argv[1:])
