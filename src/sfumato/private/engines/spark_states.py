"""States on their way through Spark: how they are written, and how many tasks merge them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial, reduce
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.domain import IntArray
from sfumato.private.aggregates.base import Aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATES = "slot int, state binary"
MOST_RECEIVED = 16  # states that the driver merges itself: a stage of tasks takes longer
MOST_BYTES = 2**28  # of states for the driver, a quarter of Spark's default limit for results


def merged(aggregate: Aggregate, states: DataFrame, n_states: int) -> IntArray:
    """Merge states in a tree: levels of tasks on the workers, and the rest on the driver.

    Parameters
    ----------
    aggregate : Aggregate
    states : DataFrame
        Rows with a slot and a state, see `written`.
    n_states : int
        Their number, about. It decides how wide the tree is, and nothing else.
    """
    for n_mergers in widths(n_states, aggregate.zero().nbytes):
        groups = states.repartition(n_mergers, "slot")
        states = groups.mapInArrow(partial(_merge_states, aggregate), STATES)
    return reduce(aggregate.merge, (decode(row["state"]) for row in states.collect()), aggregate.zero())


def widths(n_states: int, n_bytes: int) -> list[int]:
    """Numbers of merging tasks, level by level. Each level has the square root of what the last one left.

    Parameters
    ----------
    n_states : int
    n_bytes : int
        Size of one state.

    Examples
    --------
    >>> widths(10, 10**6), widths(239, 10**6), widths(239, 80 * 10**6), widths(10**4, 10**6)
    ([], [15], [15, 3], [100, 10])
    """
    levels, width = [], n_states
    while width > 1 and (width > MOST_RECEIVED or width * n_bytes > MOST_BYTES):
        width = isqrt(width)
        levels.append(width)
    return levels


def _merge_states(aggregate: Aggregate, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: merge the states of several slots into one. No slots give no state."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    states = (decode(value.as_py()) for batch in batches for value in batch.column("state"))
    for first in states:
        yield written(context.partitionId(), reduce(aggregate.merge, states, first))


def written(slot: int, state: IntArray) -> pa.RecordBatch:
    """A row of a frame of states."""
    arrays = [pa.array([slot], pa.int32()), pa.array([encode(state)], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, names=["slot", "state"])


def encode(state: IntArray) -> bytes:
    """A state in the narrowest integers that hold it. If mostly zero: the places and values of the rest."""
    values = state.ravel()
    places = np.flatnonzero(values)
    narrow, short = _narrow(values), _narrow(places)
    if len(places) * (short.itemsize + narrow.itemsize) < narrow.nbytes:
        narrow = narrow[places]
    else:
        short = short[:0]
    file = io.BytesIO()
    for array in (np.array(state.shape), short, narrow):
        np.save(file, array, allow_pickle=False)
    return file.getvalue()


def decode(encoded: bytes) -> IntArray:
    """The state that was encoded."""
    file = io.BytesIO(encoded)
    shape, places, values = (np.load(file, allow_pickle=False) for _ in range(3))
    state: IntArray = np.zeros(np.prod(shape, dtype=np.int64), dtype=np.int64)
    state[places if len(values) < len(state) else slice(None)] = values
    return state.reshape(shape)


def _narrow(values: IntArray) -> IntArray:
    low, high = (values.min(), values.max()) if len(values) else (0, 0)
    kinds = (np.iinfo(kind) for kind in (np.int8, np.int16, np.int32, np.int64))
    return values.astype(next(kind.dtype for kind in kinds if kind.min <= low and high <= kind.max))
