"""NumPy takes the first blocks of a process, and kernels the rest."""

from collections import Counter

import numpy as np
import pytest

from sfumato.domain import Domain, Grid, few_blocks
from sfumato.domain.partitions import Tree, Voronoi
from sfumato.domain.row_products import project


@pytest.fixture
def allow(monkeypatch):
    monkeypatch.setattr(few_blocks, "_taken", Counter())
    return lambda blocks: monkeypatch.setattr(few_blocks, "FEW_BLOCKS", blocks)


def test_the_number_of_blocks_decides_and_nothing_else(allow):
    def kernel(rows):
        return "kernel"

    def twin(rows):
        return "twin"

    allow(2)
    found = [few_blocks.quickest(kernel, twin)(np.zeros((n, 1))) for n in (0, 10**6, 1)]
    assert found == ["twin", "twin", "kernel"]


def test_twins_are_silent(allow):
    allow(1)
    found = few_blocks.quickest(np.log, lambda x: np.log(x))(np.array([0.0, -1.0]))
    np.testing.assert_array_equal(found, [-np.inf, np.nan])


def searches(d):
    rng = np.random.default_rng(d)
    tree = Tree.root().split(np.array([0]), np.array([d - 1]), np.array([0.5]))
    yield Grid((0.0,) * d, (1.0,) * d, (7,) * d).index
    yield tree.index
    yield tree.split(np.array([1]), np.array([0]), np.array([0.25])).index
    for k in (1, 2, 5, 16, 40, 64, 65):
        yield Voronoi(rng.uniform(size=(k, d))).index
        yield Voronoi(rng.integers(3, size=(k, d)) / 2).index  # with ties
    yield Voronoi(rng.uniform(size=(5, 2)), projection=rng.normal(size=(2, d))).index
    matrix = rng.normal(size=(3, d))
    yield lambda rows: project(rows, matrix)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 9])
def test_groups_have_the_same_bits(d, allow):
    rng = np.random.default_rng(d)
    rows = np.concatenate([rng.uniform(-0.1, 1.1, (5000, d)), rng.integers(5, size=(500, d)) / 4])
    for kernel, twin in zip(searches(d), searches(d), strict=True):
        allow(0)
        expected = kernel(rows)
        allow(2**30)
        found = twin(rows)
        assert found.dtype == expected.dtype
        assert (found == expected).all()


@pytest.mark.parametrize("n_bad", [0, 3])
def test_clipped_rows_have_the_same_bits(n_bad, allow):
    rng = np.random.default_rng(n_bad)
    rows = rng.uniform(-2, 2, (400, 3))
    rows[:4] = [[0.0, -0.0, 1.0], [-0.0, 0.0, -1.0], [1e300, -1e300, 0.0], [5e-324, -5e-324, 1.0]]
    rows[10 : 10 + n_bad, 1] = [np.nan, np.inf, -np.inf][:n_bad]
    for low, high in ((-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0)):
        domain = Domain.from_bounds((low, high), 3)
        bits = []
        for blocks in (0, 2**30):
            allow(blocks)
            bits.append([domain.admitted(rows).tobytes(), domain.admits(rows).tobytes()])
        assert bits[0] == bits[1]
        assert len(bits[0][0]) == 8 * 3 * (400 - n_bad)
