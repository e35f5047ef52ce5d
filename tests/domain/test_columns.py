"""What bounds say about named columns, before a row is read."""

import datetime

import numpy as np
import pandas as pd
import pytest

from sfumato.domain import Ball, Unit
from sfumato.domain.blocks import Block
from sfumato.domain.columns import Described, days, described_columns, read_bounds
from sfumato.domain.levels import with_levels
from sfumato.errors import ParameterError

NOON = datetime.datetime(1970, 1, 3, 12)


def test_dates_are_days_since_1970():
    assert days(NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=6)))) == 2.25
    assert days(NOON) == days(np.datetime64(NOON)) == days(pd.Timestamp(NOON)) == 2.5
    assert days(NOON.date()) == 2.0


def test_bounds_by_name():
    bounds = {"when": (NOON.date(), NOON), "kind": ["a", "b"], "age": (0, 120), "smokes": (False, True)}
    columns, domain = read_bounds(bounds, ["age", "when", "smokes", "id", "kind"], Unit("id", 3))
    assert columns.labels == ("when", "kind=a", "kind=b", "kind=other", "age", "smokes")
    assert columns.source_names == ["when", "kind", "age", "smokes", "id"]
    assert domain.low == (2.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert domain.high == (2.5, 1.0, 1.0, 1.0, 120.0, 1.0)


def test_bounds_for_all():
    columns, domain = read_bounds(Ball(2.0), ["x", "id", "y"], Unit("id"))
    assert (columns.labels, domain.n_features, domain.radius) == (("x", "y"), 2, 2.0)


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        ({}, "at least one column"),
        ({1: (0, 1)}, "as a string"),
        ({"age": (0, 1, 2)}, "unit of column 'age' must be a text"),
        ({"age": (0, 1, "m", 2)}, "tuple"),
        ({"age": 3}, "tuple"),
        ({"age": (0, NOON)}, "two numbers or two dates"),
        ({"age": ("a", "b")}, "two numbers or two dates"),
        ({"age": []}, "distinct"),
        ({"age": ["a", "a"]}, "distinct"),
        ({"age": [None]}, "distinct"),
        ({"age": [[]]}, "distinct"),
        ({"age": (0, 10**400)}, "two numbers or two dates"),
        ({"age": (np.datetime64("NaT"), NOON)}, "must be finite"),
        ({"age": (1, 0)}, "low < high"),
        ({"id": (0, 1)}, "the `unit` column"),
        ({"weight": (0, 1)}, "'weight' must be in the table"),
        (None, "must be given"),
    ],
    ids=str,
)
def test_bad_bounds(bounds, word):
    with pytest.raises(ParameterError, match=word):
        read_bounds(bounds, ["age", "id"], Unit("id"))


ORDERED = {"levels": ["low", "mid", "high"], "ordered": True}


@pytest.mark.parametrize(
    ("value", "labels", "low", "high", "kinds"),
    [
        ((0, 40, "km"), ["a"], [0], [40], ["number"]),
        (bool, ["a"], [0], [1], ["number"]),
        (["x", "y"], ["a=x", "a=y", "a=other"], [0, 0, 0], [1, 1, 1], ["level", "level", "other"]),
        ({"levels": ["x"]}, ["a=x", "a=other"], [0, 0], [1, 1], ["level", "other"]),
        ({"levels": "private"}, ["a=other"], [0], [1], ["other"]),
        ([True, False], ["a=True", "a=False", "a=other"], [0] * 3, [1] * 3, ["level", "level", "other"]),
        (ORDERED, ["a"], [0], [2], ["rank"]),
        ({"cycle": (0, 24)}, ["a (cos)", "a (sin)"], [-1, -1], [1, 1], ["cycle", "cycle"]),
        ({"cycle": "week"}, ["a (cos)", "a (sin)"], [-1, -1], [1, 1], ["cycle", "cycle"]),
    ],
    ids=str,
)
def test_kinds_of_columns(value, labels, low, high, kinds):
    columns, domain = read_bounds({"a": value}, ["a"], Unit())
    assert list(columns.labels) == labels
    assert (list(domain.low), list(domain.high)) == (low, high)
    assert [coordinate.kind for coordinate in columns.coordinates] == kinds


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ((0, 40, 7), "must be a text such as 'km'"),
        ({}, "must be a list"),
        ({"level": ["a"]}, "must have 'levels'"),
        ({"levels": ["a", "b"], "ordered": 1}, "must have 'levels'"),
        ({"levels": ["a"], "ordered": True}, "must be two or more"),
        ({"levels": "private", "ordered": True}, "must be a list"),
        ({"levels": "ab"}, "must be a list"),
        ({"levels": ["a"], "cycle": (0, 1)}, "must have 'levels'"),
        ({"cycle": (0, 0)}, "must be two numbers where it starts and ends"),
        ({"cycle": (24, 0)}, "must be two numbers"),
        ({"cycle": (0, np.inf)}, "must be two numbers"),
        ({"cycle": (0, 1, 2)}, "must be two numbers"),
        ({"cycle": "month"}, "one of day, week, year"),
        ({"cycle": None}, "must be two numbers"),
        ({"cycle": (1e18, 1e18 + 1)}, "must be two numbers"),
        ([1, True], "distinct"),
        (int, "must be a tuple"),
    ],
    ids=str,
)
def test_bad_kinds_of_columns(value, word):
    with pytest.raises(ParameterError, match=word):
        read_bounds({"a": value}, ["a"], Unit())


