"""The curator. Only it holds both an engine and a source of randomness.

It runs the steps of a priced plan and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.budget import PricedPlan, PricedStep, PrivacyStatement, Record, Sensitivity
from sfumato.curator.answers import (
    Noisy,
    NoisyActive,
    NoisyCells,
    NoisyLevels,
    NoisyMeans,
    NoisyMoments,
    NoisySplits,
    NoisySums,
    NoisyTerms,
)
from sfumato.curator.questions import MomentShape, Questions, SplitRule
from sfumato.domain import LATTICE_RADIUS, Domain, FloatArray, Grid, IntArray
from sfumato.domain.partitions import GaussianCells, Partition
from sfumato.domain.sparse import Sparse
from sfumato.errors import ParameterError, PlanError
from sfumato.private.aggregates.active_sums import ActiveSums
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.coverage import Coverage
from sfumato.private.aggregates.distances import Distances
from sfumato.private.aggregates.histograms import Histograms
from sfumato.private.aggregates.limbs import LimbSums, as_floats, carried
from sfumato.private.aggregates.mapped import Clipped
from sfumato.private.aggregates.moments import GroupedMoments, SoftMoments, WideMoments, is_wide
from sfumato.private.aggregates.nearest import NearestDistance, NearestSums
from sfumato.private.aggregates.profiles import ProfileCounts
from sfumato.private.aggregates.sparse_cells import SparseCells
from sfumato.private.aggregates.splits import Marginals
from sfumato.private.aggregates.sums import COUNT_WEIGHT, GroupedSums
from sfumato.private.aggregates.swaps import Swaps
from sfumato.private.engines.base import Engine
from sfumato.private.engines.levels import LevelEngine
from sfumato.private.engines.projected import projected
from sfumato.private.engines.terms import TermEngine
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace
from sfumato.private.mechanisms.selection import exponential, permute_and_flip
from sfumato.private.mechanisms.sparse_histogram import checked_histogram, sparse_histogram
from sfumato.private.mechanisms.thresholded import common_threshold, least_threshold, thresholded_counts
from sfumato.private.terms import TERM_WEIGHTS
from sfumato.progress import begin, reporter

Law: TypeAlias = tuple[int, str, Fraction, int]  # of a sparse histogram, see `checked_histogram`


class Curator(Questions):
    """Answers the questions of a plan with noise, and records every answer.

    An estimator asks in public terms and sees only the answers. Control flow depends on the plan and on
    earlier answers, never on rows.

    Parameters
    ----------
    engine : Engine
        Holds the rows.
    domain : Domain
        In the user's units.
    plan : PricedPlan
    entropy : Entropy

    Privacy
    -------
    Each answer is an aggregate of proved sensitivity plus exact discrete noise at the scale that the plan
    pays for. The whole run is the adaptive composition of its records.
    """

    def __init__(self, engine: Engine, domain: Domain, plan: PricedPlan, entropy: Entropy) -> None:
        self._engine = engine
        self.plan = plan
        self._entropy = entropy
        self._records: list[Record] = []
        self._narrowed = False
        self._view: tuple[tuple[Engine, Domain, FloatArray], Engine] | None = None
        self.space = domain

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The space in measured units, in which questions are asked and answered."""
        return self.space.measured

    @property
    def records(self) -> tuple[Record, ...]:
        """Every use of a mechanism so far."""
        return tuple(self._records)

    def statement(self) -> PrivacyStatement:
        """What was promised, and what was asked so far."""
        return PrivacyStatement(self.plan.budget, self.domain.unit, self.records, self._entropy.seeded)

    def narrow(self, domain: Domain) -> None:
        """Clip rows to a domain of released bounds from now on, or leave out those outside."""
        self.space = domain
        self._narrowed = True

    def describe(self, engine: Engine) -> None:
        """Read the same rows with the values of described columns from now on."""
        self._engine = engine

    def move(self, engine: Engine, domain: Domain, plan: PricedPlan) -> None:
        """Ask about other coordinates of the same rows from now on. What was asked must cost the same."""
        asked = {record.step for record in self._records}
        if plan.budget != self.plan.budget or any(plan[step] != self.plan[step] for step in asked):
            raise PlanError("the new plan must have the budget of the old one, and its steps so far")
        self._engine, self.space, self.plan = engine, domain, plan

    def count(self, step: str) -> Noisy:
        return self._release(step, RowCount())

    def cells(self, step: str, partition: Partition) -> Noisy:
        return self._release(step, CellCounts(partition))

    def sparse_cells(self, step: str, grid: Grid, threshold: int) -> NoisyCells:
        aggregate = SparseCells(grid)
        record = self._declare(step, aggregate.sensitivity, selection=False)
        public = checked_histogram(grid.n_cells, record.mechanism, record.scale, threshold)
        raw_cells, raw_counts = aggregate.pairs(self._fold(aggregate))
        cells, counts = self._passing(raw_cells, raw_counts, public)
        return NoisyCells(cells, counts, public[-1], record)

    def levels(self, step: str) -> NoisyLevels:
        if not isinstance(self._engine, LevelEngine):
            raise PlanError(f"step {step!r} asks for levels of a table whose levels are public")
        record = self._declare(step, self._engine.sensitivity, selection=False)
        threshold = least_threshold(record.delta, record.scale, record.sensitivity.coordinates)
        raw = self._engine.count()
        reporter()(1)
        passing, noisy_counts = thresholded_counts(raw.counts, record.scale, threshold, self._entropy)
        return NoisyLevels(*raw.by_column(passing, noisy_counts), threshold, record)

    def terms(self, step: str) -> NoisyTerms:
        engine = self._texts(step)
        record = self._declare(step, engine.found_sensitivity, selection=False)
        law = (record.scale, record.mechanism)
        threshold = common_threshold(record.delta, *law, TERM_WEIGHTS)
        texts, raw_weights = engine.weights()
        reporter()(1)
        passing, noisy = thresholded_counts(
            raw_weights, record.scale, threshold, self._entropy, record.mechanism
        )
        return NoisyTerms(tuple(texts.take(pa.array(passing)).to_pylist()), noisy, threshold, record)

    def terms_per_person(self, step: str, vocabulary: Sequence[str], most: int) -> Noisy:
        engine = self._texts(step)
        record = self._declare(step, Sensitivity(), selection=False)
        return self._noisy(record, engine.per_person(vocabulary, most))

    def term_counts(self, step: str, vocabulary: Sequence[str], max_terms: int) -> Noisy:
        engine = self._texts(step)
        record = self._declare(step, engine.counts_sensitivity(max_terms), selection=False)
        return self._noisy(record, engine.counts(vocabulary, max_terms))

    def _texts(self, step: str) -> TermEngine:
        if not isinstance(self._engine, TermEngine):
            raise PlanError(f"step {step!r} asks for terms of a table without texts")
        return self._engine

    def profiles(self, step: str, partition: Partition, edges: Sequence[FloatArray]) -> Noisy:
        return self._release(step, ProfileCounts(partition, self.domain.n_features, tuple(edges)))

    def histograms(self, step: str, edges: FloatArray) -> Noisy:
        return self._release(step, Histograms(edges))

    def distances(
        self,
        step: str,
        partition: Partition,
        origins: FloatArray,
        edges: FloatArray,
        projection: FloatArray | None = None,
        scales: FloatArray | None = None,
    ) -> Noisy:
        return self._release(step, Distances(partition, origins, edges, scales), projection)

    def sums(
        self,
        step: str,
        partition: Partition,
        origins: FloatArray,
        radii: FloatArray,
        projection: FloatArray | None = None,
    ) -> NoisySums:
        domain = self.domain if projection is None else None
        radii = np.maximum(radii, domain.least_radius) if domain else radii
        aggregate = GroupedSums(partition, origins, radii, domain)
        noisy, std = self._release_sums(step, aggregate, projection)
        return NoisySums(*aggregate.unpack(noisy), std / COUNT_WEIGHT, std * radii / LATTICE_RADIUS)

    def active_sums(self, step: str, partition: Partition, sparse: Sparse) -> NoisyActive:
        aggregate = ActiveSums(partition, sparse)
        noisy, std = self._release_sums(step, aggregate)
        return NoisyActive(*aggregate.unpack(noisy), std / COUNT_WEIGHT, std * sparse.radius / LATTICE_RADIUS)

    def moments(
        self,
        step: str,
        partition: Partition,
        origins: FloatArray,
        radii: FloatArray,
        shape: MomentShape,
        projection: FloatArray | None = None,
        *,
        soft: bool = False,
    ) -> NoisyMoments:
        aggregate = _moments(partition, origins, radii, shape, soft)
        noisy, std = self._release_sums(step, aggregate, projection)
        sizes, clipped, sums, seconds = aggregate.unpack(noisy)
        size_std, unit = std / COUNT_WEIGHT, std / LATTICE_RADIUS
        second_std = unit / aggregate.second_weight * radii**2
        return NoisyMoments(sizes, clipped, sums, size_std, unit * radii, seconds, second_std)

    def nearest(self, step: str, points: FloatArray, t: int) -> NoisyMeans:
        aggregate = NearestSums(self.domain, points, t)
        record = self._declare(step, aggregate.sensitivity, selection=False)
        noisy = self._noisy(record, aggregate.sums(self._fold(aggregate)))
        return NoisyMeans(aggregate.means(noisy.values), aggregate.steps / t, record)

    def nearest_distance(self, step: str, points: FloatArray, weights: IntArray, t: int) -> NoisyMeans:
        aggregate = NearestDistance(NearestSums(self.domain, points, t), weights)
        record = self._declare(step, aggregate.sensitivity, selection=False)
        noisy = self._noisy(record, aggregate.total(self._fold(aggregate)))
        unit = np.array([aggregate.unit])
        return NoisyMeans(noisy.values[:, None] * unit, unit, record)

    def splits(
        self,
        choice_step: str,
        size_step: str,
        partition: Partition,
        boxes: tuple[FloatArray, FloatArray],
        rule: SplitRule,
        noisy_sizes: IntArray,
    ) -> NoisySplits:
        choice = self._declare(choice_step, rule.sensitivity, selection=True)
        size = self._declare(size_step, Sensitivity(), selection=False)
        marginals = Marginals(partition, *boxes, rule.n_bins)
        raw_counts = self._fold(marginals) if marginals.partition.n_cells else marginals.zero()
        raw_scores = rule.scores(marginals, raw_counts, noisy_sizes)
        chosen = np.array([self._choose(choice, scores) for scores in raw_scores], dtype=np.int64)
        noisy_sides = self._noisy(size, marginals.sides(raw_counts, chosen))
        return NoisySplits(*marginals.split_at(chosen), noisy_sides.values, noisy_sides.std)

    def select(self, step: str, scores: Aggregate, projection: FloatArray | None = None) -> int:
        """Index of a high score, selected privately. The scores themselves stay secret."""
        record = self._declare(step, scores.sensitivity, selection=True)
        return self._choose(record, self._fold(scores, projection))

    def cover(
        self,
        step: str,
        candidates: FloatArray,
        chosen: FloatArray,
        radius: float,
        projection: FloatArray | None = None,
    ) -> int:
        return self.select(step, Coverage(candidates, chosen, radius), projection)

    def swap(
        self,
        step: str,
        centers: FloatArray,
        candidates: FloatArray,
        radius: float,
        projection: FloatArray | None = None,
    ) -> tuple[int, int] | None:
        swap = self.select(step, Swaps(centers, candidates, radius), projection)
        n_candidates = len(candidates)
        return None if swap == len(centers) * n_candidates else divmod(swap, n_candidates)

    def _release(self, step: str, aggregate: Aggregate, projection: FloatArray | None = None) -> Noisy:
        record = self._declare(step, aggregate.sensitivity, selection=False)
        return self._noisy(record, self._fold(aggregate, projection))

    def _release_sums(
        self, step: str, aggregate: LimbSums, projection: FloatArray | None = None
    ) -> tuple[FloatArray, float]:
        """Noisy entries and the standard deviation of their noise."""
        record = self._declare(step, aggregate.sensitivity, selection=False)
        noisy = self._noisy_limbs(record, self._fold(aggregate, projection))
        return as_floats(noisy.values), noisy.std

    def _fold(self, aggregate: Aggregate, projection: FloatArray | None = None) -> IntArray:
        if projection is not None:
            state = self._projected(projection).fold(aggregate)
        else:
            state = self._engine.fold(Clipped(aggregate, self.space) if self._narrowed else aggregate)
        reporter()(1.0)
        return state

    def _projected(self, projection: FloatArray) -> Engine:
        """The rows along public directions: those of the last question, or new ones."""
        key = self._engine, self.space, projection
        if self._view is None or any(a is not b for a, b in zip(self._view[0], key, strict=True)):
            self._view = key, projected(self._engine, projection, self.space if self._narrowed else None)
        return self._view[1]

    def _noisy(self, record: Record, raw: IntArray) -> Noisy:
        noisy = self._noise(record, raw)
        noisy += raw
        return Noisy(noisy, record)

    def _noisy_limbs(self, record: Record, raw: IntArray) -> Noisy:
        raw_low, raw_high = raw
        # High limbs are exact: only after the carry do both depend on nothing but the noisy entry.
        return Noisy(carried(np.stack([raw_low + self._noise(record, raw_low), raw_high])), record)

    def _noise(self, record: Record, raw: IntArray) -> IntArray:
        sample = discrete_gaussian if record.mechanism == "discrete Gaussian" else discrete_laplace
        return sample(record.scale, raw.size, self._entropy).reshape(raw.shape)

    def _passing(self, raw_cells: IntArray, raw_counts: IntArray, law: Law) -> tuple[IntArray, IntArray]:
        return sparse_histogram(raw_cells, raw_counts, *law, self._entropy)

    def _choose(self, record: Record, raw_scores: IntArray) -> int:
        choose = exponential if record.mechanism == "exponential" else permute_and_flip
        return choose(raw_scores, 1 / record.scale, self._entropy)

    def _declare(self, step: str, sensitivity: Sensitivity, *, selection: bool) -> Record:
        """Record an ask, or raise if the plan does not pay for it. No row has been read by then."""
        priced = self.plan[step]
        asked = sum(record.step == step for record in self._records)
        if asked >= priced.step.repeats:
            raise PlanError(f"step {step!r} was declared for {priced.step.repeats} ask(s), all used up")
        if selection != priced.step.selection:
            declared = "a selection" if priced.step.selection else "additive noise"
            raise PlanError(f"step {step!r} was declared as {declared}")
        record = priced.record(priced.step.for_unit(sensitivity, self.plan.max_rows))
        self._check_sensitivity(priced, record)
        self._records.append(record)
        begin(step)
        return record

    def _check_sensitivity(self, priced: PricedStep, record: Record) -> None:
        # A single entry is accounted by its exact discrete law, which depends on the sensitivity itself. For
        # several, the cost depends only on the ratio of sensitivity to scale, so a smaller one is fine.
        declared = self.plan.nominal(priced).sensitivity
        actual = record.sensitivity
        fits = actual == declared if declared.coordinates == 1 else actual.coordinates <= declared.coordinates
        if not fits:
            raise PlanError(f"step {priced.step.name!r} was declared with {declared}, asked with {actual}")


def _moments(
    partition: Partition, origins: FloatArray, radii: FloatArray, shape: MomentShape, soft: bool
) -> GroupedMoments | SoftMoments | WideMoments:
    if not soft:
        kind = WideMoments if is_wide(origins.shape[-1], shape, len(origins)) else GroupedMoments
        return kind(partition, origins, radii, shape)
    if not isinstance(partition, GaussianCells):
        name = type(partition).__name__
        raise ParameterError(f"`partition` must be GaussianCells if soft=True, got {name}. Use soft=False")
    return SoftMoments(partition, origins, radii, shape)
