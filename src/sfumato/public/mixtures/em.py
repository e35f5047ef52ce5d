"""Fit a Gaussian mixture to a released grid by expectation maximisation over its cells. Spends nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray
from sfumato.domain.partitions import GaussianCells, MomentShape
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.kmeans import weighted_kmeans
from sfumato.public.mixtures.covariances import SizedComponents, centred, definite

# Tuned: docs/notes/constants.md#mixtures
N_ITER = 10
_N_STARTS = 3  # of k-means

_BLOCK = 2**16  # cells whose responsibilities are in memory at once
_LEAST_ROWS = 1e-9  # no division by zero


class Components(NamedTuple):
    """An intermediate mixture: weights (k,), means (k, d) and covariances (k, d, d)."""

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray


def mixture_of_cells(
    synopsis: GridSynopsis,
    n_components: int,
    shape: MomentShape,
    *,
    soft: bool,
    n_iter: int = N_ITER,
    centers: FloatArray | None = None,
) -> SizedComponents:
    """Mixture of the rows in a noisy grid.

    The expectation maximisation uses the cells' counts, projected onto possible values. Sizes are then taken
    from the noisy counts themselves, so they are unbiased and their noise is known.

    Parameters
    ----------
    synopsis : GridSynopsis
    n_components : int
    shape : {"full", "diag", "spherical"}
        Shape of the covariances.
    soft : bool
        Share cells among components by their responsibilities.
    n_iter : int
    centers : float array of shape (n_components, d), optional
        Starting means; by default the centres of k-means over the cells.
    """
    points, counts = synopsis.grid.centers(), synopsis.estimated_counts()
    if centers is None:
        centers, _ = weighted_kmeans(points, counts, n_components, n_init=_N_STARTS)
    used = counts > 0
    points, counts = points[used], counts[used]
    narrowest = np.full(len(centers), float((synopsis.grid.widths**2).max()) / 12)
    model = _of_centres(points, counts, centers, narrowest)
    moments = np.concatenate([np.ones((len(points), 1)), points, _squares(points)], axis=1)
    for _ in range(n_iter):
        cells = GaussianCells.of(*model)
        sums = _shared_sums(cells, points, moments * counts[:, None], soft=soft)
        model = _maximised(sums, model, shape, narrowest)
    return _with_noisy_sizes(model, synopsis)


def _of_centres(
    points: FloatArray, counts: FloatArray, centers: FloatArray, narrowest: FloatArray
) -> Components:
    """Spheres around centres, each with the spread of the cells nearest to it."""
    d = centers.shape[1]
    spheres = GaussianCells.of(np.ones(len(centers)), centers, np.tile(np.eye(d), (len(centers), 1, 1)))
    nearest = spheres.index(points)
    squares = ((points - centers[nearest]) ** 2).sum(axis=1)
    rows = np.maximum(np.bincount(nearest, counts, len(centers)), _LEAST_ROWS)
    variances = np.maximum(np.bincount(nearest, counts * squares, len(centers)) / (rows * d), narrowest)
    covariances = variances[:, None, None] * np.eye(d)
    return Components(rows / rows.sum(), centers, covariances)


def _shared_sums(cells: GaussianCells, points: FloatArray, values: FloatArray, *, soft: bool) -> FloatArray:
    """Sum over points of each column of `values`, shared among components, of shape (k, n_columns)."""
    total = np.zeros((cells.n_cells, values.shape[1]))
    for start in range(0, len(points), _BLOCK):
        block = slice(start, start + _BLOCK)
        total += _shares(cells, points[block], soft=soft).T @ values[block]
    return total


def _shares(cells: GaussianCells, points: FloatArray, *, soft: bool) -> FloatArray:
    if soft:
        return cells.responsibilities(points)
    return np.asarray(cells.index(points)[:, None] == np.arange(cells.n_cells), dtype=np.float64)


def _maximised(sums: FloatArray, before: Components, shape: MomentShape, narrowest: FloatArray) -> Components:
    """The mixture with these sums of moments. A component without rows is kept, at the least weight."""
    k, d = before.means.shape
    rows = np.maximum(sums[:, 0], _LEAST_ROWS)
    empty = sums[:, 0] < _LEAST_ROWS
    means = np.where(empty[:, None], before.means, sums[:, 1 : d + 1] / rows[:, None])
    seconds = (sums[:, d + 1 :] / rows[:, None]).reshape(k, d, d)
    covariances = definite(centred(_reduced(seconds, shape), means), narrowest)
    covariances = np.where(empty[:, None, None], before.covariances, covariances)
    return Components(rows / rows.sum(), means, covariances)


def _with_noisy_sizes(model: Components, synopsis: GridSynopsis) -> SizedComponents:
    """The mixture with sizes from the noisy counts, and the resulting noise in sizes and means."""
    cells = GaussianCells.of(*model)
    sizes, variances, of_means = np.zeros(cells.n_cells), np.zeros(cells.n_cells), np.zeros_like(model.means)
    points = synopsis.grid.centers()
    for start in range(0, len(points), _BLOCK):
        block = slice(start, start + _BLOCK)
        shares = _shares(cells, points[block], soft=True)
        sizes += shares.T @ synopsis.noisy_counts[block]
        variances += (shares**2).sum(axis=0)
        apart = points[block, None] - model.means  # (n_block, k, d)
        of_means += np.einsum("nk,nkd->kd", shares**2, apart**2)
    stds = synopsis.noise_std * np.sqrt(variances)
    rows = np.maximum(sizes, np.maximum(stds, _LEAST_ROWS))
    mean_stds = synopsis.noise_std * np.sqrt(of_means) / rows[:, None]
    return SizedComponents(model.means, model.covariances, sizes, stds, mean_stds)


def _reduced(seconds: FloatArray, shape: MomentShape) -> FloatArray:
    """The part of full second moments that covariances of this shape need."""
    if shape == "full":
        return seconds
    columns = np.diagonal(seconds, axis1=1, axis2=2)
    return columns if shape == "diag" else np.asarray(columns.sum(axis=1))


def _squares(points: FloatArray) -> FloatArray:
    return np.asarray((points[:, :, None] * points[:, None, :]).reshape(len(points), -1))
