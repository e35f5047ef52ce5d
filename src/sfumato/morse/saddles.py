"""Paths between components of a mixture that keep the density high, and the saddles where they are lowest.

A path between two components starts as their ridgeline, on which all critical points of the two alone lie
[1]_, and is pushed up as a string: every node takes the part of its EM step that is orthogonal to the path,
then nodes are spread anew, half of them by distance in the local scale and half by change of the
responsibilities, so that borders between components of any size are resolved. What a path then reaches is a
level at which its ends are connected for certain. Newton's method takes the lowest point to the saddle.

References
----------
.. [1] S. Ray, B. Lindsay. The topography of multivariate normal mixtures. Annals of Statistics 33(5), 2005.
.. [2] W. E, W. Ren, E. Vanden-Eijnden. Simplified and improved string method for computing the minimum
   energy paths in barrier-crossing events. Journal of Chemical Physics 126, 2007.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.morse.mixture import Mixture, squared_lengths
from sfumato.morse.peaks import Peaks, climb, local_frame, nearest_peak

# How far below the best chain of ridgelines a path may start and still turn out higher: shares of the depth
# of that chain below the lower of the two peaks, the first of them up to a limit.
_LEAST_MARGIN, _MOST_MARGIN = 0.1, 3.0
_MARGIN_SHARES = (0.5, 0.1)
_N_NODES = 16  # of a path
_N_STAGES = 2
_N_SWEEPS = 4  # in each stage
_COARSE, _FINE = 6, 26  # halvings of a valley
_PER_SEGMENT = 3  # samples of a path
_DENSE = 100  # the same for a path that no saddle confirms
_MOST_NEWTON_STEPS = 20
_CONVERGED = 1e-10  # length of a step in the local scale
_ZERO_GRADIENT = 1e-6  # in the local scale
_TIE = 1e-6  # of two levels that differ by rounding the one at an exact saddle counts
_OFFSET = 0.05  # from a saddle to where its two ascents start, in the local scale


class Passes(NamedTuple):
    """Points at which peaks are joined.

    Parameters
    ----------
    positions : float array of shape (n, d)
    log_densities : float array of shape (n,)
    peaks : int array of shape (n, 2)
        The two stable points; where an ascent ends at a peak to which no mean leads, the densest stable point
        that is joined with it at a higher level.
    exact : bool array of shape (n,)
        Whether the point is a saddle of index one whose two ascents end in `peaks`. If not, it is the lowest
        point of a path between them, and its log density a lower bound.
    """

    positions: FloatArray
    log_densities: FloatArray
    peaks: IntArray
    exact: NDArray[np.bool_]

    def take(self, which: IntArray) -> Passes:
        """Some of the passes."""
        return Passes(self.positions[which], self.log_densities[which], self.peaks[which], self.exact[which])


class Valleys(NamedTuple):
    """Lowest points of paths: the path of each, its position, and its log density."""

    paths: IntArray
    positions: FloatArray
    levels: FloatArray

    def lowest(self, n_paths: int) -> Valleys:
        """The lowest valley of each path."""
        order = np.lexsort((self.levels, self.paths))
        first = order[np.searchsorted(self.paths[order], np.arange(n_paths))]
        return Valleys(self.paths[first], self.positions[first], self.levels[first])


def find_passes(mixture: Mixture, peaks: Peaks) -> Passes:
    """The S - 1 passes at which S peaks join, the densest first, from paths between all pairs of components.

    Ridgelines are nearly as high as paths can be, so only those within a margin of the level that the best
    chain of ridgelines reaches between their ends are pushed up. Saddles are sought from all valleys at
    every stage of it: a string may slip off one saddle on its way to another.
    """
    first, second = np.triu_indices(len(mixture.live), 1)
    owners = peaks.owners[mixture.live]
    joins = owners[first] != owners[second]
    first, second = first[joins], second[joins]
    ends = np.stack([owners[first], owners[second]], axis=1)
    paths = ridgelines(mixture, first, second)
    near = _near(ends, find_valleys(mixture, paths, _COARSE).lowest(len(paths)).levels, peaks)
    ends, paths = ends[near], paths[near]
    valleys = find_valleys(mixture, paths, _FINE)
    lowest, starts, pushed = valleys.lowest(len(paths)), [valleys.positions], paths
    bounds = Passes(lowest.positions, lowest.levels, ends, np.zeros(len(paths), dtype=bool))
    for _ in range(_N_STAGES):
        pushed = push_up(mixture, pushed)
        starts.append(find_valleys(mixture, pushed, _COARSE).positions)
    saddles = joined_peaks(mixture, peaks, critical_points(mixture, np.concatenate(starts)))
    return _spanning(mixture, saddles, bounds, paths, len(peaks.positions))


def _spanning(mixture: Mixture, saddles: Passes, bounds: Passes, paths: FloatArray, n_peaks: int) -> Passes:
    """Maximum spanning tree of the passes; a bound in it is looked at closely before it counts."""
    passes = Passes(*(np.concatenate(parts) for parts in zip(saddles, bounds, strict=True)))
    unseen = ~passes.exact
    while True:
        tree, ends = _kruskal(passes, n_peaks)
        doubtful = tree[unseen[tree]]
        if not len(doubtful):
            return passes.take(tree)._replace(peaks=ends)
        seen = find_valleys(mixture, paths[doubtful - len(saddles.exact)], _FINE, _DENSE).lowest(
            len(doubtful)
        )
        passes.positions[doubtful], passes.log_densities[doubtful] = seen.positions, seen.levels
        unseen[doubtful] = False


def _kruskal(passes: Passes, n_peaks: int) -> tuple[IntArray, IntArray]:
    """Passes between stable points not yet joined, from the densest down, and the two that each joins.

    Numbers from `n_peaks` on are peaks to which no mean leads: paths may cross them, but they are no leaves.
    """
    key = passes.log_densities - _TIE * (1 + np.abs(passes.log_densities)) * ~passes.exact
    first = np.arange(passes.peaks.max(initial=0) + 1)  # densest peak of the part of each
    chosen, ends = [], []
    for candidate in np.argsort(-key, kind="stable"):
        pair = passes.peaks[candidate]
        elder, younger = sorted(first[pair])
        if elder != younger and younger < n_peaks:
            chosen.append(candidate)
            ends.append(np.where(pair < n_peaks, pair, first[pair]))
        first[first == younger] = elder
    return np.array(chosen, dtype=np.int64), np.array(ends, dtype=np.int64).reshape(-1, 2)


def _near(ends: IntArray, levels: FloatArray, peaks: Peaks) -> IntArray:
    """Paths nearly as high as the best chain of paths between their ends."""
    n_peaks = len(peaks.positions)
    chains = np.full((n_peaks, n_peaks), -np.inf)
    np.maximum.at(chains, (ends, ends[:, ::-1]), levels[:, None])
    for middle in range(n_peaks):
        chains = np.maximum(chains, np.minimum(chains[:, middle, None], chains[middle]))
    reached = chains[ends[:, 0], ends[:, 1]]
    depth = peaks.log_densities[ends].min(axis=1) - reached
    margin = _LEAST_MARGIN + np.minimum(_MARGIN_SHARES[0] * depth, _MOST_MARGIN) + _MARGIN_SHARES[1] * depth
    return np.flatnonzero(levels >= reached - margin)


def no_passes(mixture: Mixture) -> Passes:
    """The passes of a mixture with one peak."""
    return Passes(
        np.empty((0, mixture.n_features)), np.empty(0), np.empty((0, 2), np.int64), np.empty(0, np.bool_)
    )


def ridgelines(mixture: Mixture, first: IntArray, second: IntArray) -> FloatArray:
    """Ridgelines between live components, as paths of shape (n, nodes, d) from one mean to the other.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.morse.mixture import Mixture
    >>> pair = Mixture([0.5, 0.5], [[0.0, 0.0], [3.0, 0.0]], [np.eye(2), 9 * np.eye(2)])
    >>> ridgelines(pair, np.array([0]), np.array([1]))[0, [0, -1]]
    array([[0., 0.],
           [3., 0.]])
    """
    precisions, means = mixture.precisions, mixture.means[mixture.live]
    apart = means[second] - means[first]
    pull = [squared_lengths(apart, precisions[e]) for e in (first, second)]
    # Shares of the second component that spread nodes evenly if the covariances are multiples of each other.
    share = np.linspace(0, 1, _N_NODES) * np.ones((len(first), 1))
    ratio = (pull[0] / np.maximum(pull[1], np.finfo(float).tiny))[:, None]
    share = share * ratio / np.maximum(share * ratio + 1 - share, np.finfo(float).tiny)
    toward = share[..., None, None] * precisions[second][:, None]
    mixed = (1 - share)[..., None, None] * precisions[first][:, None] + toward
    moved = np.linalg.solve(mixed, np.einsum("nmij,nj->nmi", toward, apart)[..., None])[..., 0]
    found: FloatArray = means[first][:, None] + moved
    return found


def push_up(mixture: Mixture, paths: FloatArray) -> FloatArray:
    """Raise the density along paths; their ends climb towards peaks."""
    n, m, d = paths.shape
    for _ in range(_N_SWEEPS):
        here = mixture.local(mixture.deviations(paths.reshape(-1, d)))
        precision, gradient = here.precision.reshape(n, m, d, d), here.gradient.reshape(n, m, d)
        step = np.linalg.solve(precision, gradient[..., None])[..., 0]
        tangent = paths[:, 2:] - paths[:, :-2]
        square = squared_lengths(tangent, precision[:, 1:-1])
        slope = np.einsum("nmi,nmi->nm", tangent, gradient[:, 1:-1])
        step[:, 1:-1] -= tangent * (slope / np.maximum(square, np.finfo(float).tiny))[..., None]
        moved = paths + step
        paths = _spread(moved, precision, here.shares.reshape(n, m, -1))
    return paths


def find_valleys(
    mixture: Mixture, paths: FloatArray, n_halvings: int, per_segment: int = _PER_SEGMENT
) -> Valleys:
    """Where the density is lowest along paths, also between nodes: all local minima and the lower ends."""
    n, m, d = paths.shape
    at = np.linspace(0, m - 1, (m - 1) * per_segment + 1)
    points = _interpolate(paths, np.broadcast_to(at, (n, len(at))))
    levels = mixture.log_density(points.reshape(-1, d)).reshape(n, -1)
    padded = np.pad(levels, ((0, 0), (1, 1)), constant_values=np.inf)
    which, step = np.nonzero((levels < padded[:, :-2]) & (levels <= padded[:, 2:]))
    low, high = at[np.maximum(step - 1, 0)], at[np.minimum(step + 1, len(at) - 1)]
    near = paths[which]
    for _ in range(n_halvings):
        middle = (low + high) / 2
        gradient = mixture.gradient(_interpolate(near, middle[:, None])[:, 0])
        before = np.minimum(middle.astype(np.int64), m - 2)
        rows = np.arange(len(which))
        rises = np.einsum("ni,ni->n", gradient, near[rows, before + 1] - near[rows, before]) > 0
        low, high = np.where(rises, low, middle), np.where(rises, middle, high)
    found = _interpolate(near, ((low + high) / 2)[:, None])[:, 0]
    return Valleys(which, found, np.minimum(mixture.log_density(found), levels[which, step]))


def critical_points(mixture: Mixture, points: FloatArray) -> FloatArray:
    """Critical point near each point, by Newton's method on positions and responsibilities together.

    Far between components responsibilities jump within a tiny distance. Taking them as unknowns of their
    own, tied to the position by linear equations, leaves nothing steep in the equations.
    """
    found, going = points.copy(), np.arange(len(points))
    logs = mixture.log_joint(mixture.deviations(points))
    for _ in range(_MOST_NEWTON_STEPS):
        step, change, length = _newton(mixture, found[going], logs)
        shorter = 1 / np.maximum(1.0, length)[:, None]
        found[going] += step * shorter
        moving = length > _CONVERGED
        going, logs = going[moving], (logs + change * shorter)[moving]
        if not len(going):
            break
    return found


def _newton(
    mixture: Mixture, points: FloatArray, logs: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton step of positions and of logarithms of responsibilities, and the length of the former."""
    d = points.shape[1]
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    deviations = mixture.deviations(points)
    pulls = mixture.pulls(deviations)
    gradient = np.einsum("nk,nki->ni", shares, pulls)
    pulls -= gradient[:, None]
    gap = mixture.log_joint(deviations) - logs
    gap -= np.einsum("nk,nk->n", shares, gap)[:, None]
    precision = (shares @ mixture.precisions.reshape(-1, d * d)).reshape(-1, d, d)
    weighted = pulls * shares[:, :, None]
    hessian = weighted.transpose(0, 2, 1) @ pulls - precision
    step = -_solved(hessian, gradient + np.einsum("nk,nki->ni", gap, weighted))
    length = np.sqrt(squared_lengths(step, precision))
    return step, gap + np.einsum("nki,ni->nk", pulls, step), length


