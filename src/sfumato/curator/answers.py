"""The curator's answers: released values and the noise in them. Public."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.budget import Record
from sfumato.domain import FloatArray, IntArray


@dataclass(frozen=True)
class Noisy:
    """A released vector of integers and the noise in it. Public.

    Parameters
    ----------
    values : int64 array
    record : Record
        The mechanism, its sensitivity and its scale.
    """

    values: IntArray
    record: Record

    @property
    def std(self) -> float:
        """Standard deviation of the noise in each value."""
        return self.record.noise_std


@dataclass(frozen=True)
class NoisyCells:
    """Released counts of the cells whose noisy count reaches a threshold, empty cells too. Public.

    Parameters
    ----------
    cells : int array of shape (n_passing,)
        Increasing.
    counts : int array of shape (n_passing,)
        Each at least the threshold.
    threshold : int
    record : Record
        The mechanism, its sensitivity and its scale.
    """

    cells: IntArray
    counts: IntArray
    threshold: int
    record: Record

    @property
    def std(self) -> float:
        """Standard deviation of the noise in each count, before those below the threshold were dropped."""
        return self.record.noise_std


@dataclass(frozen=True)
class NoisySums:
    """Released sizes and sums of groups. Public.

    Parameters
    ----------
    sizes : float array of shape (n_groups,)
    clipped : float array of shape (n_groups,)
        How many rows of each group lie beyond the radius.
    sums : float array of shape (n_groups, d)
        Sums of clipped displacements, in the units of the data.
    size_std : float
        Standard deviation of the noise in each size and in each number of clipped rows.
    sum_std : float array of shape (n_groups,)
        Standard deviation of the noise in each coordinate of a group's sum.
    """

    sizes: FloatArray
    clipped: FloatArray
    sums: FloatArray
    size_std: float
    sum_std: FloatArray


@dataclass(frozen=True)
class NoisyMoments:
    """Released sizes, sums and second moments of groups. Public.

    Parameters
    ----------
    sizes : float array of shape (n_groups,)
    clipped : float array of shape (n_groups,)
        How many rows of each group lie beyond the radius.
    sums : float array of shape (n_groups, d)
        Sums of clipped displacements from the origin, in the units of the data.
    seconds : float array of shape (n_groups, d, d), (n_groups, d) or (n_groups,)
        Sums of the displacements' products: symmetric matrices, diagonals or squared norms, by shape.
    size_std : float
        Standard deviation of the noise in each size and in each number of clipped rows.
    sum_std : float array of shape (n_groups,)
        Standard deviation of the noise in each coordinate of a group's sum.
    second_std : float array of shape (n_groups,)
        Standard deviation of the noise in each second moment of a group.
    """

    sizes: FloatArray
    clipped: FloatArray
    sums: FloatArray
    seconds: FloatArray
    size_std: float
    sum_std: FloatArray
    second_std: FloatArray


@dataclass(frozen=True)
class NoisyMeans:
    """Released means. Public.

    Parameters
    ----------
    means : float array of shape (n, d)
        In the units of the data.
    units : float array of shape (d,)
        How far one unit of noise moves a mean along each column.
    record : Record
        The mechanism, its sensitivity and its scale.
    """

    means: FloatArray
    units: FloatArray
    record: Record


@dataclass(frozen=True)
class NoisySplits:
    """The split chosen for each group and the released sizes of its two sides. Public.

    Parameters
    ----------
    columns : int array of shape (n_groups,)
    thresholds : float array of shape (n_groups,)
        Rows below go left.
    sizes : int array of shape (n_groups, 2)
    size_std : float
        Standard deviation of the noise in each size.
    """

    columns: IntArray
    thresholds: FloatArray
    sizes: IntArray
    size_std: float
