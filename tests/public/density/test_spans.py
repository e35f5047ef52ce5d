from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.errors import ParameterError
from sfumato.public.density.outlines import _walk
from sfumato.public.density.spans import Span

HOLE_IN_HOLE = np.array([[max(abs(i - 4), abs(j - 4)) % 2 == 0 for j in range(9)] for i in range(9)])
NAMED = {
    "one cell": np.array([[0, 0], [0, 1]]),
    "whole grid": np.ones((4, 7)),
    "one row": np.ones((1, 9)),
    "checkerboard": np.indices((6, 7)).sum(axis=0) % 2,
    "hole in hole": HOLE_IN_HOLE,
    # One part whose ends meet at a corner: the outer ring alone would touch itself there.
    "loop closed by a corner": np.array([[1, 1, 1], [1, 0, 1], [1, 1, 0]]),
    "holes that meet at a corner": np.array([[1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]]),
    "hole cut off by corners": 1 - np.eye(5),
}


def span_of(mask, **fields):
    """Span of the cells where `mask` is set, on cells of unequal sides and an offset."""
    mask = np.asarray(mask, dtype=bool)
    low = -3.0 + np.arange(mask.ndim)
    high = low + np.array(mask.shape) * (0.5 + np.arange(mask.ndim))
    grid = Grid(tuple(low.tolist()), tuple(high.tolist()), mask.shape)
    span = Span(3, 1234.4, 1179.6, 1288.0, 0.95, grid, np.flatnonzero(mask).astype(np.int64))
    return replace(span, **fields)


def random_masks():
    rng = np.random.default_rng(0)
    masks = [rng.random((9, 8)) < rng.uniform(0.2, 0.95) for _ in range(150)]
    return [mask for mask in masks if mask.any()]


def in_units(span, points):
    """Points as multiples of cells from the lower corner."""
    units = (np.asarray(points) - np.array(span.grid.low)) / span.grid.widths
    np.testing.assert_allclose(units, np.round(units), atol=1e-9)
    return np.round(units).astype(np.int64)


def painted(span):
    """How often each cell is covered by the boxes."""
    covered = np.zeros(span.grid.shape, dtype=np.int64)
    for low, high in in_units(span, span.boxes):
        covered[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] += 1
    return covered


