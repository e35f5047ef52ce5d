"""What is read from noisy histograms of distances."""

import numpy as np
import pytest

from sfumato import Ball
from sfumato.domain import Domain
from sfumato.public.reach import Reach, distance_edges

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


@pytest.mark.parametrize(
    ("noisy_counts", "share", "radius"),
    [
        ([10, 80, 10, 0, 0], 0.9, 2.0),  # as `holding`, on the border of a bin
        ([10, 80, 10, 0, 0], 0.5, 2.0**0.5),  # half of the bin from 1 to 2, in octaves
        ([10, 80, 10, 0, 0], 0.95, 2.0**1.5),
        ([10, 80, 10, 0, 0], 0.05, 1.0),  # nothing is known below the first edge
        ([100, 0, 0, 0, 0], 0.9, 1.0),
        ([-3, 100, -7, -2, 50], 0.75, 2.0**0.75),
        ([0, 0, 0, 0, 0], 0.5, 8.0),
        ([-3, -1, -7, -2, 50], 0.5, 8.0),
    ],
)
def test_the_radius_within_a_bin(noisy_counts, share, radius):
    assert Reach.read(np.array(noisy_counts), EDGES).within(share) == pytest.approx(radius)


def test_the_radius_within_a_bin_is_that_of_many_bins():
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 3.0):
        lengths = np.abs(rng.normal(scale=scale, size=50_000))
        edges = 2.0 ** np.arange(-8, 6, 0.5)
        reach = Reach.read(np.histogram(lengths, [0, *edges, np.inf])[0], edges)
        for share in (0.5, 0.8, 0.95):
            assert reach.within(share) == pytest.approx(np.quantile(lengths, share), rel=0.05)
            assert reach.within(share) <= reach.holding(share)


def test_noise_in_far_bins_is_not_read_as_rows():
    noisy_counts = np.array([100, 800, -5, 30, 7])
    assert Reach.read(noisy_counts, EDGES).beyond(2.0) > 0.05
    clear = Reach.read(noisy_counts, EDGES, noise=20.0)
    assert clear.beyond(2.0) == 0.0
    assert clear.holding(1.0) == 2.0


def test_rows_are_not_taken_to_be_at_their_centres_if_noise_hides_where_they_are():
    noisy_counts = np.array([10, 400, 300, -5, 7])
    hidden = Reach.read(noisy_counts, EDGES, noise=1000.0)
    assert hidden.holding(0.9) == Reach.read(noisy_counts, EDGES).holding(0.9) > EDGES[0]
    assert hidden.mean_square > 0


def test_what_is_beyond_a_radius():
    reach = Reach.read(np.array([0, 30, 10, 0, 0]), EDGES)  # in the middles of bins, at sqrt(2) and sqrt(8)
    assert reach.beyond(2.0) == pytest.approx(0.25 * (np.sqrt(8) - 2))
    assert reach.beyond(0.0) == pytest.approx(0.75 * np.sqrt(2) + 0.25 * np.sqrt(8))
    assert reach.widened(3.0).beyond(6.0) == pytest.approx(3 * reach.beyond(2.0))


def test_the_mean_square_is_that_of_the_middles_of_bins():
    assert Reach.read(np.array([0, 30, 10, 0, 7]), EDGES).mean_square == pytest.approx(0.75 * 2 + 0.25 * 8)
    assert Reach.read(np.array([-5, 0, -1, 0, 7]), EDGES).mean_square == 0


def test_edges_end_at_the_diameter():
    assert distance_edges(Domain.from_bounds((0, 1), 4), 4, 15)[-1] == pytest.approx(2.0)
    edges = distance_edges(Domain.from_bounds(Ball(3.0), 4), 3, 16)
    assert len(edges) == 48
    assert edges[-1] == pytest.approx(6.0)
    assert edges[1:] / edges[:-1] == pytest.approx(2 ** (1 / 3))
