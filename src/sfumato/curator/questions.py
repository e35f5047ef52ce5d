"""What an estimator may ask, and the sensitivity of each question.

A plan declares the sensitivity of each step with the functions below. The curator compares it with the
sensitivity of the aggregate that it folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sfumato.budget import PricedPlan, Sensitivity
from sfumato.curator.answers import (
    Noisy,
    NoisyActive,
    NoisyCells,
    NoisyLevels,
    NoisyMeans,
    NoisyMoments,
    NoisySplits,
    NoisySums,
    NoisyTerms,
)
from sfumato.domain import LATTICE_RADIUS, Domain, FloatArray, Grid, IntArray
from sfumato.domain.partitions import MomentShape, Partition
from sfumato.domain.sparse import Sparse
from sfumato.errors import PlanError
from sfumato.private.aggregates.active_sums import ActiveSums
from sfumato.private.aggregates.coverage import Coverage
from sfumato.private.aggregates.histograms import Histograms
from sfumato.private.aggregates.moments import GroupedMoments, SoftMoments, WideMoments, is_wide
from sfumato.private.aggregates.nearest import NearestDistance, NearestSums
from sfumato.private.aggregates.profiles import ProfileCounts
from sfumato.private.aggregates.splits import SplitRule
from sfumato.private.aggregates.sums import COUNT_WEIGHT, GroupedSums
from sfumato.private.aggregates.swaps import Swaps
from sfumato.private.levels import levels_sensitivity
from sfumato.private.mechanisms.sparse_histogram import threshold_for
from sfumato.private.terms import counts_sensitivity as term_counts_sensitivity
from sfumato.private.terms import found_sensitivity as terms_sensitivity

# `SplitRule` and `MomentShape` are parts of questions, but defined elsewhere because they set sensitivities.
__all__ = ["MomentShape", "Questions", "SplitRule", "cover_sensitivity", "histograms_sensitivity"]
__all__ += ["moments_sensitivity", "nearest_distance_sensitivity", "nearest_sensitivity", "sums_sensitivity"]
__all__ += ["active_sensitivity", "levels_sensitivity", "profiles_sensitivity", "swap_sensitivity"]
__all__ += ["term_counts_sensitivity", "terms_sensitivity"]


class Questions(Protocol):
    """The questions of an estimator. The curator answers them; a forecast answers what it can.

    The noise of each answer is public and known in advance. A question that a class does not
    define is refused.
    """

    domain: Domain
    plan: PricedPlan

    def noise_std(self, step: str) -> float:
        """Standard deviation of the noise that this step adds to each value."""
        return self.plan.nominal(self.plan[step]).noise_std

    def noise_of_sums(self, step: str) -> float:
        """Standard deviation of the noise per coordinate of `sums`, in units of the clipping radius.

        `moments` adds the same noise, and to second moments as much in units of the squared radius.
        """
        return self.noise_std(step) / LATTICE_RADIUS

    def noise_of_sizes(self, step: str) -> float:
        """Standard deviation of the noise that `sums` adds to the size of each group."""
        return self.noise_std(step) / COUNT_WEIGHT

    def threshold_for(self, step: str, partition: Partition, n_expected: float) -> int:
        """Least integer threshold that at most `n_expected` empty cells reach on average."""
        record = self.plan.nominal(self.plan[step])
        return threshold_for(partition.n_cells, record.mechanism, record.scale, n_expected)

    def count(self, step: str) -> Noisy:
        """Noisy number of rows."""
        raise _unanswered(self, step)

    def cells(self, step: str, partition: Partition) -> Noisy:
        """Noisy number of rows in each cell of a public partition; a grid's in C order."""
        raise _unanswered(self, step)

    def sparse_cells(self, step: str, grid: Grid, threshold: int) -> NoisyCells:
        """Noisy numbers of rows in the cells of a grid, where they reach a threshold.

        The grid may have up to 2^62 cells: only those that are occupied or pass are listed.
        """
        raise _unanswered(self, step)

    def profiles(self, step: str, partition: Partition, edges: Sequence[FloatArray]) -> Noisy:
        """Noisy number of rows per bin of each described column, in each cell of a partition.

        Of shape (n_cells, sum of the bins of all columns). Each column has one more bin, for missing values.
        """
        raise _unanswered(self, step)

    def levels(self, step: str) -> NoisyLevels:
        """Values of the columns whose levels are not public, where enough people have them."""
        raise _unanswered(self, step)

    def terms(self, step: str) -> NoisyTerms:
        """Terms of texts that enough people use."""
        raise _unanswered(self, step)

    def terms_per_person(self, step: str, vocabulary: Sequence[str], most: int) -> Noisy:
        """Noisy number of people who use 0, 1, ..., `most` or more of the terms."""
        raise _unanswered(self, step)

    def term_counts(self, step: str, vocabulary: Sequence[str], max_terms: int) -> Noisy:
        """Noisy number of people of each cluster who use each term, and of people in it.

        Of shape (n_clusters, n_terms + 1). A person counts for at most `max_terms` pairs of cluster and term.
        """
        raise _unanswered(self, step)

    def histograms(self, step: str, edges: FloatArray) -> Noisy:
        """Noisy number of rows per bin of each column, shape (d, n_bins). Rows in no bin do not count."""
        raise _unanswered(self, step)

    def distances(
        self,
        step: str,
        partition: Partition,
        origins: FloatArray,
        edges: FloatArray,
        projection: FloatArray | None = None,
        scales: FloatArray | None = None,
    ) -> Noisy:
        """Noisy histogram of the rows' distances from the public origin of their group, over all groups.

        They are measured in units of the group's public scale, if scales are given.
        """
        raise _unanswered(self, step)

    def sums(
        self,
        step: str,
        partition: Partition,
        origins: FloatArray,
        radii: FloatArray,
        projection: FloatArray | None = None,
    ) -> NoisySums:
        """Noisy size of each group, and sum of its rows' clipped displacements from a public origin."""
        raise _unanswered(self, step)

    def active_sums(self, step: str, partition: Partition, sparse: Sparse) -> NoisyActive:
        """Noisy size of each group of sparse rows, and sum of each of their columns."""
        raise _unanswered(self, step)

    def moments(
        self,
        step: str,
        partition: Partition,
        origins: FloatArray,
        radii: FloatArray,
        shape: MomentShape,
        projection: FloatArray | None = None,
        *,
        soft: bool = False,
    ) -> NoisyMoments:
        """Noisy size, sum and second moments of each group's clipped displacements from a public origin.

        With `soft`, rows are shared among the components of a mixture by their responsibilities.
        """
        raise _unanswered(self, step)

    def nearest(self, step: str, points: FloatArray, t: int) -> NoisyMeans:
        """Noisy mean of the t rows nearest to each public point. See `NearestSums` for fewer than t rows."""
        raise _unanswered(self, step)

    def nearest_distance(self, step: str, points: FloatArray, weights: IntArray, t: int) -> NoisyMeans:
        """Noisy weighted mean distance from public points to the t rows nearest to each: one number."""
        raise _unanswered(self, step)

    def splits(
        self,
        choice_step: str,
        size_step: str,
        partition: Partition,
        boxes: tuple[FloatArray, FloatArray],
        rule: SplitRule,
        noisy_sizes: IntArray,
    ) -> NoisySplits:
        """Choose a good split of each group and count the rows on its two sides, in one pass.

        Groups are disjoint, so all choices together cost as much as one.
        """
        raise _unanswered(self, choice_step)

    def cover(
        self,
        step: str,
        candidates: FloatArray,
        chosen: FloatArray,
        radius: float,
        projection: FloatArray | None = None,
    ) -> int:
        """Privately selected candidate whose ball covers many rows that no chosen ball covers."""
        raise _unanswered(self, step)

    def swap(
        self,
        step: str,
        centers: FloatArray,
        candidates: FloatArray,
        radius: float,
        projection: FloatArray | None = None,
    ) -> tuple[int, int] | None:
        """Privately selected centre to drop and candidate to replace it; None to keep all."""
        raise _unanswered(self, step)


