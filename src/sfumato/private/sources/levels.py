"""Count the values of columns whose levels are not public, wherever the table is."""

from __future__ import annotations

import pyarrow as pa

from sfumato.domain.columns import Columns
from sfumato.private.engines.spark_levels import count_levels_on_spark
from sfumato.private.levels import count_levels
from sfumato.private.sources import Source
from sfumato.private.sources.spark import OnSpark


def level_counts(source: Source, columns: Columns) -> pa.Table:
    """How many people have each value of the columns, see `count_levels`. Raw, before noise."""
    if isinstance(source, OnSpark):
        return count_levels_on_spark(source.rows(columns), columns)
    return count_levels(columns, source.batches(columns))
