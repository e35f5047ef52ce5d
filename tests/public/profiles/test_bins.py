"""Bins follow public declarations, then released counts; smoothing keeps what noise cannot explain."""

import numpy as np
import pytest

from sfumato.domain.columns import Described
from sfumato.public.profiles.bins import (
    FEWEST_BINS,
    MOST_BINS,
    bins_for,
    cluster_edges,
    rows_in,
    smoothed,
    table_edges,
)

NUMBERS = [(0, 100), (0, 1), (1, 16), (-60, 300), (0, 1_500_000), (0, 400), (0, 401), (-5, 5), (4000, 6000)]
REALS = [(0.0, 0.25), (32, 42.5), (-1e-9, 1e-9), (0.1, 1e12)]


@pytest.mark.parametrize(("low", "high"), [*NUMBERS, *REALS])
def test_bins_of_numbers_hold_the_bounds_and_are_not_too_many(low, high):
    edges = table_edges(Described("x", low=low, high=high))
    assert (np.diff(edges) > 0).all()
    assert 100 < len(edges) < 450
    assert edges[0] <= low
    assert edges[-1] >= high


@pytest.mark.parametrize(("low", "high"), NUMBERS)
def test_the_bounds_have_bins_of_their_own(low, high):
    """Zeros, and what lies outside, must not look like values close to the bound."""
    edges = table_edges(Described("x", low=low, high=high))
    assert edges[1] <= low + 0.5
    assert edges[-2] >= high - 0.5


@pytest.mark.parametrize(("low", "high"), REALS)
def test_real_bounds_have_bins_of_their_own(low, high):
    edges = table_edges(Described("x", low=low, high=high))
    assert edges[1] == np.nextafter(low, np.inf)
    assert edges[-2] == high


@pytest.mark.parametrize(("low", "high"), [(0, 100), (1, 16), (0, 400), (-60, 300)])
def test_no_two_whole_numbers_share_a_bin_if_there_is_room(low, high):
    edges = table_edges(Described("x", low=low, high=high))
    places = np.searchsorted(edges, np.arange(low, high + 1), side="right")
    assert len(set(places.tolist())) == high - low + 1


def test_a_date_is_in_one_bin_from_midnight_to_midnight():
    edges = table_edges(Described("d", "date", 19_000, 19_300))
    assert edges[0] == 19_000
    assert edges[-1] == 19_301
    assert set(np.diff(edges)) == {1.0}


@pytest.mark.parametrize(
    ("column", "n_bins"),
    [
        (Described("x", "cycle", 0, 24), 24),
        (Described("x", "cycle", 0, 1, unit="day"), 24),
        (Described("x", "cycle", -3, 4, unit="week"), 7),
        (Described("x", "cycle", 0, 365.2425, unit="year"), 12),
        (Described("x", "cycle", 0, 360), 24),
    ],
)
def test_cycles_have_parts_that_a_person_would_choose(column, n_bins):
    fine = table_edges(column)
    edges = cluster_edges(column, fine, np.ones(len(fine) - 1), 7)
    assert len(edges) == n_bins + 1
    assert (edges[0], edges[-1]) == (column.low, pytest.approx(column.high))
    assert np.isin(edges, fine).all()


@pytest.mark.parametrize("n_bins", [2, 6, 17, 48])
@pytest.mark.parametrize("high", [100, 1_000_000, 7.7])
def test_bins_of_clusters_hold_about_equal_numbers_of_rows(n_bins, high):
    """Whatever wide bounds a stranger wrote."""
    column = Described("x", low=0, high=high)
    values = np.random.default_rng(0).gamma(3, min(high, 50_000) / 30, 200_000).clip(0, high)
    fine = table_edges(column)
    counts = np.histogram(values, fine)[0].astype(float)
    edges = cluster_edges(column, fine, counts, n_bins)
    assert (edges[0], edges[-1]) == (fine[0], fine[-1])
    assert (np.diff(edges) > 0).all()
    found = np.histogram(values, edges)[0]
    assert n_bins / 2 <= len(found) <= 2 * n_bins + 2
    assert found.max() < 3 * len(values) / n_bins


def test_a_value_that_many_rows_have_gets_its_own_bin():
    column = Described("hours", low=0, high=100)
    values = np.where(np.arange(10_000) % 2, 40, np.arange(10_000) % 100)
    fine = table_edges(column)
    edges = cluster_edges(column, fine, np.histogram(values, fine)[0].astype(float), 8)
    place = int(np.searchsorted(edges, 40, side="right"))
    assert edges[place] - edges[place - 1] <= 0.5


def test_bins_without_any_rows():
    column = Described("x", low=0, high=100)
    edges = cluster_edges(column, table_edges(column), np.zeros(201), 8)
    assert (np.diff(edges) > 0).all()


def test_more_rows_and_less_noise_make_more_bins():
    found = [bins_for(n, 5, noise) for n, noise in [(0, 10), (1e3, 100), (1e4, 100), (1e5, 100), (1e9, 1)]]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (FEWEST_BINS, MOST_BINS)


@pytest.mark.parametrize("seed", range(5))
def test_smoothing_finds_a_shape_that_noise_hides(seed):
    rng = np.random.default_rng(seed)
    edges = np.arange(257.0)
    exact = 20_000 * np.exp(-((np.arange(256) - 80) ** 2) / 800) / 50
    exact[200] = 3000
    noisy = np.rint(exact + rng.normal(0, 100, 256)).astype(np.int64)
    found = smoothed(edges, noisy, 100.0, exact.sum())
    assert found.sum() == pytest.approx(exact.sum())
    assert (found >= 0).all()
    assert np.abs(found - exact).sum() < np.abs(noisy - exact).sum() / 2
    assert found[200] == pytest.approx(3000, rel=0.25)


@pytest.mark.parametrize("noise", ["normal", "laplace"])
def test_noise_alone_is_smoothed_away(noise):
    rng = np.random.default_rng(1)
    scale = 100 if noise == "normal" else 100 / 2**0.5
    flat = 0
    for _ in range(40):
        noisy = np.rint(10_000 / 256 + getattr(rng, noise)(0, scale, 256)).astype(np.int64)
        found = smoothed(np.arange(257.0), noisy, 100.0, 10_000.0)
        flat += bool(np.allclose(found, 10_000 / 256))
    assert flat >= 32


def test_rows_are_counted_best_by_columns_with_few_bins():
    assert rows_in([np.array([50, 50]), np.full(200, 1)]) == pytest.approx(
        (100 / 2 + 200 / 200) / (1 / 2 + 1 / 200)
    )
    assert rows_in([np.array([-50, 20])]) == 0
