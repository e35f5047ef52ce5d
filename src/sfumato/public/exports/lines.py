"""Clusters as lines of a table: one each, over any number of columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.domain import FloatArray
from sfumato.domain.columns import Coordinate
from sfumato.public.exports.exported import Exported

_FIRST, _LAST = -719_162, 2_932_896  # the first and last day of a year of four digits, from 1970
_HEAD = ("label", "count", "count_low", "count_high", "confidence")  # if there is no cluster


def as_csv(clusters: Sequence[Exported], columns: Sequence[Coordinate]) -> str:
    """Clusters as CSV: label, count, interval, size, and where they are in each column.

    Numbers that are not known are empty. Dates are written as in ISO 8601, in UTC.

    Parameters
    ----------
    clusters : sequence of Exported
    columns : sequence of Coordinate
    """
    lines = [cluster.properties | _place(cluster, columns) for cluster in clusters]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0] if lines else _HEAD), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _place(cluster: Exported, columns: Sequence[Coordinate]) -> dict[str, Any]:
    """Centroid and bounding box of a span, or a centre and how far off it may be."""
    if cluster.span is not None:
        low, high = cluster.span.extent
        return {
            **_values("centroid", cluster.center, columns),
            **_values("low", low, columns),
            **_values("high", high, columns),
        }
    place = _values("center", cluster.center, columns)
    if cluster.center_stds is None:
        return place
    named = zip(columns, cluster.center_stds.tolist(), strict=True)
    return place | {f"std_{column}": std for column, std in named}


def _values(what: str, place: FloatArray, columns: Sequence[Coordinate]) -> dict[str, Any]:
    named = zip(columns, place.tolist(), strict=True)
    return {f"{what}_{column}": _written(value, column) for column, value in named}


def _written(value: float, column: Coordinate) -> float | str:
    """A number as it is, and days since the start of 1970 as a date and time."""
    if column.kind != "date":
        return value
    seconds = round(min(max(value, _FIRST), _LAST) * 86_400)
    return str(np.datetime64("1970-01-01T00:00:00") + np.timedelta64(seconds, "s"))
