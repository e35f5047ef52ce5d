"""The curator's answers: released values and the noise in them. Public."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.budget import Record
from sfumato.domain import FloatArray, IntArray


@dataclass(frozen=True)
class Noisy:
    """A released vector of integers and the noise in it. Public."""

    values: IntArray
    record: Record  # the mechanism, its sensitivity and its scale

    @property
    def std(self) -> float:
        """Standard deviation of the noise in each value."""
        return self.record.noise_std


@dataclass(frozen=True)
class NoisyCells:
    """Released counts of the cells whose noisy count reaches a threshold, empty cells too. Public."""

    cells: IntArray  # (n_passing,); increasing
    counts: IntArray  # (n_passing,); each at least the threshold
    threshold: int
    record: Record  # the mechanism, its sensitivity and its scale

    @property
    def std(self) -> float:
        """Standard deviation of the noise in each count, before those below the threshold were dropped."""
        return self.record.noise_std


@dataclass(frozen=True)
class NoisyLevels:
    """Released values of columns whose levels are not public, where they reach a threshold. Public."""

    texts: tuple[tuple[str, ...], ...]  # for each column, the values that pass, sorted
    counts: tuple[IntArray, ...]  # for each column, how many people have them; each at least the threshold
    threshold: int
    record: Record  # the mechanism, its sensitivity and its scale


@dataclass(frozen=True)
class NoisyTerms:
    """Released terms that so many people use that they reach a threshold. Public."""

    terms: tuple[str, ...]  # sorted
    weights: (
        IntArray  # (n_terms,); sums of the weights of the people who use them, each at least the threshold
    )
    threshold: int
    record: Record  # the mechanism, its sensitivity and its scale


@dataclass(frozen=True)
class NoisySums:
    """Released sizes and sums of groups. Public."""

    sizes: FloatArray  # (n_groups,)
    clipped: FloatArray  # (n_groups,); how many rows of each group lie beyond the radius
    sums: FloatArray  # (n_groups, d); sums of clipped displacements, in the units of the data
    size_std: float  # standard deviation of the noise in each size and in each number of clipped rows
    sum_std: FloatArray  # (n_groups,); standard deviation of the noise in each coordinate of a group's sum


@dataclass(frozen=True)
class NoisyActive:
    """Released sizes of groups, and sums of the columns of sparse rows. Public."""

    sizes: FloatArray  # (n_groups,)
    sums: FloatArray  # (n_groups, n_columns); in the units of the scaled rows
    size_std: float  # standard deviation of the noise in each size
    sum_std: float  # standard deviation of the noise in each sum


@dataclass(frozen=True)
class NoisyMoments(NoisySums):
    """Released sizes, sums and second moments of groups. Public.

    Second moments are sums of products about the origin: matrices, diagonals or squared norms, by shape.
    """

    seconds: FloatArray  # (n_groups, d, d), (n_groups, d) or (n_groups,)
    second_std: FloatArray  # (n_groups,); standard deviation of the noise in each second moment of a group;
    # of one group in many columns, in each product of two of them


@dataclass(frozen=True)
class NoisyMeans:
    """Released means. Public."""

    means: FloatArray  # (n, d); in the units of the data
    units: FloatArray  # (d,); how far one unit of noise moves a mean along each column
    record: Record  # the mechanism, its sensitivity and its scale


@dataclass(frozen=True)
class NoisySplits:
    """The split chosen for each group and the released sizes of its two sides. Public."""

    columns: IntArray  # (n_groups,)
    thresholds: FloatArray  # (n_groups,); rows below go left
    sizes: IntArray  # (n_groups, 2)
    size_std: float  # standard deviation of the noise in each size
