"""Outlines of many places at once: the same rings as of each place alone (their shapes: test_spans.py)."""

import numpy as np
import pytest

from sfumato.domain import MOST_CELLS
from sfumato.public.density import outlines
from sfumato.public.density.outlines import outlines_of


def groups_of(shape, n_groups, seed, overlap):
    """Random sets of cells, disjoint or not."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, n_groups, shape[0] * shape[1])
    if overlap:
        return [np.flatnonzero(rng.random(len(labels)) < 0.4) for _ in range(n_groups)]
    return [np.flatnonzero(labels == i) for i in range(n_groups)]


def as_lists(found):
    return [[[ring.tolist() for ring in rings] for rings in polygons] for polygons in found]


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_all_at_once_or_one_by_one(overlap, seed, monkeypatch):
    shape = (9, 7)
    groups = groups_of(shape, 4, seed, overlap)
    alone = [outlines_of(shape, [cells])[0] for cells in groups]
    assert as_lists(outlines_of(shape, groups)) == as_lists(alone)
    monkeypatch.setattr(outlines, "MOST_CELLS", 100)  # numbers of cells in all groups would not fit
    assert as_lists(outlines_of(shape, groups)) == as_lists(alone)


def test_the_largest_map_fits():
    side = 2**31
    (polygons,) = outlines_of((side, side), [np.array([MOST_CELLS - 1])])
    corners = [[side - 1, side - 1], [side, side - 1], [side, side], [side - 1, side], [side - 1, side - 1]]
    assert as_lists([polygons]) == [[[corners]]]
