"""The engine over a Spark DataFrame, in a cluster of two worker processes: the same bits as in memory."""

import gc
import pickle
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from tests.contract.test_aggregates import EXAMPLES

from sfumato.domain import Domain, Grid, Unit
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.partitions import Voronoi
from sfumato.errors import DataError
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines import spark as engine_module
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.engines.spark import SparkEngine, SparkFrame
from sfumato.private.engines.spark_states import decode
from sfumato.private.people import cap_rows

DOMAIN = Domain.from_bounds((-1, 1), 2)
CELLS = CellCounts(Grid.over(DOMAIN, 8))
CENTERS = np.array([[-0.3, 0.1], [0.4, -0.7], [0.9, 0.9]])
SUMS = GroupedSums(Voronoi(CENTERS), CENTERS, np.ones(3))
NAMES = ["x", "y.z", "w`"]  # names that Spark reads as something else unless they are quoted
pytestmark = pytest.mark.slow
KINDS = {name: examples[0] for name, examples in EXAMPLES.items()}


def columns(n_features=2, unit=None, missing="error"):
    return Columns(tuple(Coordinate(name) for name in NAMES[:n_features]), unit, missing)


def frame_of(spark, rows, people=None):
    table = {name: pa.array(column) for name, column in zip(NAMES, rows.T, strict=False)}
    if people is not None:
        table["person"] = pa.array(people)
    return spark.createDataFrame(pa.table(table))


def some_rows(n_rows=3000, n_features=2, seed=0):
    return np.random.default_rng(seed).uniform(-1.2, 1.2, size=(n_rows, n_features))


def some_people(n_rows=3000, n_people=400, seed=1):
    """Few persons have most rows: one has a fifth of the table."""
    people = (np.random.default_rng(seed).pareto(0.7, n_rows) * 10).astype(np.int64) % n_people
    people[: n_rows // 5] = 7
    return people


def same(a, b):
    return a.dtype == b.dtype == np.int64 and a.shape == b.shape and (a == b).all()


@pytest.mark.parametrize("name", KINDS)
def test_every_aggregate_has_the_same_bits_as_in_memory(spark, name):
    example = KINDS[name]
    d = example.n_features
    domain, rows = Domain.from_bounds((-1, 1), d), some_rows(n_features=d)
    frame = frame_of(spark, rows).repartition(3)
    state = SparkEngine(SparkFrame(frame), columns(d), domain).fold(example.aggregate)
    assert same(state, MemoryEngine(rows, domain).fold(example.aggregate))


@pytest.mark.parametrize(("n_rows", "n_partitions"), [(0, 2), (3, 7), (3000, 1), (3000, 2), (3000, 40)])
def test_partitions_do_not_matter(spark, n_rows, n_partitions):
    rows = some_rows()[:n_rows]
    engine = SparkEngine(SparkFrame(frame_of(spark, rows).repartition(n_partitions)), columns(), DOMAIN)
    assert engine.n_features == 2
    assert same(engine.fold(SUMS), MemoryEngine(rows, DOMAIN).fold(SUMS))


def test_a_frame_without_partitions(spark):
    frame = frame_of(spark, some_rows(10)).where("false")
    assert same(SparkEngine(SparkFrame(frame), columns(), DOMAIN).fold(SUMS), SUMS.zero())
    nobody = frame_of(spark, some_rows(10), some_people(10)).where("false")
    assert same(SparkEngine(SparkFrame(nobody), columns(unit="person"), capped(1)).fold(SUMS), SUMS.zero())


def expected(rows, people, max_rows, aggregate=SUMS):
    return MemoryEngine(cap_rows(pa.array(people), rows, max_rows), DOMAIN).fold(aggregate)


def capped(max_rows):
    return Domain.from_bounds((-1, 1), 2, Unit("person", max_rows))


@pytest.mark.parametrize(("max_rows", "n_partitions"), [(1, 7), (3, 1), (3, 5)])
def test_the_cap_keeps_the_same_rows_as_in_memory(spark, max_rows, n_partitions):
    rows, people = some_rows(), some_people()
    frame = frame_of(spark, rows, people).repartition(n_partitions)
    engine = SparkEngine(SparkFrame(frame), columns(unit="person"), capped(max_rows))
    assert same(engine.fold(SUMS), expected(rows, people, max_rows))
    assert same(engine.fold(RowCount()), expected(rows, people, max_rows, RowCount()))


def test_persons_may_be_text(spark):
    rows, people = some_rows(), [f"né {i % 50}" for i in range(3000)]
    engine = SparkEngine(SparkFrame(frame_of(spark, rows, people)), columns(unit="person"), capped(2))
    assert same(engine.fold(SUMS), expected(rows, people, 2))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("execution.arrow.maxRecordsPerBatch", "13"), ("adaptive.enabled", "false")],
    ids=["small batches", "fixed plans"],
)
def test_settings_of_spark_do_not_matter(spark, setting, value):
    rows, people = some_rows(), some_people()
    spark.conf.set(f"spark.sql.{setting}", value)
    try:
        engine = SparkEngine(SparkFrame(frame_of(spark, rows, people)), columns(unit="person"), capped(2))
        assert same(engine.fold(SUMS), expected(rows, people, 2))
    finally:
        spark.conf.unset(f"spark.sql.{setting}")


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 40])
@pytest.mark.parametrize("n_people", [1, 2, 5, 40])
@pytest.mark.parametrize("length", [1, 2, 3, 100])
def test_no_person_is_in_two_batches(n_rows, n_people, length):
    people = [b"%03d" % i for i in sorted(np.random.default_rng(n_rows).integers(n_people, size=n_rows))]
    batch = pa.RecordBatch.from_pydict({"unit": pa.array(people, pa.binary()), "place": np.arange(n_rows)})
    cut = [batch.slice(first, length) for first in range(0, n_rows, length)]
    empty = [piece for batch in cut for piece in (batch.slice(0, 0), batch)]
    whole = list(engine_module.whole_people(iter(empty)))
    assert [place for batch in whole for place in batch["place"].to_pylist()] == list(range(n_rows))
    seen = [set(batch["unit"].to_pylist()) for batch in whole]
    assert sum(map(len, seen)) == len(set().union(*seen))


