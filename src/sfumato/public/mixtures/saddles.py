"""Paths of high density between components of a mixture, and the saddles where they are lowest.

A path between two components starts as their ridgeline, which contains all critical points of the two alone
[1]_. It is pushed up as a string: every node takes the part of its EM step that is orthogonal to the path.
Then the nodes are spread again, half by distance in the local scale and half by change of the
responsibilities, so that borders between components of any size are resolved. The level that a path reaches
certainly connects its ends. Newton's method moves the lowest point to the saddle. Bounds that remain in the
tree are pushed up further, and the surroundings of new peaks are searched, for at most a fixed number of
rounds.

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
from sfumato.public.mixtures.kernels import deepen, fill_levels, newton, push_up
from sfumato.public.mixtures.mixture import Mixture, squared_lengths
from sfumato.public.mixtures.peaks import Peaks, climb, local_frame, with_hidden

# Effort of the search. Tuned: docs/notes/constants.md#morse
# How far below the best chain of ridgelines a path may start and still turn out higher: shares of the depth
# of that chain below the lower of the two peaks, the first of them up to a limit.
_LEAST_MARGIN, _MOST_MARGIN = 0.1, 3.0
_MARGIN_SHARES = (0.5, 0.1)
_N_NODES = 16  # of a path
_MOST_ROUNDS = 4
_N_NEIGHBOURS = 8  # to which paths from a hidden peak are tried
_N_SWEEPS = 4  # in each round

# Limits and precision of double numbers.
_MOST_ENTRIES = 2**22  # of matrices along ridgelines that are in memory at once
_ROUGH, _CLOSE, _FINE = 1e-3, 1e-6, 1e-10  # error of the log density of a valley
_PER_SEGMENT = 3  # samples of a path
_DENSE = 100  # the same for a path that no saddle confirms
_MOST_NEWTON_STEPS = 12  # the number of right digits doubles with each
_CONVERGED = 1e-8  # length of the last step in the local scale, after which the error is its square
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
        The two stable points. If an ascent ends at a peak that no mean leads to, the densest stable point
        joined to it at a higher level.
    exact : bool array of shape (n,)
        Whether the point is a saddle of index one whose two ascents end in `peaks`. If not, it is the lowest
        point of a path between them, and its log density is a lower bound.
    """

    positions: FloatArray
    log_densities: FloatArray
    peaks: IntArray
    exact: NDArray[np.bool_]

    def take(self, which: IntArray) -> Passes:
        """Some of the passes."""
        return Passes(self.positions[which], self.log_densities[which], self.peaks[which], self.exact[which])

    def plus(self, others: Passes) -> Passes:
        """These passes and others."""
        return Passes(*(np.concatenate(parts) for parts in zip(self, others, strict=True)))


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

    Ridgelines are nearly as high as paths can be. So a ridgeline is pushed up only if it is within a margin
    of the best level at which its ends are connected otherwise. Saddles are sought from all valleys at every
    stage, because a string may slip off one saddle on its way to another. The ascent from a saddle may end at
    a hidden peak, which no mean leads to. The next round takes paths from there, to find the saddles on its
    other sides, and pushes up the bounds that remain in the tree.
    """
    saddles, bounds = no_passes(mixture), no_passes(mixture)
    lines, strings = (np.empty((0, _N_NODES, mixture.n_features)) for _ in range(2))
    known, n_before, weak = peaks, 0, np.empty(0, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        paths, ends = _lines(mixture, known, len(peaks.positions), n_before)
        valleys = find_valleys(mixture, paths, _CLOSE)
        lowest = valleys.lowest(len(paths))
        new = Passes(lowest.positions, lowest.levels, ends, np.zeros(len(paths), dtype=bool))
        near = _near(new.plus(saddles), len(paths), known)
        bounds, lines = bounds.plus(new.take(near)), np.concatenate([lines, paths[near]])
        weak = np.concatenate([weak, np.arange(len(strings), len(lines))])
        strings = np.concatenate([strings, paths[near]])
        strings[weak], lifted = pushed(mixture, strings[weak])
        starts = np.concatenate([valleys.positions[np.isin(valleys.paths, near)], lifted])
        n_before = len(known.positions)
        found, known = joined_peaks(mixture, known, critical_points(mixture, starts))
        saddles = saddles.plus(found)
        tree = _kruskal(saddles.plus(bounds), len(peaks.positions))[0]
        weak = tree[tree >= len(saddles.exact)] - len(saddles.exact)
        if not len(weak) and len(known.positions) == n_before:
            break
    return _spanning(mixture, saddles, bounds, lines, len(peaks.positions))


def _lines(mixture: Mixture, known: Peaks, n_peaks: int, n_before: int) -> tuple[FloatArray, IntArray]:
    """Ridgelines between all components, later from new hidden peaks to nearby ones; and their two peaks."""
    live = mixture.live
    positions = np.concatenate([mixture.means[live], known.positions[n_peaks:]])
    precisions = np.concatenate([mixture.sums.precisions, known.precisions[n_peaks:]])
    peak = np.concatenate([known.owners[live], np.arange(n_peaks, len(known.positions))])
    first, second = np.triu_indices(len(peak), 1)
    if n_before:
        new = second >= len(live) + n_before - n_peaks
        first, second = first[new], second[new]
        apart = positions[second] - positions[first]
        distance = np.minimum(*(squared_lengths(apart, precisions[e]) for e in (first, second)))
        order = np.lexsort((distance, second))
        rank = np.arange(len(order)) - np.searchsorted(second[order], second[order])
        first, second = (e[order[rank < _N_NEIGHBOURS]] for e in (first, second))
    joins = peak[first] != peak[second]
    first, second = first[joins], second[joins]
    return ridgelines(positions, precisions, first, second), np.stack([peak[first], peak[second]], axis=1)


def pushed(mixture: Mixture, paths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Paths with the density raised along them, and their valleys."""
    found: FloatArray = paths - mixture.centre
    push_up(found, mixture.sums, _N_SWEEPS)
    found += mixture.centre
    return found, find_valleys(mixture, found, _ROUGH).positions


