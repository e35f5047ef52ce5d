"""DPM: splits through sparse regions (Liebenow et al. 2024), with its privacy repaired."""

from __future__ import annotations

from dataclasses import KW_ONLY
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from sfumato.budget import Plan, Step
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.habits import CentreHabits
from sfumato.cluster.shared.number import Number, n_starts, number_up_to
from sfumato.cluster.shared.parameters import MOST_CLUSTERS, Auto, parameter
from sfumato.cluster.shared.refine import WIDTH_BONUS, refine, refinement_steps, refinement_traits
from sfumato.cluster.shared.traits import SplitTree, Traits
from sfumato.curator import NoisySplits, Questions, SplitRule, sums_sensitivity
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.constraints import auto_or, flag, none_or, positive, whole
from sfumato.domain.partitions import Subset, Tree
from sfumato.errors import ParameterError
from sfumato.public.cells import CellSynopsis
from sfumato.public.kmeans import WeightedCells, merged_into, separated_clusters
from sfumato.public.models import CentreModel

MOST_LEVELS = 12  # a limit: 4096 leaves
USUAL_DEPTH, MOST_COUNTS = 7, 2**25  # a limit: 256 MB per thread; 2,048 columns at the usual depth
FLAT_LEAF_RADIUS = 1e-200  # a leaf may be flat in all columns

# Tuned: docs/notes/constants.md#dpm
SPLIT_BINS = 128
LARGE = 2.2  # times the least size: the sides of a cut are seldom even
EXTRA_LEVELS = 2  # a tree of uneven splits is deeper than the number of its leaves needs
COUNT_SHARE = Fraction(1, 50)
TREE_SHARE, LEAVES_SHARE = Fraction(2, 9), Fraction(1, 9)  # with refinement; without, leaves take the rest
LEAF_ABOVE = 2.0  # a leaf is worth having if its size is this many times the noise in it
MEANINGFUL = 2.0  # ... and this many times the noise of its sum, in units of the radius of its box


class Leaves(NamedTuple):
    """Leaves of a released tree: their boxes and noisy sizes."""

    tree: Tree
    low: FloatArray
    high: FloatArray
    sizes: FloatArray


