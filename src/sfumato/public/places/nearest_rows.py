"""How far the nearest private row may be from public points, given noisy counts of rings.

Rows were counted in rings around public centres. How many rows does a ring hold? The noisy counts give
chances. The model behind them is plain:

- the true count of a ring is a geometric count, whose expectation is one of a few levels, zero among them;
- how likely each level is, the noisy counts of other rings say: the same ring around the nearest centres and
  the rings beside it have the same level, and how common levels are is fitted to all centres
  (expectation-maximisation);
- the noise of the counts is known;
- rows of a ring lie anywhere in it, but not nearer to another centre than to their own.

Everything here is post-processing of released values, and public.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray

# Tuned: docs/notes/source_target.md, docs/notes/constants.md#source-target
LIKE_NEIGHBOURS = 16  # centres around which rings are alike

NEIGHBOUR_REACH = 4 / 3  # how far neighbours may be, in outer radii of the last ring
FEW = 5  # centres that say as much about one of their rings as all rings together, or as nothing
N_SERVING = 20  # nearest centres of a point whose rings may hold the nearest row
N_RADII = 4  # parts of a ring across its width ...
N_COSINES = 5  # ... and around it
N_PARTS = N_RADII * N_COSINES

LEAST_LEVEL, LEVEL_STEP = 0.03, np.sqrt(10.0)  # levels above 0
SURE = 40  # scales of the noise: a noisy count above has rows
N_SWEEPS = 300
LEAST_SCALE, LARGEST_SCALE = 1e-6, 25.0  # of the noise: counts under more noise are read in larger units
LEAST_CHANCE = 1e-12
_BLOCK = 2**22  # distances at a time


class CountNoise(NamedTuple):
    """Discrete Laplace or Gaussian noise, and its scale."""

    laplace: bool
    scale: float

    def weights(self, gaps: IntArray) -> FloatArray:
        """Probabilities of noise, up to a factor."""
        scaled = np.minimum(np.abs(gaps) / max(self.scale, LEAST_SCALE), 1 / LEAST_SCALE)
        found: FloatArray = np.exp(-scaled if self.laplace else -(scaled**2) / 2)
        return found


def chances_of_none(
    centers: FloatArray, edges: FloatArray, noisy_counts: IntArray, noise: CountNoise
) -> FloatArray:
    """Chance that j of the N_PARTS equal parts of each ring hold no row, for j from 0 to all of them.

    Parameters
    ----------
    centers : float array of shape (n, d)
    edges : float array of shape (n_rings,)
        Outer radii.
    noisy_counts : int array of shape (n, n_rings)
    noise : CountNoise

    Returns
    -------
    float array of shape (n, n_rings, N_PARTS + 1)
    """
    unit = int(np.ceil(max(noise.scale / LARGEST_SCALE, 1)))
    noise = noise._replace(scale=noise.scale / unit)
    most = int(np.ceil(SURE * noise.scale))
    read = np.rint(noisy_counts / unit).astype(np.int64)
    values, where = np.unique(np.clip(read, -most, most), return_inverse=True)
    where = where.reshape(read.shape)
    outside = 1 - np.arange(N_PARTS + 1) / N_PARTS
    weights = _weights(values, noise, most, outside**unit)  # (n_values, n_levels, N_PARTS + 1)
    local = _local_shares(centers, edges, where, weights[:, :, 0])
    chances = np.zeros((*read.shape, len(outside)))
    for level in range(weights.shape[1]):
        chances += local[:, :, level, None] * weights[where, level]
    chances /= chances[:, :, :1]
    # What was clipped off a large count are rows as well.
    found: FloatArray = chances * outside ** (unit * np.maximum(read - most, 0)[:, :, None])
    return found


def likely_distances(
    points: FloatArray, centers: FloatArray, edges: FloatArray, none: FloatArray, levels: FloatArray
) -> FloatArray:
    """Quantiles of each point's distance from the nearest row, of shape (n_points, n_levels).

    Where there may be no row near, they are larger than the distance of any two points.

    Parameters
    ----------
    points : float array of shape (n_points, d)
    centers : float array of shape (n, d)
    edges : float array of shape (n_rings,)
    none : float array of shape (n, n_rings, N_PARTS + 1)
        Chance that parts of each ring hold no row.
    levels : float array of shape (n_levels,)
        Between 0 and 1.
    """
    from sklearn.neighbors import KDTree

    n_near = min(N_SERVING, len(centers))
    each = n_near * len(edges) * N_PARTS
    far = 2 * float(np.linalg.norm(np.ptp(points, axis=0))) + 2 * edges[-1]
    tree, out = KDTree(centers), np.empty((len(points), len(levels)))
    none = np.maximum(none, LEAST_CHANCE)
    further = none[:, :, 1:] / none[:, :, :-1]  # that one more part holds no row
    for start in range(0, len(points), max(_BLOCK // each, 1)):
        block = slice(start, start + max(_BLOCK // each, 1))
        to_centers, nearest = tree.query(points[block], n_near)
        distances = _part_distances(to_centers, edges, points.shape[1])
        order = np.argsort(distances, axis=1, kind="stable")
        chances = further[nearest].reshape(len(distances), -1)
        beyond = np.cumprod(np.take_along_axis(chances, order, axis=1), axis=1)
        sorted_ = np.pad(np.take_along_axis(distances, order, axis=1), ((0, 0), (0, 1)), constant_values=far)
        at = (beyond[:, :, None] > 1 - levels).sum(axis=1)
        out[block] = np.take_along_axis(sorted_, at, axis=1)
    return out


def _part_distances(to_centers: FloatArray, edges: FloatArray, d: int) -> FloatArray:
    """Distances of points from parts of rings, the near ones of a ring first: (n_points, n_parts)."""
    a, r = to_centers[:, :, None, None, None], ring_radii(edges, d, N_RADII)[:, :, None]
    # A row is not nearer to the point than to its centre, if the point is a centre as well.
    cosines = np.minimum(_cosines(d), a / (2 * r))
    squares = np.maximum(a**2 + r**2 - 2 * a * r * cosines, 0)
    distances = np.sqrt(squares).reshape(*to_centers.shape, len(edges), N_PARTS)
    distances.sort(axis=-1)
    return distances.reshape(len(to_centers), -1)


def _cosines(d: int) -> FloatArray:
    """Cosines of angles between a direction and random ones, as quantiles; in one column -1, 0 and 1."""
    from scipy.stats import beta

    half = max(d - 1, 0.01) / 2
    cosines: FloatArray = 2 * beta.ppf((np.arange(N_COSINES) + 0.5) / N_COSINES, half, half) - 1
    return cosines


def ring_radii(edges: FloatArray, d: int, n_radii: int) -> FloatArray:
    """Radii in the middle of parts of a ring that have one volume: (n_rings, n_radii)."""
    shares = (np.arange(n_radii) + 0.5) / n_radii
    # In units of the outer radius, since high powers of small numbers vanish.
    inner = (np.concatenate([[0.0], edges[:-1]]) / edges)[:, None]
    radii: FloatArray = (inner**d + shares * (1 - inner**d)) ** (1 / d) * edges[:, None]
    return radii


def _weights(values: IntArray, noise: CountNoise, most: int, outside: FloatArray) -> FloatArray:
    """Weight of noisy counts at each level, if all rows lie outside a part: (n_values, n_levels, n_parts)."""
    n_steps = int(np.ceil(np.log(max(most, 1) / LEAST_LEVEL) / np.log(LEVEL_STEP)))
    levels = np.concatenate([[0.0], LEAST_LEVEL * LEVEL_STEP ** np.arange(n_steps + 1)])
    counts = np.arange(most + int(10 * np.sqrt(most)) + 20)[:, None]
    chances = (levels / (1 + levels)) ** counts / (1 + levels)  # (n_counts, n_levels)
    both = chances[:, :, None] * (outside**counts)[:, None]
    noises = noise.weights(values[:, None] - counts[:, 0])  # (n_values, n_counts)
    weights: FloatArray = np.tensordot(noises, both, axes=1)
    return np.maximum(weights, 1e-300)


def _local_shares(centers: FloatArray, edges: FloatArray, where: IntArray, fit: FloatArray) -> FloatArray:
    """How likely each level is for each ring, by the counts of others: (n, n_rings, n_levels)."""
    neighbours, near = _neighbours(centers, NEIGHBOUR_REACH * edges[-1])
    log_fit = np.log(fit)[where]
    local = np.log(_common_shares(where, fit)) + np.zeros_like(log_fit)
    for m in range(neighbours.shape[1]):
        local += near[:, m, None, None] * log_fit[neighbours[:, m]]
    local[:, 1:] += log_fit[:, :-1]
    local[:, :-1] += log_fit[:, 1:]
    return _normalised(np.exp(local - local.max(axis=-1, keepdims=True)))


def _common_shares(where: IntArray, fit: FloatArray) -> FloatArray:
    """Shares of the levels for each ring of all centres, of shape (n_rings, n_levels)."""
    n, n_rings = where.shape
    rings = [_best_shares(where[:, r], fit) for r in range(n_rings)]
    together = _best_shares(where.ravel(), fit)
    # A few centres say little about a ring alone, and no level is impossible.
    prior = FEW * (together + 1 / len(together))
    return np.stack([(n * ring + prior) / (n + 2 * FEW) for ring in rings])


def _best_shares(where: IntArray, fit: FloatArray) -> FloatArray:
    times = np.bincount(where, minlength=len(fit))
    shares = np.full(fit.shape[1], 1 / fit.shape[1])
    for _ in range(N_SWEEPS):
        shares = times @ _normalised(shares * fit) / times.sum()
    return shares


def _normalised(weights: FloatArray) -> FloatArray:
    shares: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def _neighbours(centers: FloatArray, reach: float) -> tuple[IntArray, FloatArray]:
    """Nearest other centres, and 1 where they are within reach; both of shape (n, n_neighbours)."""
    from sklearn.neighbors import KDTree

    n_neighbours = min(LIKE_NEIGHBOURS, len(centers) - 1)
    distances, found = KDTree(centers).query(centers, n_neighbours + 1)
    return found[:, 1:], (distances[:, 1:] <= reach).astype(float)
