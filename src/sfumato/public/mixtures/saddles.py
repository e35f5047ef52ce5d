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
from sfumato.public.mixtures.kernels import deepen, fill_leaders, fill_levels, newton, push_up
from sfumato.public.mixtures.mixture import Mixture, squared_lengths
from sfumato.public.mixtures.peaks import Peaks, climb, local_frame, with_hidden

# Effort of the search. Tuned: docs/notes/constants.md#morse
# How far below the best chain of ridgelines a path may start and still turn out higher: shares of the depth
# of that chain below the lower of the two peaks, the first of them up to a limit.
_LEAST_MARGIN, _MOST_MARGIN = 0.1, 3.0
_MARGIN_SHARES = (0.5, 0.1)
_N_NODES = 16  # of a path
_GLANCES = np.array([3, 5, 7, 8, 10, 12]) / 15  # where a ridgeline is read first: docs/notes/mixtures.md
_N_AT_ONCE = 64  # critical points that are examined together: hardly more than time depends on it
_N_LOOKS = 3  # at the best ridgelines before others are ruled out: only the time depends on it
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

    def bounds(self, ends: IntArray) -> Passes:
        """Passes between the ends of paths, if there is one valley of each path."""
        return Passes(self.positions, self.levels, ends, np.zeros(len(ends), dtype=bool))

    def lowest(self, n_paths: int) -> Valleys:
        """The lowest valley of each path."""
        order = np.lexsort((self.levels, self.paths))
        first = order[np.searchsorted(self.paths[order], np.arange(n_paths))]
        return Valleys(self.paths[first], self.positions[first], self.levels[first])


class Pairs(NamedTuple):
    """Pairs of Gaussians to be joined by ridgelines, and the peaks at their ends.

    Parameters
    ----------
    means, precisions : float arrays of shape (k, d) and (k, d, d)
    first, second : int arrays of shape (n,)
        The two Gaussians of each pair.
    ends : int array of shape (n, 2)
        Their peaks.
    """

    means: FloatArray
    precisions: FloatArray
    first: IntArray
    second: IntArray
    ends: IntArray

    def take(self, which: IntArray) -> Pairs:
        """Some of the pairs."""
        return self._replace(first=self.first[which], second=self.second[which], ends=self.ends[which])

    def lines(self, at: FloatArray | None = None) -> FloatArray:
        """Their ridgelines, see `ridgelines`."""
        return ridgelines(self.means, self.precisions, self.first, self.second, at)


