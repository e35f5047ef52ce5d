"""Square cells, and metres on a map against the haversine formula."""

import math
import re

import numpy as np
import pytest

from sfumato.domain import Domain
from sfumato.errors import ParameterError
from sfumato.public.density.geometry import (
    MOST_DISTORTION,
    check_lengths,
    column_units,
    square_grid,
    widths_of,
)

CITIES = {
    "San Francisco": ((-122.6, 37.55), (-122.3, 37.85)),
    "Singapore": ((103.6, 1.2), (104.1, 1.5)),
    "the equator": ((-5.0, -5.0), (5.0, 5.0)),
    "Reykjavik": ((-22.1, 64.0), (-21.6, 64.2)),
    "France": ((-5.0, 42.0), (8.0, 51.0)),
}


def domain(low, high):
    return Domain.from_bounds((list(low), list(high)), len(low))


def haversine(one, other):
    """Great-circle distance in metres between points in degrees."""
    (x, y), (u, v) = np.radians(one), np.radians(other)
    h = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * 6_371_008.8 * math.asin(math.sqrt(h))


@pytest.mark.parametrize("name", CITIES)
def test_metres_on_a_map(name):
    low, high = map(np.array, CITIES[name])
    units = column_units("geo", domain(low, high))
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(300):
        one = rng.uniform(low, high)
        other = np.clip(one + rng.normal(scale=0.02, size=2), low, high)
        if (one != other).any():
            ratios.append(np.linalg.norm((one - other) * units) / haversine(one, other))
    stated = max(
        abs(math.cos(math.radians(y)) / math.cos(math.radians((low[1] + high[1]) / 2)) - 1)
        for y in (low[1], high[1])
    )
    assert stated <= MOST_DISTORTION
    assert 1 - 1.01 * stated - 1e-4 < min(ratios) <= max(ratios) < 1 / (1 - 1.01 * stated) + 1e-4


def test_middle_of_a_city_is_exact():
    low, high = CITIES["San Francisco"]
    middle = np.mean([low, high], axis=0)
    for step in ([1e-4, 0], [0, 1e-4], [1e-4, -1e-4]):
        flat = np.linalg.norm(np.array(step) * column_units("geo", domain(low, high)))
        assert flat == pytest.approx(haversine(middle, middle + step), rel=1e-5)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ((-181, 0), (0, 10)),
        ((0, 0), (181, 1)),
        ((0, -90), (1, -80)),
        ((0, 80), (1, 90)),
        ((0, 0), (10, 91)),
        ((0,), (1,)),
        ((0, -90, 0), (1, -80, 24)),
    ],
)
def test_what_is_not_a_map(low, high):
    with pytest.raises(ParameterError, match="longitude and latitude in degrees"):
        column_units("geo", domain(low, high))


def test_columns_beside_a_map_are_as_wide_as_it():
    low, high = CITIES["San Francisco"]
    plane = widths_of(domain(low, high), column_units("geo", domain(low, high)))
    beside = domain((*low, 0.0, -1.0), (*high, 24.0, 1.0))
    widths = widths_of(beside, column_units("geo", beside))
    np.testing.assert_allclose(widths[:2], plane)
    np.testing.assert_allclose(widths[2:], math.sqrt(plane.prod()))


def test_lengths_in_metres_need_a_map_alone():
    low, high = CITIES["San Francisco"]
    check_lengths("geo", domain(low, high), "cell")
    check_lengths("euclidean", domain((0, 0, 0), (1, 1, 1)), "cell")
    with pytest.raises(ParameterError, match=r"`radius` is in metres .* got 3 coordinates.*DensityTree"):
        check_lengths("geo", domain((*low, 0.0), (*high, 24.0)), "radius")


@pytest.mark.parametrize("latitudes", [(0, 60), (30, 60), (60, 70), (-60, -30), (84, 89)])
def test_latitudes_too_far_apart(latitudes):
    with pytest.raises(ParameterError, match=r"10% from the middle, got .*cut the map into regions"):
        column_units("geo", domain((0, latitudes[0]), (10, latitudes[1])))


@pytest.mark.parametrize("latitudes", [(0, 60), (30, 60), (60, 70), (-60, -30), (84, 89)])
def test_the_latitudes_that_the_error_names_are_allowed(latitudes):
    with pytest.raises(ParameterError, match="lengths are in degrees") as refused:
        column_units("geo", domain((0, latitudes[0]), (10, latitudes[1])))
    low, high = map(float, re.search(r"that is (\S+) to (\S+):", str(refused.value)).groups())
    assert column_units("geo", domain((0, low), (10, high))).shape == (2,)
    assert low < sum(latitudes) / 2 < high


def test_unknown_metric():
    with pytest.raises(ParameterError, match="`metric` must be 'euclidean' or 'geo', got 'cosine'"):
        column_units("cosine", domain((0, 0), (1, 1)))
    assert column_units("euclidean", domain((0, 0, 0), (1, 2, 3))).tolist() == [1, 1, 1]


@pytest.mark.parametrize("width", [0.1, 0.3, 1 / 3, 1.0, 7.0])
def test_square_grid_covers_the_domain(width):
    world = domain((-1.0, 2.0), (1.0, 5.0))
    units = np.array([1.0, 2.0])
    grid = square_grid(world, units, width)
    np.testing.assert_allclose(grid.widths * units, width)
    assert grid.low == world.low
    assert (np.array(grid.high) >= np.array(world.high) - 1e-8 * width).all()
    assert (np.array(grid.high) < np.array(world.high) + grid.widths).all()
    np.testing.assert_allclose(widths_of(world, units), [2, 6])


def test_a_width_that_divides_the_domain_makes_no_cell_more():
    for m in (1, 3, 10, 49, 1000):
        assert square_grid(domain((0.0,), (0.7,)), np.ones(1), 0.7 / m).shape == (m,)
