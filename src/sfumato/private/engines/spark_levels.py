"""Count the values of columns on Spark. Rows stay on the workers: the driver gets the raw counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from sfumato.domain.columns import Columns
from sfumato.private.engines.spark import SparkRows, quiet, whole_people
from sfumato.private.levels import one_each, read_levels, sorted_counts

# Bytes have one order and one equality in Spark. Strings may have a collation.
_COUNTED = "place int, text binary, n long"


def count_levels_on_spark(table: SparkRows, columns: Columns) -> pa.Table:
    """How many people have each value of the columns, see `count_levels`. Raw, before noise."""
    names = columns.source_names
    with quiet():
        if columns.unit is None:
            counted = table.mapped(names, partial(_read, columns), _COUNTED)
        else:
            read = table.mapped(names, partial(_read, columns), f"unit binary, {_COUNTED}").distinct()
            together = read.repartition("unit").sortWithinPartitions("unit")
            counted = together.mapInArrow(_one_each, _COUNTED)
        rows = counted.groupBy("place", "text").sum("n").collect()
    places, texts, sums = zip(*rows, strict=True) if rows else ((), (), ())
    spelled = pa.array(list(map(bytes, texts)), pa.large_binary()).cast(pa.large_string(), safe=False)
    arrays = [pa.array(places, pa.int32()), spelled, pa.array(sums, pa.int64())]
    return sorted_counts(pa.table(arrays, names=["place", "text", "n"]))


def _read(columns: Columns, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: the values of each batch."""
    for batch in batches:
        read = read_levels(columns, batch)
        yield from _in_bytes(read).to_batches()


def _one_each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: one value per person and column. The rows of one person must be adjacent."""
    for people in whole_people(batches):
        names = ["person", *people.schema.names[1:]]
        table = pa.Table.from_batches([people]).rename_columns(names)
        for place, name in enumerate(names):
            if name in ("person", "text"):
                table = table.set_column(place, name, table[name].cast(pa.large_string(), safe=False))
        yield from _in_bytes(one_each(table)).to_batches()


def _in_bytes(table: pa.Table) -> pa.Table:
    schema = pa.schema(
        [("unit" if field.name == "person" else field.name, _in_spark(field.type)) for field in table.schema]
    )
    return table.rename_columns(schema.names).cast(schema, safe=False)


def _in_spark(kind: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_large_string(kind) else kind
