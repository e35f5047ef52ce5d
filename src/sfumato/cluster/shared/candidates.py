"""Private candidates for centres, from boxes with large noisy counts.

Shared by the methods that choose centres among candidates. Rows are projected to a few public directions.
There, a box is halved while its noisy count is large (Balcan et al. 2017). The noisy means of the boxes are
the candidates. Recovery maps chosen candidates back to all columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.budget import Plan, Step
from sfumato.cluster.shared.refine import (
    HISTOGRAM_SHARE,
    REFINE_SHARE,
    Merge,
    refinement_steps,
    refinement_traits,
)
from sfumato.cluster.shared.refine import refine as refined
from sfumato.cluster.shared.traits import Traits, Visible
from sfumato.curator import NoisySums, Questions, sums_sensitivity
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.partitions import Tree, Voronoi
from sfumato.projection import orthonormal
from sfumato.public.means import shrunk_means
from sfumato.public.models import CentreModel
from sfumato.public.reach import MOST_ROWS, Reach, distance_edges

MAX_CLUSTERS = 1000  # limits the work of the private selections
DIRECTIONS_SEED = 2017  # public: the directions are the same in every run

# Tuned: docs/notes/constants.md#candidates
EXTRA_DIRECTIONS = 6  # beyond log2(k); fewer mix up clusters, more need more levels
N_LEVELS = 16  # levels of boxes that are counted; the levels above have at most two boxes per cluster
BOX_REACH = 2.5  # a random direction sees a distance r as r / sqrt(d) times a standard normal number
SPLIT_ABOVE, KEEP_ABOVE = 3.0, 2.0  # times the noise in a count
PARTS_PER_CLUSTER = 16  # boxes below this share of a cluster of average size are not cut
LEAVES_PER_CANDIDATE = 8  # most leaves are empty: each cut may leave one behind
MIDDLE_SHARE, REACH_SHARE, MEANS_SHARE = Fraction(1, 20), Fraction(1, 20), Fraction(3, 10)
RADIUS_SHARE, RECOVERY_SHARE = Fraction(2, 100), Fraction(28, 100)  # of what refinement leaves
RADIUS_FACTOR = 1.5  # on the radius that holds most rows: a candidate is not quite where its cluster is
RECOVERS_ABOVE = 4  # a sum is used if the size of its group is this many times the noise in it
BOX_BINS_PER_OCTAVE, BOX_OCTAVES = 4, 15


@dataclass(frozen=True, eq=False)
class Candidates:
    """Released points that may become centres, in the space of the directions. Public."""

    points: FloatArray  # (m, p)
    weights: FloatArray  # (m,); estimated number of rows at each; positive
    projection: FloatArray | None  # (p, d); the directions; None if there are few columns anyway
    middle: FloatArray  # (d,); noisy mean of all rows

    def lifted(self, centers: FloatArray) -> FloatArray:
        """Points of the whole space that project to `centers` and are closest to the middle."""
        if self.projection is None:
            return centers
        lifted: FloatArray = self.middle + (centers - self.projection @ self.middle) @ self.projection
        return lifted


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Leaves of a tree with their boxes, and the estimated number of rows in each."""

    tree: Tree
    low: FloatArray
    high: FloatArray
    rows: FloatArray
    variance: FloatArray

    @property
    def middles(self) -> FloatArray:
        return self.low / 2 + self.high / 2

    def cut(self, leaves: IntArray) -> _Boxes:
        """Halve some leaves across their longest sides. Estimates stay with the leaves before the cut."""
        columns = np.argmax(self.high[leaves] - self.low[leaves], axis=1)
        thresholds = self.middles[leaves, columns]
        low = np.concatenate([self.low, self.low[leaves]])
        high = np.concatenate([self.high, self.high[leaves]])
        low[len(self.low) + np.arange(len(leaves)), columns] = thresholds
        high[leaves, columns] = thresholds
        return _Boxes(self.tree.split(leaves, columns, thresholds), low, high, self.rows, self.variance)

    def counted(self, parents: IntArray, counts: FloatArray, variance: float) -> _Boxes:
        """Combine new counts of all leaves with the estimates of their parents.

        Least squares, for one parent and its parts at a time. A leaf that was not cut is its own only part.
        """
        parts = np.bincount(parents)
        gap = self.rows - np.bincount(parents, counts)
        weight = variance / (self.variance + parts * variance)
        rows = counts + (gap * weight)[parents]
        return _Boxes(self.tree, self.low, self.high, rows, variance * (1 - weight[parents]))


