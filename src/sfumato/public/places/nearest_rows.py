"""How far the nearest private row may be from public points, given noisy counts of rings.

Rows were counted in rings around public centres. Does a ring hold a row? The noisy counts give a chance. The
model behind it is plain:

- the true count of a ring is a Poisson count, whose expectation is one of a few, zero among them;
- how likely each expectation is, the noisy counts of other rings say: the same ring around the nearest
  centres, the rings beside it, and with less weight the same ring around all centres
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
LIKE_ALL = 0.3  # weight of all centres beside one neighbour's 1

NEIGHBOUR_REACH = 4 / 3  # how far neighbours may be, in outer radii of the last ring
LIKE_BESIDE = 1.0  # weight of each ring beside it
N_SWEEPS = 15  # over neighbours
FEW = 5  # centres that say as much about one of their rings as all rings together
N_SERVING = 20  # nearest centres of a point whose rings may hold the nearest row
N_RADII = 2  # places in a ring across its width ...
COSINES = np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5)  # ... and around it, times 1 / sqrt(d): variance 1 / d

LEAST_EXPECTED, STEP_EXPECTED = 0.03, np.sqrt(10.0)  # expectations above 0
SURE = 40  # scales of the noise: a noisy count above has rows
N_GLOBAL_SWEEPS = 300
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


class _Fit(NamedTuple):
    """Weight of noisy counts for each expectation: with any true count, and with none."""

    any_count: FloatArray  # (..., n_expected)
    no_rows: FloatArray  # (..., n_expected)


def chance_of_none(
    centers: FloatArray, edges: FloatArray, noisy_counts: IntArray, noise: CountNoise
) -> FloatArray:
    """Chance that each ring holds no row.

    Parameters
    ----------
    centers : float array of shape (n, d)
    edges : float array of shape (n_rings,)
        Outer radii.
    noisy_counts : int array of shape (n, n_rings)
    noise : CountNoise

    Returns
    -------
    float array of shape (n, n_rings)
    """
    unit = int(np.ceil(max(noise.scale / LARGEST_SCALE, 1)))
    noisy_counts, noise = (
        np.rint(noisy_counts / unit).astype(np.int64),
        noise._replace(scale=noise.scale / unit),
    )
    fits = _fits(noisy_counts, noise)
    shares = _common_shares(noisy_counts, noise)
    neighbours, near = _neighbours(centers, NEIGHBOUR_REACH * edges[-1])
    local = np.broadcast_to(shares, fits.any_count.shape)
    for _ in range(N_SWEEPS):
        local = _refitted(local, fits.any_count, shares, neighbours, near)
    chances: FloatArray = (local * fits.no_rows).sum(axis=-1) / (local * fits.any_count).sum(axis=-1)
    return chances


def _refitted(
    local: FloatArray, fit: FloatArray, shares: FloatArray, neighbours: IntArray, near: FloatArray
) -> FloatArray:
    """One sweep of expectation-maximisation for each ring's shares, which its own count has no part in."""
    around, weight = LIKE_ALL * shares + np.zeros_like(local), np.full((*local.shape[:2], 1), LIKE_ALL)
    for m in range(neighbours.shape[1]):
        around += near[:, m, None, None] * _normalised(local * fit[neighbours[:, m]])
        weight += near[:, m, None, None]
    inner, outer = slice(None, -1), slice(1, None)
    for ring, other in ((outer, inner), (inner, outer)):
        around[:, ring] += LIKE_BESIDE * _normalised(local[:, ring] * fit[:, other])
        weight[:, ring] += LIKE_BESIDE
    refitted: FloatArray = around / weight
    return refitted


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
    none : float array of shape (n, n_rings)
        Chance that each ring holds no row.
    levels : float array of shape (n_levels,)
        Between 0 and 1.
    """
    from sklearn.neighbors import KDTree

    n_near = min(N_SERVING, len(centers))
    each = n_near * len(edges) * N_RADII * len(COSINES)
    far = 2 * float(np.linalg.norm(np.ptp(points, axis=0))) + 2 * edges[-1]
    tree, out = KDTree(centers), np.empty((len(points), len(levels)))
    for start in range(0, len(points), max(_BLOCK // each, 1)):
        block = slice(start, start + max(_BLOCK // each, 1))
        to_centers, nearest = tree.query(points[block], n_near)
        distances = _ring_distances(to_centers, edges, points.shape[1])
        # Each place in a ring holds a row with the same chance, and all of them with that of the ring.
        spread = np.maximum(none, LEAST_CHANCE)[nearest] ** (1 / (N_RADII * len(COSINES)))
        chances = np.repeat(spread.reshape(len(distances), -1), N_RADII * len(COSINES), axis=1)
        order = np.argsort(distances, axis=1, kind="stable")
        beyond = np.cumprod(np.take_along_axis(chances, order, axis=1), axis=1)
        sorted_ = np.pad(np.take_along_axis(distances, order, axis=1), ((0, 0), (0, 1)), constant_values=far)
        at = (beyond[:, :, None] > 1 - levels).sum(axis=1)
        out[block] = np.take_along_axis(sorted_, at, axis=1)
    return out


def _ring_distances(to_centers: FloatArray, edges: FloatArray, d: int) -> FloatArray:
    """Distances of points from places in the rings of centres, of shape (n_points, n_places)."""
    a, r = to_centers[:, :, None, None, None], ring_radii(edges, d, N_RADII)[:, :, None]
    # A row is not nearer to the point than to its centre, if the point is a centre as well.
    cosines = np.minimum(np.clip(COSINES / np.sqrt(d), -1, 1), a / (2 * r))
    squares = np.maximum(a**2 + r**2 - 2 * a * r * cosines, 0)
    distances: FloatArray = np.sqrt(squares).reshape(len(to_centers), -1)
    return distances


def ring_radii(edges: FloatArray, d: int, n_radii: int) -> FloatArray:
    """Radii in the middle of parts of a ring that have one volume: (n_rings, n_radii)."""
    shares = (np.arange(n_radii) + 0.5) / n_radii
    # In units of the outer radius, since high powers of small numbers vanish.
    inner = (np.concatenate([[0.0], edges[:-1]]) / edges)[:, None]
    radii: FloatArray = (inner**d + shares * (1 - inner**d)) ** (1 / d) * edges[:, None]
    return radii


def _fits(noisy_counts: IntArray, noise: CountNoise) -> _Fit:
    from scipy.stats import poisson

    most = int(np.ceil(SURE * noise.scale))
    clipped = np.clip(noisy_counts, -most, most)
    n_steps = int(np.ceil(np.log(max(most, 1) / LEAST_EXPECTED) / np.log(STEP_EXPECTED)))
    expected = np.concatenate([[0.0], LEAST_EXPECTED * STEP_EXPECTED ** np.arange(n_steps + 1)])
    counts = np.arange(most + int(10 * np.sqrt(most)) + 20)
    chances = poisson.pmf(counts[:, None], expected)  # (n_counts, n_expected)
    values, where = np.unique(clipped, return_inverse=True)
    noises = noise.weights(values[:, None] - counts)  # (n_values, n_counts)
    where = where.reshape(clipped.shape)
    any_count = np.maximum(noises @ chances, 1e-300)
    return _Fit(any_count[where], (noises[:, :1] * chances[:1])[where])


def _common_shares(noisy_counts: IntArray, noise: CountNoise) -> FloatArray:
    """Shares of the expectations for each ring of all centres, of shape (n_rings, n_expected)."""
    n, n_rings = noisy_counts.shape
    rings = [_best_shares(noisy_counts[:, [r]], noise) for r in range(n_rings)]
    together = _best_shares(noisy_counts, noise)
    # A few centres say little about a ring alone.
    return np.stack([(n * ring + FEW * together) / (n + FEW) for ring in rings])


def _best_shares(noisy_counts: IntArray, noise: CountNoise) -> FloatArray:
    values, times = np.unique(noisy_counts, return_counts=True)
    fit = _fits(values, noise).any_count
    shares = np.full(fit.shape[1], 1 / fit.shape[1])
    for _ in range(N_GLOBAL_SWEEPS):
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
