"""Metropolis chains over mixtures, against quadrature and brute force."""

import math

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.public.grid import chains
from sfumato.public.grid.chains import Chain, Noise, NoisyGrid

GRID = Grid((-1.0, -1.0), (1.0, 1.0), (6, 6))


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("expected", [0.0, 3.0, 80.0])
def test_density_of_a_noisy_count_is_a_convolution(laplace, expected):
    noise = Noise(laplace, 4.0)
    variance = expected + (chains.MISFIT * expected) ** 2 + 1 / 12

    t = expected + np.linspace(-15, 15, 400_001) * math.sqrt(variance)
    normal = np.exp(-0.5 * (t - expected) ** 2 / variance)

    def convolved(y):
        z = np.abs(y - t) / noise.std
        return np.trapezoid(normal * np.exp(-math.sqrt(2) * z if laplace else -0.5 * z**2), t)

    ys = np.array([-20.0, 0.0, expected, expected + 7.5, 2 * expected + 30])
    ours = np.array([chains.log_density(y, expected, noise) for y in ys])
    exact = np.log([convolved(y) for y in ys])
    np.testing.assert_allclose(ours - ours[2], exact - exact[2], atol=1e-3)


def test_far_tails_join():
    noise, expected = Noise(True, 1.4), np.array([0.5, 40.0])
    y = expected + np.linspace(0, 60, 100_001)[:, None]
    assert np.abs(np.diff(chains.log_density(y, expected, noise), 2, axis=0)).max() < 1e-5


@pytest.mark.parametrize(
    "noise", [Noise(True, 2.0), Noise(True, 30.0), Noise(False, 2.0), Noise(False, 30.0)]
)
def test_table_of_densities(noise):
    rng = np.random.default_rng(0)
    expected, spans = rng.exponential([[1.0], [30.0], [1000.0]], (3, 200)).ravel(), rng.standard_normal(600)
    counts = np.round(np.append(expected[:300] + 2 * noise.std * spans[:300], 2 * noise.std * spans[300:]))
    seen = NoisyGrid(Grid((0.0,), (1.0,), (600,)), counts, noise, (10_000.0, 5.0))
    cells = np.zeros((5, 600))
    cells[2] = expected
    listed = np.array([seen.rows_of_table, np.arange(600), np.ones(600, dtype=np.int64)])
    exact = chains.log_density(counts, expected, noise)
    gain = chains._decide(seen.densities, cells, listed, 600, -math.inf)
    assert gain == pytest.approx(exact.sum(), rel=1e-5)
    np.testing.assert_allclose(cells[1], exact, atol=1e-3, rtol=1e-4)
    np.testing.assert_array_equal(cells[0], expected)
    assert not cells[2].any()


def test_mean_positions_are_those_of_clipped_normals():
    rng = np.random.default_rng(1)
    centers, spread, edges = np.array([[0.1], [0.6]]), np.array([[0.2], [0.1]]), np.linspace(0, 1, 6)
    rows = np.clip(centers + spread * rng.standard_normal((2, 400_000)), 0, 1)
    mass, moment = chains._mass_and_moment(centers, spread, edges)
    for at in range(2):
        cells = np.minimum((rows[at] * 5).astype(int), 4)
        np.testing.assert_allclose(mass[at], np.bincount(cells, minlength=5) / 400_000, atol=3e-3)
        np.testing.assert_allclose(moment[at], np.bincount(cells, rows[at], 5) / 400_000, atol=3e-3)


def test_likelihood_stays_in_step_with_the_mixture():
    """After many moves, the likelihood that was added up is that of the final mixture."""
    rng = np.random.default_rng(0)
    counts, noise = rng.poisson(5, GRID.n_cells).astype(float), Noise(True, 2.0)
    start = rng.uniform(-0.5, 0.5, (3, 2)), np.full(3, 60.0)
    chain = Chain(NoisyGrid(GRID, counts, noise, (180.0, 10.0)), start, 1)
    trace = chain._traced(200)
    final = chain._sums(trace[-1:, :-1], trace[-1:, -1, 0], 0.0)
    exact = chains.log_density(counts, final.expected, noise).sum()
    assert trace[-1, -1, 1] == pytest.approx(exact, abs=0.1)
    assert final.expected.sum() == pytest.approx(trace[-1, :-1, -1].sum(), rel=1e-9)
    assert (np.abs(final.moments) <= final.expected[:, None]).all()
    assert len(np.unique(trace[:, :-1, 0])) > 50


def brute_force_expectations(counts, noise, rows):
    """Posterior mean cell expectations of one cluster on a line, by summing over a lattice of parameters."""
    edges = np.linspace(0, 1, len(counts) + 1)
    spreads = np.exp(np.linspace(*np.log(chains.SPREADS), 25))
    total, mean = 0.0, np.zeros(len(counts))
    for center in np.linspace(0.01, 0.99, 50):
        for spread in spreads:
            upto = np.array([0.5 * math.erfc((center - e) / (spread * math.sqrt(2))) for e in edges])
            upto[[0, -1]] = 0, 1
            mass = np.diff(upto)
            for size in np.linspace(1, 80, 80):
                fits = chains.log_density(counts, size * mass, noise)
                log_prior = -math.log(size) - abs(size - rows[0]) * math.sqrt(2) / rows[1]
                weight = math.exp(fits.sum() + log_prior)
                total += weight
                mean += weight * size * mass
    return mean / total


def test_chains_reach_the_posterior_mean():
    grid, noise, rows = Grid((0.0,), (1.0,), (4,)), Noise(True, 5.0), (35.0, 10.0)
    counts = np.array([2.0, 25.0, 9.0, -4.0])
    chain = Chain(NoisyGrid(grid, counts, noise, rows), (np.array([[0.4]]), np.array([30.0])), 3)
    for _ in range(3):
        chain.run(20_000)
    np.testing.assert_allclose(
        chain.means().expected, brute_force_expectations(counts, noise, rows), atol=0.5
    )
