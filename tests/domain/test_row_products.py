"""Products of rows: the order of their sums is fixed, whichever rows stand beside them."""

import numpy as np
import pytest

from sfumato.domain import row_products
from sfumato.domain.row_products import project


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 103])
@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 3), (17, 4), (20, 9), (3, 130)])
def test_the_number_of_centres_chooses_a_kernel_and_no_result(n, k, d):
    """Also for rows so far away that scores overflow."""
    rng = np.random.default_rng(n)
    centers, values = rng.normal(size=(k, d)), [0.0, -0.0, 5e-324, 1e200, -1e300, np.finfo(float).max]
    for rows in (rng.normal(size=(n, d)), rng.choice(values, size=(n, d)), np.round(rng.normal(size=(n, d)))):
        few, many = np.empty((2, n), dtype=np.int64)
        arguments = np.ascontiguousarray(rows), np.zeros(d), np.ascontiguousarray(centers.T), np.ones(k)
        row_products._fill_nearest_of_few(*arguments, few)
        row_products._fill_nearest_of_many(*arguments, many)
        assert (few == many).all()


def test_project_is_the_product():
    rng = np.random.default_rng(4)
    rows, matrix = rng.normal(size=(50, 20)), rng.normal(size=(6, 20))
    assert project(rows, matrix) == pytest.approx(rows @ matrix.T, rel=1e-12, abs=1e-12)
    whole = rng.integers(-9, 9, size=(50, 20)).astype(float)
    assert (project(whole, np.rint(matrix * 5)) == whole @ np.rint(matrix * 5).T).all()
    assert project(np.empty((0, 20)), matrix).shape == (0, 6)


def test_project_rounds_a_row_alike_wherever_it_stands():
    rng = np.random.default_rng(5)
    rows, matrix = rng.normal(size=(300, 33)), rng.normal(size=(7, 33))
    whole, order = project(rows, matrix), rng.permutation(300)
    assert (project(rows[order], matrix) == whole[order]).all()
    assert (np.concatenate([project(row[None, :], matrix) for row in rows]) == whole).all()
    assert (project(np.asfortranarray(rows), matrix) == whole).all()


@pytest.mark.parametrize(("n", "d", "p"), [(1, 1, 1), (2, 4, 3), (3, 7, 2), (9, 130, 41)])
def test_project_adds_products_in_the_order_of_the_columns(n, d, p):
    rng = np.random.default_rng(n)
    rows, matrix = rng.normal(size=(n, d)), rng.normal(size=(p, d))
    assert (project(rows, matrix) == [sum(row[:, None] * matrix.T) for row in rows]).all()
    row_products._fill_projected.py_func(rows, matrix.T, out := np.zeros((n, p)))
    assert (out == project(rows, matrix)).all()
