"""Named columns of any type become coordinates, row by row."""

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import GridKMeans, Release
from sfumato.domain import Unit
from sfumato.domain.columns import Columns, Coordinate, described_columns, read_bounds
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError, ParameterError
from sfumato.private.reading import read_names, read_people, read_rows

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


def test_a_person_that_a_dictionary_lists_as_null_is_missing():
    who = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array([None, "ada", "bob"]))
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "who": who})
    ids, rows = read_people(Columns((Coordinate("a"),), "who", "drop"), table)
    assert ids.to_pylist() == ["ada", "bob"]
    assert rows[:, 0].tolist() == [2.0, 4.0]


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


def coordinates_of(bounds, missing="drop"):
    return read_bounds(bounds, None, Unit(), missing)[0]


@pytest.mark.parametrize(
    "values", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
@pytest.mark.parametrize(
    ("levels", "texts", "places"),
    [
        (["1", 1], ["1", "1.0", "x"], [0, 1, 2]),
        ([1, "1"], ["1", "1.0", "x"], [0, 0, 2]),
        ([True, "true"], ["true", "True", "TRUE"], [0, 0, 0]),
        ([2**53, 2**53 + 1], [str(2**53), str(2**53 + 1), "1"], [0, 0, 2]),
        (["a", "b"], ["b", "never heard of", "a"], [1, 2, 0]),
        (["other"], ["other", "another", "other"], [0, 1, 0]),
    ],
    ids=str,
)
def test_a_row_has_one_level_even_if_it_is_spelled_like_two(levels, texts, places, values):
    rows = read_rows(coordinates_of({"a": levels}), pa.table({"a": pa.array(texts).cast(values)}))
    assert rows.tolist() == np.eye(len(levels) + 1)[places].tolist()


def test_labels_of_a_level_called_other():
    assert coordinates_of({"a": ["x"]}).labels == ("a=x", "a=other")
    assert coordinates_of({"a": ["other"]}).labels == ("a=other", "a=any other")


@pytest.mark.parametrize(
    ("fill", "place"), [("b", 1), ("other", 2), ("a", 0)], ids=["a level", "other", "the first"]
)
def test_what_stands_in_for_a_missing_level(fill, place):
    columns = coordinates_of({"a": ["a", "b"]}, {"a": fill})
    rows = read_rows(columns, pa.table({"a": ["a", None, "NA", "c"]}))
    assert rows.tolist() == np.eye(3)[[0, place, place, 2]].tolist()


def test_ranks():
    ordered = {"levels": ["low", "mid", "high"], "ordered": True}
    table = pa.table({"a": ["high", "low", "no degree", None, "mid"]})
    assert read_rows(coordinates_of({"a": ordered}), table).tolist() == [[2], [0], [1]]
    filled = read_rows(coordinates_of({"a": ordered}, {"a": "mid"}), table)
    assert filled.tolist() == [[2], [0], [1], [1], [1]]
    numbers = {"levels": [30, 10, 20], "ordered": True}
    assert read_rows(coordinates_of({"a": numbers}), pa.table({"a": [10, 20, 30]})).tolist() == [
        [1],
        [2],
        [0],
    ]


def test_cycles_of_numbers():
    table = pa.table({"a": [0.0, 6.0, 12.0, -6.0, 30.0, np.nan, np.inf, 1e300]})
    rows = read_rows(coordinates_of({"a": {"cycle": (0, 24)}}), table)
    expected = [[1, 0], [0, 1], [-1, 0], [0, -1], [0, 1]]
    assert rows[:5] == pytest.approx(np.array(expected, dtype=float), abs=1e-12)
    assert len(rows) == 6  # a huge number is on the cycle, somewhere; what is no number is missing
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)
    shifted = read_rows(coordinates_of({"a": {"cycle": (6, 30)}}), table.slice(0, 2))
    assert shifted == pytest.approx(np.array([[0, -1], [1, 0]], dtype=float), abs=1e-12)


