"""The map of the spans of a release, written as SVG."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.domain import IntArray
from sfumato.plot import style
from sfumato.plot.columns import Column, columns_of
from sfumato.plot.outlines import number_place, span_colours, stretch_of
from sfumato.public.density.outlines import outlines_of
from sfumato.public.density.spans import Span
from sfumato.release import Release
from sfumato.report.markup import picture
from sfumato.report.sheets import LINE, WIDTH, Axis, Sheet, Tick, number, room, round_ticks

_TALLEST = 298.0  # of a map in points
_BELOW, _ABOVE = 2 * LINE + 12, 6.0


def span_map(release: Release, found: Sequence[Span], alt: str, caption: str) -> str:
    """Return the map: spans within the public bounds, the numbers of the larger ones, and both axes.

    Parameters
    ----------
    release : Release
        Of two columns that are numbers or dates, or of longitude, latitude and others.
    found : sequence of Span
        The largest first.
    alt, caption : str
    """
    across, upright = columns_of(release)[:2]
    heights = _values(upright, style.most_ticks(upright))
    sheet = _sheet(release, max(len(text) for _, text in heights))
    below = [
        Tick(sheet.x.at(value), text)
        for value, text in _values(across, style.most_ticks(across, style.MOST_LETTERS))
    ]
    left = [Tick(sheet.y.at(value), text) for value, text in heights]
    x_name, y_name = style.short_names(style.column_names(release)[:2])
    body = [_shapes(release, found, sheet), sheet.frame(), sheet.left(left, y_name)]
    body += [sheet.below(below, x_name), _numbers(release, found, sheet)]
    return picture(f"0 0 {WIDTH:g} {sheet.y.start + _BELOW:.5g}", "".join(body), alt, caption)


def _values(column: Column, most: int) -> list[tuple[float, str]]:
    """Places of ticks, and their texts."""
    values, digits = round_ticks(column.low, column.high, most)
    if column.kind == "date":
        return [(value, column.written(value)) for value in values]
    if digits > 8 or max(map(abs, values)) >= 1e9:
        return [(value, f"{value:.6g}") for value in values]
    return [(value, f"{value:,.{digits}f}".replace("-", "−")) for value in values]


def _sheet(release: Release, n_letters: int) -> Sheet:
    """The axes, to scale unless the columns differ too much, in the middle of the picture."""
    (x_low, y_low), (x_high, y_high) = release.domain.low[:2], release.domain.high[:2]
    left, right = LINE + 12 + room([Tick(0, "0" * n_letters)]), 20.0
    width, height = WIDTH - left - right, _TALLEST
    ratio = (x_high - x_low) / (y_high - y_low) / stretch_of(release)
    if style.is_to_scale(ratio):
        width, height = min(width, height * ratio), min(height, width / ratio)
    left += (WIDTH - left - right - width) / 2
    return Sheet(Axis(x_low, x_high, left, left + width), Axis(y_low, y_high, _ABOVE + height, _ABOVE))


def _shapes(release: Release, found: Sequence[Span], sheet: Sheet) -> str:
    """Outlines in units of cells, which the drawing stretches: short numbers make a light page."""
    if not found:
        return ""
    grid = found[0].footprint.grid
    (x_low, y_low), (wide, high) = grid.low, grid.widths
    matrix = (wide * sheet.x.scale, 0, 0, high * sheet.y.scale, sheet.x.at(x_low), sheet.y.at(y_low))
    colours, outlines = (
        span_colours(release, found),
        outlines_of(grid.shape, [s.footprint.cells for s in found]),
    )
    paths = (
        f'<path fill="{colour}" stroke="{colour}" vector-effect="non-scaling-stroke" d="{_path(polygons)}">'
        f"<title>span {span.label}: about {round(span.count):,} records</title></path>"
        for span, colour, polygons in zip(found, colours, outlines, strict=True)
    )
    look = 'fill-opacity="0.65" stroke-width="1.2"'
    return f'<g transform="matrix({" ".join(f"{m:.6g}" for m in matrix)})" {look}>{"".join(paths)}</g>'


def _path(polygons: list[list[IntArray]]) -> str:
    """The outline, whose sides follow the grid. Holes run the other way round, so they stay empty."""
    return "".join(_ring(ring) for rings in polygons for ring in rings)


def _ring(corners: IntArray) -> str:
    (x, y), sides = corners[0].tolist(), np.diff(corners[:-1], axis=0).tolist()
    return f"M{x} {y}{''.join(f'h{dx}' if dx else f'v{dy}' for dx, dy in sides)}z"


def _numbers(release: Release, found: Sequence[Span], sheet: Sheet) -> str:
    low, high = np.array(release.domain.low[:2]), np.array(release.domain.high[:2])
    points = max(sheet.x.end - sheet.x.start, sheet.y.start - sheet.y.end)
    size = style.number_size(points / np.abs([sheet.x.scale, sheet.y.scale]))
    wanted = ((span.label, number_place(span.footprint, size)) for span in found)
    places = style.numbers_apart(wanted, size, low, high)
    shrink = style.crowding(len(places))
    return "".join(number(label, *sheet.point(place), shrink) for label, place in places.items())