def _unanswered(asked: Questions, step: str) -> PlanError:
    return PlanError(f"{type(asked).__name__} must answer the question of step {step!r}, and does not")


def sums_sensitivity(domain: Domain, n_components: int | None = None) -> Sensitivity:
    """Sensitivity of `Curator.sums`, for rows or for their projections to `n_components` columns."""
    return GroupedSums.sensitivity_in(
        n_components or domain.n_features, () if n_components else domain.blocks
    )


def active_sensitivity(max_active: int) -> Sensitivity:
    """Sensitivity of `Curator.active_sums` of rows with at most `max_active` active columns."""
    return ActiveSums.sensitivity_in(max_active)


def moments_sensitivity(
    domain: Domain,
    shape: MomentShape,
    *,
    n_columns: int | None = None,
    soft: bool = False,
    n_components: int = 1,
) -> Sensitivity:
    """Sensitivity of `Curator.moments`, for rows or for their projections to `n_columns` columns.

    `n_components` is the number of groups. All products of one group in many columns have weights.
    """
    n_columns = n_columns or domain.n_features
    if soft:
        return SoftMoments.sensitivity_in(n_columns, shape, n_components)
    if is_wide(n_columns, shape, n_components):
        return WideMoments.sensitivity_in(n_columns)
    return GroupedMoments.sensitivity_in(n_columns, shape)


def nearest_sensitivity(domain: Domain, n_points: int) -> Sensitivity:
    """Sensitivity of `Curator.nearest` with `n_points` points."""
    return NearestSums.sensitivity_in(domain, n_points)


def nearest_distance_sensitivity(domain: Domain, total_weight: int) -> Sensitivity:
    """Sensitivity of `Curator.nearest_distance` with weights that sum to `total_weight`."""
    return NearestDistance.sensitivity_in(domain, total_weight)


def histograms_sensitivity(n_features: int) -> Sensitivity:
    """Sensitivity of `Curator.histograms` of `n_features` columns."""
    return Histograms.sensitivity_in(n_features)


def profiles_sensitivity(n_columns: int) -> Sensitivity:
    """Sensitivity of `Curator.profiles` of `n_columns` columns."""
    return ProfileCounts.sensitivity_in(n_columns)


def cover_sensitivity(n_candidates: int) -> Sensitivity:
    """Sensitivity of `Curator.cover` with at most `n_candidates` candidates."""
    return Coverage.sensitivity_of(n_candidates)


def swap_sensitivity(n_centers: int, n_candidates: int) -> Sensitivity:
    """Sensitivity of `Curator.swap` with at most this many centres and candidates."""
    return Swaps.sensitivity_of(n_centers * n_candidates)
