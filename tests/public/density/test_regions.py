"""Counts, intervals, numbering and prediction of labelled cells."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.domain.nested import NestedGrid
from sfumato.errors import ParameterError
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.levels import Levels, cut_levels
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.regions import (
    _majority,
    _pairs,
    measured_regions,
    noise_of_sum,
    regions_of_leaves,
    selection_bias,
)
from sfumato.public.density.scales import Layer
from sfumato.public.density.tails import allowances

GRID = Grid((0.0, 0.0), (4.0, 6.0), (2, 3))
COUNTS = np.array([10, 20, 30, 40, 50, 60])


def regions(cells, labels, *, parts=2, bias=None, histogram=None):
    cells, labels = np.array(cells, dtype=np.int64), np.array(labels, dtype=np.int64)
    order = np.argsort(cells)
    bias = np.zeros(labels.max(initial=-1) + 1) if bias is None else np.array(bias)
    histogram = histogram or NoisyHistogram(GRID, COUNTS, "discrete Laplace", 2.0)
    return measured_regions(histogram, parts, cells[order], labels[order], bias, 0.95)


def fine(cell, *pieces):
    """Flat indices of pieces, numbered 0 to 3, of a cell of the histogram."""
    at = np.array(np.unravel_index(cell, GRID.shape))
    return [int(np.ravel_multi_index(tuple(2 * at + divmod(piece, 2)), (4, 6))) for piece in pieces]


def test_whole_cells_count_in_full():
    found = regions([*fine(1, 0, 1, 2, 3), *fine(2, 0, 1, 2, 3)], [0] * 8)
    above, below = allowances(NoisyHistogram(GRID, COUNTS, "discrete Laplace", 2.0), 2, (0.025, 0.025))
    np.testing.assert_allclose(found.counts, [[50, 50 - above, 50 + below]])


def test_cut_cells_count_by_volume_and_widen_the_interval():
    found = regions([*fine(1, 0, 1, 2, 3), *fine(4, 2)], [0] * 5)
    histogram = NoisyHistogram(GRID, COUNTS, "discrete Laplace", 2.0)
    low = 20 - allowances(histogram, 1, (0.025, 0.025))[0]
    high = 70 + allowances(histogram, 2, (0.025, 0.025))[1]
    np.testing.assert_allclose(found.counts, [[20 + 50 / 4, low, high]])


def test_pairs_are_the_same_in_a_grid_of_too_many_cells_for_one_key():
    rng = np.random.default_rng(0)
    homes, labels = rng.integers(50, size=300), rng.integers(4, size=300)
    expected = np.unique(np.stack([homes, labels], axis=1), axis=0, return_counts=True)
    for n_homes in (50, 2**62):
        home, label, times = _pairs(homes, labels, n_homes)
        assert (np.stack([home, label], axis=1) == expected[0]).all()
        assert (times == expected[1]).all()


def test_two_spans_share_a_cell():
    found = regions([*fine(5, 0, 1), *fine(5, 2)], [0, 0, 1])
    np.testing.assert_allclose(found.counts[:, 0], [30, 15])
    assert (found.counts[:, 1] == 0).all()
    assert (found.counts[:, 2] > 60).all()


def test_spans_are_numbered_from_the_largest_down():
    found = regions(
        [*fine(0, 0, 1, 2, 3), *fine(5, 0, 1, 2, 3), *fine(3, 0, 1, 2, 3)], [0] * 4 + [1] * 4 + [2] * 4
    )
    np.testing.assert_allclose(found.counts[:, 0], [60, 40, 10])
    assert [span.label for span in found.spans()] == [0, 1, 2]
    assert sorted(found.spans()[0].cells.tolist()) == sorted(fine(5, 0, 1, 2, 3))
    for span, (count, low, high) in zip(found.spans(), found.counts, strict=True):
        assert (span.count, span.count_low, span.count_high, span.confidence) == (count, low, high, 0.95)
        assert span.grid == GRID.refined(2)


def test_bias_is_taken_off_estimate_and_lower_end():
    plain = regions(fine(5, 0, 1, 2, 3), [0] * 4)
    corrected = regions(fine(5, 0, 1, 2, 3), [0] * 4, bias=[7.0])
    np.testing.assert_allclose(plain.counts - corrected.counts, [[7, 7, 0]])


def test_counts_are_never_negative_and_lie_in_their_interval():
    histogram = NoisyHistogram(GRID, np.array([-30, -2, 1, 0, 3, -90]), "discrete Laplace", 2.0)
    found = regions(range(24), np.arange(24) % 5, histogram=histogram)
    assert (found.counts >= 0).all()
    assert (found.counts[:, 1] <= found.counts[:, 0]).all()
    assert (found.counts[:, 0] <= found.counts[:, 2]).all()


def test_cells_that_are_not_listed_count_as_nothing():
    histogram = NoisyHistogram(GRID, np.array([70]), "discrete Laplace", 2.0, np.array([4]), 10)
    found = regions([0, 1, 2, 4], [0] * 4, parts=1, histogram=histogram)
    assert found.counts[0, 0] == 70
    assert found.counts[0, 2] > 70 + 3 * 10 / 2  # what lies below the threshold is allowed for


def test_many_cells_are_as_a_normal_sum():
    grid = Grid((0.0,), (1.0,), (70,))
    histogram = NoisyHistogram(grid, np.full(70, 100), "discrete Gaussian", 5.0)
    found = regions(range(70), [0] * 70, parts=1, histogram=histogram)
    np.testing.assert_allclose(
        found.counts, [[7000, 7000 - 1.96 * 5 * 70**0.5, 7000 + 1.96 * 5 * 70**0.5]], rtol=1e-4
    )
    assert noise_of_sum(histogram, 70) == pytest.approx(5 * 70**0.5)
    few = regions(range(64), [0] * 64, parts=1, histogram=histogram)
    assert few.counts[0, 2] - few.counts[0, 0] == pytest.approx(1.96 * 5 * 8, abs=1)


def test_no_spans():
    found = regions([], [])
    assert found.n_spans == 0
    assert found.spans() == ()
    assert found.predict(np.ones((3, 2))).tolist() == [-1, -1, -1]


def test_predict():
    found = regions([*fine(0, 0), *fine(5, 3)], [0, 1])
    inside = np.array([[0.5, 0.5], [3.9, 5.9], [0.5, 1.5], [1.5, 0.5], [2.0, 3.0]])
    assert found.predict(inside).tolist() == [1, 0, -1, -1, -1]
    outside = np.array([[-9.0, -9.0], [1e300, 1e300], [-9.0, 99.0], [4.0, 6.0]])
    assert found.predict(outside).tolist() == [1, 0, -1, 0]
    assert found.predict(np.empty((0, 2))).shape == (0,)
    assert found.predict(inside).dtype == np.int64


def test_selection_bias_is_that_of_cells_chosen_by_themselves():
    """Counts of nothing but normal noise, kept from a level on: their sum is the bias."""
    rng, sigma, level = np.random.default_rng(0), 10.0, 5.0
    biases, sums = [], []
    for _ in range(200):
        counts = rng.normal(scale=sigma, size=400)
        kept = counts[counts >= level]
        bias = selection_bias(kept, np.zeros(len(kept), dtype=int), np.array([level]), 1.0, sigma**2)
        biases.append(bias[0])
        sums.append(kept.sum())
    assert np.mean(biases) == pytest.approx(np.mean(sums), rel=0.1)


def test_selection_bias_of_several_spans():
    scores, labels = np.array([1.0, 1.5, 9, 4, 4.2, 8]), np.array([0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(selection_bias(scores, labels, np.array([1.0, 4.0]), 0.4, 2.0), [5, 10])


NESTED = NestedGrid(Grid((0.0, 0.0), (3.0, 2.0), (3, 2)), np.array([0, 1, 1, 0, 2, 1]), 2)


def leaf_regions(labels, counts, *, density=None, floors=None, limit=1.0, scale=1.0, around=0.0):
    """Regions of labelled fine cells, without any leaf so near the edge that its choice would matter."""
    n_spans = int(labels.max(initial=-1)) + 1
    density = np.full(NESTED.fine.n_cells, 100.0) if density is None else density
    edges = Layer(density, np.ones(len(density)), np.full(len(density), 1e6))
    histogram = NestedHistogram(NESTED, counts.astype(np.int64), "discrete Gaussian", scale)
    floors = np.zeros(n_spans) if floors is None else floors
    return regions_of_leaves(
        histogram,
        labels,
        edges,
        floors,
        around,
        lambda _, std, anyway: limit * np.hypot(std, np.sqrt(anyway)),
    )


def test_a_leaf_belongs_to_what_most_of_its_cells_belong_to():
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.integers(-1, 3, NESTED.fine.n_cells)
        found = _majority(NESTED.leaves, labels, NESTED.n_cells, 3)
        for leaf, owner in enumerate(found):
            times = np.bincount(labels[NESTED.leaves == leaf] + 1, minlength=4)
            assert times[owner + 1] == times.max()


def test_counts_of_whole_leaves():
    leaf_labels = np.arange(NESTED.n_cells) % 4 - 1
    counts = np.random.default_rng(0).integers(100, 200, NESTED.n_cells)
    found = leaf_regions(leaf_labels[NESTED.leaves], counts, scale=2.0)
    sums = [counts[leaf_labels == k].sum() for k in range(3)]
    order = np.argsort(sums)[::-1]
    np.testing.assert_allclose(found.counts[:, 0], np.array(sums)[order])
    n_leaves = np.bincount(leaf_labels[leaf_labels >= 0])[order].astype(float)
    np.testing.assert_allclose(found.counts[:, 2] - found.counts[:, 0], 1.96 * 2 * n_leaves**0.5, rtol=0.05)
    np.testing.assert_allclose(found.counts[:, 1] + found.counts[:, 2], 2 * found.counts[:, 0])
    assert found.grid == NESTED.fine
    found.check()
    for k, span in enumerate(order):
        np.testing.assert_array_equal(
            found.cells[found.labels == k], np.flatnonzero(leaf_labels[NESTED.leaves] == span)
        )


def test_spans_that_noise_may_have_made_are_left_out():
    leaf_labels = np.full(NESTED.n_cells, -1)
    leaf_labels[[0, 1]] = 0, 1
    counts = np.zeros(NESTED.n_cells)
    counts[[0, 1]] = 5, 7
    for limit, n_spans in ((4.9, 2), (5.1, 1), (7.1, 0)):
        found = leaf_regions(leaf_labels[NESTED.leaves], counts, limit=limit)
        assert found.n_spans == n_spans
        found.check()
    assert leaf_regions(leaf_labels[NESTED.leaves], -counts, limit=0.0).n_spans == 0
    assert leaf_regions(np.full(NESTED.fine.n_cells, -1), counts).n_spans == 0


def test_a_span_without_a_whole_leaf_is_left_out():
    labels = np.full(NESTED.fine.n_cells, -1)
    labels[np.flatnonzero(NESTED.leaves == 0)[0]] = 0
    assert leaf_regions(labels, np.full(NESTED.n_cells, 50)).n_spans == 0


def test_strengths_are_densities_over_typical_ones():
    rng = np.random.default_rng(0)
    labels = np.where(NESTED.volumes > 1, np.arange(NESTED.n_cells) % 2, -1)[NESTED.leaves]
    density = rng.uniform(1, 9, NESTED.fine.n_cells)
    found = leaf_regions(labels, np.arange(NESTED.n_cells, 0, -1) * 100, density=density)
    assert found.n_spans == 2
    assert ((found.strengths >= 0) & (found.strengths <= 1)).all()
    for k in range(2):
        own = density[found.cells[found.labels == k]]
        typical = (own**2).sum() / own.sum()
        np.testing.assert_allclose(
            found.strengths[found.labels == k], np.minimum(own / typical, 1), atol=6e-4
        )
    centers = found.grid.centers()
    expected = np.zeros(len(centers))
    expected[found.cells] = found.strengths
    np.testing.assert_array_equal(found.strength(centers), expected)
    assert ((found.strength(centers) == 0) == (found.predict(centers) < 0)).all()
    assert found.strength(np.empty((0, 2))).shape == (0,)
    outside = np.array([[-9.0, -9.0], [1e300, -1e300]])
    np.testing.assert_array_equal(found.strength(outside), found.strength(np.clip(outside, 0, [2.99, 1.99])))


def test_strengths_of_regions_that_have_none():
    found = regions(fine(0, 0, 1), [0, 0])
    assert found.strengths is None
    assert found.strength(found.grid.centers()).sum() == 2
    assert regions([], []).strength(np.ones((3, 2))).tolist() == [0, 0, 0]


def test_damaged_strengths_are_refused():
    found = regions(fine(0, 0, 1), [0, 0])
    replace(found, strengths=np.array([0.5, 1.0])).check()
    with pytest.raises(ParameterError, match="`strengths` must have shape"):
        replace(found, strengths=np.array([0.5])).check()


@cache
def hills():
    """True counts of two hills in nested cells, and of the coarse cells."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(c, 1.2, size=(n, 2)) for c, n in (((3, 3), 3000), ((9, 8), 1500))])
    coarse = Grid((0.0, 0.0), (12.0, 12.0), (12, 12))
    raw_outline = np.bincount(coarse.index(rows), minlength=144)
    nested = NestedGrid(coarse, np.where(raw_outline > 30, 2, np.where(raw_outline > 8, 1, 0)), 2)
    return nested, np.bincount(nested.index(rows), minlength=nested.n_cells), raw_outline


