"""The map of the spans and the table under it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sfumato import plot
from sfumato.density.spans import Span
from sfumato.release import Release
from sfumato.report.findings import coordinate
from sfumato.report.markup import figure, paragraph, table

_LONGEST_TABLE = 100

_MEANING = (
    "A span is a place where the rows of the table lie dense: cells of a public grid, found from noisy "
    "counts alone. Its outline follows the borders of the cells."
)
_INTERVAL = (
    "How many rows a span holds is estimated. The interval says how far off the estimate may be: if the "
    "method were run many times, {confidence} of such intervals would contain the true number of rows in the "
    "drawn region, whose borders were themselves chosen from the noisy counts."
)
_OUTSIDE = (
    "Places outside the spans may still hold rows, too few or too far apart to be told apart from noise. "
    "Prediction gives the number −1 to what belongs to no span."
)
_NOTHING = (
    "No place is dense enough to be told apart from noise. That does not mean that the table is empty or "
    "even: it may have dense places that are too small to be seen with this budget."
)


def spans(release: Release, found: Sequence[Span]) -> str:
    """Return the section on the dense places that were found, as HTML."""
    guarantee = getattr(release.model, "guarantee", None)
    promise = "" if guarantee is None else paragraph(str(guarantee))
    if not found:
        return paragraph(_NOTHING) + promise
    ordered = sorted(found, key=lambda span: -span.count)
    parts = [paragraph(_MEANING), promise, _picture(release, ordered), _table(release, ordered)]
    parts.append(paragraph(_INTERVAL.format(confidence=_percent(ordered[0]))))
    parts.append(paragraph(_OUTSIDE))
    return "".join(parts)


def _picture(release: Release, ordered: Sequence[Span]) -> str:
    if release.domain.n_features != 2:
        return ""
    names, largest = ", ".join(plot.column_names(release)), ordered[0]
    number = "1 span" if len(ordered) == 1 else f"{len(ordered)} spans"
    alt = (
        f"Picture: a map of two columns ({names}) with {number}; the largest is number {largest.label}, with "
        f"about {round(largest.count):,} rows. The table below gives the numbers."
    )
    caption = (
        "The spans, within the public bounds. The larger ones carry the number that prediction gives to "
        "their rows; colours only tell neighbours apart."
    )
    return figure(partial(plot.spans, release), alt, caption, salt="spans", size=(5.2, 4.7))


def _table(release: Release, ordered: Sequence[Span]) -> str:
    total = sum(span.count for span in ordered)
    head = ["span", "rows", f"{_percent(ordered[0])} interval", "share", *plot.column_names(release)]
    rows = [
        [str(span.label), *_counts(span.count, total, span), *_extent(release, span)]
        for span in ordered[:_LONGEST_TABLE]
    ]
    rest, blank = ordered[_LONGEST_TABLE:], [""] * release.domain.n_features
    if rest:
        rows.append([f"{len(rest)} smaller", *_counts(sum(span.count for span in rest), total), *blank])
    foot = ["all", *_counts(total, total), *blank] if len(ordered) > 1 else []
    caption = "Estimated rows of each span, their share of the rows in all spans, and the extent of the span"
    return table(caption, head, rows, foot=foot)


def _counts(count: float, total: float, span: Span | None = None) -> list[str]:
    interval = f"{round(span.count_low):,} to {round(span.count_high):,}" if span else ""
    return [f"{round(count):,}", interval, f"{count / total:.1%}" if total > 0 else "—"]


def _extent(release: Release, span: Span) -> list[str]:
    low, high = release.domain.low, release.domain.high
    return [
        f"{coordinate(first, a, b)} to {coordinate(last, a, b)}"
        for first, last, a, b in zip(*span.extent, low, high, strict=True)
    ]


def _percent(span: Span) -> str:
    return f"{100 * span.confidence:g}%"
