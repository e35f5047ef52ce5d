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
from typing import Any, NamedTuple

import numba
import numpy as np

from sfumato.domain import FloatArray, Grid, IntArray
from sfumato.public.means import project_to_simplex

# Tuned: docs/notes/grid.md, docs/notes/constants.md#grid
CONCENTRATION = 4.0  # of the Dirichlet law of the shares: 1 is flat, more is more even
MISFIT = 0.2  # relative deviation of a cell from the mixture
SPREADS = (0.01, 0.35)  # range of the common spread, in units of (volume of the box / k)^(1/d)
N_CHAINS = 3
N_SWEEPS = 300  # per chain; a third is warm-up
SWEEPS_AT_A_TIME = 8  # after every so many, chains that agree stop
GLANCE_SWEEPS = 24  # of one chain, to see whether more clusters fit better
START_RUNS = 4  # of k-means, of which a chain starts from the best
AGREEMENT = 0.02  # share of the rows that a chain may put into other cells than all chains do
MAX_WORK = 4e6  # cell updates over all chains: larger grids get fewer sweeps ...
MIN_SWEEPS = 30  # ... and with fewer than this, cells are taken as they are, since the noise is small

NEGLIGIBLE = 1e-4  # a cluster is not evaluated where its mass along a column is below this: saves time
_SQRT2 = math.sqrt(2.0)
_SQRT2PI = math.sqrt(2.0 * math.pi)


class Noise(NamedTuple):
    """Noise of a count: whether it is Laplace or Gaussian, and its standard deviation."""

    laplace: bool
    std: float


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
    reach = 12 * math.sqrt(SPREADS[0] * SPREADS[1]) * _unit(grid, n_clusters)
    window = float(np.prod(np.minimum(reach / widths * np.array(grid.shape) + 1, grid.shape)))
    sweeps = int(min(N_SWEEPS, MAX_WORK / (6 * n_clusters * window * N_CHAINS)))
    return sweeps if sweeps >= MIN_SWEEPS else 0


def _unit(grid: Grid, n_clusters: int) -> float:
    """Side of a cube with one k-th of the box's volume."""
    widths = np.array(grid.high) - np.array(grid.low)
    return math.pow(float(np.prod(widths)) / n_clusters, 1 / len(widths))


def cell_means(
    grid: Grid,
    noisy_counts: FloatArray,
    noise: Noise,
    rows: tuple[float, float],
    starts: list[tuple[FloatArray, FloatArray]],
    sweeps: int,
) -> CellMeans:
    """Posterior means under the model of this module.

    Parameters
    ----------
    grid : Grid
    noisy_counts : float array of shape (n_cells,)
    noise : Noise
    rows : (float, float)
        Number of rows and the standard deviation of its noise.
    starts : list of (centers, sizes)
        One chain starts from each.
    sweeps : int
        Per chain, at most: several chains stop when they agree.
    """
    chains = [_Chain(grid, noisy_counts, noise, rows, start, seed) for seed, start in enumerate(starts)]
    for done in range(0, sweeps, SWEEPS_AT_A_TIME):
        for chain in chains:
            chain.run(min(SWEEPS_AT_A_TIME, sweeps - done))
        if _agree(chains, rows[0]):
            break
    means = [chain.means() for chain in chains]
    expected, moments = (
        np.mean([m.expected for m in means], axis=0),
        np.mean([m.moments for m in means], axis=0),
    )
    counts = expected + _trust_in_data(noisy_counts, expected, noise) * (noisy_counts - expected)
    counts = project_to_simplex(counts, rows[0])
    # Rows that the mixture explains are where it says. The rest are in the middle of the cell.
    explained = np.minimum(expected, counts)
    weight = np.where(counts > 0, explained / np.maximum(counts, 1e-300), 0.0)[:, None]
    places = moments / np.maximum(expected, 1e-300)[:, None]
    positions = np.where(weight > 0, weight * places + (1 - weight) * grid.centers(), grid.centers())
    fit = float(np.mean([m.log_likelihood for m in means]))
    return CellMeans(counts, positions, [chain.clusters[:, :-1] for chain in chains], fit)


