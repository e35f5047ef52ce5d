"""DP-DBSCAN on a noisy histogram (Qiu and Yi): the spans of clusters of any shape, and their guarantee.

We depart from the paper's Algorithm 1 in three ways. Each sharpens the result and keeps the sandwich
guarantee (proof: docs/proofs/dbscan.md):

- a sum runs over the cells that a ball around a location in a *half cell* can meet, not over those that a
  ball around any location in the cell can meet;
- the allowance Gamma is the tail of the sum's own law, computed separately for each side of the guarantee;
- places joined only through a valley that could be noise stay apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.errors import ParameterError
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.neighbourhoods import large_sums
from sfumato.public.density.peak_tree import grow_peak_tree
from sfumato.public.density.regions import Regions, measured_regions, noise_of_sum, selection_bias
from sfumato.public.density.stencils import Stencils, near_offsets
from sfumato.public.density.tails import allowances
from sfumato.public.intervals import CONFIDENCE

LARGEST_ETA = 4.0  # wider cells would be farther across than the radius: docs/proofs/dbscan.md

# Tuned: docs/notes/density.md, docs/notes/constants.md#dbscan
FALSE_SHARE = 0.75  # of beta, for spans where nothing is; the rest is for clusters that are missed
# A valley parts two places if it is deep and its floor is low. The floor is low if noise, sampling and the
# width of cells may have raised it above the level of reporting, or above `min_samples`. Depth and height
# are in allowances and in standard deviations of a count.
VALLEY_DEPTH, VALLEY_DEPTH_DEVIATIONS = 0.5, 2.0
VALLEY_FLOOR, VALLEY_FLOOR_DEVIATIONS = 0.55, 8.0


@dataclass(frozen=True)
class Guarantee:
    """How the spans relate to exact DBSCAN, with probability at least 1 - beta over the noise."""

    radius: float
    min_samples: int
    rho: float
    tau: int
    beta: float

    def check(self) -> None:
        """Raise if the numbers, perhaps from a file, cannot belong to a guarantee."""
        if min(self.radius, self.rho, self.tau) < 0 or not 1 <= self.min_samples <= 10**18:
            raise ParameterError(f"a guarantee must have positive numbers, got {self}")

    def __str__(self) -> str:
        return (
            f"With probability at least {1 - self.beta:.0%} over the noise: every cluster that exact DBSCAN "
            f"finds with radius {self.radius:g} and at least {self.min_samples + self.tau:,} neighbours lies "
            f"in one span; and every span lies within {self.rho * self.radius:.4g} of a cluster that it "
            f"finds with radius {self.rho * self.radius:.4g} and at least {self.min_samples:,} neighbours "
            f"(rho = {self.rho:.2f}, tau = {self.tau}, beta = {self.beta:g})."
        )


def cell_width(radius: float, eta: float, n_features: int) -> float:
    """Width of the histogram's cells.

    It is one part in a billion wider than in the paper, so that a ball that only touches a cell does not meet
    it, whatever the rounding.
    """
    return eta / 4 * radius / math.sqrt(n_features) * (1 + 1e-9)


def stencils_of(n_features: int, radius: float, eta: float) -> Stencils:
    """Cells that a ball of the radius can meet."""
    return Stencils(n_features, radius / cell_width(radius, eta, n_features))


@dataclass(frozen=True)
class _Levels:
    """Sum at which a part is reported, highest sum of a valley's floor, and least depth of a valley."""

    report: int
    floor: float
    depth: float


def guarantee_of(
    histogram: NoisyHistogram, stencils: Stencils, radius: float, min_samples: int, beta: float, valleys: bool
) -> tuple[Guarantee, _Levels]:
    """The guarantee of the spans, and the levels that ensure it. Depends on public numbers only."""
    d = stencils.n_features
    n_sums = histogram.grid.n_cells * stencils.parts**d
    tails = FALSE_SHARE * beta / n_sums, (1 - FALSE_SHARE) * beta / n_sums
    above, below = allowances(histogram, stencils.size(), tails)
    report = min_samples + above
    floor, depth = float(report), 1.0
    if valleys:
        floor = max(
            report + VALLEY_FLOOR * above, min_samples + VALLEY_FLOOR_DEVIATIONS * math.sqrt(min_samples)
        )
        depth = max(VALLEY_DEPTH * above, VALLEY_DEPTH_DEVIATIONS * math.sqrt(floor))
    tau = math.floor(floor) + 1 - min_samples + below if valleys else above + below
    rho = 1 + 2 * stencils.farthest() / stencils.radius
    return Guarantee(radius, min_samples, rho, tau, beta), _Levels(report, floor, depth)


def dbscan(
    histogram: NoisyHistogram, radius: float, min_samples: int, *, eta: float, beta: float, valleys: bool
) -> tuple[Regions, Guarantee]:
    """Dense regions of a noisy histogram whose cells have the width from `cell_width`."""
    d = len(histogram.grid.shape)
    stencils = stencils_of(d, radius, eta)
    guarantee, levels = guarantee_of(histogram, stencils, radius, min_samples, beta, valleys)
    cells, sums = large_sums(histogram, stencils, levels.report)
    scores = sums.astype(np.float64)
    shape = tuple(m * stencils.parts for m in histogram.grid.shape)
    offsets = near_offsets(d, stencils.radius * stencils.parts)
    highest = levels.floor + levels.depth if valleys else float(levels.report)
    tree = grow_peak_tree(cells, sums, shape, offsets, highest)
    labels = tree.clusters((tree.parents < 0) | (tree.heights - tree.saddles >= levels.depth))
    spread = max(noise_of_sum(histogram, stencils.size()), 1.0)
    borders = np.full(int(labels.max(initial=-1)) + 1, float(levels.report))
    bias = selection_bias(scores, labels, borders, spread, histogram.variance / stencils.parts**d)
    return measured_regions(histogram, stencils.parts, cells, labels, bias, CONFIDENCE), guarantee