def joined_peaks(mixture: Mixture, peaks: Peaks, points: FloatArray) -> Passes:
    """Those of critical points that are saddles of index one between two peaks.

    An ascent may end at a peak to which no mean leads: such peaks are numbered after the stable points.
    """
    here, curvatures, directions, slopes = local_frame(mixture, points)
    steepness = np.sqrt(1 - curvatures[:, 0])  # pulls that balance: their rounding is what remains
    flat = np.linalg.norm(slopes, axis=1) < _ZERO_GRADIENT * (1 + steepness)
    saddle = np.flatnonzero(flat & ((curvatures < 0).sum(axis=1) == 1))
    saddle = saddle[_distinct(points[saddle], here.log_density[saddle])[0]]
    points, levels, curvatures = points[saddle], here.log_density[saddle], curvatures[saddle]
    rising = _OFFSET * directions[saddle, :, 0] / np.sqrt(np.maximum(-curvatures[:, :1], 1.0))
    tops = climb(mixture, np.concatenate([points + rising, points - rising]))
    ends = nearest_peak(peaks, tops)
    hidden = ends < 0
    ends[hidden] = len(peaks.positions) + _distinct(tops[hidden], mixture.log_density(tops[hidden]))[1]
    ends = ends.reshape(2, -1).T
    apart = np.flatnonzero(ends[:, 0] != ends[:, 1])
    return Passes(points, levels, ends, np.ones(len(points), dtype=bool)).take(apart)


