"""Second moments by matrix products: exact integers, whatever the order, and no row weighs too much."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.domain import LATTICE_RADIUS
from sfumato.domain.partitions import Subset, Tree
from sfumato.errors import ParameterError
from sfumato.private.aggregates import products
from sfumato.private.aggregates.moments import GroupedMoments, WideMoments

EXTREMES = [0.0, -0.0, 5e-324, 1e-310, 1.0, -1.0, 1e16, 1e140, -1e140, 1e300, -1e300, np.finfo(float).max]


def wide(d, radius=1.0, partition=None):
    return WideMoments(partition or Tree.root(), np.zeros((1, d)), np.array([radius]), "full")


def fold(aggregate, rows):
    low, high = aggregate.add(aggregate.zero(), np.ascontiguousarray(rows))
    assert not high.any()
    return low


def unit_rows(n, d, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("d", [1, 7, 130, 300])
def test_matrix_products_are_those_of_python_integers(d):
    rows, state = unit_rows(50, d), np.zeros(d * (d + 1) // 2, dtype=np.int64)
    products.add_products(state, rows, np.zeros(50, dtype=np.int64), np.zeros(d), 1.0)
    units = np.zeros_like(rows)
    products._fill_coarse(rows, np.zeros(50, dtype=np.int64), np.zeros(d), 2.0**-13, units)
    whole = units.astype(np.int64).astype(object)
    weights = np.where(np.eye(d, dtype=bool), 8, 11)
    assert (state == (weights * (whole.T @ whole))[np.triu_indices(d)]).all()


@pytest.mark.parametrize("d", [3, 130])
def test_moments_do_not_depend_on_blocks_order_or_neighbours(d, monkeypatch):
    rng = np.random.default_rng(d)
    rows = np.concatenate([unit_rows(400, d), rng.choice(EXTREMES, size=(100, d)), np.zeros((9, d))])
    whole = fold(wide(d), rows)
    assert (fold(wide(d), rows[rng.permutation(len(rows))]) == whole).all()
    cuts = np.sort(rng.integers(0, len(rows) + 1, size=20))
    assert (sum(fold(wide(d), part) for part in np.split(rows, cuts)) == whole).all()
    assert (sum(fold(wide(d), row[None, :]) for row in rows) == whole).all()
    for name, value in (("ROWS_AT_A_TIME", 7), ("PANEL", 5)):
        monkeypatch.setattr(products, name, value)
        assert (fold(wide(d), rows) == whole).all()


@pytest.mark.parametrize("d", [1, 2, 64, 300])
def test_no_row_however_extreme_weighs_more_than_declared(d):
    rng = np.random.default_rng(d)
    axis, diagonal = np.eye(1, d)[0], np.ones(d)
    rows = [axis, diagonal, 1e300 * axis, -1e300 * diagonal, diagonal / np.sqrt(d), (diagonal - 0.5) / 2**13]
    rows += [*rng.choice(EXTREMES, size=(30, d)), *unit_rows(30, d), *unit_rows(30, d) * 10]
    declared = wide(d).sensitivity
    for row in rows:
        entries = [int(value) for value in fold(wide(d), row[None, :])[0]]
        assert sum(map(abs, entries)) <= declared.l1
        assert sum(value**2 for value in entries) <= declared.l2_squared
        assert max(entries) - min(entries) <= declared.spread
        assert np.count_nonzero(entries) <= declared.coordinates
    on_axis, on_diagonal = (fold(wide(d), 2 * row[None, :])[0].astype(object) for row in (axis, diagonal))
    assert (on_axis**2).sum() >= 0.99 * declared.l2_squared
    assert np.abs(on_diagonal).sum() >= 0.99 * declared.l1


@pytest.mark.parametrize("d", [2, 65])
def test_counts_sums_and_all_sensitivities_but_one_are_those_of_grouped_moments(d):
    rows = unit_rows(300, d) * np.random.default_rng(1).uniform(0, 2, size=(300, 1))
    fine = GroupedMoments(Tree.root(), np.zeros((1, d)), np.ones(1), "full")
    assert replace(wide(d).sensitivity, l1=fine.sensitivity.l1) == fine.sensitivity
    of_weights = LATTICE_RADIUS * 3 * (d - 1) // 16  # 11 / 16 for every other column in the place of 8 / 16
    assert wide(d).sensitivity.l1 == fine.sensitivity.l1 + of_weights
    assert (fold(wide(d), rows)[:, : 2 + d] == fold(fine, rows)[:, : 2 + d]).all()


def test_one_column_costs_what_it_costs_without_weights():
    """There are no products of two columns, and so nothing that weighs more."""
    assert wide(1).sensitivity == GroupedMoments.sensitivity_in(1, "full")


def test_rounding_is_far_below_the_noise():
    """Of as many rows, noise of one row's norm per entry: errors of rounding are a hundredth of it."""
    rows, d = unit_rows(2000, 100) * 0.9, 100
    fine = GroupedMoments(Tree.root(), np.zeros((1, d)), np.ones(1), "full")
    error = (wide(d).unpack(fold(wide(d), rows))[3] - fine.unpack(fold(fine, rows))[3])[0]
    mean_error = error / 2000
    assert np.abs(mean_error).max() <= 1e-5
    assert np.sqrt((mean_error**2).mean()) <= 2.0**-14 / np.sqrt(2000 * d)


@pytest.mark.parametrize("d", [1, 2, 9])
def test_products_are_divided_by_their_weights(d):
    """The state holds 8 and 11 times the products, and what is read from it the products themselves."""
    rows = unit_rows(500, d) * 0.8
    sizes, clipped, sums, seconds = wide(d, radius=2.0).unpack(fold(wide(d, radius=2.0), rows))
    assert (sizes[0], clipped[0]) == (500, 0)
    assert sums[0] == pytest.approx(rows.sum(axis=0), abs=1e-4)
    assert seconds[0] == pytest.approx(rows.T @ rows, abs=0.05)
    assert (seconds == seconds.swapaxes(1, 2)).all()
    assert wide(d).second_weight == 11 / 8


def test_rows_in_no_group_are_left_out():
    tree = Tree.root().split(np.array([0]), np.array([1]), np.array([0.0]))
    right = Subset(tree, np.array([1]))
    rows = unit_rows(100, 5)
    assert (fold(wide(5, partition=right), rows) == fold(wide(5), rows[rows[:, 1] >= 0])).all()


def test_only_one_group_and_all_products():
    with pytest.raises(ParameterError, match="`shape` must be 'full' for one group, got 'diag'"):
        WideMoments(Tree.root(), np.zeros((1, 2)), np.ones(1), "diag")
