"""Counting values: each read for itself, one per person and column, whatever others have."""

from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError
from sfumato.private import levels
from sfumato.private.levels import count_levels, levels_sensitivity

JOB, TWO = (Coordinate("job", "level"),), (Coordinate("job", "level"), Coordinate("city", "level"))
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([*"vwxyz", None]), st.sampled_from([*"vw", None])),
    max_size=12,
)


def table(rows):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    names = ["who", "job", "city"]
    return pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})


def counted(columns, *batches):
    found = count_levels(columns, batches)
    return {(row["place"], row["text"]): row["n"] for row in found.to_pylist()}


def distance(a, b):
    return sum(abs(a.get(key, 0) - b.get(key, 0)) for key in {*a, *b})


def test_rows_are_counted_without_a_unit():
    rows = [("a", "v", None), ("a", "v", "w"), ("b", "x", "w")]
    found = counted(Columns(TWO, missing="drop"), table(rows))
    assert found == {(0, "v"): 2, (0, "x"): 1, (1, "w"): 2}
    assert list(found) == sorted(found)


def test_a_person_counts_once_per_column():
    rows = [("a", "v", "v")] * 9 + [("b", "v", "w"), ("b", "v", "w")]
    assert counted(Columns(TWO, "who"), table(rows)) == {(0, "v"): 2, (1, "v"): 1, (1, "w"): 1}


@given(ROWS, st.sampled_from("abcd"), ROWS)
def test_a_person_moves_one_count_per_column(rows, person, more):
    """All neighbours by one person: the others' values count as before, one by one."""
    columns = Columns(TWO, "who", "drop")
    others = [row for row in rows if row[0] != person]
    own = [(person, job, city) for _, job, city in more]
    before, after = counted(columns, table(others)), counted(columns, table(others + own))
    gained = {key: n - before.get(key, 0) for key, n in after.items() if n != before.get(key, 0)}
    assert set(before) <= set(after)
    assert set(gained.values()) <= {1}
    assert len({place for place, _ in gained}) == len(gained) <= 2
    assert distance(before, after) <= levels_sensitivity(2).l1 == levels_sensitivity(2).coordinates


def test_brute_force_over_all_small_neighbours():
    """Every table of up to three rows, two people and two values, and every person removed from it."""
    columns, largest = Columns(JOB, "who", "drop"), 0
    rows = list(product("ab", "vw", ["v"]))
    for n_rows in range(4):
        for chosen in product(rows, repeat=n_rows):
            whole = counted(columns, table(chosen))
            for person in "ab":
                rest = counted(columns, table([row for row in chosen if row[0] != person]))
                largest = max(largest, distance(whole, rest))
    assert largest == levels_sensitivity(1).l1 == 1


@given(ROWS, st.randoms())
def test_order_and_batches_make_no_difference(rows, random):
    columns = Columns(TWO, "who", "drop")
    mixed = random.sample(rows, len(rows))
    cut = random.randint(0, len(rows))
    assert counted(columns, table(rows)) == counted(columns, table(mixed[:cut]), table(mixed[cut:]))


def test_merging_on_the_way_makes_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    rows = [(str(p), str(v), None) for p, v in rng.integers(0, 40, (2000, 2))]
    batches = [table(rows[i : i + 50]) for i in range(0, 2000, 50)]
    for columns in (Columns(JOB, "who", "drop"), Columns(JOB, missing="drop")):
        whole = counted(columns, table(rows))
        monkeypatch.setattr(levels, "N_MERGED", 10)
        assert counted(columns, *batches) == whole
        monkeypatch.undo()
    exact = Counter(row[1] for row in rows)
    assert counted(Columns(JOB, missing="drop"), table(rows)) == {(0, v): n for v, n in exact.items()}


def test_colliding_hashes_change_nothing_for_others(monkeypatch):
    """No property of the hash is needed: with a constant one, the smallest text counts."""
    monkeypatch.setattr(levels, "spelling_hashes", lambda names: np.zeros(len(names), np.uint64))
    rows = [("a", "z", None), ("a", "x", None), ("b", "z", None), ("c", "y", None), ("c", "x", None)]
    assert counted(Columns(JOB, "who"), table(rows)) == {(0, "x"): 2, (0, "z"): 1}
    assert counted(Columns(JOB, "who"), table(rows[::-1])) == {(0, "x"): 2, (0, "z"): 1}


def test_values_of_a_person_are_chosen_alike():
    rows = [(f"p{i}", value, None) for i in range(3000) for value in "vwxyz"]
    found = counted(Columns(JOB, "who"), table(rows))
    assert sum(found.values()) == 3000
    assert all(abs(n - 600) < 5 * 600**0.5 for n in found.values())


def test_types_are_spelled_as_text():
    batch = pa.table({"job": pa.array([3, 3, None, 10]), "city": pa.array([True, None, False, True])})
    found = counted(Columns(TWO, missing="drop"), batch)
    assert found == {(0, "10"): 1, (0, "3"): 2, (1, "false"): 1, (1, "true"): 2}
    coded = pa.table({"job": pa.array(["b", "a", None, "b"]).dictionary_encode()})
    assert counted(Columns(JOB, missing="drop"), coded) == {(0, "a"): 1, (0, "b"): 2}


@pytest.mark.parametrize("values", [[0.5], [b"x"]])
def test_other_types_are_refused(values):
    with pytest.raises(DataError, match="'job' must hold text, integers or booleans"):
        counted(Columns(JOB), pa.table({"job": values}))


def test_spellings_of_missing_values_are_no_levels():
    batch = pa.table({"job": ["v", "NA", "", "?", "v"]})
    columns = Columns(JOB, missing="drop", text=TextFormat(missing_values=("", "NA", "?")))
    assert counted(columns, batch) == {(0, "v"): 2}


@pytest.mark.parametrize("row", [("a", None, "v"), (None, "v", "v")])
def test_missing_values_are_refused_or_dropped(row):
    with pytest.raises(DataError, match="'job' must have a value in every row"):
        counted(Columns(JOB, "who"), table([row, ("b", "v", "v")]))
    assert counted(Columns(JOB, "who", "drop"), table([row, ("b", "v", "v")])) == {(0, "v"): 1}


def test_nothing_gives_nothing():
    assert counted(Columns(TWO, "who")) == {}
    assert counted(Columns(TWO)) == {}
