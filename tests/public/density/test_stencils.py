"""Stencils against balls around sampled locations, and neighbours against distances between corners."""

from itertools import product

import numpy as np
import pytest

from sfumato.public.density.dbscan import stencils_of
from sfumato.public.density.stencils import Stencils, adjacent_offsets, near_offsets

WORLDS = [(d, eta) for d, etas in {1: (4, 3, 1), 2: (4, 2.5, 1), 3: (4, 3), 4: (4,)}.items() for eta in etas]


def box(reach, d):
    return np.array(list(product(range(-reach, reach + 1), repeat=d)))


def cells_met(location, radius, offsets):
    """Cells that the open ball around a location meets."""
    nearest = np.clip(location, offsets, offsets + 1)
    return ((nearest - location) ** 2).sum(axis=1) < radius**2


def parts_of(stencils):
    """Lower corner and stencil, as a set, of each part."""
    corners = [
        np.array(c) / stencils.parts for c in product(range(stencils.parts), repeat=stencils.n_features)
    ]
    return [(c, {tuple(o) for o in offsets}) for c, offsets in zip(corners, stencils.offsets(), strict=True)]


@pytest.mark.parametrize(("d", "eta"), WORLDS)
def test_stencils_are_the_cells_that_balls_around_a_part_meet(d, eta):
    """Distances to a cell are least at a corner or beside it, so corners and middles see every cell."""
    stencils = stencils_of(d, 1.0, eta)
    offsets = box(stencils.reach + 1, d)
    assert stencils.box() == (2 * stencils.reach + 1) ** d
    for corner, stencil in parts_of(stencils):
        ends = [corner + np.array(e) / stencils.parts for e in product((0, 0.5, 1), repeat=d)]
        met = np.any([cells_met(end, stencils.radius, offsets) for end in ends], axis=0)
        assert {tuple(o) for o in offsets[met]} == stencil


@pytest.mark.parametrize(("d", "eta"), WORLDS)
def test_no_ball_around_a_location_leaves_its_stencil(d, eta):
    stencils = stencils_of(d, 1.0, eta)
    rng, offsets = np.random.default_rng(d), box(stencils.reach + 1, d)
    for corner, stencil in parts_of(stencils):
        for location in corner + rng.random((30, d)) / stencils.parts:
            met = offsets[cells_met(location, stencils.radius, offsets)]
            assert {tuple(o) for o in met} <= stencil


@pytest.mark.parametrize(("d", "eta"), WORLDS)
def test_farthest_row_of_a_stencil(d, eta):
    stencils = stencils_of(d, 1.0, eta)
    corners = np.array(list(product((0, 1), repeat=d)))
    most = 0.0
    for corner, stencil in parts_of(stencils):
        locations = corner + corners / stencils.parts
        rows = (np.array(list(stencil))[:, None] + corners).reshape(-1, d)
        most = max(most, np.linalg.norm(rows[:, None] - locations, axis=2).max())
    assert stencils.farthest() == pytest.approx(most, rel=1e-12)


def test_sizes():
    assert stencils_of(1, 1.0, 4).size() == 3
    assert Stencils(2, np.sqrt(2) * (1 - 1e-9)).size() < 21  # of the paper, for whole cells
    assert Stencils(4, 2 * (1 - 1e-9)).parts == 1
    whole = [o for o in product(range(-2, 3), repeat=2) if sum(max(abs(c) - 1, 0) ** 2 for c in o) < 2 - 1e-6]
    assert len(whole) == 21
    assert set().union(*(stencil for _, stencil in parts_of(stencils_of(2, 1.0, 4)))) == set(whole)


@pytest.mark.parametrize("radius", [0.5, 1.0, 1.5, 2.83, 4.0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_near_offsets(d, radius):
    corners = np.array(list(product((0, 1), repeat=d)))
    wanted = set()
    for offset in box(int(radius) + 2, d):
        apart = np.linalg.norm((offset + corners)[:, None] - corners, axis=2).min()
        wanted |= {tuple(offset)} if apart < radius and offset.any() else set()
    found = near_offsets(d, radius)
    assert {tuple(o) for o in found} == wanted
    assert len(found) == len(wanted)
    lengths = (found**2).sum(axis=1)
    assert (np.diff(lengths) >= 0).all()
    assert (lengths[: 2 * d] == 1).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_adjacent_offsets(d):
    found = adjacent_offsets(d)
    assert len(found) == 3**d - 1 == len(np.unique(found, axis=0))
    assert np.abs(found).max() == 1
    assert (np.diff((found**2).sum(axis=1)) >= 0).all()
