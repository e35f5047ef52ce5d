"""Errors of centres and sizes of methods that end in noisy means of displacements.

These are the refinement and the mixtures. A centre that is `offset` from the mean of its rows moves by the
noisy mean of the clipped displacements of these rows, shrunk (`public.means`). For normal clusters the
remaining error is known: clipping at a radius passes on a part of the offset only, the plan sets the noise,
and which rows are clipped is chance. docs/budget.md has the derivation, BENCHMARKS.md the measurements.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.stats import chi

from sfumato.cluster.shared.traits import Moments, Refinement, SplitTree
from sfumato.domain import FloatArray
from sfumato.domain.columns import names_columns
from sfumato.planner.rehearsal import Rehearsal
from sfumato.public.means import shrunk_means
from sfumato.public.reach import Reach

_MOST_SPLIT, _HARD_TO_FIND = 0.9, 10.0  # clusters; rows times epsilon (measured from 2 to 20 columns)
_OF_EVEN_TREE = 0.6  # leaves of a tree of uneven splits, against one of even splits (measured: 0.3 to 0.7)
_LEFT_BY_SPLIT = 1 - 2 / math.pi  # variance of a normal law along a column after a cut at its mean
_N_SHARES = 400  # of equal probability, to take means over a law
_N_DRAWS = 32  # histograms of distances to take means over
_N_VALUES = 20_000  # of a round
_PUBLIC_SEED = 2026
# Clusters of real tables touch, so rows still change sides after the last round. Centres are off by this part
# of the spread, and sizes by half this part of themselves. Chosen on Adult and bank: docs/budget.md
_UNSETTLED = 0.06


def center_error(rehearsal: Rehearsal) -> float | None:
    """Root mean squared error of a coordinate of a centre; None where no formula is known."""
    traits = rehearsal.traits
    if traits.refinement is None:
        return None
    error = _refined(rehearsal, traits.refinement)
    return error if traits.moments is None else _after_moments(rehearsal, traits.moments, error)


def size_error(rehearsal: Rehearsal) -> float | None:
    """Standard deviation of the noise in the size of a cluster."""
    step = rehearsal.traits.size_step
    return None if step is None else rehearsal.noise_of_sizes(step)


def touching(
    rehearsal: Rehearsal, center_error: float | None, size_error: float | None
) -> tuple[float | None, float | None]:
    """Errors of centres and sizes on a real table, whose clusters touch: one whose columns have names.

    Between clusters of different levels of a category there is a gap.
    """
    if rehearsal.traits.refinement is None or not names_columns(rehearsal.estimator.bounds):
        return center_error, size_error
    share = rehearsal.plain_share
    if center_error is not None:
        center_error = math.hypot(center_error, _UNSETTLED * rehearsal.plain_spread * math.sqrt(share))
    if size_error is not None:
        size_error = math.hypot(size_error, _UNSETTLED / 2 * share * rehearsal.size)
    return center_error, size_error


def smallest_cluster(rehearsal: Rehearsal) -> float | None:
    """Rows of the smallest cluster that the method tells from noise: the largest of its own thresholds."""
    tree = rehearsal.traits.tree
    least = [visible.least_rows(rehearsal) for visible in rehearsal.traits.visible]
    if tree is not None:
        least += [tree.least(rehearsal, rehearsal.n), *_cut_off(rehearsal, tree)]
    return max(least, default=None)


def _cut_off(rehearsal: Rehearsal, tree: SplitTree) -> list[float]:
    """Rows that equal clusters need for a tree of even splits to see both sides of each split."""
    n_levels = max(1, math.ceil(math.log2(rehearsal.k)))
    stds = [rehearsal.noise_std(step) for step in tree.sizes[:n_levels]]
    return [tree.above * std * 2.0**level / rehearsal.k for level, std in enumerate(stds, start=1)]


def _n_parts(rehearsal: Rehearsal, splits: str | None) -> float:
    """Cells that a cluster is in, before they are merged."""
    if splits is not None:  # a good split of a cluster is found if it can be told from others
        found = rehearsal.size * float(rehearsal.plan[splits].cost)
        return 1 + _MOST_SPLIT * found / (found + _HARD_TO_FIND * rehearsal.d**2)
    tree = rehearsal.traits.tree
    if tree is None:
        return 1.0
    least, n_leaves = tree.least(rehearsal, rehearsal.n), 1.0
    for level, step in enumerate(tree.sizes, start=1):
        if rehearsal.n / 2.0**level < max(least, tree.above * rehearsal.noise_std(step)):
            break
        n_leaves = 2.0**level
    return max(1.0, _OF_EVEN_TREE * n_leaves / rehearsal.k)


def _refined(rehearsal: Rehearsal, refinement: Refinement) -> float:
    """Error after the refinement, in quadratic mean over the noise in the histogram of distances."""
    n_parts = _n_parts(rehearsal, refinement.splits)
    within = _LEFT_BY_SPLIT ** (math.log2(n_parts) / rehearsal.d)  # variance that is left within a part
    noise = rehearsal.noise_of_sums(refinement.last) / rehearsal.size
    squares = []
    for reach in _reaches(rehearsal, refinement, math.sqrt(within)):
        offset = _merged(rehearsal, refinement, n_parts, within, reach.holding(refinement.within))
        # As in the refinement: rows are further from merged centres than from those of parts.
        reach = reach.widened(1 / math.sqrt(within))
        radius = refinement.last_radius(reach, noise * math.sqrt(rehearsal.d))
        squares.append(_after_round(rehearsal, refinement.last, offset, radius) ** 2)
    return math.sqrt(float(np.mean(squares)))


def _merged(
    rehearsal: Rehearsal, refinement: Refinement, n_parts: float, within: float, radius: float
) -> float:
    """Mean squared error of a coordinate of merged centres, from the noise in their parts."""
    last = refinement.last
    of_part = (rehearsal.noise_of_sums(last) * radius * n_parts / rehearsal.size) ** 2
    offset, passed = of_part, _passed_on(radius / math.sqrt(within) / rehearsal.spread, rehearsal.d)
    for _ in range(refinement.n_part_rounds - 1):
        offset = _left(offset, of_part, passed, _draws_of(rehearsal, last))
    # Parts are weighed by noisy sizes, which moves their mean by their distances from it.
    of_size = rehearsal.noise_of_sizes(last) / rehearsal.size * rehearsal.spread
    return offset / n_parts + of_size**2 * (1 - within) * n_parts


def _reaches(rehearsal: Rehearsal, refinement: Refinement, scale: float) -> list[Reach]:
    """Noisy histograms of distances that may be released, for normal parts of `scale` times the spread."""
    edges = refinement.edges(rehearsal.domain)
    below = rehearsal.n * chi.cdf(edges / (rehearsal.spread * scale), rehearsal.d)
    counts = np.append(np.diff(below, prepend=0.0), 0.0)
    std = rehearsal.noise_std(refinement.distances)
    noise = np.random.default_rng(_PUBLIC_SEED).normal(scale=std, size=(_N_DRAWS, len(counts)))
    return [Reach.read(np.rint(counts + row).astype(np.int64), edges, std) for row in noise]


def _after_moments(rehearsal: Rehearsal, moments: Moments, error: float) -> float:
    """Error after rounds of moments from centres with a given error."""
    radius = rehearsal.spread * chi.ppf(moments.within_first, rehearsal.d)
    for _ in range(rehearsal.plan[moments.step].step.repeats):
        error = _after_round(rehearsal, moments.step, error**2, radius)
        radius = moments.radius * rehearsal.spread * math.sqrt(rehearsal.d)
    return error


def _after_round(rehearsal: Rehearsal, step: str, offset: float, radius: float) -> float:
    """Error after a round, from the mean squared offset before it."""
    clip, d = radius / rehearsal.spread, rehearsal.d
    passed = _passed_on(clip, d)
    beyond = np.maximum(_distances(d) - clip, 0.0)
    chance = float((beyond**2).mean()) / d * rehearsal.spread**2 / rehearsal.size
    noise = (rehearsal.noise_of_sums(step) * radius / rehearsal.size) ** 2
    return math.sqrt(_left(offset, noise, passed, _draws_of(rehearsal, step)) + chance / passed**2)


def _draws_of(rehearsal: Rehearsal, step: str) -> tuple[FloatArray, FloatArray]:
    return _draws(rehearsal.d, rehearsal.record(step).mechanism == "discrete Laplace")


@lru_cache(maxsize=64)
def _distances(d: int) -> FloatArray:
    """Distances of rows from the middle of a normal cluster, in spreads: the middles of equal shares."""
    return np.asarray(chi.ppf((np.arange(_N_SHARES) + 0.5) / _N_SHARES, d))


def _passed_on(clip: float, d: int) -> float:
    """Share of a small offset that the mean of displacements shows, clipped at this many spreads.

    The mean divergence of clipping: 1 within the radius, and (d - 1) / d of radius over distance beyond.
    """
    distances = _distances(d)
    passed = float(np.where(distances <= clip, 1.0, (d - 1) / d * clip / distances).mean())
    return max(passed, 0.5 / _N_SHARES)  # of one column, a radius may hold less than any of the shares


def _left(offset: float, noise: float, passed: float, draws: tuple[FloatArray, FloatArray]) -> float:
    """Mean squared error of a coordinate after a shrunk move; `offset` and `noise` are variances."""
    offsets, noises = math.sqrt(offset) * draws[0], math.sqrt(noise) * draws[1]
    ones = np.ones(len(offsets))
    moves = shrunk_means(passed * offsets + noises, ones, math.sqrt(noise) * ones)
    return float(((offsets - moves) ** 2).mean())


@lru_cache(maxsize=64)
def _draws(d: int, laplace: bool) -> tuple[FloatArray, FloatArray]:
    """Offsets and noise of a round, each of unit variance and shape (n_draws, d). Public."""
    rng = np.random.default_rng(_PUBLIC_SEED)
    shape = max(_N_DRAWS, _N_VALUES // d), d
    noise = rng.laplace(scale=math.sqrt(0.5), size=shape) if laplace else rng.normal(size=shape)
    return rng.normal(size=shape), noise
