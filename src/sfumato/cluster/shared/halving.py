"""Cells for centre methods, by halving: rows are divided where they vary most, level by level.

Along released directions, each cell is cut at its noisy mean, across the direction in which its rows vary
most. All cells of a level are asked about in one pass. Cells whose rows vary more come first, and a cell is
cut only if its size and its variance stand out from the noise, so there are many cells where rows are many.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.budget import Step
from sfumato.cluster.shared.components import Frame
from sfumato.cluster.shared.rounds import Cells, scaled_reach
from sfumato.curator import NoisyMoments, Questions, moments_sensitivity
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.partitions import Tree
from sfumato.public.means import shrunk_means

# Tuned: docs/notes/constants.md#private-kmeans
SPREAD_SHARE = Fraction(1, 10)  # of halving: for the histograms of distances
WITHIN_SPREAD = 0.85  # share of the rows that are not clipped
SIZE_ABOVE, VARIANCE_ABOVE = 2.0, 2.0  # times the noise in them
CUT_SHARE = 0.95  # of the variation of all cells: the cells that have it are cut
APART = 0.8  # how far the middles of two halves are from the cut, in deviations: as for a normal law
LEAST_SCALE = 1e-140  # a limit: the squares of much smaller numbers vanish
LEFT = 1 - 2 / np.pi  # of the variance of a normal law along the cut direction


class Halves(NamedTuple):
    """Cells of projected rows. Released."""

    tree: Tree
    cells: Cells


def n_halvings(n_cells: int) -> int:
    """Number of levels: one more than even halves would need."""
    return int(np.ceil(np.log2(n_cells))) + 1


def halving_steps(domain: Domain, share: Fraction, n_cells: int, n_columns: int) -> tuple[Step, ...]:
    """Steps that `halved` asks, for `share` of the whole budget and rows projected to `n_columns`."""
    repeats = n_halvings(n_cells)
    sensitivity = moments_sensitivity(domain, "diag", n_columns=n_columns)
    return (
        Step("spread", SPREAD_SHARE * share, repeats=repeats),
        Step("halves", (1 - SPREAD_SHARE) * share, repeats=repeats, sensitivity=sensitivity),
    )


def halved(
    curator: Questions, frame: Frame, projection: FloatArray | None, n_cells: int, n_clusters: int
) -> Halves:
    """Divide rows into at most `n_cells` cells, and into `n_clusters` whatever the noise.

    Parameters
    ----------
    curator : Questions
        Its plan must have the steps of `halving_steps`.
    frame : Frame
    projection : float array of shape (p, d), optional
        Orthonormal directions. By default, the columns themselves.
    n_cells, n_clusters : int
    """
    middle = frame.middle if projection is None else projection @ frame.middle
    scale = max(frame.reach, LEAST_SCALE)
    one = Cells(middle[None], np.array([frame.rows]), np.array([scale]), np.zeros(1), 0.0)
    halves = Halves(Tree.root(), one)
    for _ in range(n_halvings(n_cells)):
        tree, cells = halves
        found = scaled_reach(curator, "spread", tree, cells, projection)
        radii = found.reach.within(WITHIN_SPREAD) * cells.scales
        noisy = curator.moments("halves", tree, cells.centers, radii, "diag", projection)
        halves = _cut(halves, noisy, n_cells, n_clusters)
    return halves


def _cut(halves: Halves, noisy: NoisyMoments, n_cells: int, n_clusters: int) -> Halves:
    """Cut the cells whose rows vary most, each across one direction, and move all centres to noisy means."""
    tree, centers = halves.tree, halves.cells.centers
    sizes = np.maximum(noisy.sizes, 2 * noisy.size_std)
    means, errors = noisy.sums / sizes[:, None], (noisy.sum_std / sizes)[:, None]
    variances = noisy.seconds / sizes[:, None] - means**2 + errors**2
    columns = variances.argmax(axis=1)
    largest = np.maximum(variances[np.arange(tree.n_cells), columns], 0.0)
    chosen = _largest(noisy, noisy.sizes * largest, n_cells, n_clusters)
    columns, apart = columns[chosen], APART * np.sqrt(largest[chosen])
    cuts = centers[chosen, columns] + means[chosen, columns]
    squares = _squares(variances.sum(axis=1), sizes, np.sqrt(variances.shape[1]) * noisy.second_std)
    squares[chosen] = np.maximum(squares[chosen] - (1 - LEFT) * largest[chosen], squares[chosen] / 2)
    centers = centers + shrunk_means(noisy.sums, sizes, noisy.sum_std)
    right = centers[chosen]
    right[np.arange(len(chosen)), columns] = cuts + apart
    centers[chosen, columns] = cuts - apart
    halved_sizes = noisy.sizes.copy()
    halved_sizes[chosen] /= 2
    parts = np.concatenate([np.arange(tree.n_cells), chosen])
    cells = Cells(
        np.concatenate([centers, right]),
        halved_sizes[parts],
        np.sqrt(squares[parts]),
        errors[parts, 0],
        noisy.size_std,
    )
    return Halves(tree.split(chosen, columns, cuts), cells)


def _squares(noisy_squares: FloatArray, sizes: FloatArray, noise: FloatArray) -> FloatArray:
    """Mean squared distances of the rows of cells from their means, drawn to that of all rows by the noise.

    `noise` is the standard deviation in a cell's sum of squared distances.
    """
    # No less than its own noise, which is never zero.
    usual = max(float(sizes @ noisy_squares), float(noise.max()) * math.sqrt(len(noise))) / sizes.sum()
    # The noise would be that of so many rows.
    doubt = noise / usual
    drawn = (sizes * np.maximum(noisy_squares, 0.0) + doubt * usual) / (sizes + doubt)
    return np.asarray(np.maximum(drawn, max(usual / 100, LEAST_SCALE**2)))


def _largest(noisy: NoisyMoments, totals: FloatArray, n_cells: int, n_clusters: int) -> IntArray:
    """Cells to cut, those with the largest variation first.

    Those that have little of it are left, so that there are cells to cut at later levels. Cells that are lost
    in the noise are cut only as long as there are fewer cells than clusters.
    """
    order = np.argsort(-totals, kind="stable")
    clear = (totals > VARIANCE_ABOVE * noisy.second_std) & (noisy.sizes > SIZE_ABOVE * noisy.size_std)
    first = order[clear[order]]
    sums = np.cumsum(totals[first])
    first = first[: np.searchsorted(sums, CUT_SHARE * sums[-1]) + 1] if len(sums) else first
    first = first[: max(n_cells - len(totals), 0)]
    n_missing = max(n_clusters - len(totals) - len(first), 0)
    others = order[~np.isin(order, first)]
    return np.concatenate([first, others[:n_missing]])
