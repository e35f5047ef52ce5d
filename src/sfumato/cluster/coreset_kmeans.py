"""k-means on a private coreset: the noisy means of the leaves of a tree of hyperplanes."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.budget import Plan, Step
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.habits import CentreHabits
from sfumato.cluster.shared.number import Number, merge_for, n_starts, number_up_to
from sfumato.cluster.shared.parameters import MOST_CLUSTERS, Auto, parameter
from sfumato.cluster.shared.refine import REFINE_SHARE, refine, refinement_steps, refinement_traits
from sfumato.cluster.shared.traits import Traits, Visible
from sfumato.curator import Questions, sums_sensitivity
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.constraints import auto_or, flag, whole
from sfumato.domain.partitions import Tree
from sfumato.projection import orthonormal
from sfumato.public.kmeans import weighted_kmeans
from sfumato.public.means import project_to_simplex
from sfumato.public.models import CentreModel
from sfumato.public.reach import MOST_ROWS, Reach, distance_edges

MOST_CUTS = 40  # a limit
SKETCH_SEED = 20210

# Tuned: docs/notes/constants.md#coreset
# Of what refinement leaves; the rest buys the final sums:
MIDDLE_SHARE = Fraction(1, 100)
SKETCH_SHARE = Fraction(9, 100)
CUTS_SHARE = Fraction(1, 5)
MEANS_SHARE = Fraction(3, 20)
DISTANCES_SHARE = Fraction(1, 50)
SKETCH_ROUNDS = 2
SKETCH_DIRECTIONS = 6  # 2^6 cells, whose noise is averaged out again over the halves of a direction
EXTRA_CUTS = 3  # about 2^3 leaves per cluster
CUT_BINS = 64  # of a leaf along its direction; a power of two
LEFT_OVER = 0.4  # variance along a direction after a cut at the mean: 1 - 2/pi for a normal law
WINDOW = 0.35  # a cut is at most this many standard deviations from the mean
LEAST_OF_CLUSTER = 0.25  # smaller leaves, in mean cluster sizes, are not cut
LEAST_OF_NOISE = 4  # nor are leaves below this many standard deviations of a count
LEAF_BINS_PER_OCTAVE, LEAF_OCTAVES = 4, 10
CORESET_STARTS = 30


@dataclass(frozen=True, eq=False)
class _Leaves:
    """A released tree and the public facts about its leaves."""

    tree: Tree  # its projection has orthonormal rows
    sizes: FloatArray  # (n_leaves,); estimated number of rows
    low: FloatArray  # (n_leaves, p); the slab that contains a leaf, along each direction
    high: FloatArray  # (n_leaves, p); the slab that contains a leaf, along each direction

    def cut(self, active: IntArray, column: int, thresholds: FloatArray, sizes: FloatArray) -> _Leaves:
        """Cut some leaves in two along one direction. `sizes` are the sizes of the halves."""
        tree = self.tree.split(active, np.full(len(active), column), thresholds)
        low = np.concatenate([self.low, self.low[active]])
        high = np.concatenate([self.high, self.high[active]])
        right = np.arange(len(self.low), len(low))
        # A direction may be used again, and the cut may lie outside an empty leaf.
        high[active, column] = np.clip(thresholds, low[active, column], high[active, column])
        low[right, column] = np.clip(thresholds, low[right, column], high[right, column])
        left = self.sizes.copy()
        left[active] = sizes[:, 0]
        return _Leaves(tree, np.concatenate([left, sizes[:, 1]]), low, high)

    def nearest(self, points: FloatArray, domain: Domain) -> FloatArray:
        """Move one point per leaf into the leaf's slabs and the domain, and so closer to the leaf's rows.

        Both sets are convex and contain the leaf's rows, and projecting a point onto a convex set moves it
        closer to every member of the set.
        """
        directions = self.tree.projection
        assert directions is not None
        along = points @ directions.T
        return domain.clip(points + (np.clip(along, self.low, self.high) - along) @ directions)


def _all_halves(directions: FloatArray, through: FloatArray) -> Tree:
    """Cells of all hyperplanes through one point. Bit j of a cell's number is its side of the j-th one."""
    tree = Tree.root(directions)
    for j, threshold in enumerate(directions @ through):
        n = tree.n_cells
        tree = tree.split(np.arange(n), np.full(n, j), np.full(n, threshold))
    return tree


