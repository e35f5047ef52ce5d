"""Folds of Spark frames with one worker and with two, against the engine of files on the same rows."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.clocks import seconds, timed_call
from benchmarks.files_scale import BOUNDS, write_rows
from sfumato import GridKMeans
from sfumato.domain import Domain, Grid
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.partitions import Voronoi
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines import files
from sfumato.private.engines.base import Engine
from sfumato.private.engines.spark import SparkEngine, SparkFrame
from sfumato.private.sources import open_source

N_REPEATS = 3
N_EMPTY_TASKS = 40
DOMAIN = Domain.from_bounds(BOUNDS, 4)
COLUMNS = Columns(tuple(Coordinate(f"x{j}") for j in range(4)))
CENTERS = np.random.default_rng(1).uniform(-1, 1, (10, 4))
FOLDS = {
    "fold of Cells, 10^4 cells": CellCounts(Grid.over(DOMAIN, 10)),
    "fold of GroupedSums, 10 groups": GroupedSums(Voronoi(CENTERS), CENTERS, np.ones(10)),
}
FIT = "folds of a GridKMeans fit"
READ, TRANSFER = "read alone", "read and passed to Python"


def measure(*, quick: bool) -> dict[str, Any]:
    """Every engine and size in a process of its own."""
    n = 3 * 10**5 if quick else 2 * 10**7
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder), n)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        runs: dict[str, dict[str, Any]] = {}
        for engine in ("parquet", "spark"):
            for n_workers in ("1", "2"):
                command = [sys.executable, "-m", "benchmarks.spark_scale", folder, engine, n_workers]
                runs[f"{engine} {n_workers}"] = json.loads(subprocess.check_output(command, text=True))
                print(engine, n_workers, runs[f"{engine} {n_workers}"], flush=True)
    return {"rows": n, "gigabytes": size / 1e9, "runs": runs}


def in_this_process(folder: str, engine: str, n_workers: str) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    return (on_spark if engine == "spark" else in_files)(folder, int(n_workers))


def in_files(folder: str, n_threads: int) -> dict[str, Any]:
    files.N_THREADS = n_threads  # type: ignore[attr-defined]
    pa.set_cpu_count(n_threads)
    pa.set_io_thread_count(n_threads)
    engine = open_source(folder).engine(COLUMNS, DOMAIN)
    return {READ: median(lambda: sum(batch.num_rows for batch in engine.batches())), **folds(engine, folder)}


def on_spark(folder: str, n_workers: int) -> dict[str, Any]:
    with session(n_workers) as spark:
        frame = spark.read.parquet(folder).selectExpr("x0 + 0 as x0", "x1", "x2", "x3")  # not a plain scan
        engine = SparkEngine(SparkFrame(frame), COLUMNS, DOMAIN)
        first = seconds(lambda: engine.fold(FOLDS["fold of Cells, 10^4 cells"]))
        empty = spark.range(0, N_EMPTY_TASKS, 1, N_EMPTY_TASKS).mapInArrow(dropped, "n long")
        return {
            READ: median(lambda: frame.write.format("noop").mode("overwrite").save()),
            TRANSFER: median(lambda: frame.mapInArrow(dropped, "n long").collect()),
            **folds(engine, frame),
            "first_fold_s": first,
            "partitions": frame.rdd.getNumPartitions(),
            "task_ms": 1000 * median(lambda: empty.collect()) * n_workers / N_EMPTY_TASKS,
        }


@contextmanager
def session(n_workers: int) -> Iterator[Any]:
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "2g",
            "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),  # workers import this module
            "spark.local.dir": folder,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master(f"local-cluster[{n_workers},1,2048]").config(map=settings)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        application = spark.sparkContext.applicationId
        try:
            yield spark
        finally:
            spark.stop()
            home = os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent)
            shutil.rmtree(Path(home, "work", application), ignore_errors=True)


def dropped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: take all batches and use none."""
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]})


