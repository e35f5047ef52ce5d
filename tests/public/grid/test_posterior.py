"""The Bayesian reading of a noisy grid, by what it makes of simulated releases."""

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.public.grid import posterior
from sfumato.public.grid.chains import Chain, Noise, NoisyGrid
from sfumato.public.grid.posterior import affordable_sweeps, cell_means
from sfumato.public.means import project_to_simplex

GRID = Grid((-1.0, -1.0), (1.0, 1.0), (6, 6))


def test_posterior_is_closer_to_the_truth_than_the_noisy_counts():
    rng = np.random.default_rng(5)
    rows = np.concatenate([c + 0.1 * rng.standard_normal((300, 2)) for c in ([-0.5, -0.4], [0.5, 0.3])])
    raw = np.bincount(GRID.index(rows), minlength=GRID.n_cells)
    noisy = raw + np.round(rng.laplace(0, 10, GRID.n_cells))
    starts = [(np.array([[-0.3, -0.3], [0.3, 0.3]]), np.full(2, 300.0))] * 2
    means = cell_means(NoisyGrid(GRID, noisy, Noise(True, 14.0), (600.0, 20.0)), starts, 300)
    projected = project_to_simplex(noisy, 600.0)
    assert np.abs(means.counts - raw).sum() < 0.6 * np.abs(projected - raw).sum()
    low, high = GRID.centers() - GRID.widths / 2, GRID.centers() + GRID.widths / 2
    assert (means.positions >= low - 1e-12).all()
    assert (means.positions <= high + 1e-12).all()
    again = cell_means(NoisyGrid(GRID, noisy, Noise(True, 14.0), (600.0, 20.0)), starts, 300)
    np.testing.assert_array_equal(means.counts, again.counts)


def test_more_clusters_are_found_when_the_release_shows_them():
    rng = np.random.default_rng(6)
    corners = np.array([[-0.6, -0.6], [-0.6, 0.6], [0.6, -0.6], [0.6, 0.6]])
    rows = np.concatenate([c + 0.08 * rng.standard_normal((300, 2)) for c in corners])
    noisy = (np.bincount(GRID.index(rows), minlength=GRID.n_cells) + rng.laplace(0, 2, GRID.n_cells)).round()

    def means(centers):
        seen = NoisyGrid(GRID, noisy, Noise(True, 2.8), (1200.0, 20.0))
        return cell_means(seen, [(centers, np.full(len(centers), 300.0))], 300)

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
            Chain(NoisyGrid(GRID, noisy, Noise(True, 1.4), (6000.0, 20.0)), (start, sizes), seed)
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
