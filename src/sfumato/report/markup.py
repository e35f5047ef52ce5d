"""Pieces of HTML. Every function escapes its text."""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A colour that no picture uses. The page replaces it with the colour of its text, light or dark.
_INK = "#010203"
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE: dict[Any, Any] = dict.fromkeys(_INKED, _INK) | {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "svg.fonttype": "none",
}
_MARGIN = 0.05  # above and below a picture, in inches
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def paragraph(text: str, css: str = "") -> str:
    """Return a paragraph of the class `css`."""
    return f'<p class="{css}">{html.escape(text)}</p>' if css else f"<p>{html.escape(text)}</p>"


def facts(pairs: Mapping[str, str]) -> str:
    """Return a list of names and values, set large."""
    items = (f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in pairs.items())
    return f'<dl class="facts">{"".join(items)}</dl>'


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    foot: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> str:
    """Return a table whose first column names its rows.

    Parameters
    ----------
    caption : str
    head : sequence of str
    rows : sequence of sequences of str
    foot : sequence of str
        A last row of totals.
    texts : sequence of str
        Names in `head`, other than the first, of columns that hold words instead of numbers.
    """
    words = [j == 0 or name in texts for j, name in enumerate(head)]
    parts = [
        f"<caption><span>{html.escape(caption)}</span></caption>",
        f"<thead>{_row(head, words, 'col')}</thead>",
        f"<tbody>{''.join(_row(row, words, 'row') for row in rows)}</tbody>",
    ]
    if foot:
        parts.append(f"<tfoot>{_row(foot, words, 'row')}</tfoot>")
    group = f'<div class="scroll" role="group" aria-label="{html.escape(caption)}" tabindex="0">'
    css = ' class="pairs"' if len(head) == 2 else ""
    return f"{group}<table{css}>{''.join(parts)}</table></div>"


def figure(
    draw: Callable[[Axes], object], alt: str, caption: str, *, salt: str, size: tuple[float, float]
) -> str:
    """Return a picture as inline SVG, in the colours of the page.

    Parameters
    ----------
    draw : callable
        Draws on the axes that it is given.
    alt : str
        What the picture shows, for readers who cannot see it.
    caption : str
    salt : str
        Makes the identifiers of this picture unique in the page.
    size : (float, float)
        Width and height in inches. Unused height is cut off.
    """
    svg = _svg(draw, salt, size)
    opening = f'<svg role="img" aria-label="{html.escape(alt)}" viewBox="{_view_box(svg)}">'
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    return f"<figure>{opening}{body}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _row(cells: Sequence[str], words: Sequence[bool], scope: str) -> str:
    drawn = []
    for j, (cell, is_text) in enumerate(zip(cells, words, strict=True)):
        css = "" if is_text else ' class="number"'
        is_head = scope == "col" or j == 0
        tag = f'th scope="{scope}"' if is_head else "td"
        drawn.append(f"<{tag}{css}>{html.escape(cell)}</{tag[:2]}>")
    return f"<tr>{''.join(drawn)}</tr>"


def _svg(draw: Callable[[Axes], object], salt: str, size: tuple[float, float]) -> str:
    from matplotlib import rc_context
    from matplotlib.transforms import Bbox

    buffer = io.StringIO()
    with rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # the browser has more fonts
        sheet = plot.blank(*size)
        ax = sheet.add_subplot()
        draw(ax)
        ax.set_title("")  # the page has headings
        sheet.draw_without_rendering()  # sets the layout
        drawn = sheet.get_tightbbox()
        used = Bbox([[0.0, max(drawn.y0 - _MARGIN, 0.0)], [size[0], min(drawn.y1 + _MARGIN, size[1])]])
        sheet.savefig(buffer, format="svg", dpi=200, metadata=_NO_METADATA, bbox_inches=used)
    return _apart(buffer.getvalue(), salt).replace(_INK, "currentColor")


def _apart(svg: str, salt: str) -> str:
    """Prefix the identifiers, because matplotlib starts from one in each picture."""
    svg = re.sub(r'(<[^<>]* id=")', rf"\g<1>{salt}-", svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{salt}-", svg)


def _view_box(svg: str) -> str:
    found = re.search(r'viewBox="([-\d. ]+)"', svg)
    return found[1] if found else "0 0 360 288"
