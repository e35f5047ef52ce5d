"""Bars as rows of a table: a name, a bar with its interval, and the number in words.

They are light, their names break over lines, and a reader that speaks reads the numbers.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sfumato.domain import FloatArray

MOST_PARTS = 6  # colours that can be told apart
_ROOM = 1.02  # of the longest bar, so that what ends there can be seen
_LEAST = 0.6  # per cent of the width: what is not zero can be seen


class Bar(NamedTuple):
    """One row.

    Parameters
    ----------
    name : str
    value : float
        Length of the bar, at least 0.
    text : str
        What stands beside it.
    ends : (float, float), optional
        Interval of the value, drawn as a line.
    mark : float, optional
        Value to compare with, drawn as a tick.
    is_faint : bool
        Whether noise hides the value.
    """

    name: str
    value: float
    text: str
    ends: tuple[float, float] | None = None
    mark: float | None = None
    is_faint: bool = False


def bars(caption: str, rows: Sequence[Bar], *, longest: float | None = None, css: str = "") -> str:
    """Return a table of bars.

    Parameters
    ----------
    caption : str
        Empty for none.
    rows : sequence of Bar
    longest : float, optional
        Value of a bar over the whole width. By default, the largest value or end of an interval.
    css : str
        A class of the table.
    """
    longest = longest or _ROOM * max((_largest(row) for row in rows), default=1.0) or 1.0
    body = "".join(_row(row, longest) for row in rows)
    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f'<table class="{f"bars {css}".strip()}">{above}<tbody>{body}</tbody></table>'


def _row(row: Bar, longest: float) -> str:
    css = ' class="faint"' if row.is_faint else ""
    return (
        f'<tr{css}><th scope="row">{html.escape(row.name)}</th><td>{drawn(row, longest)}</td>'
        f'<td class="number">{html.escape(row.text)}</td></tr>'
    )


def drawn(row: Bar, longest: float) -> str:
    """Return the bar alone, as SVG."""
    parts = [_rect(0.0, _long(row.value, longest), "bar")]
    if row.mark is not None:
        parts.append(_line(_at(row.mark, longest), 0, 10, "mark"))
    if row.ends is not None:
        low, high = (_at(end, longest) for end in row.ends)
        parts.append(f'<path class="whisker" d="M{low:.4g} 5H{high:.4g}"/>')
    return svg(parts, 10)


def svg(parts: Iterable[str], height: float) -> str:
    """Return a drawing over 100 units of width, which stretches to the room it gets. It is hidden from
    readers that speak: the text beside it says the same.
    """
    return (
        f'<svg class="drawn" viewBox="0 0 100 {height:g}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


class Box(NamedTuple):
    """Quantiles of one group of records: of 10, 25, 50, 75 and 90 per cent."""

    name: str
    quantiles: tuple[float, ...]
    text: str
    ends: tuple[float, float]  # interval of the median
    is_faint: bool = False


def boxes(rows: Sequence[Box], limits: tuple[float, float], ends: tuple[str, str]) -> str:
    """Return boxes above each other over one axis.

    Parameters
    ----------
    rows : sequence of Box
        The first in colour.
    limits : (float, float)
        Ends of the axis.
    ends : (str, str)
        The same in words.
    """
    low, width = limits[0], (limits[1] - limits[0]) or 1.0
    body = []
    for i, row in enumerate(rows):
        first, second, middle, third, last = (_at(value - low, width) for value in row.quantiles)
        least, most = (_at(end - low, width) for end in row.ends)
        css = "bar" if i == 0 else "rest"
        parts = [
            f'<path class="reach {css}" d="M{first:.4g} 5H{last:.4g}"/>',
            _rect(second, max(third - second, _LEAST), css),
            _line(middle, 0, 10, "median"),
            f'<path class="whisker" d="M{least:.4g} 5H{most:.4g}"/>' if i == 0 else "",
        ]
        faint = ' class="faint"' if row.is_faint else ""
        body.append(
            f'<tr{faint}><th scope="row">{html.escape(row.name)}</th><td>{svg(parts, 10)}</td>'
            f'<td class="number">{html.escape(row.text)}</td></tr>'
        )
    return f'<table class="bars boxes"><tbody>{"".join(body)}</tbody>{_axis(ends)}</table>'


def _axis(ends: Sequence[str]) -> str:
    """Ends of an axis below the bars of a table."""
    texts = "".join(f"<span>{html.escape(end)}</span>" for end in ends)
    cells = f'<td></td><td><div class="ends">{texts}</div></td><td></td>'
    return f'<tfoot aria-hidden="true"><tr>{cells}</tr></tfoot>'


def columns(
    shares: FloatArray, lows: FloatArray, highs: FloatArray, others: FloatArray, marks: Sequence[str]
) -> str:
    """Return upright bars side by side with their intervals, before steps to compare with.

    Parameters
    ----------
    shares, lows, highs : float array of shape (n,)
    others : float array of shape (n,)
        Drawn as steps.
    marks : sequence of str
        Texts at equal distances below.
    """
    n, top = len(shares), max(float(highs.max()), float(others.max()), 1e-9)
    step = 100 / n

    def up(value: float) -> float:
        return 40 - 40 * value / top

    parts = [
        f'<rect class="bar" x="{(i + 0.1) * step:.4g}" y="{up(s):.4g}" width="{0.8 * step:.4g}" '
        f'height="{40 - up(s):.4g}"/>'
        f'<path class="whisker" d="M{(i + 0.5) * step:.4g} {up(high):.4g}V{up(low):.4g}"/>'
        for i, (s, low, high) in enumerate(zip(shares, lows, highs, strict=True))
    ]
    steps = "".join(f"V{up(other):.4g}H{(i + 1) * step:.4g}" for i, other in enumerate(others))
    parts.append(f'<path class="steps" d="M0 40{steps}V40"/>')
    texts = "".join(f"<span>{html.escape(mark)}</span>" for mark in marks)
    return f'<div class="columns">{svg(parts, 40)}<div class="ends">{texts}</div></div>'


class Parts(NamedTuple):
    """One row of a bar of several parts."""

    name: str
    values: list[float]  # from 0 to 1; what is left to 1 stays grey
    text: str
    is_faint: bool = False


def parts_of_bars(caption: str, names: Sequence[str], rows: Sequence[Parts], n_others: int = 0) -> str:
    """Return a table of bars of several parts, one colour for each name, below a legend.

    Parameters
    ----------
    caption : str
    names : sequence of str
        At most `MOST_PARTS`.
    rows : sequence of Parts
    n_others : int
        How many names the grey rest stands for.
    """
    keys = [f'<span class="key part{j}"></span>{html.escape(name)}' for j, name in enumerate(names)]
    if n_others:
        others = "1 other level" if n_others == 1 else f"{n_others:,} other levels"
        keys.append(f'<span class="key"></span>{others}')
    legend = "".join(f"<span>{key}</span> " for key in keys)
    body = []
    for row in rows:
        drawn_parts, start = [_rect(0.0, 100.0, "rest")], 0.0
        for j, value in enumerate(row.values):
            drawn_parts.append(_rect(start, 100 * value, f"part{j}"))
            start += 100 * value
        css = ' class="faint"' if row.is_faint else ""
        body.append(
            f'<tr{css}><th scope="row">{html.escape(row.name)}</th><td>{svg(drawn_parts, 10)}</td>'
            f"<td>{html.escape(row.text)}</td></tr>"
        )
    return (
        f'<table class="bars stacked"><caption>{html.escape(caption)}<span class="legend">{legend}</span>'
        f"</caption><tbody>{''.join(body)}</tbody></table>"
    )


def _rect(x: float, width: float, css: str) -> str:
    return f'<rect class="{css}" x="{x:.4g}" y="1.5" width="{width:.4g}" height="7"/>'


def _line(x: float, top: float, bottom: float, css: str) -> str:
    return f'<path class="{css}" d="M{x:.4g} {top:g}V{bottom:g}"/>'


def _largest(row: Bar) -> float:
    return max(row.value, row.mark or 0.0, *(row.ends or (0.0,)))


def _at(value: float, longest: float) -> float:
    return 100 * min(max(value / longest, 0.0), 1.0)


def _long(value: float, longest: float) -> float:
    return max(_at(value, longest), _LEAST) if value > 0 else 0.0
