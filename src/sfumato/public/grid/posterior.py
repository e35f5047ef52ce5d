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
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, Grid, IntArray
from sfumato.public.means import project_to_simplex

# Tuned: docs/notes/grid.md, docs/notes/constants.md#grid
CONCENTRATION = 4.0  # of the Dirichlet law of the shares: 1 is flat, more is more even
MISFIT = 0.2  # relative deviation of a cell from the mixture
SPREADS = (0.01, 0.35)  # range of the common spread, in units of (volume of the box / k)^(1/d)
N_CHAINS = 3
N_SWEEPS = 300  # per chain; a third is warm-up
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
        Per chain.
    """
    expected, moments = np.zeros(grid.n_cells), np.zeros((grid.n_cells, len(grid.shape)))
    ends, fit = [], 0.0
    for seed, (centers, sizes) in enumerate(starts):
        sizes = np.maximum(sizes, 0.2 * rows[0] / len(sizes))
        state = _state(grid, noisy_counts, noise, rows, np.array(centers), sizes)
        rng = np.random.Generator(np.random.PCG64(seed))
        fit += _run_chain(state, rng, sweeps, expected, moments)
        ends.append(state.centers)
    kept = len(starts) * (sweeps - sweeps // 3)
    expected, moments = expected / kept, moments / kept
    counts = expected + _trust_in_data(noisy_counts, expected, noise) * (noisy_counts - expected)
    counts = project_to_simplex(counts, rows[0])
    # Rows that the mixture explains are where it says. The rest are in the middle of the cell.
    explained = np.minimum(expected, counts)
    weight = np.where(counts > 0, explained / np.maximum(counts, 1e-300), 0.0)[:, None]
    places = moments / np.maximum(expected, 1e-300)[:, None]
    positions = np.where(weight > 0, weight * places + (1 - weight) * grid.centers(), grid.centers())
    return CellMeans(counts, positions, ends, fit / kept)


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


class _State(NamedTuple):
    """One chain: the released values, the current mixture, and values derived from it."""

    y: FloatArray  # noisy counts
    noise: Noise
    rows: FloatArray  # number of rows, Laplace scale of its noise
    edges: FloatArray  # (d, m + 1) cell borders
    shape: IntArray
    jumps: FloatArray  # how promising each cell is as a place for a cluster
    cumulative_jumps: FloatArray
    spread_range: FloatArray
    centers: FloatArray  # (k, d)
    sizes: FloatArray  # (k,)
    spread: FloatArray  # (1,)
    mass: FloatArray  # (k, d, m) of each cluster along each column
    window: IntArray  # (k, d, 2) cells that matter
    expected: FloatArray  # expectation of each cell
    fit: FloatArray  # log density of each noisy count
    change: FloatArray  # proposed change of the expectations, zero between moves
    is_touched: NDArray[np.bool_]
    touched: IntArray  # cells with a change


def _state(
    grid: Grid, y: FloatArray, noise: Noise, rows: tuple[float, float], centers: FloatArray, sizes: FloatArray
) -> _State:
    k, d, m = len(sizes), len(grid.shape), max(grid.shape)
    edges = np.zeros((d, m + 1))
    for j, column in enumerate(grid.edges()):
        edges[j, : len(column)] = column
    spread_range = np.array(SPREADS) * _unit(grid, k)
    jumps = np.exp(np.clip(np.minimum(y, 3 * rows[0] / k) / noise.std, -1.0, 4.0))
    state = _State(
        y=y,
        noise=noise,
        rows=np.array([rows[0], max(rows[1], 1e-6) / _SQRT2]),
        edges=edges,
        shape=np.array(grid.shape, dtype=np.int64),
        jumps=jumps,
        cumulative_jumps=np.cumsum(jumps),
        spread_range=spread_range,
        centers=centers,
        sizes=sizes,
        spread=np.sqrt(spread_range[:1] * spread_range[1:]),
        mass=np.zeros((k, d, m)),
        window=np.zeros((k, d, 2), dtype=np.int64),
        expected=np.zeros(len(y)),
        fit=np.zeros(len(y)),
        change=np.zeros(len(y)),
        is_touched=np.zeros(len(y), dtype=np.bool_),
        touched=np.zeros(len(y), dtype=np.int64),
    )
    _evaluate(state)
    return state


@numba.njit(cache=True)
def _log_erfcx(u: float) -> float:
    """log(exp(u^2) erfc(u)) for u > -5."""
    if u < 5.0:
        return u * u + math.log(math.erfc(u))
    return math.log1p(-0.5 / (u * u) + 0.75 / u**4) - math.log(u * math.sqrt(math.pi))


@numba.njit(cache=True)
def _log_density(y: float, expected: float, noise: Noise) -> float:
    """Log density, up to a constant, of a noisy count: normal around its expectation, plus the noise."""
    variance = expected + (MISFIT * expected) ** 2 + 1.0 / 12.0
    z = abs(y - expected)
    if not noise.laplace:
        variance += noise.std * noise.std
        return -0.5 * z * z / variance - 0.5 * math.log(variance)
    s, scale = math.sqrt(variance), noise.std / _SQRT2
    u = (s / scale - z / s) / _SQRT2
    if u < -5.0:  # far out, the normal part only shifts the exponential tail
        return 0.5 * variance / (scale * scale) - z / scale + math.log(2.0)
    near, far = _log_erfcx(u), _log_erfcx((s / scale + z / s) / _SQRT2)
    return -0.5 * z * z / variance + near + math.log1p(math.exp(far - near))


@numba.njit(cache=True)
def _set_mass(state: _State, center: FloatArray, spread: float, mass: FloatArray, window: IntArray) -> None:
    """Mass of a clipped normal in each cell along each column, and the window of cells that matter."""
    for j in range(len(state.shape)):
        below, first, last = 0.0, state.shape[j], 0
        for i in range(state.shape[j]):
            upto = 1.0
            if i < state.shape[j] - 1:
                upto = 0.5 * math.erfc((center[j] - state.edges[j, i + 1]) / (spread * _SQRT2))
            mass[j, i] = upto - below
            below = upto
            if mass[j, i] > NEGLIGIBLE:
                first, last = min(first, i), i + 1
        window[j, 0], window[j, 1] = first, last


@numba.njit(cache=True)
def _n_cells(window: IntArray) -> int:
    cells = 1
    for j in range(window.shape[0]):
        cells *= window[j, 1] - window[j, 0]
    return cells


@numba.njit(cache=True)
def _locate(q: int, window: IntArray, shape: IntArray, at: IntArray) -> int:
    """Flat index of the q-th cell of a window. Fills `at` with its index along each column."""
    flat, stride = 0, 1
    for j in range(len(shape) - 1, -1, -1):
        length = window[j, 1] - window[j, 0]
        at[j] = window[j, 0] + q % length
        q //= length
        flat += at[j] * stride
        stride *= shape[j]
    return flat


@numba.njit(cache=True)
def _add_cluster(state: _State, size: float, mass: FloatArray, window: IntArray, n_touched: int) -> int:
    """Add `size` times a cluster to the change. A cell is listed when it first changes."""
    at = np.empty(len(state.shape), np.int64)
    for q in range(_n_cells(window)):
        cell = _locate(q, window, state.shape, at)
        part = size
        for j in range(len(at)):
            part *= mass[j, at[j]]
        if not state.is_touched[cell]:
            state.is_touched[cell] = True
            state.touched[n_touched] = cell
            n_touched += 1
        state.change[cell] += part
    return n_touched


@numba.njit(cache=True)
def _gain(state: _State, n_touched: int) -> float:
    """Gain in log likelihood from the change."""
    gain = 0.0
    for cell in state.touched[:n_touched]:
        expected = max(state.expected[cell] + state.change[cell], 0.0)
        gain += _log_density(state.y[cell], expected, state.noise) - state.fit[cell]
    return gain


@numba.njit(cache=True)
def _settle(state: _State, n_touched: int, accepted: bool) -> None:
    """Apply the change or drop it."""
    for cell in state.touched[:n_touched]:
        if accepted:
            state.expected[cell] = max(state.expected[cell] + state.change[cell], 0.0)
            state.fit[cell] = _log_density(state.y[cell], state.expected[cell], state.noise)
        state.change[cell] = 0.0
        state.is_touched[cell] = False


@numba.njit(cache=True)
def _evaluate(state: _State) -> None:
    """Masses, expectations and fit of the whole mixture."""
    n_touched = 0
    for c in range(len(state.sizes)):
        _set_mass(state, state.centers[c], state.spread[0], state.mass[c], state.window[c])
        n_touched = _add_cluster(state, state.sizes[c], state.mass[c], state.window[c], n_touched)
    for cell in range(len(state.y)):
        state.fit[cell] = _log_density(state.y[cell], state.expected[cell], state.noise)
    _settle(state, n_touched, True)


@numba.njit(cache=True)
def _jump(state: _State, rng: np.random.Generator, center: FloatArray, place: FloatArray) -> float:
    """Propose a place in a promising cell anywhere; return the log ratio of the proposal densities."""
    cells, shape = state.cumulative_jumps, state.shape
    new = min(np.searchsorted(cells, rng.random() * cells[-1]), len(cells) - 1)
    old, rest = 0, new
    for j in range(len(shape) - 1, -1, -1):
        i = rest % shape[j]
        rest //= shape[j]
        place[j] = state.edges[j, i] + rng.random() * (state.edges[j, i + 1] - state.edges[j, i])
    for j in range(len(shape)):
        first, last = state.edges[j, 0], state.edges[j, shape[j]]
        i = int((center[j] - first) / (last - first) * shape[j])
        old = old * shape[j] + min(max(i, 0), shape[j] - 1)
    return math.log(state.jumps[old] / state.jumps[new])


@numba.njit(cache=True)
def _walk(state: _State, rng: np.random.Generator, center: FloatArray, place: FloatArray) -> bool:
    """Propose a place nearby, on a random scale; return whether it is inside the box."""
    width = state.spread[0] * 10.0 ** rng.uniform(-1.0, 0.3)
    inside = True
    for j in range(len(center)):
        place[j] = center[j] + width * rng.standard_normal()
        inside = inside and state.edges[j, 0] < place[j] < state.edges[j, state.shape[j]]
    return inside


@numba.njit(cache=True)
def _move_cluster(
    state: _State, rng: np.random.Generator, c: int, mass: FloatArray, window: IntArray
) -> None:
    """Metropolis step for one cluster: jump, walk, or change size."""
    center, old_size, k = state.centers[c], state.sizes[c], len(state.sizes)
    place, size, log_ratio = center.copy(), old_size, 0.0
    kind = rng.random()
    if kind < 0.3:
        log_ratio += _jump(state, rng, center, place)
        if rng.random() < 0.5:
            mean = state.rows[0] / k
            size = -mean * math.log(1.0 - rng.random())
            log_ratio += (size - old_size) / mean
    else:
        if kind < 0.8 and not _walk(state, rng, center, place):
            return
        if kind > 0.6:
            size *= math.exp(0.5 * rng.standard_normal())
            log_ratio += math.log(size / old_size)
    if size < 1e-3:
        return
    _set_mass(state, place, state.spread[0], mass, window)
    n_touched = _add_cluster(state, -old_size, state.mass[c], state.window[c], 0)
    n_touched = _add_cluster(state, size, mass, window, n_touched)
    total = state.sizes.sum()
    new_total = total - old_size + size
    log_ratio += (abs(total - state.rows[0]) - abs(new_total - state.rows[0])) / state.rows[1]
    log_ratio += (CONCENTRATION - 1.0) * math.log(size / old_size)
    log_ratio -= k * CONCENTRATION * math.log(new_total / total)
    accepted = math.log(1.0 - rng.random()) < log_ratio + _gain(state, n_touched)
    _settle(state, n_touched, accepted)
    if accepted:
        state.centers[c], state.sizes[c] = place, size
        state.mass[c], state.window[c] = mass, window


@numba.njit(cache=True)
def _move_spread(state: _State, rng: np.random.Generator, mass: FloatArray, window: IntArray) -> None:
    """Metropolis step for the common spread."""
    spread = state.spread[0] * math.exp(0.3 * rng.standard_normal())
    if not state.spread_range[0] < spread < state.spread_range[1]:
        return
    n_touched = 0
    for c in range(len(state.sizes)):
        n_touched = _add_cluster(state, -state.sizes[c], state.mass[c], state.window[c], n_touched)
        _set_mass(state, state.centers[c], spread, mass[c], window[c])
        n_touched = _add_cluster(state, state.sizes[c], mass[c], window[c], n_touched)
    accepted = math.log(1.0 - rng.random()) < _gain(state, n_touched)
    _settle(state, n_touched, accepted)
    if accepted:
        state.spread[0] = spread
        state.mass[:], state.window[:] = mass, window


@numba.njit(cache=True)
def _set_positions(state: _State, c: int, positions: FloatArray) -> None:
    """Mean position of a cluster's rows in each cell of its window along each column."""
    spread = state.spread[0]
    for j in range(len(state.shape)):
        center = state.centers[c, j]
        for i in range(state.window[c, j, 0], state.window[c, j, 1]):
            low, high = state.edges[j, i], state.edges[j, i + 1]
            a, b = (low - center) / spread, (high - center) / spread
            moment = spread * (math.exp(-0.5 * a * a) - math.exp(-0.5 * b * b)) / _SQRT2PI
            moment += center * 0.5 * (math.erf(b / _SQRT2) - math.erf(a / _SQRT2))
            if i == 0:
                moment += low * 0.5 * math.erfc(-a / _SQRT2)
            if i == state.shape[j] - 1:
                moment += high * 0.5 * math.erfc(b / _SQRT2)
            mass = state.mass[c, j, i]  # 0 if the column is narrow: all rows are then clipped to its ends
            positions[j, i] = min(max(moment / mass, low), high) if mass > 0.0 else low


