"""Tables with categories whose levels are not public: they are found first, and then become coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sfumato.budget import PricedPlan
from sfumato.curator.curator import Curator
from sfumato.curator.tables import Table
from sfumato.domain.columns import Columns, Coordinate, Missing
from sfumato.domain.levels import with_levels
from sfumato.private.engines.levels import LevelEngine
from sfumato.private.sources import Source
from sfumato.private.sources.levels import level_counts
from sfumato.private.sources.sparse import SparseRows

Levels = Mapping[str, Sequence[str]]


def open_levels(table: Table, names: Sequence[str], missing: Missing, described: Sequence[str] = ()) -> Table:
    """The table, ready to be asked for the levels of some of its columns, and of described ones.

    Reads no row.
    """
    source, columns = table._rows, table.columns
    assert columns is not None
    assert not isinstance(source, np.ndarray | SparseRows)
    nothing: Levels = dict.fromkeys(names, ())
    source.check_types(with_levels(columns, table.domain, nothing, missing)[0])  # what stands in for missing
    coordinates, others = (tuple(Coordinate(name, "other") for name in some) for some in (names, described))
    wanted = replace(columns, coordinates=coordinates, described=others)
    return replace(table, _open_engine=lambda: _engine(source, wanted))


def table_with_levels(table: Table, found: Levels, missing: Missing) -> Table:
    """The table with one coordinate for each level that was found."""
    source, before = table._rows, table.columns
    assert before is not None
    assert not isinstance(source, np.ndarray | SparseRows)
    columns, space = with_levels(before, table.domain, found, missing)
    domain = table.scaling.applied(space, columns.coordinates)
    return Table(
        domain, columns, columns.labels, source, lambda: source.engine(columns, domain), table.scaling
    )


def move_to(curator: Curator, table: Table, plan: PricedPlan) -> None:
    """Let a curator that found levels ask the table that has them."""
    curator.move(table._open_engine(), table.domain, plan)


def _engine(source: Source, columns: Columns) -> LevelEngine:
    return LevelEngine(columns.width, lambda: level_counts(source, columns))
