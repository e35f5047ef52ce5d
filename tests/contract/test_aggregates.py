"""What every aggregate must satisfy: merge laws, a NumPy twin, and the sensitivity that it declares.

An aggregate that is exported without an example here fails the first test.
"""

import importlib
import inspect
import pkgutil
from dataclasses import dataclass, field
from itertools import product

import numba
import numpy as np
import pytest

import sfumato.aggregates
from sfumato import aggregates, domain
from sfumato.aggregates import Cells, RowCount, Sensitivity
from sfumato.domain import Grid

HUGE, TINY = 1e300, 5e-324


@dataclass(frozen=True)
class Example:
    """An aggregate, its obvious twin, and the numbers of its sensitivity that cannot be reached, with why."""

    aggregate: object
    twin: object
    n_features: int = 2
    loose: dict = field(default_factory=dict)


def count_rows(rows):
    return [len(rows)]


def cells_by_comparison(grid):
    """Count by comparing every row with every border: slow, and without division."""

    def twin(rows):
        counts = np.zeros(grid.shape, dtype=np.int64)
        for row in rows:
            index = []
            for value, low, width, m in zip(row, grid.low, grid.widths, grid.shape, strict=True):
                passed = [i for i in range(1, m) if (value - low) * (1 / width) >= i]
                index.append(len(passed))
            counts[tuple(index)] += 1
        return counts.ravel()

    return twin


ONE_ENTRY = "a vector of one entry has no spread, and one person can change no second entry"
GRIDS = [
    Grid((-1.0, -1.0), (1.0, 1.0), (3, 4)),
    Grid((0.0, -5.0), (0.1, 5.0), (7, 1)),
    Grid((-1e-3, 1e6), (1e-3, 1e6 + 1), (2, 2)),
]
EXAMPLES = {
    "RowCount": [Example(RowCount(), count_rows, loose={"spread": ONE_ENTRY, "coordinates": ONE_ENTRY})],
    "Cells": [Example(Cells(grid), cells_by_comparison(grid)) for grid in GRIDS]
    + [Example(Cells(Grid((0.0,), (1.0,), (10,))), cells_by_comparison(Grid((0.0,), (1.0,), (10,))), 1)],
}
CASES = [
    pytest.param(example, id=f"{name}-{i}")
    for name, group in EXAMPLES.items()
    for i, example in enumerate(group)
]
every_aggregate = pytest.mark.parametrize("example", CASES)


def exported():
    found = {name: getattr(aggregates, name) for name in aggregates.__all__}
    return {
        name
        for name, cls in found.items()
        if all(hasattr(cls, method) for method in ("zero", "add", "merge")) and name != "Aggregate"
    }


def kernels():
    modules = [domain] + [
        importlib.import_module(f"sfumato.aggregates.{m.name}")
        for m in pkgutil.iter_modules(sfumato.aggregates.__path__)
    ]
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, numba.core.registry.CPUDispatcher)
    }


def borders(example):
    """Coordinates on, just below and just above every border of a grid, and its corners."""
    grid = getattr(example.aggregate, "grid", None)
    if grid is None:
        return np.zeros((0, example.n_features))
    axes = [
        np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
        for edges in grid.edges()
    ]
    longest = max(map(len, axes))
    diagonal = np.stack([np.resize(axis, longest) for axis in axes], axis=1)
    corners = np.array(list(product(*[(edges[0], edges[-1]) for edges in grid.edges()])))
    return np.concatenate([diagonal, corners])


def extremes(example):
    values = [0.0, -0.0, TINY, -TINY, HUGE, -HUGE, np.finfo(float).max, -np.finfo(float).max, 1e-310, 1.0]
    return np.array(list(product(values, repeat=example.n_features)))


def tables(example, seed=0):
    """Base tables: empty, one row, all equal, duplicates, uniform in and around the domain."""
    rng, d = np.random.default_rng(seed), example.n_features
    grid = getattr(example.aggregate, "grid", Grid((0.0,) * d, (1.0,) * d, (1,) * d))
    inside = rng.uniform(grid.low, grid.high, size=(40, d))
    around = rng.normal(scale=10.0, size=(20, d))
    return {
        "empty": np.empty((0, d)),
        "one": inside[:1],
        "all equal": np.repeat(inside[:1], 30, axis=0),
        "duplicates": np.concatenate([inside, inside, inside[:5]]),
        "uniform": np.concatenate([inside, around]),
        "borders": borders(example),
        "extremes": extremes(example),
    }


def newcomers(example):
    """Rows that may join or leave a table."""
    return np.concatenate(
        [borders(example), extremes(example)[::3], *list(tables(example, seed=1).values())[:3]]
    )


def fold(aggregate, rows):
    return aggregate.add(aggregate.zero(), np.ascontiguousarray(rows, dtype=np.float64))


def measured(change):
    """Sensitivity numbers of one change, in Python integers."""
    entries = [int(c) for c in np.ravel(change)]
    return {
        "l1": sum(abs(c) for c in entries),
        "l2_squared": sum(c * c for c in entries),
        "spread": max(entries) - min(entries),
        "coordinates": sum(c != 0 for c in entries),
    }


def largest(changes):
    found = [measured(change) for change in changes]
    return {name: max(one[name] for one in found) for name in found[0]}


def test_every_exported_aggregate_has_an_example():
    assert exported() == set(EXAMPLES)


@every_aggregate
def test_states_are_int64_and_zero_is_empty_and_fresh(example):
    zero = example.aggregate.zero()
    assert zero.dtype == np.int64
    assert not zero.any()
    example.aggregate.add(zero, tables(example)["uniform"])
    assert not example.aggregate.zero().any()