def folds(engine: Engine, X: Any) -> dict[str, Any]:
    took = {}
    for name, aggregate in FOLDS.items():
        engine.fold(aggregate)  # compiles
        took[name] = median(lambda aggregate=aggregate: engine.fold(aggregate))
    fits = [fit_seconds(type(engine), X) for _ in range(N_REPEATS)]
    folding, whole = (statistics.median(kind) for kind in zip(*fits, strict=True))
    return {**took, FIT: folding, "fit_s": whole}


def fit_seconds(kind: type[Any], X: Any) -> tuple[float, float]:
    """Time of the folds of a fit, and of the whole fit."""
    spent, fold = [], kind.fold

    def timed(engine: Any, aggregate: Any) -> Any:
        took, state = timed_call(lambda: fold(engine, aggregate))
        spent.append(took)
        return state

    kind.fold = timed
    try:
        whole = seconds(lambda: GridKMeans(10, bounds=BOUNDS).fit(X))
        return sum(spent), whole
    finally:
        kind.fold = fold


def median(work: Callable[[], object]) -> float:
    return statistics.median(seconds(work) for _ in range(N_REPEATS))


def render(kept: dict[str, Any]) -> str:
    files, spark = ([kept["runs"][f"{engine} {n}"] for n in (1, 2)] for engine in ("parquet", "spark"))
    lines = []
    for name in (READ, TRANSFER, *FOLDS, FIT):
        ours, theirs = [run.get(name, run[READ]) for run in files], [run[name] for run in spark]
        lines.append(
            f"| {name} | {theirs[0]:.2f} | {theirs[1]:.2f} | {theirs[0] / theirs[1]:.2f} | {ours[0]:.2f} "
            f"| {ours[1]:.2f} | {ours[0] / ours[1]:.2f} | {theirs[0] / ours[0]:.1f} | {theirs[1] / ours[1]:.1f} |"
        )
    one = spark[0]
    sums = one["fold of GroupedSums, 10 groups"]
    return (
        "## Spark: one worker and two\n\n"
        f"{kept['rows']:,} rows x 4 in Parquet files ({kept['gigabytes']:.2f} GB, in the system's cache), read "
        f"by Spark in {one['partitions']} partitions with one worker and {spark[1]['partitions']} with two, each "
        f"worker with one core and 2 GB; beside it the engine of files with as many threads. Seconds, median of "
        f"{N_REPEATS} after a first run; the overhead is Spark's time over that of files with as many "
        "threads.\n\n"
        "| | 1 worker, s | 2 workers, s | speed-up | files, 1 thread, s | files, 2 threads, s | speed-up "
        "| overhead, 1 | overhead, 2 |\n|---|---|---|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n\n"
        f"Where the time goes, with one worker: the JVM decodes Parquet ({one[READ]:.1f} s); passing the rows "
        f"to Python as Arrow batches over a socket adds {one[TRANSFER] - one[READ]:.1f} s; reading them there "
        f"and folding GroupedSums adds {sums - one[TRANSFER]:.1f} s. Part of this overlaps, since the JVM and "
        f"its Python process run at the same time. An empty task takes {one['task_ms']:.0f} ms, and the first "
        f"fold of a session {one['first_fold_s'] - one['fold of Cells, 10^4 cells']:.1f} s more than later "
        "ones: every worker starts a Python process and imports what it needs, once. The time of a fit counts "
        f"its folds; with noise and k-means on the driver it takes {one['fit_s']:.1f} s (files, one thread: "
        f"{files[0]['fit_s']:.1f} s).\n\n"
        "What this does not show: the two processors of this machine are virtual and may be hyperthreads of "
        "one core, and one worker keeps both of them busy already, one with the JVM and one with Python; so does one thread "
        "on files, beside the thread that decodes. So the ideal is well below 2 here, whatever the engine. "
        "Files are read in the same process: their second row is the first.\n"
    )


if __name__ == "__main__":
    print(json.dumps(in_this_process(*sys.argv[1:])))
