"""Grid k-means: the papers' table of grid sizes, what the estimator asks, and what its synopsis answers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato import Ball, Budget, GridKMeans, Ledger, grid_size
from sfumato.curator import Curator, Table
from sfumato.domain import Grid
from sfumato.errors import ParameterError
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.public.grid import size
from sfumato.public.grid.synopsis import GridSynopsis

# Muthukrishnan and Tandon (arXiv:2603.26963), Table III: number of cells m^d at each epsilon, by (K, N).
EPSILONS = [0.1, 0.15, 0.25, 0.4, 0.6, 1.0]
TABLE_3 = {
    ("eugkm", 2): {
        (2, 100): [1, 1, 4, 4, 4, 9],
        (2, 200): [1, 4, 4, 9, 9, 16],
        (2, 400): [4, 4, 9, 16, 25, 36],
        (4, 200): [1, 4, 4, 9, 9, 16],
        (4, 400): [4, 4, 9, 16, 25, 36],
        (4, 800): [9, 9, 16, 36, 49, 81],
        (8, 400): [4, 4, 9, 16, 25, 36],
        (8, 800): [9, 9, 16, 36, 49, 81],
        (8, 1600): [16, 25, 36, 64, 100, 169],
    },
    ("eugkm", 3): {
        (2, 100): [1, 1, 1, 8, 8, 27],
        (2, 200): [1, 8, 8, 8, 27, 27],
        (2, 400): [8, 8, 27, 27, 64, 64],
        (4, 200): [1, 8, 8, 8, 27, 27],
        (4, 400): [8, 8, 27, 27, 64, 64],
        (4, 800): [8, 27, 27, 64, 125, 216],
        (8, 400): [8, 8, 27, 27, 64, 64],
        (8, 800): [8, 27, 27, 64, 125, 216],
        (8, 1600): [27, 64, 64, 125, 216, 512],
    },
    ("rugnik", 2): {
        (2, 100): [4, 9, 9, 16, 16, 25],
        (2, 200): [9, 9, 16, 25, 36, 49],
        (2, 400): [16, 16, 25, 36, 49, 64],
        (4, 200): [16, 16, 25, 36, 49, 64],
        (4, 400): [25, 25, 36, 49, 81, 100],
        (4, 800): [36, 36, 64, 81, 121, 169],
        (8, 400): [36, 36, 64, 81, 121, 169],
        (8, 800): [49, 64, 100, 121, 169, 256],
        (8, 1600): [81, 100, 144, 196, 289, 400],
    },
    ("rugnik", 3): {
        (2, 100): [8, 8, 8, 27, 27, 27],
        (2, 200): [8, 8, 27, 27, 64, 64],
        (2, 400): [27, 27, 27, 64, 64, 125],
        (4, 200): [8, 27, 27, 64, 64, 125],
        (4, 400): [27, 27, 64, 64, 125, 216],
        (4, 800): [27, 64, 64, 125, 216, 343],
        (8, 400): [27, 64, 64, 125, 125, 216],
        (8, 800): [64, 64, 125, 216, 343, 512],
        (8, 1600): [125, 125, 216, 343, 512, 729],
    },
}


@pytest.mark.parametrize(("rule", "d"), TABLE_3)
def test_all_entries_of_the_papers_table(rule, d):
    table = TABLE_3[rule, d]
    found = {(k, n): [grid_size(n, epsilon, k, d, rule) ** d for epsilon in EPSILONS] for k, n in table}
    assert found == table
    assert sum(map(len, table.values())) == 54  # 108 entries for each rule


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 12])
def test_rugnik_is_the_integer_minimiser(d):
    rng = np.random.default_rng(d)
    for _ in range(40):
        n, epsilon = 10 ** rng.uniform(0, 6), 10 ** rng.uniform(-3, 1)
        k = int(rng.integers(1, 100))
        found = grid_size(n, epsilon, k, d)
        around = range(1, 3 * found + 5) if found < 2000 else range(found - 1000, found + 1000)
        bounds = {m: size._rugnik_bound(m, n, epsilon, k, d) for m in around}
        assert bounds[found] == min(bounds.values())


def test_grids_grow_with_rows_and_budget():
    for rule in ("rugnik", "eugkm"):
        by_rows = [grid_size(n, 1, 4, 2, rule) for n in (0, 1, 10, 10**3, 10**6, 10**9)]
        by_budget = [grid_size(1000, epsilon, 4, 2, rule) for epsilon in (1e-9, 1e-3, 1, 10, 1e9)]
        assert by_rows == sorted(by_rows)
        assert by_budget == sorted(by_budget)
        assert by_budget[0] == 1
        assert by_rows[0] == by_rows[1] <= 2


def test_few_or_negative_rows_count_as_one():
    assert grid_size(-500, 1, 4, 2) == grid_size(0, 1, 4, 2) == grid_size(1, 1, 4, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": math.nan},
        {"n": math.inf},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"k": 0},
        {"k": 2.5},
        {"k": True},
        {"d": 0},
        {"d": 10**6},
        {"rule": "best"},
    ],
)
def test_bad_arguments_of_the_rule(arguments):
    for rule in ("rugnik", "eugkm"):
        with pytest.raises(ParameterError, match="must be"):
            grid_size(**{"n": 100, "epsilon": 1.0, "k": 3, "d": 2, "rule": rule, **arguments})


@pytest.mark.parametrize("epsilon", [1e-90, 1e90])
@pytest.mark.parametrize("d", [1, 2, 40, 1000])
def test_extreme_arguments_of_the_rule_end(epsilon, d):
    assert grid_size(1e90, epsilon, 1, d) >= 1


class Remembered:
    """Rows per fold, with what was folded."""

    def __init__(self, counts):
        self.counts, self.folds = counts, []

    n_features = 2

    def fold(self, aggregate):
        self.folds.append(aggregate)
        state = aggregate.zero()
        state[:] = self.counts if isinstance(aggregate, RowCount) else self.counts // state.size
        return state


@pytest.fixture
def remembered(monkeypatch):
    """Replace the engine of a fit by known counts."""

    def install(counts):
        engine = Remembered(counts)
        monkeypatch.setattr(
            Table, "curator", lambda table, plan, seed: Curator(engine, table.domain, plan, Entropy(seed))
        )
        return engine

    return install


def model(**parameters):
    return GridKMeans(**{"n_clusters": 3, "bounds": (-1, 1), "random_state": 0, **parameters})


def test_the_plan_gives_a_twentieth_to_the_row_count():
    steps = model(epsilon=2).plan(2).records()
    assert [(r.step, r.scale) for r in steps] == [("rows", 10), ("grid", Fraction(10, 19))]
    assert [(r.step, r.scale) for r in model(epsilon=2, n_public=5).plan(2).records()] == [
        ("grid", Fraction(1, 2))
    ]


@pytest.mark.usefixtures("quick")
def test_it_asks_the_rows_then_one_grid(remembered):
    engine = remembered(10**4)
    fitted = model().fit(np.empty((0, 2)))
    rows, cells = engine.folds
    assert rows == RowCount()
    assert cells == CellCounts(fitted.grid_)
    assert [record.step for record in fitted.privacy_.steps] == ["rows", "grid"]


@pytest.mark.usefixtures("quick")
def test_with_a_public_count_it_asks_one_grid(remembered):
    engine = remembered(10**4)
    fitted = model(n_public=10**4).fit(np.empty((0, 2)))
    assert engine.folds == [CellCounts(fitted.grid_)]
    assert fitted.synopsis_.noisy_rows == 10**4
    assert fitted.synopsis_.rows_std == 0


@pytest.mark.usefixtures("quick")
def test_the_grid_follows_the_noisy_count_and_not_the_rows(remembered):
    """The same released count gives the same grid, whatever table was passed."""
    shapes = set()
    for table in (np.empty((0, 2)), np.zeros((1, 2)), np.zeros((5000, 2))):
        remembered(2000)
        shapes.add(model().fit(table).grid_.shape)
    assert len(shapes) == 1
    remembered(10**7)
    assert model().fit(np.empty((0, 2))).grid_.shape > shapes.pop()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", [{"epsilon": 1}, {"rho": 0.5}])
@pytest.mark.parametrize("d", [1, 2])
def test_a_huge_identical_mass(remembered, kind, d):
    remembered(2**40)
    fitted = model(max_cells=2**d * 9, **kind).fit(np.empty((0, d)))
    assert np.isfinite(fitted.cluster_centers_).all()
    assert fitted.cluster_sizes_.sum() == pytest.approx(2**40, rel=0.01)


@pytest.mark.usefixtures("quick")
def test_a_huge_mass_in_one_cell():
    counts = np.zeros(64, dtype=np.int64)
    counts[37] = 2**62
    found = GridSynopsis(Grid((0.0, 0.0), (1.0, 1.0), (8, 8)), counts, 1.0, True, float(2**62), 20.0)
    centers, sizes = found.cluster(5)
    check_centres(found, centers, sizes, 5)
    assert sizes.max() == pytest.approx(2.0**62, rel=1e-6)


def test_too_many_columns_name_other_methods(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match="use fewer columns, a PrivatePCA"):
        model(ledger=ledger, random_state=None).fit(np.zeros((3, 30)))
    with pytest.raises(ParameterError, match="use fewer columns, a PrivatePCA"):
        model().plan(24)
    assert ledger.history() == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"rule": "best"},
        {"n_public": 0},
        {"n_public": 1.5},
        {"n_public": 10**400},
        {"max_cells": 0},
        {"max_cells": "x"},
    ],
)
def test_own_parameters(parameters, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        model(ledger=ledger, random_state=None, **parameters).fit(np.zeros((3, 2)))
    assert ledger.history() == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("epsilon", ["1e-12", 1e-6, 1e3, 1e6, "1e50"])
def test_extreme_budgets(rows, epsilon):
    fitted = model(epsilon=epsilon, max_cells=49).fit(rows)
    check_centres(fitted.synopsis_, fitted.cluster_centers_, fitted.cluster_sizes_, 3)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "bounds", [(-1e139, 1e139), (-1e-139, 1e-139), (1e9, 1e9 + 1), Ball(2.0, [0.5, -0.5])]
)
def test_extreme_bounds(rows, bounds):
    fitted = model(bounds=bounds, max_cells=25).fit(rows)
    check_centres(fitted.synopsis_, fitted.cluster_centers_, fitted.cluster_sizes_, 3)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("k", [1, 26, 200])
def test_more_clusters_than_cells(rows, k):
    fitted = model(n_clusters=k, max_cells=25).fit(rows)
    assert fitted.grid_.n_cells <= 25
    check_centres(fitted.synopsis_, fitted.cluster_centers_, fitted.cluster_sizes_, k)
    assert set(fitted.labels_) <= set(range(k))


def test_it_finds_three_blobs(rows):
    fitted = model(epsilon=5, rule="rugnik").fit(np.repeat(rows, 5, axis=0))
    truth = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])
    distance = np.linalg.norm(truth[:, None] - fitted.cluster_centers_[None], axis=2).min(axis=1)
    assert distance.max() < 0.15
    assert fitted.cluster_sizes_.sum() == pytest.approx(1500, rel=0.1)


def check_centres(synopsis, centers, sizes, k):
    """What every answer of a synopsis satisfies."""
    low, high = np.array(synopsis.grid.low), np.array(synopsis.grid.high)
    assert centers.shape == (k, len(low))
    assert sizes.shape == (k,)
    assert np.isfinite(centers).all()
    assert np.isfinite(sizes).all()
    assert (sizes >= 0).all()
    slack = 1e-9 * (high - low)
    assert ((centers >= low - slack) & (centers <= high + slack)).all()


def synopses():
    rng = np.random.default_rng(0)
    square = Grid((-1.0, -1.0), (1.0, 1.0), (5, 5))
    noise = np.rint(rng.laplace(scale=3, size=25)).astype(np.int64)
    yield "noise", GridSynopsis(square, noise, 4.2, True, 3.0, 20.0)
    yield "gaussian", GridSynopsis(square, noise, 3.0, False, 3.0, 20.0)
    yield "all negative", GridSynopsis(square, noise - 1000, 4.2, True, -25_000.0, 20.0)
    yield "zeros", GridSynopsis(square, np.zeros(25, dtype=np.int64), 4.2, True, 0.0, 20.0)
    yield "public count", GridSynopsis(square, noise + 4, 4.2, True, 100.0, 0.0)
    yield "no noise", GridSynopsis(square, np.maximum(noise, 0), 0.0, True, 50.0, 0.0)
    yield "one cell", GridSynopsis(Grid((0.0,), (1.0,), (1,)), np.array([7]), 1.0, True, 7.0, 1.0)
    yield (
        "flat box",
        GridSynopsis(Grid((0.0, 5.0), (0.01, 100.0), (4, 6)), np.arange(24), 1.0, True, 270.0, 5.0),
    )


SYNOPSES = dict(synopses())


@pytest.mark.parametrize("k", [1, 3, 30])
@pytest.mark.parametrize("name", SYNOPSES)
def test_a_synopsis_answers_any_number_of_clusters(name, k):
    synopsis = SYNOPSES[name]
    centers, sizes = synopsis.cluster(k)
    check_centres(synopsis, centers, sizes, k)
    again, again_sizes = synopsis.cluster(k)
    assert (centers == again).all()
    assert (sizes == again_sizes).all()


@pytest.mark.parametrize("name", SYNOPSES)
def test_estimated_counts_are_possible_counts(name):
    counts = SYNOPSES[name].estimated_counts()
    assert counts.shape == (SYNOPSES[name].grid.n_cells,)
    assert np.isfinite(counts).all()
    assert (counts >= 0).all()


def test_range_counts_and_samples():
    synopsis = SYNOPSES["public count"]
    everything, std = synopsis.range_count([-1, -1], [1, 1])
    assert everything == pytest.approx(synopsis.noisy_counts.sum())
    assert std == pytest.approx(4.2 * 5)
    nothing, none = synopsis.range_count([0.5, 0.5], [0.5, 0.7])
    assert nothing == none == 0
    points = synopsis.sample(500, random_state=0)
    assert points.shape == (500, 2)
    assert (np.abs(points) <= 1).all()
    assert (points == synopsis.sample(500, random_state=0)).all()
