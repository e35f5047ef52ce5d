"""The row cap: near the best that one could choose with the exact numbers."""

import numpy as np
import pytest
from tests.worlds import curate

from sfumato.budget import Budget, Plan, calibrate
from sfumato.cluster.shared.caps import choose_max_rows, contribution_edges, contribution_steps
from sfumato.curator import histograms_sensitivity
from sfumato.domain import Domain

BUDGETS = [Budget("1/10"), Budget("1/10", 1e-6), Budget(rho="1/200")]
DOMAIN = Domain.from_bounds((1, 2**40), 1)


def chosen(rows_of_each, n_clusters=5, noise_per_row=2**0.5, budget=BUDGETS[0], seed=0):
    plan = calibrate(Plan(*contribution_steps()), budget)
    curator = curate(np.asarray(rows_of_each)[:, None], DOMAIN, plan, seed)
    return choose_max_rows(n_clusters, noise_per_row, curator)


def people(n, seed):
    rng = np.random.default_rng(seed)
    return {
        "one each": np.ones(n, dtype=np.int64),
        "twenty each": np.full(n, 20),
        "few or many": np.where(rng.random(n) < 0.5, 1, 300),
        "geometric": rng.geometric(1 / 50, n),
        "Zipf": np.minimum(rng.zipf(1.5, n), 10**7),
        "light Zipf": rng.zipf(2.5, n),
        "a bot": np.append(rng.geometric(1 / 5, n), 10**6),
    }


def error_of_sizes(rows_of_each, max_rows, n_clusters, noise_per_row):
    """Relative error of the size of a cluster, from the exact numbers."""
    kept = np.minimum(rows_of_each, max_rows).sum()
    return np.sqrt(n_clusters / kept + (n_clusters * max_rows * noise_per_row / kept) ** 2)


def simulated_error(rows_of_each, max_rows, n_clusters, epsilon, rng):
    """The same, drawn: rows in clusters of equal size, capped, counted with noise."""
    kept = int(np.minimum(rows_of_each, max_rows).sum())
    counts = rng.multinomial(kept, np.full(n_clusters, 1 / n_clusters), size=2000)
    noisy_counts = counts + rng.laplace(scale=max_rows / epsilon, size=counts.shape)
    return np.sqrt(np.mean((noisy_counts * n_clusters / kept - 1) ** 2))


def test_one_step_with_the_whole_share():
    (step,) = contribution_steps()
    assert step.share == 1
    assert step.sensitivity == histograms_sensitivity(1)


def test_edges_are_whole_and_dense_at_the_start():
    edges = contribution_edges()
    assert edges[:9].tolist() == [1, 2, 3, 4, 6, 8, 11, 16, 23]
    assert (edges == np.rint(edges)).all()
    assert edges[-1] == 2**40
    assert (edges[1:] / edges[:-1] <= 2).all()


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", list(people(1, 0)))
@pytest.mark.parametrize(("n_clusters", "noise_per_row"), [(5, 1.4), (5, 14.0), (100, 1.4)])
def test_the_cap_is_near_the_best(name, n_clusters, noise_per_row, budget):
    for seed in range(3):
        rows_of_each = people(5000, seed)[name]
        cap = chosen(rows_of_each, n_clusters, noise_per_row, budget, seed).max_rows
        caps = np.unique(np.rint(1.1 ** np.arange(170)))
        best = min(error_of_sizes(rows_of_each, m, n_clusters, noise_per_row) for m in caps)
        assert error_of_sizes(rows_of_each, cap, n_clusters, noise_per_row) <= 1.1 * best


@pytest.mark.parametrize("name", list(people(1, 0)))
def test_the_rule_describes_simulated_counts(name):
    rng, rows_of_each = np.random.default_rng(0), people(2000, 0)[name]
    for max_rows in (1, 8, 64):
        expected = error_of_sizes(rows_of_each, max_rows, 10, 2**0.5)
        assert simulated_error(rows_of_each, max_rows, 10, 1.0, rng) == pytest.approx(expected, rel=0.1)


def test_equal_contributions_are_kept_whole_unless_noise_forbids():
    found = chosen(np.full(20_000, 20))
    assert found.max_rows == 23
    assert found.kept == pytest.approx(1)


def test_a_bot_does_not_move_the_cap():
    rows_of_each = np.random.default_rng(0).geometric(1 / 5, 20_000)
    assert chosen(np.append(rows_of_each, 10**6)).max_rows == chosen(rows_of_each).max_rows


def test_more_noise_never_raises_the_cap():
    rows_of_each = people(20_000, 0)["Zipf"]
    caps = [chosen(rows_of_each, noise_per_row=noise).max_rows for noise in (0.1, 1.0, 10.0, 100.0, 1e4)]
    assert caps == sorted(caps, reverse=True)
    assert caps[0] > caps[-1]


@pytest.mark.parametrize(
    "rows_of_each", [[], [1], [10**6], np.full(30, 7)], ids=["none", "one", "bot", "few"]
)
def test_one_row_each_if_nobody_stands_out(rows_of_each):
    for seed in range(20):
        found = chosen(np.asarray(rows_of_each, dtype=np.float64), budget=Budget("1/100"), seed=seed)
        assert (found.max_rows, found.kept) == (1, 0)


def test_what_is_reported():
    rows_of_each = people(20_000, 0)["geometric"]
    found = chosen(rows_of_each)
    exact = np.histogram(rows_of_each, found.edges)[0]
    assert np.abs(found.noisy_people - exact).max() < 15 * found.noise_std
    assert found.noise_std == pytest.approx(14.1, rel=0.01)
    kept = np.minimum(rows_of_each, found.max_rows).sum() / rows_of_each.sum()
    assert found.kept == pytest.approx(kept, abs=0.03)
