"""Groups that an engine keeps between folds: the same states as if they were found anew."""

import numpy as np
import pytest

from sfumato.domain import Domain
from sfumato.domain.partitions import Subset, Tree, Voronoi
from sfumato.errors import ParameterError
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.distances import Distances
from sfumato.private.aggregates.moments import GroupedMoments
from sfumato.private.aggregates.splits import Marginals
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines import base, known_groups, memory
from sfumato.private.engines.memory import MemoryEngine

D = 3


def table(n: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).uniform(-1.3, 1.3, (n, D))
    rows[::7, 0] = np.nan
    return rows


def grown_trees(projection: np.ndarray | None = None) -> list[Tree]:
    """A tree level by level; some levels are skipped, and some leaves stay."""
    rng, trees = np.random.default_rng(1), [Tree.root(projection)]
    for _ in range(7):
        tree = trees[-1]
        leaves = rng.permutation(tree.n_cells)[: 1 + tree.n_cells // 2]
        trees.append(tree.split(leaves, rng.integers(D, size=len(leaves)), rng.uniform(-1, 1, len(leaves))))
    return [trees[i] for i in (0, 1, 2, 4, 5, 7)]


def questions() -> list:
    """As DPM asks: levels of a tree, the leaves twice, centres twice, and an older tree."""
    rng, asked = np.random.default_rng(2), []
    trees = grown_trees()
    for tree in trees:
        some = Subset(tree, rng.permutation(tree.n_cells)[: (tree.n_cells + 1) // 2])
        box = np.full((some.n_cells, D), -1.0), np.full((some.n_cells, D), 1.0)
        asked.append(Marginals(some, *box, 16))
    last, cells = trees[-1], Voronoi(rng.uniform(-1, 1, (5, D)))
    for partition in (last, cells, trees[1]):
        points, radii = rng.uniform(-1, 1, (partition.n_cells, D)), np.full(partition.n_cells, 0.7)
        asked += [
            GroupedSums(partition, points, radii),
            Distances(partition, points, np.array([0.3, 0.9])),
            RowCount(),
            GroupedMoments(partition, points, radii, "diag"),
        ]
    return asked


@pytest.mark.parametrize("outside", ["clip", "drop"])
@pytest.mark.parametrize("kept_bytes", [-1, memory.KEPT_BYTES])
@pytest.mark.parametrize("n", [0, 1, 9000])
def test_states_are_those_of_a_new_engine(monkeypatch, outside, kept_bytes, n):
    monkeypatch.setattr(memory, "KEPT_BYTES", kept_bytes)
    monkeypatch.setattr(base, "BLOCK_VALUES", 1000)
    rows, domain = table(n), Domain.from_bounds((-1, 1), D, outside=outside)
    engine = MemoryEngine(rows, domain)
    for aggregate in questions():
        assert (engine.fold(aggregate) == MemoryEngine(rows, domain).fold(aggregate)).all()


def found(monkeypatch, engine, aggregates) -> list[int]:
    """Rows whose groups each fold finds anew."""
    numbers, search = [], known_groups.Tree.index

    def index(self, rows):
        numbers[-1] += len(rows)
        return search(self, rows)

    monkeypatch.setattr(known_groups.Tree, "index", index)
    for aggregate in aggregates:
        numbers.append(0)
        engine.fold(aggregate)
    return numbers


def test_only_the_first_fold_of_a_tree_finds_groups(monkeypatch):
    rows, domain = table(5000), Domain.from_bounds((-1, 1), D)
    asked = questions()[:8]
    first, *later = found(monkeypatch, MemoryEngine(rows, domain), asked)
    assert first == np.isfinite(rows).all(axis=1).sum()
    assert later == [0] * 7


def test_groups_of_a_large_table_or_of_many_groups_are_not_kept(monkeypatch):
    rows, domain, asked = table(900), Domain.from_bounds((-1, 1), D), questions()[2:4]
    used = np.isfinite(rows).all(axis=1).sum()
    monkeypatch.setattr(known_groups, "MOST_GROUPS", 2)
    assert found(monkeypatch, MemoryEngine(rows, domain), asked) == [used, used]
    monkeypatch.undo()
    monkeypatch.setattr(memory, "KEPT_GROUPS", 899)
    assert found(monkeypatch, MemoryEngine(rows, domain), asked) == [used, used]


def test_rows_that_disappear_between_folds_break_nothing():
    rows, domain = table(4000), Domain.from_bounds((-1, 1), D)
    engine = MemoryEngine(rows, domain)
    asked = questions()[2:4]
    engine.fold(asked[0])
    rows[100:300, 1] = np.nan
    assert (engine.fold(asked[1]) == MemoryEngine(rows, domain).fold(asked[1])).all()


@pytest.mark.parametrize("projection", [None, np.eye(D)[::-1].copy()])
def test_earlier_groups_hint_at_the_nearest_centre_and_change_none(projection):
    rng = np.random.default_rng(6)
    places = rng.uniform(-1, 1, (40, D))
    rows = places[rng.integers(40, size=4000)] + rng.normal(0, 0.05, (4000, D))
    near, fewer, other = places + rng.normal(0, 0.02, places.shape), places[:33], rng.uniform(-1, 1, (40, D))
    for centers in (near, fewer, other):  # hints that are mostly right, sometimes and seldom
        after = Voronoi(centers, projection)
        for before in (Voronoi(places, projection), Voronoi(rng.uniform(-1, 1, (5, D)), projection)):
            hints = after.further(before)
            assert (hints.index(rows, before.index(rows)) == after.index(rows)).all()
    tree, few = grown_trees()[-1], Voronoi(places[:5])
    assert few.further(tree) is None  # every centre is looked at anyway
    same = Voronoi(rng.uniform(-1, 1, (max(32, tree.n_cells), D)))
    assert (same.further(tree) is not None) == (same.n_cells == tree.n_cells)


def test_rows_of_other_columns_are_refused_before_a_kernel_reads_them():
    engine = MemoryEngine(np.zeros((5, D + 1)), Domain.from_bounds((-1, 1), D + 1))
    with pytest.raises(ParameterError, match="must have 3 columns, got 4"):
        engine.fold(questions()[0])


def test_a_tree_that_did_not_grow_from_another_says_so():
    trees, projection = grown_trees(), np.eye(D)
    assert trees[4].further(trees[2]) is not None
    for tree, before in [
        (trees[2], trees[4]),
        (trees[2], trees[2]),
        (grown_trees(projection)[3], trees[2]),
        (Tree(trees[4].columns, trees[4].thresholds + 1e-9, trees[4].children), trees[2]),
        (Tree(trees[4].columns[::-1].copy(), trees[4].thresholds, trees[4].children), trees[2]),
    ]:
        assert tree.further(before) is None


@pytest.mark.parametrize("projection", [None, np.eye(D)[::-1].copy()])
def test_walks_from_earlier_leaves_end_at_the_same_leaves(projection):
    rows = np.random.default_rng(5).uniform(-1, 1, (3000, D))
    trees = grown_trees(projection)
    for i, before in enumerate(trees):
        for tree in trees[i + 1 :]:
            walk = tree.further(before)
            assert (walk.index(rows, before.index(rows)) == tree.index(rows)).all()
