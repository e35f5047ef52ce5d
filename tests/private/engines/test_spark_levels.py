"""Levels on Spark: the same counts as in memory."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Budget, Ledger, estimate_levels
from sfumato.domain.columns import Columns, Coordinate
from sfumato.errors import DataError
from sfumato.private.engines.spark import SparkFrame
from sfumato.private.engines.spark_levels import count_levels_on_spark
from sfumato.private.levels import count_levels
from sfumato.private.sources import open_source
from sfumato.private.sources.frames import TYPED

pytestmark = pytest.mark.slow
COORDINATES = (Coordinate("job", "level"), Coordinate("co.de", "level"))


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    jobs = rng.choice(["baker", "bäcker", "judge", "Judge", "", " judge"], 3000)
    codes, who = rng.integers(0, 50, 3000), rng.integers(0, 400, 3000)
    return pa.table({"job": jobs, "co.de": codes, "who": who, "half": np.full(3000, 0.5)})


@pytest.mark.parametrize("unit", [None, "who"])
def test_the_same_counts_as_in_memory(spark, people, unit):
    columns = Columns(COORDINATES, unit, text=TYPED)
    here = count_levels(columns, open_source(people).batches(columns))
    there = count_levels_on_spark(SparkFrame(spark.createDataFrame(people).repartition(5)), columns)
    assert there.equals(here.cast(there.schema))


def test_the_same_levels_as_in_memory(spark, people):
    asked = {"columns": ["job"], "unit": "who", "epsilon": 2, "delta": 1e-3, "random_state": 0}
    here, there = (estimate_levels(X, **asked) for X in (people, spark.createDataFrame(people)))
    assert here == there
    assert here["job"].levels


def test_no_rows(spark, people):
    for unit in (None, "who"):
        assert (
            count_levels_on_spark(
                SparkFrame(spark.createDataFrame(people).limit(0)), Columns(COORDINATES, unit)
            ).num_rows
            == 0
        )


def test_types_are_checked_before_anything_is_charged(spark, people, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(5, 0.1))
    with pytest.raises(DataError, match="'half' must hold text, integers or booleans"):
        estimate_levels(spark.createDataFrame(people), ["half"], epsilon=1, delta=1e-6, ledger=ledger)
    assert ledger.history() == []


def test_errors_quote_no_value(spark, people):
    with pytest.raises(DataError, match="'half' must hold text, integers or booleans"):
        count_levels_on_spark(
            SparkFrame(spark.createDataFrame(people)), Columns((Coordinate("half", "level"),))
        )
