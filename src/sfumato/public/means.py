"""Means from noisy sums."""

from __future__ import annotations

import numpy as np

from sfumato.domain import FloatArray


def shrunk_means(sums: FloatArray, sizes: FloatArray, sum_std: FloatArray) -> FloatArray:
    """Means of groups, shrunk towards zero if no larger than their noise (James and Stein 1961).

    Parameters
    ----------
    sums : float array of shape (n_groups, d)
        Noisy sums of displacements.
    sizes : float array of shape (n_groups,)
        Positive.
    sum_std : float array of shape (n_groups,)
        Standard deviation of the noise in each coordinate of a sum.
    """
    means = sums / sizes[:, None]
    noise = sums.shape[1] * (sum_std / sizes) ** 2
    squares = np.maximum((means**2).sum(axis=1), np.maximum(noise, 1e-300))
    kept: FloatArray = 1.0 - noise / squares
    return kept[:, None] * means


def shrunk_stds(shrunk: FloatArray, sums: FloatArray, sizes: FloatArray, sum_std: FloatArray) -> FloatArray:
    """Standard deviation of the noise in each coordinate of `shrunk_means`, for each group.

    A mean shrunk by a factor has that share of the noise's variance left.
    """
    lengths, raw = np.linalg.norm(shrunk, axis=1), np.linalg.norm(sums / sizes[:, None], axis=1)
    kept = (lengths / np.maximum(raw, 1e-150)).clip(0.0, 1.0)
    return np.asarray(np.sqrt(kept) * sum_std / sizes)


def mean_stds(sums: FloatArray, sizes: FloatArray, sum_std: FloatArray, size_std: float) -> FloatArray:
    """Standard deviations of the noise in sums / sizes, to first order. Shrunk means have no more.

    Parameters
    ----------
    sums : float array of shape (n_groups, d)
    sizes : float array of shape (n_groups,)
        Positive.
    sum_std : float array of shape (n_groups,)
    size_std : float
    """
    of_sizes = sums / sizes[:, None] * size_std
    return np.asarray(np.hypot(sum_std[:, None], of_sizes) / sizes[:, None])


def project_to_simplex(values: FloatArray, total: float) -> FloatArray:
    """Nearest non-negative vector with the given positive sum (Duchi et al. 2008)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    threshold = excess[np.flatnonzero(ordered > excess)[-1]]
    projected: FloatArray = np.maximum(values - threshold, 0.0)
    return projected