def test_missing_values_are_dropped_where_that_is_asked(spark):
    rows = some_rows()
    holes = rows.copy()
    holes[::10, 1] = np.nan
    engine = SparkEngine(SparkFrame(frame_of(spark, holes)), columns(missing="drop"), DOMAIN)
    assert same(engine.fold(SUMS), MemoryEngine(np.delete(rows, np.s_[::10], axis=0), DOMAIN).fold(SUMS))


def test_the_driver_receives_a_few_states_and_no_rows(spark, monkeypatch):
    kind, received = type(spark.range(1)), []
    collect = kind.collect
    monkeypatch.setattr(kind, "collect", lambda frame: received.append(collect(frame)) or received[-1])
    rows = some_rows()
    SparkEngine(SparkFrame(frame_of(spark, rows).repartition(20)), columns(), DOMAIN).fold(CELLS)
    SparkEngine(SparkFrame(frame_of(spark, rows, some_people())), columns(unit="person"), capped(1)).fold(
        CELLS
    )
    assert len(received) == 2
    for parts in received:
        assert 1 <= len(parts) <= 4
        states = [decode(part["state"]) for part in parts]
        assert all(state.shape == CELLS.zero().shape for state in states)


def test_what_travels_to_the_workers_is_small(spark, monkeypatch):
    from pyspark import cloudpickle

    kind, sent = type(spark.range(1)), []
    map_in_arrow = kind.mapInArrow

    def spy(frame, task, schema):
        sent.append(len(cloudpickle.dumps(task)))
        return map_in_arrow(frame, task, schema)

    monkeypatch.setattr(kind, "mapInArrow", spy)
    SparkEngine(
        SparkFrame(frame_of(spark, some_rows(), some_people())), columns(unit="person"), capped(1)
    ).fold(CELLS)
    assert len(sent) == 3  # spell, cap and fold: the driver merges as few states as these
    assert max(sent) < 2**14 + len(pickle.dumps(CELLS))


