"""Categories whose levels are found, not declared: from one coordinate to one for each level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sfumato.domain.columns import OTHER, Columns, Coordinate, Missing, blocks_of, category
from sfumato.domain.measure import AS_THEY_ARE
from sfumato.domain.space import Domain


def with_levels(
    columns: Columns, domain: Domain, found: Mapping[str, Sequence[str]], missing: Missing = "error"
) -> tuple[Columns, Domain]:
    """Columns and domain with one coordinate for each level that was found. Columns are not measured yet.

    Parameters
    ----------
    columns : Columns
    domain : Domain
    found : mapping of str to sequence of str
        Levels of categories. Without any, a category keeps its one coordinate.
    missing : {"error", "drop"} or mapping
        A level that stands in for missing values becomes one of the levels.

    Examples
    --------
    >>> from sfumato.domain.columns import read_bounds
    >>> from sfumato.domain import Unit
    >>> columns, domain = read_bounds({"age": (0, 120), "job": {"levels": "private"}}, None, Unit())
    >>> columns, domain = with_levels(columns, domain, {"job": ["baker", "judge"]})
    >>> columns.labels, domain.high
    (('age', 'job=baker', 'job=judge', 'job=other'), (120.0, 1.0, 1.0, 1.0))
    """
    coordinates: list[Coordinate] = []
    low: list[float] = []
    high: list[float] = []
    for coordinate, least, most in zip(columns.coordinates, domain.low, domain.high, strict=True):
        is_found = coordinate.is_open and coordinate.column in found
        own = _expanded(coordinate, found, missing) if is_found else [coordinate]
        coordinates += own
        low += [least] * len(own)
        high += [most] * len(own)
    space = replace(domain, measure=AS_THEY_ARE, blocks=())
    space = replace(space, low=tuple(low), high=tuple(high), blocks=blocks_of(coordinates))
    return replace(columns, coordinates=tuple(coordinates)), space


def _expanded(
    coordinate: Coordinate, found: Mapping[str, Sequence[str]], missing: Missing
) -> list[Coordinate]:
    levels, name = list(found[coordinate.column]), coordinate.column
    if isinstance(missing, str) or name not in missing:
        return category(coordinate, levels)
    stand_in = str(missing[name])
    own = category(coordinate, sorted({*levels, stand_in} - {OTHER}))
    return [replace(c, fill=float(c.kind == "other" or c.level == stand_in)) for c in own]
