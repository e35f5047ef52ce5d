"""Centres as marks on a map, marks over a histogram, or lines across parallel axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.domain import FloatArray
from sfumato.errors import ParameterError
from sfumato.plot import style
from sfumato.plot.columns import Column, columns_of, is_map
from sfumato.plot.grids import heat_map, histogram
from sfumato.public.intervals import CONFIDENCE, half_widths
from sfumato.public.models import CentreModel
from sfumato.public.models.groups import Groups
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RADIUS = math.sqrt(-2 * math.log(1 - CONFIDENCE))  # of the circle around that share of a normal pair
_FEWEST_UPRIGHT, _MOST_UPRIGHT = 3, 6  # axes side by side
_MOST_LETTERS = 60  # in the names of axes side by side
_DASHES = ("-", "--", ":", "-.")


def centres(source: style.Source, ax: Axes | None = None) -> Axes:
    """Draw each centre with its number and a mark whose area is proportional to the size of the cluster.

    Two columns give a map, over the noisy grid if the release has one. One column gives marks over a
    histogram of the grid. More columns give parallel axes: one axis per column and one line per centre. The
    axes lie across if they are many. Categories and cycles have no axis. A mixture of up to six groups also
    has bands of one standard deviation.

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
    found = columns_of(release)
    axes = [column for column in found if column.is_plain]
    if not axes:
        raise ParameterError(
            "`source` must have a column of numbers, dates or ranks, got none. Draw the sizes of its "
            "clusters with sfumato.plot.sizes, or write a report, which shows categories"
        )
    if is_map(release):
        _map(release, model, ax)
    elif len(found) == model.n_features == 1:
        _line(release, model, ax)
    else:
        _parallel(release, model, axes, ax)
    text = (
        f"{release.method}, {style.counted(len(model.cluster_centers), 'cluster')}, {release.privacy.budget}"
    )
    if model.center_stds is not None:
        marks = "ellipses" if is_map(release) else "bars"
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


def centres_height(release: Release) -> float:
    """Height of a picture of centres, in inches, at a width of 5.2: it grows with axes that lie across."""
    found = columns_of(release)
    axes = [column for column in found if column.is_plain]
    if release.domain.n_features > 2 or len(found) < release.domain.n_features:
        return 0.9 + 0.42 * len(axes) if _lies_across(axes) else 3.4
    return 4.7 if release.domain.n_features == 2 else 3.4


def _lies_across(axes: Sequence[Column]) -> bool:
    """Whether axes lie across, one above the other: they are many or few, or their names are long."""
    longest = max((len(line) for axis in axes for line in (axis.name, axis.between)), default=0)
    return not _FEWEST_UPRIGHT <= len(axes) <= _MOST_UPRIGHT or longest * len(axes) > _MOST_LETTERS


def _parallel(release: Release, model: CentreModel, axes: Sequence[Column], ax: Axes) -> None:
    """Draw one axis per column, from its lower to its upper public bound. Categories have no axis."""
    at = [axis.at[0] for axis in axes]
    low, high = np.array(release.domain.low)[at], np.array(release.domain.high)[at]
    heights = (model.cluster_centers[:, at] - low) / (high - low)
    widths = 1 + 4 * np.sqrt(style.shares_of_largest(model.cluster_sizes))
    across = _lies_across(axes)
    labelled = _spread(heights[:, 0 if across else -1], gap=0.04 if across else 0.06)
    spreads = _spreads(release, len(heights))[:, at] / (high - low)
    stds = None if model.center_stds is None else half_widths(model.center_stds[:, at]) / (high - low)
    for label, line in enumerate(heights):
        _line_across(label, line, spreads[label], widths[label], across, ax)
        if stds is not None:
            # Cut at the bounds, beyond which no centre can be.
            errors = np.clip([line, 1 - line], 0.0, stds[label])
            x_errors, y_errors = (errors, None) if across else (None, errors)
            rows = np.arange(len(at))
            x, y = (line, rows) if across else (rows, line)
            ax.errorbar(x, y, y_errors, x_errors, fmt="none", ecolor=_look(label)[0], capsize=4)
        x, y = (labelled[label], -0.55) if across else (len(at) - 1 + 0.03 * len(at), labelled[label])
        look: dict[str, Any] = {"color": _look(label)[0], "fontweight": "bold", "va": "center_baseline"}
        ax.text(x, y, str(label), look, ha="center" if across else "left")
    names = style.short_names(axis.name for axis in axes)
    ranges = [f"{name}\n{axis.between}" for name, axis in zip(names, axes, strict=True)]
    _axes_across(ranges, ax) if across else _axes_upright(ranges, ax)


def _look(label: int) -> tuple[str, str]:
    """Colour and dashes of a cluster."""
    n_colours = len(style.OKABE_ITO)
    return style.OKABE_ITO[label % n_colours], _DASHES[label // n_colours % len(_DASHES)]


def _line_across(
    label: int, line: FloatArray, spread: FloatArray, width: float, across: bool, ax: Axes
) -> None:
    (colour, dash), at = _look(label), range(len(line))
    if across:
        ax.plot(line, at, dash, color=colour, linewidth=width, marker="o" if len(line) == 1 else "")
        ax.fill_betweenx(at, line - spread, line + spread, color=colour, alpha=0.15, linewidth=0)
    else:
        ax.plot(at, line, dash, color=colour, linewidth=width)
        ax.fill_between(at, line - spread, line + spread, color=colour, alpha=0.15, linewidth=0)


def _axes_upright(ranges: Sequence[str], ax: Axes) -> None:
    ax.set_xticks(range(len(ranges)), ranges, parse_math=False)
    ax.set_yticks([0, 0.5, 1], ["low", "middle", "high"])
    ax.set_ylabel("position between the public bounds")
    ax.set_ylim(-0.02, 1.02)
    ax.grid(axis="x", alpha=0.5)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _axes_across(ranges: Sequence[str], ax: Axes) -> None:
    ax.set_yticks(range(len(ranges)), ranges, parse_math=False, fontsize=8)
    ax.set_xticks([0, 0.5, 1], ["low", "middle", "high"])
    ax.set_xlabel("position between the public bounds")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(len(ranges) - 0.6, -0.9)  # from the top down, with room for the numbers
    ax.grid(axis="y", alpha=0.5)
    ax.spines[["top", "right", "left"]].set_visible(False)


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
