"""Cost and silhouette of clusters of released cells, without the noise, and with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from sfumato.domain import FloatArray, IntArray
from sfumato.public.packing import PUBLIC_SEED
from sfumato.public.separation import Noise

N_DRAWS = 20  # of the noise, for the error of a silhouette: a definition

# Tuned: docs/notes/how_many.md#constants
COST_DOUBT = 0.02  # of a cost: rows at a border are nearer to another centre than their cell is
CLIPPED = 0.1  # of the spread along a column: sums of clipped rows are too short on the outer side
SILHOUETTE_DOUBT = 0.04  # a cell is taken for a round ball, with the same spread as all others


class CellCost(NamedTuple):
    """Estimated sum of squared distances of the rows to the nearest centre."""

    value: float
    std: float  # standard deviation of its error

    def times(self, factor: float) -> CellCost:
        """The same cost in other units."""
        return CellCost(factor * self.value, factor * self.std)


def cell_cost(
    points: FloatArray,
    sizes: FloatArray,
    noise: Noise,
    centers: FloatArray,
    labels: IntArray,
    *,
    chosen: bool = False,
) -> CellCost:
    """Cost of centres, if all rows of a cell go to the centre nearest to it.

    Noise in a cell's centre adds its variance to the squared distance from any independent point, and to the
    rows' distances from the cell's centre. A centre that is the mean of cells moves with their noise, by the
    share of each cell in it.

    Parameters
    ----------
    points : float array of shape (m, d)
        Centres of the cells.
    sizes : float array of shape (m,)
        As released; may be below 0, since sums of them have no bias then.
    noise : Noise
    centers : float array of shape (k, d)
    labels : int array of shape (m,)
        Nearest centre of each cell.
    chosen : bool
        Whether the centres are means of these cells.
    """
    d = points.shape[1]
    squares = ((points - centers[labels]) ** 2).sum(axis=1)
    rows = np.maximum(sizes, 0.0)
    shares = rows / np.maximum(np.bincount(labels, rows, len(centers))[labels], 1e-300) if chosen else 0.0
    variances = d * noise.center_stds**2
    apart = noise.mean_square + squares - 2 * variances * (1 - shares)
    value = max(float(sizes @ apart), 0.0)
    of_sizes = noise.size_std**2 * float(((noise.mean_square + squares) ** 2).sum())
    of_centers = float((rows**2) @ (4 * noise.center_stds**2 * squares + 2 * variances**2 / d))
    of_square = (float(rows.sum()) * noise.mean_square_std) ** 2
    off = CLIPPED * np.sqrt(noise.within(sizes, d) / d)  # that a cell's centre may be, towards the others
    of_clipping = (2 * off * float(rows @ np.sqrt(squares))) ** 2
    of_borders = (COST_DOUBT * value) ** 2
    return CellCost(value, float(np.sqrt(of_sizes + of_centers + of_square + of_clipping + of_borders)))


def silhouettes(
    points: FloatArray, sizes: FloatArray, noise: Noise, labels: Sequence[IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Mean silhouette of each clustering of the cells, and the standard deviation of its error.

    Cells are taken for balls with the released sizes, centres and mean square. The noise is drawn again, from
    a public seed, to see how much it moves a silhouette. A single cluster has 0.
    """
    n_cells, d = points.shape
    rng = np.random.default_rng(PUBLIC_SEED)
    found = [_silhouettes(points, sizes, noise, labels, 1)]
    for _ in range(N_DRAWS):
        moved = points + noise.center_stds[:, None] * rng.normal(size=(n_cells, d))
        resized = sizes + noise.size_std * rng.normal(size=n_cells)
        square = max(noise.mean_square + noise.mean_square_std * rng.normal(), noise.mean_square / 10)
        found.append(_silhouettes(moved, resized, noise._replace(mean_square=square), labels, 2))
    stds = np.hypot(np.std(found[1:], axis=0), SILHOUETTE_DOUBT)
    several = np.array([label.max(initial=0) > 0 for label in labels])
    return found[0], np.where(several, stds, 0.0)


def _silhouettes(
    points: FloatArray, sizes: FloatArray, noise: Noise, labels: Sequence[IntArray], n_noises: int
) -> FloatArray:
    """Silhouettes of clusterings of cells whose centres have the noise so many times."""
    d = points.shape[1]
    rows = np.where(sizes > 2 * noise.size_std, sizes, 0.0)
    rows = rows if rows.any() else np.ones(len(sizes))
    variances = n_noises * d * noise.center_stds**2
    squares = cdist(points, points, "sqeuclidean") - variances[:, None] - variances
    np.fill_diagonal(squares, 0.0)
    distances = np.sqrt(np.maximum(squares, 0.0) + 2 * noise.within(rows, d))
    return np.array([_silhouette(distances, rows, label) for label in labels])


def _silhouette(distances: FloatArray, rows: FloatArray, labels: IntArray) -> float:
    """Mean silhouette of the rows of cells, from distances between rows of each pair of cells."""
    member = np.eye(labels.max(initial=0) + 1)[labels] * rows[:, None]  # (m, k)
    weights = member.sum(axis=0)
    seen = weights > 0
    if seen.sum() < 2:
        return 0.0
    means = distances @ member[:, seen] / weights[seen]
    own = np.cumsum(seen)[labels] - 1
    used = rows > 0
    means, own = means[used], own[used]
    everyone = np.arange(len(own))
    inner = means[everyone, own]
    means[everyone, own] = np.inf
    outer = means.min(axis=1)
    return float(
        np.average((outer - inner) / np.maximum(np.maximum(outer, inner), 1e-300), weights=rows[used])
    )
