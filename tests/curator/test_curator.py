"""The waist: what was not declared is refused before a row is read, and what is released is noisy."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Budget, Plan, Step, calibrate
from sfumato.budget.records import Sensitivity
from sfumato.curator import Curator, Noisy, NoisyCells, open_table
from sfumato.domain import Domain, Grid, Unit
from sfumato.errors import ParameterError, PlanError
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy

DOMAIN = Domain.from_bounds((-1, 1), 2)
GRID = Grid.over(DOMAIN, 4)
PLAN = Plan(Step("rows", share="1/10"), Step("grid", share="4/10"), Step("best", share="1/2", selection=True))
ONE = Sensitivity()
BUDGETS = [Budget(1), Budget(1, 1e-6), Budget(rho="1/2")]


class Unread:
    """An engine whose rows must not be read."""

    n_features = 2

    def fold(self, aggregate):
        raise AssertionError("a row was read")


@dataclass
class Fixed:
    """An engine of known states, which remembers what was asked."""

    value: int = 0

    def __post_init__(self):
        self.folds = []

    n_features = 2

    def fold(self, aggregate):
        self.folds.append(aggregate)
        return aggregate.zero() + self.value


@dataclass(frozen=True)
class Wide(CellCounts):
    """CellCounts whose declared sensitivity can be chosen."""

    declared: Sensitivity = ONE

    @property
    def sensitivity(self):
        return self.declared


def curator(engine=None, plan=PLAN, budget=BUDGETS[0], max_rows=1, seed=0):
    return Curator(engine or Unread(), DOMAIN, calibrate(plan, budget, max_rows), Entropy(seed))


def test_a_step_that_is_not_declared():
    asked = curator()
    for ask in (
        lambda: asked.count("colour"),
        lambda: asked.cells("Grid", GRID),
        lambda: asked.noise_std(""),
    ):
        with pytest.raises(PlanError, match=r"is not in the plan, which declares 'rows', 'grid', 'best'"):
            ask()
    assert asked.records == ()


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_step_asked_too_often(repeats):
    plan = Plan(Step("rows", share=1, repeats=repeats))
    engine = Fixed()
    asked = curator(engine, plan)
    for _ in range(repeats):
        asked.count("rows")
    asked._engine = Unread()
    with pytest.raises(PlanError, match=f"'rows' was declared for {repeats} ask"):
        asked.count("rows")
    assert len(asked.records) == len(engine.folds) == repeats


def test_a_failed_ask_still_counts():
    asked = curator()
    with pytest.raises(AssertionError):
        asked.count("rows")
    with pytest.raises(PlanError, match="used up"):
        asked.count("rows")
    assert [record.step for record in asked.records] == ["rows"]


def test_a_step_of_the_wrong_kind():
    asked = curator()
    with pytest.raises(PlanError, match="'rows' was declared as additive noise"):
        asked.select("rows", RowCount())
    with pytest.raises(PlanError, match="'best' was declared as a selection"):
        asked.cells("best", GRID)
    assert asked.records == ()


@pytest.mark.parametrize(
    "actual",
    [
        Sensitivity(2, 4, 2, 1),
        Sensitivity(2, 2, 1, 2),
        Sensitivity(1, 1, 2, 1),
        Sensitivity(1, 4, 1, 1),
        Sensitivity(1, 1, 1, 2),
        Sensitivity(3, 9, 3, 5),
    ],
)
def test_a_wider_sensitivity_than_declared(actual):
    asked = curator()
    with pytest.raises(PlanError, match="was declared with Sensitivity"):
        asked._release("grid", Wide(GRID, actual))
    with pytest.raises(PlanError, match="was declared with Sensitivity"):
        asked.select("best", Wide(GRID, actual))
    assert asked.records == ()


def test_a_vector_step_may_be_asked_narrower_and_not_on_more_entries():
    declared = Sensitivity(l1=10, l2_squared=50, spread=10, coordinates=3)
    plan = Plan(Step("sums", share=1, sensitivity=declared, repeats=2))
    for budget in BUDGETS:
        asked = curator(Fixed(), plan, budget)
        narrow = Sensitivity(l1=5, l2_squared=13, spread=5, coordinates=2)
        released = asked._release("sums", Wide(GRID, narrow))
        nominal = asked.plan.nominal(asked.plan["sums"])
        cost = [r.epsilon or r.rho for r in (released.record, nominal)]
        assert float(cost[0]) == pytest.approx(float(cost[1]), rel=1e-6)  # less noise, the same cost
        assert released.record.scale < nominal.scale
        asked._engine = Unread()
        with pytest.raises(PlanError, match="was declared with"):
            asked._release("sums", Wide(GRID, Sensitivity(l1=5, l2_squared=13, spread=5, coordinates=4)))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("max_rows", [1, 4])
def test_records_say_what_ran(budget, max_rows):
    asked = curator(Fixed(), budget=budget, max_rows=max_rows)
    count, cells = asked.count("rows"), asked.cells("grid", GRID)
    chosen = asked.select("best", CellCounts(GRID))
    assert isinstance(count, Noisy)
    assert count.values.shape == (1,)
    assert cells.values.shape == (16,)
    assert count.values.dtype == cells.values.dtype == np.int64
    assert isinstance(chosen, int)
    assert 0 <= chosen < 16
    assert [record.step for record in asked.records] == ["rows", "grid", "best"]
    assert asked.records[:2] == (count.record, cells.record)
    assert asked.records == calibrate(PLAN, budget, max_rows).records()
    assert all(record.sensitivity == Sensitivity().times(max_rows) for record in asked.records)
    assert asked.noise_std("grid") == cells.std == cells.record.noise_std


@pytest.mark.parametrize(
    "budget", [Budget(0.01), Budget(10), Budget(1, 1e-6), Budget(rho="1/50"), Budget(rho=2)]
)
def test_noise_of_the_recorded_size_is_added(budget):
    """Power: 40,000 values tell a scale from one that is 5% off, and a missing noise at once."""
    plan = Plan(Step("rows", share="1/2"), Step("grid", share="1/2"))
    asked = curator(Fixed(1000), plan, budget)
    noisy = asked.cells("grid", Grid.over(DOMAIN, 200))
    noise = noisy.values - 1000
    n, fourth = len(noise), 6.0  # the largest kurtosis: that of Laplace noise
    tolerance = 5 * math.sqrt((fourth - 1) / n) / 2
    assert noise.std() == pytest.approx(noisy.std, rel=max(tolerance, 0.03))
    assert abs(noise.mean()) < 5 * noisy.std / math.sqrt(n)
    assert noisy.std == pytest.approx(float(exact_std(noisy.record)), rel=1e-9)


def exact_std(record):
    """Standard deviation from the probability mass, term by term."""
    scale = float(record.scale)
    x = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61, dtype=np.float64)
    mass = np.exp(-np.abs(x) / scale if record.mechanism == "discrete Laplace" else -(x**2) / (2 * scale**2))
    return math.sqrt(float(mass @ x**2) / float(mass.sum()))


def test_each_step_gets_its_own_noise():
    plan = Plan(Step("rows", share="1/20", repeats=1500), Step("grid", share="19/20"))
    asked = curator(Fixed(), plan, Budget("3/2"))
    counts = np.array([asked.count("rows").values[0] for _ in range(1500)])
    assert asked.records[0].scale == 20_000
    assert counts.std() == pytest.approx(asked.records[0].noise_std, rel=0.15)
    cells = asked.cells("grid", Grid.over(DOMAIN, 60))
    assert cells.record.scale == Fraction(40, 57)
    assert cells.values.std() == pytest.approx(cells.std, rel=0.15)


def test_noise_differs_between_asks_and_between_entries():
    plan = Plan(Step("grid", share=1, repeats=2))
    asked = curator(Fixed(), plan, Budget(0.1))
    first, second = (asked.cells("grid", GRID).values for _ in range(2))
    assert len(set(first.tolist())) > 8
    assert (first != second).any()


def test_without_a_seed_two_runs_differ_and_with_one_they_do_not():
    def run(seed):
        return curator(Fixed(), budget=Budget(0.1), seed=seed).cells("grid", GRID).values.tolist()

    assert run(None) != run(None)
    assert run(7) == run(7) != run(8)


@pytest.mark.parametrize("budget", BUDGETS)
def test_select_picks_the_heavy_cell(budget):
    rows = np.concatenate([np.full((500, 2), 0.3), np.random.default_rng(0).uniform(-1, 1, size=(50, 2))])
    asked = curator(MemoryEngine(rows, DOMAIN), budget=budget)
    assert asked.select("best", CellCounts(GRID)) == GRID.index([[0.3, 0.3]])[0]


@pytest.mark.parametrize("budget", [Budget(1), Budget(rho=1)])
def test_select_on_equal_scores_is_uniform(budget):
    plan = Plan(Step("best", share=1, selection=True, repeats=2000))
    asked = curator(Fixed(5), plan, budget)
    counts = np.bincount([asked.select("best", CellCounts(GRID)) for _ in range(2000)], minlength=16)
    assert ((counts - 125) ** 2 / 125).sum() < 60  # chi-squared with 15 degrees: beyond 1e-6


def test_the_rate_of_a_selection_is_one_over_the_recorded_scale():
    """Two cells with counts 1 and 0: the odds are those of the exponential mechanism at that rate."""
    n = 2500
    plan = Plan(Step("best", share=1, selection=True, repeats=n))
    two = Grid.over(Domain.from_bounds((-1, 1), 1), 2)

    class OneAhead(Fixed):
        def fold(self, aggregate):
            return np.array([1, 0], dtype=np.int64)

    asked = curator(OneAhead(), plan, Budget(rho=n / 8))
    wins = sum(asked.select("best", CellCounts(two)) == 0 for _ in range(n)) / n
    rate = 1 / float(asked.records[0].scale)
    assert wins == pytest.approx(1 / (1 + math.exp(-rate)), abs=0.04)
    assert rate == pytest.approx(1, rel=1e-6)


def test_a_huge_identical_mass_does_not_overflow():
    asked = curator(Fixed(2**40), plan=Plan(Step("grid", share=1)))
    values = asked.cells("grid", GRID).values
    assert (np.abs(values - 2**40) < 1000).all()


def test_a_selection_among_huge_counts():
    class OneLess(Fixed):
        def fold(self, aggregate):
            state = aggregate.zero() + 2**62
            state[3] -= 2**40
            return state

    plan = Plan(Step("best", share=1, selection=True, repeats=50))
    asked = curator(OneLess(), plan)
    assert 3 not in {asked.select("best", CellCounts(GRID)) for _ in range(50)}


class Watched(MemoryEngine):
    """An engine over rows that remembers what was asked and what shape it gave back."""

    def fold(self, aggregate):
        state = super().fold(aggregate)
        LOG.append((aggregate, state.shape, state.dtype))
        return state


LOG = []
NEIGHBOURS = {
    "empty and one row": (np.empty((0, 2)), np.zeros((1, 2))),
    "one more far outlier": (np.zeros((5, 2)), np.concatenate([np.zeros((5, 2)), [[1e300, -1e300]]])),
    "one more duplicate": (np.full((9, 2), 0.5), np.full((10, 2), 0.5)),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_control_flow_is_the_same_for_neighbours(name, budget):
    traces = []
    for table in NEIGHBOURS[name]:
        LOG.clear()
        asked = curator(Watched(table, DOMAIN), budget=budget)
        outputs = asked.count("rows"), asked.cells("grid", GRID), asked.select("best", CellCounts(GRID))
        shapes = [output.values.shape for output in outputs[:2]]
        traces.append((list(LOG), shapes, asked.records))
    assert traces[0] == traces[1]


def test_neighbours_with_the_same_noise_differ_by_one_count():
    """With equal noise the released values differ exactly as the raw ones: nothing else is in them."""
    one, other = (
        curator(MemoryEngine(table, DOMAIN)).cells("grid", GRID).values
        for table in NEIGHBOURS["one more duplicate"]
    )
    assert np.abs(one - other).sum() == 1


def test_open_curator_marks_the_source_of_noise():
    plan = calibrate(PLAN, Budget(1))
    table = open_table(np.zeros((3, 2)), (-1, 1), Unit())
    assert table.curator(plan, 5).statement().seeded
    assert not table.curator(plan, None).statement().seeded


def test_scales_beyond_the_samplers_are_refused_before_a_row_is_read():
    asked = curator(budget=Budget("1e-30"))
    with pytest.raises(ParameterError, match="budget must be larger"):
        asked.count("rows")


HUGE_GRID = Grid.over(DOMAIN, 2**31)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("max_rows", [1, 4])
def test_sparse_cells_of_a_huge_grid(budget, max_rows):
    rows = np.concatenate([np.full((4000, 2), 0.3), np.full((3000, 2), -0.9), [[0.0, 0.0]]])
    asked = curator(MemoryEngine(rows, DOMAIN), budget=budget, max_rows=max_rows)
    threshold = asked.threshold_for("grid", HUGE_GRID, n_expected=20)
    noisy = asked.sparse_cells("grid", HUGE_GRID, threshold)
    assert isinstance(noisy, NoisyCells)
    assert noisy.threshold == threshold
    assert asked.records == (noisy.record,) == (calibrate(PLAN, budget, max_rows).records()[1],)
    assert noisy.std == noisy.record.noise_std == asked.noise_std("grid")
    assert 2 <= len(noisy.cells) < 60
    assert (np.diff(noisy.cells) > 0).all()
    assert (noisy.counts >= threshold).all()
    assert noisy.cells.dtype == noisy.counts.dtype == np.int64
    for row, size in (([0.3, 0.3], 4000), ([-0.9, -0.9], 3000)):
        found = noisy.counts[noisy.cells == HUGE_GRID.index([row])[0]]
        assert found == pytest.approx(size, abs=10 * noisy.std)


def test_sparse_and_dense_cells_have_the_same_law():
    """Means of many small histograms, those of dropped counts taken as zero."""
    rows, n = np.repeat([[0.3, 0.3], [-0.9, 0.5]], [3, 8], axis=0), 1500
    plan = Plan(Step("sparse", share="1/2", repeats=n), Step("dense", share="1/2", repeats=n))
    asked = curator(MemoryEngine(rows, DOMAIN), plan, Budget(n))
    sums = np.zeros((2, GRID.n_cells))
    for _ in range(n):
        noisy, dense = asked.sparse_cells("sparse", GRID, 2), asked.cells("dense", GRID).values
        sums[0, noisy.cells] += noisy.counts
        sums[1] += np.where(dense >= 2, dense, 0)
    assert noisy.record.scale == asked.records[-1].scale == 2
    assert np.abs(sums[0] - sums[1]).max() < 5 * noisy.std * math.sqrt(2 * n)


def test_sparse_cells_are_refused_before_a_row_is_read():
    asked = curator()
    with pytest.raises(PlanError, match="is not in the plan"):
        asked.sparse_cells("colour", GRID, 3)
    with pytest.raises(PlanError, match="is not in the plan"):
        asked.threshold_for("colour", GRID, 3)
    with pytest.raises(PlanError, match="declared as a selection"):
        asked.sparse_cells("best", GRID, 3)
    with pytest.raises(ParameterError, match=r"at most 2\*\*62 cells"):
        asked.sparse_cells("grid", Grid.over(DOMAIN, 2**32), 3)
    assert asked.records == ()
    with pytest.raises(ParameterError, match="`threshold` must be at least"):
        asked.sparse_cells("grid", HUGE_GRID, 1)


def test_neighbours_with_the_same_noise_differ_in_one_cell_of_a_sparse_histogram():
    one, other = (
        dict(zip(*(array.tolist() for array in (noisy.cells, noisy.counts)), strict=True))
        for noisy in (
            curator(MemoryEngine(table, DOMAIN)).sparse_cells("grid", GRID, 1)
            for table in NEIGHBOURS["one more duplicate"]
        )
    )
    changed = {cell for cell in one.keys() | other.keys() if one.get(cell) != other.get(cell)}
    assert changed <= {GRID.index([[0.5, 0.5]])[0]}


def test_rows_are_clipped_to_bounds_that_were_released():
    rows = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    seen = []

    class Seen(RowCount):
        def add(self, state, rows):
            seen.append(rows)
            return super().add(state, rows)

    asked = curator(MemoryEngine(rows, DOMAIN))
    asked.narrow(Domain((-0.5, 0.0), (0.25, 0.5)))
    asked._release("rows", Seen())
    found = np.concatenate(seen)
    assert len(found) == len(rows)
    assert (found.min(axis=0) == [-0.5, 0.0]).all()
    assert (found.max(axis=0) == [0.25, 0.5]).all()
    assert asked.domain.low == (-0.5, 0.0)
