"""Rounds of noisy k-means in which every cell has a radius of its own.

A row's displacement from the centre of its cell is clipped to a radius, and the noise in a cell's sum grows
with this radius. Cells of one table differ in spread, so each has a scale: a released estimate of how far its
rows are. One noisy histogram of distances in units of these scales gives the radius that most rows are
within. How many rows of a cell were clipped is released with its sum. It corrects the cell's scale, for free.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.budget import Sensitivity, Step
from sfumato.cluster.shared.refine import divisors
from sfumato.curator import Noisy, NoisySums, Questions
from sfumato.domain import Domain, FloatArray
from sfumato.domain.partitions import Partition, Voronoi
from sfumato.public.cells import CellSynopsis
from sfumato.public.means import shrunk_means, shrunk_stds
from sfumato.public.reach import Reach
from sfumato.public.squares import mean_square_of

# Tuned: docs/notes/constants.md#private-kmeans
DISTANCE_SHARE = Fraction(1, 20)  # of a round: for the histogram of distances
WITHIN = 0.8  # share of the rows that a round does not clip
DOUBT = 3.0  # noise in a size, times this: rows that a cell must have for its own scale to count by half
BINS_PER_OCTAVE = 4
SCALED_EDGES: FloatArray = 2.0 ** (np.arange(-6 * BINS_PER_OCTAVE, 3 * BINS_PER_OCTAVE + 1) / BINS_PER_OCTAVE)


class Cells(NamedTuple):
    """Released centres, with the noisy sizes and the scales of their cells."""

    centers: FloatArray  # (m, p)
    noisy_sizes: FloatArray  # (m,); may be below 0
    scales: FloatArray  # (m,); about how far rows of a cell are from its centre
    center_stds: FloatArray  # (m,); noise in each coordinate of a centre
    size_std: float  # noise in each size

    @property
    def sizes(self) -> FloatArray:
        """Noisy sizes, at least 0."""
        return np.maximum(self.noisy_sizes, 0.0)

    def synopsis(self, mean_square: float, std: float) -> CellSynopsis:
        """The cells for other numbers of clusters, with the mean squared distance of rows and its error."""
        return CellSynopsis(self.centers, self.noisy_sizes, self.center_stds, self.size_std, mean_square, std)


class ScaledReach(NamedTuple):
    """Distances of rows from the centres of their cells, in units of the scales. Released."""

    noisy: Noisy
    reach: Reach

    def mean_square(self, cells: Cells) -> tuple[float, float]:
        """Mean squared distance of the rows, and the standard deviation of its error."""
        square, std = mean_square_of(self.noisy.values, SCALED_EDGES, self.noisy.std)
        weights = np.maximum(cells.noisy_sizes, 1.0)
        unit = float(weights @ cells.scales**2 / weights.sum())
        return square * unit, std * unit


def round_steps(name: str, share: Fraction, n_rounds: int, sensitivity: Sensitivity) -> tuple[Step, ...]:
    """Steps that `moved` asks, for `share` of the whole budget."""
    return (
        Step(f"{name} distances", DISTANCE_SHARE * share, repeats=n_rounds),
        Step(f"{name} means", (1 - DISTANCE_SHARE) * share, repeats=n_rounds, sensitivity=sensitivity),
    )


def scaled_reach(
    curator: Questions, step: str, groups: Partition, cells: Cells, projection: FloatArray | None
) -> ScaledReach:
    """Ask how far rows are from the centres of their cells."""
    noisy = curator.distances(step, groups, cells.centers, SCALED_EDGES, projection, cells.scales)
    return ScaledReach(noisy, Reach.read(noisy.values, SCALED_EDGES, noisy.std))


def moved(
    curator: Questions,
    name: str,
    n_rounds: int,
    cells: Cells,
    groups: Partition,
    projection: FloatArray | None,
) -> tuple[Cells, CellSynopsis]:
    """Move centres to the noisy means of their cells, a public number of times.

    Returns the cells, and the same as a synopsis.

    Parameters
    ----------
    curator : Questions
        Its plan must have the steps of `round_steps`.
    name : str
        Of the steps.
    n_rounds : int
    cells : Cells
    groups : Partition
        Of the first round. Later, rows belong to the nearest centre.
    projection : float array of shape (p, d), optional
    """
    for _ in range(n_rounds):
        found = scaled_reach(curator, f"{name} distances", groups, cells, projection)
        square, std = found.mean_square(cells)
        radii = found.reach.within(WITHIN) * cells.scales
        noisy = curator.sums(f"{name} means", groups, cells.centers, radii, projection)
        moves, moves_stds = _moves(noisy)
        centers = _inside(curator.domain, cells.centers + moves, projection)
        cells = Cells(centers, noisy.sizes, _rescaled(cells.scales, noisy), moves_stds, noisy.size_std)
        groups = Voronoi(cells.centers)
    nearer = float(cells.sizes @ (moves**2).sum(axis=1)) / max(float(cells.sizes.sum()), 1.0)
    return cells, cells.synopsis(max(square - nearer, square / 10), std)


def _inside(domain: Domain, centers: FloatArray, projection: FloatArray | None) -> FloatArray:
    """Centres moved to where rows can be; projected ones into a ball. Noise may have thrown them out."""
    if projection is None:
        return domain.placed(domain.clip(centers))
    middle = projection @ domain.middle
    gaps = centers - middle
    lengths = np.linalg.norm(gaps, axis=1, keepdims=True)
    return np.asarray(middle + gaps * np.minimum(1.0, domain.reach / np.maximum(lengths, 1e-300)))


def _moves(noisy: NoisySums) -> tuple[FloatArray, FloatArray]:
    """Mean displacements, and the noise in each of their coordinates."""
    sizes = divisors(noisy)
    moves = shrunk_means(noisy.sums, sizes, noisy.sum_std)
    return moves, shrunk_stds(moves, noisy.sums, sizes, noisy.sum_std)


def _rescaled(scales: FloatArray, noisy: NoisySums) -> FloatArray:
    """Scales of cells, larger where more rows than usual were clipped."""
    usual, doubt = 1 - WITHIN, DOUBT * noisy.size_std
    # Negative numbers of clipped rows count, too: else noise alone would widen the scales of empty cells.
    shares = (noisy.clipped + usual * doubt) / (np.maximum(noisy.sizes, 0.0) + doubt)
    return np.asarray(scales * np.exp(np.clip(shares, 2 * usual - 1, 1.0) - usual))
