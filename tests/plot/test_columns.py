import datetime

import numpy as np
import pytest
from tests.plot.test_bars import centres
from tests.plot.test_bars import release as plain_release
from tests.report.mixed import WARDS, release

from sfumato.domain import Unit
from sfumato.domain.columns import Coordinate, read_bounds
from sfumato.plot.columns import Column, columns_of, day, direction, duration, is_map, moment, relabelled

YEAR = (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))


@pytest.fixture(scope="module")
def found():
    return {column.source: column for column in columns_of(release(has_profiles=False))}


def test_a_category_and_a_cycle_are_one_column_each(found):
    kinds = {name: column.kind for name, column in found.items()}
    assert kinds == {
        "age": "number",
        "admitted": "date",
        "ward": "category",
        "severity": "rank",
        "hour": "cycle",
        "insured": "category",
    }
    assert found["ward"].levels == (*WARDS, "other")
    assert [len(column.at) for column in found.values()] == [1, 1, 51, 1, 2, 3]
    assert [at for column in found.values() for at in column.at] == list(range(59))


def test_centres_in_words(found):
    shown = release(has_profiles=False)
    center, stds = shown.model.cluster_centers[1], shown.model.center_stds[1]
    assert found["age"].in_words(center, stds) == "40.0 ± 2.0 years"
    assert found["age"].in_words(center, None) == "40.0 years"
    assert found["admitted"].in_words(center, stds) == "10 Feb 2024 ± 7.2 days"
    assert found["ward"].in_words(center, stds).startswith("Ward 1 71% ± 2")
    assert found["ward"].in_words(center, None) == "Ward 1 71%"
    assert found["severity"].in_words(center, None) == "mild (1.5 of 3)"
    assert found["insured"].in_words(center, None) == "yes 60%, no 30%, other 10%"
    assert found["hour"].in_words(center, None) == "06:00"
    assert found["hour"].in_words(center, stds) == "06:00 ± 11 minutes"
    assert found["hour"].in_words(0 * center, stds) == "all around"


def test_shares_are_a_distribution(found):
    for center in release().model.cluster_centers:
        shares = found["ward"].shares(center)
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)
    np.testing.assert_array_equal(found["ward"].shares(np.full(59, -0.1)), 0)


@pytest.mark.parametrize(("std", "is_hidden"), [(1.0, False), (12.0, False), (13.0, True), (91.0, True)])
def test_noise_of_a_quarter_of_the_width_hides_a_column(found, std, is_hidden):
    stds = np.full(59, 1e-3)
    stds[0] = std
    assert found["age"].is_hidden(stds) == is_hidden  # 1.96 * 12.75 = 25
    assert not found["age"].is_hidden(None)
    assert not found["ward"].is_hidden(stds)


def test_a_flag_is_a_share():
    column = Column("insured", "insured", "flag", (0,), 0.0, 1.0)
    assert column.in_words(np.array([0.37]), np.array([0.01])) == "37% ± 2 true"
    assert column.in_words(np.array([0.03]), np.array([0.02])) == "under 7% true"
    assert column.between == "false to true"


def test_bounds_in_words(found):
    assert found["age"].between == "0 to 100 years"
    assert found["admitted"].between == "1 Jan 2024 to 31 Dec 2024"
    assert found["severity"].between == "mild to severe"
    assert found["ward"].between == "51 levels"
    assert found["hour"].between == "0 to 24"


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (0, 400, "1 Jan 1970"),
        (19784.5, 400, "2 Mar 2024"),
        (19784.5, 3, "2 Mar 2024 12:00"),
        (-1, 400, "31 Dec 1969"),
    ],
)
def test_dates(value, width, text):
    assert day(value, value - width / 2, value + width / 2) == text


@pytest.mark.parametrize(
    ("days", "text"),
    [(40, "40 days"), (1, "1 day"), (2.34, "2.3 days"), (0.5, "12 hours"), (1 / 1440, "1 minute")],
)
def test_durations(days, text):
    assert duration(days) == text


@pytest.mark.parametrize(
    ("turn", "cycle", "text"),
    [
        (0.25, "day", "06:00"),
        (0.0, "week", "Monday"),
        (0.99, "week", "Sunday"),
        (0.0, "year", "1 January"),
        (0.5, (0.0, 24.0), "12:00"),
        (0.5, (0.0, 360.0), "180.0"),
    ],
)
def test_moments(turn, cycle, text):
    assert moment(turn, cycle) == text


def test_directions():
    assert direction(np.array([0.0, 0.5])) == pytest.approx((0.25, 0.5))
    assert direction(np.array([0.0, -1.0])) == pytest.approx((0.75, 1.0))


def test_arrays_have_columns_without_names():
    shown = plain_release(centres([3, 4]))
    assert [column.name for column in columns_of(shown)] == ["column 1", "column 2"]
    assert is_map(shown)


@pytest.mark.parametrize(
    ("bounds", "is_flat"),
    [
        ({"x": (0, 1), "y": (0, 1)}, True),
        ({"x": (0, 1), "day": YEAR}, True),
        ({"hour": {"cycle": (0, 24)}}, False),
        ({"sort": ["a"]}, False),
        ({"x": (0, 1), "rank": {"levels": ["a", "b"], "ordered": True}}, False),
    ],
)
def test_two_coordinates_are_not_always_a_map(bounds, is_flat):
    columns, domain = read_bounds(bounds, None, Unit())
    assert domain.n_features == 2
    shown = plain_release(centres([3, 4]))
    object.__setattr__(shown, "reading", columns)
    object.__setattr__(shown, "columns", columns.labels)
    object.__setattr__(shown, "domain", domain)
    assert is_map(shown) == is_flat


def test_other_names(found):
    shown = release(has_profiles=False)
    named = relabelled(shown, {"ward": "First ward", "hour": "Time"})
    assert named[2] == "First ward=Ward 0"
    object.__setattr__(shown, "columns", named)
    assert [column.name for column in columns_of(shown)] == [
        "age",
        "admitted",
        "First ward",
        "severity",
        "Time",
        "insured",
    ]
    assert [column.source for column in columns_of(shown)] == list(found)


def test_plain_coordinates_of_one_name_stay_apart():
    shown = plain_release(centres([3, 4]))
    object.__setattr__(shown, "columns", ("x", "x"))
    assert [column.at for column in columns_of(shown)] == [(0,), (1,)]
    assert str(Coordinate("x")) == "x"
