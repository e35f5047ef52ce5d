"""The engine over an array: any dtype, memory order and number of threads gives the same bits."""

import weakref

import numpy as np
import pytest

from sfumato import DPM
from sfumato.domain import Ball, Domain, Grid
from sfumato.domain.partitions import Voronoi
from sfumato.private.aggregates.cell_counts import CellCounts
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.aggregates.splits import Marginals
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.engines import base, memory
from sfumato.private.engines.memory import MemoryEngine

DOMAIN = Domain.from_bounds((-1, 1), 2)
GRID = Grid.over(DOMAIN, 8)
STRIDE = base.BLOCK_VALUES // 2
CENTERS = np.array([[-0.3, 0.1], [0.4, -0.7], [0.9, 0.9]])
WIDE = GroupedSums(Voronoi(CENTERS), CENTERS, np.full(3, 1e6))  # no displacement is clipped


@pytest.fixture
def rows():
    return np.random.default_rng(0).uniform(-1.2, 1.2, size=(STRIDE + 5001, 2))


def expected(rows, aggregate=None, domain=DOMAIN):
    """One block, brought into the domain beforehand."""
    aggregate = aggregate or CellCounts(GRID)
    return aggregate.add(aggregate.zero(), domain.clip(rows))


def test_counts(rows):
    engine = MemoryEngine(rows, DOMAIN)
    assert engine.n_features == 2
    assert engine.fold(RowCount()).tolist() == [len(rows)]
    assert (engine.fold(CellCounts(GRID)) == expected(rows)).all()


@pytest.mark.parametrize("n", [0, 1, 2, STRIDE - 1, STRIDE, STRIDE + 1])
def test_no_row_is_lost_or_read_twice(rows, monkeypatch, n):
    monkeypatch.setattr(memory, "N_THREADS", 1)  # so that a block is as long as it can be
    assert MemoryEngine(rows[:n], DOMAIN).fold(RowCount()).tolist() == [n]
    assert (MemoryEngine(rows[:n], DOMAIN).fold(CellCounts(GRID)) == expected(rows[:n])).all()


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
@pytest.mark.parametrize("values", [1, 7, 1000])
def test_threads_and_blocks_do_not_matter(rows, monkeypatch, n_threads, values):
    monkeypatch.setattr(memory, "N_THREADS", n_threads)
    monkeypatch.setattr(base, "BLOCK_VALUES", values)
    marginals = Marginals(Voronoi(CENTERS), np.full((3, 2), -1.0), np.ones((3, 2)), 16)
    for aggregate in (CellCounts(GRID), WIDE, marginals):
        state = MemoryEngine(rows[:2000], DOMAIN).fold(aggregate)
        assert state.dtype == np.int64
        assert (state == expected(rows[:2000], aggregate)).all()


class Blocks(RowCount):
    """Remembers the blocks that it is given."""

    def __init__(self):
        self.__dict__["seen"] = []

    def add(self, state, rows):
        self.seen.append(rows)
        return super().add(state, rows)


@pytest.mark.parametrize("n_features", [1, 3, 100, 2 * 1000])
def test_blocks_are_cut_by_values_and_contiguous(monkeypatch, n_features):
    monkeypatch.setattr(base, "BLOCK_VALUES", 1000)
    domain, blocks = Domain.from_bounds((-1, 1), n_features), Blocks()
    MemoryEngine(np.zeros((700, n_features), dtype=np.float32, order="F"), domain).fold(blocks)
    assert sum(len(block) for block in blocks.seen) == 700
    assert all(block.size <= 1000 or len(block) == 1 for block in blocks.seen)
    assert all(block.flags.c_contiguous and block.dtype == np.float64 for block in blocks.seen)


@pytest.mark.parametrize("bounds", [(-1, 1), ([-0.5, 0.2], [0.1, 0.3]), Ball(0.5), Ball(0.2, [0.5, -0.5])])
def test_no_aggregate_sees_a_row_outside_the_domain(rows, bounds):
    domain, blocks = Domain.from_bounds(bounds, 2), Blocks()
    far = np.concatenate([rows[:3000], [[1e300, -1e300], [5e-324, 0.0]]])
    engine = MemoryEngine(far, domain)
    engine.fold(blocks)
    seen = np.concatenate(blocks.seen)
    assert (seen >= domain.low).all()
    assert (seen <= domain.high).all()
    if domain.radius:
        assert (np.linalg.norm(seen - domain.midpoint, axis=1) <= domain.radius * (1 + 1e-12)).all()
    assert (engine.fold(WIDE) == expected(far, WIDE, domain)).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int8", "uint8", "bool", ">f8"])
