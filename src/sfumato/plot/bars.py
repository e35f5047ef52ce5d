"""Sizes of clusters as bars, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.domain import FloatArray
from sfumato.plot import style
from sfumato.public.intervals import CONFIDENCE, Sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 30


def sizes(source: style.Source, ax: Axes | None = None) -> Axes:
    """Draw the estimated size of each cluster, component or span as a bar, the largest first.

    A line over the end of a bar is a 95% interval for the noise, if the release states the noise. At most 30
    bars are drawn. The label of the axis gives the total of the rest.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.sizes(Release.load("release.json"))  # doctest: +SKIP
    """
    release = style.released(source)
    found: Sizes = style.part_of(release, "estimated_sizes", "clusters with sizes")
    ax = ax or style.new_axes()
    _bars(found, ax)
    style.title(
        release,
        f"{release.method}, {style.counted(len(found.estimates), found.group)}, {release.privacy.budget}",
        ax,
    )
    return ax


def _bars(found: Sizes, ax: Axes) -> None:
    order = np.argsort(-found.estimates, kind="stable")
    shown = order[:MOST_BARS]
    at = range(len(shown))
    ax.barh(at, found.estimates[shown], color=style.BLUE, alpha=0.75, height=0.6)
    if found.ends is not None:
        ax.hlines(at, *found.ends[:, shown], color=ax.xaxis.label.get_color(), linewidth=1.4, zorder=3)
    ax.set_yticks(at, shown, fontsize=10 * max(style.crowding(len(shown)), 0.6))
    ax.set_ylim(max(len(shown), 4) - 0.4, -0.6)  # from the top down; few bars stay slim
    ax.set_xlim(left=0)
    ax.set_ylabel(found.group)
    ax.set_xlabel(_described(found, found.estimates[order[MOST_BARS:]]))
    ax.spines[["top", "right"]].set_visible(False)
    if not len(shown):
        ax.set_xticks([0])
        style.say(style.NOTHING, ax)


def _described(found: Sizes, rest: FloatArray) -> str:
    text = (
        "estimated records" if found.ends is None else f"estimated records, with {CONFIDENCE:.0%} intervals"
    )
    if not len(rest):
        return text
    others = style.counted(len(rest), f"smaller {found.group}")
    return f"{text}\n{others}: about {rest.sum():,.0f} records in total"
