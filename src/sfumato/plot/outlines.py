"""Spans as shapes on a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domain import FloatArray
from sfumato.errors import ParameterError
from sfumato.plot import style
from sfumato.public.density.spans import Span
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path


def spans(source: style.Source, ax: Axes | None = None, *, X: ArrayLike | None = None) -> Axes:
    """Draw the spans of a release with two columns, and the numbers of the larger spans.

    Neighbouring spans differ in colour. If the metric is "geo", the columns are longitude and latitude. The
    map is then to scale in its middle, and spans over further columns are drawn as their footprints.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.
    X : array-like of shape (n, 2), optional
        Rows to draw over the spans. Rows outside all spans are pale. The picture then shows people, and its
        title says that it must not be published.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.spans(Release.load("release.json"))  # doctest: +SKIP
    """
    release, found = _spans(source)
    ax = ax or style.new_axes()
    style.frame(release, ax, stretch_of(release))
    _outlines(release, found, ax)
    if X is not None:
        _rows(release, X, ax)
    text = f"{release.method}, {style.counted(len(found), 'span')}, {release.privacy.budget}"
    style.title(release, text, ax, shows_rows=X is not None)
    return ax


def _spans(source: style.Source) -> tuple[Release, list[Span]]:
    """Return the release and its spans, the largest first."""
    release = style.released(source)
    found: Sequence[Span] = style.part_of(release, "spans", "spans")
    if release.model.n_features != 2 and not release.is_in_degrees:
        raise ParameterError(
            f"`source` must have spans over two columns, got {release.method} on {release.model.n_features} "
            "columns. Draw the sizes of the spans with sfumato.plot.sizes, or use their boxes, span.boxes"
        )
    return release, sorted(found, key=lambda span: -span.count)


def stretch_of(release: Release) -> float:
    """Length of a unit of the second column on a map, in units of the first."""
    if not release.is_in_degrees:
        return 1.0
    latitude = math.radians(float(release.domain.midpoint[1]))
    return 1 / max(math.cos(latitude), 0.1)


def _outlines(release: Release, found: list[Span], ax: Axes) -> None:
    from matplotlib.collections import PathCollection

    paths = [_path(span.footprint) for span in found]
    is_heavy = sum(map(len, paths)) > style.MOST_CORNERS
    colours = span_colours(release, found)
    pale = [(colour, 0.65) for colour in colours]
    shapes = PathCollection(paths, facecolors=pale, edgecolors=colours, linewidths=0.8, rasterized=is_heavy)
    ax.add_collection(shapes, autolim=False)
    size = style.number_size(style.longer_side(ax))
    style.write_numbers(((span.label, number_place(span.footprint, size)) for span in found), ax)
    if not found:
        style.say(style.NOTHING, ax)


def span_colours(release: Release, found: Sequence[Span]) -> list[str]:
    """Return a colour for each span, the largest first. Neighbours differ."""
    size, n_features = 2 * release.domain.half_width, release.domain.n_features
    extents = np.array([span.extent / size for span in found]).reshape(-1, 2, n_features)
    centroids = np.array([span.centroid / size for span in found]).reshape(-1, n_features)
    return style.distinct_colours(extents, centroids)


def _path(span: Span) -> Path:
    from matplotlib.path import Path

    # Holes run the other way round, so they stay empty.
    return Path.make_compound_path(*(Path(ring, closed=True) for rings in span.polygons for ring in rings))


def number_place(span: Span, size: FloatArray) -> FloatArray:
    """Middle of the widest box of a span, or above a span that the number would hide."""
    low, high = span.extent
    if (high - low < size).all():
        return np.array([(low[0] + high[0]) / 2, high[1] + size[1] / 2])
    widths = ((span.boxes[:, 1] - span.boxes[:, 0]) / size).min(axis=1)
    middle: FloatArray = span.boxes[np.argmax(widths)].mean(axis=0)
    return middle


def _rows(release: Release, X: ArrayLike, ax: Axes) -> None:
    is_in_none = release.predict(X) < 0
    rows = np.asarray(X, dtype=np.float64)[:, :2]
    for part, alpha in ((is_in_none, 0.3), (~is_in_none, 0.8)):
        ax.plot(*rows[part].T, ".", color="#444444", markersize=1.5, alpha=alpha, rasterized=True)
