"""How columns are measured: a rule of public declarations."""

import datetime
import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.domain import Ball, Domain, Unit
from sfumato.domain.columns import read_bounds
from sfumato.domain.scaling import LARGEST_SCALED, Scaling
from sfumato.errors import ParameterError

DAY = datetime.date(2026, 1, 1)
YEAR = (DAY, datetime.date(2027, 1, 1))
DECADE = (DAY, datetime.date(2036, 1, 1))


def scaled(bounds, scaling=None, n_features=None):
    """Domain of named bounds, or of an array, with its measure."""
    scaling = scaling or Scaling()
    if isinstance(bounds, dict):
        columns, domain = read_bounds(bounds, None, Unit())
        return scaling.applied(domain, columns.coordinates)
    return scaling.applied(Domain.from_bounds(bounds, n_features))


def widths(domain):
    """Width of each column in measured units."""
    return (2 * domain.measured.half_width).tolist()


AS_THEY_ARE = {
    "arrays with one pair of bounds": ((0, 7), 5, "equally wide"),
    "columns of equal width": (([0, 10, 5, 1], [7, 17, 12, 8]), 4, "equally wide"),
    "a ball": (Ball(2.0, center=[0.0, 100.0]), 2, "a ball has one radius"),
    "a city": (([0, 0], [40, 30]), 2, "as on a map"),
    "a room": (([0, 0, 0], [4, 3, 2]), 3, "as on a map"),
    "a city by name": ({"east": (0, 40), "north": (0, 30)}, None, "as on a map"),
    "declared units": ({"x": (0, 40, "km"), "y": (0, 3, "km"), "z": (0, 1, "km")}, None, "all are in km"),
    "dates": ({"from": YEAR, "until": DECADE}, None, "all are in days"),
    "dates and days": ({"from": YEAR, "stay": (0, 30, "days")}, None, "all are in days"),
}


@pytest.mark.parametrize(("bounds", "d", "words"), AS_THEY_ARE.values(), ids=AS_THEY_ARE)
def test_columns_that_share_a_unit_are_measured_as_they_are(bounds, d, words):
    domain = scaled(bounds, n_features=d)
    assert not domain.measure
    assert domain.measured is domain
    assert words in domain.measure.words
    assert domain.measure.words.startswith("columns are measured as they are")


BY_BOUNDS = {
    "two columns far from alike": ({"age": (0, 100), "income": (0, 1e6)}, [1, 1]),
    "four columns of about the same width": ({c: (0, 10 + i) for i, c in enumerate("abcd")}, [1, 1, 1, 1]),
    "different units": ({"age": (0, 40, "years"), "way": (0, 30, "km")}, [1, 1]),
    "one unit declared, one not": ({"age": (0, 40, "years"), "way": (0, 30)}, [1, 1]),
    "a date and a number": ({"day": YEAR, "stay": (0, 300)}, [1, 1]),
    "some that share a unit": ({"x": (0, 40, "km"), "y": (0, 10, "km"), "age": (0, 100)}, [1, 0.25, 1]),
    "some dates": ({"from": YEAR, "until": (DAY, datetime.date(2028, 1, 1)), "n": (0, 9)}, [0.5, 1, 1]),
    "ranks": ({"edu": {"levels": ["low", "mid", "high"], "ordered": True}, "n": (0, 3)}, [1, 1]),
}


@pytest.mark.parametrize(("bounds", "expected"), BY_BOUNDS.values(), ids=BY_BOUNDS)
def test_other_columns_are_measured_by_their_bounds(bounds, expected):
    domain = scaled(bounds)
    assert widths(domain) == pytest.approx(expected, rel=1e-3)  # years differ by a day
    assert domain.measured.low == (0.0,) * len(expected)
    assert "in units of their bounds" in domain.measure.words


def test_adult_is_measured_by_its_bounds():
    """Six numeric columns of the table that most people try first: none drowns the others."""
    bounds = {"age": (17, 90), "fnlwgt": (0, 1_500_000), "education": (1, 16)}
    bounds |= {"gain": (0, 100_000), "loss": (0, 5000), "hours": (1, 99)}
    assert widths(scaled(bounds)) == pytest.approx([1.0] * 6)
    as_array = scaled(([17, 0, 1, 0, 0, 1], [90, 1_500_000, 16, 100_000, 5000, 99]), n_features=6)
    assert as_array.measure == scaled(bounds).measure


def test_the_words_name_the_units_that_share_a_step():
    words = scaled({"x": (0, 40, "km"), "y": (0, 10, "km"), "age": (0, 100)}).measure.words
    assert "those in km by the widest of their bounds" in words
    assert "widest" not in scaled({"t": {"cycle": "day"}, "age": (0, 100)}).measure.words


@pytest.mark.parametrize("n_levels", [1, 2, 3, 10, 50])
def test_different_levels_are_as_far_apart_as_the_ends_of_a_number(n_levels):
    domain = scaled({"age": (0, 120), "job": [f"job {i}" for i in range(n_levels)]})
    corners = domain.measure.of(np.hstack([np.zeros((n_levels + 1, 1)), np.eye(n_levels + 1)]))
    distances = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    apart = distances[~np.eye(n_levels + 1, dtype=bool)]
    assert apart == pytest.approx(1.0)
    ends = domain.measure.of(np.array([[0.0, *np.eye(n_levels + 1)[0]], [120.0, *np.eye(n_levels + 1)[0]]]))
    assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(1.0)


@pytest.mark.parametrize("cycle", [(0, 24), (-180.0, 180.0), "day", "week", "year"])
def test_a_cycle_is_a_circle_of_diameter_one(cycle):
    domain = scaled({"age": (0, 120), "hour": {"cycle": cycle}})
    angles = np.linspace(0, 2 * np.pi, 9)
    points = domain.measure.of(np.column_stack([np.zeros(9), np.cos(angles), np.sin(angles)]))
    assert np.linalg.norm(points, axis=1) == pytest.approx(0.5)


