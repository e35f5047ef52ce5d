"""One contract over all engines: with the same seed, every estimator gives the same release on all."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import GridKMeans, SourceTargetClustering, estimate_bounds, on_spark, suggest_max_rows
from sfumato.domain.on_spark import TableOnSpark
from sfumato.errors import ParameterError
from sfumato.public.models import encode

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def table(rows):
    """300 rows of 40 people, most of them of few."""
    people = np.random.default_rng(5).zipf(1.4, len(rows)) % 40
    return pd.DataFrame(rows, columns=["x", "y"]).assign(person=people)


@pytest.fixture
def folder(table, tmp_path):
    cuts = [0, 1, 1, 130, 300]
    for i, (first, last) in enumerate(itertools.pairwise(cuts)):
        part = pa.Table.from_pandas(table[first:last], preserve_index=False)
        pq.write_table(part, tmp_path / f"{i}.parquet", row_group_size=17)
    return tmp_path


@pytest.fixture(
    params=["files", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("spark", "files on spark"))]
)
def elsewhere(request, table, folder, monkeypatch):
    """The same table in several files, or on two Spark workers, which may read the files themselves."""
    if request.param == "files":
        return folder
    spark = request.getfixturevalue("spark")
    if request.param == "files on spark":
        monkeypatch.setattr("sfumato.private.sources.pieces.LEAST_VALUES", 300)
        return on_spark(folder, spark)
    return spark.createDataFrame(pa.Table.from_pandas(table, preserve_index=False)).repartition(2)


ON_SPARK = ("GridKMeans", "DPDBSCAN", "DPMoG")  # cells, sparse cells, moments of groups

UNITS = {
    "rows": {"bounds": {"x": (-1, 1), "y": (-1, 1)}},
    "people": {"bounds": (-1, 1), "unit": "person", "max_rows_per_unit": 4},
}


@pytest.mark.parametrize("unit", ["people", pytest.param("rows", marks=pytest.mark.slow)])
def test_the_same_release_everywhere(make, table, elsewhere, unit):
    if not isinstance(elsewhere, Path) and (unit == "rows" or type(make()).__name__ not in ON_SPARK):
        pytest.skip("slow: every aggregate has the same bits on Spark, see test_spark.py")
    here, there = (make(random_state=3, **UNITS[unit]).fit(X) for X in (table, elsewhere))
    assert encode(here.release_.model) == encode(there.release_.model)
    assert here.privacy_.steps == there.privacy_.steps
    assert here.release_.reading == there.release_.reading
    assert ("one person" if unit == "people" else "one row") in str(there.privacy_)


def test_source_on_any_engine(table, elsewhere):
    targets = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    model = SourceTargetClustering(3, bounds=(-1, 1), random_state=0, unit="person", max_rows_per_unit=4)
    here = encode(model.fit(targets, table).release_.model)
    assert encode(model.fit(targets, elsewhere).release_.model) == here


def test_labels_on_any_engine(table, elsewhere):
    model = GridKMeans(3, bounds={"y": (-1, 1), "x": (-1, 1)}, random_state=0).fit(table)
    expected = model.predict(table)
    if isinstance(elsewhere, Path | TableOnSpark):
        assert (model.predict(elsewhere) == expected).all()
        return
    found = model.release_.predict_spark(elsewhere, "group.1").toArrow().to_pandas()
    assert list(found) == [*table, "group.1"]
    order, own = found.sort_values(["x", "y"]), table.assign(label=expected).sort_values(["x", "y"])
    assert order["group.1"].tolist() == own["label"].tolist()
    with pytest.raises(ParameterError, match="predict_spark"):
        model.predict(elsewhere)
    with pytest.raises(ParameterError, match="must be a new name"):
        model.release_.predict_spark(elsewhere, "x")


def test_bounds_and_caps_on_any_engine(table, elsewhere):
    asked = {"unit": "person", "max_rows_per_unit": 2, "epsilon": 20.0, "random_state": 0}
    here, there = (estimate_bounds(X, ["x", "y"], **asked) for X in (table, elsewhere))
    assert here == there
    assert here.columns == ("x", "y")
    caps = [suggest_max_rows(X, "person", 3, epsilon=20.0, random_state=0) for X in (table, elsewhere)]
    assert encode(caps[0].contributions.noisy_people) == encode(caps[1].contributions.noisy_people)
    assert caps[0].max_rows == caps[1].max_rows


def test_private_bounds_on_any_engine(table, elsewhere):
    model = GridKMeans(3, bounds="private", epsilon=20.0, unit="person", random_state=0)
    here, there = (encode(model.fit(X).release_.domain) for X in (table, elsewhere))
    assert here == there
