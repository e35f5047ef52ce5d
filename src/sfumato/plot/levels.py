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
    branches = _branches(found, model)
    floor = noise_in_empty_places(levels)
    _axis(max(float(found.heights.max(initial=0.0)), 4 * floor, 1.0), floor, ax)
    colours = span_colours(release, model.spans)
    branches.draw(colours, floor, ax)
    _numbers(model, branches, colours, ax)
    _explain(branches, len(found.heights), ax)
    style.title(
        release, f"{release.method}, {style.counted(len(model.spans), 'span')}\n{release.privacy.budget}", ax
    )
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


def _axis(top: float, floor: float, ax: Axes) -> None:
    """Scale heights by their square roots, above a band that stands for the noise."""
    low, high = _root(np.array([floor, 1.1 * top]))
    ax.set_yscale("function", functions=(_root, np.square))
    bottom = max(0.0, low - _BAND * (high - low))
    roots = _root(_TICKS)
    ticks = _TICKS[(bottom <= roots) & (roots <= high) & ((roots == 0) | (roots >= _APART * high))]
    ax.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.set_ylim(bottom**2, high**2)
    ax.axhspan(0, floor, color=style.HAZE, alpha=0.25, linewidth=0, label="noise in empty areas")


def _root(values: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(values, 0.0))


def _numbers(model: DensityModel, branches: Branches, colours: list[str], ax: Axes) -> None:
    """Draw dots on the peaks of spans, and the numbers of the spans above."""
    peaks = np.flatnonzero(branches.clusters[: branches.n_peaks] != NOISE)
    clusters = branches.clusters[peaks]
    areas = style.mark_areas(model.regions.counts[clusters, 0], ax, largest=0.9 / max(branches.width, 16))
    branches.crown(peaks, areas, colours, ax)
    turn = 90 if sum(len(str(cluster)) + 1 for cluster in clusters) > _MOST_LETTERS else 0
    size = 10 * max(style.crowding(len(peaks)), 0.6)
    ax.set_xticks(branches.places[peaks], clusters, rotation=turn, fontsize=size)
    if not len(peaks):
        style.say(style.NOTHING, ax)


def _explain(branches: Branches, n_peaks: int, ax: Axes) -> None:
    """Label the axes and explain what is grey."""
    part = "" if branches.n_peaks == n_peaks else f", among {branches.n_peaks} of {n_peaks:,} peaks"
    label_axes(f"numbers of spans{part}", "density, in records per cell", ax)
    if (branches.clusters[: branches.n_peaks] == NOISE).any():
        name = "other peaks" if not part else "the most prominent other peaks"
        ax.plot([], [], color=style.HAZE, linewidth=THIN, label=name)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, frameon=False, fontsize="small")
