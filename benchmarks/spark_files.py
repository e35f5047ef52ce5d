"""Files that Spark's workers read themselves, against the engine of files; and a dry run of very many tasks."""

import json
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.clocks import kilobytes, seconds, timed_call
from benchmarks.files_scale import write_rows
from benchmarks.spark_scale import (
    COLUMNS,
    DOMAIN,
    FIT,
    FOLDS,
    N_EMPTY_TASKS,
    N_REPEATS,
    dropped,
    folds,
    in_files,
    median,
    session,
)
from sfumato import on_spark
from sfumato.private.engines.spark import SparkEngine, fold_task
from sfumato.private.engines.spark_states import STATES, merged
from sfumato.private.sources import open_source

CELLS = next(iter(FOLDS))
DRY = "dry"
N_DRY_TASKS = 10**4
N_MADE_UP = 1000  # rows of a task of the dry run


def measure(*, quick: bool) -> dict[str, Any]:
    """Every engine and size, and the dry run, in a process of its own."""
    n = 3 * 10**5 if quick else 10**8
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), n)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        runs: dict[str, dict[str, Any]] = {}
        for engine in ENGINES:
            for n_workers in (1, 2):
                runs[f"{engine} {n_workers}"] = apart(engine, folder, n_workers)
                print(engine, n_workers, runs[f"{engine} {n_workers}"], flush=True)
    return {"rows": n, "gigabytes": size / 1e9, "runs": runs, "dry": apart(DRY, 50 if quick else N_DRY_TASKS)}


def apart(job: str, *arguments: Any) -> dict[str, Any]:
    """What a job returns that has a process to itself."""
    command = [sys.executable, "-m", "benchmarks.spark_files", job, json.dumps(arguments)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return found


def in_this_process(job: str, arguments: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    return {**ENGINES, DRY: dry_run}[job](*json.loads(arguments))


def from_files(folder: str, n_workers: int) -> dict[str, Any]:
    """Workers read the files themselves."""
    with session(n_workers) as spark:
        table = on_spark(folder, spark)
        engine = open_source(table).engine(COLUMNS, DOMAIN)
        first = seconds(lambda: engine.fold(FOLDS[CELLS]))
        empty = spark.range(0, N_EMPTY_TASKS, 1, N_EMPTY_TASKS).mapInArrow(dropped, "n long")
        return {
            **folds(engine, table),
            "first_fold_s": first,
            "tasks": engine.rows.n_tasks,
            "worker_mb": max(row["mb"] for row in memory(engine)),
            "task_ms": 1000 * median(lambda: empty.collect()) * n_workers / N_EMPTY_TASKS,
        }


def memory(engine: SparkEngine) -> list[Any]:
    """Peak of memory of the Python process of each task, in MB."""
    rows: list[Any] = engine.rows.mapped(COLUMNS.source_names, peak, "mb double").collect()
    return rows


def peak(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: read all batches; the peak of memory of the process, in MB."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"mb": [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]})


ENGINES = {"files": in_files, "spark": from_files}


def dry_run(n_tasks: int, n_workers: int = 2) -> dict[str, Any]:
    """A fold of very many tasks, each with one block of made-up rows, and the real tree of merges."""
    aggregate = FOLDS[CELLS]
    with session(n_workers) as spark:
        tasks = spark.range(0, n_tasks, 1, n_tasks)
        work = partial(fold_task, aggregate, DOMAIN, made_up)
        merged(aggregate, spark.range(0, 4, 1, 4).mapInArrow(work, STATES), 4)  # starts workers
        took, state = timed_call(lambda: merged(aggregate, tasks.mapInArrow(work, STATES), n_tasks))
    assert state.sum() == n_tasks * N_MADE_UP
    driver = kilobytes("VmHWM") / 1024  # `ru_maxrss` would be that of the process which started this one
    return {"tasks": n_tasks, "s": took, "task_ms": 1000 * took * n_workers / n_tasks, "driver_mb": driver}


def made_up(batch: pa.RecordBatch) -> Any:
    """On a worker: rows that depend on the number of the task alone."""
    return np.random.default_rng(batch.column(0)[0].as_py()).uniform(-1, 1, (N_MADE_UP, 4))


def render(kept: dict[str, Any]) -> str:
    ours, short = ([kept["runs"][f"{engine} {n}"] for n in (1, 2)] for engine in ENGINES)
    lines = []
    for name in (*FOLDS, FIT, "fit_s"):
        cells = [run[name] for run in (*ours, *short)]
        cells += [cells[2] / cells[0], cells[3] / cells[1]]
        shown = "a whole GridKMeans fit" if name == "fit_s" else name
        lines.append(f"| {shown} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    one, dry = short[0], kept["dry"]
    return (
        "## Spark: workers that read files\n\n"
        f"{kept['rows']:,} rows x 4 in Parquet files ({kept['gigabytes']:.2f} GB, in the system's cache), on workers of one core and 2 GB "
        f"each, which read row groups themselves in {one['tasks']} tasks; beside them the engine of files with as many threads. Seconds, "
        f"median of {N_REPEATS} after a first run; the overhead is the time on Spark over that without.\n\n"
        "| | files, 1 thread | files, 2 threads | Spark, 1 worker | Spark, 2 workers | overhead, 1 | overhead, 2 |\n"
        "|---|---|---|---|---|---|---|\n"
        + "\n".join(lines)
        + f"\n\nAn empty task takes {one['task_ms']:.0f} ms, and the first fold of a session {one['first_fold_s']:.1f} s: every worker "
        f"starts a Python process and imports what it needs, once. A worker's Python process takes {one['worker_mb']:.0f} MB.\n\n"
        f"A dry run of {dry['tasks']:,} tasks with {N_MADE_UP} made-up rows each on two workers took {dry['s']:.0f} s, {dry['task_ms']:.0f} ms "
        f"of a core per task, merges included; the driver's Python process took {dry['driver_mb']:.0f} MB.\n"
    )


if __name__ == "__main__":
    print(json.dumps(in_this_process(*sys.argv[1:])))
