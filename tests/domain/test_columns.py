"""What bounds say about named columns, before a row is read."""

import datetime

import numpy as np
import pandas as pd
import pytest

from sfumato.domain import Ball, Unit
from sfumato.domain.columns import days, read_bounds
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