def max_candidates(n_clusters: int) -> int:
    """Maximum number of candidates: public, so that a plan can declare it."""
    return max(512, 2 * n_clusters)


def candidate_steps(domain: Domain, n_clusters: int, share: Fraction) -> tuple[Step, ...]:
    """Steps that `find_candidates` asks, for `share` of the whole budget."""
    boxes = 1 - MIDDLE_SHARE - REACH_SHARE - MEANS_SHARE
    n_directions = _n_directions(n_clusters, domain.n_features)
    return (
        Step("middle", MIDDLE_SHARE * share, sensitivity=sums_sensitivity(domain)),
        Step("reach", REACH_SHARE * share),
        Step("boxes", boxes * share, repeats=N_LEVELS),
        Step("box means", MEANS_SHARE * share, sensitivity=sums_sensitivity(domain, n_directions)),
    )


def find_candidates(curator: Questions, n_clusters: int) -> Candidates:
    """Divide space where rows are dense, and release the means of boxes that stand out from the noise."""
    domain = curator.domain
    middle, reach, noisy_rows = _frame(curator)
    n_directions = _n_directions(n_clusters, domain.n_features)
    if n_directions < domain.n_features:
        projection = orthonormal(n_directions, domain.n_features, DIRECTIONS_SEED)
        half = min(1.0, BOX_REACH / math.sqrt(domain.n_features)) * reach
        low, high = projection @ middle - half, projection @ middle + half
    else:
        projection = None
        low, high = np.maximum(middle - reach, domain.low), np.minimum(middle + reach, domain.high)
        for block in domain.blocks:  # rows are at its corners
            own = slice(block.start, block.stop)
            low[own], high[own] = domain.low[own], domain.high[own]
    boxes = _divide(curator, _first_boxes(low, high, n_clusters, projection), n_clusters, noisy_rows)
    points = _box_means(curator, boxes, projection)
    best = np.argsort(-boxes.rows, kind="stable")[: max_candidates(n_clusters)]
    visible = boxes.rows[best] > KEEP_ABOVE * np.sqrt(boxes.variance[best])
    kept = best[: max(n_clusters, int(visible.sum()))]
    weights = np.maximum(boxes.rows[kept], 1e-6 * max(float(boxes.rows[kept].max()), 1.0))
    return Candidates(points[kept], weights, projection, middle)


def recovery_steps(domain: Domain, share: Fraction) -> tuple[Step, ...]:
    """Steps that `recovered` asks, for `share` of the whole budget."""
    return (
        Step("recovery distances", HISTOGRAM_SHARE * share),
        Step("recovery", (1 - HISTOGRAM_SHARE) * share, sensitivity=sums_sensitivity(domain)),
    )


def choice_plan(domain: Domain, n_clusters: int, share: Fraction, choice: Step, *, refine: bool) -> Plan:
    """Plan of a method that finds candidates, for `share`, chooses among them, recovers means and refines.

    Shares are parts of what refinement leaves.
    """
    own = 1 - REFINE_SHARE if refine else Fraction(1)
    return Plan(
        *candidate_steps(domain, n_clusters, own * share),
        Step("radius", own * RADIUS_SHARE),
        choice.scaled(own),
        *recovery_steps(domain, own * RECOVERY_SHARE),
        *(refinement_steps(domain, REFINE_SHARE) if refine else ()),
    )


def choice_traits(domain: Domain, n_clusters: int, *, refine: bool) -> Traits:
    """What a forecast needs to know about such a method."""
    most = LEAVES_PER_CANDIDATE * max_candidates(n_clusters)
    visible = Visible("boxes", SPLIT_ABOVE, in_sums=False), Visible("recovery", RECOVERS_ABOVE)
    found = Traits(visible, n_integers=most * (2 + domain.n_features))
    return found.then(refinement_traits(domain, n_clusters)) if refine else found


def recovered(
    curator: Questions,
    candidates: Candidates,
    centers: FloatArray,
    *,
    refine: bool,
    merge: Merge | None = None,
) -> CentreModel:
    """Noisy means, in all columns, of the rows nearest to each centre in the space of the directions."""
    domain = curator.domain
    groups = Voronoi(centers, candidates.projection)
    origins = domain.clip(candidates.lifted(centers))
    radius = radius_of_most(curator, "recovery distances", groups, origins)
    noisy = curator.sums("recovery", groups, origins, np.full(len(centers), radius))
    means = domain.clip(origins + _mean_moves(noisy))
    if refine:
        return refined(curator, means, merge=merge, groups=groups)
    return CentreModel(means, np.maximum(noisy.sizes, 0.0))


