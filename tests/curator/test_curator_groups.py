"""The curator over groups of rows: cells, distances, sums, moments and splits of public partitions."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.budget.records import Sensitivity
from sfumato.curator import (
    Curator,
    NoisyMoments,
    NoisySplits,
    NoisySums,
    moments_sensitivity,
    nearest_distance_sensitivity,
    nearest_sensitivity,
    sums_sensitivity,
)
from sfumato.domain import LATTICE_RADIUS, Domain
from sfumato.domain.partitions import GaussianCells, Tree, Voronoi
from sfumato.errors import ParameterError, PlanError
from sfumato.private.aggregates.distances import Distances
from sfumato.private.aggregates.limbs import LIMB_BITS
from sfumato.private.aggregates.moments import WIDE, GroupedMoments, SoftMoments, WideMoments
from sfumato.private.aggregates.splits import Marginals, SplitRule
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy

DOMAIN = Domain.from_bounds((-1, 1), 2)
CENTERS = np.array([[-0.5, -0.5], [0.5, 0.25], [0.0, 0.75]])
VORONOI, RADII, EDGES = Voronoi(CENTERS), np.array([3.0, 2.0, 4.0]), np.array([0.1, 0.2, 0.4, 0.8])
MIXTURE = GaussianCells.of(np.full(3, 1 / 3), CENTERS, np.stack([np.eye(2) / 25] * 3))
TREE = Tree.root().split(np.array([0]), np.array([0]), np.array([0.0]))
BOXES = np.array([[-1.0, -1.0], [0.0, -1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
RULE = SplitRule.of(16, t=0.3, q=1 / 12, alpha=5.0, interval=None, width_bonus=0.1)
PLAN = Plan(
    Step("cells", share="1/10"),
    Step("distances", share="1/10"),
    Step("sums", share="2/10", sensitivity=sums_sensitivity(DOMAIN)),
    Step("moments", share="1/10", sensitivity=moments_sensitivity(DOMAIN, "full")),
    Step("shares", share="1/10", sensitivity=moments_sensitivity(DOMAIN, "diag", soft=True, n_components=3)),
    Step("choice", share="2/10", sensitivity=RULE.sensitivity, selection=True),
    Step("sides", share="2/10"),
)
RAW_MOMENTS = GroupedMoments(VORONOI, CENTERS, RADII, "full"), SoftMoments(MIXTURE, CENTERS, RADII, "diag")
BUDGETS = [Budget(1), Budget(1, 1e-6), Budget(rho="1/2")]
ENORMOUS = [Budget(10**12), Budget(rho=10**24)]
ASKS = {
    "cells": lambda asked: asked.cells("cells", VORONOI),
    "distances": lambda asked: asked.distances("distances", VORONOI, CENTERS, EDGES),
    "sums": lambda asked: asked.sums("sums", VORONOI, CENTERS, RADII),
    "moments": lambda asked: asked.moments("moments", VORONOI, CENTERS, RADII, "full"),
    "shares": lambda asked: asked.moments("shares", MIXTURE, CENTERS, RADII, "diag", soft=True),
    "choice": lambda asked: asked.splits("choice", "sides", TREE, BOXES, RULE, np.array([150, 150])),
}


class Unread:
    """An engine whose rows must not be read."""

    n_features = 2

    def fold(self, aggregate):
        raise AssertionError("a row was read")


class Empty:
    """An engine over no rows."""

    n_features = 2

    def fold(self, aggregate):
        return aggregate.zero()


def curator(engine=None, plan=PLAN, budget=BUDGETS[0], max_rows=1, seed=0):
    return Curator(engine or Unread(), DOMAIN, calibrate(plan, budget, max_rows), Entropy(seed))


def over(rows, **options):
    return curator(MemoryEngine(rows, DOMAIN), **options)


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), DOMAIN.clip(rows))


def blobs(n=300):
    rng = np.random.default_rng(0)
    return CENTERS[rng.integers(3, size=n)] + rng.normal(scale=0.1, size=(n, 2))


@pytest.mark.parametrize("ask", ASKS)
def test_undeclared_steps_are_refused_before_a_row_is_read(ask):
    asked = curator(plan=Plan(Step("other", share=1)))
    with pytest.raises(PlanError, match="is not in the plan"):
        ASKS[ask](asked)
    assert asked.records == ()


@pytest.mark.parametrize("ask", ASKS)
def test_a_step_is_asked_once(ask):
    asked = curator(Empty())
    ASKS[ask](asked)
    asked._engine = Unread()
    with pytest.raises(PlanError, match="used up"):
        ASKS[ask](asked)


def test_both_steps_of_a_split_are_checked_before_a_row_is_read():
    sizes = np.array([1, 1])
    for steps in (("choice", "nothing"), ("nothing", "sides"), ("sides", "choice"), ("choice", "choice")):
        asked = curator()
        with pytest.raises(PlanError):
            asked.splits(*steps, TREE, BOXES, RULE, sizes)
        assert len(asked.records) <= 1  # a choice may be charged for nothing, never the reverse


def test_a_rule_must_be_the_declared_one():
    for other in (
        replace(RULE, emptiness=RULE.emptiness + 1),
        replace(RULE, tail_slope=RULE.tail_slope + 1),
        replace(RULE, tail_slope=RULE.tail_slope - 1),
    ):
        asked = curator()
        with pytest.raises(PlanError, match="was declared with"):
            asked.splits("choice", "sides", TREE, BOXES, other, np.array([1, 1]))
        assert asked.records == ()


def test_sums_of_more_columns_than_declared():
    asked = curator()
    with pytest.raises(PlanError, match="was declared with"):
        asked.sums("sums", Voronoi(np.zeros((2, 3))), np.zeros((2, 3)), np.ones(2))
    assert asked.records == ()


def test_moments_of_more_entries_than_declared():
    """More columns, a fuller shape, or rows shared where they were to be assigned."""
    wide = np.zeros((3, 3))
    for ask in (
        lambda asked: asked.moments("moments", Voronoi(wide), wide, RADII, "full"),
        lambda asked: asked.moments("moments", MIXTURE, CENTERS, RADII, "full", soft=True),
        lambda asked: asked.moments("shares", MIXTURE, CENTERS, RADII, "full", soft=True),
        lambda asked: asked.moments("sums", VORONOI, CENTERS, RADII, "spherical"),
    ):
        asked = curator()
        with pytest.raises(PlanError, match="was declared with"):
            ask(asked)
        assert asked.records == ()


def test_only_a_mixture_can_share_rows():
    asked = curator()
    with pytest.raises(ParameterError, match=r"^`partition` must be GaussianCells .* got Voronoi"):
        asked.moments("shares", VORONOI, CENTERS, RADII, "diag", soft=True)
    assert asked.records == ()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("max_rows", [1, 4])
def test_records_say_what_ran(budget, max_rows):
    asked = over(blobs(), budget=budget, max_rows=max_rows)
    for ask in ASKS.values():
        ask(asked)
    assert asked.records == calibrate(PLAN, budget, max_rows).records()
    sensitivity = {record.step: record.sensitivity for record in asked.records}
    assert sensitivity["choice"] == RULE.sensitivity.times(max_rows)
    assert sensitivity["sums"] == GroupedSums.sensitivity_in(2).times(max_rows)
    assert sensitivity["moments"] == GroupedMoments.sensitivity_in(2, "full").times(max_rows)
    assert sensitivity["shares"] == SoftMoments.sensitivity_in(2, "diag", 3).times(max_rows)
    assert all(sensitivity[step] == Sensitivity().times(max_rows) for step in ("cells", "distances", "sides"))


@pytest.mark.parametrize("budget", BUDGETS)
def test_shapes_and_types(budget):
    asked = over(blobs(), budget=budget)
    cells, distances, sums, moments, shares, splits = (ask(asked) for ask in ASKS.values())
    assert (cells.values.shape, distances.values.shape) == ((3,), (5,))
    assert cells.values.dtype == distances.values.dtype == np.int64
    assert isinstance(sums, NoisySums)
    assert (sums.sizes.shape, sums.sums.shape, sums.sum_std.shape) == ((3,), (3, 2), (3,))
    for released, shape in ((moments, (3, 2, 2)), (shares, (3, 2))):
        assert isinstance(released, NoisyMoments)
        assert (released.sizes.shape, released.clipped.shape, released.sums.shape) == ((3,), (3,), (3, 2))
        assert released.seconds.shape == shape
        assert (released.sum_std.shape, released.second_std.shape) == ((3,), (3,))
    assert (moments.seconds == moments.seconds.swapaxes(1, 2)).all()
    assert isinstance(splits, NoisySplits)
    assert (splits.columns.shape, splits.thresholds.shape, splits.sizes.shape) == ((2,), (2,), (2, 2))
    assert splits.columns.dtype == splits.sizes.dtype == np.int64
    assert (splits.thresholds > BOXES[0][[0, 1], splits.columns]).all()
    assert (splits.thresholds < BOXES[1][[0, 1], splits.columns]).all()


class Doubled(MemoryEngine):
    """An engine over 2^32 copies of its rows."""

    def fold(self, aggregate):
        state = super().fold(aggregate)
        for _ in range(32):
            state = aggregate.merge(state, state)
        return state


@pytest.mark.parametrize("budget", BUDGETS)
def test_sums_of_a_trillion_rows_are_right(budget):
    """300 rows, 2^32 times each: sizes, means and second moments are those of the rows."""
    rows = blobs()
    asked = curator(Doubled(rows, DOMAIN), budget=budget)
    exact = over(rows, budget=ENORMOUS[0])
    for name in ("sums", "moments", "shares"):
        found, expected = ASKS[name](asked), ASKS[name](exact)
        assert found.sizes == pytest.approx(expected.sizes * 2.0**32, rel=1e-4)
        means = found.sums / found.sizes[:, None]
        assert means == pytest.approx(expected.sums / expected.sizes[:, None], abs=1e-4)
        if name != "sums":
            seconds = (answer.seconds.T / answer.sizes for answer in (found, expected))
            assert next(seconds) == pytest.approx(next(seconds), abs=1e-4)


@pytest.mark.parametrize("budget", BUDGETS)
def test_both_limbs_are_those_of_the_noisy_sum(budget):
    """Raw limbs close to a carry: whether the exact sum is beyond it must not show in the high limb."""
    asked = over(blobs(), budget=budget)
    record, half = asked._declare("cells", Sensitivity(), selection=False), 2 ** (LIMB_BITS - 1)
    low, high = asked._noisy_limbs(record, np.array([[half - 1] * 50, [0] * 50])).values
    assert (low < half).all()
    assert set(high) == {0, 1}
    assert ((low > 0) == (high == 0)).all()


@pytest.mark.parametrize("budget", ENORMOUS)
def test_an_enormous_budget_gives_the_raw_answers(budget):
    rows = blobs()
    asked = over(rows, budget=budget)
    cells, distances, sums, moments, shares, splits = (ask(asked) for ask in ASKS.values())
    groups = VORONOI.index(DOMAIN.clip(rows))
    assert cells.values.tolist() == np.bincount(groups, minlength=3).tolist()
    assert (distances.values == fold(Distances(VORONOI, CENTERS, EDGES), rows)).all()
    raw = GroupedSums(VORONOI, CENTERS, RADII)
    sizes, clipped, displacements = raw.unpack(fold(raw, rows)[0])
    assert sums.sizes == pytest.approx(sizes, rel=1e-6)
    assert sums.clipped == pytest.approx(clipped, abs=1e-4)
    assert sums.sums == pytest.approx(displacements, rel=1e-6, abs=1e-6)
    means = [DOMAIN.clip(rows)[groups == g].mean(axis=0) for g in range(3)]
    assert CENTERS + sums.sums / sums.sizes[:, None] == pytest.approx(np.array(means), abs=1e-6)
    for released, raw in zip((moments, shares), RAW_MOMENTS, strict=True):
        found = released.sizes, released.clipped, released.sums, released.seconds
        for noisy, exact in zip(found, raw.unpack(fold(raw, rows)[0]), strict=True):
            assert noisy == pytest.approx(exact, rel=1e-5, abs=1e-4)
    marginals = Marginals(TREE, *BOXES, RULE.n_bins)
    raw_counts = fold(marginals, rows)
    scores = RULE.scores(marginals, raw_counts, np.array([150, 150]))
    chosen = scores[[0, 1], numbers(marginals, splits)]
    assert (chosen == scores.max(axis=1)).all()  # another split of the same score may win
    halves = TREE.split(np.array([0, 1]), splits.columns, splits.thresholds).index(DOMAIN.clip(rows))
    assert splits.sizes.T.ravel().tolist() == np.bincount(halves, minlength=4).tolist()
    assert splits.sizes.sum(axis=1).tolist() == np.bincount(TREE.index(DOMAIN.clip(rows))).tolist()


def numbers(marginals, splits):
    """Number of the split of each group, from its column and threshold."""
    low, high = marginals.low[[0, 1], splits.columns], marginals.high[[0, 1], splits.columns]
    bins = np.rint((splits.thresholds - low) / (high - low) * marginals.n_bins).astype(int) - 1
    return splits.columns * (marginals.n_bins - 1) + bins


MANY = 200
CROWD = Voronoi(np.random.default_rng(0).uniform(-1, 1, size=(MANY, 2)))


@pytest.mark.parametrize("budget", BUDGETS)
def test_noise_of_the_stated_size_is_in_sums(budget):
    """Power: a scale that is 30% off is seen, and a missing noise at once."""
    plan = Plan(Step("sums", share=1, sensitivity=sums_sensitivity(DOMAIN), repeats=5))
    asked = curator(Empty(), plan, budget)
    radii = np.linspace(0.1, 3.0, MANY)
    released = [asked.sums("sums", CROWD, CROWD.centers, radii) for _ in range(5)]
    sizes = np.concatenate([one.sizes for one in released]) / released[0].size_std
    sums = np.concatenate([(one.sums / one.sum_std[:, None]).ravel() for one in released])
    for noise in (sizes, sums):
        assert abs(noise.mean()) < 5 / math.sqrt(len(noise))
        assert 0.8 < noise.std() < 1.2
    assert released[0].sum_std == pytest.approx(radii * asked.noise_of_sums("sums"))
    assert len(set(sums.tolist())) > 0.99 * len(sums)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
@pytest.mark.parametrize("soft", [False, True])
def test_noise_of_the_stated_size_is_in_moments(budget, shape, soft):
    """Power: a scale that is 30% off is seen in every block, and so is a draw that is used twice."""
    crowd = GaussianCells(np.zeros(MANY), CROWD.centers, np.stack([np.eye(2)] * MANY))
    sensitivity = moments_sensitivity(DOMAIN, shape, soft=soft, n_components=MANY)
    asked = curator(Empty(), Plan(Step("moments", share=1, sensitivity=sensitivity, repeats=5)), budget)
    radii = np.linspace(0.1, 3.0, MANY)
    released = [asked.moments("moments", crowd, CROWD.centers, radii, shape, soft=soft) for _ in range(5)]
    upper = np.triu_indices(2)
    seconds = [
        one.seconds[:, *upper] if shape == "full" else one.seconds.reshape(MANY, -1) for one in released
    ]
    sizes = np.concatenate([[one.sizes, one.clipped] for one in released]).ravel() / released[0].size_std
    sums = np.concatenate([(one.sums / one.sum_std[:, None]).ravel() for one in released])
    scaled = np.concatenate([(one / released[0].second_std[:, None]).ravel() for one in seconds])
    for noise in (sizes, sums, scaled):
        assert abs(noise.mean()) < 5 / math.sqrt(len(noise))
        assert 0.8 < noise.std() < 1.2
        assert len(set(noise.tolist())) > 0.99 * len(noise)
    assert released[0].sum_std == pytest.approx(radii * asked.noise_of_sums("moments"))
    assert released[0].second_std == pytest.approx(radii**2 * asked.noise_of_sums("moments"))


@pytest.mark.parametrize("budget", BUDGETS)
def test_noise_of_the_stated_size_is_in_the_sides(budget):
    plan = Plan(
        Step("choice", share="1/2", sensitivity=RULE.sensitivity, selection=True),
        Step("sides", share="1/2"),
    )
    asked = curator(Empty(), plan, budget)
    boxes = np.full((MANY, 2), -1.0), np.ones((MANY, 2))
    released = asked.splits("choice", "sides", CROWD, boxes, RULE, np.full(MANY, 100))
    noise = released.sizes.ravel() / released.size_std
    assert released.size_std == asked.noise_std("sides")
    assert abs(noise.mean()) < 5 / math.sqrt(len(noise))
    assert 0.8 < noise.std() < 1.2
    assert len(set(released.sizes.ravel().tolist())) > 5


@pytest.mark.parametrize("budget", BUDGETS)
def test_splits_of_no_rows_are_uniform(budget):
    """Without a width bonus all scores are equal: the choice knows nothing that is not in the rows."""
    rule = SplitRule.of(5, t=0.3, q=1 / 12, alpha=5.0, interval=None, width_bonus=0.0)
    plan = Plan(
        Step("choice", share="1/2", sensitivity=rule.sensitivity, selection=True),
        Step("sides", share="1/2"),
    )
    boxes = np.full((MANY, 2), -1.0), np.ones((MANY, 2))
    released = curator(Empty(), plan, budget).splits(
        "choice", "sides", CROWD, boxes, rule, np.ones(MANY, int)
    )
    bins = np.rint((released.thresholds + 1) / 2 * 5).astype(int) - 1
    counts = np.bincount(released.columns * 4 + bins, minlength=8)
    assert ((counts - MANY / 8) ** 2 / (MANY / 8)).sum() < 41  # chi-squared with 7 degrees: beyond 1e-6


@pytest.mark.parametrize(("budget", "most"), [(Budget(1e-3), 0.5), (Budget(rho=1e-7), 0.5)])
def test_a_small_budget_does_not_choose_the_best_split(budget, most):
    marginals = Marginals(TREE, *BOXES, RULE.n_bins)
    rows = blobs()
    scores = RULE.scores(marginals, fold(marginals, rows), np.array([150, 150]))
    released = [ASKS["choice"](over(rows, budget=budget, seed=seed)) for seed in range(40)]
    best = [scores[0, numbers(marginals, one)[0]] == scores[0].max() for one in released]
    assert np.mean(best) < most


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_good_budget_splits_two_clusters(budget):
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal((0, y), 0.08, (3000, 2)) for y in (-0.5, 0.5)])
    boxes = np.array([[-1.0, -1.0]]), np.array([[1.0, 1.0]])
    released = over(rows, budget=budget).splits("choice", "sides", Tree.root(), boxes, RULE, np.array([6000]))
    assert released.columns.tolist() == [1]
    assert abs(released.thresholds[0]) <= 0.25
    assert released.sizes[0] == pytest.approx([3000, 3000], abs=20 * released.size_std)


def test_rows_are_read_once_for_choices_and_sizes():
    class Counting(Empty):
        folds = 0

        def fold(self, aggregate):
            Counting.folds += 1
            return aggregate.zero()

    ASKS["choice"](curator(Counting()))
    assert Counting.folds == 1


class Watched(MemoryEngine):
    """An engine over rows that remembers what was asked and what shape it gave back."""

    def fold(self, aggregate):
        state = super().fold(aggregate)
        LOG.append((type(aggregate), aggregate.sensitivity, state.shape, state.dtype))
        return state


LOG = []
NEIGHBOURS = {
    "empty and one row": (np.empty((0, 2)), np.zeros((1, 2))),
    "one more far outlier": (np.zeros((5, 2)), np.concatenate([np.zeros((5, 2)), [[1e300, -1e300]]])),
    "one more duplicate": (np.full((9, 2), 0.5), np.full((10, 2), 0.5)),
}
every_neighbour = pytest.mark.parametrize("name", NEIGHBOURS)


@every_neighbour
@pytest.mark.parametrize("budget", BUDGETS)
def test_control_flow_is_the_same_for_neighbours(name, budget):
    traces = []
    for table in NEIGHBOURS[name]:
        LOG.clear()
        asked = curator(Watched(table, DOMAIN), budget=budget)
        answers = [ask(asked) for ask in ASKS.values()]
        values = [value for answer in answers for value in vars(answer).values()]
        shapes = [(np.shape(value), np.asarray(value).dtype) for value in values]
        stds = [getattr(answer, "size_std", None) for answer in answers]
        traces.append((list(LOG), shapes, stds, asked.records))
    assert traces[0] == traces[1]


@every_neighbour
def test_neighbours_with_the_same_noise_differ_as_their_raw_answers(name):
    """Nothing else is in what is released: the noise is drawn without a look at the rows."""
    for ask in ("cells", "distances"):
        one, other = (ASKS[ask](over(table)).values for table in NEIGHBOURS[name])
        assert np.abs(one - other).sum() == 1
    one, other = (ASKS["sums"](over(table)) for table in NEIGHBOURS[name])
    raw = GroupedSums(VORONOI, CENTERS, RADII)
    sizes, clipped, sums = raw.unpack((fold(raw, NEIGHBOURS[name][1]) - fold(raw, NEIGHBOURS[name][0]))[0])
    assert other.sizes - one.sizes == pytest.approx(sizes, abs=1e-6)
    assert other.clipped - one.clipped == pytest.approx(clipped, abs=1e-6)
    assert other.sums - one.sums == pytest.approx(sums, abs=1e-6)
    for ask, raw in zip(("moments", "shares"), RAW_MOMENTS, strict=True):
        one, other = (ASKS[ask](over(table)) for table in NEIGHBOURS[name])
        change = raw.unpack((fold(raw, NEIGHBOURS[name][1]) - fold(raw, NEIGHBOURS[name][0]))[0])
        assert other.sizes - one.sizes == pytest.approx(change[0], abs=1e-6)
        assert other.clipped - one.clipped == pytest.approx(change[1], abs=1e-6)
        assert other.sums - one.sums == pytest.approx(change[2], abs=1e-6)
        assert other.seconds - one.seconds == pytest.approx(change[3], abs=1e-6)


@pytest.mark.parametrize("noisy_sizes", [[-(10**6), 0], [1, 10**9]])
@pytest.mark.parametrize("budget", BUDGETS)
def test_any_released_size_is_accepted(noisy_sizes, budget):
    """A released size may be negative or far too large: it is a public number like any other."""
    for table in (np.empty((0, 2)), blobs()):
        asked = over(table, budget=budget)
        released = asked.splits("choice", "sides", TREE, BOXES, RULE, np.array(noisy_sizes))
        assert released.sizes.shape == (2, 2)


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_two_sides_of_a_split_get_noise_of_their_own(budget):
    """Power: with one draw for both the correlation is 1, and the difference of the sides is exact."""
    plan = Plan(
        Step("choice", share="1/2", sensitivity=RULE.sensitivity, selection=True),
        Step("sides", share="1/2"),
    )
    boxes = np.full((MANY, 2), -1.0), np.ones((MANY, 2))
    released = curator(Empty(), plan, budget).splits(
        "choice", "sides", CROWD, boxes, RULE, np.ones(MANY, int)
    )
    assert abs(np.corrcoef(released.sizes.T)[0, 1]) < 5 / math.sqrt(MANY)


N_MEANS = 800
NEAREST = {
    "rows": (nearest_sensitivity(DOMAIN, 3), lambda asked: asked.nearest("nearest", CENTERS, 4)),
    "distance": (
        nearest_distance_sensitivity(DOMAIN, 6),
        lambda asked: asked.nearest_distance("nearest", CENTERS, np.array([1, 2, 3]), 4),
    ),
}


@pytest.mark.parametrize("budget", [Budget(N_MEANS), Budget(rho=N_MEANS)])
@pytest.mark.parametrize("name", NEAREST)
def test_noise_of_the_stated_size_is_in_means_of_the_nearest(name, budget):
    """Power: a scale that is 30% off is seen, and a missing noise at once."""
    sensitivity, ask = NEAREST[name]
    plan = Plan(Step("nearest", share=1, sensitivity=sensitivity, repeats=N_MEANS))
    asked = over(blobs(50), plan=plan, budget=budget)
    released = [ask(asked) for _ in range(N_MEANS)]
    noise = np.array([one.means for one in released]) / released[0].units  # (N_MEANS, n, d)
    assert noise.std(axis=0) == pytest.approx(released[0].record.noise_std, rel=0.15)
    first, second = noise[:-1, 0, 0], noise[1:, 0, 0]
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(N_MEANS)


SLANTED = np.array([[0.6, 0.8]])  # one direction in two columns
ENDS = np.array([[-0.5], [0.5]])


def slanted(rows, budget, n_columns=1):
    """Moments along one direction, of two groups, in a plan that declares `n_columns`."""
    sensitivity = moments_sensitivity(DOMAIN, "diag", n_columns=n_columns)
    asked = over(rows, plan=Plan(Step("halves", share=1, sensitivity=sensitivity)), budget=budget)
    return asked, asked.moments("halves", Voronoi(ENDS), ENDS, np.full(2, 2.0), "diag", SLANTED)


@pytest.mark.parametrize("budget", ENORMOUS)
def test_moments_of_projected_rows(budget):
    rows = blobs()
    along = DOMAIN.clip(rows) @ SLANTED.T
    groups = Voronoi(ENDS).index(along)
    _, noisy = slanted(rows, budget)
    assert noisy.seconds.shape == noisy.sums.shape == (2, 1)
    for g in range(2):
        moves = along[groups == g] - ENDS[g]
        assert noisy.sizes[g] == pytest.approx(len(moves), abs=1e-4)
        assert noisy.sums[g] == pytest.approx(moves.sum(axis=0), abs=1e-4)
        assert noisy.seconds[g] == pytest.approx((moves**2).sum(axis=0), abs=1e-4)


@pytest.mark.parametrize("budget", BUDGETS)
def test_moments_of_fewer_directions_than_declared_cost_no_more(budget):
    for n_columns in (1, 2):
        asked, noisy = slanted(blobs(), budget, n_columns)
        assert asked.records[0].sensitivity == GroupedMoments.sensitivity_in(1, "diag")
        assert asked.statement().spent <= budget
        assert noisy.second_std == pytest.approx(4 * asked.records[0].noise_std / LATTICE_RADIUS)


def test_moments_of_more_directions_than_declared_are_refused():
    sensitivity = moments_sensitivity(DOMAIN, "diag", n_columns=1)
    asked = curator(plan=Plan(Step("halves", share=1, sensitivity=sensitivity)))
    with pytest.raises(PlanError, match="was declared with"):
        asked.moments("halves", VORONOI, CENTERS, RADII, "diag", np.eye(2))
    assert asked.records == ()


def test_the_sensitivity_of_moments_is_that_of_the_projected_columns():
    wide = Domain.from_bounds((-1, 1), 500)
    assert moments_sensitivity(wide, "diag") == GroupedMoments.sensitivity_in(500, "diag")
    for n_columns in (1, 3, 64):
        declared = moments_sensitivity(wide, "diag", n_columns=n_columns)
        assert declared == GroupedMoments.sensitivity_in(n_columns, "diag")
        soft = moments_sensitivity(wide, "full", n_columns=n_columns, soft=True, n_components=5)
        assert soft == SoftMoments.sensitivity_in(n_columns, "full", 5)


@pytest.mark.parametrize("budget", BUDGETS)
def test_noise_of_the_stated_size_is_in_wide_moments(budget):
    """Squares and products of two columns have different noise at one price. Power: 8 / 11 is seen."""
    d = WIDE
    domain, origin = Domain.from_bounds((-1, 1), d), np.zeros((1, d))
    sensitivity = moments_sensitivity(domain, "full")
    plan = calibrate(Plan(Step("moments", share=1, sensitivity=sensitivity, repeats=40)), budget, 1)
    asked = Curator(Empty(), domain, plan, Entropy(0))
    released = [asked.moments("moments", Tree.root(), origin, np.ones(1), "full") for _ in range(40)]
    seconds, std = np.stack([one.seconds[0] for one in released]), released[0].second_std[0]
    above = np.triu_indices(d, 1)
    assert (seconds[:, *above] / std).std() == pytest.approx(1, rel=0.1)
    assert (seconds[:, range(d), range(d)] / std).std() == pytest.approx(11 / 8, rel=0.2)
    sums = np.concatenate([one.sums / one.sum_std[:, None] for one in released])
    assert sums.std() == pytest.approx(1, rel=0.2)
    assert asked.records == plan.records()
    assert asked.statement().spent <= budget


@pytest.mark.parametrize(("d", "n_groups"), [(WIDE - 1, 1), (WIDE, 1), (WIDE, 2)])
def test_a_plan_declares_the_moments_that_are_asked(d, n_groups):
    declared = moments_sensitivity(Domain.from_bounds((-1, 1), d), "full", n_components=n_groups)
    one, many = WideMoments.sensitivity_in(d), GroupedMoments.sensitivity_in(d, "full")
    assert declared == (one if (d, n_groups) == (WIDE, 1) else many)
