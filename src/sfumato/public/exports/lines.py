"""Clusters as lines of a table: one each, over any number of columns."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.domain import FloatArray
from sfumato.domain.columns import Coordinate, Described
from sfumato.public.exports.exported import Exported
from sfumato.public.profiles.wording import on_cycle

_FIRST, _LAST = -719_162, 2_932_896  # the first and last day of a year of four digits, from 1970
_FINE = 100  # parts of a cycle to which the middle of a span is written
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
        centroid = _values("centroid", cluster.center, columns, cluster.digits)
        return centroid | extent_in(cluster, columns)
    place = _values("center", cluster.center, columns, cluster.digits)
    if cluster.center_stds is None:
        return place
    named = zip(columns, cluster.center_stds.tolist(), strict=True)
    return place | {f"std_{column}": float(f"{std:.3g}") for column, std in named}


def extent_in(cluster: Exported, columns: Sequence[Coordinate], first: int = 0) -> dict[str, Any]:
    """Where a span begins and ends in its columns, from the first that is asked for. A cycle has neither."""
    if cluster.span is None:
        return {}
    own = [j for j, column in enumerate(columns) if j >= first and column.kind != "cycle"]
    (low, high), digits = cluster.span.extent[:, own], cluster.digits
    ends, places = [columns[j] for j in own], [digits[j] for j in own]
    return {
        **_values("low", low, ends, places),
        **_values("high", high, ends, places),
        **_on_cycles(cluster.center, columns, first),
    }


def _on_cycles(center: FloatArray, columns: Sequence[Coordinate], first: int) -> dict[str, str]:
    """The middle of a cluster on each cycle, such as a time of day."""
    found = {}
    for j, column in enumerate(columns):
        if j >= first and column.part == "cos":
            cosine, sine = center[j : j + 2]
            start, length = column.period
            turn = math.atan2(sine, cosine) / (2 * math.pi) % 1.0
            about = Described("", "cycle", start, start + length, unit=column.unit)
            found[f"around_{column.column}"] = on_cycle(about, start + turn * length, length / _FINE)
    return found


def _values(
    what: str, place: FloatArray, columns: Sequence[Coordinate], digits: Sequence[int | None]
) -> dict[str, Any]:
    named = zip(columns, place.tolist(), digits, strict=True)
    return {f"{what}_{column}": _written(value, column, places) for column, value, places in named}


def _written(value: float, column: Coordinate, digits: int | None) -> float | str:
    """A number, rounded, and days since the start of 1970 as a date and time."""
    if column.kind != "date":
        return value if digits is None else round(value, digits)
    seconds = round(min(max(value, _FIRST), _LAST) * 86_400)
    return str(np.datetime64("1970-01-01T00:00:00") + np.timedelta64(seconds, "s"))
