"""Centres as marks on a map, marks over a histogram, or lines across parallel axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domain import FloatArray
from sfumato.plot import style
from sfumato.plot.grids import heat_map, histogram
from sfumato.public.intervals import CONFIDENCE, half_widths
from sfumato.public.models import CentreModel
from sfumato.public.models.groups import Groups
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RADIUS = math.sqrt(-2 * math.log(1 - CONFIDENCE))  # of the circle around that share of a normal pair
_DASHES = ("-", "--", ":", "-.")


def centres(source: style.Source, ax: Axes | None = None) -> Axes:
    """Draw each centre with its number and a mark whose area is proportional to the size of the cluster.

    Two columns give a map, over the noisy grid if the release has one. One column gives marks over a
    histogram of the grid. More columns give parallel axes: one vertical axis per column and one line per
    centre. A mixture of up to six groups also has bands of one standard deviation.

    If the release states the noise in the centres, an ellipse around each centre covers 95% of it. With one
    column or more than two, bars cover it instead.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.centres(Release.load("release.json"))  # doctest: +SKIP
    """
    release = style.released(source)
    model: CentreModel = style.part_of(release, "centres", "centres")
    ax = ax or style.new_axes()
    if model.n_features == 2:
        _map(release, model, ax)
    elif model.n_features == 1:
        _line(release, model, ax)
    else:
        _parallel(release, model, ax)
    text = (
        f"{release.method}, {style.counted(len(model.cluster_centers), 'cluster')}, {release.privacy.budget}"
    )
    if model.center_stds is not None:
        marks = "ellipses" if model.n_features == 2 else "bars"
        text += f"\n{marks} cover {CONFIDENCE:.0%} of the noise in the centres"
    style.title(release, text, ax)
    return ax


def _map(release: Release, model: CentreModel, ax: Axes) -> None:
    if model.synopsis is None:
        style.frame(release, ax)
    else:
        heat_map(release, model.synopsis, ax)
    if model.center_stds is not None:
        _ellipses(model.cluster_centers, _RADIUS * model.center_stds, ax)
    ax.scatter(
        model.cluster_centers[:, 0],
        model.cluster_centers[:, 1],
        s=style.mark_areas(model.cluster_sizes, ax),
        facecolors="none",
        edgecolors="white",
        linewidths=1.8,
        path_effects=style.outline(3.6),
        clip_on=False,
        zorder=3,
    )
    for label, (x, y) in enumerate(model.cluster_centers):
        style.number(label, x, y, style.crowding(len(model.cluster_centers)), ax)


def _ellipses(centers: FloatArray, radii: FloatArray, ax: Axes) -> None:
    from matplotlib.collections import EllipseCollection

    widths, heights = 2 * radii.T
    look = {"facecolors": (style.VERMILLION, 0.12), "edgecolors": style.VERMILLION, "linewidths": 1.2}
    level = np.zeros(len(centers))
    shapes = EllipseCollection(
        widths, heights, level, units="xy", offsets=centers, offset_transform=ax.transData, **look
    )
    ax.add_collection(shapes, autolim=False)


def _line(release: Release, model: CentreModel, ax: Axes) -> None:
    """Draw marks above the histogram, or at the height of their size if there is none."""
    x, heights = model.cluster_centers[:, 0], model.cluster_sizes
    if model.synopsis is None:
        style.strip(release, "estimated records per cluster", ax)
    else:
        histogram(release, model.synopsis, ax)
        heights = np.full(len(x), 1.12 * ax.dataLim.ymax)
    ax.vlines(x, 0, heights, color=style.VERMILLION, linestyle=":")
    ax.scatter(
        x,
        heights,
        s=style.mark_areas(model.cluster_sizes, ax),
        color=style.VERMILLION,
        clip_on=False,
        zorder=3,
    )
    if model.center_stds is not None:
        ink = ax.xaxis.label.get_color()
        ax.errorbar(x, heights, xerr=half_widths(model.center_stds[:, 0]), fmt="none", ecolor=ink, capsize=4)
    for label, (at, height) in enumerate(zip(x, heights, strict=True)):
        style.number(label, at, height, style.crowding(len(x)), ax)


def _parallel(release: Release, model: CentreModel, ax: Axes) -> None:
    """Draw one vertical axis per column, from its lower to its upper public bound."""
    low, high = np.array(release.domain.low), np.array(release.domain.high)
    heights = (model.cluster_centers - low) / (high - low)
    widths = 1 + 4 * np.sqrt(style.shares_of_largest(model.cluster_sizes))
    labelled = _spread(heights[:, -1], gap=0.06)
    spreads = _spreads(release, len(heights)) / (high - low)
    stds = model.center_stds
    at = range(model.n_features)
    for label, line in enumerate(heights):
        colour, dash = (
            style.OKABE_ITO[label % len(style.OKABE_ITO)],
            _DASHES[label // len(style.OKABE_ITO) % len(_DASHES)],
        )
        ax.plot(at, line, dash, color=colour, linewidth=widths[label])
        ax.fill_between(
            at, line - spreads[label], line + spreads[label], color=colour, alpha=0.15, linewidth=0
        )
        if stds is not None:
            ax.errorbar(
                at, line, half_widths(stds[label]) / (high - low), fmt="none", ecolor=colour, capsize=4
            )
        aside = (model.n_features - 1 + 0.03 * model.n_features, labelled[label])
        ax.text(*aside, str(label), color=colour, fontweight="bold", va="center_baseline")
    names = style.short_names(style.column_names(release))
    ranges = [f"{name}\n{a:g} to {b:g}" for name, a, b in zip(names, low, high, strict=True)]
    many = model.n_features > 5
    ax.set_xticks(at, ranges, parse_math=False, rotation=60 if many else 0, ha="right" if many else "center")
    ax.set_yticks([0, 0.5, 1], ["low", "middle", "high"])
    ax.set_ylabel("position between the public bounds")
    ax.set_ylim(-0.02, 1.02)
    ax.grid(axis="x", alpha=0.5)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _spreads(release: Release, n_clusters: int) -> FloatArray:
    """Standard deviations of the groups of a mixture, or zeros if there are too many bands to tell apart."""
    groups: Groups | None = getattr(release.model, "groups", None)
    if groups is None or n_clusters > len(style.OKABE_ITO):
        return np.zeros((n_clusters, release.model.n_features))
    return groups.stds


def _spread(heights: FloatArray, gap: float) -> FloatArray:
    """Move heights apart, so that numbers written there do not overlap."""
    order, stairs = np.argsort(heights), gap * np.arange(len(heights))
    spread = np.empty(len(heights))
    spread[order] = np.maximum.accumulate(heights[order] - stairs) + stairs
    overshoot = max(float(spread.max(initial=0.0)) - 1, 0.0)
    return spread - overshoot
