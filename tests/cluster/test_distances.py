"""What is read from noisy histograms of distances."""

import numpy as np
import pytest

from sfumato import Ball
from sfumato.cluster.distances import Reach, distance_edges
from sfumato.domain import Domain

EDGES = np.array([1.0, 2.0, 4.0, 8.0])


@pytest.mark.parametrize(
    ("noisy_counts", "share", "radius"),
    [
        ([10, 80, 5, 5, 0], 0.9, 2.0),
        ([10, 80, 5, 5, 0], 0.95, 4.0),
        ([10, 80, 5, 5, 0], 1.0, 8.0),
        ([-3, 100, -7, -2, 50], 0.9, 2.0),
        ([-3, -1, -7, -2, 50], 0.9, 8.0),
        ([0, 0, 0, 0, 0], 0.5, 8.0),
    ],
)
def test_the_radius_that_holds_a_share(noisy_counts, share, radius):
    assert Reach.read(np.array(noisy_counts), EDGES).holding(share) == radius


def test_the_mean_square_is_that_of_the_middles_of_bins():
    assert Reach.read(np.array([0, 30, 10, 0, 7]), EDGES).mean_square == pytest.approx(0.75 * 2 + 0.25 * 8)
    assert Reach.read(np.array([-5, 0, -1, 0, 7]), EDGES).mean_square == 0


def test_edges_end_at_the_diameter():
    assert distance_edges(Domain.from_bounds((0, 1), 4), 4, 15)[-1] == pytest.approx(2.0)
    edges = distance_edges(Domain.from_bounds(Ball(3.0), 4), 3, 16)
    assert len(edges) == 48
    assert edges[-1] == pytest.approx(6.0)
    assert edges[1:] / edges[:-1] == pytest.approx(2 ** (1 / 3))
