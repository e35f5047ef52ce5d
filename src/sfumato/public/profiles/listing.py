"""Profiles as a list of numbers."""

from __future__ import annotations

import math
from typing import Any

from sfumato.domain.columns import Described
from sfumato.public.profiles.estimates import Estimate, Tells
from sfumato.public.profiles.readable import (
    is_readable_quantile,
    is_readable_share,
    is_readable_size,
    spread,
)
from sfumato.public.profiles.wording import iso_date

_Number = tuple[str, str, Any, tuple[Any, Any, Any], bool]  # column, kind, statistic, value, readable

DAYS = 60.0  # bounds that are so far apart: dates are told in days, without a time that looks exact
QUANTILES = {
    "10 % quantile": 0.1,
    "25 % quantile": 0.25,
    "median": 0.5,
    "75 % quantile": 0.75,
    "90 % quantile": 0.9,
}


def list_rows(profiles: Tells) -> list[dict[str, Any]]:
    """One entry for each cluster, column, and level or quantile; first those of the whole table."""
    table: dict[tuple[str, Any], Any] = {}
    found = []
    for cluster in (None, *range(profiles.n_clusters)):
        for column, kind, statistic, three, is_readable in _numbers(profiles, cluster):
            if cluster is None:
                table[column, statistic] = three[0]
            found.append(
                {
                    "cluster": cluster,
                    "column": column,
                    "kind": kind,
                    "statistic": statistic,
                    "value": three[0],
                    "low": three[1],
                    "high": three[2],
                    "table": table[column, statistic],
                    "readable": is_readable,
                }
            )
    return found


def _numbers(profiles: Tells, cluster: int | None) -> list[_Number]:
    size = profiles.size(cluster)
    found: list[_Number] = [("", "size", "rows", size, is_readable_size(size))]
    for column in profiles.columns:
        name, kind = column.column, column.kind
        if kind == "level":
            shares = profiles.share(cluster, name)
            found += [(name, kind, level, each, is_readable_share(*each)) for level, each in shares.items()]
            continue
        if kind == "cycle":
            told = profiles.direction(cluster, name)
            ends = (told.value, told.low, told.high)
            found.append((name, kind, "mean direction", ends, told.is_clear))
        else:
            width = spread(profiles, cluster, name)
            for title, q in QUANTILES.items():
                each = profiles.quantile(cluster, name, q)
                found.append((name, kind, title, _shown(column, each), is_readable_quantile(each, width)))
        missing = profiles.missing(cluster, name)
        found.append((name, kind, "missing", missing, is_readable_share(*missing)))
    return found


def _shown(column: Described, three: Estimate) -> tuple[Any, Any, Any]:
    if column.kind != "date":
        return three
    is_long = column.high - column.low >= DAYS
    value, low, high = (math.floor(day) if is_long else day for day in three)
    return iso_date(value), iso_date(low), iso_date(high)