@every_aggregate
def test_merge_laws(example):
    aggregate = example.aggregate
    a, b, c = (fold(aggregate, tables(example, seed)["uniform"]) for seed in (0, 1, 2))
    before = [state.copy() for state in (a, b, c)]
    merge = aggregate.merge
    assert (merge(merge(a, b), c) == merge(a, merge(b, c))).all()
    assert (merge(a, b) == merge(b, a)).all()
    assert (merge(a, aggregate.zero()) == a).all()
    assert (merge(aggregate.zero(), a) == a).all()
    assert all((x == y).all() for x, y in zip((a, b, c), before, strict=True)), "merge changed its input"


@every_aggregate
@pytest.mark.parametrize("name", ["empty", "one", "duplicates", "uniform", "borders", "extremes"])
def test_any_split_in_any_order_gives_the_same_state(example, name):
    aggregate, rows = example.aggregate, tables(example)[name]
    whole = fold(aggregate, rows)
    rng = np.random.default_rng(3)
    for n_parts in (1, 2, 3, 7):
        shuffled = rng.permutation(rows)
        cuts = np.sort(rng.integers(0, len(rows) + 1, size=n_parts - 1))
        parts = [fold(aggregate, part) for part in np.split(shuffled, cuts)]
        merged = parts[0]
        for part in parts[1:]:
            merged = aggregate.merge(merged, part)
        assert (merged == whole).all()
    state = aggregate.zero()
    for row in rows:
        state = aggregate.add(state, row[None, :])
    assert (state == whole).all()


@every_aggregate
@pytest.mark.parametrize(
    "name", ["empty", "one", "all equal", "duplicates", "uniform", "borders", "extremes"]
)
def test_the_twin_agrees(example, name):
    rows = tables(example)[name]
    with np.errstate(over="ignore"):
        assert (fold(example.aggregate, rows) == example.twin(rows)).all()


@every_aggregate
def test_one_row_never_moves_more_than_declared_and_reaches_it(example):
    aggregate, declared = example.aggregate, vars(example.aggregate.sensitivity)
    reached = dict.fromkeys(declared, 0)
    for table in tables(example).values():
        state = fold(aggregate, table)
        changes = [
            fold(aggregate, np.concatenate([table, row[None, :]])) - state for row in newcomers(example)
        ]
        changes += [fold(aggregate, np.delete(table, i, axis=0)) - state for i in range(min(len(table), 20))]
        for name, value in largest(changes).items():
            assert value <= declared[name], name
            reached[name] = max(reached[name], value)
    loose = set(example.loose) - {"coordinates"}
    assert {k: v for k, v in reached.items() if k not in loose} == {
        k: v for k, v in declared.items() if k not in loose
    }


@every_aggregate
@pytest.mark.parametrize("m", [2, 3, 5])
def test_a_person_of_several_rows_never_moves_more_than_declared_and_reaches_it(example, m):
    aggregate, declared = example.aggregate, vars(example.aggregate.sensitivity.times(m))
    # Persons with random rows, with all rows equal, and with rows that touch as many entries as possible.
    pool, rng = newcomers(example), np.random.default_rng(m)
    persons = [pool[rng.integers(len(pool), size=rng.integers(1, m + 1))] for _ in range(150)]
    persons += [np.repeat(row[None, :], m, axis=0) for row in pool[::4]]
    persons += [np.stack(list({fold(aggregate, row[None, :]).tobytes(): row for row in pool}.values())[:m])]
    reached = dict.fromkeys(declared, 0)
    for table in tables(example).values():
        state = fold(aggregate, table)
        changes = [fold(aggregate, np.concatenate([table, person])) - state for person in persons]
        for name, value in largest(changes).items():
            assert value <= declared[name], name
            reached[name] = max(reached[name], value)
    n_entries = aggregate.zero().size
    for name in declared.keys() - example.loose.keys():
        expected = min(declared[name], n_entries) if name == "coordinates" else declared[name]
        assert reached[name] == expected, name


def test_a_wrong_sensitivity_would_be_seen():
    class TwoCells(Cells):  # counts every row twice, and says once
        def add(self, state, rows):
            return super().add(super().add(state, rows), rows)

    liar = Example(TwoCells(GRIDS[0]), None)
    with pytest.raises(AssertionError):
        test_one_row_never_moves_more_than_declared_and_reaches_it(liar)


@pytest.mark.parametrize("m", [1, 2, 10, 10**6])
def test_times_is_exact(m):
    assert Sensitivity(3, 5, 2, 4).times(m) == Sensitivity(3 * m, 5 * m * m, 2 * m, 4 * m)


def test_there_are_kernels_to_compare():
    assert {"sfumato.domain.cell_index", "sfumato.aggregates.cells._count"} <= set(kernels())


@every_aggregate
def test_kernels_without_the_compiler(example, monkeypatch):
    """Every compiled kernel is replaced by its Python source: the state must not change by a bit."""
    expected = {name: fold(example.aggregate, table) for name, table in tables(example).items()}
    for full_name, kernel in kernels().items():
        module, name = full_name.rsplit(".", 1)
        monkeypatch.setattr(importlib.import_module(module), name, kernel.py_func)
    with np.errstate(all="ignore"):
        for name, table in tables(example).items():
            assert (fold(example.aggregate, table) == expected[name]).all(), name


@pytest.mark.parametrize("name", sorted(set(aggregates.__all__) - {"Aggregate", "Sensitivity"}))
def test_every_aggregate_states_its_privacy_and_proof(name):
    doc = inspect.getdoc(getattr(aggregates, name))
    assert "\nPrivacy\n-------\n" in doc
    assert "docs/proofs/" in doc
