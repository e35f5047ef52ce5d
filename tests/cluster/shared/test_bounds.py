"""Private bounds: tight on what the budget can see, whatever the columns are."""

import math

import numpy as np
import pytest
from tests.worlds import curate

from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.cluster.shared.bounds import (
    LARGEST_EXPONENT,
    LEAST_EXPONENT,
    _noise_quantile,
    bounds_steps,
    find_bounds,
    magnitude_edges,
    visible_runs,
)
from sfumato.curator import histograms_sensitivity
from sfumato.domain import Domain
from sfumato.errors import NoiseWarning

BUDGETS = [Budget(1), Budget(1, 1e-6), Budget(rho="1/2")]


def bounds_of(rows, budget=BUDGETS[0], seed=0, max_rows=1):
    rows = np.asarray(rows, dtype=np.float64)
    d = rows.shape[1]
    plan = calibrate(Plan(*bounds_steps(d)), budget, max_rows)
    return find_bounds(curate(rows, Domain.from_bounds((-1e140, 1e140), d), plan, seed))


def columns(n, seed):
    """Columns of all sorts, and the share of rows that may be cut off each."""
    rng = np.random.default_rng(seed)

    def where(share, these, others):
        return np.where(rng.random(n) < share, these, others)

    return {
        "normal": (rng.normal(5, 2, n), 0.01),
        "blobs": (rng.normal(rng.choice([-20.0, 0.0, 7.0, 30.0], n)), 0.002),
        "uniform": (rng.uniform(0, 1, n), 0.002),
        "negative": (rng.uniform(-5, -4, n), 0.002),
        "integers": (rng.poisson(3, n).astype(np.float64), 0.01),
        "yes or no": (rng.integers(0, 2, n).astype(np.float64), 0.0),
        "latitude": (rng.normal(37.7, 0.03, n), 0.01),
        "timestamps": (1.7e9 + rng.uniform(-1e5, 1e5, n), 0.002),
        "far cluster": (where(0.02, rng.normal(500, 5, n), rng.normal(0, 10, n)), 0.01),
        "spike": (where(0.7, 100.0, rng.uniform(0, 1000, n)), 0.002),
        "heavy tails": (10 * rng.standard_t(3, n), 0.03),
    }


NAMES = list(columns(1, 0))


def test_shares_sum_to_one_and_each_step_declares_all_columns():
    steps = bounds_steps(7)
    assert sum(step.share for step in steps) == 1
    assert {step.sensitivity for step in steps} == {histograms_sensitivity(7)}


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_nearly_all_rows_and_are_tight(name, budget):
    for seed in range(3):
        column, cut = columns(20_000, seed)[name]
        (low,), (high,) = bounds_of(column[:, None], budget, seed)
        assert ((column < low) | (column > high)).mean() <= cut
        least, most = np.quantile(column, [0.001, 0.999])
        assert high - low <= 1.5 * (most - least)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_many_columns_at_once(budget):
    table = columns(100_000, 5)
    rows = np.stack([column for column, _ in table.values()], axis=1)
    low, high = bounds_of(rows, budget)
    cut = ((rows < low) | (rows > high)).mean(axis=0)
    assert (cut <= [allowed for _, allowed in table.values()]).all()
    least, most = np.quantile(rows, [0.001, 0.999], axis=0)
    assert (high - low <= 1.5 * (most - least)).all()


