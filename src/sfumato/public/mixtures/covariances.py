"""Covariances and weights of a valid mixture from noisy moments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray


class SizedComponents(NamedTuple):
    """Components of a mixture with noisy sizes."""

    means: FloatArray  # (k, d)
    covariances: FloatArray  # (k, d, d)
    noisy_sizes: FloatArray  # (k,)
    size_stds: FloatArray  # (k,); standard deviations of the noise in the sizes
    mean_stds: FloatArray  # (k, d); standard deviations of the noise in the means


def centred(seconds: FloatArray, moves: FloatArray) -> FloatArray:
    """Covariances, of shape (k, d, d), from mean second moments and means about the same origins.

    The second moments may be full, of shape (k, d, d), per column, (k, d), or summed over columns, (k,).
    """
    d = moves.shape[1]
    if seconds.ndim == 3:
        return np.asarray(seconds - moves[:, :, None] * moves[:, None, :])
    if seconds.ndim == 2:
        return np.asarray((seconds - moves**2)[:, :, None] * np.eye(d))
    return np.asarray(((seconds - (moves**2).sum(axis=1)) / d)[:, None, None] * np.eye(d))


def shrunk_to_spheres(covariances: FloatArray, noise: FloatArray, *, is_full: bool) -> FloatArray:
    """Covariances shrunk towards spheres where they differ only by noise, as by James and Stein.

    Parameters
    ----------
    covariances : float array of shape (k, d, d)
    noise : float array of shape (k,)
        Standard deviation of the noise in an entry.
    is_full : bool
        Whether there is also noise off the diagonal.
    """
    d = covariances.shape[1]
    spheres = (np.trace(covariances, axis1=1, axis2=2) / d)[:, None, None] * np.eye(d)
    apart = covariances - spheres
    energy = np.maximum((apart**2).sum(axis=(1, 2)), 1e-300)
    n_entries = d * d if is_full else d
    kept = np.maximum(0.0, 1.0 - n_entries * noise**2 / energy)
    return np.asarray(spheres + kept[:, None, None] * apart)


def definite(covariances: FloatArray, smallest: FloatArray) -> FloatArray:
    """Symmetric matrices with eigenvalues of at least `smallest`, of shape (k,)."""
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, smallest[:, None])
    matrices = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray((matrices + matrices.transpose(0, 2, 1)) / 2)