def test_dtypes(rows, dtype):
    with np.errstate(invalid="ignore"):
        table = rows.astype(dtype)
    for aggregate in (CellCounts(GRID), WIDE):
        assert (MemoryEngine(table, DOMAIN).fold(aggregate) == expected(table, aggregate)).all()


def test_memory_orders(rows, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    mapped = np.load(path, mmap_mode="r")
    for table in (np.asfortranarray(rows), rows[::-1][::-1], np.repeat(rows, 2, axis=1)[:, ::2], mapped):
        assert (MemoryEngine(table, DOMAIN).fold(WIDE) == expected(rows, WIDE)).all()


def test_rows_are_not_changed(rows):
    before = rows.copy()
    rows.flags.writeable = False
    MemoryEngine(rows, DOMAIN).fold(CellCounts(GRID))
    assert (rows == before).all()


def keeps_rows(engine):
    return any("kept" in vars(stretch) for stretch in engine._stretches)


@pytest.mark.parametrize("outside", ["clip", "drop"])
@pytest.mark.parametrize("n", [0, 5, 9000])
def test_kept_blocks_give_the_same_states(rows, monkeypatch, outside, n):
    domain, aggregates = Domain.from_bounds((-1, 1), 2, outside=outside), (WIDE, CellCounts(GRID), WIDE)
    states = {}
    for limit in (-1, memory.KEPT_BYTES):
        monkeypatch.setattr(memory, "KEPT_BYTES", limit)
        engine = MemoryEngine(rows[:n], domain)
        states[limit] = [engine.fold(aggregate) for aggregate in aggregates]
        assert keeps_rows(engine) == (limit > 0)
    for streamed, kept in zip(*states.values(), strict=True):
        assert (streamed == kept).all()


def test_a_table_is_kept_from_the_second_fold_on_if_it_is_small(rows, monkeypatch):
    engine = MemoryEngine(rows, DOMAIN)
    engine.fold(CellCounts(GRID))
    assert not keeps_rows(engine)  # most tables of the density methods are asked about once
    first, second = Blocks(), Blocks()
    engine.fold(first)
    engine.fold(second)
    assert {id(block) for block in first.seen} == {id(block) for block in second.seen}
    assert sum(block.nbytes for block in first.seen) == rows.nbytes
    monkeypatch.setattr(memory, "KEPT_BYTES", rows.nbytes - 1)
    large = MemoryEngine(rows.astype(np.float32), DOMAIN)  # by what is kept, not by what is given
    for _ in range(3):
        large.fold(RowCount())
    assert not keeps_rows(large)


def test_a_table_is_kept_from_the_start_if_its_rows_are_counted(rows):
    engine = MemoryEngine(rows, DOMAIN)
    engine.fold(RowCount())
    assert keeps_rows(engine)


def test_images_of_admitted_rows_are_not_kept_again(rows):
    engine = MemoryEngine(rows, None)
    for _ in range(3):
        engine.fold(RowCount())
    assert not keeps_rows(engine)


def test_kept_rows_are_not_those_of_the_table(rows):
    inside = rows.clip(-1, 1)
    engine = MemoryEngine(inside, DOMAIN)
    engine.fold(RowCount())
    before = engine.fold(CellCounts(GRID)).copy()
    inside[:] = np.nan
    assert (engine.fold(CellCounts(GRID)) == before).all()


def test_nothing_is_kept_after_a_fit(rows, monkeypatch):
    stretches, fold = [], memory._Stretch.fold

    def noted(self, aggregate, is_kept):
        stretches.append(weakref.ref(self))
        return fold(self, aggregate, is_kept)

    monkeypatch.setattr(memory._Stretch, "fold", noted)
    DPM(2, bounds=(-1, 1), max_depth=2, random_state=0).fit(rows)
    assert stretches
    assert [stretch() for stretch in stretches] == [None] * len(stretches)
