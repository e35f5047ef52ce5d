"""Categories and cycles in a domain: simplices and discs, where means of rows lie."""

from itertools import product

import numpy as np
import pytest

from sfumato.domain import Domain, Unit
from sfumato.domain.blocks import Block, lies_within, moved_into, nearest_in_simplex
from sfumato.domain.columns import read_bounds
from sfumato.domain.scaling import Scaling
from sfumato.errors import ParameterError

MIXED = {"age": (0, 100), "job": ["a", "b", "c"], "hour": {"cycle": (0, 24)}, "ward": ["x"]}


def mixed(bounds=None, scaling=None):
    columns, domain = read_bounds(bounds or MIXED, None, Unit())
    return (scaling or Scaling()).applied(domain, columns.coordinates)


def corners_of(domain):
    """Rows at the corners: a level of each category, ends of numbers, 8 points of a cycle."""
    parts, last = [], 0
    for block in (*domain.blocks, None):
        stop = domain.n_features if block is None else block.start
        parts += [[[domain.low[j]], [domain.high[j]]] for j in range(last, stop)]
        if block is None:
            break
        last = block.stop
        if block.kind == "simplex":
            parts.append((domain.high[block.start] * np.eye(block.size)).tolist())
        else:
            angles = np.linspace(0, 2 * np.pi, 9)[:-1]
            circle = domain.high[block.start] * np.column_stack([np.cos(angles), np.sin(angles)])
            parts.append(circle.tolist())
    return np.array([np.concatenate(part) for part in product(*parts)])


def test_blocks_of_bounds():
    domain = mixed()
    assert domain.blocks == (Block("simplex", 1, 5), Block("disc", 5, 7), Block("simplex", 7, 9))
    assert domain.measured.blocks == domain.blocks
    assert mixed({"edu": {"levels": ["a", "b"], "ordered": True}, "smokes": bool}).blocks == ()


def test_two_categories_side_by_side_are_two_blocks():
    assert mixed({"a": ["x", "y"], "b": ["x"]}).blocks == (Block("simplex", 0, 3), Block("simplex", 3, 5))


@pytest.mark.parametrize("scaling", [Scaling(), Scaling(None), Scaling(weights={"job": 3, "age": 0.5})])
def test_no_row_is_farther_from_the_middle_than_the_reach(scaling):
    domain = mixed(scaling=scaling).measured
    distances = np.linalg.norm(corners_of(domain) - domain.middle, axis=1)
    assert distances.max() <= domain.reach * (1 + 1e-12)
    assert distances.max() == pytest.approx(domain.reach)


def test_the_middle_is_a_point_of_each_simplex():
    domain = mixed().measured
    assert lies_within(domain.blocks, domain.middle[None], np.array(domain.high))
    without = Domain.from_bounds((0, 4), 3)
    assert (without.middle == without.midpoint).all()


