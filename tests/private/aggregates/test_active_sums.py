"""Sums of active columns against an obvious twin, and one row's reach by brute force."""

import itertools

import numpy as np
import pytest

from sfumato.domain import LATTICE_RADIUS
from sfumato.domain.partitions import Tree
from sfumato.domain.sparse import Sparse
from sfumato.private.active import Entries, cut_rows
from sfumato.private.aggregates.active_sums import ActiveSums
from sfumato.private.aggregates.sums import COUNT_WEIGHT

SPARSE = Sparse(max_active=3, n_columns=5)
HALVES = Tree.root().split(np.array([0]), np.array([0]), np.array([0.5]))


def with_active(sparse, columns, values):
    n = np.array([len(own) for own in columns])
    stops = np.cumsum(n)
    flat = np.array([c for own in columns for c in own], dtype=np.int64)
    amounts = np.array([v for own in values for v in own], dtype=np.float64)
    active = cut_rows(sparse, Entries(stops - n, stops, flat, amounts, np.ones(len(n), dtype=bool)))
    return np.hstack([sparse.coordinates(active), active])


def test_sums_are_those_of_the_scaled_rows():
    rows = with_active(SPARSE, [[0, 2], [1, 4], [3]], [[3.0, 4.0], [-1.0, 1.0], [9.0]])
    aggregate = ActiveSums(HALVES, SPARSE)
    sizes, sums = aggregate.unpack(aggregate.add(aggregate.zero(), rows)[0])
    assert sizes.tolist() == [2, 1]
    half = np.sqrt(0.5)
    assert np.allclose(sums, [[0, -half, 0, 1, half], [0.6, 0, 0.8, 0, 0]], atol=1e-8)


def test_one_row_reaches_its_sensitivity_and_never_more():
    """All rows of a small grid of values: signs, ties, zeros and numbers of any size."""
    aggregate, largest = ActiveSums(HALVES, SPARSE), {"l1": 0, "l2_squared": 0, "coordinates": 0}
    values = [-1e200, -1.0, 0.0, 1e-300, 1.0, 1e200]
    rows = [with_active(SPARSE, [[0, 2, 4]], [own]) for own in itertools.product(values, repeat=3)]
    rows.append(with_active(SPARSE, [range(5)], [np.ones(5)]))
    for row in rows:
        change = [int(c) for c in aggregate.add(aggregate.zero(), row).ravel()]
        found = {"l1": sum(map(abs, change)), "l2_squared": sum(c * c for c in change)}
        found["coordinates"] = sum(c != 0 for c in change)
        for name, value in found.items():
            assert value <= getattr(aggregate.sensitivity, name)
            largest[name] = max(largest[name], value)
    for name, value in largest.items():
        assert value > (1 - 1e-7) * getattr(aggregate.sensitivity, name), name


@pytest.mark.parametrize(
    "columns", [[2, 2, 2], [2, 1, 0], [2.2, 2.7, 2.9], [-5, 7, 1e300], [np.nan, 2, np.nan]]
)
def test_whatever_a_row_holds_a_column_counts_once(columns):
    """Rows that the reader never makes: repeated, unordered, broken and missing columns."""
    row = np.array([[0.0] * 5 + [*columns] + [1.0, 1.0, 1.0]])
    aggregate = ActiveSums(HALVES, SPARSE)
    state, _ = aggregate.add(aggregate.zero(), row)
    assert state[0, 0] == COUNT_WEIGHT
    assert sum(int(c) ** 2 for c in state[:, 1:].ravel()) <= LATTICE_RADIUS**2


def test_the_sensitivity_does_not_depend_on_the_number_of_columns():
    many = ActiveSums(HALVES, Sparse(max_active=3, n_columns=10**6)).sensitivity
    assert many == ActiveSums(HALVES, SPARSE).sensitivity
