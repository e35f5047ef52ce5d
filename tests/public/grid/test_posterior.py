"""The Bayesian reading of a noisy grid, against quadrature and brute force."""

import math

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.public.grid import posterior
from sfumato.public.grid.posterior import Noise, affordable_sweeps, cell_means
from sfumato.public.means import project_to_simplex

GRID = Grid((-1.0, -1.0), (1.0, 1.0), (6, 6))


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("expected", [0.0, 3.0, 80.0])
def test_density_of_a_noisy_count_is_a_convolution(laplace, expected):
    noise = Noise(laplace, 4.0)
    variance = expected + (posterior.MISFIT * expected) ** 2 + 1 / 12

    t = expected + np.linspace(-15, 15, 400_001) * math.sqrt(variance)
    normal = np.exp(-0.5 * (t - expected) ** 2 / variance)

    def convolved(y):
        z = np.abs(y - t) / noise.std
        return np.trapezoid(normal * np.exp(-math.sqrt(2) * z if laplace else -0.5 * z**2), t)

    ys = np.array([-20.0, 0.0, expected, expected + 7.5, 2 * expected + 30])
    ours = np.array([posterior._log_density(y, expected, *noise) for y in ys])
    exact = np.log([convolved(y) for y in ys])
    np.testing.assert_allclose(ours - ours[2], exact - exact[2], atol=1e-3)


def test_kernels_agree_with_their_python_twins():
    noise = Noise(True, 3.0)
    for y, expected in [(5.0, 2.0), (-30.0, 0.0), (400.0, 380.0)]:
        slow = posterior._log_density.py_func(y, expected, *noise)
        assert posterior._log_density(y, expected, *noise) == pytest.approx(slow, rel=1e-9)


