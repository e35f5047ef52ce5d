"""Time and memory of the centre methods against scikit-learn's k-means with 10 starts, 64 clusters."""

import json
import statistics
import sys
from typing import Any

from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.centre_data import DATA_SETS, make, markdown, methods, rows_of
from benchmarks.clocks import in_own_process, peak_above, seconds

NAMES = ("synth_10d", "synth_100d")
REPEATS, QUICK_REPEATS, QUICK_ROWS = 5, 1, 10_000
# On a busy machine scikit-learn's threads wait for each other: the faster of the two is the one to compare with.
BASES = {"scikit-learn, 1 thread": 1, "scikit-learn, all threads": None}
# Largest part of scikit-learn's time, on the two data sets.
LIMITS = {"DPM": (0.03, 0.08), "MaxCoverKMeans": (3.0, 3.0)}
OTHERS = (1.0, 1.0)


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Time each data set in a process of its own, and each method's memory in one of its own."""
    n_rows, repeats = (QUICK_ROWS, QUICK_REPEATS) if quick else (100_000, REPEATS)
    rows = []
    for name in NAMES[:1] if quick else NAMES:
        timed = in_own_process(__name__, "times", name, n_rows, repeats)
        for row in timed:
            row |= in_own_process(__name__, "memory", name, n_rows, row["method"])
            rows.append(row)
            print(row, flush=True)
    return rows


def times(name: str, n_rows: int, repeats: int) -> list[dict[str, Any]]:
    """Take turns, so that other load on the machine falls on all."""
    X = rows_of(name, 0, n_rows).X
    calibrations, taken = {}, {method: [] for method in (*BASES, *methods())}
    for method in methods():
        model = fitter(method, name, n_rows, seed=0)
        calibrations[method] = seconds(lambda model=model: model.plan(X.shape[1]))
        model.fit(X)  # compiles
    for seed in range(1, repeats + 1):
        for method, so_far in taken.items():
            model = fitter(method, name, n_rows, seed)
            with threadpool_limits(BASES.get(method)):
                so_far.append(seconds(lambda model=model: model.fit(X)))
    base = min(statistics.median(taken[method]) for method in BASES)
    return [
        {
            "data": name,
            "rows": n_rows,
            "repeats": repeats,
            "method": method,
            "fit_s": statistics.median(so_far),
            "ratio": statistics.median(so_far) / base,
            "calibration_s": calibrations.get(method),
        }
        for method, so_far in taken.items()
    ]


def memory(name: str, n_rows: int, method: str) -> dict[str, Any]:
    """Peak of one fit above what is held before it, kernels and calibration warm."""
    X = rows_of(name, 0, n_rows).X
    fitter(method, name, n_rows, seed=0).fit(X[:1000])
    with threadpool_limits(BASES.get(method)):
        above = peak_above(lambda: fitter(method, name, n_rows, seed=1).fit(X))
    return {"above_data_mb": above, "data_mb": X.nbytes / 2**20}


def fitter(method: str, name: str, n_rows: int, seed: int) -> Any:
    data = DATA_SETS[name]
    if method in BASES:
        return KMeans(data.n_clusters, n_init=10, random_state=seed)
    return make(method, data, epsilon=1.0, delta=rows_of(name, 0, n_rows).delta, seed=seed)


def render(rows: list[dict[str, Any]]) -> str:
    head = ["data set", "method", "fit, s", "of scikit-learn's time", "limit"]
    head += ["first calibration, s", "memory above the data, MB"]
    return "\n".join(
        [
            "## Centre methods: time and memory",
            "",
            f"{rows[0]['rows']:,} rows, 64 clusters, epsilon 1, delta 1/(n sqrt n); kernels warm, calibration cached, median of "
            f"{rows[0]['repeats']} fits with different seeds in one process, against scikit-learn's "
            "`KMeans(64, n_init=10)` in the same process, on one thread or all, whichever is faster. The first "
            "fit with new parameters also calibrates the noise, once for a process. Memory: peak of one fit "
            f"above what the process held before it ({data_sizes(rows)}).",
            "",
            *markdown(head, [line(row) for row in rows]),
            "",
        ]
    )


def data_sizes(rows: list[dict[str, Any]]) -> str:
    sizes = {DATA_SETS[row["data"]].title: row.get("data_mb") for row in rows}
    return ", ".join(f"{title}: {size:.0f} MB of data" for title, size in sizes.items() if size)


def line(row: dict[str, Any]) -> list[str]:
    above = "" if row["above_data_mb"] is None else f"{row['above_data_mb']:.0f}"
    first = [DATA_SETS[row["data"]].title, row["method"], f"{row['fit_s']:.3g}"]
    if row["method"] in BASES:
        return [*first, f"{row['ratio']:.2f}", "", "", above]
    limit = LIMITS.get(row["method"], OTHERS)[NAMES.index(row["data"])]
    sign, met = ("<", row["ratio"] < limit) if row["method"] not in LIMITS else ("≤", row["ratio"] <= limit)
    verdict = f"{sign} {limit:g}: {'met' if met else 'missed'}"
    return [*first, f"**{row['ratio']:.3f}**", verdict, f"{row['calibration_s']:.2f}", above]


def main(mode: str, name: str, n_rows: str, last: str) -> None:
    if mode == "times":
        print(json.dumps(times(name, int(n_rows), int(last))))
    else:
        print(json.dumps(memory(name, int(n_rows), last)))


if __name__ == "__main__":
    main(*sys.argv[1:])
