"""Sparse rows give the same bits from SciPy, from Arrow lists of all kinds, and from files."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy import sparse as sp

from sfumato.domain import Domain, Unit
from sfumato.domain.partitions import Voronoi
from sfumato.domain.sparse import Sparse
from sfumato.errors import DataError, ParameterError
from sfumato.private import active
from sfumato.private.aggregates.active_sums import ActiveSums
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.sources.sparse import open_rows

D = 200
OPTIONS = {"max_active": 9, "n_components": 32}
PAIR, ONE = (
    Sparse(**OPTIONS, n_columns=D, lists=("tag", "weight")),
    Sparse(**OPTIONS, n_columns=D, lists="tag"),
)


@pytest.fixture(name="X")
def array():
    return sp.random_array((300, D), density=0.04, format="csr", random_state=np.random.default_rng(0))


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(active, "CHUNK_VALUES", 2**11)


def as_lists(X, kind=pa.list_):
    offsets = pa.array(X.indptr, pa.int64() if kind is pa.large_list else pa.int32())
    array = pa.LargeListArray if kind is pa.large_list else pa.ListArray
    tags = array.from_arrays(offsets, pa.array(X.indices, pa.int32()))
    return pa.table({"tag": tags, "weight": array.from_arrays(offsets, pa.array(X.data))})


def pairs_of(X):
    entries = pa.StructArray.from_arrays([pa.array(X.indices), pa.array(X.data)], ["tag", "weight"])
    return pa.table({"tag": pa.ListArray.from_arrays(pa.array(X.indptr, pa.int32()), entries)})


def states(rows):
    """Sums of coordinates and of active columns, before noise."""
    domain = Domain.from_bounds(rows.sparse, rows.sparse.n_columns)
    cells = Voronoi(np.random.default_rng(1).normal(size=(3, domain.n_features)))
    sums = GroupedSums(cells, np.zeros((3, domain.n_features)), np.ones(3))
    shown = rows.engine(domain, with_active=True)
    return rows.engine(domain).fold(sums), shown.fold(ActiveSums(cells, rows.sparse))


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(states(a), states(b), strict=True))


def opened(X, declared=None, missing="error", unit=None):
    return open_rows(X, declared or Sparse(**OPTIONS), missing, unit or Unit())


def test_all_kinds_of_tables_give_the_same_bits(X, tmp_path):
    expected, table = opened(X), as_lists(X)
    cut = pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)])
    pq.write_table(table.slice(0, 100), tmp_path / "a.parquet", row_group_size=17)
    pq.write_table(table.slice(100), tmp_path / "b.parquet", row_group_size=33)
    pa.feather.write_feather(table, tmp_path / "c.feather")
    for other in (table, cut, as_lists(X, pa.large_list), tmp_path / "*.parquet", tmp_path / "c.feather"):
        assert same(opened(other, PAIR), expected)
    assert same(opened(ds.dataset(sorted(tmp_path.glob("*.parquet"))), PAIR), expected)
    assert same(opened(pairs_of(X), ONE), expected)
    assert same(opened(table.slice(100, 50), PAIR), opened(X[100:150]))


def test_all_kinds_of_sparse_arrays_give_the_same_bits(X):
    expected = opened(X)
    for other in (sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X), X.astype(np.float64)):
        assert same(opened(other), expected)
    shuffled = sp.csr_array((X.data[::-1].copy(), X.indices[::-1].copy(), X.indptr), shape=X.shape)
    assert not shuffled.has_sorted_indices
    assert same(opened(shuffled), opened(shuffled.sorted_indices()))


def test_lists_without_values_are_ones(X):
    ones = X.copy()
    ones.data[:] = 1.0
    assert same(opened(as_lists(X).select(["tag"]), ONE), opened(ones))
    assert same(opened(ones.astype(bool)), opened(ones.astype(np.int8)))


def test_order_makes_no_difference(X):
    order = np.random.default_rng(2).permutation(300)
    assert same(opened(X[order]), opened(X))


def test_the_same_rows_are_left_out_everywhere(X):
    known = pa.array([[0, 3], None, [1, 2], [4], [5, None], [6], [], [D], [7, 7]], pa.list_(pa.int64()))
    weights = pa.array([[1.0, 2.0], [1.0], [1.0], [np.nan], [1.0, 1.0], [None], [], [1.0], [1.0, 1.0]])
    table = pa.table({"tag": known, "weight": weights})
    rows = opened(table, PAIR, "drop")
    finite = np.concatenate([np.isfinite(block).all(axis=1) for block in rows.blocks()])
    assert finite.tolist() == [True, False, False, False, False, False, True, False, True]
    kept = sp.csr_array(([1.0, 2.0, 2.0], ([0, 0, 2], [0, 3, 7])), shape=(3, D))
    assert same(rows, opened(kept))
    with pytest.raises(DataError, match="columns from 0 to 199"):
        opened(table, PAIR).check()


def test_people_have_at_most_their_rows(X, tmp_path):
    table = as_lists(X).append_column("person", pa.array(np.arange(300) % 40))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=50)
    unit = Unit("person", 2)
    rows = opened(table, PAIR, unit=unit)
    assert states(rows)[0][0, :, 0].sum() == 80 * 2**27
    assert same(rows, opened(tmp_path / "a.parquet", PAIR, unit=unit))
    assert same(
        rows, opened(table.take(pa.array(np.random.default_rng(0).permutation(300))), PAIR, unit=unit)
    )
    with pytest.raises(ParameterError, match="`unit` must be None for a sparse array"):
        opened(X, unit=unit)


@pytest.mark.parametrize(
    ("table", "declared", "words"),
    [
        (pa.table({"tag": ["a"]}), ONE, "column 'tag' must hold lists"),
        (pa.table({"tag": [["a"]]}), ONE, "column 'tag' must hold lists"),
        (pa.table({"tag": [[1.5]]}), ONE, "column 'tag' must hold lists"),
        (pa.table({"tag": [[1]], "weight": [["x"]]}), PAIR, "column 'weight' must hold lists"),
    ],
)
def test_other_types_are_refused_before_rows_are_read(table, declared, words, tmp_path):
    with pytest.raises(DataError, match=words):
        opened(table, declared, "drop").check()
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=words):
        opened(tmp_path / "a.parquet", declared).check()


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.eye(3), "must be a sparse array of SciPy"),
        ([[1, 2]], "must be a sparse array of SciPy"),
        (sp.csr_array(np.eye(3) * 1j), "real numbers"),
    ],
)
def test_other_tables_are_refused(X, words):
    with pytest.raises((ParameterError, DataError), match=words):
        opened(X)


def test_a_damaged_array_is_refused(X):
    X.indptr[5] = 10**6
    with pytest.raises(DataError, match="sound CSR array"):
        opened(X)


def test_the_column_with_lists_must_be_named(X):
    with pytest.raises(ParameterError, match="`lists` of `Sparse` must name"):
        opened(as_lists(X), Sparse(n_columns=D))
    with pytest.raises(ParameterError, match="column 'tag' must be in the table"):
        opened(as_lists(X).rename_columns(["a", "b"]), ONE)
