"""Profiles as a list of numbers."""

from __future__ import annotations

import math
from typing import Any

from sfumato.domain.columns import Described
from sfumato.public.profiles.estimates import Estimate, Tells
from sfumato.public.profiles.wording import iso_date

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
        for column, kind, statistic, three in _numbers(profiles, cluster):
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
                }
            )
    return found


def _numbers(profiles: Tells, cluster: int | None) -> list[tuple[str, str, Any, tuple[Any, Any, Any]]]:
    found: list[tuple[str, str, Any, tuple[Any, Any, Any]]] = [("", "size", "rows", profiles.size(cluster))]
    for column in profiles.columns:
        name = column.column
        if column.kind == "level":
            shares = profiles.share(cluster, name)
            found += [(name, column.kind, level, three) for level, three in shares.items()]
            continue
        if column.kind == "cycle":
            told = profiles.direction(cluster, name)
            found.append((name, column.kind, "mean direction", (told.value, told.low, told.high)))
        else:
            for title, q in QUANTILES.items():
                found.append((name, column.kind, title, _shown(column, profiles.quantile(cluster, name, q))))
        found.append((name, column.kind, "missing", profiles.missing(cluster, name)))
    return found


def _shown(column: Described, three: Estimate) -> tuple[Any, Any, Any]:
    if column.kind != "date":
        return three
    is_long = column.high - column.low >= DAYS
    value, low, high = (math.floor(day) if is_long else day for day in three)
    return iso_date(value), iso_date(low), iso_date(high)
