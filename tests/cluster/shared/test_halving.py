"""Cells by halving: never more than asked for, never fewer than clusters, many where rows vary."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.budget import Budget, Plan, calibrate
from sfumato.cluster.shared.components import Frame
from sfumato.cluster.shared.halving import halved, halving_steps, n_halvings
from sfumato.curator import Curator
from sfumato.domain import Domain
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.mechanisms.entropy import Entropy

ENORMOUS = Budget(rho=10**12)
SLANTED = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0][:2]
TABLES = {
    "no rows": np.empty((0, 5)),
    "one row": np.full((1, 5), 0.2),
    "one place": np.full((500, 5), -0.3),
    "uniform": np.random.default_rng(0).uniform(-1, 1, (3000, 5)),
}


def run(rows, n_cells=16, n_clusters=4, projection=None, budget=ENORMOUS, seed=0):
    d = rows.shape[1]
    domain = Domain.from_bounds((-1, 1), d)
    plan = Plan(*halving_steps(domain, Fraction(1), n_cells, d if projection is None else len(projection)))
    asked = Curator(MemoryEngine(rows, domain), domain, calibrate(plan, budget, 1), Entropy(seed))
    middle = rows.mean(axis=0) if len(rows) else np.zeros(d)
    found = halved(asked, Frame(middle, domain.reach, float(len(rows))), projection, n_cells, n_clusters)
    return found, asked


@pytest.mark.parametrize(("n_cells", "levels"), [(1, 1), (2, 2), (64, 7), (65, 8), (4000, 13)])
def test_one_level_more_than_even_halves_need(n_cells, levels):
    assert n_halvings(n_cells) == levels
    steps = halving_steps(Domain.from_bounds((-1, 1), 9), Fraction(1, 7), n_cells, 3)
    assert sum(step.share for step in steps) == Fraction(1, 7)
    assert {step.repeats for step in steps} == {levels}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("budget", [Budget("0.01"), Budget(1), Budget(1, 1e-6), ENORMOUS], ids=str)
@pytest.mark.parametrize(("n_cells", "n_clusters"), [(16, 4), (64, 1), (64, 50), (5, 5)])
def test_cells_are_as_many_as_allowed_and_every_level_is_asked(name, budget, n_cells, n_clusters):
    found, asked = run(TABLES[name], n_cells, n_clusters, budget=budget)
    tree, cells = found
    assert n_clusters <= tree.n_cells <= n_cells
    assert cells.centers.shape == (tree.n_cells, 5)
    assert cells.sizes.shape == cells.scales.shape == (tree.n_cells,)
    assert np.isfinite(cells.centers).all()
    assert (cells.sizes >= 0).all()
    assert (cells.scales > 0).all()
    assert [record.step for record in asked.records] == ["spread", "halves"] * n_halvings(n_cells)


def test_even_rows_fill_all_cells():
    rows = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    tree, cells = run(rows, 16, 4)[0]
    assert tree.n_cells == 16
    counts = np.bincount(tree.index(rows), minlength=16)
    assert counts.min() > 0.3 * counts.mean()
    assert cells.sizes.sum() == pytest.approx(len(rows), rel=0.3)


def test_the_cell_whose_rows_vary_most_is_cut_first():
    """A wide cloud and a narrow one of as many rows, and room for three cells."""
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(0.4, 0.15, (10_000, 2)), rng.normal(-0.8, 0.002, (10_000, 2))
    tree, cells = run(np.concatenate([wide, narrow]), 3, 2)[0]
    in_narrow = (np.abs(cells.centers + 0.8) < 0.1).all(axis=1)
    assert in_narrow.sum() == 1
    assert len(np.unique(tree.index(narrow))) == 1
    assert len(np.unique(tree.index(wide))) == 2
    assert cells.scales[in_narrow] < 0.2 * cells.scales[~in_narrow].min()


def test_cells_are_many_where_rows_are_many():
    """Of two equal clouds one has twenty times the rows: the noise lets it have most of the cells."""
    rng = np.random.default_rng(0)
    many, few = rng.normal(0.5, 0.1, (20_000, 2)), rng.normal(-0.5, 0.1, (1000, 2))
    for seed in range(3):
        tree = run(np.concatenate([many, few]), 64, 2, budget=Budget(1, 1e-6), seed=seed)[0].tree
        assert len(np.unique(tree.index(many))) > 4 * len(np.unique(tree.index(few)))


def test_noise_alone_makes_no_more_cells_than_clusters():
    rows = TABLES["one place"]
    found = [run(rows, 64, 3, budget=Budget(1), seed=seed)[0].tree.n_cells for seed in range(10)]
    assert np.median(found) <= 6


def test_rows_are_cut_along_the_projection():
    rng = np.random.default_rng(0)
    ends = np.array([-0.5, 0.5])[rng.integers(2, size=4000)]
    rows = ends[:, None] * SLANTED[0] + rng.normal(scale=0.02, size=(4000, 5))
    tree, cells = run(rows, 2, 2, projection=SLANTED)[0]
    assert tree.n_cells == 2
    assert np.sort(cells.centers[:, 0]) == pytest.approx([-0.5, 0.5], abs=0.15)
    groups = tree.index(rows @ SLANTED.T)
    assert (groups == groups[ends > 0][0])[ends > 0].all()
    assert (groups != groups[ends > 0][0])[ends < 0].all()
