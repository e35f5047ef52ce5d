"""Rows along public directions: the same bits, whether they are projected once or for every fold."""

import numpy as np
import pytest

from sfumato.domain import Ball, Domain
from sfumato.domain.partitions import Voronoi
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.engines.projected import LESS, ProjectedEngine, projected
from sfumato.projection import orthonormal

D, P = 12, 3
ROWS = np.random.default_rng(0).normal(size=(700, D))


def engine(rows=ROWS, outside="clip"):
    return MemoryEngine(rows, Domain.from_bounds((-1.0, 1.0), D, outside=outside))


def state(seen, p=P):
    centers = np.random.default_rng(1).normal(size=(4, p))
    return seen.fold(GroupedSums(Voronoi(centers), centers, np.full(4, 2.0)))


@pytest.mark.parametrize("outside", ["clip", "drop"])
@pytest.mark.parametrize("narrower", [None, Domain.from_bounds(Ball(0.7), D)])
def test_images_in_memory_give_the_same_bits(outside, narrower):
    directions = orthonormal(P, D, 0)
    held = projected(engine(outside=outside), directions, narrower)
    assert isinstance(held, MemoryEngine)
    assert held.n_features == P
    assert (state(held) == state(ProjectedEngine(engine(outside=outside), directions, narrower))).all()


def test_large_images_are_not_kept():
    directions = orthonormal(D // LESS + 1, D, 0)
    seen = projected(engine(), directions, None)
    assert isinstance(seen, ProjectedEngine)
    assert seen.n_features == len(directions)


def test_no_rows_have_no_images():
    held = projected(engine(ROWS[:0]), orthonormal(P, D, 0), None)
    assert held.fold(RowCount()) == 0
