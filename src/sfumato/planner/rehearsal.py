"""What a fit will ask, found by letting an estimator ask before there are rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn, cast

import numpy as np

from sfumato.budget import PricedPlan, Record
from sfumato.cluster import MorseClustering, PrivateClusterer
from sfumato.curator import Curator
from sfumato.curator.answers import Noisy
from sfumato.domain import LATTICE_RADIUS, Domain, FloatArray, Grid
from sfumato.private.aggregates.sums import COUNT_WEIGHT
from sfumato.private.mechanisms import threshold_for
from sfumato.public.density.geometry import column_units
from sfumato.public.density.histogram import NoisyHistogram

USUAL_SPREAD = 0.16  # of half the width of the domain, for one cluster; as in datasets.separated_gaussians
UNIT_BOX = (-1.0, 1.0)  # stands for bounds that are bought: lengths are then in half widths


class _CellsAskedError(Exception):
    """An estimator has asked for the counts of a grid: the rest of its run depends on them."""

    def __init__(self, grid: Grid, threshold: int | None) -> None:
        super().__init__()
        self.grid, self.threshold = grid, threshold


@dataclass(frozen=True)
class Rehearsal:
    """A stand-in for the curator: it answers with expected values, and stops at the counts of cells.

    Parameters
    ----------
    method : PrivateClusterer
        What asks: the base of `MorseClustering`, otherwise the estimator itself.
    plan : PricedPlan
    domain : Domain
    n : float
        Expected rows.
    k : int
        Expected clusters.
    spread : float
        Standard deviation of a cluster's rows along each column.
    """

    method: PrivateClusterer
    plan: PricedPlan
    domain: Domain
    n: float
    k: int
    spread: float

    @classmethod
    def of(cls, estimator: PrivateClusterer, n: float, d: int, k: int, spread: float | None) -> Rehearsal:
        """Rehearse an estimator with public parameters."""
        priced = estimator.plan(d)
        domain = estimator._domain(d)
        if estimator._private_bounds:
            domain = Domain.from_bounds(UNIT_BOX, d, domain.unit)
        method = estimator
        if isinstance(estimator, MorseClustering):
            method = estimator._checked_base(domain)
        return cls(method, priced, domain, n, k, spread or usual_spread(method, domain, k))

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.domain.n_features

    @property
    def size(self) -> float:
        """Rows of a cluster."""
        return self.n / self.k

    @property
    def steps(self) -> set[str]:
        """Names of the steps."""
        return {priced.step.name for priced in self.plan.steps}

    def record(self, step: str) -> Record:
        """Record of one ask."""
        return self.plan.nominal(self.plan[step])

    def noise_std(self, step: str) -> float:
        """Noise in each value."""
        return self.record(step).noise_std

    def noise_of_sums(self, step: str) -> float:
        """Noise in each coordinate of a sum, in units of the clipping radius."""
        return self.noise_std(step) / LATTICE_RADIUS

    def noise_of_sizes(self, step: str) -> float:
        """Noise in the size of a group whose sum is released, too."""
        return self.noise_std(step) / COUNT_WEIGHT

    def passes(self) -> int:
        """Passes over the rows: one for each ask, but a split and the sizes of its sides share one."""
        names, asks = self.steps, {p.step.name: p.step.repeats for p in self.plan.steps}
        shared = [name for name in names if "splits" in name and name.replace("splits", "sizes") in names]
        return sum(asks.values()) - sum(asks[name] for name in shared)

    def curator(self) -> Curator:
        """Pass for a curator, as far as questions go that depend on public numbers."""
        return cast(Curator, self)

    def histogram(self) -> NoisyHistogram:
        """Histogram that the method will release, without its counts."""
        try:
            self.method._cluster(self.curator())
        except _CellsAskedError as asked:
            step = "grid" if "grid" in self.steps else "cells"
            record, none = self.record(step), np.zeros(0, dtype=np.int64)
            dense, scale = asked.threshold is None, float(record.scale)
            return NoisyHistogram(
                asked.grid, none, record.mechanism, scale, None if dense else none, asked.threshold or 0
            )
        raise AssertionError(f"{type(self.method).__name__} asks for no cells")

    def count(self, step: str) -> Noisy:
        """Expected number of rows."""
        return Noisy(np.array([round(self.n)], dtype=np.int64), self.record(step))

    def cells(self, step: str, partition: Grid) -> NoReturn:
        """Stop: all cells are released."""
        raise _CellsAskedError(partition, None)

    def sparse_cells(self, step: str, grid: Grid, threshold: int) -> NoReturn:
        """Stop: cells above a threshold are released."""
        raise _CellsAskedError(grid, threshold)

    def threshold_for(self, step: str, partition: Grid, n_expected: float) -> int:
        """As the curator has it."""
        record = self.record(step)
        return threshold_for(partition.n_cells, record.mechanism, record.scale, n_expected)


def lengths(method: PrivateClusterer, domain: Domain) -> FloatArray:
    """Length of one unit of each column: that of the column itself, or in metres on a map."""
    return column_units(getattr(method, "metric", "euclidean"), domain)


def usual_spread(method: PrivateClusterer, domain: Domain, k: int) -> float:
    """Spread of a cluster when nothing better is known: k balls that fill a part of the domain."""
    half_widths = domain.half_width * lengths(method, domain)
    return USUAL_SPREAD * float(np.exp(np.log(half_widths).mean())) / math.pow(k, 1 / domain.n_features)