def n_persisted(spark):
    return spark.sparkContext._jsc.getPersistentRDDs().size()


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_kept_rows_stay_persisted_as_long_as_the_engine(spark):
    gc.collect()
    assert wait_until(lambda: n_persisted(spark) == 0)
    frame = frame_of(spark, some_rows(), some_people())
    engine, other = (SparkEngine(SparkFrame(frame), columns(unit="person"), capped(1)) for _ in range(2))
    for _ in range(2):
        engine.fold(RowCount())
        other.fold(RowCount())
    assert n_persisted(spark) == 2
    other.close()
    assert wait_until(lambda: n_persisted(spark) == 1)
    del engine
    assert wait_until(lambda: n_persisted(spark) == 0)


# Tests in which Python processes end come last: the next ones import everything anew. Those in which
# executors end are in test_spark_faults.py.


def error_of(engine, aggregate=SUMS):
    with pytest.raises(DataError) as caught:
        engine.fold(aggregate)
    assert caught.value.__suppress_context__
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("unit", [None, "person"])
def test_an_error_on_a_worker_is_one_line(spark, unit):
    rows = some_rows()
    rows[17, 1] = np.nan
    domain = DOMAIN if unit is None else capped(1)
    engine = SparkEngine(
        SparkFrame(frame_of(spark, rows, some_people()).coalesce(1)), columns(unit=unit), domain
    )
    assert error_of(engine).startswith("`X` must have finite values only, got missing or infinite ones")


class Broken(RowCount):
    """Fails with a message that quotes a value."""

    def add(self, state, rows):
        raise ValueError(f"what is {rows[0, 0]}? 31415")


def test_an_unknown_error_quotes_nothing(spark):
    engine = SparkEngine(SparkFrame(frame_of(spark, np.full((1, 2), 0.31415))), columns(), DOMAIN)
    assert "31415" not in error_of(engine, Broken())


def test_an_error_of_spark_itself_quotes_nothing(spark):
    rows = frame_of(spark, some_rows(5)).repartition(2)  # else Spark computes the next on the driver
    frame = rows.selectExpr("cast(concat('secret', x) as double) as x", "`y.z`")
    message = error_of(SparkEngine(SparkFrame(frame), columns(), DOMAIN))
    assert "secret" not in message
    assert "CAST_INVALID_INPUT" in message


class Needy(RowCount):
    """Needs a package that no worker has."""

    def add(self, state, rows):
        import no_such_package  # noqa: F401


def test_a_package_that_workers_lack_is_named_with_a_remedy(spark):
    message = error_of(SparkEngine(SparkFrame(frame_of(spark, some_rows(5))), columns(), DOMAIN), Needy())
    assert message.startswith("the Spark workers could not import no_such_package. Install sfumato with its")
    assert "spark.archives" in message


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("ModuleNotFoundError: No module named 'sfumato'", "sfumato"),
        ("ModuleNotFoundError: No module named 'sfumato.private'", "sfumato"),
        ("ImportError: numpy._core.multiarray failed to import", "numpy"),
        (
            "pyspark.errors.exceptions.base.PySparkImportError: [UNSUPPORTED_PACKAGE_VERSION] "
            "PyArrow >= 15.0.0 must be installed; however, your version is 4.0.0.",
            "PyArrow",
        ),
        ("ImportError: libsecret.so.3: cannot open shared object file", "a package"),
    ],
)
def test_what_a_worker_could_not_import(line, package):
    text = f"An exception was thrown\nTraceback (most recent call last):\n  File x\n{line}\n\n  at java"
    message = engine_module._harmless(text, "UNKNOWN")
    assert message == f"the Spark workers could not import {package}. {engine_module.SHIP_PACKAGES}"


def test_importing_sfumato_does_not_import_pyspark():
    code = "import sys, sfumato, sfumato.private.engines.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_pyspark_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=r"pip install 'sfumato\[spark\]'"):
        SparkEngine(None, columns(), DOMAIN)