def radius_of_most(
    curator: Questions, step: str, groups: Voronoi, origins: FloatArray, projection: FloatArray | None = None
) -> float:
    """Radius around the origin of their group that contains most rows, from a noisy histogram."""
    edges = distance_edges(curator.domain, BOX_BINS_PER_OCTAVE, BOX_OCTAVES)
    noisy = curator.distances(step, groups, origins, edges, projection)
    return Reach.read(noisy.values, edges).holding(MOST_ROWS)


def _n_directions(n_clusters: int, n_features: int) -> int:
    return min(n_features, math.ceil(math.log2(n_clusters)) + EXTRA_DIRECTIONS)


def _frame(curator: Questions) -> tuple[FloatArray, float, float]:
    """Noisy mean of all rows, radius around it that contains most rows, and noisy number of rows."""
    domain, origin = curator.domain, curator.domain.middle[None]
    radius = distance_edges(domain, BOX_BINS_PER_OCTAVE, BOX_OCTAVES)[-1:] / 2
    noisy = curator.sums("middle", Voronoi(origin), origin, radius)
    middle = domain.clip(origin + _mean_moves(noisy))
    reach = radius_of_most(curator, "reach", Voronoi(middle), middle)
    return middle[0], reach, float(noisy.sizes[0])


def _first_boxes(low: FloatArray, high: FloatArray, n_clusters: int, projection: FloatArray | None) -> _Boxes:
    """More boxes than clusters, cut by public rules, before anything is known about the rows."""
    nothing = np.zeros(0)
    boxes = _Boxes(Tree.root(projection), low[None], high[None], nothing, nothing)
    while boxes.tree.n_cells <= n_clusters:
        boxes = boxes.cut(np.arange(boxes.tree.n_cells))
    n_cells = boxes.tree.n_cells
    return _Boxes(boxes.tree, boxes.low, boxes.high, np.zeros(n_cells), np.full(n_cells, np.inf))


def _divide(curator: Questions, boxes: _Boxes, n_clusters: int, noisy_rows: float) -> _Boxes:
    """Repeatedly count all boxes and cut the large ones in two, a public number of times."""
    most = LEAVES_PER_CANDIDATE * max_candidates(n_clusters)
    for level in range(N_LEVELS):
        parents = np.arange(boxes.tree.n_cells)
        if level:
            noise = np.sqrt(boxes.variance)
            floor = np.maximum(SPLIT_ABOVE * noise, noisy_rows / (PARTS_PER_CLUSTER * n_clusters))
            large = np.argsort(-boxes.rows, kind="stable")
            large = large[boxes.rows[large] > floor[large]][: most - boxes.tree.n_cells]
            boxes = boxes.cut(large)
            parents = np.concatenate([parents, large])
        noisy = curator.cells("boxes", boxes.tree)
        boxes = boxes.counted(parents, noisy.values.astype(np.float64), max(noisy.std, 1e-9) ** 2)
    return boxes


def _box_means(curator: Questions, boxes: _Boxes, projection: FloatArray | None) -> FloatArray:
    """Noisy mean of the projected rows in each box, clipped to a ball around it."""
    # The rows are projected before they reach the tree.
    tree = Tree(boxes.tree.columns, boxes.tree.thresholds, boxes.tree.children)
    if projection is None:
        middles, reaches = curator.domain.balls(boxes.low, boxes.high)
    else:
        middles, reaches = boxes.middles, np.linalg.norm(boxes.high - boxes.low, axis=1) / 2
    radii = np.maximum(reaches, 2e-9 * reaches.max())
    noisy = curator.sums("box means", tree, middles, radii, projection)
    # All levels together give a far better number of rows than this step alone.
    sizes = np.maximum(boxes.rows, np.sqrt(boxes.variance))
    return middles + shrunk_means(noisy.sums, np.maximum(sizes, 1.0), noisy.sum_std)


def _mean_moves(noisy: NoisySums) -> FloatArray:
    """Mean displacements of groups whose sizes stand out from the noise."""
    visible = noisy.sizes[:, None] > RECOVERS_ABOVE * noisy.size_std
    return np.where(visible, shrunk_means(noisy.sums, np.maximum(noisy.sizes, 1.0), noisy.sum_std), 0.0)
