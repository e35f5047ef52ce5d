"""The tree of the peaks of a density, written as SVG."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.plot import levels, style
from sfumato.plot.branches import NOISE, THIN, Branches
from sfumato.plot.outlines import span_colours
from sfumato.public.density.levels import noise_in_empty_places
from sfumato.public.models import DensityModel
from sfumato.release import Release
from sfumato.report.markup import picture
from sfumato.report.sheets import LINE, WIDTH, Axis, Sheet, Tick, room, text, width_of

_HEIGHT = 215.0  # of the tree in points
_SMALL = 8.5  # letters of the legend
_HAZE = f'fill="none" stroke="{style.HAZE}"'


class _Tree(NamedTuple):
    """A tree, and the axes to draw it on. Heights are drawn as their square roots."""

    branches: Branches
    peaks: IntArray  # those of spans
    colours: list[str]  # of the spans
    sheet: Sheet

    def y(self, height: float) -> float:
        return self.sheet.y.at(float(np.sqrt(max(height, 0.0))))

    def x(self, place: float) -> float:
        return self.sheet.x.at(float(place))


def peak_tree(release: Release, model: DensityModel, alt: str, caption: str) -> str:
    """Return the tree of a release, as `plot.tree` draws it.

    Parameters
    ----------
    release : Release
    model : DensityModel
        A reading of the release.
    alt, caption : str
    """
    found, floor = model.tree, noise_in_empty_places(model.levels)
    branches = levels.branches_of(found, model)
    peaks = np.flatnonzero(branches.clusters[: branches.n_peaks] != NOISE)
    values, *ends = levels.height_axis(found, floor)
    texts = [f"{value:,g}" for value in values]
    sheet = _sheet(branches, branches.clusters[peaks], texts, np.sqrt(ends))
    tree = _Tree(branches, peaks, span_colours(release, model.spans), sheet)
    ticks = [Tick(tree.y(value), words) for value, words in zip(values, texts, strict=True)]
    title, others = levels.texts_of(branches, len(found.heights))
    body = [_band(tree, floor), _lines(tree, floor), _crown(tree, model), _left_edge(sheet)]
    body += [sheet.left(ticks, levels.HEIGHTS_NAME), _legend(others, sheet)]
    body.append(text(title, (sheet.x.start + sheet.x.end) / 2, LINE, "middle"))
    return picture(f"0 0 {WIDTH:g} {sheet.y.start + 2 * LINE:.5g}", "".join(body), alt, caption)


def _sheet(branches: Branches, clusters: IntArray, texts: list[str], ends: FloatArray) -> Sheet:
    left = 18 + LINE + room(Tick(0, words) for words in texts)
    longest = width_of(str(clusters.max(initial=0))) if levels.labels_turn(clusters) else LINE
    top = LINE + 8 + longest
    x = Axis(-0.8, branches.width - 0.2, left, WIDTH - 6)
    return Sheet(x, Axis(float(ends[0]), float(ends[1]), top + _HEIGHT, top))


def _band(tree: _Tree, floor: float) -> str:
    """The noise in empty areas."""
    x, y = tree.sheet.x, tree.y(floor)
    size = f'width="{x.end - x.start:.5g}" height="{tree.sheet.y.start - y:.5g}"'
    return f'<rect x="{x.start:.5g}" y="{y:.5g}" {size} fill="{style.HAZE}" fill-opacity="0.25"/>'


def _lines(tree: _Tree, floor: float) -> str:
    """All branches, those of one look as one path."""
    paths: dict[tuple[str, float], list[str]] = {}
    for (x, other), (y, end), colour, width in tree.branches.strokes(tree.colours, floor):
        path = f"M{tree.x(x):.5g} {tree.y(y):.5g}L{tree.x(other):.5g} {tree.y(end):.5g}"
        paths.setdefault((colour, width), []).append(path)
    return "".join(
        f'<path d="{"".join(drawn)}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        for (colour, width), drawn in paths.items()
    )


def _crown(tree: _Tree, model: DensityModel) -> str:
    """A dot on the peak of each span, its number above, and a thin line between them."""
    branches, peaks, top = tree.branches, tree.peaks, tree.sheet.y.end
    if not len(peaks):
        middle = (tree.sheet.x.start + tree.sheet.x.end) / 2
        return text(style.NOTHING, middle, top + _HEIGHT / 2, "middle")
    clusters, width = branches.clusters[peaks], tree.sheet.x.end - tree.sheet.x.start
    sizes = style.shares_of_largest(model.regions.counts[clusters, 0])
    radii = levels.largest_dot(branches) * width / 2 * np.sqrt(sizes)
    turns, size = levels.labels_turn(clusters), 10 * max(style.crowding(len(peaks)), 0.6)
    rises, drawn = [], []
    for peak, cluster, radius in zip(peaks.tolist(), clusters.tolist(), radii, strict=True):
        x, y = tree.x(branches.places[peak]), tree.y(branches.heights[peak])
        rises.append(f"M{x:.5g} {y:.5g}V{top:.5g}")
        drawn.append(f'<circle cx="{x:.5g}" cy="{y:.5g}" r="{radius:.3g}" fill="{tree.colours[cluster]}"/>')
        drawn.append(
            text(str(cluster), x + 0.35 * size, top - 3, size=size, turn=-90)
            if turns
            else text(str(cluster), x, top - 4, "middle", size=size)
        )
    dotted = f'<path d="{"".join(rises)}" {_HAZE} stroke-width="0.5" stroke-dasharray="0.5 1"/>'
    return dotted + "".join(drawn)


def _left_edge(sheet: Sheet) -> str:
    path = f"M{sheet.x.start:.5g} {sheet.y.start:.5g}V{sheet.y.end:.5g}"
    return f'<path d="{path}" stroke="currentColor" stroke-width="0.8"/>'


def _legend(others: str, sheet: Sheet) -> str:
    """What is grey."""
    names = [name for name in (levels.BAND_NAME, others) if name]
    lengths = [22 + 0.85 * width_of(name) for name in names]
    x, y = (sheet.x.start + sheet.x.end - sum(lengths)) / 2, sheet.y.start + LINE + 4
    keys = [
        f'<rect x="{x:.5g}" y="{y - 6:.5g}" width="16" height="6" fill="{style.HAZE}" fill-opacity="0.25"/>'
    ]
    if others:
        keys.append(
            f'<path d="M{x + lengths[0]:.5g} {y - 3:.5g}h16" stroke="{style.HAZE}" stroke-width="{THIN}"/>'
        )
    starts = [x + 20, x + lengths[0] + 20]
    texts = [text(name, start, y, size=_SMALL) for name, start in zip(names, starts, strict=False)]
    return "".join(keys + texts)
