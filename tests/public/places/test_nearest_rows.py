"""Chances of rows in rings, and distances that they make likely."""

import numpy as np
import pytest

from sfumato.public.places.nearest_rows import (
    N_PARTS,
    CountNoise,
    chances_of_none,
    likely_distances,
    ring_radii,
)

LINE = np.arange(50.0)[:, None]
EDGES = np.array([0.25, 0.5])
LEVELS = np.array([1 / 6, 1 / 2, 5 / 6])
LAPLACE, GAUSS = CountNoise(True, 1 / 3), CountNoise(False, 0.4)
OUTSIDE = 1 - np.arange(N_PARTS + 1) / N_PARTS  # shares of a ring


def chance_of_none(*args):
    return chances_of_none(*args)[:, :, -1]


def one_row_at_most(none):
    """Chances that parts of rings hold no row."""
    return none[:, :, None] + (1 - none[:, :, None]) * OUTSIDE


def laplace(rng, shape, scale=1 / 3):
    p = 1 - np.exp(-1 / scale)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSS, CountNoise(True, 1e-9), CountNoise(False, 1e-9)])
def test_counts_far_from_zero_are_rows(noise):
    noisy = np.zeros((50, 2), dtype=np.int64)
    noisy[:10] = 60
    none = chance_of_none(LINE, EDGES, noisy, noise)
    assert (none[:10] < 1e-3).all()
    assert (none[10:] > 0.8).all()


def test_a_single_row_is_more_likely_among_others():
    """The same noisy count of 1 says more where neighbours have rows."""
    noisy = np.zeros((50, 1), dtype=np.int64)
    noisy[:25] = 2
    noisy[12] = noisy[40] = 1
    none = chance_of_none(LINE, np.array([6.0]), noisy, LAPLACE)
    assert none[12, 0] < none[40, 0] / 2


def test_chances_are_about_right():
    """Of rings that hold rows with a stated chance, about as many do."""
    rng = np.random.default_rng(0)
    expected = np.where(np.arange(2000) < 1000, 1.0, 0.05)[:, None]
    counts = rng.geometric(1 / (1 + expected), (2000, 2)) - 1
    noisy = counts + laplace(rng, counts.shape)
    none = chance_of_none(np.arange(2000.0)[:, None], np.array([5.0, 6.0]), noisy, LAPLACE)
    for low, high in ((0, 0.2), (0.2, 0.8), (0.8, 1)):
        inside = (none >= low) & (none <= high)
        assert inside.sum() > 100
        assert (counts == 0)[inside].mean() == pytest.approx(none[inside].mean(), abs=0.25)
    assert (counts == 0).mean() == pytest.approx(none.mean(), abs=0.02)


def test_a_few_noisy_counts_are_not_rows_for_sure():
    """Two counts of 2 and two of 1 can be noise in an empty group, beside one that is full."""
    noisy = np.zeros((60, 3), dtype=np.int64)
    noisy[:30], noisy[45:47, 0], noisy[50, :2] = 5, 2, 1
    centers = np.concatenate([np.arange(30.0), 1000 + np.arange(30.0)])[:, None]
    none = chance_of_none(centers, np.array([4.0, 8.0, 12.0]), noisy, LAPLACE)
    assert none[30:].prod() > 0.02


@pytest.mark.parametrize("n_rows", [1, 3, 500])
@pytest.mark.parametrize("noise", [CountNoise(True, 1e-9), CountNoise(False, 0.01)])
def test_without_noise_parts_hold_rows_as_often_as_they_are_large(n_rows, noise):
    noisy = np.full((50, 2), n_rows)
    none = chances_of_none(LINE, EDGES, noisy, noise)
    np.testing.assert_allclose(none, np.broadcast_to(OUTSIDE**n_rows, none.shape), atol=1e-9)


@pytest.mark.parametrize("noise", [LAPLACE, CountNoise(True, 100.0)])
def test_many_rows_are_near(noise):
    """With more rows in a ring, the nearest is nearer than the ring is wide."""
    spread = []
    for n_rows in (10**4, 10**6):
        none = chances_of_none(np.zeros((1, 2)), np.array([1.0]), np.array([[n_rows]]), noise)
        spread.append(likely_distances(np.zeros((1, 2)), np.zeros((1, 2)), np.array([1.0]), none, LEVELS))
    assert (spread[1] <= spread[0]).all()
    assert (spread[1] < 0.5).all()


def test_distances_follow_the_number_of_rows():
    """Against draws of rows anywhere in a disc, for a point at its middle."""
    rng = np.random.default_rng(0)
    for n_rows in (1, 4):
        none = (OUTSIDE**n_rows)[None, None]
        found = likely_distances(np.zeros((1, 2)), np.zeros((1, 2)), np.array([1.0]), none, LEVELS)
        drawn = np.sqrt(rng.random((4000, n_rows))).min(axis=1)
        np.testing.assert_allclose(found[0], np.quantile(drawn, LEVELS), atol=0.15)


@pytest.mark.parametrize("noise", [CountNoise(True, 1e9), CountNoise(False, 1e4)])
def test_much_noise_tells_nothing(noise):
    noisy = np.random.default_rng(0).integers(-(10**10), 10**10, (50, 2))
    none = chance_of_none(LINE, EDGES, noisy, noise)
    assert np.isfinite(none).all()
    assert ((none >= 0) & (none <= 1)).all()


def test_one_centre_will_do():
    none = chances_of_none(np.zeros((1, 3)), np.array([1.0]), np.array([[9]]), LAPLACE)
    assert none[0, 0, -1] < 0.1
    caps = likely_distances(np.zeros((2, 3)), np.zeros((1, 3)), np.array([1.0]), none, LEVELS)
    assert (caps[:, 0] <= 1).all()


def test_distances_are_quantiles():
    """By many draws of one row, anywhere in the first ring of the only centre that has one."""
    none = np.ones((3, 2))
    none[1, 0] = 0.0
    centers = np.array([[-10.0, 0.0], [0.0, 0.0], [10.0, 0.0]])
    caps = likely_distances(centers, centers, np.array([1.0, 2.0]), one_row_at_most(none), LEVELS)
    assert (caps[1] <= 1).all()
    assert (np.abs(caps[[0, 2]] - 10) <= 1).all()
    assert (np.diff(caps, axis=1) >= 0).all()
    half = np.where(none == 0, 0.5, 1.0)
    levels = np.array([0.1, 0.4, 0.6, 0.9])
    caps = likely_distances(centers, centers, np.array([1.0, 2.0]), one_row_at_most(half), levels)
    assert (caps[:, 2:] > 20).all(), "with chance 1/2 there is no row"
    assert (caps[1, :2] <= 1).all()


@pytest.mark.parametrize("d", [1, 2, 300])
def test_radii_halve_the_volume(d):
    radii = ring_radii(np.array([1.0, 2.0]) * 1e-6, d, 1)[:, 0] / 1e-6
    assert radii[0] ** d == pytest.approx(0.5)
    assert 1 <= radii[1] <= 2
    assert radii[1] ** d == pytest.approx((1 + 2.0**d) / 2)
