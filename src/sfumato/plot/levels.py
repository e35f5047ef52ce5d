"""The density tree of a release: peaks of the noisy density, and the levels at which they join."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.plot.branches import NOISE, THIN, Branches, label_axes
from sfumato.plot.outlines import span_colours
from sfumato.plot.style import (
    HAZE,
    Source,
    counted,
    crowding,
    mark_areas,
    new_axes,
    refusal,
    released,
    say,
    title,
)
from sfumato.public.density.levels import FLOOR, Levels, LevelTree
from sfumato.public.models import DensityModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PEAKS = 40
_BAND = 0.1  # of the height, for the noise
_TICKS = np.array([0.0, *(step * 10.0**power for power in range(-1, 12) for step in (1, 2, 5))])
_APART = 0.12  # of the height, from where on ticks keep apart


def tree(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the tree of density levels of a release, of any number of columns.

    A branch rises from the level at which a peak joins a higher one to the height of the peak, on the scale
    on which the noise of counts is about as large everywhere: that of their roots. The highest peak of each
    span has the span's colour, its number above, and a dot whose area is proportional to its rows. Other
    peaks are thin: they do not stand out of the noise, or of what surrounds them. Of more than 40 peaks,
    those of spans and then the most prominent are drawn. Levels in the grey band, within two standard
    deviations of the noise of an empty place, are not looked at.

    Parameters
    ----------
    source : Release or fitted estimator
        Of `DensityTree`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.tree(Release.load("release.json"))  # doctest: +SKIP
    """
    release = released(source)
    model = release.model
    if not isinstance(model, DensityModel):
        raise refusal(release, "a density tree, such as DensityTree releases")
    ax = ax or new_axes()
    levels = Levels(model.histogram)
    found = levels.published()
    branches = _branches(found, model)
    floor = FLOOR * levels.noise
    _axis(max(float(found.heights.max(initial=0.0)), 4 * floor, 1.0), floor, ax)
    colours = span_colours(release, model.spans)
    branches.draw(colours, floor, ax)
    _numbers(model, branches, colours, ax)
    _explain(branches, len(found.heights), ax)
    title(release, f"{release.method}, {counted(len(model.spans), 'span')}\n{release.privacy.budget}", ax)
    return ax


def _branches(found: LevelTree, model: DensityModel) -> Branches:
    """Return the tree of the peaks to draw."""
    n_peaks = len(found.heights)
    spans, highest = np.unique(model.predict(found.positions), return_index=True)
    clusters = np.full(n_peaks, NOISE, dtype=np.int64)
    clusters[highest[spans >= 0]] = spans[spans >= 0]
    foremost = np.lexsort((-found.prominences, clusters == NOISE))
    shown = np.sort(foremost[:_MOST_PEAKS])
    joins, saddles = _joins(found, shown)
    return Branches.of(np.concatenate([found.heights[shown], saddles]), joins, clusters[shown])


def _joins(found: LevelTree, shown: IntArray) -> tuple[IntArray, FloatArray]:
    """Return which nodes meet, from the highest saddle down, and where, if only some peaks are shown."""
    tops = np.arange(len(found.heights))  # a peak that has joined points to a higher one
    nodes = {int(peak): node for node, peak in enumerate(shown)}  # what stands for all that joined a peak
    joins: list[tuple[int, int]] = []
    saddles: list[float] = []
    for peak in np.argsort(-found.saddles, kind="stable").tolist():
        top = int(found.parents[peak])
        if top < 0:
            continue
        while tops[top] != top:
            top = int(tops[top])
        tops[peak] = top
        mine = nodes.pop(peak, None)
        if mine is not None and top in nodes:
            joins.append((nodes[top], mine))
            saddles.append(float(found.saddles[peak]))
            mine = len(shown) + len(joins) - 1
        if mine is not None:
            nodes[top] = mine
    return np.array(joins, dtype=np.int64).reshape(-1, 2), np.array(saddles)


def _axis(top: float, floor: float, ax: Axes) -> None:
    """Heights on the scale of roots, above as much of the noise as is needed to see that it is there."""
    low, high = _root(np.array([floor, 1.1 * top]))
    ax.set_yscale("function", functions=(_root, np.square))
    bottom = max(0.0, low - _BAND * (high - low))
    roots = _root(_TICKS)
    ticks = _TICKS[(bottom <= roots) & (roots <= high) & ((roots == 0) | (roots >= _APART * high))]
    ax.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.set_ylim(bottom**2, high**2)
    ax.axhspan(0, floor, color=HAZE, alpha=0.25, linewidth=0, label="noise of empty places")


def _root(values: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(values, 0.0))


def _numbers(model: DensityModel, branches: Branches, colours: list[str], ax: Axes) -> None:
    """Dots on the peaks of spans, and the numbers of the spans on the upper axis."""
    peaks = np.flatnonzero(branches.clusters[: branches.n_peaks] != NOISE)
    clusters = branches.clusters[peaks]
    areas = mark_areas(model.regions.counts[clusters, 0], ax, largest=0.9 / max(branches.width, 16))
    branches.crown(peaks, areas, colours, ax)
    ax.set_xticks(branches.places[peaks], clusters, fontsize=10 * max(crowding(len(peaks)), 0.6))
    if not branches.n_peaks:
        say("no peak stands out of the noise", ax)


def _explain(branches: Branches, n_peaks: int, ax: Axes) -> None:
    """Name the axes, and what is grey."""
    part = "" if branches.n_peaks == n_peaks else f", among {branches.n_peaks} of {n_peaks:,} peaks"
    label_axes(f"numbers of spans{part}", "density, in rows per cell", ax)
    if (branches.clusters[: branches.n_peaks] == NOISE).any():
        name = "other peaks" if not part else "other peaks, the most prominent"
        ax.plot([], [], color=HAZE, linewidth=THIN, label=name)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, frameon=False, fontsize="small")
