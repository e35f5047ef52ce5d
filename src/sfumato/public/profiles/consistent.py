"""Counts that fit together: all columns agree on the size of a cluster, and clusters add up to the table.

Released are y = x + noise for the counts x of each cluster, column and bin, and t = (sums of x over clusters
and some bins) + noise for the table. Weighted least squares gives the linear estimates of least variance in
closed form: clusters differ only by their numbers, so that the sum over clusters and the differences between
them can be fitted apart. Linear estimates are unbiased and may be negative; intervals start from them.
Estimates that are shown come after: the nearest ones that are not negative and have the same sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.domain.blocks import nearest_in_simplex


@dataclass(frozen=True, eq=False)
class ColumnCounts:
    """What was released about one column.

    Parameters
    ----------
    clusters : float array of shape (k, n_bins)
        Noisy counts, with missing values in the last bin.
    cells : int array of shape (n_bins,)
        Which bins the table's counts tell together, as numbers from 0.
    table : float array of shape (n_cells,)
        Noisy counts of these cells for the table.
    table_variance : float array of shape (n_cells,)
        Infinite if rows may be in no cluster.
    """

    clusters: FloatArray
    cells: IntArray
    table: FloatArray
    table_variance: FloatArray


@dataclass(frozen=True, eq=False)
class ColumnFit:
    """Estimated counts of one column.

    Parameters
    ----------
    linear : float array of shape (k, n_bins)
        Unbiased.
    counts : float array of shape (k, n_bins)
        Not negative; they sum to the sizes of the clusters.
    own : float array of shape (n_bins, n_bins)
        Covariance of the linear estimates of one cluster; the same for all.
    total : float array of shape (n_bins, n_bins)
        Covariance of their sum over clusters.
    """

    linear: FloatArray
    counts: FloatArray
    own: FloatArray
    total: FloatArray


@dataclass(frozen=True, eq=False)
class Fit:
    """Estimated sizes and counts.

    Parameters
    ----------
    linear_sizes, sizes : float array of shape (k,)
        Unbiased, and not negative.
    size_std, total_std : float
        Standard deviation of each linear size, and of their sum.
    columns : tuple of ColumnFit
    variance : float
        Of the noise in one count.
    """

    linear_sizes: FloatArray
    sizes: FloatArray
    size_std: float
    total_std: float
    columns: tuple[ColumnFit, ...]
    variance: float


def reconcile(columns: Sequence[ColumnCounts], std: float) -> Fit:
    """Fit all counts by weighted least squares.

    Parameters
    ----------
    columns : sequence of ColumnCounts
        At least one.
    std : float
        Standard deviation of the noise in each count of a cluster.
    """
    variance = max(std, 1e-6) ** 2
    k = len(columns[0].clusters)
    sums, total, total_variance = agreed([_sum_fit(column, variance) for column in columns])
    n_bins = np.array([column.clusters.shape[1] for column in columns], dtype=np.float64)
    # Differences between clusters: each count minus its mean over clusters.
    apart = [column.clusters - column.clusters.mean(axis=0) for column in columns]
    apart_variance = float(1 / (1 / (n_bins * variance)).sum())
    told = [part.sum(axis=1) / (n * variance) for part, n in zip(apart, n_bins, strict=True)]
    sizes_apart = apart_variance * np.sum(told, axis=0)
    linear_sizes = total / k + sizes_apart
    sizes = not_negative(linear_sizes[None, :], np.array([total]))[0]
    fits = []
    for part, (summed, of_sum) in zip(apart, sums, strict=True):
        n = part.shape[1]
        part = part + ((sizes_apart - part.sum(axis=1)) / n)[:, None]
        of_part = variance * (np.eye(n) - (1 / n - apart_variance / (variance * n**2)))
        linear, own = summed / k + part, (1 - 1 / k) * of_part + of_sum / k**2
        fits.append(ColumnFit(linear, not_negative(linear, sizes), own, of_sum))
    size_std = math.sqrt(total_variance / k**2 + (1 - 1 / k) * apart_variance)
    return Fit(linear_sizes, sizes, size_std, math.sqrt(total_variance), tuple(fits), variance)


def agreed(
    estimates: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[list[tuple[FloatArray, FloatArray]], float, float]:
    """Independent estimates of several columns, moved so that all have the same sum.

    Parameters
    ----------
    estimates : sequence of (float array of shape (n_bins,), float array of shape (n_bins, n_bins))
        Of each column, and their covariances.

    Returns
    -------
    moved : list of the same
    total, variance : float
        Of the sum.
    """
    rows = [covariance.sum(axis=0) for _, covariance in estimates]  # of each bin and the sum of all
    weights = np.array([1 / row.sum() for row in rows])
    variance = float(1 / weights.sum())
    total = float(variance * sum(w * values.sum() for w, (values, _) in zip(weights, estimates, strict=True)))
    moved = []
    for row, weight, (values, covariance) in zip(rows, weights, estimates, strict=True):
        left = covariance - np.outer(row, row) * (weight - variance * weight**2)
        moved.append((values + weight * row * (total - values.sum()), left))
    return moved, total, variance


def _sum_fit(column: ColumnCounts, variance: float) -> tuple[FloatArray, FloatArray]:
    """Sum over clusters of each bin, from the clusters and the table, and its covariance."""
    k, n_bins = column.clusters.shape
    sums = column.clusters.sum(axis=0)
    cells = column.cells
    in_cell = np.bincount(cells, minlength=len(column.table))
    gaps = column.table - np.bincount(cells, sums, minlength=len(column.table))
    gains = k * variance / (column.table_variance + k * in_cell * variance)  # 0 if it is infinite
    gaps = np.where(gains > 0, gaps, 0.0)
    shared = np.where(cells[:, None] == cells, gains[cells], 0.0)
    covariance = k * variance * (np.eye(n_bins) - shared)
    return sums + gains[cells] * gaps[cells], covariance


def not_negative(values: FloatArray, totals: FloatArray) -> FloatArray:
    """Nearest values that are not negative and sum to the totals, in each row."""
    scale = np.where(totals > 0, totals, 1.0)[:, None]
    found: FloatArray = np.where(totals[:, None] > 0, nearest_in_simplex(values / scale, 1.0) * scale, 0.0)
    return found
