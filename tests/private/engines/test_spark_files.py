"""Files that Spark's workers read themselves: the same bits as without Spark."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.private.engines.test_spark import KINDS, SUMS, capped, error_of, same, some_people, some_rows

from sfumato import GridKMeans, check, on_spark, scan_csv
from sfumato.domain import Domain
from sfumato.domain.columns import Columns, Coordinate
from sfumato.private.engines.spark import quiet
from sfumato.private.sources import open_source, pieces
from sfumato.private.sources.levels import level_counts
from sfumato.public.models import encode

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")]
NAMES = ["x", "y.z", "w`", "v", "u"]


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(pieces, "LEAST_VALUES", 1000)


def columns(n_features=2, unit=None):
    return Columns(tuple(map(Coordinate, NAMES[:n_features])), unit)


def written(folder, rows, people=None):
    """Three files, one of them with several row groups."""
    table = pa.table(dict(zip(NAMES, rows.T, strict=False)))
    if people is not None:
        table = table.append_column("person", pa.array(people))
    for i, (first, last) in enumerate([(0, 2000), (2000, 2000), (2000, len(rows))]):
        pq.write_table(table[first:last], folder / f"{i}.parquet", row_group_size=400)
    return folder


@pytest.mark.parametrize("name", ["CellCounts", "GroupedSums", "SparseCells"])
def test_aggregates_have_the_same_bits_as_in_files(spark, tmp_path, name):
    example = KINDS[name]
    d = example.n_features
    domain, folder = Domain.from_bounds((-1, 1), d), written(tmp_path, some_rows(n_features=d))
    engines = [open_source(X).engine(columns(d), domain) for X in (folder, on_spark(folder, spark))]
    assert engines[1].rows.n_tasks > 3
    assert same(*(engine.fold(example.aggregate) for engine in engines))


def test_people_are_capped_as_in_files(spark, tmp_path):
    folder = written(tmp_path, some_rows(), some_people())
    reading = columns(unit="person")
    engines = [open_source(X).engine(reading, capped(3)) for X in (folder, on_spark(folder, spark))]
    assert same(*(engine.fold(SUMS) for engine in engines))
    engines[1].close()


def test_no_row_passes_the_jvm(spark, tmp_path):
    folder = written(tmp_path, some_rows())
    rows = open_source(on_spark(folder, spark)).rows(columns())
    with quiet():
        frame = rows.mapped(NAMES[:2], unchanged, "x double, z double")
    assert "Range" in frame._jdf.queryExecution().toString()
    assert "Scan" not in frame._jdf.queryExecution().toString()
    assert frame.count() == 3000


def unchanged(batches):
    for batch in batches:
        yield batch.rename_columns(["x", "z"])


def test_text_levels_and_a_look_at_the_table(spark, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f};{'abc'[int(3 * x)]}" for x in rng.uniform(0, 1, 500)]
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text("\n".join(["age;job", *lines[250 * i : 250 * (i + 1)]]))
    here = scan_csv(tmp_path, delimiter=";")
    there, kind = on_spark(here, spark), Columns((Coordinate("job", "level"),))
    assert level_counts(open_source(there), kind) == level_counts(open_source(here), kind)
    bounds = {"age": (0, 1), "job": ["a", "b"]}
    assert str(check(there, bounds=bounds)) == str(check(here, bounds=bounds))
    models = [GridKMeans(3, bounds=bounds, random_state=0).fit(here)]
    models.append(GridKMeans(3, bounds=bounds, random_state=0).fit(here, spark=spark))
    assert encode(models[0].release_.model) == encode(models[1].release_.model)
    assert (models[0].labels_ == models[1].labels_).all()


def test_a_file_that_is_gone_is_told_in_one_line(spark, tmp_path):
    engine = open_source(on_spark(written(tmp_path, some_rows()), spark)).engine(
        columns(), Domain.from_bounds((-1, 1), 2)
    )
    (tmp_path / "2.parquet").unlink()
    assert error_of(engine).startswith("the files could not be read to the end")
