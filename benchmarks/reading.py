"""Time and memory of reading tables in files: ours against pyarrow, which is told the types of the columns."""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.centre_data import markdown
from benchmarks.clocks import in_own_process, peak_above, seconds
from sfumato.domain import Unit
from sfumato.domain.columns import read_bounds
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.engines.base import add_rows
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.reading import read_rows
from sfumato.private.sources import open_source

N_REPEATS = 5
QUICK_TABLES = 2  # each takes processes of its own
LEVELS = ["surgery", "medicine", "other", "children", "emergency"]
NUMBERS = {f"x{j}": (-1e5, 1e5) for j in range(4)}
MIXED = {"x0": (-1, 1), "x1": (0, 100), "kind": LEVELS, "day": (date(2026, 1, 1), date(2026, 12, 31))}
TITLES = {
    "floats": "4 numbers of up to 17 digits",
    "decimals": "4 numbers with two decimals",
    "integers": "4 integers",
    "mixed": "a number, an integer, a category of 5 levels, a date",
    "quoted": "the same, every value in quotes",
}


def measure(*, quick: bool) -> dict[str, Any]:
    n = 10**5 if quick else 10**6
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), n)
        rows = []
        for name in list(TITLES)[: QUICK_TABLES if quick else None]:
            for kind in ("csv", "parquet"):
                path = Path(folder) / f"{name}.{kind}"
                if not path.exists():
                    continue
                row = in_own_process("benchmarks.reading", "time", path)
                row |= in_own_process("benchmarks.reading", "memory", path)
                rows.append({"table": name, "kind": kind, "megabytes": path.stat().st_size / 1e6} | row)
                print(rows[-1], flush=True)
    return {"rows": n, "repeats": N_REPEATS, "files": rows, "admitted": admitted(n)}


def write_tables(folder: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, 4))
    days = np.datetime64("2026-01-01") + rng.integers(0, 365, n).astype("timedelta64[D]")
    kinds = np.array(LEVELS)[rng.integers(0, len(LEVELS), n)]
    mixed = pa.table(
        {"x0": x[:, 0], "x1": rng.integers(0, 100, n), "kind": pa.array(kinds), "day": pa.array(days)}
    )
    tables = {
        "floats": pa.table({f"x{j}": x[:, j] for j in range(4)}),
        "decimals": pa.table({f"x{j}": np.round(x[:, j] * 100, 2) for j in range(4)}),
        "integers": pa.table({f"x{j}": rng.integers(-(10**5), 10**5, n) for j in range(4)}),
        "mixed": mixed,
    }
    for name, table in tables.items():
        pa.csv.write_csv(table, folder / f"{name}.csv", pa.csv.WriteOptions(quoting_style="needed"))
        pq.write_table(table, folder / f"{name}.parquet")
    pa.csv.write_csv(mixed, folder / "quoted.csv", pa.csv.WriteOptions(quoting_style="all_valid"))


def fold(path: Path) -> Any:
    """Count the rows, each of which is read and clipped."""
    source = open_source(path)
    columns, domain = read_bounds(_bounds(path), source.names, Unit())
    return source.engine(replace(columns, text=source.text), domain).fold(RowCount())


def typed_pass(path: Path) -> int:
    """What pyarrow needs to read the columns as declared, batch by batch, and count the rows."""
    return sum(batch.num_rows for batch in _typed(path))


def typed_fold(path: Path) -> Any:
    """The same fold over what pyarrow reads."""
    columns, domain = read_bounds(_bounds(path), None, Unit())
    state = RowCount().zero()
    for batch in _typed(path):
        state = add_rows(RowCount(), state, read_rows(columns, batch), domain)
    return state


def _typed(path: Path) -> Iterator[pa.RecordBatch]:
    if path.suffix == ".parquet":
        return iter(ds.dataset(path).to_batches())
    types = {name: pa.float64() for name in _bounds(path)} | {"kind": pa.string(), "day": pa.date32()}
    return iter(pa.csv.open_csv(path, convert_options=pa.csv.ConvertOptions(column_types=types)))


