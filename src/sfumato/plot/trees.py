"""The merge tree of a mixture: its peaks, and the saddles where they join."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.plot.branches import Branches, label_axes
from sfumato.plot.groups import group_colours, in_words, mixture_of
from sfumato.plot.style import Source, crowding, mark_areas, new_axes, title, write_numbers
from sfumato.public.mixtures import MorseTree
from sfumato.public.models import GroupedModel
from sfumato.public.models.groups import Groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 3  # components named in the label of a peak
_SHALLOW = 2.0  # powers of ten, below which a tree has finer ticks
_MOST_LETTERS = 50  # in the labels of all peaks side by side


def saddles(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the merge tree of a released mixture with any number of columns.

    A dot is a peak of the density, drawn at its height. Its area is proportional to the size of its
    components, and their numbers stand above it. Two branches join at the height of the saddle between them:
    the lowest density on the best path. Each cluster has one colour and a number. A dashed line marks the
    level that cuts the tree into these clusters. If doubtful clusters were joined first, there is no line.

    Parameters
    ----------
    source : Release or fitted estimator
        From `MorseClustering`, or from a method that releases a mixture. Its tree is then cut where
        `MorseClustering` would cut it. Saddles between more than 100 components take long to find.
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.saddles(Release.load("release.json"))  # doctest: +SKIP
    """
    release, model = mixture_of(source)
    ax = ax or new_axes()
    groups = model.groups if model.groups.is_joined else model.base.joined()
    _draw(model, groups, ax)
    title(release, f"{release.method}, {in_words(groups)}\n{release.privacy.budget}", ax)
    return ax


def _draw(model: GroupedModel, groups: Groups, ax: Axes) -> None:
    tree, colours = model.tree, group_colours(groups)
    heights = _heights(tree)
    bottom = 1.15 * min(heights.min(), -math.log10(2))
    branches = Branches.of(heights, tree.linkage[:, :2].astype(np.int64), _clusters(tree, groups))
    _axis(bottom, ax)
    branches.draw(colours, bottom, ax)
    _peaks(model, branches, colours, ax)
    cut = _cut(tree, len(groups.sizes), np.concatenate([[0.0], heights[tree.n_peaks :], [bottom]]))
    if cut is not None:
        ax.axhline(cut, color=ax.xaxis.label.get_color(), linestyle="--", linewidth=0.9, zorder=2)
    stems: dict[int, FloatArray] = {}
    for cluster, x, height in zip(branches.clusters, branches.places, heights, strict=True):
        if cut is not None:
            stems[int(cluster)] = np.array([x, cut])
        elif cluster >= 0:
            stems.setdefault(int(cluster), np.array([x, height]))
    largest_first = np.argsort(-groups.sizes, kind="stable")
    write_numbers(((int(c), stems[int(c)]) for c in largest_first if int(c) in stems), ax)


def _cut(tree: MorseTree, n_clusters: int, levels: FloatArray) -> float | None:
    """Height that cuts the tree into these clusters, if there is one."""
    n_joined = tree.n_peaks - n_clusters
    if n_joined < 0 or (tree.order is not None and (tree.order[:n_joined] >= n_joined).any()):
        return None
    return float(levels[n_joined : n_joined + 2].mean())


def _heights(tree: MorseTree) -> FloatArray:
    """Density of each peak, then of each join, relative to the highest peak, as a power of ten."""
    peaks = tree.peaks.log_densities - tree.peaks.log_densities[0]
    found: FloatArray = np.concatenate([peaks, -tree.linkage[:, 2]]) / math.log(10)
    return found


def _clusters(tree: MorseTree, groups: Groups) -> IntArray:
    """Cluster of each peak."""
    found = np.empty(tree.n_peaks, dtype=np.int64)
    found[tree.peaks.owners] = groups.labels
    return found


def _peaks(model: GroupedModel, branches: Branches, colours: list[str], ax: Axes) -> None:
    """Draw dots, and the numbers of their components above."""
    n_peaks, owners = branches.n_peaks, model.tree.peaks.owners
    sizes = np.bincount(owners, model.base.sizes, n_peaks).astype(np.float64)
    areas = mark_areas(sizes, ax, largest=0.9 / max(branches.width, 16))
    branches.crown(np.arange(n_peaks), areas, colours, ax)
    names = [_name(np.flatnonzero(owners == peak)) for peak in range(n_peaks)]
    few = n_peaks * max(map(len, names)) <= _MOST_LETTERS
    turn, size = 0 if few else 90, 10 * max(crowding(n_peaks), 0.6)
    ax.set_xticks(branches.places[:n_peaks], names, rotation=turn, fontsize=size)


def _name(components: IntArray) -> str:
    named = ", ".join(map(str, components[:_MOST_NAMED]))
    return named if len(components) <= _MOST_NAMED else f"{named} +{len(components) - _MOST_NAMED}"


def _axis(bottom: float, ax: Axes) -> None:
    """Label the density on the left, in powers of ten or finer, and the peaks above."""
    if bottom > -_SHALLOW:
        ticks = np.log10([1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01])
    else:
        ticks = -np.arange(0, -bottom, max(1, math.ceil(-bottom / 7)))
    ax.set_ylim(bottom, -0.08 * bottom)
    shown = ticks[ticks >= bottom]
    ax.set_yticks(shown, [f"{100 * 10**t:.3g}%" if t > -4 else f"$10^{{{t:.0f}}}$" for t in shown])
    label_axes("peaks, with the numbers of their components", "density, relative to the highest peak", ax)
