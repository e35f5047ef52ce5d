"""Nothing but released values steers a fit: neither rows nor how many there are.

Each case is fitted twice, on neighbouring tables. The second fit folds and draws like the first, but the
curator hands out what it released in the first. So the two may differ only where something other than a
released value decides: what is asked and folded, shapes, messages, warnings, files and results must be equal.
"""

import contextlib
import io
import itertools
import logging
import os
import pickle
import sys
import tempfile
import warnings
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import (
    DPM,
    Budget,
    DPMoG,
    GridKMeans,
    Ledger,
    LloydKMeans,
    SourceTargetClustering,
    estimate_bounds,
    estimate_levels,
    progress,
    suggest_max_rows,
)
from sfumato.curator import Curator, curator
from sfumato.private.aggregates.sparse_cells import SparseCells
from sfumato.private.engines.files import FileEngine
from sfumato.private.engines.memory import MemoryEngine

pytestmark = pytest.mark.usefixtures("quick")
slow = pytest.mark.slow
PURE, APPROXIMATE, ZCDP = {"epsilon": 2}, {"epsilon": 2, "delta": 1e-6}, {"rho": 0.1}
WRITES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "sqlite3.connect"}
WRITES |= {"tempfile.mkdtemp", "tempfile.mkstemp"}


class Files:
    """Notes that files are made, changed and removed in a folder."""

    folder, seen = None, None  # an audit hook cannot be taken away, so one is there for all

    @classmethod
    def hear(cls, event, arguments):
        if cls.folder is None or not (event in WRITES or event == "open"):
            return
        path, *rest = arguments
        writes = event != "open" or bool(rest[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writes and isinstance(path, str) and Path(path).is_relative_to(cls.folder):
            inside = Path(path).relative_to(cls.folder).parts
            cls.seen.append((event, len(inside), inside[0] == "scratch"))  # names are random

    @classmethod
    @contextlib.contextmanager
    def watched(cls, folder, log):
        cls.folder, cls.seen = folder, log
        try:
            yield
        finally:
            cls.folder = cls.seen = None


sys.addaudithook(Files.hear)


class Tape:
    """What a curator released in a first run, in order; in a second run it is released again."""

    def __init__(self):
        self.released, self.plays = [], False

    def rewind(self):
        self.released, self.plays = iter(self.released), True

    def instead_of(self, value):
        if self.plays:
            value = next(self.released, None)
            assert value is not None, "the second run asks for more"
        else:
            self.released.append(value)
        return value


def recorded(patch, tape, log):
    """Make engines and curators note what they do, and release what is on the tape."""
    noisy, limbs = Curator._noisy, Curator._noisy_limbs
    choose, sparse = Curator._choose, curator.sparse_histogram
    declare, find = Curator._declare, Curator.levels

    def declared(self, step, sensitivity, *, selection):
        log.append(("asked", step, sensitivity, selection))
        return declare(self, step, sensitivity, selection=selection)

    def vector(self, record, raw):
        log.append(("noise", record, raw.shape, raw.dtype))
        return tape.instead_of(noisy(self, record, raw))

    def sums(self, record, raw):
        log.append(("noise", record, raw.shape, raw.dtype))
        return tape.instead_of(limbs(self, record, raw))

    def choice(self, record, raw_scores):
        log.append(("choice", record, raw_scores.shape, raw_scores.dtype))
        return tape.instead_of(choose(self, record, raw_scores))

    def histogram(raw_cells, raw_counts, *public):
        log.append(("histogram", *public[:-1]))
        return tape.instead_of(sparse(raw_cells, raw_counts, *public))

    def levels(self, step):
        return tape.instead_of(find(self, step))

    patch.setattr(Curator, "levels", levels)
    patch.setattr(Curator, "_declare", declared)
    patch.setattr(Curator, "_noisy", vector)
    patch.setattr(Curator, "_noisy_limbs", sums)
    patch.setattr(Curator, "_choose", choice)
    patch.setattr(curator, "sparse_histogram", histogram)
    for engine in (MemoryEngine, FileEngine):
        patch.setattr(engine, "fold", noting(engine.fold, log))


def noting(fold, log):
    def noted(self, aggregate):
        state = fold(self, aggregate)
        # The states of sparse cells grow with the number of occupied ones, within the private side only.
        shape = state.shape if not isinstance(aggregate, SparseCells) else None
        log.append(("fold", type(self), spelled(aggregate), shape, state.dtype))
        return state

    return noted


def spelled(question):
    """A question in full, but for what it computes on the way."""
    if is_dataclass(question):
        return type(question).__name__, *(spelled(getattr(question, part.name)) for part in fields(question))
    if isinstance(question, tuple):
        return tuple(map(spelled, question))
    return (question.shape, question.tobytes()) if isinstance(question, np.ndarray) else question


def trace(run, table, tape, folder, caplog):
    """Everything that a run lets be seen."""
    log, text = [], io.StringIO()
    caplog.clear()
    (folder / "scratch").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as around:
        recorded(patch, tape, log)
        patch.setattr(tempfile, "tempdir", str(folder / "scratch"))
        seen = around.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        around.enter_context(contextlib.redirect_stdout(text))
        around.enter_context(contextlib.redirect_stderr(text))
        around.enter_context(caplog.at_level(logging.INFO))
        around.enter_context(progress(lambda step, share: log.append((step, share))))
        around.enter_context(Files.watched(folder, log))
        result = run(table, folder)
    messages = [(record.name, record.getMessage()) for record in caplog.records]
    warned = [(one.category, str(one.message)) for one in seen]
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    said = {"text": text.getvalue(), "messages": messages, "warnings": warned}
    return {"log": log, "files": left, "result": result, **said}


def assert_equal_traces(run, pair, tmp_path, caplog):
    tape, (one, other) = Tape(), pair
    first = trace(run, one, tape, tmp_path / "one", caplog)
    tape.rewind()
    second = trace(run, other, tape, tmp_path / "other", caplog)
    for name, found in first.items():
        assert second[name] == found, name
    assert next(tape.released, None) is None
    assert any(entry[0] == "asked" for entry in first["log"])


def some_rows(n):
    return np.random.default_rng(n).normal(scale=0.4, size=(n, 2))


NEIGHBOURS = {
    "no row, one row": (some_rows(0), some_rows(1)),
    "one row more": (some_rows(60), np.concatenate([some_rows(60), [[1e300, -0.5]]])),
    "one row less": (some_rows(60), some_rows(60)[:-1]),
    "one row changed": (some_rows(60), np.concatenate([some_rows(60)[:-1], [[-1.0, 1.0]]])),
}
KINDS = [PURE, ZCDP, PURE, APPROXIMATE]
every_pair = pytest.mark.parametrize(
    ("pair", "kind"), list(zip(NEIGHBOURS.values(), KINDS, strict=True)), ids=NEIGHBOURS
)
OTHERS = [name for name in NEIGHBOURS if name != "one row more"]
PLACES = [(60, "files"), (0, "files"), (0, "memory"), (60, "memory")]


def people_of(rows):
    """Rows of people with five each; whoever comes last has the most, and more than the cap."""
    people = [f"person {i // 5}" for i in range(len(rows))]
    return pa.table({"who": pa.array(people, pa.string()), "x": rows[:, 0], "y": rows[:, 1]})


def with_newcomer(rows):
    newcomer = pa.table({"who": ["newcomer"] * 9, "x": [0.9] * 9, "y": [-0.9] * 9})
    return pa.concat_tables([people_of(rows), newcomer])


def in_files(table, folder):
    """Two files, of which the last row is in the second."""
    folder.mkdir()
    half = table.num_rows // 2
    for i, (first, last) in enumerate(itertools.pairwise([0, half, table.num_rows])):
        pq.write_table(table.slice(first, last - first), folder / f"{i}.parquet")
    return folder


def fitting(make, *before, **parameters):
    """A run that fits a model, with public tables `before`, and returns what is left but for the time."""
    total = Budget(rho=100) if "rho" in parameters else Budget(100, 0.5)

    def run(table, folder):
        ledger = Ledger.create(folder / "ledger.db", "people", total, allow_seeded=True)
        model = make(random_state=3, ledger=ledger, **parameters).fit(*before, table)
        model.release_.save(folder / "release.json")
        model.release_ = replace(model.release_, created="")
        spent = [(charge.method, charge.plan, charge.outcome) for charge in ledger.history()]
        return model.release_.to_dict(), spent, pickle.dumps(model.set_params(ledger=None))

    return run


@every_pair
def test_rows_in_memory(make, pair, kind, tmp_path, caplog):
    assert_equal_traces(fitting(make, **kind), pair, tmp_path, caplog)


@pytest.mark.parametrize("name", ["one row more", *(pytest.param(name, marks=slow) for name in OTHERS)])
def test_rows_in_files(make, name, tmp_path, caplog):
    pair, kind = NEIGHBOURS[name], ZCDP
    places = [in_files(people_of(rows), tmp_path / f"rows {i}") for i, rows in enumerate(pair)]
    run = fitting(make, bounds={"x": (-1, 1), "y": (-1, 1)}, **kind)
    assert_equal_traces(run, places, tmp_path, caplog)


@pytest.mark.parametrize(("n", "place"), [PLACES[0], *(pytest.param(*p, marks=slow) for p in PLACES[1:])])
def test_people(make, n, place, tmp_path, caplog):
    pair = people_of(some_rows(n)), with_newcomer(some_rows(n))
    if place == "files":
        pair = [in_files(table, tmp_path / f"rows {i}") for i, table in enumerate(pair)]
    run = fitting(make, **ZCDP, unit="who", max_rows_per_unit=4)
    assert_equal_traces(run, pair, tmp_path, caplog)


def test_private_bounds(make, tmp_path, caplog):
    run = fitting(make, bounds="private", epsilon=14)
    assert_equal_traces(run, NEIGHBOURS["one row more"], tmp_path, caplog)


@pytest.mark.parametrize(
    "sanitizer", [{}, {"sanitizer": "nna"}, {"sanitizer": "nas", "t": 5, "bound_share": 0.2}], ids=str
)
@every_pair
def test_source_and_target(sanitizer, pair, kind, tmp_path, caplog):
    targets = np.random.default_rng(0).uniform(-1, 1, size=(30, 2))
    make = partial(SourceTargetClustering, 3, bounds=(-1, 1), **sanitizer)
    assert_equal_traces(fitting(make, targets, **kind), pair, tmp_path, caplog)


@every_pair
def test_estimates(pair, kind, tmp_path, caplog):
    def run(table, folder):
        found = estimate_bounds(table, ["x", "y"], unit="who", random_state=0, **kind)
        return pickle.dumps((found, suggest_max_rows(table, "who", random_state=0, **kind)))

    assert_equal_traces(run, [people_of(rows) for rows in pair], tmp_path, caplog)


@pytest.mark.parametrize("unit", [None, "who"])
@pytest.mark.parametrize("n", [2, 60])
def test_private_levels(n, unit, tmp_path, caplog):
    """One more row, or person, with a value that nobody else has."""

    def run(table, folder):
        kind = APPROXIMATE | {"epsilon": 30, "random_state": 0, "unit": unit}
        bounds = {"x": (-1, 1), "job": {"levels": "private"}}
        model = LloydKMeans(3, bounds=bounds, **kind).fit(table)
        found = estimate_levels(table, ["job"], **kind)
        return pickle.dumps((model.release_.model, model.privacy_, model.feature_names_in_, found))

    table = people_of(some_rows(n)).append_column("job", pa.array(["usual"] * n))
    other = people_of(np.zeros((1, 2))).append_column("job", pa.array(["rare"]))
    other = other.set_column(other.schema.get_field_index("who"), "who", pa.array([10**6]))
    both = [table, pa.concat_tables([table, other.cast(table.schema)])]
    assert_equal_traces(run, both, tmp_path, caplog)


def mixed(table, **levels):
    """The table with more columns, each with one level in all rows."""
    for name, level in levels.items():
        table = table.append_column(name, pa.array([level] * table.num_rows, pa.string()))
    return table


@pytest.mark.parametrize("method", [LloydKMeans, DPM, DPMoG])
@pytest.mark.parametrize("n", [0, pytest.param(60, marks=slow)])
def test_mixed_tables(method, n, tmp_path, caplog):
    """One more person, with a level that nobody else has, a missing value, and hours far out."""
    bounds = {"x": (-1, 1), "y": {"cycle": (0, 24)}, "job": ["usual", "rare"]}
    make = partial(method, bounds=bounds, describe={"ward": ["a"]}, unit="who", max_rows_per_unit=2)
    table = mixed(people_of(some_rows(n)), job="usual", ward="a")
    newcomer = pa.table({"who": ["newcomer"] * 9, "x": [0.9] * 9, "y": [1e9] * 9})
    pair = table, pa.concat_tables([table, mixed(newcomer, job="rare", ward=None)])
    assert_equal_traces(fitting(make, **ZCDP), pair, tmp_path, caplog)


@pytest.mark.parametrize("name", ["no row, one row", "one row more"])
def test_progress_of_files(name, tmp_path):
    seen = []
    for i, rows in enumerate(NEIGHBOURS[name]):
        place, shares = in_files(people_of(rows), tmp_path / str(i)), []
        with progress(lambda step, share, shares=shares: shares.append((step, share))):
            GridKMeans(3, bounds={"x": (-1, 1), "y": (-1, 1)}, n_public=60).fit(place)
        seen.append(shares)
    assert seen[0] == seen[1]
