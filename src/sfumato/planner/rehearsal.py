"""A rehearsal: let an estimator ask its questions before there are rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from sfumato.budget import PricedPlan, Record
from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.profiles import CLUSTERS
from sfumato.cluster.shared.traits import Traits
from sfumato.curator import Noisy, Questions
from sfumato.domain import Domain, FloatArray, Grid
from sfumato.domain.partitions import Partition
from sfumato.public.density.geometry import column_units
from sfumato.public.density.histogram import NoisyHistogram

USUAL_SPREAD = 0.16  # of half the width of the domain, for one cluster; as in datasets.separated_gaussians
USUAL_MIXTURE = (
    0.2  # mean squared distance of a row from its centre in a category, at most 1/2; docs/budget.md
)


class _CellsAskedError(Exception):
    """An estimator asked for the counts of a grid. The rest of its run depends on them."""

    def __init__(self, step: str, grid: Grid, threshold: int | None) -> None:
        super().__init__()
        self.step, self.grid, self.threshold = step, grid, threshold


@dataclass(eq=False)
class Rehearsal(Questions):
    """Stands in for the curator: it answers with expected values, and stops at the counts of cells.

    Parameters
    ----------
    estimator : PrivateClusterer
    traits : Traits
        What the estimator states about itself.
    plan : PricedPlan
    domain : Domain
    n : float
        Expected rows.
    k : int
        Expected clusters.
    spread : float
        Standard deviation of a cluster's rows along each column, in measured units.
    """

    estimator: PrivateClusterer
    traits: Traits
    plan: PricedPlan
    domain: Domain
    n: float
    k: int
    spread: float

    @classmethod
    def of(cls, estimator: PrivateClusterer, n: float, d: int, k: int, spread: float | None) -> Rehearsal:
        """Rehearse an estimator with public parameters."""
        priced, domain = estimator.plan(d), estimator.domain(d).measured
        traits = estimator.traits(domain, k)
        return cls(estimator, traits, priced, domain, n, k, spread or _usual_spread(traits, domain, k))

    def with_parameters(self, estimator: PrivateClusterer) -> Rehearsal:
        """Rehearse the same method with other parameters, for the same plan."""
        return replace(self, estimator=estimator, traits=estimator.traits(self.domain, self.k))

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.domain.n_features

    @property
    def size(self) -> float:
        """Rows of a cluster."""
        return self.n / self.k

    @property
    def plain_share(self) -> float:
        """Share of the coordinates that are not those of a category."""
        return float(_is_plain(self.domain).mean())

    @property
    def plain_spread(self) -> float:
        """Spread along a coordinate that is not one of a category."""
        is_mixed = self.plain_share < 1
        return _plain_spread(self.traits, self.domain, self.k) if is_mixed else self.spread

    @property
    def lengths(self) -> FloatArray:
        """Length of one unit of each column: 1, or metres on a map."""
        return column_units(self.traits.metric, self.domain)

    def record(self, step: str) -> Record:
        """Record of one ask."""
        return self.plan.nominal(self.plan[step])

    def passes(self) -> int:
        """Passes over the rows: one for each ask, but a split and the sizes of its sides share one."""
        asks = {priced.step.name: priced.step.repeats for priced in self.plan.steps}
        shared = [name for name in asks if "splits" in name and name.replace("splits", "sizes") in asks]
        return sum(asks.values()) - sum(asks[name] for name in shared)

    def share_error(self) -> float | None:
        """Noise in the share of a level in the profile of a cluster, if the plan pays for profiles."""
        if CLUSTERS not in (priced.step.name for priced in self.plan.steps):
            return None
        return self.noise_std(CLUSTERS) / self.size

    def histogram(self) -> NoisyHistogram:
        """Histogram that the method will release, without its counts."""
        try:
            self.estimator.rehearse(self)
        except _CellsAskedError as asked:
            record, none = self.record(asked.step), np.zeros(0, dtype=np.int64)
            dense, scale = asked.threshold is None, float(record.scale)
            return NoisyHistogram(
                asked.grid, none, record.mechanism, scale, None if dense else none, asked.threshold or 0
            )
        raise AssertionError(f"{type(self.estimator).__name__} asks for no cells")

    def count(self, step: str) -> Noisy:
        """Answer with the expected number of rows."""
        return Noisy(np.array([round(self.n)], dtype=np.int64), self.record(step))

    def cells(self, step: str, partition: Partition) -> NoReturn:
        """Stop: all cells will be released."""
        assert isinstance(partition, Grid)
        raise _CellsAskedError(step, partition, None)

    def sparse_cells(self, step: str, grid: Grid, threshold: int) -> NoReturn:
        """Stop: cells above a threshold will be released."""
        raise _CellsAskedError(step, grid, threshold)


def _usual_spread(traits: Traits, domain: Domain, k: int) -> float:
    """Spread of a cluster when nothing better is known: k balls that fill a part of the domain.

    A category counts as one column. Its rows are at the corners of a simplex, far from any centre.
    """
    spread, is_plain = _plain_spread(traits, domain, k), _is_plain(domain)
    if is_plain.all():
        return spread
    # Of a simplex with corners a apart, rows are at most a / sqrt(2) from the middle, in quadratic mean.
    apart = sum(
        2 * float(domain.high[block.start]) ** 2 for block in domain.blocks if block.kind == "simplex"
    )
    squares = float(is_plain.sum()) * spread**2 + USUAL_MIXTURE * apart
    return math.sqrt(squares / domain.n_features)


def _plain_spread(traits: Traits, domain: Domain, k: int) -> float:
    """The same along a coordinate that is not one of a category."""
    is_plain = _is_plain(domain)
    if not is_plain.any():
        return 0.0
    half_widths = (domain.half_width * column_units(traits.metric, domain))[is_plain]
    n_columns = int(is_plain.sum()) + sum(block.kind == "simplex" for block in domain.blocks)
    # Balls fill a volume of cells; but distances, and with them the noise in sums, follow the widest column.
    are_cells = traits.cells is not None
    width = np.exp(np.log(half_widths).mean()) if are_cells else half_widths.max() * _root_mean(half_widths)
    return USUAL_SPREAD * float(width) / math.pow(k, 1 / n_columns)


def _root_mean(half_widths: FloatArray) -> float:
    """Root of the mean square, in units of the largest."""
    return math.sqrt(float(((half_widths / half_widths.max()) ** 2).mean()))


def _is_plain(domain: Domain) -> NDArray[np.bool_]:
    """Coordinates that are not those of a category."""
    found = np.ones(domain.n_features, dtype=np.bool_)
    for block in domain.blocks:
        found[block.start : block.stop] = block.kind != "simplex"
    return found
