"""Refinement: from crude released centres to accurate ones. Shared by all centre methods.

Once centres are public, rows are assigned to the nearest one, and only their displacements from it are
averaged. These are clipped to the radius of a cluster instead of the domain's. Several rounds move more cells
than there are clusters. The cells are then merged, which is free, and a last round moves the merged centres.
A cell that covers two clusters is split on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.budget import Step
from sfumato.cluster.shared.traits import Refinement, Traits, Visible
from sfumato.curator import Noisy, NoisySums, Questions, SplitRule, sums_sensitivity
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.partitions import Partition, Voronoi
from sfumato.public.cells import CellSynopsis
from sfumato.public.kmeans import WeightedCells, merged_into
from sfumato.public.means import mean_stds, shrunk_means, shrunk_stds
from sfumato.public.models import CentreModel
from sfumato.public.reach import Reach, distance_edges, excess
from sfumato.public.squares import mean_square_of

# Tuned: docs/notes/constants.md#refine
REFINE_SHARE = Fraction(1, 2)  # of the budget, unless the method says otherwise
N_ROUNDS = 4  # three for the cells, one for the merged centres
MEASURED = (1, 3)  # rounds before which distances are measured; the others take the distances before them
HISTOGRAM_SHARE = Fraction(1, 20)  # of a step that moves centres: for the histograms of distances
SPLIT_SHARE = Fraction(1, 10)  # of the refinement
WITHIN_RADIUS = 0.7  # share of the rows that are not clipped
LAST_SHARES = (0.7, 0.8, 0.9, 0.95, 0.98, 1.0)  # the same for the last round, which takes the best of them
UNDONE = 0.5  # of the last move: further rounds may still move a centre that far
ONE_SIDED = 0.3  # of the distance that clipping takes away; the rest cancels
# Of the errors that are stated: docs/notes/kmeans.md#intervals
OUTWARD = 0.75  # of what clipping takes away: along the line from the middle of all rows to a centre
NEARLY_ALL = 0.9  # clipped rows among all rows, from which on distances are not known
BINS_PER_OCTAVE, N_OCTAVES = 3, 16
MOST = 0.6  # a cell with a larger share of clipped rows is far; on average 0.3 are clipped
SEEN_ABOVE = 2  # a size is told from zero if it is this many times the noise in it
WIDTH_BONUS = 0.1
# t, q and alpha as in DPM: Liebenow et al. 2024, section 5.2 and the setup of the experiments.
SPLIT_RULE = SplitRule.of(n_bins=64, t=0.3, q=1 / 12, alpha=5, interval=None, width_bonus=WIDTH_BONUS)


Merge = Callable[[CellSynopsis], FloatArray]


def refinement_steps(domain: Domain, share: Fraction, *, split: bool = True) -> tuple[Step, ...]:
    """Steps that `refine` asks, for `share` of the whole budget."""
    histograms, splits = HISTOGRAM_SHARE * share, SPLIT_SHARE * share if split else Fraction(0)
    moves = share - histograms - splits
    steps = [Step(f"distances {i}", histograms / len(MEASURED)) for i in MEASURED]
    for i in range(1, N_ROUNDS + 1):
        steps.append(Step(f"displacements {i}", moves / N_ROUNDS, sensitivity=sums_sensitivity(domain)))
    if split:
        steps.append(Step("cell splits", splits / 2, sensitivity=SPLIT_RULE.sensitivity, selection=True))
        steps.append(Step("cell sizes", splits / 2))
    return tuple(steps)


def refinement_traits(domain: Domain, n_clusters: int, *, split: bool = True) -> Traits:
    """What a forecast needs to know about `refine`."""
    last = f"displacements {N_ROUNDS}"
    return Traits(
        visible=(Visible(last, SEEN_ABOVE),),
        size_step=last,
        n_integers=n_clusters * domain.n_features * SPLIT_RULE.n_bins if split else 0,
        refinement=Refinement(
            last,
            distances=f"distances {MEASURED[-1]}",
            splits="cell splits" if split else None,
            n_part_rounds=N_ROUNDS - 1 - split,  # cells are split after the first
            within=WITHIN_RADIUS,
            edges=_edges,
            last_radius=last_radius,
        ),
    )


def refine(
    curator: Questions,
    centers: FloatArray,
    *,
    merge: Merge | None = None,
    split: bool = True,
    groups: Partition | None = None,
) -> CentreModel:
    """Move released centres to the means of the rows around them, and merge centres of one cluster.

    Parameters
    ----------
    curator : Questions
        Its plan must have the steps of `refinement_steps` with the same `split`.
    centers : float array of shape (m, d)
    merge : function, optional
        Takes refined cells and returns fewer centres. By default, weighted k-means with as many centres as
        were given.
    split : bool
        Split every cell in two after the first round. For starts with one centre per cluster, which may
        cover two.
    groups : Partition, optional
        The groups whose noisy means are `centers`. They keep rows together in the first round, when the noise
        in the centres may be too large to tell which one is nearest.
    """
    n_given = len(centers)
    merge = merge or (lambda cells: merged_into(cells.centers, np.maximum(cells.sizes, 0.0), n_given)[0])
    around: Partition = groups or Voronoi(centers)
    edges = _edges(curator.domain)
    radii = np.empty(0)
    for i in range(1, N_ROUNDS):
        if i in MEASURED:
            distances = curator.distances(f"distances {i}", around, centers, edges)
            reach = Reach.read(distances.values, edges)
            radii = np.full(len(centers), reach.holding(WITHIN_RADIUS))
        noisy, before = curator.sums(f"displacements {i}", around, centers, radii), centers
        cells = _moved(curator.domain, centers, noisy, reach)
        centers = cells.centers
        if i == 1:
            radii = np.where(_far(noisy), _far_radius(noisy, reach), radii)
            if split:
                centers, radii = _split(curator, cells, radii)
        around = Voronoi(centers)
    synopsis = _synopsis(before, cells, noisy, distances, edges)
    merged = curator.domain.settled(merge(synopsis))
    noise = float(noisy.sum_std[0] / radii[0]) * len(merged) / max(float(cells.sizes.sum()), 1.0)
    reach = Reach.read(distances.values, edges, distances.std)
    last = f"displacements {N_ROUNDS}"
    model = last_round(curator, last, merged, reach.widened(_widening(cells, merged)), noise)
    return replace(model, cells=synopsis)


def _synopsis(
    before: FloatArray, cells: WeightedCells, noisy: NoisySums, distances: Noisy, edges: FloatArray
) -> CellSynopsis:
    """The cells with their noise. `before` are the centres from which distances were measured."""
    moves = cells.centers - before
    square, error = mean_square_of(distances.values, edges, distances.std)
    moved = float(cells.sizes @ (moves**2).sum(axis=1)) / max(float(cells.sizes.sum()), 1.0)
    return CellSynopsis(
        cells.centers,
        noisy.sizes,
        center_stds=shrunk_stds(moves, noisy.sums, divisors(noisy), noisy.sum_std),
        size_std=noisy.size_std,
        mean_square=max(square - moved, square / 10),
        mean_square_std=error,
    )


def _edges(domain: Domain) -> FloatArray:
    return distance_edges(domain, BINS_PER_OCTAVE, N_OCTAVES)


def last_round(
    curator: Questions,
    step: str,
    centers: FloatArray,
    reach: Reach,
    noise: float,
    scales: FloatArray | None = None,
) -> CentreModel:
    """Move centres to the means of their groups for the last time, and estimate their errors.

    Parameters
    ----------
    curator : Questions
    step : str
        Of sums, in the curator's plan.
    centers : float array of shape (k, d)
    reach : Reach
        Distances of rows from the centres.
    noise : float
        As for `last_radius`, but per coordinate.
    scales : float array of shape (k,), optional
        Units of the distances in `reach`, for each centre.
    """
    scales = np.ones(len(centers)) if scales is None else scales
    root = np.sqrt(curator.domain.n_features)
    radius = last_radius(reach, noise * root)
    noisy = curator.sums(step, Voronoi(centers), centers, radius * scales)
    cells = _moved(curator.domain, centers, noisy, reach)
    of_noise = _of_noise(noisy)
    beyond = np.maximum(reach.beyond(radius) * scales, _beyond(noisy, radius * scales, curator.domain.reach))
    # Where columns are skewed, a row that is far is so in one of them: a dth of the distance is one-sided.
    of_clipping = beyond[:, None] * np.sqrt(_outward(cells, of_noise)) / root
    if _nearly_all_clipped(noisy):
        of_clipping = np.full_like(of_noise, curator.domain.reach / 2 / root)
    moving = UNDONE * np.linalg.norm(cells.centers - centers, axis=1)
    # Rows change sides at a border when the centre beyond it moves, too.
    of_moving = np.sqrt((moving**2 + np.average(moving**2, weights=np.maximum(cells.sizes, 1.0))) / 2) / root
    spread = np.sqrt(reach.mean_square) * scales
    # Where noise hides how far rows are, a whole group may have been on the other side of a border.
    changed = np.divide(moving, spread, out=np.ones(len(moving)), where=spread > 0)
    return CentreModel(
        cells.centers,
        cells.sizes,
        center_stds=np.sqrt(of_noise**2 + of_clipping**2 + of_moving[:, None] ** 2),
        size_stds=np.hypot(noisy.size_std, cells.sizes * changed),
    )


def _of_noise(noisy: NoisySums) -> FloatArray:
    """Standard deviations of the noise in shrunk means.

    Shrinking takes away noise and a part of the true move. Half of the variance it takes counts as left.
    """
    sizes = divisors(noisy)
    before = mean_stds(noisy.sums, sizes, noisy.sum_std, noisy.size_std)
    after = shrunk_stds(_moves(noisy), noisy.sums, sizes, noisy.sum_std)
    return np.sqrt((before**2 + after[:, None] ** 2) / 2)


def _nearly_all_clipped(noisy: NoisySums) -> bool:
    """Whether nearly all rows may lie beyond the radii. Then nothing is known of their distances."""
    of_all = noisy.size_std * math.sqrt(len(noisy.sizes))
    rows = max(float(np.maximum(noisy.sizes, 0.0).sum()), SEEN_ABOVE * of_all, 1.0)
    return max(float(noisy.clipped.sum()), 0.0) + SEEN_ABOVE * of_all >= NEARLY_ALL * rows


def _beyond(noisy: NoisySums, radii: FloatArray, most: float) -> FloatArray:
    """Mean distance by which the rows of each group exceed its radius, as far as clipped rows tell.

    Half of its noise is added to the number of clipped rows. `most` is the reach of the domain.
    """
    shares = (np.maximum(noisy.clipped, 0.0) + noisy.size_std / 2) / np.maximum(noisy.sizes, 1.0)
    return np.minimum(radii * excess(shares), most)


def _outward(cells: WeightedCells, of_noise: FloatArray) -> FloatArray:
    """Shares of the columns in what clipping takes from each mean. They sum to one.

    Towards the middle of all rows a group ends at its neighbours. On the other side its rows may go far.
    """
    middle = np.average(cells.centers, axis=0, weights=np.maximum(cells.sizes, 1.0))
    gaps = (cells.centers - middle) ** 2 + of_noise**2 + 1e-300
    even = 1 / gaps.shape[1]
    return np.asarray(OUTWARD * gaps / gaps.sum(axis=1, keepdims=True) + (1 - OUTWARD) * even)


def last_radius(reach: Reach, noise: float) -> float:
    """Radius with the least error of a mean: a larger one has more noise, a smaller one clips more.

    Parameters
    ----------
    reach : Reach
    noise : float
        Noise in the mean of a group of typical size, per unit of the radius.
    """
    candidates = [reach.holding(share) for share in LAST_SHARES]
    return min(candidates, key=lambda r: (noise * r) ** 2 + (ONE_SIDED * reach.beyond(r)) ** 2)


def _moved(domain: Domain, centers: FloatArray, noisy: NoisySums, reach: Reach) -> WeightedCells:
    """Centres moved to the noisy means of their groups."""
    return WeightedCells(
        domain.placed(domain.clip(centers + _moves(noisy))), np.maximum(noisy.sizes, 0.0), reach.mean_square
    )


def _far(noisy: NoisySums) -> NDArray[np.bool_]:
    """Cells with most rows beyond the radius: their centre covers two clusters or is misplaced."""
    far: NDArray[np.bool_] = noisy.clipped > MOST * noisy.sizes + SEEN_ABOVE * noisy.size_std
    return far


def _far_radius(noisy: NoisySums, reach: Reach) -> float:
    """Radius that contains half the rows of the far cells, if theirs are the largest distances."""
    sizes = np.maximum(noisy.sizes, 0.0)
    share = float(sizes[_far(noisy)].sum() / max(float(sizes.sum()), 1.0))
    return reach.holding(1 - share / 2)


def _widening(cells: WeightedCells, merged: FloatArray) -> float:
    """How much further rows are from merged centres than from the centres of cells, in quadratic mean."""
    squares = ((cells.centers - merged[Voronoi(merged).index(cells.centers)]) ** 2).sum(axis=1)
    between = float(cells.sizes @ squares) / max(float(cells.sizes.sum()), 1.0)
    return float(np.sqrt(1 + between / cells.mean_square)) if cells.mean_square > 0 else 1.0


def _moves(noisy: NoisySums) -> FloatArray:
    """Mean displacements."""
    return shrunk_means(noisy.sums, divisors(noisy), noisy.sum_std)


def divisors(noisy: NoisySums) -> FloatArray:
    """Sizes to divide by. A size lost in its noise is replaced by the noise, which shortens the move."""
    return np.maximum(noisy.sizes, max(1.0, SEEN_ABOVE * noisy.size_std))


def _split(curator: Questions, cells: WeightedCells, radii: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut each cell at its best split if the noisy sizes of both sides stand out."""
    domain, centers = curator.domain, cells.centers
    reach = np.maximum(2 * radii, np.sqrt(cells.mean_square))[:, None]
    low = np.maximum(centers - reach, np.array(domain.low))
    high = np.minimum(centers + reach, np.array(domain.high))
    high = np.maximum(high, low + 1e-9 * domain.half_width)
    sizes: IntArray = np.rint(cells.sizes).astype(np.int64)
    found = curator.splits("cell splits", "cell sizes", Voronoi(centers), (low, high), SPLIT_RULE, sizes)
    cut = np.flatnonzero((found.sizes > SEEN_ABOVE * found.size_std).all(axis=1))
    half = radii[cut] / np.sqrt(domain.n_features)
    left, right = centers.copy(), centers[cut]
    left[cut, found.columns[cut]] = found.thresholds[cut] - half
    right[np.arange(len(cut)), found.columns[cut]] = found.thresholds[cut] + half
    return domain.clip(np.concatenate([left, right])), np.concatenate([radii, radii[cut]])