@pytest.mark.parametrize(
    ("value", "fill", "expected"),
    [
        (["x", "y"], "y", [0, 1, 1]),  # the last is 1 less what the levels have
        (["x", "y"], "other", [0, 0, 1]),
        (ORDERED, "mid", [1]),
        ((0, 9), 3, [3]),
        ({"cycle": (0, 24)}, 12, [-1, 0]),
        ({"cycle": "day"}, NOON, [-1, 0]),
        ((NOON.date(), NOON), NOON, [2.5]),
    ],
    ids=str,
)
def test_values_that_stand_in_for_missing_ones(value, fill, expected):
    columns, _ = read_bounds({"a": value}, ["a"], Unit(), {"a": fill})
    assert [coordinate.fill for coordinate in columns.coordinates] == pytest.approx(expected, abs=1e-12)
    assert columns.missing == "drop"


@pytest.mark.parametrize(
    ("value", "fill", "word"),
    [
        (["x"], "y", "one of its levels or 'other'"),
        (ORDERED, "other", "one of its levels, got"),
        ((0, 9), "x", "must be a number"),
        ((0, 9), np.nan, "must be finite"),
        ((NOON.date(), NOON), 3, "must be a date"),
        ({"cycle": (0, 24)}, "x", "must be a number"),
        ({"cycle": "day"}, 0.5, "must be a time"),
    ],
    ids=str,
)
def test_values_that_cannot_stand_in(value, fill, word):
    with pytest.raises(ParameterError, match=word):
        read_bounds({"a": value}, ["a"], Unit(), {"a": fill})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ((0, 40, "km"), Described("a", "number", 0, 40, unit="km")),
        (bool, Described("a", "level", levels=(False, True))),
        ((NOON.date(), NOON), Described("a", "date", 2.0, 2.5)),
        (["x", "y"], Described("a", "level", levels=("x", "y"))),
        ({"levels": "private"}, Described("a", "level")),
        (ORDERED, Described("a", "level", levels=("low", "mid", "high"), ordered=True)),
        ({"cycle": (6, 30)}, Described("a", "cycle", 6, 30)),
        ({"cycle": "day"}, Described("a", "cycle", 0, 1, unit="day")),
    ],
    ids=str,
)
def test_what_profiles_know_about_a_column(value, told):
    ((read, found),) = described_columns({"a": value})
    assert found == told
    assert read.column == "a"
    assert read.part == ""
    assert read.kind == {"level": "code"}.get(told.kind, told.kind)


def test_levels_that_were_found():
    columns, domain = read_bounds({"n": (0, 1), "a": {"levels": "private"}, "m": (0, 2)}, None, Unit())
    columns, domain = with_levels(columns, domain, {"a": ["x", "other"]})
    assert columns.labels == ("n", "a=x", "a=other", "a=any other", "m")
    assert domain.blocks == (Block("simplex", 1, 4),)
    assert domain.high == (1.0, 1.0, 1.0, 1.0, 2.0)