def _distinct(points: FloatArray, levels: FloatArray) -> tuple[IntArray, IntArray]:
    """One of each set of equal points, and the number of the set of each point."""
    scale = np.ptp(points, axis=0) if len(points) else np.ones(points.shape[1])
    key = np.column_stack([points / np.where(scale > 0, scale, 1.0), levels])
    return np.unique(key.round(6), axis=0, return_index=True, return_inverse=True)[1:]


def _spread(paths: FloatArray, precision: FloatArray, shares: FloatArray) -> FloatArray:
    """Spread nodes evenly, half by length in the local scale and half by change of the responsibilities."""
    apart = np.diff(paths, axis=1)
    scale = (precision[:, 1:] + precision[:, :-1]) / 2
    lengths = np.sqrt(squared_lengths(apart, scale))
    changes = np.abs(np.diff(shares, axis=1)).sum(axis=2)
    tiny = np.finfo(float).tiny
    density = sum(part / np.maximum(part.sum(axis=1, keepdims=True), tiny) for part in (lengths, changes))
    reached = np.cumsum(density, axis=1)
    reached = np.pad(reached, ((0, 0), (1, 0)))
    m = paths.shape[1]
    wanted = reached[:, -1:] * np.linspace(0, 1, m)
    after = (reached[:, None, 1:-1] <= wanted[:, :, None]).sum(axis=2)
    start = np.take_along_axis(reached, after, axis=1)
    width = np.take_along_axis(reached, after + 1, axis=1) - start
    return _interpolate(paths, after + np.clip((wanted - start) / np.maximum(width, tiny), 0, 1))


def _interpolate(paths: FloatArray, at: FloatArray) -> FloatArray:
    """Points of paths at fractional numbers of nodes, of shape (n, positions)."""
    before = np.minimum(at.astype(np.int64), paths.shape[1] - 2)
    rest = (at - before)[..., None]
    left = np.take_along_axis(paths, before[..., None], axis=1)
    right = np.take_along_axis(paths, before[..., None] + 1, axis=1)
    found: FloatArray = left + rest * (right - left)
    return found


def _solved(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Solve symmetric systems that may be singular."""
    try:
        return np.asarray(np.linalg.solve(matrices, vectors[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return np.asarray(np.einsum("nij,nj->ni", np.linalg.pinv(matrices, hermitian=True), vectors))
