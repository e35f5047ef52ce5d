"""Frames that are plain scans: which ones are, and that they give the rows that Spark gives."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.domain import Domain
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.partitions import Voronoi
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines.spark import SparkEngine, SparkFrame
from sfumato.private.sources import open_source
from sfumato.private.sources.pieces import Pieces, SparkPieces
from sfumato.private.sources.plain_scans import met, plain_scan

SPECIAL = [np.nan, None, -0.0, 0.0, 1.0, -1.5, np.inf, -np.inf, 2.0**-1074]
FILTERS = [
    "true",
    "x > 0",
    "x >= 0",
    "x < 0",
    "x <= 0",
    "x = 0",
    "x = -0.0D",
    "x <=> 1",
    "x != 1",
    "not (x > 0)",
    "not (x < 0)",
    "0 < x",
    "x in (0, 1)",
    "x not in (0, 1)",
    "x is null",
    "x is not null or i = 3",
    "f > 0.5",
    "f <= 0.5",
    "i > 2 and not b",
    "i <=> 3 or b",
    "not (b and x > 0)",
    "not (b <=> true)",
    "s = 'b' or s is null",
    "s > 'a'",
    "s >= 'é' and i between 1 and 4",
    "k < 9007199254740993",
]
OTHERS = [
    "x + 1 > 0",
    "isnan(x)",
    "x > i",
    "x = double('NaN')",
    "s like 'a%'",
    "d > date'2020-01-01'",
    "i in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)",
    "rand(1) > 0.5",
]


def some_table(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)

    def chosen(values, kind):
        return pa.array([values[i] for i in rng.integers(len(values), size=n_rows)], kind)

    columns = {
        "x": chosen(SPECIAL, pa.float64()),
        "f": chosen([np.nan, None, 0.5, 0.1, -0.0], pa.float32()),
        "i": chosen([None, *range(6)], pa.int32()),
        "k": chosen([None, 2**53, 2**53 + 1, -1], pa.int64()),
        "b": chosen([True, False, None], pa.bool_()),
        "s": chosen(["a", "b", "é", "", None], pa.string()),
        "d": chosen([None, 1, 20000], pa.date32()),
        "y.z": pa.array(rng.uniform(-1, 1, n_rows)),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a b=%41")
    pq.write_table(some_table(), folder / "1.parquet", row_group_size=50)
    pq.write_table(some_table(30, 1), folder / "2.parquet")
    return folder


@pytest.fixture(scope="module")
def frame(spark, folder):
    # Pushed down, `f > 0.5` loses the rows with NaN of a row group without larger numbers: the statistics of
    # Parquet leave NaN out. By the rules of Spark, and in our reading, they meet the condition.
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    yield spark.read.parquet(str(folder))
    spark.conf.unset("spark.sql.parquet.filterPushdown")


def rows_of(scan, names):
    """What the driver reads by the short way, in place of the workers."""
    cut = Pieces.of(scan[0], Columns(()), 1, scan[1])
    batches = [batch for task in range(len(cut.cuts) - 1) for batch in cut.batches(names, task)]
    return sorted(map(repr, pa.Table.from_batches(batches).to_pylist()))


@pytest.mark.parametrize("condition", FILTERS)
def test_the_rows_are_those_of_spark(frame, condition):
    names = ["s", "y.z", "x"]
    chosen = frame.where(condition).select("s", "`y.z`", "x")
    found = plain_scan(chosen, names)
    assert found is not None
    assert rows_of(found, names) == sorted(map(repr, (row.asDict() for row in chosen.collect())))


@pytest.mark.parametrize("condition", OTHERS)
def test_other_conditions_are_left_to_spark(frame, condition):
    assert plain_scan(frame.where(condition).select("x"), ["x"]) is None


def test_names_and_layers(frame):
    chosen = frame.where("i > 1").selectExpr("x as q", "i as x").where("x < 4").select("x", "q")
    found = plain_scan(chosen, ["x", "q"])
    assert found is not None
    assert rows_of(found, ["x", "q"]) == sorted(map(repr, (row.asDict() for row in chosen.collect())))


def test_other_frames_are_left_to_spark(spark, frame, folder, tmp_path):
    others = [
        frame.selectExpr("x + 1 as x"),
        frame.select("x").limit(5),
        frame.select("x").sample(0.5, seed=1),
        frame.select("x").distinct(),
        frame.select("x").union(frame.select("x")),
        frame.selectExpr("cast(x as float) as x"),
        frame.selectExpr("d as x"),
        frame.selectExpr("input_file_name() as x"),
        frame.selectExpr("_metadata.file_size as x"),
        spark.read.option("mergeSchema", "true").parquet(str(folder)).select("x"),
        spark.read.schema("x float, i int").parquet(str(folder)).select("i", "x").select("x"),
        spark.read.schema("nothing double").parquet(str(folder)).selectExpr("nothing as x"),
        spark.read.schema("X double").parquet(str(folder)).selectExpr("X as x"),
        spark.createDataFrame([(1.0,)], "x double"),
        spark.range(3).selectExpr("id as x"),
    ]
    frame.where("i = 1").select("i", "x").write.partitionBy("i").parquet(str(tmp_path / "parts"))
    others.append(spark.read.parquet(str(tmp_path / "parts")).selectExpr("i as x"))
    assert [plain_scan(other, ["x"]) for other in others] == [None] * len(others)
    inside = spark.read.parquet(str(tmp_path / "parts")).select("x")
    assert plain_scan(inside, ["x"]) is not None
    cached = frame.select("x").cache()
    assert plain_scan(cached, ["x"]) is None
    cached.unpersist()


def test_a_setting_that_changes_what_spark_reads(spark, frame):
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert plain_scan(frame.select("x"), ["x"]) is None
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_a_footer_that_cannot_be_read(spark, tmp_path):
    pq.write_table(some_table(), tmp_path / "1.parquet")
    frame = spark.read.parquet(str(tmp_path)).select("x")
    (tmp_path / "1.parquet").write_bytes(b"PAR1 no PAR1")
    assert plain_scan(frame, ["x"]) is None


def test_both_ways_have_the_same_state(frame):
    columns, domain = (
        Columns((Coordinate("y.z"), Coordinate("x")), missing="drop"),
        Domain.from_bounds((-1, 1), 2),
    )
    centers = np.array([[0.0, 0.1], [0.4, -0.7]])
    sums = GroupedSums(Voronoi(centers), centers, np.ones(2))
    chosen = frame.where("x > -1 and i is not null")
    short = open_source(chosen).engine(columns, domain)
    long = SparkEngine(SparkFrame(chosen), columns, domain)
    assert isinstance(short.rows, SparkPieces)
    for aggregate in (sums, RowCount()):
        assert (short.fold(aggregate) == long.fold(aggregate)).all()


def test_nan_is_larger_than_all_numbers():
    batch = pa.record_batch({"x": [1.0, np.nan, None, -np.inf]})
    assert met(("GreaterThan", "x", 5.0), batch).to_pylist() == [False, True, None, False]
    assert met(("not", ("LessThan", "x", 5.0)), batch).to_pylist() == [False, True, None, False]
    assert met(("EqualNullSafe", "x", 1.0), batch).to_pylist() == [True, False, False, False]
