"""Grids of square cells over a domain, in the units of its columns or in metres on a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from sfumato.domain import Domain, FloatArray, Grid
from sfumato.errors import ParameterError

Metric = Literal["euclidean", "geo"]

METRES_PER_DEGREE = 6_371_008.8 * math.pi / 180  # along a meridian of a sphere of the Earth's mean radius
MOST_DISTORTION = 0.1  # a limit on how much a flat map may stretch distances


def column_units(metric: str, domain: Domain) -> FloatArray:
    """Length of one unit of each column: 1, or the metres of a degree of longitude and of latitude.

    Degrees become metres by the projection that keeps lengths along the middle parallel and all meridians.
    Further columns, such as a time, have no metres: each is as wide as the map. All depends only on the
    bounds, which are public.
    """
    if metric == "euclidean":
        return np.ones(domain.n_features)
    if metric != "geo":
        raise ParameterError(f"`metric` must be 'euclidean' or 'geo', got {metric!r}")
    low, high = domain.low[:2], domain.high[:2]
    is_map = len(low) == 2 and low[0] >= -180 and high[0] <= 180 and low[1] > -90 and high[1] < 90
    if not is_map:
        raise ParameterError(
            "with `metric`='geo' the first two columns must be longitude and latitude in degrees, in this "
            f"order, got bounds {low}, {high}"
        )
    latitude = low[1] / 2 + high[1] / 2
    middle = math.cos(math.radians(latitude))
    parallels = [math.cos(math.radians(edge)) / middle for edge in (low[1], high[1])]
    if max(abs(parallel - 1) for parallel in parallels) > MOST_DISTORTION:
        reach = _reach(latitude)
        raise ParameterError(
            f"`bounds` must span latitudes over which a degree of longitude varies by at most "
            f"{MOST_DISTORTION:.0%} from the middle, got {low[1]:g} to {high[1]:g}. Around {latitude:g} that "
            f"is {latitude - reach:.1f} to {latitude + reach:.1f}: cut the map into regions, or leave out "
            "`metric`, and lengths are in degrees"
        )
    metres, widths = METRES_PER_DEGREE * np.array([middle, 1.0]), 2 * domain.half_width
    side = math.sqrt(np.prod(metres * widths[:2]))
    return np.concatenate([metres, side / widths[2:]])


def check_lengths(metric: str, domain: Domain, name: str) -> None:
    """Raise if a parameter is a length in metres and the table has columns beside the map."""
    if metric == "geo" and domain.n_features > 2:
        raise ParameterError(
            f"`{name}` is in metres with `metric`='geo', so the table must have longitude and latitude "
            f"alone, got {domain.n_features} coordinates. Use DensityTree without `cell` for a map with "
            "other columns"
        )


def _reach(latitude: float) -> float:
    """Degrees to either side of a latitude over which a map in metres is not too distorted, rounded down."""
    middle = math.radians(abs(latitude))
    poleward = math.acos((1 - MOST_DISTORTION) * math.cos(middle)) - middle
    widest = (1 + MOST_DISTORTION) * math.cos(middle)
    equatorward = middle - math.acos(widest) if widest < 1 else math.inf
    return math.floor(10 * math.degrees(min(poleward, equatorward))) / 10


def check_longitude_first(names: Sequence[str]) -> None:
    """Raise if names of columns say that latitude comes first. In many cities bounds do not show it."""
    first, second = [name.lower() for name in names[:2]] if len(names) > 1 else ("", "")
    if "lat" in first and ("lon" in second or "lng" in second):
        raise ParameterError(
            f"with `metric`='geo' longitude must be the first column, got {names[0]!r} and then "
            f"{names[1]!r}. Write the bounds of {names[1]!r} first"
        )


def widths_of(domain: Domain, units: FloatArray) -> FloatArray:
    """Width of the domain along each column, as a length."""
    return 2 * domain.half_width * units


def log_cells(sides: FloatArray, width: float) -> float:
    """Logarithm of the number of square cells that cover a box. The number itself may overflow."""
    if not width:
        return math.inf
    return math.fsum(max(0.0, math.log(side) - math.log(width)) for side in sides)


def least_width(sides: FloatArray, most_cells: float) -> float:
    """Least width of square cells with which at most `most_cells` cover a box."""
    high = math.log(float(sides.max()))  # at which one cell covers all
    low = high - math.log(most_cells)
    while high - low > 1e-6:
        middle = (low + high) / 2
        if math.fsum(max(0.0, math.log(side) - middle) for side in sides) > math.log(most_cells):
            low = middle
        else:
            high = middle
    return math.exp(high)


def rounded_up(number: float) -> float:
    """The number rounded up to three digits, for a message."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return math.ceil(number / unit * (1 - 1e-12)) * unit


def square_grid(domain: Domain, units: FloatArray, width: float) -> Grid:
    """Grid of square cells from the domain's lower corner. It may extend past the far sides."""
    shape = tuple(max(1, math.ceil(side / width - 1e-9)) for side in widths_of(domain, units))
    steps = width / units
    high = tuple(float(a + m * step) for a, m, step in zip(domain.low, shape, steps, strict=True))
    return Grid(domain.low, high, shape)