def _bounds(path: Path) -> dict[str, Any]:
    return MIXED if path.stem in ("mixed", "quoted") else NUMBERS


def in_this_process(mode: str, place: str) -> dict[str, Any]:
    path = Path(place)
    calls: dict[str, Callable[[], Any]] = {
        name: partial(call, path)
        for name, call in (("fold", fold), ("typed_fold", typed_fold), ("typed", typed_pass))
    }
    for call in calls.values():
        call()  # compiles, and fills the system's cache
    if mode == "memory":
        return {f"{name}_mb": peak_above(call) for name, call in calls.items()}
    times: dict[str, list[float]] = {f"{name}{what}": [] for name in calls for what in ("", "_cpu")}
    for _ in range(N_REPEATS):  # in turns, so that what else the machine does concerns both
        for name, call in calls.items():
            before = time.process_time()
            times[name].append(seconds(call))
            times[f"{name}_cpu"].append(time.process_time() - before)
    return times


def admitted(n: int) -> dict[str, float]:
    """Seconds of a fold over rows in memory, and of clipping alone, which leaves no NaN out."""
    X = np.random.default_rng(0).uniform(-2, 2, (4 * n, 4))
    _, domain = read_bounds(NUMBERS, list(NUMBERS), Unit())
    engine = MemoryEngine(X, domain)
    blocks = [X[i : i + 2**15] for i in range(0, len(X), 2**15)]
    calls = {
        "fold": lambda: engine.fold(RowCount()),
        "admitted": lambda: [domain.admitted(block) for block in blocks],
        "clip": lambda: [domain.clip(block) for block in blocks],
    }
    for call in calls.values():
        call()
    return {name: min(seconds(call) for _ in range(N_REPEATS)) for name, call in calls.items()}


def render(measured: dict[str, Any]) -> str:
    lines = [
        [
            TITLES[row["table"]],
            f"{row['kind']}, {row['megabytes']:.0f} MB",
            *(spread(row[call]) for call in ("fold", "typed_fold", "typed")),
            *(ratio(row, peer) for peer in ("typed_fold", "typed")),
            *(f"{row[peak]:.0f}" if row[peak] is not None else "" for peak in ("fold_mb", "typed_fold_mb")),
        ]
        for row in measured["files"]
    ]
    inside = measured["admitted"]
    head = ["columns", "file", "**ours**, s", "same fold of pyarrow's, s", "pyarrow alone, s"]
    head += ["ratio to the same fold", "ratio to pyarrow alone", "our memory, MB", "of the same fold, MB"]
    return "\n".join(
        [
            "## Reading text and Parquet",
            "",
            f"{measured['rows']:,} rows in one file, in the system's cache; kernels warm. Ours: one fold that counts rows, through "
            "the engine of a fit: every value is parsed for itself, and every row is checked and clipped. The peer reads a file whose "
            "types it is told (`pyarrow.csv.open_csv`, `pyarrow.dataset`): its batches go through the same fold, or nothing is done to "
            f"them. Mean ± standard deviation of {measured['repeats']} repeats in turns in one process; ratios of medians and, in brackets, of "
            "the least processor time. Memory: peak above what is held before. Wanted: at most 2 for text.",
            "",
            *markdown(head, lines),
            "",
            f"Rows in memory, {4 * measured['rows']:,} x 4: a fold takes {inside['fold']:.3f} s on all cores. On one, the pass that lets "
            f"no NaN or infinity through takes {inside['admitted']:.3f} s, and clipping alone {inside['clip']:.3f} s.",
            "",
        ]
    )


def ratio(row: dict[str, list[float]], peer: str) -> str:
    of_time = statistics.median(row["fold"]) / statistics.median(row[peer])
    return f"{of_time:.2f} ({min(row['fold_cpu']) / min(row[f'{peer}_cpu']):.2f})"


def spread(times: list[float]) -> str:
    return f"{statistics.mean(times):.2f} ± {statistics.stdev(times):.2f}"


if __name__ == "__main__":
    print(json.dumps(in_this_process(*sys.argv[1:])))
