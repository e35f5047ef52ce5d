"""Trees of peaks, drawn as branches that join at saddles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.plot.style import HAZE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEVERAL, NOISE = -1, -2  # instead of a cluster: a branch of several clusters, or of none
_WIDTH, THIN = 1.6, 0.7  # line widths of branches, and of branches that may be noise
_CLOSE = 0.3  # room for a peak of noise, where another peak takes 1


class Stroke(NamedTuple):
    """A straight line of a tree."""

    x: tuple[float, ...]
    y: tuple[float, float]
    colour: str
    width: float


class Branches(NamedTuple):
    """Peaks, and the joins below them: the nodes of one or more trees.

    Parameters
    ----------
    heights : float array of shape (n_peaks + n_joins,)
        Heights of the peaks, then of the joins, the highest join first.
    joins : int array of shape (n_joins, 2)
        The two nodes that meet at each join.
    clusters : int array of shape (n_peaks + n_joins,)
        Cluster of each node, or `SEVERAL`, or `NOISE`.
    places : float array of shape (n_peaks + n_joins,)
        Horizontal position of each node.
    """

    heights: FloatArray
    joins: IntArray
    clusters: IntArray
    places: FloatArray

    @classmethod
    def of(cls, heights: FloatArray, joins: IntArray, peak_clusters: IntArray) -> Branches:
        """Return the tree, with a cluster and a position for each join."""
        clusters = [int(cluster) for cluster in peak_clusters]
        for pair in joins:
            met = {clusters[node] for node in pair} - {NOISE}
            clusters.append(met.pop() if len(met) == 1 else SEVERAL if met else NOISE)
        found = np.array(clusters, dtype=np.int64)
        return cls(heights, joins, found, _places(joins, found))

    @property
    def n_peaks(self) -> int:
        """Number of peaks."""
        return len(self.heights) - len(self.joins)

    @property
    def width(self) -> float:
        """Room for the peaks side by side."""
        return float(self.places.max(initial=0.0)) + 1

    def strokes(self, colours: list[str], bottom: float) -> list[Stroke]:
        """Lines from each node down to its join or to the bottom, then the bars of the joins."""
        is_noise = self.clusters == NOISE
        paints = [colours[c] if c >= 0 else HAZE for c in self.clusters]
        lower = np.full(len(self.heights), bottom)
        lower[self.joins] = self.heights[self.n_peaks :, None]
        stems = [
            Stroke((x, x), (low, high), paint, THIN if thin else _WIDTH)
            for x, low, high, paint, thin in zip(
                self.places, lower, self.heights, paints, is_noise, strict=True
            )
        ]
        is_twig = is_noise[self.joins].reshape(-1, 2).any(axis=1)
        bars = [
            Stroke(
                tuple(self.places[pair]), (height, height), HAZE if twig else paint, THIN if twig else _WIDTH
            )
            for pair, height, paint, twig in zip(
                self.joins, self.heights[self.n_peaks :], paints[self.n_peaks :], is_twig, strict=True
            )
        ]
        return stems + bars

    def draw(self, colours: list[str], bottom: float, ax: Axes) -> None:
        """Draw each branch down to its join or to the bottom, in the colour of its cluster."""
        from matplotlib.collections import LineCollection

        drawn = self.strokes(colours, bottom)
        lines = [np.transpose([stroke.x, stroke.y]) for stroke in drawn]
        look: dict[str, Any] = {"colors": [s.colour for s in drawn], "linewidths": [s.width for s in drawn]}
        ax.add_collection(LineCollection(lines, **look))

    def crown(self, peaks: IntArray, areas: FloatArray, colours: list[str], ax: Axes) -> None:
        """Draw a dot on each of these peaks, and a thin line up to its label above the axes."""
        places, heights = self.places[peaks], self.heights[peaks]
        ax.vlines(places, heights, ax.get_ylim()[1], color=HAZE, linewidth=0.5, linestyle=":", zorder=0.5)
        paints = [colours[cluster] for cluster in self.clusters[peaks]]
        ax.scatter(places, heights, s=areas, color=paints, clip_on=False, zorder=3)
        ax.set_xlim(-0.8, self.width - 0.2)


def _places(joins: IntArray, clusters: IntArray) -> FloatArray:
    """Positions at which branches do not cross. A join stands in the middle of its clusters."""
    leaves = [[peak] for peak in range(len(clusters) - len(joins))]
    for pair in joins:
        left, right = sorted((leaves[node] for node in pair), key=min)
        leaves.append(left + right)
    roots = sorted(set(range(len(leaves))) - set(joins.ravel().tolist()), key=lambda node: min(leaves[node]))
    order = [peak for root in roots for peak in leaves[root]]
    room = np.where(clusters[order] == NOISE, _CLOSE, 1.0)
    places = np.empty(len(leaves))
    places[order] = np.cumsum(room) - (room + room[:1]) / 2
    for join, pair in enumerate(joins, len(order)):
        stems = pair[clusters[pair] != NOISE]
        places[join] = places[stems if len(stems) else pair[:1]].mean()
    return places


def label_axes(above: str, left: str, ax: Axes) -> None:
    """Label the axes of a tree: peaks above, heights on the left."""
    ax.xaxis.set_label_position("top")
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel(above)
    ax.set_ylabel(left)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
