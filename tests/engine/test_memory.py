"""The engine over an array: any dtype, memory order and number of threads gives the same bits."""

import numpy as np
import pytest

from sfumato.aggregates import Cells, RowCount
from sfumato.domain import Grid
from sfumato.engine import MemoryEngine, memory

GRID = Grid((-1.0, -1.0), (1.0, 1.0), (8, 8))


@pytest.fixture
def rows():
    return np.random.default_rng(0).uniform(-1.2, 1.2, size=(70_001, 2))


def expected(rows):
    return Cells(GRID).add(Cells(GRID).zero(), np.ascontiguousarray(rows, dtype=np.float64))


def test_counts(rows):
    engine = MemoryEngine(rows)
    assert engine.n_features == 2
    assert engine.fold(RowCount()).tolist() == [70_001]
    assert (engine.fold(Cells(GRID)) == expected(rows)).all()


@pytest.mark.parametrize("n", [0, 1, 2, memory.BLOCK_ROWS - 1, memory.BLOCK_ROWS, memory.BLOCK_ROWS + 1])
def test_no_row_is_lost_or_read_twice(rows, n):
    assert MemoryEngine(rows[:n]).fold(RowCount()).tolist() == [n]
    assert (MemoryEngine(rows[:n]).fold(Cells(GRID)) == expected(rows[:n])).all()


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_threads_and_blocks_do_not_matter(rows, monkeypatch, n_threads, block):
    monkeypatch.setattr(memory, "N_THREADS", n_threads)
    monkeypatch.setattr(memory, "BLOCK_ROWS", block)
    assert (MemoryEngine(rows[:2000]).fold(Cells(GRID)) == expected(rows[:2000])).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int8", "uint8", "bool", ">f8"])
def test_dtypes(rows, dtype):
    with np.errstate(invalid="ignore"):
        table = rows.astype(dtype)
    assert (MemoryEngine(table).fold(Cells(GRID)) == expected(table)).all()


def test_memory_orders(rows, tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    mapped = np.load(path, mmap_mode="r")
    for table in (np.asfortranarray(rows), rows[::-1][::-1], np.repeat(rows, 2, axis=1)[:, ::2], mapped):
        assert (MemoryEngine(table).fold(Cells(GRID)) == expected(rows)).all()


def test_rows_are_not_changed(rows):
    before = rows.copy()
    rows.flags.writeable = False
    MemoryEngine(rows).fold(Cells(GRID))
    assert (rows == before).all()