@pytest.mark.parametrize(
    ("cycle", "time", "place"),
    [
        ("day", datetime.datetime(2026, 5, 4, 6), 0.25),
        ("day", datetime.datetime(1950, 1, 1, 18), 0.75),
        ("week", datetime.datetime(2026, 11, 16), 0.0),  # a Monday
        ("week", datetime.datetime(2026, 11, 19, 12), 0.5),
        ("year", datetime.datetime(1970, 1, 1), 0.0),
        ("year", datetime.datetime(2026, 7, 2), 0.5),
    ],
    ids=str,
)
def test_cycles_of_times(cycle, time, place):
    angle = 2 * np.pi * place
    for values in (pa.array([time]), pa.array([time.isoformat()])):
        (row,) = read_rows(coordinates_of({"a": {"cycle": cycle}}), pa.table({"a": values}))
        assert row == pytest.approx([np.cos(angle), np.sin(angle)], abs=0.02 if cycle == "year" else 1e-9)


def test_a_cycle_is_read_the_same_wherever_a_value_stands():
    """Bit by bit: a vectorised cosine may round otherwise in the last places of a block."""
    values = np.random.default_rng(0).uniform(-1e6, 1e6, 1001)
    columns = coordinates_of({"a": {"cycle": (0, 7)}})
    whole = read_rows(columns, pa.table({"a": values}))
    for i in range(0, 1001, 50):
        assert (read_rows(columns, pa.table({"a": values[i : i + 1]})) == whole[i]).all()
        assert (read_rows(columns, pa.table({"a": values[i:]})) == whole[i:]).all()


def test_what_stands_in_for_a_missing_time():
    columns = coordinates_of({"a": {"cycle": (0, 24)}}, {"a": 6})
    rows = read_rows(columns, pa.table({"a": [6.0, None]}))
    assert rows[1] == pytest.approx(rows[0], abs=1e-12)
    with pytest.raises(ParameterError, match="must be a number"):
        coordinates_of({"a": {"cycle": (0, 24)}}, {"a": NOON})
    with pytest.raises(ParameterError, match="must be a time"):
        coordinates_of({"a": {"cycle": "day"}}, {"a": 6})


@pytest.mark.parametrize(
    "values",
    [["0", "true", "1", "FALSE"], [False, True, True, False], [0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0]],
    ids=str,
)
def test_booleans_are_described_however_they_are_written(values):
    ((read_as, _),) = described_columns({"a": bool})
    assert read(pa.array(values), read_as) == [0, 1, 1, 0]


def test_described_columns_follow_and_leave_no_row_out():
    told = {
        "b": ["x", "y"],
        "c": (0, 1),
        "d": {"cycle": (0, 7)},
        "e": {"levels": ["l", "h"], "ordered": True},
    }
    described = tuple(coordinate for coordinate, _ in described_columns(told))
    columns = replace(coordinates_of({"a": (0, 1)}, "error"), described=described)
    table = pa.table(
        {
            "a": [0.1, 0.2, 0.3, 0.4],
            "b": ["y", "z", None, "NA"],
            "c": [0.5, 99.0, None, np.inf],
            "d": [8.0, -1.0, None, np.nan],
            "e": ["h", "l", "?", None],
        }
    )
    rows = read_rows(columns, table)
    nan = np.nan
    expected = [
        [0.1, 1, 0.5, 1, 1],
        [0.2, 2, 99, 6, 0],
        [0.3, nan, nan, nan, 2],
        [0.4, nan, np.inf, nan, nan],
    ]
    assert rows == pytest.approx(np.array(expected), nan_ok=True)


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


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_spellings_of_missing_values_in_a_part_of_an_array(kind):
    part = pa.array(["header", "a", "NA", None, "bc"]).cast(kind)[1:]
    found = read_names("who", part, TextFormat(missing_values=("NA",)))
    found.validate(full=True)  # PyArrow before 24 can shift the texts of such a part
    assert found.to_pylist() == ["a", None, None, "bc"]
