"""Allowances for the noise of a sum against plain convolution, simulation, and the papers' figures."""

import math

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.public.density import tails
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.tails import allowances, noise_law

GRID = Grid((0.0, 0.0), (1.0, 1.0), (10, 10))
NOISES = [("discrete Laplace", 1.0), ("discrete Laplace", 5.5), ("discrete Laplace", 0.2)]
NOISES += [("discrete Gaussian", 1.0), ("discrete Gaussian", 7.3)]


def dense(mechanism, scale):
    return NoisyHistogram(GRID, np.zeros(100, dtype=np.int64), mechanism, scale)


def sparse(mechanism, scale, threshold):
    none = np.empty(0, dtype=np.int64)
    return NoisyHistogram(GRID, none, mechanism, scale, none, threshold)


def law_of(mechanism, scale):
    """Values and probabilities of the noise, far into the tails."""
    reach = math.ceil(60 * scale) if mechanism == "discrete Laplace" else math.ceil(15 * scale)
    x = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-np.abs(x) / scale if mechanism == "discrete Laplace" else -((x / scale) ** 2) / 2)
    return x.astype(np.int64), weights / weights.sum()


def sum_of(law, n):
    """Law of a sum of n, by plain convolution, which loses no digits in the tails."""
    total = np.ones(1)
    for _ in range(n):
        total = np.convolve(total, law)
    return total


def least_allowance(values, law, n, tail):
    """Least number that a sum of n exceeds with probability at most `tail`."""
    total = sum_of(law, n)
    above = np.cumsum(total[::-1])[::-1]  # P(sum >= value)
    beyond = np.append(above[1:], 0.0)  # P(sum > value)
    return int(n * values[0] + np.argmax(beyond <= tail))


@pytest.mark.parametrize(("mechanism", "scale"), NOISES)
@pytest.mark.parametrize("n", [1, 3, 21])
def test_dense_allowances_are_exact(mechanism, scale, n):
    values, law = law_of(mechanism, scale)
    for tail in (0.4, 0.025, 1e-4, 1e-9, 1e-12):
        expected = least_allowance(values, law, n, tail)
        assert allowances(dense(mechanism, scale), n, (tail, tail)) == (expected, expected)


@pytest.mark.parametrize("tail", [1e-15, 1e-18, 1e-20])
def test_tails_beyond_the_precision_of_a_fourier_transform(tail):
    expected = least_allowance(*law_of("discrete Laplace", 1.0), 9, tail)
    above, below = allowances(dense("discrete Laplace", 1.0), 9, (tail, tail))
    assert above >= expected
    assert below >= expected


def test_the_figure_of_the_paper():
    """Its bound is 38.2 for epsilon 1, 21 cells, 1000 sums and beta 1/3, two-sided."""
    tail = 1 / 3 / 1000 / 2
    assert allowances(dense("discrete Laplace", 1.0), 21, (tail, tail)) in ((24, 24), (25, 25))


def test_dense_allowances_by_simulation():
    rng = np.random.default_rng(0)
    p = 1 - math.exp(-1 / 3)
    noise = rng.geometric(p, size=(40_000, 12)) - rng.geometric(p, size=(40_000, 12))
    above, below = allowances(dense("discrete Laplace", 3.0), 12, (0.05, 0.01))
    sums = noise.sum(axis=1)
    assert 0.04 < np.mean(sums > above) <= 0.055
    assert 0.007 < np.mean(sums < -below) <= 0.0125
    assert np.mean(sums > 0.7 * above) > 0.055  # smaller ones would not do


def test_one_side_does_not_depend_on_the_other():
    for histogram in (dense("discrete Laplace", 2.0), sparse("discrete Laplace", 2.0, 6)):
        above, below = allowances(histogram, 9, (0.01, 1e-6))
        assert allowances(histogram, 9, (0.01, 0.3))[0] == above
        assert allowances(histogram, 9, (0.3, 1e-6))[1] == below


