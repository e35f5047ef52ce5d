"""Files cut into pieces: together, the pieces are the table, wherever and however they are read."""

import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from sfumato import on_spark, scan_csv
from sfumato.domain.columns import Columns, Coordinate
from sfumato.errors import DataError, ParameterError
from sfumato.private.sources import open_source, pieces
from sfumato.private.sources.pieces import Pieces, cuts

COLUMNS = Columns((Coordinate("x"), Coordinate("y")), unit="day")


def table(first, n_rows):
    numbers = np.arange(first, first + n_rows, dtype=np.float64)
    return pa.table({"y": -numbers, "other": numbers, "x": numbers})


def write_csv(one, path):
    rows = zip(*(one[name].to_pylist() for name in one.column_names), strict=True)
    path.write_text("\n".join([",".join(one.column_names), *(",".join(map(str, row)) for row in rows)]))


WRITERS = {
    "parquet": lambda one, path: pq.write_table(one, path, row_group_size=7),
    "feather": lambda one, path: feather.write_feather(one, str(path)),
    "csv": write_csv,
}


def written(folder, kind, lengths=(30, 0, 1, 50)):
    """Files in folders that name a day; one is in none."""
    first = 0
    for i, n_rows in enumerate(lengths):
        place = folder / f"day={i % 2}" if i else folder
        place.mkdir(exist_ok=True)
        WRITERS[kind](table(first, n_rows), place / f"{i}.{kind}")
        first += n_rows
    return folder


def read(batches, names):
    arrays = [pa.table([batch.column(name) for name in names], names) for batch in batches]
    return pa.concat_tables(arrays).sort_by("x").to_pydict()


def by_tasks(source, n_cores):
    """What all tasks read, each with its own copy of what travels."""
    found = Pieces.of(source, COLUMNS, n_cores)
    n_tasks, names = len(found.cuts) - 1, COLUMNS.source_names
    sent = pickle.dumps(found)
    parts = [batch for task in range(n_tasks) for batch in pickle.loads(sent).batches(names, task)]
    return read(parts, names), n_tasks


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("least", [1, 40, 10**6])
def test_all_pieces_are_the_table(tmp_path, monkeypatch, kind, least):
    monkeypatch.setattr(pieces, "LEAST_VALUES", least)
    source = open_source(written(tmp_path, kind))
    found, n_tasks = by_tasks(source, n_cores=2)
    assert found == read(source.batches(COLUMNS), COLUMNS.source_names)
    assert n_tasks == 1 if least == 10**6 else n_tasks > 1


def test_other_folders_than_that_of_the_driver(tmp_path, monkeypatch):
    (tmp_path / "home=1").mkdir()  # not a column: it is above the table
    (tmp_path / "home=1" / "table").mkdir()
    written(tmp_path / "home=1" / "table", "parquet")
    monkeypatch.chdir(tmp_path / "home=1")
    source = open_source("table")
    cut = pickle.dumps(Pieces.of(source, COLUMNS, 1))
    monkeypatch.chdir(tmp_path)
    found = read(pickle.loads(cut).batches(COLUMNS.source_names, 0), COLUMNS.source_names)
    assert len(found["x"]) == 81
    assert not os.path.isabs(source.files.paths[0])  # noqa: PTH117


@pytest.mark.parametrize("sizes", [[], [0, 0], [5], [2**30] * 3, [1, 2**31, 1], [2**24] * 100])
@pytest.mark.parametrize("n_cores", [None, 1, 3])
def test_cuts_cover_all_parts_once(sizes, n_cores):
    found = cuts(np.array(sizes, dtype=np.int64), n_cores)
    assert found[0] == 0
    assert found[-1] == len(sizes)
    assert len(found) >= 2
    assert (np.diff(found) > 0).all() or not sizes


def test_files_are_checked_by_their_footers(tmp_path):
    written(tmp_path, "parquet")
    pq.write_table(pa.table({"x": [1], "y": [2.0]}), tmp_path / "z.parquet")
    with pytest.raises(DataError, match="column 'x' must be of type double in every file"):
        Pieces.of(open_source(tmp_path), COLUMNS, 1)


def test_damage_is_told_without_values(tmp_path):
    folder = written(tmp_path, "parquet", (1000,))
    cut = Pieces.of(open_source(folder), Columns((Coordinate("x"),)), 1)
    data = bytearray((folder / "0.parquet").read_bytes())
    data[4:2000] = b"\0" * 1996
    (folder / "0.parquet").write_bytes(data)
    with pytest.raises(DataError, match="could not be read to the end"):
        list(pieces._on_pieces(cut, ["x"], lambda batches: batches, iter([pa.record_batch({"id": [0]})])))


def test_what_may_be_on_spark():
    with pytest.raises(ParameterError, match="`X` must be a path or `scan_csv`"):
        on_spark(np.zeros((3, 2)), None)
    with pytest.raises(ParameterError, match="`spark` must be a SparkSession, got str"):
        on_spark(scan_csv("trips.csv"), "local")