def find_passes(mixture: Mixture, peaks: Peaks) -> Passes:
    """The S - 1 passes at which S peaks join, the densest first, from paths between pairs of components.

    Ridgelines are nearly as high as paths can be. So a ridgeline is pushed up only if it is within a margin
    of the best level at which its ends are connected otherwise, and if it does not cross the region of a
    third component: the lines to that one say more. Saddles are sought from all valleys at every stage,
    because a string may slip off one saddle on its way to another. The ascent from a saddle may end at a
    hidden peak, which no mean leads to. The next round takes paths from there, to find the saddles on its
    other sides, and pushes up the bounds that remain in the tree.
    """
    saddles, bounds = no_passes(mixture), no_passes(mixture)
    lines, strings = (np.empty((0, _N_NODES, mixture.n_features)) for _ in range(2))
    known, n_before, weak = peaks, 0, np.empty(0, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        pairs = _pairs(mixture, known, len(peaks.positions), n_before)
        if not n_before:
            pairs = pairs.take(_promising(mixture, pairs, peaks))
        paths = pairs.lines()
        valleys = find_valleys(mixture, paths, _CLOSE)
        new = valleys.lowest(len(paths)).bounds(pairs.ends)
        near = _near(new.plus(saddles), len(paths), known)
        bounds, lines = bounds.plus(new.take(near)), np.concatenate([lines, paths[near]])
        weak = np.concatenate([weak, np.arange(len(strings), len(lines))])
        strings = np.concatenate([strings, paths[near]])
        strings[weak], lifted = pushed(mixture, strings[weak])
        kept = np.isin(valleys.paths, near)
        ends = np.concatenate([pairs.ends[valleys.paths[kept]], bounds.peaks[weak][lifted.paths]])
        n_before = len(known.positions)
        starts = critical_points(mixture, np.concatenate([valleys.positions[kept], lifted.positions]))
        saddles, known = with_saddles(mixture, known, saddles, starts, ends)
        tree = _kruskal(saddles.plus(bounds), len(peaks.positions))[0]
        weak = tree[tree >= len(saddles.exact)] - len(saddles.exact)
        if not len(weak) and len(known.positions) == n_before:
            break
    return _spanning(mixture, saddles, bounds, lines, len(peaks.positions))


def _pairs(mixture: Mixture, known: Peaks, n_peaks: int, n_before: int) -> Pairs:
    """All pairs of components, later of new hidden peaks and what is nearby; only between different peaks."""
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
    return Pairs(positions, precisions, first, second, np.stack([peak[first], peak[second]], axis=1))


def _promising(mixture: Mixture, pairs: Pairs, peaks: Peaks) -> IntArray:
    """The pairs whose ridgeline is direct and may be nearly as high as the best chain between its ends.

    A few points of a line bound its level from above. The lines that these bounds put into the tree are
    looked at closely, a few times over. What they reach then rules out most of the other lines.
    """
    levels, direct = _glances(mixture, pairs)
    seen = np.zeros(len(levels), dtype=bool)
    for _ in range(_N_LOOKS):
        passes = Passes(np.empty((len(levels), 0)), levels, pairs.ends, seen)
        tree = _kruskal(passes, len(peaks.positions))[0]
        unseen = tree[~seen[tree]]
        lines = pairs.take(unseen).lines()
        levels[unseen] = find_valleys(mixture, lines, _CLOSE).lowest(len(unseen)).levels
        seen[unseen] = True
    near = _near(passes, len(levels), peaks, passes.take(np.flatnonzero(seen)))
    return near[direct[near] | seen[near]]


def _glances(mixture: Mixture, pairs: Pairs) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Lowest log density at a few points of each ridgeline, and whether its ends are most probable there."""
    n, d = len(pairs.first), mixture.n_features
    lowest, direct = np.empty(n), np.empty(n, dtype=bool)
    size = max(1, _MOST_ENTRIES // (len(_GLANCES) * d))
    for start in range(0, n, size):
        block = np.arange(start, min(start + size, n))
        some = pairs.take(block)
        points = some.lines(_GLANCES).reshape(-1, d) - mixture.centre
        levels, leaders = np.empty(len(points)), np.empty(len(points), dtype=np.int64)
        fill_leaders(points, mixture.sums, levels, leaders)
        lowest[block] = levels.reshape(len(block), -1).min(axis=1)
        by_line = leaders.reshape(len(block), -1).T
        direct[block] = ((by_line == some.first) | (by_line == some.second)).all(axis=0)
    return lowest, direct


def pushed(mixture: Mixture, paths: FloatArray) -> tuple[FloatArray, Valleys]:
    """Paths with the density raised along them, and their valleys."""
    found: FloatArray = paths - mixture.centre
    push_up(found, mixture.sums, _N_SWEEPS)
    found += mixture.centre
    return found, find_valleys(mixture, found, _ROUGH)


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


def _near(passes: Passes, n_lines: int, peaks: Peaks, joints: Passes | None = None) -> IntArray:
    """Those of the first passes that are nearly as high as the best chain of joints between their ends.

    The joints are all of the passes, if not given.
    """
    joints = passes if joints is None else joints
    levels, ends = passes.log_densities[:n_lines], passes.peaks[:n_lines]
    reached = _chains(joints, len(peaks.positions))[ends[:, 0], ends[:, 1]]
    depth = peaks.log_densities[ends].min(axis=1) - reached
    margin = _LEAST_MARGIN + np.minimum(_MARGIN_SHARES[0] * depth, _MOST_MARGIN) + _MARGIN_SHARES[1] * depth
    return np.flatnonzero(levels >= reached - margin)


def _chains(passes: Passes, n_peaks: int) -> FloatArray:
    """Level at which each two peaks are connected through passes, of shape (n_peaks, n_peaks)."""
    found = np.full((n_peaks, n_peaks), -np.inf)
    np.maximum.at(found, (passes.peaks, passes.peaks[:, ::-1]), passes.log_densities[:, None])
    for middle in range(n_peaks):
        found = np.maximum(found, np.minimum(found[:, middle, None], found[middle]))
    return found


def no_passes(mixture: Mixture) -> Passes:
    """The passes of a mixture with one peak."""
    return Passes(
        np.empty((0, mixture.n_features)), np.empty(0), np.empty((0, 2), np.int64), np.empty(0, np.bool_)
    )


def ridgelines(
    means: FloatArray, precisions: FloatArray, first: IntArray, second: IntArray, at: FloatArray | None = None
) -> FloatArray:
    """Ridgelines between Gaussians, as paths of shape (n, nodes, d) from one mean to the other.

    `at` places the nodes, from 0 to 1; by default evenly.

    Examples
    --------
    >>> import numpy as np
    >>> means, precisions = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([np.eye(2), np.eye(2) / 9])
    >>> ridgelines(means, precisions, np.array([0]), np.array([1]))[0, [0, -1]]
    array([[0., 0.],
           [3., 0.]])
    """
    n, d = len(first), means.shape[1]
    at = np.linspace(0, 1, _N_NODES) if at is None else at
    columns = np.diagonal(precisions, axis1=1, axis2=2)
    is_diagonal = np.count_nonzero(precisions) == np.count_nonzero(columns)
    found = np.empty((n, len(at), d))
    size = max(1, _MOST_ENTRIES // (len(at) * d * d))
    for start in range(0, n, size):
        block = slice(start, start + size)
        one, other = first[block], second[block]
        apart = means[other] - means[one]
        shares = _shares(apart, precisions, one, other, at)[..., None]
        if is_diagonal:
            toward = shares * columns[other][:, None]
            moved = toward * apart[:, None] / ((1 - shares) * columns[one][:, None] + toward)
        else:
            toward = shares[..., None] * precisions[other][:, None]
            mixed = (1 - shares)[..., None] * precisions[one][:, None] + toward
            moved = np.linalg.solve(mixed, np.einsum("nmij,nj->nmi", toward, apart)[..., None])[..., 0]
        found[block] = means[one][:, None] + moved
    return found


def _shares(
    apart: FloatArray, precisions: FloatArray, first: IntArray, second: IntArray, at: FloatArray
) -> FloatArray:
    """Shares of the second component that spread nodes evenly if the covariances are proportional."""
    pull = [squared_lengths(apart, precisions[e]) for e in (first, second)]
    ratio = (pull[0] / np.maximum(pull[1], np.finfo(float).tiny))[:, None]
    found: FloatArray = at * ratio / np.maximum(at * ratio + 1 - at, np.finfo(float).tiny)
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


def with_saddles(
    mixture: Mixture, peaks: Peaks, saddles: Passes, points: FloatArray, ends: IntArray
) -> tuple[Passes, Peaks]:
    """Saddles with those among critical points added, and the peaks with hidden ones that these join.

    The densest points come first. A point is left out if the ends of all paths that led to it are joined
    above it by then, so most points that join nothing are never examined.

    Parameters
    ----------
    mixture : Mixture
    peaks : Peaks
    saddles : Passes
        Those known so far, all exact.
    points : float array of shape (n, d)
        Critical points.
    ends : int array of shape (n, 2)
        Peaks at the ends of the path that led to each point.
    """
    levels = mixture.log_density(points)
    groups = _same_points(points, levels, np.ptp(peaks.positions, axis=0))
    _, first = np.unique(groups, return_index=True)
    order = np.argsort(-levels[first], kind="stable")
    for block in (order[start : start + _N_AT_ONCE] for start in range(0, len(order), _N_AT_ONCE)):
        chains = _chains(saddles, len(peaks.positions))
        open_ends = np.zeros(len(first), dtype=bool)
        np.logical_or.at(open_ends, groups, levels > chains[ends[:, 0], ends[:, 1]])
        found, peaks = joined_peaks(mixture, peaks, points[first[block[open_ends[block]]]])
        saddles = saddles.plus(found)
    return saddles, peaks


def joined_peaks(mixture: Mixture, peaks: Peaks, points: FloatArray) -> tuple[Passes, Peaks]:
    """The critical points that are saddles of index one between two peaks, and all the peaks."""
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


def _same_points(points: FloatArray, levels: FloatArray, scale: FloatArray) -> IntArray:
    """A number for each point, the same for points that are equal up to rounding."""
    key = np.column_stack([points / np.where(scale > 0, scale, 1.0), levels]).round(6)
    order = np.lexsort(key.T[::-1])
    found = np.empty(len(points), dtype=np.int64)
    found[order] = np.diff(key[order], axis=0, prepend=np.inf).any(axis=1).cumsum() - 1
    return found
