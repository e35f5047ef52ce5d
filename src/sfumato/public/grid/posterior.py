"""A Bayesian reading of a noisy grid: the likely true counts, given the noisy ones.

Given everything released, the centres with the least *expected* within-cluster sum of squares are the
weighted k-means centres of the posterior mean counts, each at its posterior mean position in its cell. So all
we need is a posterior for the counts. Its model is deliberately plain:

- there are k compact clusters: isotropic normals with centres uniform in the box, one common spread
  (log-uniform), and shares of the rows from a Dirichlet law. Rows outside the box are clipped to its border.
  If twice as many clusters fit the released values much better, we use twice as many, and so on;
- the true count of a cell varies around its expectation like a Poisson count, plus a relative misfit. Where
  counts are large, the data then speak for themselves, whatever the shape of the clusters;
- the noise of the counts, and of the released number of rows, is known.

The mean is taken over Metropolis chains from k-means starts, with fixed seeds, so anyone with the release can
repeat them. All of this is post-processing of released values, and public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.domain import FloatArray, Grid
from sfumato.public.grid.chains import MISFIT, SPREADS, Chain, Noise, NoisyGrid, unit
from sfumato.public.means import project_to_simplex

# Tuned: docs/notes/grid.md, docs/notes/constants.md#grid
N_CHAINS = 3
N_SWEEPS = 300  # per chain; a third is warm-up
SWEEPS_AT_A_TIME = 8  # after every so many, chains that agree stop
GLANCE_SWEEPS = 24  # of one chain, to see whether more clusters fit better
START_RUNS = 4  # of k-means, of which a chain starts from the best
AGREEMENT = 0.02  # share of the rows that a chain may put into other cells than all chains do
MAX_WORK = 4e6  # cell updates over all chains: larger grids get fewer sweeps ...
MIN_SWEEPS = 30  # ... and with fewer than this, cells are taken as they are, since the noise is small


@dataclass(frozen=True, eq=False)
class CellMeans:
    """Posterior mean of each cell's count and of its rows' position."""

    counts: FloatArray  # (n_cells,)
    positions: FloatArray  # (n_cells, d)
    centers: list[FloatArray]  # final centres of each chain
    log_likelihood: float  # mean over the chains, up to a constant that depends on the grid

    def fits_better(self, other: CellMeans, rows: float) -> bool:
        """Whether this model explains the released values better than one with fewer clusters.

        For each further parameter, Schwarz's criterion requires the maximum log likelihood to gain
        log(rows)/2, and Akaike's requires 1. We use the larger of the two. The mean over a chain lies 1/2 per
        parameter below the maximum.
        """
        centers, others = self.centers[0], other.centers[0]
        parameters = (len(centers) - len(others)) * (len(centers[0]) + 1)
        return self.log_likelihood - other.log_likelihood > parameters * (max(math.log(rows), 2.0) - 1) / 2


def affordable_sweeps(grid: Grid, n_clusters: int) -> int:
    """Sweeps per chain that the work limit allows; 0 if the posterior is not worth its cost."""
    widths = np.array(grid.high) - np.array(grid.low)
    reach = 12 * math.sqrt(SPREADS[0] * SPREADS[1]) * unit(grid, n_clusters)
    window = float(np.prod(np.minimum(reach / widths * np.array(grid.shape) + 1, grid.shape)))
    sweeps = int(min(N_SWEEPS, MAX_WORK / (6 * n_clusters * window * N_CHAINS)))
    return sweeps if sweeps >= MIN_SWEEPS else 0


def cell_means(seen: NoisyGrid, starts: list[tuple[FloatArray, FloatArray]], sweeps: int) -> CellMeans:
    """Posterior means under the model of this module.

    Parameters
    ----------
    seen : NoisyGrid
    starts : list of (centers, sizes)
        One chain starts from each.
    sweeps : int
        Per chain, at most: several chains stop when they agree.
    """
    rows, middles, noisy_counts = seen.rows[0], seen.middles, seen.noisy_counts
    chains = [Chain(seen, start, seed) for seed, start in enumerate(starts)]
    for done in range(0, sweeps, SWEEPS_AT_A_TIME):
        for chain in chains:
            chain.run(min(SWEEPS_AT_A_TIME, sweeps - done))
        if _agree(chains, rows):
            break
    means = [chain.means() for chain in chains]
    expected, moments = (
        np.mean([m.expected for m in means], axis=0),
        np.mean([m.moments for m in means], axis=0),
    )
    counts = expected + _trust_in_data(noisy_counts, expected, seen.noise) * (noisy_counts - expected)
    counts = project_to_simplex(counts, rows)
    # Rows that the mixture explains are where it says. The rest are in the middle of the cell.
    explained = np.minimum(expected, counts)
    weight = np.where(counts > 0, explained / np.maximum(counts, 1e-300), 0.0)[:, None]
    places = moments / np.maximum(expected, 1e-300)[:, None]
    positions = np.where(weight > 0, weight * places + (1 - weight) * middles, middles)
    fit = float(np.mean([m.log_likelihood for m in means]))
    return CellMeans(counts, positions, [chain.clusters[:, :-1] for chain in chains], fit)


def _agree(chains: Sequence[Chain], rows: float) -> bool:
    """Whether the chains put nearly all rows into the same cells (after Gelman and Rubin 1992)."""
    if len(chains) < 2 or len(chains[0].parts) < 3:
        return False
    expected = np.array([chain.means().expected for chain in chains])
    apart = np.abs(expected - expected.mean(axis=0)).sum(axis=1) / 2
    return bool(apart.max() <= AGREEMENT * rows)


def _trust_in_data(noisy_counts: FloatArray, expected: FloatArray, noise: Noise) -> FloatArray:
    """Share of a cell's deviation from the mixture that is real: its variance relative to the noise's.

    The mean squared deviation beyond noise, counting and two standard errors is misfit of the model in all
    cells. If the clusters do not match the model, the data are taken as they are.
    """
    deviation = float(np.mean((noisy_counts - expected) ** 2) - np.mean(expected))
    misfit = max(0.0, deviation - noise.std**2 * (1 + 2 * math.sqrt(5 / len(expected))))
    variance = expected + (MISFIT * expected) ** 2 + misfit
    trust: FloatArray = variance / (variance + noise.std**2)
    return trust
