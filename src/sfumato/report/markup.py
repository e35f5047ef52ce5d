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
    from matplotlib.figure import Figure

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
_POINTS = 72.0  # per inch, the unit of matplotlib's SVG
_DPI = 200  # of what is drawn as an image
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def paragraph(text: str, css: str = "") -> str:
    """Return a paragraph of the class `css`."""
    return f'<p class="{css}">{html.escape(text)}</p>' if css else f"<p>{html.escape(text)}</p>"


def details(summary: str, body: str) -> str:
    """Return HTML that opens on demand. Paper shows it if it is open."""
    return f"<details><summary>{html.escape(summary)}</summary>{body}</details>"


class Faint(str):
    """Text of a cell that noise hides: the page sets it in grey."""

    __slots__ = ()


def facts(pairs: Mapping[str, str]) -> str:
    """Return a list of names and values, set large."""
    texts = {html.escape(name): html.escape(value).replace(", ", ",<br>") for name, value in pairs.items()}
    items = (f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in texts.items())
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
    view, body = _svg(draw, salt, size)
    return picture(view, body[: body.rindex("</svg>")], alt, caption)


def picture(view: str, body: str, alt: str, caption: str) -> str:
    """Return the SVG inside a box `view` as a picture, for readers who see it and others.

    Parameters
    ----------
    view : str
        The box, as SVG writes it.
    body : str
        Its SVG, escaped.
    alt, caption : str
    """
    opening = f'<svg role="img" aria-label="{html.escape(alt)}" viewBox="{view}">'
    return f"<figure>{opening}{body}</svg><figcaption>{html.escape(caption)}</figcaption></figure>"


def _row(cells: Sequence[str], words: Sequence[bool], scope: str) -> str:
    drawn = []
    for j, (cell, is_text) in enumerate(zip(cells, words, strict=True)):
        names = ["number"] * (not is_text) + ["faint"] * isinstance(cell, Faint)
        css = f' class="{" ".join(names)}"' if names else ""
        is_head = scope == "col" or j == 0
        tag = f'th scope="{scope}"' if is_head else "td"
        drawn.append(f"<{tag}{css}>{html.escape(cell)}</{tag[:2]}>")
    return f"<tr>{''.join(drawn)}</tr>"


def _svg(draw: Callable[[Axes], object], salt: str, size: tuple[float, float]) -> tuple[str, str]:
    """Return the box that a picture uses, and the SVG inside it.

    The layout is found once and the picture is drawn once. `savefig` would do both three times.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    with rc_context({**_STYLE, "svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # the browser has more fonts
        sheet = plot.blank(*size)
        canvas = FigureCanvasSVG(sheet)
        ax = sheet.add_subplot()
        draw(ax)
        ax.set_title("")  # the page has headings
        lowest, highest = _lay_out(sheet, ax)
        sheet.set_dpi(_DPI)
        canvas.print_svg(buffer, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
    top, bottom = size[1] - highest - _MARGIN, size[1] - lowest + _MARGIN
    top, bottom = (_POINTS * min(max(edge, 0.0), size[1]) for edge in (top, bottom))
    svg = _apart(buffer.getvalue(), salt).replace(_INK, "currentColor")
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    return f"0 {top:.6g} {_POINTS * size[0]:.6g} {bottom - top:.6g}", body


def _lay_out(sheet: Figure, ax: Axes) -> tuple[float, float]:
    """Fit the axes and all around them into the sheet. Returns the lowest and highest place used, in inches.

    What stands around axes is as wide wherever they are. So a single pair of axes is measured once, where the
    layout engine of matplotlib measures it again and again. It takes over if there is a bar of colours.
    """
    if len(sheet.axes) > 1:
        engine = sheet.get_layout_engine()
        if engine is not None:
            engine.execute(sheet)
        sheet.set_layout_engine("none")
        drawn = sheet.get_tightbbox()
        return float(drawn.y0), float(drawn.y1)
    sheet.set_layout_engine("none")
    ax.set_position((0.2, 0.2, 0.6, 0.6))
    drawn, (width, height) = sheet.get_tightbbox(), sheet.get_size_inches()
    frame = ax.bbox.transformed(sheet.dpi_scale_trans.inverted())
    left, right = frame.x0 - drawn.x0 + _MARGIN, drawn.x1 - frame.x1 + _MARGIN
    below, above = frame.y0 - drawn.y0, drawn.y1 - frame.y1
    wide, high = max(width - left - right, 1.0), max(height - below - above - 2 * _MARGIN, 1.0)
    ax.set_position((left / width, (below + _MARGIN) / height, wide / width, high / height))
    ax.apply_aspect()
    frame = ax.bbox.transformed(sheet.dpi_scale_trans.inverted())
    return float(frame.y0 - below), float(frame.y1 + above)


def _apart(svg: str, salt: str) -> str:
    """Prefix the identifiers, because matplotlib starts from one in each picture."""
    svg = re.sub(r'(<[^<>]* id=")', rf"\g<1>{salt}-", svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{salt}-", svg)