def _agree(chains: Sequence[_Chain], rows: float) -> bool:
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


class _Sums(NamedTuple):
    """Over some sweeps of a chain: expectations, expectations times positions, and log likelihoods."""

    n: int
    expected: FloatArray  # (n_cells,)
    moments: FloatArray  # (n_cells, d)
    log_likelihood: float


class _Chain:
    """One chain: the current mixture, and values derived from it.

    Kernels take plain arrays, and random numbers that were drawn before: each further type or generator in a
    kernel takes a second to compile.
    """

    def __init__(
        self,
        grid: Grid,
        y: FloatArray,
        noise: Noise,
        rows: tuple[float, float],
        start: tuple[FloatArray, FloatArray],
        seed: int,
    ) -> None:
        centers, sizes = start
        k, d, m, unit = len(sizes), len(grid.shape), max(grid.shape), _unit(grid, len(sizes))
        self.grid = grid
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.facts = np.array([noise.laplace, noise.std, rows[0], max(rows[1], 1e-6) / _SQRT2])
        self.shape = np.array(grid.shape, dtype=np.int64)
        self.middles = grid.centers()
        self.edges = np.zeros((d, m + 1))  # borders of the cells
        for j, column in enumerate(grid.edges()):
            self.edges[j, : len(column)] = column
        # How promising each cell is as a place for a cluster
        self.log_jumps = np.clip(np.minimum(y, 3 * rows[0] / k) / noise.std, -1.0, 4.0)
        self.cumulative_jumps = np.cumsum(np.exp(self.log_jumps))
        # Noisy count, expectation, log density; proposed change of the expectation and the density then
        self.cells = np.zeros((5, grid.n_cells))
        self.cells[0] = y
        self.listed = np.zeros((2, grid.n_cells), dtype=np.int64)  # cells that change; whether one is listed
        # Current and proposed: centre and size of each cluster, its mass along each column, and its window of
        # cells that matter
        self.clusters, self.proposed = np.zeros((2, k, d + 1))
        self.masses = np.zeros((2, k, d, m))
        self.windows = np.zeros((2, k, d, 2), dtype=np.int64)
        self.spreads = np.array([math.sqrt(SPREADS[0] * SPREADS[1]), *SPREADS]) * unit  # current, range
        self.parts: list[_Sums] = []
        self.proposed[:, :-1], self.proposed[:, -1] = centers, np.maximum(sizes, 0.2 * rows[0] / k)
        self.listed[:] = np.arange(grid.n_cells), np.ones(grid.n_cells)  # at first, all cells change
        _move(*(*self._arrays, grid.n_cells, 0, k, float(self.spreads[0]), -math.inf))

    @property
    def _arrays(self) -> tuple[Any, ...]:
        mixture = self.clusters, self.proposed, self.spreads, self.masses, self.windows
        return self.facts, self.shape, self.edges, self.cells, self.listed, *mixture

    def run(self, sweeps: int) -> None:
        """Run the chain, and add up its states."""
        n_moves, d = sweeps * (2 * len(self.clusters) + 1), len(self.shape)
        shots = self.rng.random(n_moves) * self.cumulative_jumps[-1]
        cells = np.minimum(np.searchsorted(self.cumulative_jumps, shots), self.grid.n_cells - 1)
        places = self.middles[cells] + self.grid.widths * self.rng.uniform(-0.5, 0.5, (n_moves, d))
        uniforms, normals = self.rng.random((n_moves, 5)), self.rng.standard_normal((n_moves, d + 1))
        expected, moments = np.zeros(self.grid.n_cells), np.zeros((self.grid.n_cells, d))
        draws = self.log_jumps, cells, places, uniforms, normals
        log_likelihood = _run(*(*self._arrays, *draws, expected, moments))
        self.parts.append(_Sums(sweeps, expected, moments, log_likelihood))

    def means(self) -> _Sums:
        """Means over the chain but for its first third, the warm-up."""
        kept = self.parts[len(self.parts) // 3 :]
        n = sum(part.n for part in kept)
        expected: FloatArray = sum((part.expected for part in kept), np.zeros(())) / n
        moments: FloatArray = sum((part.moments for part in kept), np.zeros(())) / n
        return _Sums(n, expected, moments, sum(part.log_likelihood for part in kept) / n)


@numba.njit(cache=True)
def _log_erfcx(u: float) -> float:
    """log(exp(u^2) erfc(u)) for u > -5."""
    if u < 5.0:
        return u * u + math.log(math.erfc(u))
    return math.log1p(-0.5 / (u * u) + 0.75 / u**4) - math.log(u * math.sqrt(math.pi))


@numba.njit(cache=True)
def _log_density(y: float, expected: float, laplace: bool, std: float) -> float:
    """Log density, up to a constant, of a noisy count: normal around its expectation, plus the noise."""
    variance = expected + (MISFIT * expected) ** 2 + 1.0 / 12.0
    z = abs(y - expected)
    if not laplace:
        variance += std * std
        return -0.5 * z * z / variance - 0.5 * math.log(variance)
    s, scale = math.sqrt(variance), std / _SQRT2
    u = (s / scale - z / s) / _SQRT2
    if u < -5.0:  # far out, the normal part only shifts the exponential tail
        return 0.5 * variance / (scale * scale) - z / scale + math.log(2.0)
    near, far = _log_erfcx(u), _log_erfcx((s / scale + z / s) / _SQRT2)
    return -0.5 * z * z / variance + near + math.log1p(math.exp(far - near))


@numba.njit(cache=True)
def _set_mass(
    shape: IntArray, edges: FloatArray, cluster: FloatArray, spread: float, mass: FloatArray, window: IntArray
) -> None:
    """Mass of a clipped normal in each cell along each column, and the window of cells that matter."""
    for j in range(len(shape)):
        below, first, last = 0.0, shape[j], 0
        for i in range(shape[j]):
            upto = 1.0
            if i < shape[j] - 1:
                upto = 0.5 * math.erfc((cluster[j] - edges[j, i + 1]) / (spread * _SQRT2))
            mass[j, i] = upto - below
            below = upto
            if mass[j, i] > NEGLIGIBLE:
                first, last = min(first, i), i + 1
        window[j, 0], window[j, 1] = first, last


@numba.njit(cache=True)
def _add_cluster(
    shape: IntArray,
    size: float,
    mass: FloatArray,
    window: IntArray,
    change: FloatArray,
    listed: IntArray,
    n_listed: int,
) -> int:
    """Add `size` times a cluster to the change, and list the cells that change for the first time."""
    n_cells = 1
    for j in range(len(shape)):
        n_cells *= window[j, 1] - window[j, 0]
    for q in range(n_cells):
        cell, part, stride, rest = 0, size, 1, q
        for j in range(len(shape) - 1, -1, -1):
            length = window[j, 1] - window[j, 0]
            at = window[j, 0] + rest % length
            rest //= length
            cell += at * stride
            part *= mass[j, at]
            stride *= shape[j]
        if listed[1, cell] == 0:
            listed[1, cell] = 1
            listed[0, n_listed] = cell
            n_listed += 1
        change[cell] += part
    return n_listed


@numba.njit(cache=True)
def _move(
    facts: FloatArray,
    shape: IntArray,
    edges: FloatArray,
    cells: FloatArray,
    listed: IntArray,
    clusters: FloatArray,
    proposed: FloatArray,
    spreads: FloatArray,
    masses: FloatArray,
    windows: IntArray,
    n_listed: int,
    first: int,
    last: int,
    spread: float,
    threshold: float,
) -> None:
    """Move some clusters as proposed, to this spread, if the log likelihood gains more than a threshold."""
    d, gain = len(shape), 0.0
    for c in range(first, last):
        n_listed = _add_cluster(
            shape, -clusters[c, d], masses[0, c], windows[0, c], cells[3], listed, n_listed
        )
        _set_mass(shape, edges, proposed[c], spread, masses[1, c], windows[1, c])
        n_listed = _add_cluster(
            shape, proposed[c, d], masses[1, c], windows[1, c], cells[3], listed, n_listed
        )
    for n in range(n_listed):
        cell = listed[0, n]
        expected = max(cells[1, cell] + cells[3, cell], 0.0)
        cells[4, cell] = _log_density(cells[0, cell], expected, facts[0] > 0.0, facts[1])
        gain += cells[4, cell] - cells[2, cell]
    accepted = gain > threshold
    for n in range(n_listed):
        cell = listed[0, n]
        if accepted:
            cells[1, cell] = max(cells[1, cell] + cells[3, cell], 0.0)
            cells[2, cell] = cells[4, cell]
        cells[3, cell], listed[1, cell] = 0.0, 0
    if not accepted:
        return
    spreads[0] = spread
    for c in range(first, last):
        for j in range(d + 1):
            clusters[c, j] = proposed[c, j]
        for j in range(d):
            windows[0, c, j, 0], windows[0, c, j, 1] = windows[1, c, j, 0], windows[1, c, j, 1]
            for i in range(shape[j]):
                masses[0, c, j, i] = masses[1, c, j, i]


@numba.njit(cache=True)
def _propose(
    facts: FloatArray,
    shape: IntArray,
    edges: FloatArray,
    clusters: FloatArray,
    spread: float,
    c: int,
    log_jumps: FloatArray,
    jump: int,
    place: FloatArray,
    uniforms: FloatArray,
    normals: FloatArray,
    proposed: FloatArray,
) -> float:
    """Propose a jump, a walk or another size of one cluster. Returns the log ratio of priors and proposals.

    A jump goes to a promising cell anywhere, a walk to a place nearby, on a random scale.
    """
    k, d = len(clusters), len(shape)
    old_size, mean, kind, log_ratio, inside = clusters[c, d], facts[2] / k, uniforms[0], 0.0, True
    size, width = old_size, spread * 10.0 ** (1.3 * uniforms[1] - 1.0)
    if kind < 0.3:
        cell = 0
        for j in range(d):
            proposed[j] = place[j]
            first, last = edges[j, 0], edges[j, shape[j]]
            i = int((clusters[c, j] - first) / (last - first) * shape[j])
            cell = cell * shape[j] + min(max(i, 0), shape[j] - 1)
        log_ratio += log_jumps[cell] - log_jumps[jump]
        if uniforms[2] < 0.5:
            size = -mean * math.log(1.0 - uniforms[3])
            log_ratio += (size - old_size) / mean
    else:
        for j in range(d):
            proposed[j] = clusters[c, j] + (width * normals[j] if kind < 0.8 else 0.0)
            inside = inside and edges[j, 0] < proposed[j] < edges[j, shape[j]]
        if kind > 0.6:
            size *= math.exp(0.5 * normals[d])
            log_ratio += math.log(size / old_size)
    proposed[d] = size
    if size < 1e-3 or (kind < 0.8 and not inside):
        return -math.inf
    total = 0.0
    for other in range(k):
        total += clusters[other, d]
    new_total = total - old_size + size
    log_ratio += (abs(total - facts[2]) - abs(new_total - facts[2])) / facts[3]
    log_ratio += (CONCENTRATION - 1.0) * math.log(size / old_size)
    return float(log_ratio - k * CONCENTRATION * math.log(new_total / total))


@numba.njit(cache=True)
def _accumulate(
    shape: IntArray,
    edges: FloatArray,
    clusters: FloatArray,
    spread: float,
    masses: FloatArray,
    windows: IntArray,
    positions: FloatArray,
    expected: FloatArray,
    moments: FloatArray,
) -> None:
    """Add the current expectations, and the expectations times positions."""
    d = len(shape)
    for c in range(len(clusters)):
        n_cells = 1
        for j in range(d):  # mean position of the cluster's rows in each cell along each column
            n_cells *= windows[c, j, 1] - windows[c, j, 0]
            for i in range(windows[c, j, 0], windows[c, j, 1]):
                low, high = edges[j, i], edges[j, i + 1]
                a, b = (low - clusters[c, j]) / spread, (high - clusters[c, j]) / spread
                moment = spread * (math.exp(-0.5 * a * a) - math.exp(-0.5 * b * b)) / _SQRT2PI
                moment += clusters[c, j] * 0.5 * (math.erf(b / _SQRT2) - math.erf(a / _SQRT2))
                if i == 0:
                    moment += low * 0.5 * math.erfc(-a / _SQRT2)
                if i == shape[j] - 1:
                    moment += high * 0.5 * math.erfc(b / _SQRT2)
                mass = masses[c, j, i]  # 0 if the column is narrow: all rows are then clipped to its ends
                positions[j, i] = min(max(moment / mass, low), high) if mass > 0.0 else low
        for q in range(n_cells):
            cell, part, stride, rest = 0, clusters[c, d], 1, q
            for j in range(d - 1, -1, -1):
                length = windows[c, j, 1] - windows[c, j, 0]
                at = windows[c, j, 0] + rest % length
                rest //= length
                cell += at * stride
                part *= masses[c, j, at]
                stride *= shape[j]
            expected[cell] += part
            rest = q
            for j in range(d - 1, -1, -1):
                length = windows[c, j, 1] - windows[c, j, 0]
                moments[cell, j] += part * positions[j, windows[c, j, 0] + rest % length]
                rest //= length


@numba.njit(cache=True)
def _run(
    facts: FloatArray,
    shape: IntArray,
    edges: FloatArray,
    cells: FloatArray,
    listed: IntArray,
    clusters: FloatArray,
    proposed: FloatArray,
    spreads: FloatArray,
    masses: FloatArray,
    windows: IntArray,
    log_jumps: FloatArray,
    jumps: IntArray,
    places: FloatArray,
    uniforms: FloatArray,
    normals: FloatArray,
    expected: FloatArray,
    moments: FloatArray,
) -> float:
    """Make Metropolis sweeps, add up the states after each, and return the sum of the log likelihoods.

    A sweep moves each cluster twice, and then the common spread.
    """
    k, d, log_likelihood = len(clusters), len(shape), 0.0
    none = int(np.int64(0))  # for a plain 0, numba would compile another variant
    for move in range(len(uniforms)):
        c, is_last = move % (2 * k + 1) % k, move % (2 * k + 1) == 2 * k
        first, last, spread = c, c + 1, spreads[0]
        if is_last:
            first, last, spread = 0, k, spreads[0] * math.exp(0.3 * normals[move, d])
            log_ratio = 0.0 if spreads[1] < spread < spreads[2] else -math.inf
            for other in range(k):
                for j in range(d + 1):
                    proposed[other, j] = clusters[other, j]
        else:
            drawn = jumps[move], places[move], uniforms[move], normals[move]
            log_ratio = _propose(facts, shape, edges, clusters, spread, c, log_jumps, *drawn, proposed[c])
        if log_ratio > -math.inf:
            threshold = math.log(1.0 - uniforms[move, 4]) - log_ratio
            mixture = clusters, proposed, spreads, masses, windows
            _move(facts, shape, edges, cells, listed, *mixture, none, first, last, spread, threshold)
        if is_last:
            _accumulate(
                shape, edges, clusters, spreads[0], masses[0], windows[0], masses[1, 0], expected, moments
            )
            for cell in range(cells.shape[1]):
                log_likelihood += cells[2, cell]
    return log_likelihood
