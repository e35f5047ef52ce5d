"""Counts, intervals, numbering and prediction of labelled cells."""

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.regions import measured_regions, noise_of_sum, selection_bias
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
