"""Costs, errors and prototypes of the benchmarks on real tables are what they say."""

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.prototypes import (
    Mixed,
    best_of,
    costs,
    descend,
    level_columns,
    mixed_rows,
    nearest,
    number_columns,
    prototypes_of,
)
from benchmarks.table_bounds import MIXED, NUMERIC, TITLES

from benchmarks import mixed_tables, real_tables
from sfumato.datasets import data_home, load_table

BOUNDS = {"age": (0, 100), "job": ["baker", "smith"], "size": (100, 200)}
needs_data = pytest.mark.skipif(data_home() is None, reason="needs the folder that SFUMATO_DATA names")


def people() -> Mixed:
    table = pa.table(
        {
            "age": [50, 25, 120],
            "job": ["smith", None, "sailor"],
            "size": [150, 100, 200],
            "name": ["a", "b", "c"],
        }
    )
    return mixed_rows(table, BOUNDS)


def random_rows(n: int, seed: int) -> Mixed:
    rng = np.random.default_rng(seed)
    return Mixed(rng.random((n, 2)), rng.integers(0, 3, (n, 2)), (3, 3))


def test_rows_are_in_units_of_their_bounds_and_other_levels_are_other() -> None:
    rows = people()
    assert rows.numbers.tolist() == [[0.5, 0.5], [0.25, 0.0], [1.0, 1.0]]  # clipped
    assert rows.codes.tolist() == [[1], [2], [2]]
    assert rows.n_levels == (3,)


def test_a_mismatch_costs_as_much_as_a_step_across_a_number() -> None:
    one = Mixed(np.array([[0.0]]), np.array([[0, 0]]), (2, 2))
    others = Mixed(np.array([[1.0], [0.0], [0.5]]), np.array([[0, 0], [0, 1], [1, 1]]), (2, 2))
    assert costs(one, others).tolist() == [[1.0, 1.0, 2.25]]


@pytest.mark.parametrize("seed", range(3))
def test_costs_add_up_in_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, prototypes = random_rows(50, seed), random_rows(4, seed + 10)
    monkeypatch.setattr("benchmarks.prototypes.CHUNK", 7)
    labels, total = nearest(rows, prototypes)
    assert labels.tolist() == costs(rows, prototypes).argmin(axis=1).tolist()
    assert total == pytest.approx(costs(rows, prototypes).min(axis=1).sum())


def test_prototypes_are_means_and_modes_and_empty_ones_stay() -> None:
    rows = Mixed(np.array([[0.0], [1.0], [0.5]]), np.array([[1], [1], [0]]), (2,))
    before = Mixed(np.array([[0.2], [0.9]]), np.array([[0], [1]]), (2,))
    after = prototypes_of(rows, np.zeros(3, dtype=int), before)
    assert after.numbers.tolist() == [[0.5], [0.9]]
    assert after.codes.tolist() == [[1], [1]]


@pytest.mark.parametrize("seed", range(3))
def test_descent_never_raises_the_cost_and_stops_at_a_fixed_point(seed: int) -> None:
    rows, start = random_rows(200, seed), random_rows(3, seed + 10)
    found, cost = descend(rows, start)
    assert cost <= nearest(rows, start)[1]
    assert cost == pytest.approx(nearest(rows, found)[1])
    again = prototypes_of(rows, nearest(rows, found)[0], found)
    assert nearest(rows, again)[1] >= cost - 1e-9


def test_best_start_finds_separated_groups() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 50)
    numbers = np.array([[0.1], [0.9], [0.1]])[labels] + rng.normal(0, 0.01, (150, 1))
    codes = np.array([[0, 0], [0, 1], [1, 1]])[labels]
    found, cost = best_of(Mixed(numbers, codes, (2, 2)), 3, n_starts=5, seed=0)
    assert cost < 0.1
    assert sorted(found.codes.tolist()) == [[0, 0], [0, 1], [1, 1]]


def test_error_of_a_centre_is_its_distance_to_the_mean_of_its_rows() -> None:
    X = np.array([[0.0, 0.0], [0.2, 0.4], [1.0, 1.0]])
    centers = np.array([[0.0, 0.1], [0.9, 1.0], [5.0, 5.0]])
    errors = real_tables.center_errors(X, centers, np.array([0, 0, 1]))
    assert np.allclose(errors, [[0.1, 0.1], [0.1, 0.0]])  # the third has no rows


def test_summary_pools_the_errors_of_all_centres() -> None:
    common = {"data": "t", "k": 2, "epsilon": 1.0, "method": "m", "clusters": 2, "seconds": 1.0}
    runs = [
        common | {"ratio": 1.0, "errors": [[1.0, 0.0], [3.0, 0.0]], "warnings": 0},
        common | {"ratio": 1.2, "errors": [[5.0, 1.0]], "warnings": 2},
    ]
    (row,) = real_tables.summarised(runs)
    assert row["ratio"][0] == pytest.approx(1.1)
    assert row["errors"] == [3.0, 0.0]
    assert (row["seeds"], row["warned"]) == (2, 1)
    assert real_tables.worst_and_median(row) == (3.0, 1.5)


@pytest.mark.parametrize(
    ("ratio", "error", "expected"), [(1.03, 2.0, "met"), (1.04, 1.0, "missed"), (1.0, 2.1, "missed")]
)
def test_verdict_needs_inertia_and_every_column(ratio: float, error: float, expected: str) -> None:
    assert real_tables.verdict({"ratio": [ratio, 0.0], "errors": [0.1, error]}, 1.0) == expected


@pytest.mark.parametrize("name", MIXED)
def test_centres_become_prototypes_of_the_likeliest_levels(name: str) -> None:
    bounds = MIXED[name]
    numbers, levels = number_columns(bounds), level_columns(bounds)
    assert list(bounds) == numbers + levels, "numbers come first"
    middle = [(bounds[column][0] + bounds[column][1]) / 2 for column in numbers]
    shares = [np.eye(len(bounds[column]) + 1)[-1] for column in levels]
    found = mixed_tables.as_prototypes(name, np.concatenate([middle, *shares])[None])
    assert np.allclose(found.numbers, 0.5)
    assert found.codes.tolist() == [[len(bounds[column]) for column in levels]]


@needs_data
@pytest.mark.parametrize("name", NUMERIC)
def test_bounds_name_columns_of_the_table_and_hold_most_rows(name: str) -> None:
    assert name in TITLES
    table = load_table(name)
    for column, (low, high) in NUMERIC[name].items():
        values = table[column].drop_null().to_numpy()
        assert np.mean((values >= low) & (values <= high)) > 0.98, column


@needs_data
@pytest.mark.parametrize("name", MIXED)
def test_levels_are_those_of_the_table(name: str) -> None:
    table = load_table(name)
    for column in level_columns(MIXED[name]):
        seen = set(table[column].drop_null().unique().to_pylist())
        assert set(MIXED[name][column]) <= seen, column