@pytest.mark.parametrize("n", [10_000, 200_000])
def test_gross_outliers_do_not_widen_the_bounds(n):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(n, 1))
        rows[: n // 10_000] = 1e9 * rng.choice([-1, 1], size=(n // 10_000, 1))
        low, high = bounds_of(rows, seed=seed)
        assert -6 < low[0] < -2 < 2 < high[0] < 6


@pytest.mark.parametrize("value", [42.0, -3e-7, 1e15])
def test_a_constant_column_gets_a_short_interval_around_it(value):
    (low,), (high,) = bounds_of(np.full((5000, 1), value))
    assert low < value < high
    assert high - low < 1e-3 * abs(value)


def test_a_column_of_zeros():
    with pytest.warns(NoiseWarning, match="column.s. 1: they are taken to be from -1 to 1"):
        (low,), (high,) = bounds_of(np.zeros((5000, 1)))
    assert (low, high) == (-1, 1)


def test_a_spike_does_not_hide_the_rows_that_stood_out_beside_it():
    """Each in 1024 bins, the other rows are lost in the noise; as a power of two, they are not."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        others = np.stack([rng.uniform(0, 100, 20_000), rng.uniform(-50, 50, 20_000)], axis=1)
        rows = np.where(rng.random((20_000, 2)) < 0.95, [0, 17], others)
        low, high = bounds_of(rows, seed=seed)
        assert ((rows < low) | (rows > high)).mean(axis=0).max() < 0.03
        assert (high - low < 300).all()


@pytest.mark.parametrize("zeros", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_a_column_of_mostly_zeros_beside_others(zeros):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(20_000, 4))
        rows[:, 0] = np.where(rng.random(20_000) < zeros, 0, rng.lognormal(3, 1, 20_000))
        low, high = bounds_of(rows, Budget("1/10"), seed)
        assert (high - low >= 1).all()
        assert (low < 0).all()
        assert (high > 0).all()


@pytest.mark.parametrize(
    "rows",
    [
        np.empty((0, 2)),
        np.zeros((1, 2)),
        np.full((3000, 2), 1e139),
        np.full((3000, 2), -5e-324),
        np.array([[-1e24, 1e24]] * 3000),
        np.tile([[-1e24, 0.0], [1e24, 1e-300]], (2000, 1)),
    ],
    ids=["empty", "one row", "beyond reach", "tiny", "large", "both"],
)
@pytest.mark.parametrize("epsilon", ["1/1000", 1, 50])
def test_bounds_are_always_a_valid_domain(rows, epsilon):
    for seed in range(5):
        low, high = bounds_of(rows, Budget(epsilon), seed)
        Domain.from_bounds((low, high), 2)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_noise_is_not_taken_for_rows(budget):
    found = np.array([bounds_of(np.empty((0, 3)), budget, seed) for seed in range(50)])
    assert (np.abs(found) == 1).mean() >= 0.95  # the fallback
    assert np.abs(found).max() < 4  # later histograms look no farther


def test_rows_out_of_reach_leave_the_fallback():
    low, high = bounds_of(np.full((5000, 1), 1e30))
    assert (low[0], high[0]) == (-1, 1)


def test_what_is_asked_is_what_the_plan_pays_for():
    plan = calibrate(Plan(*bounds_steps(2)), Budget(1), 3)
    rows = np.random.default_rng(0).normal(size=(5000, 2))
    curator = curate(rows, Domain.from_bounds((-1e140, 1e140), 2), plan, 0)
    find_bounds(curator)
    assert curator.records == plan.records()


def test_a_row_cap_makes_the_noise_larger():
    column, _ = columns(20_000, 0)["far cluster"]
    assert bounds_of(column[:, None])[1][0] > 480
    assert bounds_of(column[:, None], max_rows=50)[1][0] < 480


def test_bounds_may_be_part_of_a_larger_plan():
    steps = [Step(s.name, s.share / 10, sensitivity=s.sensitivity) for s in bounds_steps(1)]
    plan = calibrate(Plan(*steps, Step("rest", "9/10")), Budget(10))
    rows = np.random.default_rng(0).uniform(3, 4, size=(20_000, 1))
    low, high = find_bounds(curate(rows, Domain.from_bounds((-1e140, 1e140), 1), plan, 0))
    assert 2.7 < low[0] < 3.01
    assert 3.99 < high[0] < 4.3


def test_magnitudes_reach_far_on_both_sides():
    edges = magnitude_edges()
    assert (np.diff(edges) > 0).all()
    assert (edges == -edges[::-1]).all()
    assert edges[-1] == 2.0**LARGEST_EXPONENT
    assert edges[len(edges) // 2] == 2.0**LEAST_EXPONENT


def visible_by_hand(counts, lengths, thresholds):
    left, right = (len(counts), len(counts)), (0, 0)
    for length, threshold in zip(lengths, thresholds, strict=True):
        starts = [a for a in range(len(counts) - length + 1) if sum(counts[a : a + length]) > threshold]
        runs = [(a, a + length) for a in starts]
        below = [run for run in runs if right == (0, 0) or run[1] <= left[0]]
        above = [run for run in runs if right == (0, 0) or run[0] >= right[1]]
        left, right = min([left, *below]), max([right, *above])
    return left, right


def test_visible_runs_against_the_slow_twin():
    rng = np.random.default_rng(0)
    lengths = np.array([1, 2, 4, 8])
    for _ in range(300):
        counts = rng.integers(-3, 8, size=rng.integers(1, 30)) * rng.integers(0, 2)
        thresholds = np.sort(rng.integers(1, 25, size=4)).astype(np.float64)
        assert visible_runs(counts, lengths, thresholds) == visible_by_hand(counts, lengths, thresholds)


@pytest.mark.parametrize("n", [1, 2, 8, 64])
@pytest.mark.parametrize("gaussian", [False, True])
def test_quantiles_of_sums_of_noise_have_power(n, gaussian):
    rng = np.random.default_rng(n)
    noise = rng.normal(size=(100_000, n)) if gaussian else rng.laplace(size=(100_000, n))
    tail = 0.01
    share = (noise.sum(axis=1) > _noise_quantile(gaussian, n, tail)).mean()
    assert abs(share - tail) < 4 * math.sqrt(tail / 100_000)
    for factor in (0.7, 1.3):
        share = (factor * noise.sum(axis=1) > _noise_quantile(gaussian, n, tail)).mean()
        assert abs(share - tail) > 4 * math.sqrt(tail / 100_000)


def test_the_quantile_of_one_laplace_variable_is_known():
    assert _noise_quantile(False, 1, 1e-9) == pytest.approx(-math.log(2e-9))