@pytest.mark.parametrize("n_levels", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("total", [1.0, 0.7071067811865476, 3.0])
def test_nearest_points_of_a_simplex(n_levels, total):
    """Against what makes them nearest: the same amount is taken from all that stay positive."""
    rng = np.random.default_rng(n_levels)
    for scale in (1e-3, 1.0, 100.0):
        points = rng.normal(scale=scale, size=(50, n_levels))
        found = nearest_in_simplex(points, total)
        assert (found >= 0).all()
        assert found.sum(axis=1) == pytest.approx(total, rel=1e-9)
        taken = points - found
        for row, own in zip(taken, found, strict=True):
            assert np.ptp(row[own > 0]) <= 1e-9 * scale
            assert (row[own == 0] <= row[own > 0].max() + 1e-9 * scale).all()
    inside = total * rng.dirichlet([1.0] * n_levels, size=20)
    assert nearest_in_simplex(inside, total) == pytest.approx(inside, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_clipped_points_are_means_of_rows(seed):
    domain = mixed().measured
    points = np.random.default_rng(seed).normal(scale=3, size=(200, domain.n_features))
    found = domain.clip(points)
    assert lies_within(domain.blocks, found, np.array(domain.high))
    disc = found[:, 5:7]
    assert (np.linalg.norm(disc, axis=1) <= domain.high[5] * (1 + 1e-12)).all()
    assert (found >= np.array(domain.low)).all()
    assert (found <= np.array(domain.high)).all()
    assert domain.clip(found) == pytest.approx(found, abs=1e-12)


def test_clipping_does_not_change_the_points_it_is_given():
    domain, points = mixed().measured, np.full((2, 9), 5.0)
    moved_into(domain.blocks, points, np.array(domain.high))
    assert (points == 5.0).all()


def test_rows_are_within():
    domain = mixed().measured
    rows = corners_of(domain)
    assert lies_within(domain.blocks, rows, np.array(domain.high))
    assert domain.clip(rows) == pytest.approx(rows, abs=1e-12)


@pytest.mark.parametrize("off", [2e-12, -2e-12, 0.1, -1.0])
def test_points_that_are_not_within(off):
    domain = mixed().measured
    point = domain.middle[None].copy()
    point[0, 1] += off
    assert not lies_within(domain.blocks, point, np.array(domain.high))
    point[0, 2] -= off
    assert lies_within(domain.blocks, point, np.array(domain.high)) == (abs(off) < 0.17)


def test_a_sum_that_is_right_does_not_make_up_for_less_than_nothing():
    domain = mixed().measured
    point = domain.middle[None].copy()
    point[0, 1:5] = np.array([1.0, 0.5, -0.5, 0.0]) * domain.high[1]
    assert not lies_within(domain.blocks, point, np.array(domain.high))


@pytest.mark.parametrize("seed", range(20))
def test_balls_hold_all_rows_that_may_be_in_a_box(seed):
    """Boxes as a tree cuts them: a half-space of one coordinate after the other."""
    rng, domain = np.random.default_rng(seed), mixed().measured
    rows = corners_of(domain)
    low, high = np.array(domain.low), np.array(domain.high)
    inside = np.ones(len(rows), dtype=bool)
    for _ in range(rng.integers(0, 6)):
        j, at = rng.integers(domain.n_features), rng.uniform(0.05, 0.95)
        cut = low[j] + at * (high[j] - low[j])
        if rng.random() < 0.5:
            high[j] = cut
            inside &= rows[:, j] < cut
        else:
            low[j] = cut
            inside &= rows[:, j] >= cut
    middles, radii = domain.balls(low[None], high[None])
    assert lies_within(domain.blocks, middles, np.array(domain.high))
    assert (np.linalg.norm(rows[inside] - middles[0], axis=1) <= radii[0] * (1 + 1e-12)).all()


def test_balls_without_blocks_are_half_a_diagonal():
    domain = Domain.from_bounds((0, 4), 3)
    middles, radii = domain.balls(np.zeros((1, 3)), np.array([[4.0, 2.0, 4.0]]))
    assert middles.tolist() == [[2, 1, 2]]
    assert radii.tolist() == [3.0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 50])
def test_the_ratio_of_norms_is_a_bound_and_nearly_reached(size):
    """Brute force over origins: corners, middles of faces, and random points of the simplex."""
    rng, block = np.random.default_rng(size), Block("simplex", 0, size)
    faces = [np.pad(np.full(n, 1 / n), (0, size - n)) for n in range(1, size + 1)]
    origins = np.concatenate([np.eye(size), faces, rng.dirichlet([0.3] * size, 500)])
    worst = 0.0
    for origin in origins:
        moves = np.eye(size) - origin
        norms = np.linalg.norm(moves, axis=1)
        moved = norms > 1e-12
        worst = max([worst, *(np.abs(moves[moved]).sum(axis=1) / norms[moved])])
    assert worst**2 <= block.squared_l1 * (1 + 1e-9)
    if size > 1:
        assert worst**2 == pytest.approx(4 * (1 - 1 / size))


def test_the_ratio_of_norms_of_a_disc_is_that_of_two_columns():
    assert Block("disc", 3, 5).squared_l1 == 2


@pytest.mark.parametrize(
    "blocks",
    [
        (Block("simplex", 0, 2), Block("simplex", 1, 3)),
        (Block("simplex", 2, 4),),
        (Block("simplex", 1, 1),),
        (Block("disc", 0, 2),),
        (Block("simplex", -1, 1),),
    ],
)
def test_blocks_that_do_not_fit(blocks):
    with pytest.raises(ParameterError, match="`blocks` must be apart and fit their bounds"):
        Domain((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), blocks=blocks)


def test_blocks_that_do_not_fit_their_bounds():
    for low, high, block in [
        ((0.0, 0.0), (1.0, 2.0), Block("simplex", 0, 2)),
        ((-1.0, 0.0), (1.0, 1.0), Block("simplex", 0, 2)),
        ((-1.0, -1.0), (1.0, 2.0), Block("disc", 0, 2)),
        ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0), Block("disc", 0, 3)),
    ]:
        with pytest.raises(ParameterError, match="`blocks` must be"):
            Domain(low, high, blocks=(block,))