@pytest.mark.parametrize("edge", [None, 0.3])
@pytest.mark.parametrize("has_outline", [True, False])
def test_intervals_hold_the_true_number_of_rows(edge, has_outline):
    """Of the span that was drawn, although noise had a say in which leaves are in it."""
    rng, scale = np.random.default_rng(1), 2.0
    nested, raw_counts, raw_outline = hills()

    def noise(n, scale):
        p = 1 - math.exp(-1 / scale)
        return rng.geometric(p, n) - rng.geometric(p, n)

    holds = []
    for _ in range(200):
        noisy = NestedHistogram(nested, raw_counts + noise(nested.n_cells, scale), "discrete Laplace", scale)
        if has_outline:
            noisy = replace(noisy, outline=raw_outline + noise(144, 2 * scale), outline_scale=2 * scale)
        found = cut_levels(Levels(noisy), 1.0, edge=edge)
        assert ((found.strengths >= 0) & (found.strengths <= 1)).all()
        span = np.full(nested.n_cells, -1)
        span[nested.leaves[found.cells]] = found.labels
        for k, (count, low, high) in enumerate(found.counts):
            assert low <= count <= high
            holds.append(low <= raw_counts[span == k].sum() <= high)
    assert len(holds) >= 390
    assert 0.9 <= np.mean(holds) <= 0.99


def test_a_span_must_hold_more_than_its_surroundings_would():
    leaf_labels = np.full(NESTED.n_cells, -1)
    leaf_labels[0] = 0  # sixteen fine cells
    counts = np.zeros(NESTED.n_cells)
    counts[0] = 40
    found = [
        leaf_regions(leaf_labels[NESTED.leaves], counts, around=a, limit=3.0).n_spans for a in (0.0, 1.0, 2.0)
    ]
    assert found == [1, 1, 0]