def _spanning(mixture: Mixture, saddles: Passes, bounds: Passes, paths: FloatArray, n_peaks: int) -> Passes:
    """Maximum spanning tree of the passes. A bound in it is examined closely before it counts."""
    passes = saddles.plus(bounds)
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

    Numbers from `n_peaks` on are hidden peaks: paths may cross them, but they are not leaves.
    """
    key = passes.log_densities - _TIE * (1 + np.abs(passes.log_densities)) * ~passes.exact
    first = list(range(passes.peaks.max(initial=0) + 1))  # densest peak of the part of each
    pairs = passes.peaks.tolist()
    chosen, ends = [], []
    for candidate in np.argsort(-key, kind="stable"):
        elder, younger = sorted(first[peak] for peak in pairs[candidate])
        if elder == younger:
            continue
        if younger < n_peaks:
            chosen.append(candidate)
            ends.append([peak if peak < n_peaks else first[peak] for peak in pairs[candidate]])
            if len(chosen) == n_peaks - 1:
                break
        first = [elder if part == younger else part for part in first]
    return np.array(chosen, dtype=np.int64), np.array(ends, dtype=np.int64).reshape(-1, 2)


def _near(passes: Passes, n_lines: int, peaks: Peaks) -> IntArray:
    """Those of the first passes that are nearly as high as the best chain between their ends."""
    n_peaks, levels = len(peaks.positions), passes.log_densities[:n_lines]
    chains = np.full((n_peaks, n_peaks), -np.inf)
    np.maximum.at(chains, (passes.peaks, passes.peaks[:, ::-1]), passes.log_densities[:, None])
    for middle in range(n_peaks):
        chains = np.maximum(chains, np.minimum(chains[:, middle, None], chains[middle]))
    ends = passes.peaks[:n_lines]
    reached = chains[ends[:, 0], ends[:, 1]]
    depth = peaks.log_densities[ends].min(axis=1) - reached
    margin = _LEAST_MARGIN + np.minimum(_MARGIN_SHARES[0] * depth, _MOST_MARGIN) + _MARGIN_SHARES[1] * depth
    return np.flatnonzero(levels >= reached - margin)


def no_passes(mixture: Mixture) -> Passes:
    """The passes of a mixture with one peak."""
    return Passes(
        np.empty((0, mixture.n_features)), np.empty(0), np.empty((0, 2), np.int64), np.empty(0, np.bool_)
    )


def ridgelines(means: FloatArray, precisions: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Ridgelines between Gaussians, as paths of shape (n, nodes, d) from one mean to the other.

    Examples
    --------
    >>> import numpy as np
    >>> means, precisions = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([np.eye(2), np.eye(2) / 9])
    >>> ridgelines(means, precisions, np.array([0]), np.array([1]))[0, [0, -1]]
    array([[0., 0.],
           [3., 0.]])
    """
    n, d = len(first), means.shape[1]
    found = np.empty((n, _N_NODES, d))
    size = max(1, _MOST_ENTRIES // (_N_NODES * d * d))
    for block in (slice(start, start + size) for start in range(0, n, size)):
        found[block] = _ridgelines(means, precisions, first[block], second[block])
    return found


def _ridgelines(means: FloatArray, precisions: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    apart = means[second] - means[first]
    pull = [squared_lengths(apart, precisions[e]) for e in (first, second)]
    # These shares of the second component spread nodes evenly if the covariances are proportional.
    share = np.linspace(0, 1, _N_NODES) * np.ones((len(first), 1))
    ratio = (pull[0] / np.maximum(pull[1], np.finfo(float).tiny))[:, None]
    share = share * ratio / np.maximum(share * ratio + 1 - share, np.finfo(float).tiny)
    toward = share[..., None, None] * precisions[second][:, None]
    mixed = (1 - share)[..., None, None] * precisions[first][:, None] + toward
    moved = np.linalg.solve(mixed, np.einsum("nmij,nj->nmi", toward, apart)[..., None])[..., 0]
    found: FloatArray = means[first][:, None] + moved
    return found


def find_valleys(
    mixture: Mixture, paths: FloatArray, tolerance: float, per_segment: int = _PER_SEGMENT
) -> Valleys:
    """Lowest points of the density along paths, even between nodes: all local minima and the lower ends."""
    n, m, d = paths.shape
    centred = paths - mixture.centre
    levels = np.empty((n, (m - 1) * per_segment + 1))
    fill_levels(centred, per_segment, mixture.sums, levels)
    padded = np.pad(levels, ((0, 0), (1, 1)), constant_values=np.inf)
    which, step = np.nonzero((levels < padded[:, :-2]) & (levels <= padded[:, 2:]))
    found = np.empty((len(which), d))
    deepen(centred, which, step / per_segment, 1 / per_segment, mixture.sums, tolerance, found)
    found += mixture.centre
    return Valleys(which, found, np.minimum(mixture.log_density(found), levels[which, step]))


def critical_points(mixture: Mixture, points: FloatArray) -> FloatArray:
    """Critical point near each point, by Newton's method on positions and responsibilities together.

    Between distant components, responsibilities jump within a tiny distance. With responsibilities as
    separate unknowns, tied to the position by linear equations, the equations have no steep parts.
    """
    found: FloatArray = points - mixture.centre
    newton(found, mixture.sums, _MOST_NEWTON_STEPS, _CONVERGED)
    found += mixture.centre
    return found


def joined_peaks(mixture: Mixture, peaks: Peaks, points: FloatArray) -> tuple[Passes, Peaks]:
    """The critical points that are saddles of index one between two peaks, and all the peaks."""
    points = points[_distinct(points, mixture.log_density(points), np.ptp(peaks.positions, axis=0))]
    levels, gradient, curvatures, directions = local_frame(mixture, points)
    slopes = np.einsum("nij,ni->nj", directions, gradient)
    steepness = np.sqrt(1 - curvatures[:, 0])  # pulls that balance: their rounding is what remains
    flat = np.linalg.norm(slopes, axis=1) < _ZERO_GRADIENT * (1 + steepness)
    saddle = np.flatnonzero(flat & ((curvatures < 0).sum(axis=1) == 1))
    points, levels, curvatures = points[saddle], levels[saddle], curvatures[saddle]
    rising = _OFFSET * directions[saddle, :, 0] / np.sqrt(np.maximum(-curvatures[:, :1], 1.0))
    tops = climb(mixture, np.concatenate([points + rising, points - rising]))
    peaks, ends = with_hidden(mixture, peaks, tops)
    ends = ends.reshape(2, -1).T
    apart = np.flatnonzero(ends[:, 0] != ends[:, 1])
    return Passes(points, levels, ends, np.ones(len(points), dtype=bool)).take(apart), peaks


def _distinct(points: FloatArray, levels: FloatArray, scale: FloatArray) -> IntArray:
    """One of each set of points that are equal up to rounding."""
    key = np.column_stack([points / np.where(scale > 0, scale, 1.0), levels]).round(6)
    order = np.lexsort(key.T[::-1])
    return order[np.diff(key[order], axis=0, prepend=np.inf).any(axis=1)]
