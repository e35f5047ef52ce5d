"""A sparse row is cut and scaled by its own entries alone."""

import numpy as np
import pytest

from sfumato.domain.sparse import Sparse, hashed
from sfumato.errors import DataError
from sfumato.private.active import Entries, complete_active, cut_rows


def cut(sparse, columns, values=None, known=True):
    """Active columns and values of one row, without what fills it up."""
    entries = Entries(
        np.array([0]),
        np.array([len(columns)]),
        np.array(columns, dtype=np.int64),
        None if values is None else np.array(values, dtype=np.float64),
        np.array([known]),
    )
    row = cut_rows(sparse, entries)[0]
    found = row[: sparse.n_kept] >= 0
    return row[: sparse.n_kept][found].astype(int).tolist(), row[sparse.n_kept :][found]


TEN = Sparse(max_active=4, n_columns=10)


def test_unit_length():
    columns, values = cut(TEN, [1, 7], [3.0, -4.0])
    assert columns == [1, 7]
    assert np.allclose(values, [0.6, -0.8])


def test_a_number_shortens_longer_rows_only():
    shorter = Sparse(max_active=4, n_columns=10, norm=2.5)
    assert cut(shorter, [1, 7], [0.5, 1.0])[1].tolist() == [0.5, 1.0]
    assert np.allclose(cut(shorter, [1, 7], [30.0, -40.0])[1], [1.5, -2.0])


def test_the_order_of_entries_makes_no_difference_and_repeated_columns_add_up():
    assert cut(TEN, [7, 1, 7], [1.0, 3.0, 3.0])[0] == [1, 7]
    assert np.array_equal(cut(TEN, [7, 1, 7], [1.0, 3.0, 3.0])[1], cut(TEN, [1, 7], [3.0, 4.0])[1])


def test_zeros_and_what_cancels_are_not_active():
    assert cut(TEN, [1, 2, 3, 3], [0.0, 1.0, 5.0, -5.0])[0] == [2]
    assert cut(TEN, [], [])[0] == []
    assert np.isfinite(
        cut_rows(TEN, Entries(*[np.zeros(1, dtype=int)] * 2, np.zeros(0, int), None, np.ones(1, bool)))
    ).all()


def test_the_largest_values_are_kept():
    assert cut(TEN, range(10), [1, -9, 2, 8, 3, -7, 4, 6, 5, 0])[0] == [1, 3, 5, 7]


def test_ties_go_by_a_public_order_of_the_columns():
    by_hash = sorted(range(10), key=lambda column: int(hashed(column, 1)))
    assert cut(TEN, range(10))[0] == sorted(by_hash[:4])
    values = np.ones(10)
    values[by_hash[-1]] = 2.0
    assert cut(TEN, range(10), values)[0] == sorted([*by_hash[:3], by_hash[-1]])


@pytest.mark.parametrize("size", [1e-320, 1e-160, 1.0, 1e160, 1.7e308])
def test_numbers_of_any_size_scale(size):
    values = cut(TEN, [0, 5], [size, -size])[1]
    assert np.allclose(values, [np.sqrt(0.5), -np.sqrt(0.5)], rtol=1e-3)


@pytest.mark.parametrize(
    ("columns", "values"),
    [([10], [1.0]), ([-1], [1.0]), ([1], [np.nan]), ([1, 2], [1.0, np.inf]), ([1, 1], [1.5e308, 1.5e308])],
)
def test_rows_that_are_not_as_declared_are_incomplete(columns, values):
    entries = Entries(
        np.array([0, 0]),
        np.array([0, len(columns)]),
        np.array(columns),
        np.array(values),
        np.ones(2, dtype=bool),
    )
    active = cut_rows(TEN, entries)
    assert complete_active(TEN, active, "drop").tolist() == [True, False]
    assert np.isnan(TEN.coordinates(active)[1]).all()
    with pytest.raises(DataError, match="columns from 0 to 9 and finite values"):
        complete_active(TEN, active, "error")


def test_a_row_does_not_depend_on_others():
    """Every row of a random table, alone and among others, gives the same bits."""
    rng, sparse = np.random.default_rng(0), Sparse(max_active=6, n_components=16, n_columns=50)
    n = rng.integers(0, 12, 40)
    stops, columns, values = np.cumsum(n), rng.integers(0, 50, n.sum()), rng.normal(size=n.sum())
    together = cut_rows(sparse, Entries(stops - n, stops, columns, values, np.ones(40, dtype=bool)))
    for i, (start, stop) in enumerate(zip(stops - n, stops, strict=True)):
        one = Entries(
            np.array([0]),
            np.array([stop - start]),
            columns[start:stop],
            values[start:stop],
            np.ones(1, dtype=bool),
        )
        alone = cut_rows(sparse, one)
        assert np.array_equal(alone[0], together[i])
        assert np.array_equal(sparse.coordinates(alone)[0], sparse.coordinates(together)[i])
