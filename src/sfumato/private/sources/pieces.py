"""Files cut into pieces, one for each task of Spark. Workers read them themselves: no row passes the JVM."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.fs

from sfumato.domain import IntArray
from sfumato.domain.columns import Columns
from sfumato.domain.text import TextFormat
from sfumato.private.engines.spark import Batches, Work
from sfumato.private.sources.files import FileSource, check_files, dataset_of, fragment_of, scanned
from sfumato.private.sources.paths import Files, without_quotes
from sfumato.private.sources.plain_scans import PlainScan
from sfumato.private.sources.text import TextSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS_PER_CORE = 4  # so that cores that are done early have something to do
LEAST_VALUES = 2**24  # per task. A core folds them in a tenth of a second, about the time that a task costs
MOST_VALUES = 2**30  # per task: what a lost worker must do again
BYTES_PER_VALUE = 8  # of files that are not cut
WHOLE = -1  # in place of a row group: the whole file


@dataclass(frozen=True, eq=False)
class Pieces:
    """What workers must know to read files: it travels with every task.

    Parameters
    ----------
    files : Files
    kind : pa.Schema or TextFormat
        Of typed files, or of text files.
    parts : int array of shape (n, 2)
        A file and one of its row groups each.
    cuts : int array of shape (n_tasks + 1,)
        Task i reads the parts from ``cuts[i]`` to ``cuts[i + 1]``.
    scan : PlainScan, optional
        What a Spark frame takes of the files, if the table is one.
    """

    files: Files
    kind: pa.Schema | TextFormat
    parts: IntArray
    cuts: IntArray
    scan: PlainScan | None = None

    @classmethod
    def of(
        cls,
        source: FileSource | TextSource,
        columns: Columns,
        n_cores: int | None,
        scan: PlainScan | None = None,
    ) -> Pieces:
        """Cut a table for some cores. Reads the footers of Parquet files, and checks their types."""
        files, kind = source.files, source.text if isinstance(source, TextSource) else source.dataset.schema
        assert files is not None
        if isinstance(source, FileSource) and scan is None:  # of a plain scan they are checked already
            check_files(source.dataset, files, columns)
        if isinstance(source, TextSource) or files.kind != "parquet":
            infos = files.filesystem.get_file_info(list(files.paths))
            listed = [(i, WHOLE, (info.size or 0) // BYTES_PER_VALUE) for i, info in enumerate(infos)]
        else:
            width = len(scan.read if scan else columns.source_names)
            listed = [
                (i, group.id, group.num_rows * width)
                for i, fragment in enumerate(source.dataset.get_fragments())
                for group in fragment.row_groups
            ]
        table = np.array(listed, dtype=np.int64).reshape(-1, 3)
        travelling = _from_anywhere(files)
        travelling.in_path_names  # noqa: B018  # kept: workers need not look at all paths again
        return cls(travelling, kind, table[:, :2], cuts(table[:, 2], n_cores), scan)

    def batches(self, names: list[str], task: int) -> Iterator[pa.RecordBatch]:
        """Batches of one task."""
        parts = self.parts[self.cuts[task] : self.cuts[task + 1]]
        paths = [self.files.paths[i] for i in parts[:, 0]]
        if isinstance(self.kind, TextFormat):
            return (batch for batch, _ in TextSource(self.files, self.kind).sized(names, paths))
        groups: dict[str, list[int]] = {}
        for path, group in zip(paths, parts[:, 1].tolist(), strict=True):
            groups.setdefault(path, []).append(group)
        fragments = [
            fragment_of(self.files, path, None if of_file == [WHOLE] else of_file)
            for path, of_file in groups.items()
        ]
        dataset = dataset_of(self.files, fragments, self.kind)
        return (
            scanned(dataset, names)
            if self.scan is None
            else map(self.scan.applied, scanned(dataset, self.scan.read))
        )


def cuts(sizes: IntArray, n_cores: int | None) -> IntArray:
    """Where to cut parts of some sizes into tasks of about the same size.

    Examples
    --------
    >>> cuts(np.full(10, 2**24), n_cores=1).tolist(), cuts(np.full(10, 2**20), n_cores=1).tolist()
    ([0, 2, 5, 7, 10], [0, 10])
    """
    total = int(sizes.sum())
    n_tasks = total // LEAST_VALUES
    if n_cores is not None:
        n_tasks = max(min(n_tasks, TASKS_PER_CORE * n_cores), total // MOST_VALUES)
    middles = np.cumsum(sizes) - sizes / 2
    inner = np.searchsorted(middles, total * np.arange(1, n_tasks) / max(n_tasks, 1))
    found = np.unique([0, *inner, len(sizes)])
    return found if len(found) > 1 else np.array([0, 0])


def _from_anywhere(files: Files) -> Files:
    """The files with a file system that does not depend on the folder in which a worker runs."""
    if not isinstance(files.filesystem, pa.fs.LocalFileSystem) or Path(files.paths[0]).is_absolute():
        return files
    return replace(files, filesystem=pa.fs.SubTreeFileSystem(str(Path.cwd()), files.filesystem))


@dataclass(frozen=True, eq=False)
class SparkPieces:
    """Rows of files, which the tasks of Spark read themselves. All workers must see the files.

    Parameters
    ----------
    spark : SparkSession
    pieces : Pieces
    """

    spark: Any
    pieces: Pieces

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.pieces.cuts) - 1

    @property
    def n_states(self) -> int:
        """Number of states: one for each task."""
        return self.n_tasks

    def mapped(self, names: list[str], work: Work, schema: str) -> DataFrame:
        """What `work` makes of the rows of each task, given in batches of the named columns."""
        tasks = self.spark.range(0, self.n_tasks, 1, self.n_tasks)
        frame: DataFrame = tasks.mapInArrow(partial(_on_pieces, self.pieces, names, work), schema)
        return frame


def _on_pieces(pieces: Pieces, names: list[str], work: Work, batches: Batches) -> Batches:
    """On a worker: read the pieces whose numbers come from Spark, and work on their batches."""
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    read = chain.from_iterable(pieces.batches(names, number) for number in numbers)
    return work(without_quotes(read))


def n_cores(spark: Any) -> int | None:
    """Number of cores of all workers, or None if Spark does not say."""
    with contextlib.suppress(Exception):  # Spark Connect has no context
        return max(1, int(spark.sparkContext.defaultParallelism))
    return None
