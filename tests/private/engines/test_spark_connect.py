"""Spark Connect, which shows neither plans nor partitions: the same release as without Spark, both ways."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow
# In a process of its own: a process has either a classic session or one of Spark Connect.
PROGRAM = """
import sys, warnings
from pyspark.sql import SparkSession
from sfumato import LloydKMeans

warnings.simplefilter("ignore")
settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
spark = SparkSession.builder.remote("local[1]").config(map=settings).getOrCreate()
assert ".connect." in type(spark).__module__
for people in ({}, {"unit": "person", "max_rows_per_unit": 3}):
    model = LloydKMeans(
        2, n_iter=1, profiles=0, bounds={"x": (-1, 1), "y": (-1, 1)}, random_state=0, **people
    )
    for X, session in ((sys.argv[1], None), (sys.argv[1], spark), (spark.read.parquet(sys.argv[1]), None)):
        print(model.fit(X, spark=session).cluster_centers_.tobytes().hex())
"""


def test_the_same_release(tmp_path):
    pytest.importorskip("grpc_status")
    pytest.importorskip("pyspark")
    rows = np.random.default_rng(0).uniform(-1, 1, (900, 2))
    people = [f"p{i % 200}" for i in range(len(rows))]
    table = pa.table({"x": rows[:, 0], "y": rows[:, 1], "person": people})
    for i in range(2):
        pq.write_table(table.slice(450 * i, 450), tmp_path / f"{i}.parquet")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    found = done.stdout.split()
    assert len(found) == 6, done.stderr[-2000:]
    assert len(set(found[:3])) == len(set(found[3:])) == 1
    assert found[0] != found[3]
