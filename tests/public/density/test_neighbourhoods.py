"""Sums over stencils against shifted copies of the whole histogram."""

import numpy as np
import pytest

from sfumato.domain import Grid
from sfumato.public.density import neighbourhoods
from sfumato.public.density.dbscan import stencils_of
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.neighbourhoods import block_bytes, large_sums

# Blocks are 512, 22, 7 and 4 or 6 cells wide: grids within one, along its border, and across several.
SHAPES = [
    (1,), (5,), (511,), (512,), (513,), (1300,),
    (1, 1), (3, 50), (22, 22), (23, 44), (45, 21),
    (1, 1, 1), (7, 8, 6), (3, 15, 14), (14, 1, 9),
    (1, 1, 1, 1), (4, 5, 3, 9), (2, 13, 1, 7),
]  # fmt: skip
ETAS = [4.0, 2.6]


def histogram_of(counts, keep=None):
    grid = Grid((0.0,) * counts.ndim, tuple(map(float, counts.shape)), counts.shape)
    flat = counts.ravel().astype(np.int64)
    if keep is None:
        return NoisyHistogram(grid, flat, "discrete Laplace", 1.0)
    cells = np.flatnonzero(keep).astype(np.int64)
    return NoisyHistogram(grid, flat[cells], "discrete Laplace", 1.0, cells, 1)


def all_sums(counts, stencils):
    """Sum over the stencil of every part of every cell, one shift of the padded counts per offset."""
    d, reach, parts = counts.ndim, stencils.reach, stencils.parts
    padded = np.pad(counts, reach)
    fine = np.zeros(np.array(counts.shape) * parts, dtype=np.int64)
    for number, offsets in enumerate(stencils.offsets()):
        part = np.unravel_index(number, (parts,) * d)
        total = np.zeros(counts.shape, dtype=np.int64)
        for offset in offsets:
            window = tuple(slice(reach + o, reach + o + m) for o, m in zip(offset, counts.shape, strict=True))
            total += padded[window]
        fine[tuple(slice(p, None, parts) for p in part)] = total
    return fine.ravel()


def check(histogram, counts, stencils):
    expected = all_sums(counts, stencils)
    largest = int(expected.max())
    for least in (1, largest // 2 + 1, max(largest, 1), max(largest, 1) + 1):
        cells, sums = large_sums(histogram, stencils, least)
        np.testing.assert_array_equal(cells, np.flatnonzero(expected >= least))
        np.testing.assert_array_equal(sums, expected[cells])
        assert cells.dtype == sums.dtype == np.int64


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dense_and_sparse(shape, eta):
    stencils = stencils_of(len(shape), 1.0, eta)
    rng = np.random.default_rng(sum(shape))
    counts = rng.integers(-6, 10, size=shape)
    check(histogram_of(counts), counts, stencils)
    for share in (0.05, 0.5, 1.0):
        keep = rng.random(counts.size) < share
        listed = np.where(keep.reshape(shape), counts, 0)
        check(histogram_of(counts, keep), listed, stencils)


@pytest.mark.parametrize("shape", [(40,), (9, 30), (5, 6, 7)], ids=str)
def test_no_cells_and_no_counts(shape):
    stencils = stencils_of(len(shape), 1.0, 4.0)
    for histogram in (
        histogram_of(np.zeros(shape)),
        histogram_of(np.zeros(shape), np.zeros(int(np.prod(shape)))),
        histogram_of(np.full(shape, -7)),
    ):
        cells, sums = large_sums(histogram, stencils, 1)
        assert len(cells) == len(sums) == 0


def test_room_that_is_too_small_at_first(monkeypatch):
    monkeypatch.setattr(neighbourhoods, "_FIRST_ROOM", 1)
    counts = np.ones((90, 70), dtype=np.int64)
    stencils = stencils_of(2, 1.0, 4.0)
    check(histogram_of(counts), counts, stencils)
    check(histogram_of(counts, np.ones(counts.size)), counts, stencils)


def test_far_corners_of_a_huge_grid():
    shape = (2**30, 2**30)
    grid = Grid((0.0, 0.0), tuple(map(float, shape)), shape)
    cells = np.array([0, 1, grid.n_cells // 2, grid.n_cells - 1], dtype=np.int64)
    histogram = NoisyHistogram(grid, np.array([5, 6, 7, 8]), "discrete Laplace", 1.0, cells, 5)
    found, sums = large_sums(histogram, stencils_of(2, 1.0, 4.0), 8)
    rows, columns = np.unravel_index(found, (2**31, 2**31))
    assert (sums[rows < 10] == 11).all()
    assert (sums[rows > 10] == 8).all()
    assert rows.max() == columns.max() == 2**31 - 1


def test_memory_is_known_before():
    for d in (1, 2, 3, 4, 5):
        stencils = stencils_of(d, 1.0, 4.0)
        held = sum(offsets.nbytes for offsets in stencils.offsets())
        assert held < block_bytes(stencils) < 1e9
    assert block_bytes(stencils_of(8, 1.0, 4.0)) > 1e9
