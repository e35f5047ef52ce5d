"""Named columns of any type become coordinates, row by row."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import GridKMeans, Release
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError, ParameterError
from sfumato.private.reading import read_people, read_rows

SECRET = "Ada Lovelace"
NOON = datetime.datetime(1970, 1, 3, 12)
NUMBERS = [
    pa.int8(),
    pa.uint8(),
    pa.int16(),
    pa.uint16(),
    pa.int32(),
    pa.uint32(),
    pa.int64(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(30, 2),
]


def read(values, coordinate, missing="error"):
    batch = pa.table({coordinate.column: values})
    return read_rows(Columns((coordinate,), missing=missing), batch)[:, 0].tolist()


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_numbers_of_any_width(kind):
    assert read(pa.array([0, 1, None, 7]).cast(kind), Coordinate("a"), "drop") == [0.0, 1.0, 7.0]


def test_booleans_are_numbers():
    assert read(pa.array([True, False]), Coordinate("a")) == [1.0, 0.0]


@pytest.mark.parametrize("kind", [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")], ids=str)
def test_times_are_days(kind):
    assert read(pa.array([NOON]).cast(kind), Coordinate("a", "date")) == [2.5]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates_are_days(kind):
    assert read(pa.array([NOON.date()]).cast(kind), Coordinate("a", "date")) == [2.0]


def test_times_with_a_zone_are_instants():
    zone = datetime.timezone(datetime.timedelta(hours=6))
    noon = NOON.replace(tzinfo=zone)
    assert read(pa.array([noon], pa.timestamp("us", tz="+06:00")), Coordinate("a", "date")) == [2.25]


@pytest.mark.parametrize(
    ("values", "level"),
    [
        (pa.array(["a", "b"]), "a"),
        (pa.array(["a", "b"]).dictionary_encode(), "a"),
        (pa.array(["a", "b"], pa.large_string()), "a"),
        (pa.array([1, 2], pa.int8()), 1),
        (pa.array([True, False]), True),
        (pa.array(["a", "never heard of"]), "a"),
    ],
    ids=str,
)
def test_levels_are_indicators(values, level):
    assert read(values, Coordinate("a", "level", level)) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("values", "coordinate"),
    [
        (pa.array([NOON]), Coordinate("a")),
        (pa.array([[1.5]]), Coordinate("a")),
        (pa.array([7]), Coordinate("a", "date")),
        (pa.array([[SECRET]]), Coordinate("a", "level", "b")),
        (pa.array([7]), Coordinate("a", "level", "b")),
    ],
    ids=str,
)
def test_other_types_are_refused_without_a_value(values, coordinate):
    with pytest.raises(DataError, match=r"column 'a' must hold .*, got") as error:
        read(values, coordinate)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("hole", [None, np.nan, np.inf, -np.inf])
def test_missing(hole):
    table = pa.table({"a": pa.array([1.0, hole, 3.0]), "b": pa.array([0.5, 0.5, None])})
    columns = Columns((Coordinate("a"), Coordinate("b")))
    with pytest.raises(DataError, match="missing='drop'"):
        read_rows(columns, table)
    dropped = read_rows(Columns(columns.coordinates, missing="drop"), table)
    assert dropped.tolist() == [[1.0, 0.5]]


def test_huge_numbers_are_not_missing():
    assert read(pa.array([1e308, 1e308]), Coordinate("a")) == [1e308, 1e308]


def test_rows_of_nobody_are_missing():
    table = pa.table({"a": [1.0, 2.0, None], "who": ["x", None, "y"]})
    columns = Columns((Coordinate("a"),), "who", "drop")
    ids, rows = read_people(columns, table)
    assert (ids.to_pylist(), rows.tolist()) == (["x"], [[1.0]])
    with pytest.raises(DataError, match="must name a person"):
        read_people(Columns((Coordinate("a"),), "who"), table.slice(0, 2))


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(9, 2), pa.bool_(), pa.date32()], ids=str)
def test_people_are_named_by_text_or_integers(kind):
    table = pa.table({"a": [1.0], "who": pa.array([None], kind)})
    with pytest.raises(DataError, match="must hold text or integers to name people"):
        read_people(Columns((Coordinate("a"),), "who", "drop"), table)


TEXTS = [
    (Coordinate("a"), ["1", " 0.5 ", "1e3", "TRUE", "x", "", None], [1, 0.5, 1000, 1]),
    (Coordinate("a", "date"), ["1970-01-03", "1970-01-03T12:00", "03.01.1970", None], [2, 2.5]),
    (Coordinate("a", "level", "1"), ["1", "1.0", "NA", None], [1, 0]),
    (Coordinate("a", "level", "NA"), ["NA", "1", "", None], [1, 0]),
    (Coordinate("a", "level", 1), ["1", "1.0", "2", "x", None], [1, 1, 0, 0]),
    (Coordinate("a", "level", True), ["True", "TRUE", "false", "1", None], [1, 1, 0]),
    (Coordinate("a", fill=7.0), ["1", "x", None], [1, 7, 7]),
]


@pytest.mark.parametrize(("coordinate", "texts", "numbers"), TEXTS, ids=str)
def test_text_is_read_value_by_value(coordinate, texts, numbers):
    """What does not parse as declared is missing, and is left out."""
    batch = pa.table({"a": pa.array(texts, pa.string())})
    columns = Columns((coordinate,), missing="drop", text=TextFormat())
    assert read_rows(columns, batch)[:, 0].tolist() == numbers


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_mixed_table_from_fit_to_a_saved_release(frame, tmp_path, quick):
    rng = np.random.default_rng(0)
    table = frame(
        {
            "note": [SECRET] * 500,
            "age": rng.integers(0, 90, 500).astype(np.int8),
            "ward": rng.choice(["icu", "er", "other"], 500),
            "day": np.datetime64("2026-01-01", "ms") + rng.integers(0, 10**10, 500),
        }
    )
    dates = (datetime.date(2026, 1, 1), datetime.date(2026, 5, 1))
    bounds = {"age": (0, 100), "ward": ["icu", "er"], "day": dates}
    model = GridKMeans(3, bounds=bounds, random_state=0, max_cells=300).fit(table)
    assert model.feature_names_in_.tolist() == ["age", "ward=icu", "ward=er", "ward=other", "day"]
    assert model.n_features_in_ == 5
    labels = model.predict(table)
    assert (labels == model.labels_).all()
    assert len(labels) == 500
    loaded = Release.load(model.release_.save(tmp_path / "release.json"))
    assert loaded.reading == model.release_.reading
    assert (loaded.predict(table) == labels).all()
    assert SECRET not in (tmp_path / "release.json").read_text()


def test_missing_rows_of_arrays_and_frames(rows, quick):
    holed = np.vstack([rows, [[np.nan, 0.0]], [[0.0, np.inf]]])
    model = GridKMeans(3, bounds=(-1, 1), random_state=0)
    with pytest.raises(DataError):
        model.fit(holed)
    whole = model.fit(rows)
    for table in (holed, pd.DataFrame(holed, columns=["a", "b"])):
        dropped = GridKMeans(3, bounds=(-1, 1), random_state=0, missing="drop").fit(table)
        assert (dropped.cluster_centers_ == whole.cluster_centers_).all()
        assert (dropped.labels_[:-2] == whole.labels_).all()
        assert dropped.labels_[-2:].tolist() == [-1, -1]
        assert (dropped.predict(table) == dropped.labels_).all()


def test_names_are_needed_where_they_are_used(rows):
    with pytest.raises(ParameterError, match="named columns"):
        GridKMeans(3, bounds={"a": (0, 1)}).fit(rows)
    with pytest.raises(ParameterError, match="named columns"):
        GridKMeans(3, bounds=(0, 1), unit="who").fit(rows)
    with pytest.raises(ParameterError, match="`missing` must be"):
        GridKMeans(3, bounds=(0, 1), missing="ignore").fit(rows)


def test_columns_of_pandas_may_be_called_by_their_numbers():
    frame = pd.DataFrame({0: [0.0, 0.25], "x": ["a", "b"]})
    model = GridKMeans(1, bounds={"0": (0, 1)}, random_state=0).fit(frame)
    assert model.release_.columns == ("0",)
    assert model.labels_.tolist() == [0, 0]