def _principal_directions(curator: Questions, n: int) -> tuple[FloatArray, FloatArray]:
    """Up to `n` orthonormal directions, widest first, and the relative variance along each.

    The means of the two sides of a hyperplane differ by the covariance matrix times its normal, up to a
    factor (exactly so for normal laws). Sums over all cells thus give one step of power iteration.
    """
    domain, radius = curator.domain, curator.domain.reach
    middle = curator.sums("middle", Tree.root(), domain.middle[None], np.array([radius]))
    shift = middle.sums / max(middle.sizes[0], middle.size_std, 1.0)
    mean = domain.clip(domain.middle + shift)
    found = orthonormal(min(SKETCH_DIRECTIONS, domain.n_features), domain.n_features, SKETCH_SEED)
    strengths = np.ones(len(found))
    for _ in range(SKETCH_ROUNDS):
        cells = _all_halves(found, mean[0])
        noisy = curator.sums(
            "sketch", cells, np.repeat(mean, cells.n_cells, axis=0), np.full(cells.n_cells, radius)
        )
        sides = 2.0 * (np.arange(cells.n_cells)[:, None] >> np.arange(len(found)) & 1) - 1
        _, strengths, found = np.linalg.svd(sides.T @ (noisy.sums / radius), full_matrices=False)
    variances = (strengths / max(float(strengths[0]), 1e-300)) ** 2
    spare = orthonormal(min(n, domain.n_features), domain.n_features, SKETCH_SEED)
    all_rows = np.linalg.qr(np.concatenate([found, spare]).T)[0].T[: max(len(found), len(spare))]
    rest = np.full(len(all_rows) - len(found), variances[-1] / 2)
    return np.ascontiguousarray(all_rows), np.concatenate([variances, rest])


def _schedule(variances: FloatArray, depth: int) -> list[int]:
    """Direction of each level: the one along which most variance is expected to remain."""
    left, order = variances.copy(), []
    for _ in range(depth):
        order.append(int(np.argmax(left)))
        left[order[-1]] *= LEFT_OVER
    return order


def _sliced(tree: Tree, leaves: IntArray, column: int, edges: FloatArray) -> tuple[Tree, IntArray]:
    """Cut leaves into bins along one direction; return the finer tree and the cells of each leaf in order.

    Each leaf becomes a complete binary tree in heap order, so len(edges) + 1 must be a power of two.
    """
    n_inner, first, n_leaves = len(edges), len(tree.columns), tree.n_cells
    heap = np.arange(n_inner)
    level = np.array([int(node + 1).bit_length() - 1 for node in heap])
    middle = ((2 * (heap + 1 - 2**level) + 1) * (n_inner + 1)) // 2 ** (level + 1)
    heap_children = np.stack([2 * heap + 1, 2 * heap + 2], axis=1)
    roots = first + n_inner * np.arange(len(leaves))
    new_cells = n_leaves + n_inner * np.arange(len(leaves))[:, None] + heap
    cells = np.concatenate([leaves[:, None], new_cells], axis=1)  # (n_sliced, n_bins)
    inner = roots[:, None, None] + heap_children
    outer = -1 - cells[:, np.maximum(heap_children - n_inner, 0)]
    below = np.where(heap_children < n_inner, inner, outer).reshape(-1, 2)
    successor = -1 - np.arange(n_leaves)
    successor[leaves] = roots
    above = np.where(tree.children < 0, successor[-1 - np.minimum(tree.children, -1)], tree.children)
    columns = np.concatenate([tree.columns, np.full(n_inner * len(leaves), column)])
    thresholds = np.concatenate([tree.thresholds, np.tile(edges[middle - 1], len(leaves))])
    return Tree(columns, thresholds, np.concatenate([above, below]), tree.projection), cells


