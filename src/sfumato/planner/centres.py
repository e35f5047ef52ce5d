"""Errors of centres and sizes that end in noisy means of displacements: the refinement and the mixtures.

A centre that is `offset` from the mean of its rows moves by the noisy mean of the clipped displacements of
these rows, shrunk (`public.means`). For normal clusters the error that is left is known: clipping at a
radius passes on only a part of the offset, the noise is that of the plan, and the rows that are clipped are
a matter of chance. docs/budget.md has the derivation, BENCHMARKS.md what was measured.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.stats import chi

from sfumato.cluster import DPM, dpm
from sfumato.cluster import coreset_kmeans as coreset
from sfumato.cluster import lloyd_kmeans as lloyd
from sfumato.cluster.shared import candidates, refine
from sfumato.cluster.shared import moments as mixtures
from sfumato.domain import FloatArray
from sfumato.planner.rehearsal import Rehearsal
from sfumato.public.means import shrunk_means
from sfumato.public.reach import Reach, distance_edges

LAST = f"displacements {refine.N_ROUNDS}"
_MOST_SPLIT, _HARD_TO_FIND = (
    0.9,
    10.0,
)  # of clusters, and in rows times epsilon: measured from 2 to 20 columns
_OF_EVEN_TREE = 0.6  # leaves of a tree of uneven splits, against one of even splits (measured: 0.3 to 0.7)
_LEFT_BY_SPLIT = 1 - 2 / math.pi  # variance of a normal law along a column after a cut at its mean
_N_SHARES = 400  # of equal probability, to take means over a law
_N_DRAWS = 32  # histograms of distances to take means over
_N_VALUES = 20_000  # of a round
_PUBLIC_SEED = 2026


def center_error(rehearsal: Rehearsal) -> float | None:
    """Root mean squared error of a coordinate of a centre; None where no formula is known."""
    if LAST not in rehearsal.steps:
        return None
    error = _refined(rehearsal)
    if "moments" in rehearsal.steps:
        error = _after_moments(rehearsal, error)
    return error


def size_error(rehearsal: Rehearsal) -> float | None:
    """Standard deviation of the noise in the size of a cluster."""
    last = next((step for step in ("moments", LAST, "rounds") if step in rehearsal.steps), None)
    return None if last is None else rehearsal.noise_of_sizes(last)


def smallest_cluster(rehearsal: Rehearsal) -> float | None:
    """Rows of the smallest cluster that the method tells from noise: the largest of its own thresholds."""
    known: dict[str, float] = {
        LAST: refine.SEEN_ABOVE,
        "rounds": lloyd.MOVES_ABOVE,
        "recovery": candidates.RECOVERS_ABOVE,
        "moments": mixtures.LEAST_SIZE,
    }
    least = [
        times * rehearsal.noise_of_sizes(step) for step, times in known.items() if step in rehearsal.steps
    ]
    if "cuts" in rehearsal.steps:
        least.append(coreset.LEAST_OF_NOISE * rehearsal.noise_std("cuts"))
    if "boxes" in rehearsal.steps:
        least.append(candidates.SPLIT_ABOVE * rehearsal.noise_std("boxes"))
    if isinstance(rehearsal.method, DPM):
        least += [
            dpm.smallest_leaf(rehearsal.curator(), rehearsal.n, rehearsal.method.max_depth),
            *_cut_off(rehearsal),
        ]
    return max(least, default=None)


def _smallest_leaf(rehearsal: Rehearsal, method: DPM) -> float:
    return dpm.smallest_leaf(rehearsal.curator(), rehearsal.n, method.max_depth)


def _cut_off(rehearsal: Rehearsal) -> list[float]:
    """Rows that equal clusters need, for a tree of even splits to see the sides of each of its splits."""
    n_levels = max(1, math.ceil(math.log2(rehearsal.k)))
    stds = [rehearsal.noise_std(f"sizes {level}") for level in _levels(rehearsal)[:n_levels]]
    return [dpm.LEAF_ABOVE * std * 2.0**level / rehearsal.k for level, std in enumerate(stds, start=1)]


def _levels(rehearsal: Rehearsal) -> list[int]:
    return [i for i in range(1, dpm.MOST_LEVELS + dpm.EXTRA_LEVELS + 1) if f"sizes {i}" in rehearsal.steps]


def _n_parts(rehearsal: Rehearsal) -> float:
    """Cells that a cluster is in, before they are merged."""
    if "cell splits" in rehearsal.steps:  # a good split of a cluster is found if it can be told from others
        found = rehearsal.size * float(rehearsal.plan["cell splits"].cost)
        return 1 + _MOST_SPLIT * found / (found + _HARD_TO_FIND * rehearsal.d**2)
    if not isinstance(rehearsal.method, DPM):
        return 1.0
    least, n_leaves = _smallest_leaf(rehearsal, rehearsal.method), 1.0
    for level in _levels(rehearsal):
        seen = max(least, dpm.LEAF_ABOVE * rehearsal.noise_std(f"sizes {level}"))
        if rehearsal.n / 2.0**level < seen:
            break
        n_leaves = 2.0**level
    return max(1.0, _OF_EVEN_TREE * n_leaves / rehearsal.k)


def _refined(rehearsal: Rehearsal) -> float:
    """Error after the refinement, in quadratic mean over the noise in the histogram of distances."""
    n_parts = _n_parts(rehearsal)
    within = _LEFT_BY_SPLIT ** (math.log2(n_parts) / rehearsal.d)  # variance that is left within a part
    noise = rehearsal.noise_of_sums(LAST) / rehearsal.size
    squares = []
    for reach in _reaches(rehearsal, math.sqrt(within)):
        offset = _merged(rehearsal, n_parts, within, reach.holding(refine.WITHIN_RADIUS))
        # As in `refine`: rows are further from merged centres than from those of parts.
        reach = reach.widened(1 / math.sqrt(within))
        radius = refine.last_radius(reach, noise * math.sqrt(rehearsal.d))
        squares.append(_after_round(rehearsal, LAST, offset, radius) ** 2)
    return math.sqrt(float(np.mean(squares)))


def _merged(rehearsal: Rehearsal, n_parts: float, within: float, radius: float) -> float:
    """Mean squared error of a coordinate of merged centres, from the noise in their parts."""
    of_part = (rehearsal.noise_of_sums(LAST) * radius * n_parts / rehearsal.size) ** 2
    offset, passed = of_part, _passed_on(radius / math.sqrt(within) / rehearsal.spread, rehearsal.d)
    for _ in range(1 if "cell splits" in rehearsal.steps else 2):  # rounds since the parts were there
        offset = _left(offset, of_part, passed, _draws_of(rehearsal, LAST))
    # Parts are weighed by noisy sizes, which moves their mean by their distances from it.
    of_size = rehearsal.noise_of_sizes(LAST) / rehearsal.size * rehearsal.spread
    return offset / n_parts + of_size**2 * (1 - within) * n_parts


def _reaches(rehearsal: Rehearsal, scale: float) -> list[Reach]:
    """Noisy histograms of distances that may be released, for normal parts of `scale` times the spread."""
    edges = distance_edges(rehearsal.domain, refine.BINS_PER_OCTAVE, refine.N_OCTAVES)
    below = rehearsal.n * chi.cdf(edges / (rehearsal.spread * scale), rehearsal.d)
    counts = np.append(np.diff(below, prepend=0.0), 0.0)
    std = rehearsal.noise_std(f"distances {refine.MEASURED[-1]}")
    noise = np.random.default_rng(_PUBLIC_SEED).normal(scale=std, size=(_N_DRAWS, len(counts)))
    return [Reach.read(np.rint(counts + row).astype(np.int64), edges, std) for row in noise]


def _after_moments(rehearsal: Rehearsal, error: float) -> float:
    """Error after rounds of moments from centres with a given error."""
    radius = rehearsal.spread * chi.ppf(mixtures.WITHIN_FIRST_RADIUS, rehearsal.d)
    for _ in range(rehearsal.plan["moments"].step.repeats):
        error = _after_round(rehearsal, "moments", error**2, radius)
        radius = mixtures.RADIUS * rehearsal.spread * math.sqrt(rehearsal.d)
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
    """Share of a small offset that the mean of displacements shows, clipped at so many spreads.

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