class DPM(CentreHabits, PrivateClusterer):
    """Find clusters by splits through sparse regions, without a given number of clusters.

    A tree cuts the domain where rows are few, level by level; each level is one pass over the data. The noisy
    means of the leaves are then refined, leaves that are parts of one cluster are merged, and the merged
    centres are refined once more. Best where clusters are separated along some columns, in any number of
    dimensions.

    Parameters
    ----------
    n_clusters : int or "auto", optional
        Maximum number of clusters. By default, the number of separated groups of rows. If the data has no
        separated groups, that may be as many as the tree has leaves. "auto" keeps only clusters that are
        clearly apart, as for all methods: see docs/how_many.md.
    max_depth : int
        A leaf contains at least one row in 2^max_depth, up to noise, so there are at most about 2^max_depth
        clusters.
    t, q : float
        A split with less than the share `q` of the rows on one side is penalised more. A split at `q` scores
        the share `t` of a split at the median. ``t >= 2 q``.
    alpha : float
        Weight of emptiness relative to closeness to the median.
    interval : "auto" or float
        Width of the interval around a split that should be empty, in the unit of all columns. "auto" tries
        several widths, from a 64th to a quarter of a leaf's box, in the same selection and at no cost.
    refine : bool
        Spend two thirds of the budget on refinement. Without it, the result is the paper's: the noisy means
        of the leaves.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (k, d)
    cluster_sizes_ : ndarray of shape (k,)
        Noisy number of rows per cluster.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of centres and sizes; None without `refine`.
    n_clusters_ : int
        Number of clusters found, from released values only.

    Privacy
    -------
    Unit: one row, added or removed. "rows" is a count. Each "splits" step chooses one split for every leaf by
    the range of its scores. Apart from the rows, the scores depend only on released sizes and public numbers.
    Leaves are disjoint, so all choices of a level cost as much as one. "sizes" counts the two sides of the
    chosen splits, "leaves" and "displacements" release sizes and clipped sums of disjoint groups, and
    "distances" releases a histogram. All steps are always asked, so the spend does not depend on the data.
    Bounds and parameters are public. Splits, merges and moves depend on released values only. Not private:
    `predict` and ``labels_``. The paper's estimate of the interval is not private as printed and is not used.
    Proof: docs/proofs/dpm.md.

    References
    ----------
    J. Liebenow, Y. Schütt, T. Braun, M. Gehrke, F. Thaeter, E. Mohammadi, DPM: Clustering Sensitive Data
    through Separation, CCS 2024.

    Examples
    --------
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(20_000, 5, 3, random_state=0)
    >>> DPM(epsilon=1.0, bounds=(-1, 1), random_state=0).fit(X).n_clusters_
    5
    """

    n_clusters: Number | None = parameter(none_or(number_up_to(MOST_CLUSTERS)), default=None)
    _: KW_ONLY
    max_depth: int = parameter(whole(MOST_LEVELS), default=7)
    t: float = parameter(positive(most=1.0), default=0.3)
    q: float = parameter(positive(0.001, 0.499), default=1 / 12)
    alpha: float = parameter(positive(most=1000.0), default=5.0)
    interval: float | Auto = parameter(auto_or(positive()), default="auto")
    refine: bool = parameter(flag, default=True)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        sizes = tuple(f"sizes {level}" for level in range(1, self._n_levels + 1))
        tree = SplitTree(sizes, LEAF_ABOVE, partial(smallest_leaf, max_depth=self.max_depth))
        found = Traits(n_integers=2**self.max_depth * domain.n_features * SPLIT_BINS, tree=tree)
        return found.then(refinement_traits(domain, n_clusters, split=False)) if self.refine else found

    def _plan(self, domain: Domain) -> Plan:
        if self.t < 2 * self.q:
            raise ParameterError(f"`t` must be at least 2 q, got t={self.t!r} with q={self.q!r}")
        self._check_counts(domain.n_features)
        choice = self._rule().sensitivity
        steps = [Step("rows", COUNT_SHARE)]
        for level, share in enumerate(_level_shares(self._n_levels), start=1):
            steps.append(Step(f"splits {level}", TREE_SHARE * share / 2, sensitivity=choice, selection=True))
            steps.append(Step(f"sizes {level}", TREE_SHARE * share / 2))
        rest = 1 - COUNT_SHARE - TREE_SHARE
        leaves = LEAVES_SHARE if self.refine else rest
        steps.append(Step("leaves", leaves, sensitivity=sums_sensitivity(domain)))
        if self.refine:
            steps += refinement_steps(domain, rest - leaves, split=False)
        return Plan(*steps)

    def _cluster(self, curator: Questions) -> CentreModel:
        leaves = self._grow(curator)
        middles, reaches = curator.domain.balls(leaves.low, leaves.high)
        radii = np.maximum(reaches, FLAT_LEAF_RADIUS)
        noisy = curator.sums("leaves", leaves.tree, middles, radii)
        means = middles + noisy.sums / np.maximum(noisy.sizes, 1.0)[:, None]
        centers = curator.domain.clip(np.clip(means, leaves.low, leaves.high))
        if self.refine:
            return refine(curator, centers, merge=self._merged, split=False, groups=leaves.tree)
        most = n_starts(self.n_clusters, refine=False) if self.n_clusters is not None else None
        return CentreModel(*merged_into(centers, np.maximum(leaves.sizes, 0.0), most))

    def _merged(self, cells: CellSynopsis) -> FloatArray:
        if self.n_clusters == "auto":
            return cells.separated()
        sizes = np.maximum(cells.sizes, 0.0)
        if self.n_clusters is None:
            return separated_clusters(WeightedCells(cells.centers, sizes, cells.mean_square))
        return merged_into(cells.centers, sizes, self.n_clusters)[0]

    def _grow(self, curator: Questions) -> Leaves:
        """Split all leaves level by level, each level in one pass over the rows."""
        domain, rule = curator.domain, self._rule()
        rows = curator.count("rows").values
        leaves = Leaves(Tree.root(), np.array([domain.low]), np.array([domain.high]), rows.astype(np.float64))
        smallest = smallest_leaf(curator, float(rows[0]), self.max_depth)
        for level in range(1, self._n_levels + 1):
            # Smaller leaves cannot be cut into two parts that are large enough, whatever their noise.
            noise = curator.noise_std(f"sizes {level}")
            large = np.flatnonzero(leaves.sizes >= LARGE * smallest - 2 * LEAF_ABOVE * noise)
            groups, boxes = Subset(leaves.tree, large), (leaves.low[large], leaves.high[large])
            sizes = np.rint(leaves.sizes[large]).astype(np.int64)
            found = curator.splits(f"splits {level}", f"sizes {level}", groups, boxes, rule, sizes)
            leaves = _grown(leaves, large, found, max(smallest, LEAF_ABOVE * found.size_std))
        return leaves

    def _check_counts(self, n_features: int) -> None:
        """Raise if the counts of a level would not fit into memory. Deep trees of few columns have fewer."""
        n_leaves = 2 ** min(int(self.max_depth), USUAL_DEPTH)
        if n_leaves * n_features * SPLIT_BINS > MOST_COUNTS:
            raise ParameterError(
                f"{n_leaves} leaves in {n_features} columns need {n_leaves * n_features * SPLIT_BINS:,} "
                f"counts, above the limit of {MOST_COUNTS:,}: use a smaller `max_depth`, a PrivatePCA or a "
                "RandomProjection before it, or LocalSearchKMeans"
            )

    @property
    def _shared_unit(self) -> str | None:
        return None if self.interval == "auto" else "`interval` is a length"

    @property
    def _n_levels(self) -> int:
        return self.max_depth + EXTRA_LEVELS

    def _rule(self) -> SplitRule:
        interval = None if self.interval == "auto" else float(self.interval)
        return SplitRule.of(SPLIT_BINS, self.t, self.q, self.alpha, interval, WIDTH_BONUS)


