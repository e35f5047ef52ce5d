"""The density tree of a release: peaks of the noisy density, and the levels where they join."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.plot import style
from sfumato.plot.branches import NOISE, THIN, Branches, label_axes
from sfumato.plot.outlines import span_colours
from sfumato.public.density.levels import Levels, LevelTree, noise_in_empty_places
from sfumato.public.models import DensityModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND_NAME, HEIGHTS_NAME = "noise in empty areas", "density, in records per cell"
_MOST_PEAKS = 40
_BAND = 0.1  # share of the height for the band of noise
_TICKS = np.array([0.0, *(step * 10.0**power for power in range(-1, 12) for step in (1, 2, 5))])
_MOST_LETTERS = 60  # in the numbers of spans side by side
_APART = 0.12  # share of the height above which ticks are shown, so that labels do not overlap


def tree(source: style.Source, ax: Axes | None = None) -> Axes:
    """Draw the tree of density levels of a release with any number of columns.

    A branch rises from the level where a peak joins a higher one up to the peak. Heights are drawn on the
    scale of square roots, on which the noise of counts is about the same everywhere. The highest peak of
    each span has the colour of the span, its number above, and a dot with an area proportional to its size.
    Other peaks are thin: they do not stand out from the noise, or from what surrounds them. At most 40 peaks
    are drawn, those of spans first, then the most prominent. The tree ignores levels in the grey band, which
    are within two standard deviations of the noise of an empty place.

    Parameters
    ----------
    source : Release or fitted estimator
        Of `DensityTree`.
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.tree(Release.load("release.json"))  # doctest: +SKIP
    """
    release = style.released(source)
    levels: Levels = style.part_of(release, "levels", "a density tree, as DensityTree releases")
    model = cast(DensityModel, release.model)
    ax = ax or style.new_axes()
    found = model.tree
    branches = branches_of(found, model)
    floor = noise_in_empty_places(levels)
    _axis(found, floor, ax)
    colours = span_colours(release, model.spans)
    branches.draw(colours, floor, ax)
    _numbers(model, branches, colours, ax)
    _explain(branches, len(found.heights), ax)
    style.title(
        release, f"{release.method}, {style.counted(len(model.spans), 'span')}\n{release.privacy.budget}", ax
    )
    return ax


def branches_of(found: LevelTree, model: DensityModel) -> Branches:
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
    """Return the pairs of nodes that meet, the highest saddle first, and these saddles."""
    tops = np.arange(len(found.heights))  # a joined peak points to a higher one
    nodes = {int(peak): node for node, peak in enumerate(shown)}  # the node for all that joined a peak
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


def height_axis(found: LevelTree, floor: float) -> tuple[FloatArray, float, float]:
    """Ticks, lower and upper end of the axis of heights, above a band that stands for the noise."""
    top = max(float(found.heights.max(initial=0.0)), 4 * floor, 1.0)
    low, high = root(np.array([floor, 1.1 * top]))
    bottom = max(0.0, low - _BAND * (high - low))
    roots = root(_TICKS)
    ticks = _TICKS[(bottom <= roots) & (roots <= high) & ((roots == 0) | (roots >= _APART * high))]
    return ticks, bottom**2, high**2


def _axis(found: LevelTree, floor: float, ax: Axes) -> None:
    ticks, bottom, top = height_axis(found, floor)
    ax.set_yscale("function", functions=(root, np.square))
    ax.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.set_ylim(bottom, top)
    ax.axhspan(0, floor, color=style.HAZE, alpha=0.25, linewidth=0, label=BAND_NAME)


def root(values: FloatArray) -> FloatArray:
    """The scale of heights, on which the noise of counts is about the same everywhere."""
    return np.sqrt(np.maximum(values, 0.0))


def labels_turn(clusters: IntArray) -> bool:
    """Whether the numbers of spans side by side are turned, because they need much room."""
    return sum(len(str(cluster)) + 1 for cluster in clusters) > _MOST_LETTERS


def texts_of(branches: Branches, n_peaks: int) -> tuple[str, str]:
    """What stands above the tree, and what the thin branches are, if there are any."""
    part = "" if branches.n_peaks == n_peaks else f", among {branches.n_peaks} of {n_peaks:,} peaks"
    others = "other peaks" if not part else "the most prominent other peaks"
    has_others = bool((branches.clusters[: branches.n_peaks] == NOISE).any())
    return f"numbers of spans{part}", others if has_others else ""


def _numbers(model: DensityModel, branches: Branches, colours: list[str], ax: Axes) -> None:
    """Draw dots on the peaks of spans, and the numbers of the spans above."""
    peaks = np.flatnonzero(branches.clusters[: branches.n_peaks] != NOISE)
    clusters = branches.clusters[peaks]
    areas = style.mark_areas(model.regions.counts[clusters, 0], ax, largest=largest_dot(branches))
    branches.crown(peaks, areas, colours, ax)
    size = 10 * max(style.crowding(len(peaks)), 0.6)
    turn = 90 if labels_turn(clusters) else 0
    ax.set_xticks(branches.places[peaks], clusters, rotation=turn, fontsize=size)
    if not len(peaks):
        style.say(style.NOTHING, ax)


def largest_dot(branches: Branches) -> float:
    """Width of the largest dot, as a share of the width of the axes."""
    return 0.9 / max(branches.width, 16)


def _explain(branches: Branches, n_peaks: int, ax: Axes) -> None:
    """Label the axes and explain what is grey."""
    above, others = texts_of(branches, n_peaks)
    label_axes(above, HEIGHTS_NAME, ax)
    if others:
        ax.plot([], [], color=style.HAZE, linewidth=THIN, label=others)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, frameon=False, fontsize="small")
