"""Metropolis chains over mixtures of clusters that may have produced a noisy grid.

Kernels take plain arrays, random numbers that were drawn before, and log densities from a table: what they do
not do need not be compiled, and a logarithm and three products are quicker than the densities themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numba.extending import register_jitable
from scipy.special import erf, erfcx

from sfumato.domain import FloatArray, Grid, IntArray

# Tuned: docs/notes/grid.md, docs/notes/constants.md#grid
CONCENTRATION = 4.0  # of the Dirichlet law of the shares: 1 is flat, more is more even
MISFIT = 0.2  # relative deviation of a cell from the mixture
SPREADS = (0.01, 0.35)  # range of the common spread, in units of (volume of the box / k)^(1/d)

NEGLIGIBLE = 1e-4  # a cluster is not evaluated where its mass along a column is below this: saves time
NODES = 20.0  # of the table of densities, per factor e of 1 + expectation: a fraction of what changes them
_SQRT2 = math.sqrt(2.0)
_SQRT2PI = math.sqrt(2.0 * math.pi)

# Called by `_run` alone: a wrapper for Python, which `njit` makes, is a third of what there is to compile.
# `min`, `max` and `int` are functions to compile, too.
kernel = register_jitable(error_model="numpy")


class Noise(NamedTuple):
    """Noise of a count: whether it is Laplace or Gaussian, and its standard deviation."""

    laplace: bool
    std: float


class Sums(NamedTuple):
    """Over some sweeps of a chain: expectations, expectations times positions, and log likelihoods."""

    n: int
    expected: FloatArray  # (n_cells,)
    moments: FloatArray  # (n_cells, d)
    log_likelihood: float


class NoisyGrid:
    """What all chains know: the grid, its noisy counts and their densities.

    Parameters
    ----------
    grid : Grid
    noisy_counts : float array of shape (n_cells,)
    noise : Noise
    rows : (float, float)
        Number of rows and the standard deviation of its noise.
    """

    def __init__(self, grid: Grid, noisy_counts: FloatArray, noise: Noise, rows: tuple[float, float]) -> None:
        self.grid, self.noisy_counts, self.noise, self.rows = grid, noisy_counts, noise, rows
        self.shape = np.array(grid.shape, dtype=np.int64)
        self.middles, self.widths = grid.centers(), grid.widths
        self.edges = np.zeros((len(grid.shape), max(grid.shape) + 1))  # borders of the cells
        self.grid_edges = grid.edges()
        for j, column in enumerate(self.grid_edges):
            self.edges[j, : len(column)] = column
        counts, self.rows_of_table = np.unique(noisy_counts, return_inverse=True)
        most = 2 * (rows[0] + 20 * rows[1]) + 100  # that a cell may be expected to hold
        nodes = np.expm1(np.arange(-1, math.ceil(math.log1p(most) * NODES) + 3) / NODES)
        self.densities = log_density(counts[:, None], nodes, noise)


def unit(grid: Grid, n_clusters: int) -> float:
    """Side of a cube with one k-th of the box's volume."""
    widths = np.array(grid.high) - np.array(grid.low)
    return math.pow(float(np.prod(widths)) / n_clusters, 1 / len(widths))


def log_density(y: FloatArray, expected: FloatArray, noise: Noise) -> FloatArray:
    """Log density, up to a constant, of noisy counts: normal around their expectations, plus the noise."""
    variance = expected + (MISFIT * expected) ** 2 + 1.0 / 12.0
    z = np.abs(y - expected)
    if not noise.laplace:
        variance = variance + noise.std**2
        normal: FloatArray = -0.5 * z * z / variance - 0.5 * np.log(variance)
        return normal
    s, scale = np.sqrt(variance), noise.std / _SQRT2
    near, far = (s / scale - z / s) / _SQRT2, (s / scale + z / s) / _SQRT2
    # Far out, the normal part only shifts the exponential tail, and `erfcx` would overflow.
    tail = 0.5 * variance / (scale * scale) - z / scale + math.log(2.0)
    convolved = -0.5 * z * z / variance + np.log(erfcx(np.maximum(near, -5.0)) + erfcx(far))
    density: FloatArray = np.where(near < -5.0, tail, convolved)
    return density


