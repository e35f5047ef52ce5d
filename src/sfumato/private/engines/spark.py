"""Rows that Spark spreads over its workers."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.columns import Columns
from sfumato.errors import DataError
from sfumato.private.aggregates.base import Aggregate
from sfumato.private.engines.base import add_rows
from sfumato.private.engines.spark_states import STATES, merged, written
from sfumato.private.people import cap_rows
from sfumato.private.reading import read_people, read_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches: TypeAlias = Iterator[pa.RecordBatch]
Work: TypeAlias = Callable[[Batches], Batches]

N_UNKNOWN = 200  # states, if Spark does not say how many: its default number of partitions after a shuffle
QUOTING_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # they print what is in an error
# Lines of a worker's traceback without values: our own messages, and those about packages.
HARMLESS = re.compile(r"^sfumato\.errors\.\w+: (.+)$", re.MULTILINE)
NO_PACKAGE = re.compile(
    r"^[\w.]*(?:ModuleNotFound|Import)Error: (?:No module named '(\w+)|.*\b(PyArrow|numpy)\b)?",
    re.MULTILINE | re.IGNORECASE,
)
SHIP_PACKAGES = (
    "Install sfumato with its requirements on every worker, in the versions of the driver. Or ship them: "
    "pack an environment (`venv-pack -o env.tar.gz`), set spark.archives to env.tar.gz#env, and "
    "PYSPARK_PYTHON to ./env/bin/python before Spark starts"
)


class SparkRows(Protocol):
    """Rows that Spark's tasks can read."""

    @property
    def n_tasks(self) -> int | None:
        """Number of tasks, or None if it is not known."""

    @property
    def n_states(self) -> int:
        """Number of states to expect, about."""

    def mapped(self, names: list[str], work: Work, schema: str) -> DataFrame:
        """What `work` makes of the rows of each task, given in batches of the named columns."""


@dataclass(frozen=True, eq=False)
class SparkFrame:
    """Rows of a data frame, which the JVM computes and passes to Python.

    It must give the same rows each time Spark computes it: no unseeded sampling, no ``rand()``.
    """

    frame: DataFrame

    @cached_property
    def n_tasks(self) -> int | None:
        """Number of partitions. Spark may have to shuffle to know it."""
        with contextlib.suppress(Exception):  # Spark Connect has no `rdd`
            return max(1, self.frame.rdd.getNumPartitions())  # an empty frame may have none
        return None

    @cached_property
    def n_states(self) -> int:
        """Number of partitions by the plan, which Spark may still join."""
        planned = 0  # of a scan: its plan does not say, but its partitions are known without a shuffle
        with contextlib.suppress(Exception):  # Spark Connect shows no plan
            planned = self.frame._jdf.queryExecution().executedPlan().outputPartitioning().numPartitions()
        return planned or self.n_tasks or N_UNKNOWN

    def mapped(self, names: list[str], work: Work, schema: str) -> DataFrame:
        """What `work` makes of the rows of each partition, given in batches of the named columns."""
        # Plain names: mapInArrow reads a dot in a name as a struct field.
        plain = self.frame.select(*map(quoted, names)).toDF(*(f"column{j}" for j in range(len(names))))
        return plain.mapInArrow(partial(_renamed, names, work), schema)


@dataclass(frozen=True, eq=False)
class SparkEngine:
    """Rows on Spark. They stay on the workers: the driver receives a few states per fold.

    Every task folds its rows into one state. States are merged in a tree of tasks, the last few by the
    driver. They are integers and merging is exactly associative, so partitions, retries and lost workers do
    not change a bit of the result.

    If the domain names a unit, rows are first grouped by person and capped. The capped rows stay persisted
    on the workers (memory, then disk) until the engine is closed or garbage collected, so later folds need
    no shuffle. All rows of one person must fit into a worker's memory.

    Notes
    -----
    The workers need sfumato. Sessions of Spark Connect, which show neither plans nor partitions, expect 200
    states; there, people are spread over ``spark.sql.shuffle.partitions`` partitions.
    """

    rows: SparkRows
    columns: Columns
    domain: Domain

    def __post_init__(self) -> None:
        check_pyspark()

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.columns.width

    def fold(self, aggregate: Aggregate) -> IntArray:
        """Return the aggregate's raw state over all rows, before noise."""
        with quiet():
            rows, names, read = self._source
            states = rows.mapped(names, partial(fold_task, aggregate, self.domain, read), STATES)
            return merged(aggregate, states, self.rows.n_states)

    def close(self) -> None:
        """Free what is persisted on the workers. A later fold computes it again."""
        if self.domain.unit.column is not None and "_source" in self.__dict__:
            self._source[0].frame.unpersist()  # type: ignore[attr-defined]

    @cached_property
    def _source(self) -> tuple[SparkRows, list[str], Callable[[pa.RecordBatch], FloatArray]]:
        """What a fold reads: rows, the columns of them, and the function that turns a batch into numbers."""
        names = self.columns.source_names
        if self.domain.unit.column is None:
            return self.rows, names, partial(read_rows, self.columns)
        wide = [f"x{j}" for j in range(self.n_features)]
        coordinates = ", ".join(f"{name} double" for name in wide)
        # Bytes have one order and one equality in Spark. Strings may have a collation, which could separate a
        # person's rows.
        spell = partial(spell_people, self.columns)
        spelled = self.rows.mapped(names, spell, f"unit binary, {coordinates}")
        n_tasks = self.rows.n_tasks  # Spark's own setting suits few frames
        groups = spelled.repartition(n_tasks, "unit") if n_tasks else spelled.repartition("unit")
        together = groups.sortWithinPartitions("unit")
        # Spark shares persisted data between equal plans and drops it for all. A token makes plans differ.
        cap = partial(_cap_people, self.domain.unit.max_rows, uuid.uuid4().hex)
        kept = together.mapInArrow(cap, coordinates).persist()
        weakref.finalize(self, _unpersist_later, kept).atexit = False
        return SparkFrame(kept), wide, _stack