@pytest.mark.parametrize("mechanism", ["discrete Laplace", "discrete Gaussian"])
def test_where_convolution_is_not_feasible_the_bound_is_close(mechanism, monkeypatch):
    fine = allowances(dense(mechanism, 200.0), 9, (1e-6, 1e-6))
    monkeypatch.setattr(tails, "_MOST_POINTS", 2**13)
    coarse = allowances(dense(mechanism, 200.0), 9, (1e-6, 1e-6))
    assert fine[0] <= coarse[0] <= 1.25 * fine[0]
    assert fine[1] <= coarse[1] <= 1.25 * fine[1]


def test_much_noise_takes_little_memory():
    above, _ = allowances(dense("discrete Laplace", 1e5), 21, (1e-6, 1e-6))
    normal = 4.75 * math.sqrt(21 * 2) * 1e5
    assert normal < above < 1.3 * normal


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_sums_of_many_cells_are_nearly_normal(scale):
    """As many as a ball meets in six columns: rounding each cell outwards must not add up."""
    above, _ = allowances(dense("discrete Laplace", scale), 30_000, (1e-6, 1e-6))
    assert above == pytest.approx(
        4.75 * math.sqrt(30_000 * dense("discrete Laplace", scale).variance), rel=0.15
    )


def test_noise_law_is_a_law():
    for mechanism, scale in NOISES:
        values, law = noise_law(dense(mechanism, scale))
        assert law.sum() == pytest.approx(1)
        np.testing.assert_allclose(law, law[::-1])
        variance = float(law @ values**2)
        assert variance == pytest.approx(dense(mechanism, scale).variance, rel=1e-6)


@pytest.mark.parametrize(("mechanism", "scale"), NOISES)
@pytest.mark.parametrize("threshold", [1, 4, 12])
def test_sparse_allowances_hold_for_every_true_count(mechanism, scale, threshold):
    """The error of a cell of true count x is its noise if x + noise is listed, and -x if not."""
    values, law = law_of(mechanism, scale)
    histogram = sparse(mechanism, scale, threshold)
    for n, tail in ((1, 0.025), (5, 1e-3), (9, 1e-7)):
        above, below = allowances(histogram, n, (tail, tail))
        for count in range(threshold + math.ceil(4 * scale) + 2):
            errors = np.where(count + values >= threshold, values, -count)
            cell = np.bincount(errors - errors.min(), law)
            total = sum_of(cell, n)
            sums = n * int(errors.min()) + np.arange(len(total))
            assert total[sums > above].sum() <= tail
            assert total[sums < -below].sum() <= tail


def test_sparse_allowances_by_simulation():
    rng = np.random.default_rng(1)
    threshold, n, tail = 9, 16, 0.02
    above, below = allowances(sparse("discrete Laplace", 2.0, threshold), n, (tail, tail))
    p = 1 - math.exp(-1 / 2)
    for counts in (
        np.zeros(n), np.full(n, threshold - 1), np.full(n, threshold + 3), rng.integers(0, 2 * threshold, n),
        np.repeat([0, threshold - 2], n // 2), np.full(n, 1000),
    ):  # fmt: skip
        noisy = counts + rng.geometric(p, size=(20_000, n)) - rng.geometric(p, size=(20_000, n))
        errors = (np.where(noisy >= threshold, noisy, 0) - counts).sum(axis=1)
        assert np.mean(errors > above) <= tail
        assert np.mean(errors < -below) <= tail


@pytest.mark.parametrize("epsilon", [1e2, 1e3, 1e6])
def test_little_noise(epsilon):
    assert allowances(dense("discrete Laplace", 1 / epsilon), 21, (1e-9, 1e-9)) == (0, 0)
    above, below = allowances(sparse("discrete Laplace", 1 / epsilon, 1), 21, (1e-9, 1e-9))
    assert 0 <= above <= 1
    assert 0 <= below <= 1


def test_allowances_grow_with_cells_and_confidence():
    for histogram in (dense("discrete Gaussian", 3.0), sparse("discrete Gaussian", 3.0, 10)):
        by_cells = [allowances(histogram, n, (1e-4, 1e-4)) for n in (1, 2, 5, 20, 80)]
        by_tail = [allowances(histogram, 5, (tail, tail)) for tail in (0.1, 1e-3, 1e-6, 1e-10)]
        assert by_cells == sorted(by_cells)
        assert by_tail == sorted(by_tail)