class Chain:
    """One chain: the current mixture, and sums over the past ones."""

    def __init__(self, seen: NoisyGrid, start: tuple[FloatArray, FloatArray], seed: int) -> None:
        (centers, sizes), rows = start, seen.rows
        k = len(sizes)
        self.seen, self.rng = seen, np.random.Generator(np.random.PCG64(seed))
        self.clusters = np.column_stack([centers, np.maximum(sizes, 0.2 * rows[0] / k)])  # and sizes
        spreads = np.array([math.sqrt(SPREADS[0] * SPREADS[1]), *SPREADS]) * unit(
            seen.grid, k
        )  # current, range
        self.facts = np.array([*spreads, rows[0], max(rows[1], 1e-6) / _SQRT2, k * CONCENTRATION])
        # How promising each cell is as a place for a cluster
        self.log_jumps = np.clip(np.minimum(seen.noisy_counts, 3 * rows[0] / k) / seen.noise.std, -1.0, 4.0)
        self.cumulative_jumps = np.cumsum(np.exp(self.log_jumps))
        self.parts: list[Sums] = []

    def run(self, sweeps: int) -> None:
        """Run the chain, and add up its states."""
        trace = self._traced(sweeps)
        self.clusters = trace[-1, :-1].copy()
        self.parts.append(self._sums(trace[:, :-1], trace[:, -1, 0], float(trace[:, -1, 1].sum())))

    def _traced(self, sweeps: int) -> FloatArray:
        """States after each sweep from now: the clusters, then the spread and the log likelihood."""
        (k, d), n_cells, seen = self.clusters[:, :-1].shape, len(self.log_jumps), self.seen
        # Row of the table, cells that change, and whether one is listed: at first, all cells change.
        listed = np.array([seen.rows_of_table, np.arange(n_cells), np.ones(n_cells, dtype=np.int64)])
        # Expectation, log density; proposed change, log density then; how promising
        cells = np.zeros((5, n_cells))
        cells[4] = self.log_jumps
        # Two versions of each cluster's centre and size, its mass along each column, and its window of cells
        # that matter; and which version is the current one
        clusters, versions = np.array([self.clusters, self.clusters]), np.zeros(k, dtype=np.int64)
        masses, windows = np.zeros((2, k, *seen.edges.shape)), np.zeros((2, k, d, 2), dtype=np.int64)
        trace = np.empty((sweeps, k + 1, d + 1))
        mixture = self.facts, clusters, versions, masses, windows
        draws = self._draws(sweeps * (2 * k + 1))
        _run(seen.shape, seen.edges, *mixture, seen.densities, cells, listed, draws, trace)
        return trace

    def _draws(self, n_moves: int) -> FloatArray:
        """Random numbers of some moves: a jump, a walk or another size of one cluster, or another spread.

        A jump goes to a promising cell anywhere, often with another size; a walk to a place nearby, on a
        random scale. Columns: log of what decides; whether the place is relative; factor of the size, and
        what is added; factors of the log ratio and of the difference of sizes in the log ratio of priors and
        proposals; how promising the place of a jump is; factor of the spread; place or step.
        """
        d, mean, rng = len(self.seen.shape), self.seen.rows[0] / len(self.clusters), self.rng
        kind, log_width, chance = rng.random((3, n_moves))
        shots = rng.random(n_moves) * self.cumulative_jumps[-1]
        jumps = np.minimum(np.searchsorted(self.cumulative_jumps, shots), len(self.log_jumps) - 1)
        places = self.seen.middles[jumps] + self.seen.widths * rng.uniform(-0.5, 0.5, (n_moves, d))
        walks = kind >= 0.3
        is_fresh, is_scaled = ~walks & (chance < 0.5), kind > 0.6
        widths = np.where(kind < 0.8, 10.0 ** (1.3 * log_width - 1.0), 0.0)[:, None]
        draws = np.empty((n_moves, 8 + d))
        draws[:, 0] = -rng.standard_exponential(n_moves)
        draws[:, 1] = walks
        draws[:, 2] = np.where(is_scaled, np.exp(0.5 * rng.standard_normal(n_moves)), ~is_fresh)
        draws[:, 3] = np.where(is_fresh, mean * rng.standard_exponential(n_moves), 0.0)
        draws[:, 4] = CONCENTRATION - 1.0 + is_scaled
        draws[:, 5] = is_fresh / mean
        draws[:, 6] = self.log_jumps[jumps]
        draws[:, 7] = np.exp(0.3 * rng.standard_normal(n_moves))
        draws[:, 8:] = np.where(walks[:, None], widths * rng.standard_normal((n_moves, d)), places)
        return draws

    def _sums(self, clusters: FloatArray, spreads: FloatArray, log_likelihood: float) -> Sums:
        """Add up the expectations of some states, and the expectations times positions."""
        spread, flat = np.repeat(spreads, clusters.shape[1])[:, None], clusters.reshape(-1, clusters.shape[2])
        columns = [_mass_and_moment(flat[:, j, None], spread, e) for j, e in enumerate(self.seen.grid_edges)]
        found = []
        for moved in range(-1, len(columns)):  # the moment of no column, then of each
            product = flat[:, -1:]
            parts = [moment if j == moved else mass for j, (mass, moment) in enumerate(columns)]
            for part in parts[:-1]:
                product = (product[:, :, None] * part[:, None, :]).reshape(len(flat), -1)
            found.append((product.T @ parts[-1]).ravel())
        return Sums(len(spreads), found[0], np.stack(found[1:], axis=1), log_likelihood)

    def means(self) -> Sums:
        """Means over the chain but for its first third, the warm-up."""
        kept = self.parts[len(self.parts) // 3 :]
        n = sum(part.n for part in kept)
        expected: FloatArray = sum((part.expected for part in kept), np.zeros(())) / n
        moments: FloatArray = sum((part.moments for part in kept), np.zeros(())) / n
        return Sums(n, expected, moments, sum(part.log_likelihood for part in kept) / n)


def _mass_and_moment(
    centers: FloatArray, spread: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mass of clipped normals in each cell of a column, and mass times mean position."""
    z = (edges - centers) / spread
    upto, density = 0.5 + 0.5 * erf(z / _SQRT2), spread / _SQRT2PI * np.exp(-0.5 * z * z)
    below, above = upto[:, 0].copy(), 1.0 - upto[:, -1]
    upto[:, 0], upto[:, -1] = 0.0, 1.0
    mass = upto[:, 1:] - upto[:, :-1]
    moment = centers * mass + density[:, :-1] - density[:, 1:]
    moment[:, 0] += (edges[0] - centers[:, 0]) * below
    moment[:, -1] += (edges[-1] - centers[:, 0]) * above
    return mass, np.minimum(np.maximum(moment, mass * edges[:-1]), mass * edges[1:])


@kernel
def _set_mass(
    shape: IntArray,
    edges: FloatArray,
    clusters: FloatArray,
    masses: FloatArray,
    windows: IntArray,
    version: int,
    c: int,
    spread: float,
) -> None:
    """Mass of a clipped normal in each cell along each column, and the window of cells that matter."""
    for j in range(len(shape)):
        below, first, last = 0.0, shape[j], 0
        for i in range(shape[j]):
            upto = 0.5 * math.erfc((clusters[version, c, j] - edges[j, i + 1]) / (spread * _SQRT2))
            if i == shape[j] - 1:
                upto = 1.0
            masses[version, c, j, i] = upto - below
            if upto - below > NEGLIGIBLE:
                first, last = i if last == 0 else first, i + 1
            below = upto
        windows[version, c, j, 0], windows[version, c, j, 1] = first, last


@kernel
def _add_cluster(
    shape: IntArray,
    masses: FloatArray,
    windows: IntArray,
    version: int,
    c: int,
    size: float,
    cells: FloatArray,
    listed: IntArray,
    n_listed: int,
) -> int:
    """Add `size` times a cluster to the change, and list the cells that change for the first time."""
    last, n_lines = len(shape) - 1, 1
    for j in range(last):
        n_lines *= windows[version, c, j, 1] - windows[version, c, j, 0]
    for line in range(n_lines):  # of cells along the last column
        start, part, stride, rest = 0, size, shape[last], line
        for j in range(last - 1, -1, -1):
            length = windows[version, c, j, 1] - windows[version, c, j, 0]
            at = windows[version, c, j, 0] + rest % length
            rest //= length
            start += at * stride
            part *= masses[version, c, j, at]
            stride *= shape[j]
        for at in range(windows[version, c, last, 0], windows[version, c, last, 1]):
            cell = start + at
            if listed[2, cell] == 0:
                listed[2, cell] = 1
                listed[1, n_listed] = cell
                n_listed += 1
            cells[2, cell] += part * masses[version, c, last, at]
    return n_listed


@kernel
def _decide(
    densities: FloatArray, cells: FloatArray, listed: IntArray, n_listed: int, threshold: float
) -> float:
    """Make the proposed change if the log likelihood gains more than a threshold. Returns the gain, or -inf.

    Between the nodes of the table are cubic splines (Catmull and Rom 1974).
    """
    gain, most = 0.0, densities.shape[1] - 3.5
    for n in range(n_listed):
        cell = listed[1, n]
        expected = cells[0, cell] + cells[2, cell]
        row, at = listed[0, cell], math.log(expected + 1.0) * NODES if expected > 0.0 else 0.0
        at = at if at < most else most
        i = np.int64(at)
        x = at - i
        a, b, c, d = densities[row, i], densities[row, i + 1], densities[row, i + 2], densities[row, i + 3]
        curve = 2.0 * a - 5.0 * b + 4.0 * c - d + x * (3.0 * (b - c) + d - a)
        cells[3, cell] = b + 0.5 * x * (c - a + x * curve)
        gain += cells[3, cell] - cells[1, cell]
    if not gain > threshold:
        gain = -math.inf
    for n in range(n_listed):
        cell = listed[1, n]
        if gain > -math.inf:
            cells[0, cell] += cells[2, cell]
            cells[0, cell] = cells[0, cell] if cells[0, cell] > 0.0 else 0.0
            cells[1, cell] = cells[3, cell]
        cells[2, cell], listed[2, cell] = 0.0, 0
    return gain


@kernel
def _propose(
    shape: IntArray,
    edges: FloatArray,
    facts: FloatArray,
    clusters: FloatArray,
    cells: FloatArray,
    version: int,
    c: int,
    total: float,
    draws: FloatArray,
    move: int,
) -> float:
    """Propose another place or size of one cluster. Returns the log ratio of priors and proposals."""
    d, stays, cell, old_size = len(shape), draws[move, 1], 0, clusters[version, c, len(shape)]
    size, scale = old_size * draws[move, 2] + draws[move, 3], stays * facts[0] + 1.0 - stays
    log_ratio = 0.0 if size >= 1e-3 else -math.inf
    for j in range(d):
        old, low, high = clusters[version, c, j], edges[j, 0], edges[j, shape[j]]
        new = stays * old + scale * draws[move, 8 + j]
        clusters[1 - version, c, j] = new
        if not low <= new <= high:
            log_ratio = -math.inf
        place = (old - low) / (high - low) * shape[j]
        cell = cell * shape[j] + (np.int64(place) if 0.0 < place < shape[j] else 0)
    clusters[1 - version, c, d] = size
    log_ratio += (1.0 - stays) * (cells[4, cell] - draws[move, 6])
    log_ratio += draws[move, 4] * math.log(size / old_size) + draws[move, 5] * (size - old_size)
    new_total = total - old_size + size
    log_ratio += (abs(total - facts[3]) - abs(new_total - facts[3])) / facts[4]
    return float(log_ratio - facts[5] * math.log(new_total / total))


@numba.njit(cache=True, error_model="numpy")
def _run(
    shape: IntArray,
    edges: FloatArray,
    facts: FloatArray,
    clusters: FloatArray,
    versions: IntArray,
    masses: FloatArray,
    windows: IntArray,
    densities: FloatArray,
    cells: FloatArray,
    listed: IntArray,
    draws: FloatArray,
    trace: FloatArray,
) -> None:
    """Make Metropolis sweeps, and keep the state after each.

    A sweep moves each cluster twice, and then the common spread. Before the first, all clusters are put onto
    the empty grid: their current versions have no window yet.
    """
    k, d, log_likelihood, total = len(versions), len(shape), 0.0, 0.0
    for move in range(-1, len(draws)):
        sweep, c = move // (2 * k + 1), move % (2 * k + 1) % k
        first, last, spread, log_ratio, n_listed = c, c + 1, facts[0], math.inf, 0
        is_last = move % (2 * k + 1) == 2 * k  # of a sweep; so is the move before the first
        if is_last:
            first, last, total = 0, k, 0.0
            for other in range(k):
                for j in range(d + 1):
                    clusters[1 - versions[other], other, j] = clusters[versions[other], other, j]
                total += clusters[versions[other], other, d]
        if sweep < 0:
            n_listed = cells.shape[1]
        elif is_last:
            spread *= draws[move, 7]
            log_ratio = 0.0 if facts[1] < spread < facts[2] else -math.inf
        else:
            log_ratio = _propose(shape, edges, facts, clusters, cells, versions[c], c, total, draws, move)
        if log_ratio > -math.inf:
            for other in range(first, last):
                _set_mass(shape, edges, clusters, masses, windows, 1 - versions[other], other, spread)
                for version in range(2):
                    size = clusters[version, other, d] * (-1.0 if version == versions[other] else 1.0)
                    n_listed = _add_cluster(
                        shape, masses, windows, version, other, size, cells, listed, n_listed
                    )
            gain = _decide(densities, cells, listed, n_listed, draws[move, 0] - log_ratio)
            if gain > -math.inf:
                log_likelihood += gain
                facts[0] = spread
                for other in range(first, last):
                    total += clusters[1 - versions[other], other, d] - clusters[versions[other], other, d]
                    versions[other] = 1 - versions[other]
        if is_last and sweep >= 0:
            for other in range(k):
                for j in range(d + 1):
                    trace[sweep, other, j] = clusters[versions[other], other, j]
            trace[sweep, k, 0], trace[sweep, k, 1] = facts[0], log_likelihood