def _best_cut(noisy_bins: FloatArray, size: float) -> tuple[int, float, float]:
    """Where to cut a leaf, at the emptiest edge near the mean, and the rows on both sides."""
    bins = project_to_simplex(noisy_bins, max(size, 1.0))
    below = np.cumsum(bins)
    positions = np.arange(len(bins)) + 0.5
    mean = float(bins @ positions / below[-1])
    deviation = math.sqrt(max(float(bins @ (positions - mean) ** 2 / below[-1]), 0.0))
    edges = np.arange(1, len(bins))
    near = np.flatnonzero(np.abs(edges - mean) <= max(WINDOW * deviation, 0.5))
    if not len(near):  # the mean is in the first or the last bin
        near = np.array([np.argmin(np.abs(edges - mean))])
    beside = noisy_bins[:-1] + noisy_bins[1:]
    edge = int(near[np.argmin(beside[near])])
    return edge, float(below[edge]), float(below[-1] - below[edge])


def _grow(curator: Questions, n_clusters: int, depth: int) -> _Leaves:
    """Grow a tree whose cuts follow noisy histograms of the leaves, one direction per level."""
    domain = curator.domain
    directions, variances = _principal_directions(curator, depth)
    middle = directions @ domain.midpoint
    reach = (
        np.abs(directions) @ domain.half_width
        if domain.radius is None
        else np.full(len(middle), domain.radius)
    )
    leaves = _Leaves(
        Tree.root(directions), np.array([np.inf]), (middle - reach)[None], (middle + reach)[None]
    )
    least = 0.0
    for column in _schedule(variances, depth):
        active = np.flatnonzero(leaves.sizes >= least)
        edges = middle[column] + reach[column] * np.linspace(-1, 1, CUT_BINS + 1)[1:-1]
        finer, cells = _sliced(leaves.tree, active, column, edges)
        noisy = curator.cells("cuts", finer)
        noisy_bins = noisy.values[cells].astype(np.float64)
        if not least:  # the first level: one leaf, all rows
            rows = max(float(noisy_bins.sum()), 1.0)
            least = max(LEAST_OF_CLUSTER * rows / n_clusters, LEAST_OF_NOISE * noisy.std)
            leaves = replace(leaves, sizes=np.array([rows]))
        cuts = [_best_cut(b, s) for b, s in zip(noisy_bins, leaves.sizes[active], strict=True)]
        chosen = np.array([cut[0] for cut in cuts], dtype=np.int64)
        halves = np.array([cut[1:] for cut in cuts]).reshape(-1, 2)
        leaves = leaves.cut(active, column, edges[chosen], halves)
    return leaves


def _coreset(curator: Questions, leaves: _Leaves) -> tuple[FloatArray, FloatArray]:
    """Noisy means and sizes of the leaves: first rough ones, then within the radius of a leaf around them."""
    domain, tree = curator.domain, leaves.tree
    n, radius = tree.n_cells, domain.reach
    points = leaves.nearest(np.repeat(domain.middle[None], n, axis=0), domain)
    sizes = np.zeros(n)
    for step in ("means", "sums"):
        if step == "sums":
            edges = distance_edges(domain, LEAF_BINS_PER_OCTAVE, LEAF_OCTAVES)
            reach = Reach.read(curator.distances("distances", tree, points, edges).values, edges)
            radius = reach.holding(MOST_ROWS)
        noisy = curator.sums(step, tree, points, np.full(n, radius))
        sizes = np.maximum(noisy.sizes, 0.0)
        moves = noisy.sums / np.maximum(noisy.sizes, max(2 * noisy.size_std, 1.0))[:, None]
        points = leaves.nearest(points + moves, domain)
    return points, sizes


def _centres(
    domain: Domain, points: FloatArray, sizes: FloatArray, n_clusters: int
) -> tuple[FloatArray, FloatArray]:
    """Weighted k-means on the coreset. If it has too few points, public ones of no weight are added."""
    missing = n_clusters - len(points)
    if missing >= 0:
        rng = np.random.default_rng(SKETCH_SEED)
        anywhere = domain.midpoint + rng.uniform(-1, 1, (missing, domain.n_features)) * domain.half_width
        return domain.clip(np.concatenate([points, anywhere])), np.concatenate([sizes, np.zeros(missing)])
    unit = domain.reach  # so that squares neither overflow nor vanish
    scaled, weights = weighted_kmeans(
        (points - domain.middle) / unit, sizes, n_clusters, n_init=CORESET_STARTS
    )
    return domain.clip(domain.middle + scaled * unit), weights


