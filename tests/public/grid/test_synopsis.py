"""A released grid: everything that is computed from it, at no cost."""

import numpy as np
import pytest
from tests.worlds import rarely

from sfumato.datasets import separated_gaussians
from sfumato.domain import Grid
from sfumato.public.grid.posterior import affordable_sweeps
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.kmeans import weighted_kmeans


def synopsis(m=10, d=2, n=2000, noise_std=1.5, seed=0, **changes):
    X, _ = separated_gaussians(n, 4, d, random_state=seed)
    grid = Grid((-1.0,) * d, (1.0,) * d, (m,) * d)
    rng = np.random.default_rng(seed)
    noise = np.round(rng.laplace(0, noise_std / np.sqrt(2), grid.n_cells)).astype(np.int64)
    fields = {
        "grid": grid,
        "noisy_counts": np.bincount(grid.index(X), minlength=grid.n_cells) + noise,
        "noise_std": noise_std,
        "laplace": True,
        "noisy_rows": float(n),
        "rows_std": 28.0,
    }
    return GridSynopsis(**(fields | changes)), X


def test_range_counts_are_right_on_average_with_known_noise():
    scores = []
    for seed in range(60):
        released, X = synopsis(seed=seed)
        low, high = np.array([-0.6, -1.0]), np.array([0.4, 0.2])
        estimate, std = released.range_count(low, high)
        inside = ((low <= X) & (high > X)).all(axis=1).sum()
        scores.append((estimate - inside) / std)
    assert abs(np.mean(scores)) < 0.5
    assert 0.8 < np.std(scores) < 1.25


def test_range_count_of_the_whole_box_and_of_nothing():
    released, _ = synopsis()
    assert released.range_count([-1, -1], [1, 1])[0] == pytest.approx(released.noisy_counts.sum())
    assert released.range_count([-5, -5], [5, 5])[0] == pytest.approx(released.noisy_counts.sum())
    assert released.range_count([0.3, 0], [0.3, 0.1]) == (0.0, 0.0)
    assert released.range_count([2, 2], [3, 3]) == (0.0, 0.0)


def test_parts_of_cells_count_in_proportion():
    grid = Grid((0.0,), (2.0,), (2,))
    released = GridSynopsis(grid, np.array([10, 30]), 1.0, True, 40.0, 0.0)
    estimate, std = released.range_count(0.5, 1.5)
    assert estimate == pytest.approx(0.5 * 10 + 0.5 * 30)
    assert std == pytest.approx(np.sqrt(0.5))


def test_synthetic_rows_follow_the_counts():
    released, X = synopsis(n=20_000)
    rows = released.sample(20_000, random_state=0)
    assert rows.shape == (20_000, 2)
    assert (np.abs(rows) <= 1).all()
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.03)
    np.testing.assert_array_equal(rows, released.sample(20_000, random_state=0))


def test_number_of_rows_weighs_both_sources():
    released, _ = synopsis(noisy_rows=1000.0, rows_std=1e9)
    assert released.rows_estimate() == pytest.approx(released.noisy_counts.sum())
    assert synopsis(noisy_rows=1000.0, rows_std=0.0)[0].rows_estimate() == 1000.0
    assert synopsis(noisy_rows=-50.0, rows_std=0.0)[0].rows_estimate() == 1.0


@pytest.mark.parametrize("n_clusters", [1, 4, 100, 250, *rarely(3, 9, 99, 101)])
def test_any_number_of_clusters(n_clusters):
    released, _ = synopsis()
    centers, sizes = released.cluster(n_clusters)
    assert centers.shape == (n_clusters, 2)
    assert (np.abs(centers) <= 1).all()
    assert sizes.sum() == pytest.approx(released.rows_estimate(), rel=1e-6)


@pytest.mark.parametrize("laplace", [True, False])
def test_centres_are_near_the_true_means(laplace):
    released, X = synopsis(n=4000, laplace=laplace)
    centers, sizes = released.cluster(4)
    nearest = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    means = np.array([X[nearest == j].mean(axis=0) for j in range(4)])
    np.testing.assert_allclose(centers, means, atol=0.03)
    np.testing.assert_allclose(sizes, 1000, atol=60)


@pytest.mark.parametrize("counts", [np.zeros(100), np.full(100, -7), np.eye(100)[3] * 2**40])
def test_degenerate_counts(counts):
    released, _ = synopsis(noisy_counts=counts.astype(np.int64), noisy_rows=float(counts.sum()))
    centers, sizes = released.cluster(5)
    assert np.isfinite(centers).all()
    assert (np.abs(centers) <= 1).all()
    assert np.isfinite(sizes).all()


def test_large_grids_skip_the_model():
    released, X = synopsis(m=160, n=400_000)
    assert affordable_sweeps(released.grid, 4) == 0
    centers, sizes = released.cluster(4)
    nearest = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    means = np.array([X[nearest == j].mean(axis=0) for j in range(4)])
    np.testing.assert_allclose(centers, means, atol=0.02)
    np.testing.assert_allclose(
        sizes, np.bincount(nearest), atol=5 * 1.5 * 80
    )  # 80: root of a quarter of the cells


def test_weighted_kmeans_with_fewer_points_of_weight_than_clusters():
    points = np.arange(12.0).reshape(6, 2)
    centers, sizes = weighted_kmeans(points, np.array([0, 0, 5.0, 0, 0, 0]), 3, n_init=2)
    assert len(np.unique(centers, axis=0)) == 3
    assert sizes.max() == pytest.approx(5.0)


@pytest.mark.parametrize(("d", "per_side"), [(2, 150), (3, 30), (4, 14)])
def test_noise_in_empty_cells_does_not_pull_centres_to_the_middle(d, per_side):
    """On grids too large for the model, where projected counts leave noise in many empty cells."""
    rng = np.random.default_rng(d)
    true = np.full((2, d), 0.6) * [[1], [-1]]
    rows = (true[rng.integers(2, size=40_000)] + rng.normal(scale=0.1, size=(40_000, d))).clip(-1, 1)
    grid = Grid((-1.0,) * d, (1.0,) * d, (per_side,) * d)
    noise = np.rint(rng.laplace(scale=2, size=grid.n_cells)).astype(np.int64)
    counts = np.bincount(grid.index(rows), minlength=grid.n_cells) + noise
    noisy = GridSynopsis(grid, counts, np.sqrt(8.0), laplace=True, noisy_rows=40_000.0, rows_std=0.0)
    assert affordable_sweeps(grid, 2) == 0
    centers, _ = noisy.cluster(2)
    assert abs(np.sort(centers, axis=0) - np.sort(true, axis=0)).max() < 0.02
