"""Whole fits on Spark while something goes wrong: what is released, and what the ledger says."""

import contextlib
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.private.engines.test_spark import some_people, wait_until

from sfumato import Budget, GridKMeans, Ledger, on_spark
from sfumato.errors import DataError
from sfumato.private.engines.spark import SparkEngine
from sfumato.public.models import encode

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")]

BUDGET = Budget(1)
BOUNDS = {"x": (-1, 1), "y": (-1, 1)}


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(5), allow_seeded=True)


def some_table(n_rows=3000):
    rng = np.random.default_rng(0)
    centers = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])
    rows = centers[rng.integers(3, size=n_rows)] + rng.normal(scale=0.08, size=(n_rows, 2))
    return pa.table({"x": rows[:, 0], "y": rows[:, 1], "person": some_people(n_rows)})


@dataclass(frozen=True)
class Slow:
    """An aggregate that takes its time, and says in a file which process has begun."""

    aggregate: Any
    folder: str

    def zero(self):
        return self.aggregate.zero()

    def add(self, state, rows):
        Path(self.folder, str(os.getpid())).touch()
        time.sleep(1.0)
        return self.aggregate.add(state, rows)

    def merge(self, a, b):
        return self.aggregate.merge(a, b)


def slow_second_fold(monkeypatch, folder):
    """Make the second fold of a fit slow; return the aggregates of all."""
    fold, folded = SparkEngine.fold, []

    def slow(engine, aggregate):
        folded.append(aggregate)
        return fold(engine, Slow(aggregate, str(folder)) if len(folded) == 2 else aggregate)

    monkeypatch.setattr(SparkEngine, "fold", slow)
    return folded


def executors(spark):
    """Process ids of the application's executors, by the command lines of all processes."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            is_executor = any(word.endswith("CoarseGrainedExecutorBackend") for word in words)
            if is_executor and spark.sparkContext.applicationId in words:
                found.add(int(path.parent.name))
    return found


def parent(pid):
    return int(re.search(r"^PPid:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])


def kill_the_first(spark, folder):
    """Kill the executor whose Python process is the first to begin, while it sleeps."""
    assert wait_until(lambda: list(folder.iterdir()), seconds=120)
    pid, running = int(next(folder.iterdir()).name), executors(spark)
    while pid not in running:
        pid = parent(pid)
    os.kill(pid, signal.SIGKILL)
    return pid


# The first fold persists the kept rows on the workers: some of them die with the executor.
@pytest.mark.parametrize("way", ["frame", "files"])
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds executors in /proc")
def test_an_executor_that_dies_changes_neither_release_nor_ledger(spark, ledger, tmp_path, monkeypatch, way):
    parameters = {"unit": "person", "max_rows_per_unit": 3, "max_cells": 100, "random_state": 1}
    table, begun = some_table(), tmp_path / "begun"
    begun.mkdir()
    undisturbed = GridKMeans(3, bounds=BOUNDS, **parameters).fit(table)
    folded = slow_second_fold(monkeypatch, begun)
    if way == "frame":
        X = spark.createDataFrame(table).repartition(3)
    else:
        monkeypatch.setattr("sfumato.private.sources.pieces.LEAST_VALUES", 3000)
        pq.write_table(table, tmp_path / "table.parquet", row_group_size=1000)
        X = on_spark(tmp_path / "table.parquet", spark)
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill_the_first, spark, begun)
        model = GridKMeans(3, bounds=BOUNDS, ledger=ledger, **parameters).fit(X)
        assert killed.result() not in executors(spark)
    assert len(folded) == 4  # rows, cells, and two of profiles
    assert len(list(begun.iterdir())) > 1  # what the dead one had begun, another did again
    assert encode(model.release_.model) == encode(undisturbed.release_.model)
    assert [charge.outcome for charge in ledger.history()] == ["released"]
    assert ledger.spent() == BUDGET


# The second error is Spark's own, and quotes the text.
@pytest.mark.parametrize(
    "expression", ["if(x > 0.5, double('NaN'), x)", "cast(concat('secret', x) as double)"]
)
def test_a_task_that_fails_keeps_its_charge_and_releases_nothing(spark, ledger, expression):
    table = spark.createDataFrame(some_table()).repartition(2)  # else Spark computes it on the driver
    frame = table.selectExpr(f"{expression} as x", "y")
    model = GridKMeans(3, bounds=BOUNDS, ledger=ledger, random_state=1)
    with pytest.raises(DataError) as caught:
        model.fit(frame)
    message = str(caught.value)
    assert caught.value.__suppress_context__
    assert "\n" not in message
    assert "secret" not in message
    assert not re.search(r"\d\.\d", message)
    assert not hasattr(model, "release_")
    assert [charge.outcome for charge in ledger.history()] == ["failed"]
    assert ledger.spent() == BUDGET
