"""A row is read by what was declared, never by other rows: neighbours in every medium.

One row, or one person, is taken out of a table. Whatever medium holds the table, every other row must keep
its coordinates and its person to the last bit, and everyone else the same rows under the cap.
"""

import os
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.media import DAYS, draw_medium, draw_rows, draw_spark

from sfumato.curator.tables import open_table
from sfumato.domain import Unit
from sfumato.domain.columns import described_columns
from sfumato.domain.partitions import Voronoi
from sfumato.private import people, records
from sfumato.private.aggregates.sums import GroupedSums
from sfumato.private.people import cap_rows
from sfumato.private.reading import read_coordinates, read_people

FRACTION = float(os.environ.get("SFUMATO_CASES", "400")) / 10_000  # of the cases of the slow suite
N_CASES = {  # of each medium in the default suite, and in all tests: 10,000 together if SFUMATO_CASES=10000
    "text": (60, 1500),
    "text in folders": (15, 700),
    "typed files": (40, 1400),
    "typed files in folders": (20, 700),
    "arrow and polars": (60, 2000),
    "objects": (60, 2000),
    "pandas": (45, 1700),
}
LIMITS = (-1e6, 1e6)


@dataclass
class Seen:
    """What is read of a table: multisets of rows, of rows with their person, and of rows under the cap."""

    rows: Counter
    owned: Counter
    capped: Counter

    def capped_of_others(self, person, max_rows):
        """Rows under the cap, without those of one person."""
        own = [row for owner, row in self.owned.elements() if owner == person]
        rows = np.array([np.frombuffer(row) for row in own])
        return (
            self.capped - spelled(cap_rows(pa.array([person] * len(own)), rows, max_rows))
            if own
            else self.capped
        )


def spelled(rows):
    return Counter(row.tobytes() for row in np.ascontiguousarray(rows, dtype=np.float64))


def as_table(batch):
    return batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])


def see(X, declared: dict[str, Any]):
    told = tuple(coordinate for coordinate, _ in described_columns(declared["describe"]))
    table = open_table(X, **{name: value for name, value in declared.items() if name != "describe"})
    columns, source = replace(table.columns, described=told), table._rows
    source.check_types(columns)
    batches = list(source.batches(columns))
    none = pa.table({name: pa.array([], pa.string()) for name in columns.source_names})
    whole = pa.concat_tables(map(as_table, batches)) if batches else none
    rows = read_coordinates(columns, whole)
    ids, used = read_people(columns, whole)
    engine = source.engine(columns, table.domain)  # reads batch by batch
    capped = spelled(getattr(engine, "_capped", engine).rows)
    assert capped == spelled(cap_rows(ids, used, table.domain.unit.max_rows))
    owned = Counter(zip(ids.cast(pa.large_string()).to_pylist(), map(bytes, used), strict=True))
    admitted = table.domain.admits(rows[:, : table.domain.n_features]).tolist()
    return Seen(Counter(zip(map(bytes, rows), admitted, strict=True)), owned, capped)


def draw_declarations(rng, levels):
    """Columns of all kinds to cluster by, and others to describe."""
    bounds = {"x": LIMITS, "y": LIMITS, "day": DAYS, "kind": levels}
    if rng.random() < 0.3:
        bounds |= {"x": {"cycle": (0, 24)}, "day": {"cycle": rng.choice(["day", "week", "year"])}}
    if rng.random() < 0.3 and len(levels) > 1:
        bounds["kind"] = {"levels": levels, "ordered": True}
    chosen = rng.sample(list(bounds), rng.randint(1, 4))
    fills = {"x": 0.5, "y": -1.0, "day": DAYS[0], "kind": levels[0]}
    return {
        "bounds": {name: bounds[name] for name in chosen},
        "unit": Unit("who", rng.choice([1, 1, 2, 5])),
        "missing": rng.choice(["drop", {name: fills[name] for name in chosen if rng.random() < 0.5}]),
        "outside": rng.choice(["clip", "drop"]),
        "describe": {name: bounds[name] for name in bounds if name not in chosen and rng.random() < 0.5},
    }


def draw_removed(rng, rows):
    """Numbers of the rows to take out: one row, or all of a person."""
    one = rng.randrange(len(rows))
    if rng.random() < 0.5:
        return {one}
    return {i for i, row in enumerate(rows) if row[0] is rows[one][0]}


def check_neighbours(rng, kind, folder, monkeypatch):
    medium = draw_medium(rng, kind)
    rows = draw_rows(rng, medium)
    declared = draw_declarations(rng, medium.levels)
    removed = draw_removed(rng, rows)
    monkeypatch.setattr(records, "CHUNK_BYTES", rng.choice([1, 2, 7, 30, 2**20, 2**20, 2**20]))
    monkeypatch.setattr(people, "MEMORY_BYTES", 0 if rng.random() < 0.02 else 2**20)
    whole = see(medium.write(rows, folder), declared)
    rest = see(medium.write([row for i, row in enumerate(rows) if i not in removed], folder), declared)
    assert not rest.rows - whole.rows
    assert (whole.rows - rest.rows).total() == len(removed)
    assert not rest.owned - whole.owned
    changed = {person for person, _ in whole.owned - rest.owned}
    assert len(changed) <= 1
    max_rows = declared["unit"].max_rows
    for person in changed:
        assert whole.capped_of_others(person, max_rows) == rest.capped_of_others(person, max_rows)
    if not changed:
        assert whole.capped == rest.capped


CASES = [pytest.param(kind, n[0], id=f"{kind}-few") for kind, n in N_CASES.items()]
CASES += [
    pytest.param(kind, round(FRACTION * n[1]), id=f"{kind}-many", marks=pytest.mark.slow)
    for kind, n in N_CASES.items()
]


@pytest.mark.parametrize(("kind", "n_cases"), CASES)
def test_neighbours(kind, n_cases, tmp_path, monkeypatch):
    for case in range(n_cases):
        try:
            check_neighbours(random.Random(f"{kind} {case} {n_cases}"), kind, tmp_path / "table", monkeypatch)
        except Exception as error:
            error.add_note(f"case {case} of {kind!r}")
            raise


@pytest.mark.parametrize("case", range(3))
def test_neighbours_on_spark(spark, case):
    """Workers read every row as the same table in memory is read, with and without one row."""
    rng = random.Random(case)
    medium = draw_spark(rng)
    rows = draw_rows(rng, medium)
    declared = draw_declarations(rng, medium.levels)
    removed = draw_removed(rng, rows)
    for some in (rows, [row for i, row in enumerate(rows) if i not in removed]):
        table = medium.write(some, None)
        declared.pop("describe", None)
        local, remote = open_table(table, **declared), open_table(spark.createDataFrame(table), **declared)
        sums = GroupedSums(Voronoi(local.domain.midpoint[None]), local.domain.midpoint[None], np.ones(1))
        assert np.array_equal(remote._open_engine().fold(sums), local._open_engine().fold(sums))