def test_expectations_stay_in_step_with_the_mixture():
    """After many moves the incremental expectations are those of the final mixture."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(5, GRID.n_cells).astype(float)
    start = rng.uniform(-0.5, 0.5, (3, 2)), np.full(3, 60.0)
    chain = posterior._Chain(GRID, counts, Noise(True, 2.0), (180.0, 10.0), start, 1)
    chain.run(200)
    centers, sizes = chain.clusters[:, :-1], chain.clusters[:, -1]
    fresh = posterior._Chain(GRID, counts, Noise(True, 2.0), (180.0, 10.0), (centers, sizes), 1)
    fresh.spreads[0] = chain.spreads[0]
    fresh.proposed[:] = chain.clusters
    posterior._move(*fresh._arrays, 0, 0, 3, chain.spreads[0], -math.inf)
    y, expected, fit, change, _ = chain.cells
    np.testing.assert_allclose(expected, fresh.cells[1], atol=0.05)
    np.testing.assert_allclose(
        fit, [posterior._log_density(*at, True, 2.0) for at in zip(y, expected, strict=True)]
    )
    assert not change.any()
    assert not chain.listed[1].any()
    assert expected.sum() == pytest.approx(sizes.sum(), rel=1e-2)


def brute_force_expectations(counts, noise, rows):
    """Posterior mean cell expectations of one cluster on a line, by summing over a lattice of parameters."""
    edges = np.linspace(0, 1, len(counts) + 1)
    spreads = np.exp(np.linspace(*np.log(posterior.SPREADS), 25))
    total, mean = 0.0, np.zeros(len(counts))
    for center in np.linspace(0.01, 0.99, 50):
        for spread in spreads:
            upto = np.array([0.5 * math.erfc((center - e) / (spread * math.sqrt(2))) for e in edges])
            upto[[0, -1]] = 0, 1
            mass = np.diff(upto)
            for size in np.linspace(1, 80, 80):
                fits = [
                    posterior._log_density(y, size * p, *noise) for y, p in zip(counts, mass, strict=True)
                ]
                log_prior = -math.log(size) - abs(size - rows[0]) * math.sqrt(2) / rows[1]
                weight = math.exp(sum(fits) + log_prior)
                total += weight
                mean += weight * size * mass
    return mean / total


def test_chains_reach_the_posterior_mean():
    grid, noise, rows = Grid((0.0,), (1.0,), (4,)), Noise(True, 5.0), (35.0, 10.0)
    counts = np.array([2.0, 25.0, 9.0, -4.0])
    chain = posterior._Chain(grid, counts, noise, rows, (np.array([[0.4]]), np.array([30.0])), 3)
    for _ in range(3):
        chain.run(20_000)
    np.testing.assert_allclose(
        chain.means().expected, brute_force_expectations(counts, noise, rows), atol=0.5
    )


def test_posterior_is_closer_to_the_truth_than_the_noisy_counts():
    rng = np.random.default_rng(5)
    rows = np.concatenate([c + 0.1 * rng.standard_normal((300, 2)) for c in ([-0.5, -0.4], [0.5, 0.3])])
    raw = np.bincount(GRID.index(rows), minlength=GRID.n_cells)
    noisy = raw + np.round(rng.laplace(0, 10, GRID.n_cells))
    starts = [(np.array([[-0.3, -0.3], [0.3, 0.3]]), np.full(2, 300.0))] * 2
    means = cell_means(GRID, noisy, Noise(True, 14.0), (600.0, 20.0), starts, 300)
    projected = project_to_simplex(noisy, 600.0)
    assert np.abs(means.counts - raw).sum() < 0.6 * np.abs(projected - raw).sum()
    low, high = GRID.centers() - GRID.widths / 2, GRID.centers() + GRID.widths / 2
    assert (means.positions >= low - 1e-12).all()
    assert (means.positions <= high + 1e-12).all()
    again = cell_means(GRID, noisy, Noise(True, 14.0), (600.0, 20.0), starts, 300)
    np.testing.assert_array_equal(means.counts, again.counts)


def test_more_clusters_are_found_when_the_release_shows_them():
    rng = np.random.default_rng(6)
    corners = np.array([[-0.6, -0.6], [-0.6, 0.6], [0.6, -0.6], [0.6, 0.6]])
    rows = np.concatenate([c + 0.08 * rng.standard_normal((300, 2)) for c in corners])
    noisy = (np.bincount(GRID.index(rows), minlength=GRID.n_cells) + rng.laplace(0, 2, GRID.n_cells)).round()

    def means(centers):
        return cell_means(
            GRID, noisy, Noise(True, 2.8), (1200.0, 20.0), [(centers, np.full(len(centers), 300.0))], 300
        )

    two, four, eight = means(corners[:2]), means(corners), means(np.repeat(corners, 2, axis=0) * 0.95)
    assert four.fits_better(two, 1200)
    assert not eight.fits_better(four, 1200)


def test_chains_stop_when_they_agree():
    rng = np.random.default_rng(7)
    corners = np.array([[-0.6, -0.6], [0.6, 0.6]])
    rows = np.concatenate([c + 0.08 * rng.standard_normal((3000, 2)) for c in corners])
    noisy = np.bincount(GRID.index(rows), minlength=GRID.n_cells).astype(float)
    sizes = np.full(2, 3000.0)

    def chains(*starts):
        found = [
            posterior._Chain(GRID, noisy, Noise(True, 1.4), (6000.0, 20.0), (start, sizes), seed)
            for seed, start in enumerate(starts)
        ]
        for _ in range(40):
            for chain in found:
                chain.run(posterior.SWEEPS_AT_A_TIME)
        return found

    assert posterior._agree(chains(corners, corners), 6000.0)
    assert not posterior._agree(chains(corners), 6000.0)
    one, other = chains(corners, corners)
    other.parts = [part._replace(expected=0.8 * part.expected) for part in other.parts]
    assert not posterior._agree([one, other], 6000.0)


def test_large_grids_are_left_to_the_data():
    assert affordable_sweeps(GRID, 2) == posterior.N_SWEEPS
    assert affordable_sweeps(Grid((0.0, 0.0), (1.0, 1.0), (2000, 2000)), 8) == 0


@pytest.mark.parametrize("seed", range(20))
def test_projection_is_the_nearest_point_of_the_simplex(seed):
    rng = np.random.default_rng(seed)
    values, total = rng.normal(0, 10, rng.integers(1, 40)), float(rng.uniform(0.1, 100))
    projected = project_to_simplex(values, total)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(total)
    low, high = values.min() - total, values.max()  # the threshold, by bisection
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(values - middle, 0).sum() > total else (low, middle)
    np.testing.assert_allclose(projected, np.maximum(values - low, 0), atol=1e-6)
