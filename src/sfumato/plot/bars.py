"""Sizes of clusters as bars, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.plot.groups import Groups
from sfumato.plot.style import (
    BLUE,
    WITHIN,
    Source,
    counted,
    crowding,
    new_axes,
    refusal,
    released,
    say,
    title,
)
from sfumato.public.models import CentreModel, MixtureModel, MorseModel
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 30


def sizes(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the estimated rows of each cluster, component or span as a bar, the largest first.

    A line over the end of a bar is a 95% interval for the noise, if the release says how large the noise is.
    Of more than 30 bars, the rest is summed in words.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.sizes(Release.load("release.json"))  # doctest: +SKIP
    """
    release = released(source)
    found = _sizes(release)
    ax = ax or new_axes()
    _bars(found, ax)
    text = f"{release.method}, {counted(len(found.sizes), found.one)}, {release.privacy.budget}"
    title(release, text, ax)
    return ax


class _Sizes(NamedTuple):
    """Numbers, sizes, and the lower and upper ends of intervals of all that is `one`, the largest first."""

    one: str
    labels: IntArray
    sizes: FloatArray
    ends: FloatArray | None  # (2, k)

    @classmethod
    def of(cls, one: str, labels: IntArray, sizes: FloatArray, ends: FloatArray | None) -> _Sizes:
        order = np.argsort(-sizes, kind="stable")
        return cls(one, labels[order], sizes[order], None if ends is None else ends[:, order])


def _sizes(release: Release) -> _Sizes:
    model = release.model
    spans = getattr(model, "spans", None)
    if spans is not None:
        table = np.array([(span.count, span.count_low, span.count_high) for span in spans]).reshape(-1, 3)
        labels = np.array([span.label for span in spans], dtype=np.int64)
        return _Sizes.of("span", labels, table[:, 0], table[:, 1:].T)
    stds: FloatArray | None
    if isinstance(model, CentreModel):
        one, found, stds = "cluster", model.cluster_sizes, model.size_stds
    elif isinstance(model, MixtureModel | MorseModel):
        groups = Groups.of(model)
        one = "cluster" if isinstance(model, MorseModel) else "component"
        found, stds = groups.sizes, groups.size_stds
    else:
        raise refusal(release, "clusters with sizes")
    ends = None if stds is None else np.maximum(found + WITHIN * np.array([[-1], [1]]) * stds, 0.0)
    return _Sizes.of(one, np.arange(len(found)), found, ends)


def _bars(found: _Sizes, ax: Axes) -> None:
    sizes, at = found.sizes[:MOST_BARS], range(len(found.sizes[:MOST_BARS]))
    ax.barh(at, sizes, color=BLUE, alpha=0.75, height=0.6)
    if found.ends is not None:
        ink = ax.xaxis.label.get_color()
        ax.hlines(at, *found.ends[:, :MOST_BARS], color=ink, linewidth=1.4, zorder=3)
    size = 10 * max(crowding(len(sizes)), 0.6)
    ax.set_yticks(at, found.labels[:MOST_BARS], fontsize=size)
    ax.set_ylim(max(len(sizes), 4) - 0.4, -0.6)  # from the top down; few bars stay slim
    ax.set_xlim(left=0)
    ax.set_ylabel(found.one)
    ax.set_xlabel(_described(found))
    ax.spines[["top", "right"]].set_visible(False)
    if not len(sizes):
        ax.set_xticks([0])
        say("no place stands out of the noise", ax)


def _described(found: _Sizes) -> str:
    text = "estimated rows" if found.ends is None else "estimated rows, with 95% intervals"
    rest = found.sizes[MOST_BARS:]
    if not len(rest):
        return text
    return f"{text}\n{counted(len(rest), f'smaller {found.one}')} of about {rest.sum():,.0f} rows in all"
