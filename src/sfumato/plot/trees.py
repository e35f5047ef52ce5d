"""The merge tree of a mixture: its peaks, and the levels of the density at which they join."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.models import MixtureModel, MorseModel
from sfumato.morse import MorseTree
from sfumato.plot.groups import Groups, in_words, mixture_of
from sfumato.plot.style import HAZE, Source, crowding, mark_areas, new_axes, title, write_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 3  # components in the label of a peak
_SHALLOW = 2.0  # powers of ten; a tree of less has finer ticks
_MOST_LETTERS = 50  # in all labels of peaks, side by side


def dendrogram(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the merge tree of a released mixture, of any number of columns.

    A dot is a peak of the density, at its height; its area is proportional to the rows of its components,
    whose numbers stand above it. Two branches join at the height of the saddle between them: where the
    density is lowest on the best path. Clusters have one colour and a number. A dashed line is drawn at the
    level that cuts the tree into them, if there is one; there is none if doubtful ones were joined first.

    Parameters
    ----------
    source : Release or fitted estimator
        Of `MorseClustering`, or of a method that releases a mixture, which is then cut where
        `MorseClustering` would cut it. Saddles between more than about 100 components take long to find.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.dendrogram(Release.load("release.json"))  # doctest: +SKIP
    """
    release, model = mixture_of(source)
    ax = ax or new_axes()
    merged = MorseModel(model, len(model.means)).cut() if isinstance(model, MixtureModel) else model
    groups = Groups.of(merged)
    _draw(merged, groups, ax)
    text = in_words(len(groups.sizes), len(groups.labels), joined=True)
    title(release, f"{release.method}, {text}\n{release.privacy.budget}", ax)
    return ax


def _draw(model: MorseModel, groups: Groups, ax: Axes) -> None:
    tree, colours = model.tree, groups.colours()
    heights = _heights(tree)
    bottom = 1.15 * min(heights.min(), -math.log10(2))
    clusters = _clusters(tree, groups)
    _axis(bottom, ax)
    _branches(tree, heights, [colours[c] if c >= 0 else HAZE for c in clusters], bottom, ax)
    _peaks(model, heights, [colours[c] for c in clusters[: tree.n_peaks]], ax)
    cut = _cut(tree, len(groups.sizes), np.concatenate([[0.0], heights[tree.n_peaks :], [bottom]]))
    if cut is not None:
        ax.axhline(cut, color=ax.xaxis.label.get_color(), linestyle="--", linewidth=0.9, zorder=2)
    stems: dict[int, FloatArray] = {}
    for cluster, x, height in zip(clusters, _places(tree), heights, strict=True):
        if cut is not None:
            stems[int(cluster)] = np.array([x, cut])
        elif cluster >= 0:
            stems.setdefault(int(cluster), np.array([x, height]))
    largest_first = np.argsort(-groups.sizes, kind="stable")
    write_numbers(((int(c), stems[int(c)]) for c in largest_first if int(c) in stems), ax)


def _cut(tree: MorseTree, n_clusters: int, levels: FloatArray) -> float | None:
    """Height that cuts the tree into the clusters, if there is one."""
    n_joined = tree.n_peaks - n_clusters
    if n_joined < 0 or (tree.order is not None and (tree.order[:n_joined] >= n_joined).any()):
        return None
    return float(levels[n_joined : n_joined + 2].mean())


def _heights(tree: MorseTree) -> FloatArray:
    """Density of each peak, then of each join, as a power of ten of that of the highest peak."""
    peaks = tree.peaks.log_densities - tree.peaks.log_densities[0]
    found: FloatArray = np.concatenate([peaks, -tree.linkage[:, 2]]) / math.log(10)
    return found


def _children(tree: MorseTree) -> IntArray:
    return tree.linkage[:, :2].astype(np.int64)


def _places(tree: MorseTree) -> FloatArray:
    """Place of each peak, then of each join, from the left: branches do not cross."""
    leaves = [[peak] for peak in range(tree.n_peaks)]
    for pair in _children(tree):
        left, right = sorted((leaves[node] for node in pair), key=min)
        leaves.append(left + right)
    places = np.empty(len(leaves))
    places[leaves[-1]] = np.arange(tree.n_peaks)
    for join, pair in enumerate(_children(tree), tree.n_peaks):
        places[join] = places[pair].mean()
    return places


def _clusters(tree: MorseTree, groups: Groups) -> IntArray:
    """Cluster of each peak, then of each join; -1 for joins of different clusters."""
    found = np.full(2 * tree.n_peaks - 1, -1, dtype=np.int64)
    found[tree.peaks.owners] = groups.labels
    for join, (first, second) in enumerate(_children(tree), tree.n_peaks):
        found[join] = found[first] if found[first] == found[second] else -1
    return found


def _branches(tree: MorseTree, heights: FloatArray, colours: list[str], bottom: float, ax: Axes) -> None:
    """From each node down to the join with its sibling, from the last one to the bottom."""
    places, children = _places(tree), _children(tree)
    lower = np.full(len(heights), bottom)
    for join, pair in enumerate(children, tree.n_peaks):
        lower[pair] = heights[join]
    ax.vlines(places, lower, heights, colors=colours, linewidth=1.6)
    left, right = places[children].reshape(-1, 2).T
    joined = slice(tree.n_peaks, None)
    ax.hlines(heights[joined], left, right, colors=colours[joined], linewidth=1.6)


def _peaks(model: MorseModel, heights: FloatArray, colours: list[str], ax: Axes) -> None:
    """Dots, and the numbers of their components on the upper axis."""
    tree = model.tree
    places, top = _places(tree)[: tree.n_peaks], ax.get_ylim()[1]
    ax.vlines(places, heights[: tree.n_peaks], top, color=HAZE, linewidth=0.5, linestyle=":", zorder=0.5)
    sizes = np.bincount(tree.peaks.owners, model.base.sizes, tree.n_peaks).astype(np.float64)
    areas = mark_areas(sizes, ax, largest=0.9 / max(tree.n_peaks, 16))
    ax.scatter(places, heights[: tree.n_peaks], s=areas, color=colours, clip_on=False, zorder=3)
    names = [_name(np.flatnonzero(tree.peaks.owners == peak)) for peak in range(tree.n_peaks)]
    few = tree.n_peaks * max(map(len, names)) <= _MOST_LETTERS
    ax.set_xticks(places, names, rotation=0 if few else 90, fontsize=10 * max(crowding(tree.n_peaks), 0.6))
    ax.set_xlim(-0.8, tree.n_peaks - 0.2)


def _name(components: IntArray) -> str:
    named = ", ".join(map(str, components[:_MOST_NAMED]))
    return named if len(components) <= _MOST_NAMED else f"{named} +{len(components) - _MOST_NAMED}"


def _axis(bottom: float, ax: Axes) -> None:
    """The density on the left, in powers of ten or finer, and peaks above."""
    if bottom > -_SHALLOW:
        ticks = np.log10([1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01])
    else:
        ticks = -np.arange(0, -bottom, max(1, math.ceil(-bottom / 7)))
    ax.set_ylim(bottom, -0.08 * bottom)
    shown = ticks[ticks >= bottom]
    ax.set_yticks(shown, [f"{100 * 10**t:.3g}%" if t > -4 else f"$10^{{{t:.0f}}}$" for t in shown])
    ax.set_ylabel("density, as a share of the highest")
    ax.xaxis.set_label_position("top")
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel("peaks, by the numbers of their components")
    ax.spines[["top", "right", "bottom"]].set_visible(False)