def smallest_leaf(curator: Questions, rows: float, max_depth: int) -> float:
    """Least size of a leaf: the paper's share of the rows, and enough for an accurate mean in its box."""
    noise = curator.noise_of_sums("leaves") * np.sqrt(curator.domain.n_features)
    return float(max(rows / 2.0**max_depth, MEANINGFUL * noise))


def _grown(leaves: Leaves, asked: IntArray, found: NoisySplits, smallest: float) -> Leaves:
    """Apply those splits whose two sides are both large enough."""
    good = np.flatnonzero(found.sizes.min(axis=1) >= smallest)
    cut, columns, thresholds = asked[good], found.columns[good], found.thresholds[good]
    low, high, sizes = leaves.low[cut], leaves.high.copy(), leaves.sizes.copy()
    low[np.arange(len(cut)), columns] = thresholds
    right_high = leaves.high[cut]
    high[cut, columns] = thresholds
    sizes[cut] = found.sizes[good, 0]
    return Leaves(
        leaves.tree.split(cut, columns, thresholds),
        np.concatenate([leaves.low, low]),
        np.concatenate([high, right_high]),
        np.concatenate([sizes, found.sizes[good, 1]]),
    )


def _level_shares(n_levels: int) -> list[Fraction]:
    """Shares of the levels, proportional to sqrt(2^i) (the paper's equation 2), that sum to exactly 1."""
    weights = [Fraction(round(1000 * 2 ** (level / 2))) for level in range(n_levels)]
    return [weight / sum(weights) for weight in weights]
