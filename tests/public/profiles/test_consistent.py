"""Least squares in closed form against a solver that knows nothing of the structure."""

from itertools import pairwise

import numpy as np
import pytest

from sfumato.public.profiles.consistent import ColumnCounts, agreed, not_negative, reconcile


def columns_of(rng, k, shapes, table_std, std):
    """Counts of columns that agree on sizes, with noise: exact ones, and what is released."""
    sizes = rng.integers(20, 200, k)
    exact, released = [], []
    for n_bins, n_cells in shapes:
        x = np.array([rng.multinomial(size, rng.dirichlet(np.ones(n_bins))) for size in sizes], dtype=float)
        cells = np.sort(np.append(np.arange(n_cells), rng.integers(0, n_cells, n_bins - n_cells)))
        n_fine = rng.integers(1, 5, n_cells)
        table = np.bincount(cells, x.sum(axis=0)) + rng.normal(size=n_cells) * table_std * np.sqrt(n_fine)
        y = x + rng.normal(size=x.shape) * std
        exact.append(x)
        released.append(ColumnCounts(y, cells, table, n_fine * table_std**2))
    return exact, released


def solved(released, std):
    """Weighted least squares with sizes and counts as unknowns: estimates and their covariance."""
    k = len(released[0].clusters)
    lengths = [column.clusters.size for column in released]
    starts = np.cumsum([0, *lengths])
    n = int(starts[-1])
    A, b, w, constraints = [], [], [], []
    for start, column in zip(starts, released, strict=False):
        n_bins = column.clusters.shape[1]
        for i, value in enumerate(column.clusters.ravel()):
            row = np.zeros(n)
            row[start + i] = 1
            A, b, w = [*A, row], [*b, value], [*w, 1 / std]
        for cell, value in enumerate(column.table):
            row = np.zeros(n)
            for c in range(k):
                row[start + c * n_bins : start + (c + 1) * n_bins] = column.cells == cell
            A, b, w = [*A, row], [*b, value], [*w, column.table_variance[cell] ** -0.5]
    for c in range(k):
        for start, column in zip(starts[1:], released[1:], strict=False):
            row, first, other = np.zeros(n), released[0].clusters.shape[1], column.clusters.shape[1]
            row[c * first : (c + 1) * first] = 1
            row[start + c * other : start + (c + 1) * other] = -1
            constraints.append(row)
    A, b, w = np.array(A), np.array(b), np.array(w)
    _, values, rows = np.linalg.svd(np.array(constraints).reshape(-1, n))
    basis = rows[int((values > 1e-9).sum()) :].T  # of the counts that agree
    inner = (A @ basis) * w[:, None]
    covariance = basis @ np.linalg.inv(inner.T @ inner) @ basis.T
    estimate = covariance @ (A.T @ (w**2 * b))
    return (
        [estimate[s:e].reshape(k, -1) for s, e in pairwise(starts)],
        covariance,
        starts,
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("k", "shapes"), [(3, [(4, 2), (5, 5)]), (1, [(3, 1), (2, 2)]), (2, [(6, 3)])])
def test_estimates_and_covariances_are_those_of_least_squares(seed, k, shapes):
    rng = np.random.default_rng(seed)
    _, released = columns_of(rng, k, shapes, table_std=7.0, std=3.0)
    expected, covariance, starts = solved(released, 3.0)
    fit = reconcile(released, 3.0)
    for found, exact, start in zip(fit.columns, expected, starts, strict=False):
        n_bins = exact.shape[1]
        assert found.linear == pytest.approx(exact, abs=1e-6)
        assert found.own == pytest.approx(
            covariance[start : start + n_bins, start : start + n_bins], abs=1e-6
        )
        to_sum = np.tile(np.eye(n_bins), k)
        block = covariance[start : start + k * n_bins, start : start + k * n_bins]
        assert found.total == pytest.approx(to_sum @ block @ to_sum.T, abs=1e-6)
    assert fit.linear_sizes == pytest.approx(expected[0].sum(axis=1), abs=1e-6)
    assert fit.size_std == pytest.approx(np.sqrt(fit.columns[0].own.sum()))
    assert fit.total_std == pytest.approx(np.sqrt(fit.columns[0].total.sum()))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_shown_fits_together(seed):
    rng = np.random.default_rng(seed)
    _, released = columns_of(rng, 5, [(4, 2), (30, 30), (7, 1)], table_std=100.0, std=40.0)
    fit = reconcile(released, 40.0)
    assert (fit.sizes >= 0).all()
    for column in fit.columns:
        assert (column.counts >= 0).all()
        assert column.counts.sum(axis=1) == pytest.approx(fit.sizes)
        assert column.linear.sum(axis=1) == pytest.approx(fit.linear_sizes)


def test_a_table_of_infinite_variance_does_not_count():
    rng = np.random.default_rng(0)
    _, released = columns_of(rng, 3, [(4, 2), (5, 5)], table_std=7.0, std=3.0)
    apart = [
        ColumnCounts(c.clusters, c.cells, c.table + 10_000, np.full(len(c.table), np.inf)) for c in released
    ]
    far = [ColumnCounts(c.clusters, c.cells, c.table, np.full(len(c.table), 1e15)) for c in released]
    for one, other in zip(reconcile(apart, 3.0).columns, reconcile(far, 3.0).columns, strict=True):
        assert one.linear == pytest.approx(other.linear, abs=1e-3)


def test_agreed_estimates_have_one_sum_of_least_variance():
    one = (np.array([10.0, 20.0]), np.eye(2))  # sum 30, variance 2
    other = (np.array([36.0]), np.array([[1.0]]))
    moved, total, variance = agreed([one, other])
    assert total == pytest.approx((30 / 2 + 36) / 1.5)
    assert variance == pytest.approx(1 / 1.5)
    assert [values.sum() for values, _ in moved] == pytest.approx([total, total])
    assert [c.sum() for _, c in moved] == pytest.approx([variance, variance])


def test_not_negative_values_without_rows_are_zero():
    found = not_negative(np.array([[3.0, -5.0], [4.0, 1.0]]), np.array([0.0, 3.0]))
    assert found == pytest.approx(np.array([[0.0, 0.0], [3.0, 0.0]]))