def test_a_unit_of_a_cycle_is_no_unit_of_a_number():
    """The cosine of a time of day is no length in days."""
    domain = scaled({"t": {"cycle": "day"}, "stay": (0, 0.1, "day"), "age": (0, 99)})
    assert widths(domain) == pytest.approx([1, 1, 1, 1])


def test_weights():
    bounds = {"age": (0, 100), "job": ["baker", "judge"], "hour": {"cycle": (0, 24)}}
    plain, heavy = scaled(bounds), scaled(bounds, Scaling(weights={"age": 2, "job": 0.5}))
    factors = np.array(widths(heavy)) / widths(plain)
    assert factors == pytest.approx([2, 0.5, 0.5, 0.5, 1, 1])
    assert "times their weights" in heavy.measure.words
    city = scaled(([0, 0], [40, 30]), Scaling(weights=[1, 3]), n_features=2)
    assert widths(city) == pytest.approx([40, 90])
    assert scaled((0, 1), Scaling(weights=[1, 1, 1]), n_features=3).measured.high == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "weights", [{"age": 0}, {"age": -1}, {"age": math.nan}, {"age": 1e7}, {"age": "much"}, {"size": 1}]
)
def test_weights_that_are_refused(weights):
    with pytest.raises(ParameterError, match="`weights` must"):
        scaled({"age": (0, 100), "stay": (0, 5000)}, Scaling(weights=weights))


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [[1, 2]], "ab", [1, None]])
def test_weights_of_an_array_that_are_refused(weights):
    with pytest.raises(ParameterError, match="`weights` must be from 1e-6 to 1e6, by column or 2 of them"):
        scaled((0, 1), Scaling(weights=weights), n_features=2)


def test_scale_none_takes_columns_as_they_are():
    domain = scaled({"age": (0, 100), "income": (0, 1e6)}, Scaling(None))
    assert not domain.measure
    assert "scale=None" in domain.measure.words
    levels = scaled({"age": (0, 100), "job": ["a", "b"]}, Scaling(None)).measured
    assert levels.high == (100.0, 1.0, 1.0, 1.0)


def test_a_length_keeps_columns_as_they_are():
    words = scaled(([0, 0], [100, 1e6]), Scaling(because="`cell` is a length"), 2).measure.words
    assert words == "columns are measured as they are: `cell` is a length"


@pytest.mark.parametrize("bounds", [((0, 1), 3), (([0, 3], [40, 33]), 2), (Ball(3.0), 2)])
def test_rows_of_columns_that_share_a_unit_are_admitted_to_the_last_bit(bounds):
    bounds, d = bounds
    plain = Domain.from_bounds(bounds, d)
    rows = np.random.default_rng(1).normal(scale=20, size=(100, d))
    assert (scaled(bounds, n_features=d).admitted(rows) == plain.admitted(rows)).all()


def test_admitted_rows_are_clipped_and_measured():
    domain = scaled({"age": (17, 90), "income": (0, 1e6)})
    rows = np.array([[17.0, 0.0], [90.0, 1e6], [-5.0, 2e6], [53.5, 5e5]])
    assert domain.admitted(rows).tolist() == [[0, 0], [1, 1], [0, 1], [0.5, 0.5]]
    assert domain.measured.admitted(domain.measure.of(rows)).tolist() == domain.admitted(rows).tolist()


def test_rows_that_are_left_out_change_no_other():
    """A row of NaN, or one outside that is dropped, and all others are measured as before."""
    domain = scaled({"age": (17, 90), "income": (0, 1e6)})
    rows = np.random.default_rng(0).uniform([0, 0], [120, 2e6], size=(5000, 2))
    whole = domain.admitted(rows)
    for odd in ([np.nan, 5.0], [20.0, np.inf]):
        assert (domain.admitted(np.vstack([rows, [odd]])) == whole).all()
    strict = replace(domain, outside="drop")
    inside = rows[strict.admits(rows)]
    assert (strict.admitted(rows) == domain.admitted(inside)).all()


def test_described_values_pass_as_they_are():
    domain = scaled({"age": (17, 90), "income": (0, 1e6)})
    rows = np.array([[17.0, 5e5, 3.0, np.nan], [np.nan, 0.0, 1.0, 1.0], [200.0, -1.0, -np.inf, 7.0]])
    found = domain.admitted(rows)
    assert found[:, :2].tolist() == [[0, 0.5], [1, 0]]
    assert np.array_equal(found[:, 2:], [[3.0, np.nan], [-np.inf, 7.0]], equal_nan=True)


def test_measured_rows_stay_within_the_measured_domain():
    """In floating point too: a row at a bound is at the measured one."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        low = rng.normal(scale=10.0 ** rng.integers(-3, 6), size=4)
        high = low + 10.0 ** rng.uniform(-3, 6, size=4)
        domain = scaled((low.tolist(), high.tolist()), n_features=4)
        rows = rng.uniform(low - 1, high + 1, size=(50, 4))
        rows[0], rows[1] = low, high
        found, space = domain.admitted(rows), domain.measured
        assert (found >= np.array(space.low)).all()
        assert (found <= np.array(space.high)).all()
        assert np.abs(np.array(space.high) - 1).max() < 1e-9


def test_bounds_that_are_too_large_to_be_scaled():
    with pytest.raises(ParameterError, match="use scale=None"):
        scaled(([0, 0], [10 * LARGEST_SCALED, 1]), n_features=2)
    assert not scaled(([0, 0], [10 * LARGEST_SCALED, 1]), Scaling(None), 2).measure