@numba.njit(cache=True)
def _accumulate(state: _State, positions: FloatArray, expected: FloatArray, moments: FloatArray) -> None:
    """Add the current expectations, and the expectations times positions."""
    at = np.empty(len(state.shape), np.int64)
    for c in range(len(state.sizes)):
        _set_positions(state, c, positions)
        for q in range(_n_cells(state.window[c])):
            cell = _locate(q, state.window[c], state.shape, at)
            part = state.sizes[c]
            for j in range(len(at)):
                part *= state.mass[c, j, at[j]]
            expected[cell] += part
            for j in range(len(at)):
                moments[cell, j] += part * positions[j, at[j]]


@numba.njit(cache=True)
def _run_chain(
    state: _State, rng: np.random.Generator, sweeps: int, expected: FloatArray, moments: FloatArray
) -> float:
    """Run a chain, add up its states after the warm-up, and return the sum of its log likelihoods."""
    mass, window = np.zeros_like(state.mass), np.zeros_like(state.window)
    log_likelihood = 0.0
    for sweep in range(sweeps):
        for step in range(2 * len(state.sizes)):
            _move_cluster(state, rng, step % len(state.sizes), mass[0], window[0])
        _move_spread(state, rng, mass, window)
        if sweep >= sweeps // 3:
            _accumulate(state, mass[0], expected, moments)
            log_likelihood += state.fit.sum()
    return log_likelihood