def check_pyspark() -> None:
    """Raise if pyspark is missing."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise ImportError("a table on Spark needs pyspark: pip install 'sfumato[spark]'") from None


def quoted(name: str) -> str:
    """A name quoted so that Spark takes it literally."""
    return "`" + name.replace("`", "``") + "`"


def _unpersist_later(frame: DataFrame) -> None:
    # The garbage collector may interrupt a thread in the middle of a JVM call, on that thread's connection. A
    # new thread has its own connection.
    def unpersist() -> None:
        with contextlib.suppress(Exception):  # the session may be over, and its persisted data gone
            frame.unpersist()

    threading.Thread(target=unpersist, daemon=True).start()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Replace a Spark error, which may quote values, by one line that does not."""
    from pyspark.errors import PySparkException

    loggers = [logging.getLogger(name) for name in QUOTING_LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        with warnings.catch_warnings():  # no pandas data frame is created here
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield
    except PySparkException as error:
        message = _harmless(str(error), error.getCondition() or type(error).__name__)
        raise DataError(message) from None
    finally:
        for logger, was_disabled in zip(loggers, before, strict=True):
            logger.disabled = was_disabled


def _harmless(text: str, condition: str) -> str:
    """What to tell of a worker's error without values of the table."""
    if harmless := HARMLESS.findall(text):
        return str(harmless[-1])
    if missing := NO_PACKAGE.search(text):
        return (
            f"the Spark workers could not import {missing[1] or missing[2] or 'a package'}. {SHIP_PACKAGES}"
        )
    return f"the Spark DataFrame could not be read ({condition}); Spark's log says more"


def _renamed(names: list[str], work: Work, batches: Batches) -> Batches:
    """On a worker: work on batches with their own names."""
    return work(batch.rename_columns(names) for batch in batches)


def fold_task(
    aggregate: Aggregate, domain: Domain, read: Callable[[pa.RecordBatch], FloatArray], batches: Batches
) -> Batches:
    """On a worker: fold the rows of one task into one state."""
    from pyspark import TaskContext

    state = aggregate.zero()
    for batch in batches:
        state = add_rows(aggregate, state, read(batch), domain)
    context = TaskContext.get()
    assert context is not None
    yield written(context.partitionId(), state)


def spell_people(columns: Columns, batches: Batches) -> Batches:
    """On a worker: the person of each row as bytes, and the coordinates."""
    for batch in batches:
        people, rows = read_people(columns, batch)
        yield _columnar(rows, unit=people.cast(pa.string()).cast(pa.binary()))


def _cap_people(max_rows: int, _token: str, batches: Batches) -> Batches:
    """On a worker: the capped rows of every person. The rows of one person must be adjacent."""
    for people in whole_people(batches):
        ids = people.column("unit").cast(pa.string())
        yield _columnar(cap_rows(ids, _stack(people.drop_columns("unit")), max_rows))


def whole_people(batches: Batches) -> Batches:
    """Split batches again so that no person is in two of them."""
    waiting: list[pa.RecordBatch] = []  # more rows of its last person may follow
    for batch in batches:
        if not batch.num_rows:
            continue
        people = batch.column("unit")
        start = pc.index(people, people[-1]).as_py()  # the first row of the last person
        new_person = bool(waiting) and waiting[-1].column("unit")[-1] != people[-1]
        if start or new_person:
            yield pa.concat_batches([*waiting, batch.slice(0, start)])
            waiting = []
        waiting.append(batch.slice(start))
    if waiting:
        yield pa.concat_batches(waiting)


def _columnar(rows: FloatArray, **before: pa.Array) -> pa.RecordBatch:
    coordinates = {f"x{j}": pa.array(column) for j, column in enumerate(rows.T)}
    return pa.RecordBatch.from_pydict({**before, **coordinates})


def _stack(batch: pa.RecordBatch) -> FloatArray:
    rows = np.empty((batch.num_rows, batch.num_columns))
    for j, column in enumerate(batch.columns):
        rows[:, j] = column.to_numpy()
    return rows