class CoresetKMeans(CentreHabits, PrivateClusterer):
    """k-means on the noisy means of the leaves of a tree of hyperplanes.

    The hyperplanes are orthogonal to the directions along which the rows vary most. These directions come
    from noisy sums over the cells of random hyperplanes. Each level cuts every large leaf where a noisy
    histogram along the level's direction is emptiest near its mean. Weighted k-means then runs on the noisy
    means and sizes of the leaves. Made for many columns and many clusters.

    Parameters
    ----------
    n_clusters : int
    max_depth : "auto" or int
        Number of levels of the tree, at most 40. "auto" gives about eight leaves per cluster.
    refine : bool
        Spend half of the budget on moving the centres to the means of the rows around them.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Estimated number of rows per cluster.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of centres and sizes; None without `refine`.
    n_clusters_ : int

    Privacy
    -------
    Unit: one row added or removed. Steps "middle" and "sketch": noisy sums of all rows and over the cells of
    hyperplanes, for the directions. Step "cuts", once per level: noisy counts of disjoint bins of leaves.
    Steps "means", "distances" and "sums": noisy means of the leaves, a noisy histogram of distances from
    them, and noisy means within the radius read from it. With `refine`, the steps of the refinement. All
    compose to the budget, and every step is asked whatever the others return. Public inputs: all parameters.
    Not private: ``labels_`` and ``predict``. Proof: docs/proofs/kmeans.md.

    References
    ----------
    - A. Chang, B. Ghazi, R. Kumar, P. Manurangsi. Locally private k-means in one round. ICML 2021.
    - A. Chang, P. Kamath. Practical differentially private clustering. Google AI blog, 2021.

    Examples
    --------
    >>> from sfumato.cluster.coreset_kmeans import CoresetKMeans
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(5000, n_clusters=4, n_features=5, random_state=0)
    >>> model = CoresetKMeans(n_clusters=4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 5)
    """

    n_clusters: Number = parameter(number_up_to(MOST_CLUSTERS), default=8)
    _: KW_ONLY
    max_depth: int | Auto = parameter(auto_or(whole(MOST_CUTS)), default="auto")
    refine: bool = parameter(flag, default=True)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        n_leaves = 2 ** ((n_clusters - 1).bit_length() + EXTRA_CUTS)
        cuts = Visible("cuts", LEAST_OF_NOISE, in_sums=False)
        found = Traits((cuts,), n_integers=n_leaves * CUT_BINS)
        return found.then(refinement_traits(domain, n_clusters)) if self.refine else found

    def _plan(self, domain: Domain) -> Plan:
        own = 1 - REFINE_SHARE if self.refine else Fraction(1)
        bought = MIDDLE_SHARE + SKETCH_SHARE + CUTS_SHARE + MEANS_SHARE + DISTANCES_SHARE
        sums = sums_sensitivity(domain)
        steps = (
            Step("middle", own * MIDDLE_SHARE, sensitivity=sums),
            Step("sketch", own * SKETCH_SHARE, repeats=SKETCH_ROUNDS, sensitivity=sums),
            Step("cuts", own * CUTS_SHARE, repeats=self._depth()),
            Step("means", own * MEANS_SHARE, sensitivity=sums),
            Step("distances", own * DISTANCES_SHARE),
            Step("sums", own * (1 - bought), sensitivity=sums),
        )
        return Plan(*steps, *(refinement_steps(domain, REFINE_SHARE) if self.refine else ()))

    def _cluster(self, curator: Questions) -> CentreModel:
        leaves = _grow(curator, self._n_starts, self._depth())
        points, noisy_sizes = _coreset(curator, leaves)
        centers, sizes = _centres(curator.domain, points, noisy_sizes, self._n_starts)
        if not self.refine:
            return CentreModel(centers, sizes)
        return refine(curator, centers, merge=merge_for(self.n_clusters))

    @property
    def _n_starts(self) -> int:
        return n_starts(self.n_clusters, refine=self.refine)

    def _depth(self) -> int:
        if self.max_depth == "auto":
            return int(self._n_starts - 1).bit_length() + EXTRA_CUTS
        return int(self.max_depth)
