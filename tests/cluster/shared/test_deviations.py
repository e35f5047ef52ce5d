"""Whether the noise in centres and sizes is as large as the model says."""

import numpy as np
import pytest

from sfumato import DPM, CoresetKMeans, DPMoG, GridKMeans, LloydKMeans, LocalSearchKMeans, PrivateKMeans
from sfumato.datasets import separated_gaussians
from sfumato.public.means import mean_stds

N_SEEDS = 8
BUDGETS = [{"epsilon": 1}, pytest.param({"epsilon": 1, "delta": 1e-6}, marks=pytest.mark.slow)]


def scores(make, rows):
    """Errors of centres and of sizes against the rows nearest to each centre, in standard deviations."""
    of_centers, of_sizes = [], []
    for seed in range(N_SEEDS):
        fitted = make(seed).fit(rows)
        labels, k = fitted.labels_, fitted.n_clusters_
        counts = np.bincount(labels, minlength=k)
        means = np.stack([rows[labels == label].mean(axis=0) for label in range(k)])
        of_centers.append((fitted.cluster_centers_ - means) / fitted.cluster_center_stds_)
        of_sizes.append((fitted.cluster_sizes_ - counts) / fitted.cluster_size_stds_)
    return np.concatenate(of_centers).ravel(), np.concatenate(of_sizes)


def quadratic_mean(values):
    return float(np.sqrt((values**2).mean()))


def overlapping_rows():
    rng = np.random.default_rng(1)
    centers = rng.uniform(-0.7, 0.7, (6, 2))
    return (centers[rng.integers(0, 6, 20_000)] + rng.normal(0, 0.15, (20_000, 2))).clip(-1, 1)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("method", [DPM, LloydKMeans, CoresetKMeans, DPMoG], ids=lambda cls: cls.__name__)
def test_errors_are_as_large_as_stated(method, budget):
    rows, _ = separated_gaussians(30_000, 6, 8, random_state=0)
    k = {"n_components": 6} if method is DPMoG else {"n_clusters": 6}
    make = lambda seed: method(**k, **budget, bounds=(-1, 1), random_state=seed)  # noqa: E731
    of_centers, of_sizes = scores(make, rows)
    # Means are shrunk and doubt is rounded up, so errors are a little less than stated.
    assert 0.45 < quadratic_mean(of_centers) < 1.1
    assert 0.5 < quadratic_mean(of_sizes) < 1.45


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("method", [DPM, LloydKMeans, CoresetKMeans], ids=lambda cls: cls.__name__)
def test_little_noise_does_not_feign_certainty(method, budget):
    """Noise is small here, so most of the error is from clipping and from moves that are not over."""
    make = lambda seed: method(n_clusters=6, **budget, bounds=(-1, 1), random_state=seed)  # noqa: E731
    for errors in scores(make, overlapping_rows()):
        assert (abs(errors) < 1.96).mean() > 0.85
        assert quadratic_mean(errors) > 0.4


@pytest.mark.parametrize(
    "make", [DPM, PrivateKMeans, LocalSearchKMeans, LloydKMeans, CoresetKMeans], ids=lambda cls: cls.__name__
)
@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"epsilon": 1.0, "delta": 1e-6}], ids=str)
def test_intervals_hold_the_means_of_small_skewed_tables(make, budget):
    """Skewed rows are clipped on one side. If they cancelled as in round clusters, some would hold .6."""
    rng = np.random.default_rng(3)
    corners = rng.uniform(-0.9, 0, (3, 3))
    rows = (corners[rng.integers(0, 3, 2500)] + rng.exponential(0.15, (2500, 3))).clip(-1, 1)
    held = []
    for seed in range(6):
        found = make(3, **budget, bounds=(-1, 1), random_state=seed).fit(rows)
        labels = found.predict(rows)
        for label in np.unique(labels):
            gaps = found.cluster_centers_[label] - rows[labels == label].mean(axis=0)
            held.append(abs(gaps) <= 1.96 * found.cluster_center_stds_[label])
    assert np.mean(held) > 0.9


@pytest.mark.slow
def test_errors_of_a_grid_are_no_larger_than_stated():
    rows, _ = separated_gaussians(1_000, 3, 2, random_state=0)
    of_centers, of_sizes = scores(lambda seed: GridKMeans(3, bounds=(-1, 1), random_state=seed), rows)
    assert 0.05 < quadratic_mean(of_centers) < 1
    assert 0.05 < quadratic_mean(of_sizes) < 1


def test_deviations_of_quotients():
    rng = np.random.default_rng(0)
    sums, sizes, sum_std, size_std = np.array([[30.0, -8.0], [2.0, 0.0]]), np.array([100.0, 40.0]), 2.0, 5.0
    noisy_sums = sums + rng.normal(0, sum_std, (40_000, *sums.shape))
    noisy_sizes = sizes + rng.normal(0, size_std, (40_000, 2))
    simulated = (noisy_sums / noisy_sizes[..., None]).std(axis=0)
    stated = mean_stds(sums, sizes, np.full(2, sum_std), size_std)
    np.testing.assert_allclose(stated, simulated, rtol=0.05)