def signed_area(ring):
    x, y = ring.T
    return float(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2


def is_inside(points, rings):
    """Even-odd rule over all rings of a list."""
    inside = np.zeros(len(points), dtype=bool)
    for ring in rings:
        for (x1, y1), (x2, y2) in pairwise(ring):
            if y1 != y2:  # the others are parallel to the ray
                assert x1 == x2
                inside ^= ((y1 > points[:, 1]) != (y2 > points[:, 1])) & (points[:, 0] < x1)
    return inside


def check_ring(ring):
    np.testing.assert_array_equal(ring[0], ring[-1])
    assert len(ring) >= 5
    assert len(np.unique(ring[:-1], axis=0)) == len(ring) - 1  # at most once at each corner
    steps = np.diff(ring, axis=0)
    assert ((steps == 0).sum(axis=1) == 1).all()  # along one column
    is_vertical = steps[:, 0] == 0
    assert (is_vertical != np.roll(is_vertical, 1)).all()  # a turn at every corner: none is collinear


def check_no_corner_within_a_side(span, ring):
    """Together with distinct corners: the ring neither crosses nor touches itself."""
    passed = []
    for a, b in zip(in_units(span, ring[:-1]), in_units(span, ring[1:]), strict=True):
        length = np.abs(b - a).max()
        passed += [tuple(a + (b - a) // length * i) for i in range(length)]
    assert len(set(passed)) == len(passed)


def n_parts(mask):
    """Parts connected by sides, by flooding."""
    left, parts = set(zip(*np.nonzero(mask), strict=True)), 0
    while left:
        parts += 1
        front = [left.pop()]
        while front:
            i, j = front.pop()
            near = {(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)} & left
            left -= near
            front += near
    return parts


def check_polygons(mask):
    span, mask = span_of(mask), np.asarray(mask, dtype=bool)
    assert len(span.polygons) == n_parts(mask)
    for outer, *holes in span.polygons:
        assert signed_area(outer) > 0
        assert all(signed_area(hole) < 0 for hole in holes)
    rings = [ring for polygon in span.polygons for ring in polygon]
    for ring in rings:
        check_ring(ring)
        check_no_corner_within_a_side(span, ring)
    assert sum(map(signed_area, rings)) == pytest.approx(span.volume)
    around = np.array(span.grid.low) - 1, np.array(span.grid.high) + 1
    points = np.random.default_rng(1).uniform(*around, size=(200, 2))
    is_in_box = ((points >= span.grid.low) & (points < span.grid.high)).all(axis=1)
    expected = is_in_box & mask.ravel()[span.grid.index(points)]
    np.testing.assert_array_equal(is_inside(points, rings), expected)
    one_by_one = sum(is_inside(points, polygon).astype(int) for polygon in span.polygons)
    np.testing.assert_array_equal(one_by_one, expected)


@pytest.mark.parametrize("name", NAMED)
def test_polygons_of_named_shapes(name):
    check_polygons(NAMED[name])


def test_polygons_of_random_shapes():
    for mask in random_masks():
        check_polygons(mask)


def test_walk_lists_the_cycles_of_a_permutation():
    permutation = np.random.default_rng(0).permutation(300)
    following = np.full(400, -1)
    following[:300] = permutation
    walked, firsts = np.empty(300, dtype=np.int64), np.empty(300, dtype=np.int64)
    firsts = firsts[: _walk(following, walked, firsts)]
    expected, seen = [], set()
    for start in range(300):
        cycle, side = [], start
        while side not in seen:
            seen.add(side)
            cycle.append(side)
            side = int(permutation[side])
        expected += [cycle] if cycle else []
    assert [cycle.tolist() for cycle in np.split(walked, firsts[1:])] == expected


@pytest.mark.parametrize(
    ("name", "rings"),
    [
        ("one cell", [1]),
        ("whole grid", [1]),
        ("checkerboard", [1] * 21),
        ("hole in hole", [1, 2, 2]),
        ("loop closed by a corner", [2]),
        ("holes that meet at a corner", [3]),
    ],
)
def test_number_of_rings(name, rings):
    assert sorted(len(polygon) for polygon in span_of(NAMED[name]).polygons) == rings


def test_rings_have_no_more_points_than_corners():
    (polygon,) = span_of(np.ones((40, 30))).polygons
    (ring,) = polygon
    np.testing.assert_allclose(ring, [[-3, -2], [17, -2], [17, 43], [-3, 43], [-3, -2]])


def test_boxes_make_up_random_spans():
    rng = np.random.default_rng(0)
    for shape in [(30,), (9, 8), (5, 4, 6), (2, 3, 2, 3, 2, 2)]:
        for share in (0.05, 0.5, 0.9, 1.0):
            mask = rng.random(shape) < share
            mask.flat[0] = True
            np.testing.assert_array_equal(painted(span_of(mask)), mask)


@pytest.mark.parametrize(("shape", "n_boxes"), [((5,), 1), ((4, 5), 1), ((3, 4, 2), 1), ((2,) * 6, 1)])
def test_whole_grids_are_one_box(shape, n_boxes):
    span = span_of(np.ones(shape))
    assert span.boxes.shape == (n_boxes, 2, len(shape))
    np.testing.assert_array_equal(span.boxes[0], [span.grid.low, span.grid.high])


def test_boxes_are_few():
    assert len(span_of(NAMED["hole in hole"]).boxes) == 1 + 4 + 4
    mask = np.zeros((4, 4, 4))
    mask[1:3, :, 2:] = mask[3, 3, 3] = 1
    assert len(span_of(mask).boxes) == 2


@pytest.mark.parametrize("shape", [(2**31, 2**31), (1, 2**62), (2**62, 1)])
def test_huge_grids_are_not_enumerated(shape):
    grid = Grid((0.0, 0.0), tuple(map(float, shape)), shape)
    n = grid.n_cells
    span = Span(0, 1.0, 0.0, 2.0, 0.95, grid, np.array([0, 1, n // 2, n - 1], dtype=np.int64))
    assert len(span.boxes) == len(span.polygons) == 3  # the cells 0 and 1 are neighbours either way
    np.testing.assert_array_equal(span.extent, [grid.low, grid.high])


def test_huge_grid_of_six_columns():
    grid = Grid((0.0,) * 6, (1.0,) * 6, (1024,) * 6)
    corner = np.stack(np.meshgrid(*[[0, 1]] * 6, indexing="ij")).reshape(6, -1)
    cells = np.sort(np.ravel_multi_index(tuple(corner + 1022), grid.shape))
    span = Span(0, 1.0, 0.0, 2.0, 0.95, grid, cells)
    np.testing.assert_array_equal(span.boxes, [[[1022 / 1024] * 6, [1.0] * 6]])
    assert span.volume == pytest.approx((2 / 1024) ** 6)


def test_borders_of_the_grid_do_not_wrap():
    mask = np.zeros((3, 3))
    mask[0, 2] = mask[1, 0] = 1  # consecutive in C order, far apart in space
    span = span_of(mask)
    assert len(span.polygons) == len(span.boxes) == 2


def test_centroid_and_extent():
    mask = np.zeros((6, 5))
    mask[1, 1] = mask[3, 1] = 1
    span = span_of(mask)
    np.testing.assert_allclose(span.centroid, [-3 + 2.5 * 0.5, -2 + 1.5 * 1.5])
    np.testing.assert_allclose(span.extent, [[-3 + 0.5, -2 + 1.5], [-3 + 2.0, -2 + 3.0]])
    centers = span.grid.centers()[span.cells]
    np.testing.assert_allclose(span.centroid, centers.mean(axis=0))


@pytest.mark.parametrize("d", [1, 3])
def test_polygons_need_two_columns(d):
    with pytest.raises(ParameterError, match=r"2 columns, got .* columns. Use `boxes`"):
        _ = span_of(np.ones((2,) * d)).polygons


def test_in_words():
    span = span_of(np.ones((9, 5)))
    assert str(span) == "span 3: about 1,234 rows (1,180 to 1,288, 95%), 45 cells"
    small = replace(span, count=0.2, count_low=-0.2, count_high=1.0, cells=span.cells[:1])
    assert str(small) == "span 3: about 0 rows (0 to 1, 95%), 1 cell"


@pytest.mark.parametrize(
    "cells",
    [
        np.array([], dtype=np.int64),
        np.array([1, 0]),
        np.array([1, 1]),
        np.array([-1, 1]),
        np.array([8, 9]),
        np.array([0.0, 1.0]),
        np.array([[0, 1]]),
    ],
    ids=["empty", "unsorted", "repeated", "negative", "outside", "float", "matrix"],
)
def test_cells_are_checked(cells):
    with pytest.raises(ParameterError, match="`cells` must be"):
        span_of(np.ones((3, 3)), cells=cells)


def test_footprints_cover_what_is_below_them():
    rng = np.random.default_rng(5)
    for _ in range(20):
        mask = rng.random((4, 3, 2, 3)) < 0.1
        mask[0, 0, 0, 0] = True
        grid = Grid((0.0, 1.0, -1.0, -1.0), (4.0, 4.0, 1.0, 1.0), mask.shape)
        span = Span(2, 10.0, 5.0, 15.0, 0.95, grid, np.flatnonzero(mask))
        plane = span.footprint
        assert (plane.label, plane.count) == (2, 10.0)
        assert (plane.grid.low, plane.grid.high) == ((0.0, 1.0), (4.0, 4.0))
        np.testing.assert_array_equal(plane.cells, np.flatnonzero(mask.any(axis=(2, 3))))
        assert plane.footprint is plane
