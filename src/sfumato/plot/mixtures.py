"""A mixture as contour lines of its density, with its components, peaks and saddles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.errors import ParameterError
from sfumato.plot import style
from sfumato.plot.groups import group_colours, in_words, mixture_of
from sfumato.public.mixtures import MorseTree
from sfumato.public.models import GroupedModel, MixtureModel
from sfumato.public.models.groups import Groups
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = 12
_OUTSIDE = 0.02  # share of the mixture outside the last line
_N_SAMPLES = 4000  # from which the last line is found
_MOST_JOINED = 60  # components that were not joined: saddles between more take long to find
_N_STEPS = 120  # points along a column at which the density is drawn
_N_HEAVIEST = 20  # components that may be narrower than a step: more points are taken around them,
_AROUND = np.linspace(-2, 2, 5)  # at these multiples of the standard deviation
_CIRCLE = np.stack([f(np.linspace(0, 2 * np.pi, 61)) for f in (np.cos, np.sin)], axis=1)


def mixture(source: style.Source, ax: Axes | None = None, *, X: ArrayLike | None = None) -> Axes:
    """Draw the density of a released mixture over one or two columns, with its components, peaks and saddles.

    Two columns give contour lines. From each line to the next, the density falls by the same factor. The
    last line encloses 98% of the mixture. An ellipse is one standard deviation of a component, in the colour
    of its cluster. Thin lines are the merge tree: each runs from peak to peak over a saddle. The mark of a
    saddle is filled within a cluster and hollow between clusters. One column gives the density as a curve.

    Parameters
    ----------
    source : Release or fitted estimator
        From `DPMoG`, `MorseClustering`, or a method with ``covariances=True``. Components that were not
        joined count as clusters. With more than 60 of them, peaks and saddles are left out.
    ax : matplotlib Axes, optional
        Where to draw. By default, a new figure.
    X : array-like of shape (n, d), optional
        Rows to draw in the colours of their clusters. The picture then shows people, and its title says that
        it must not be published.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.mixture(Release.load("release.json"))  # doctest: +SKIP
    """
    release, model = mixture_of(source)
    if model.n_features > 2:
        raise ParameterError(
            f"`source` must have one or two columns, got {model.n_features}. Draw its merge tree with "
            "sfumato.plot.saddles, or its means with sfumato.plot.centres"
        )
    labels = None if X is None else release.predict(X)
    ax = ax or style.new_axes()
    land = _Landscape.of(model)
    draw = _map if model.n_features == 2 else _curve
    draw(release, land, ax)
    if labels is not None:
        _rows(np.asarray(X, dtype=np.float64), labels, land, ax)
    text = in_words(model.groups)
    style.title(release, f"{release.method}, {text}\n{release.privacy.budget}", ax, shows_rows=X is not None)
    return ax


class _Landscape(NamedTuple):
    """What is drawn: a model, its mixture, its groups and their colours, and the tree of its peaks."""

    model: GroupedModel
    base: MixtureModel
    groups: Groups
    colours: list[str]
    tree: MorseTree | None

    @classmethod
    def of(cls, model: GroupedModel) -> _Landscape:
        groups = model.groups
        has_tree = groups.is_joined or len(groups.labels) <= _MOST_JOINED
        return cls(model, model.base, groups, group_colours(groups), model.tree if has_tree else None)

    def component_colours(self) -> list[str]:
        return [self.colours[label] for label in self.groups.labels]

    def inner(self, tree: MorseTree) -> NDArray[np.bool_]:
        """Whether each saddle lies within one cluster."""
        of_peak = np.empty(tree.n_peaks, dtype=np.int64)
        of_peak[tree.peaks.owners] = self.groups.labels
        first, second = of_peak[tree.saddles.peaks].T
        found: NDArray[np.bool_] = first == second
        return found

    def numbered(self) -> Iterator[tuple[int, FloatArray]]:
        """Number of each cluster, the largest first, and the mean of its heaviest component."""
        for cluster in np.argsort(-self.groups.sizes, kind="stable"):
            weights = np.where(self.groups.labels == cluster, self.base.weights, -1.0)
            yield int(cluster), self.base.means[weights.argmax()]

    def steps(self, column: int, low: float, high: float) -> FloatArray:
        """Values of a column at which to compute the density, more around narrow components."""
        heaviest = np.argsort(-self.base.weights, kind="stable")[:_N_HEAVIEST]
        stds = np.sqrt(self.base.covariances[heaviest, column, column])
        around = (self.base.means[heaviest, column] + _AROUND[:, None] * stds).ravel()
        inside = around[(low < around) & (around < high)]
        return np.unique(np.concatenate([np.linspace(low, high, _N_STEPS), inside]))

    def levels(self) -> FloatArray:
        """Log densities of the lines, each higher than the last by the same power of two."""
        mixture = self.base.mixture
        top = mixture.log_density(mixture.means).max()
        bottom = np.quantile(mixture.log_density(mixture.sample(_N_SAMPLES, 0)), _OUTSIDE)
        halvings = max(1, math.ceil((top - bottom) / math.log(2) / _MOST_LINES))
        return np.arange(bottom, top, halvings * math.log(2))


def _map(release: Release, land: _Landscape, ax: Axes) -> None:
    style.frame(release, ax)
    _density(release, land, ax)
    _ellipses(land, ax)
    if land.tree is not None:
        _edges(land, land.tree, ax)
        _marks(land.tree.peaks.positions, land.tree.saddles.positions, land.inner(land.tree), ax)
    style.write_numbers(land.numbered(), ax)


def _density(release: Release, land: _Landscape, ax: Axes) -> None:
    """Draw one translucent sheet above each level. Sheets on top of each other have no seams."""
    from matplotlib.colors import to_rgba

    x, y = (land.steps(j, release.domain.low[j], release.domain.high[j]) for j in range(2))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    heights = land.base.mixture.log_density(points).reshape(len(y), len(x))
    levels = land.levels()
    levels = levels[(heights.min() < levels) & (levels < heights.max())]
    haze = to_rgba(style.HAZE, 0.9 / (len(levels) + 3))
    sheets = [ax.contourf(x, y, heights, [level, np.inf], colors=[haze]) for level in levels]
    n_corners = sum(len(path) for sheet in sheets for path in sheet.get_paths())
    for sheet in sheets:
        sheet.set(
            edgecolor=(style.HAZE, 0.8), linewidth=0.5, zorder=0.5, rasterized=n_corners > style.MOST_CORNERS
        )


def _ellipses(land: _Landscape, ax: Axes) -> None:
    from matplotlib.collections import PolyCollection

    roots = np.linalg.cholesky(land.base.covariances)
    shapes = land.base.means[:, None] + _CIRCLE @ roots.transpose(0, 2, 1)
    colours = land.component_colours()
    pale = [(colour, 0.35) for colour in colours]
    drawn = PolyCollection(list(shapes), facecolors=pale, edgecolors=colours, linewidths=1.2)
    drawn.set_rasterized(len(shapes) * len(_CIRCLE) > style.MOST_CORNERS)
    ax.add_collection(drawn, autolim=False)


def _edges(land: _Landscape, tree: MorseTree, ax: Axes) -> None:
    """Draw lines from peak to peak over each saddle."""
    ink = ax.xaxis.label.get_color()
    ends = tree.peaks.positions[tree.saddles.peaks]
    for is_inner, saddle, (first, last) in zip(land.inner(tree), tree.saddles.positions, ends, strict=True):
        x, y = np.stack([first, saddle, last], axis=1)
        ax.plot(x, y, "-" if is_inner else ":", color=ink, linewidth=0.8, zorder=2)


def _marks(peaks: FloatArray, saddles: FloatArray, inner: NDArray[np.bool_], ax: Axes) -> None:
    """Draw peaks as dots and saddles as crosses, with a legend below the axes."""
    ink, scale = ax.xaxis.label.get_color(), max(style.crowding(len(peaks)), 0.4)
    dots = ax.scatter(peaks[:, 0], peaks[:, 1], 22 * scale, color=ink, label="peak")
    dots.set(edgecolor="white", linewidth=0.6, zorder=2.5)
    kinds = {"saddle within a cluster": (inner, ink), "saddle between clusters": (~inner, "none")}
    for name, (which, face) in kinds.items():
        x, y = saddles[which].T
        if len(x):
            crosses = ax.scatter(x, y, 32 * scale, marker="X", facecolors=face, edgecolors=ink, label=name)
            crosses.set(linewidth=0.8, zorder=2.4)
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=4.2,  # below the name of the column
        ncols=3,
        frameon=False,
        fontsize="small",
        handletextpad=0.2,
        columnspacing=1.5,
    )


def _curve(release: Release, land: _Landscape, ax: Axes) -> None:
    """Draw the density of one column in the colours of the clusters, above means and standard deviations."""
    style.strip(release, "density", ax)
    mixture = land.base.mixture
    x = land.steps(0, release.domain.low[0], release.domain.high[0])
    density, labels = np.exp(mixture.log_density(x[:, None])), land.model.predict(x[:, None])
    top = float(np.exp(mixture.log_density(mixture.means)).max())
    ax.set_ylim(-0.14 * top, 1.2 * top)
    for cluster, colour in enumerate(land.colours):
        # Up to the first point of the next cluster, so that no gap is left.
        mine = (labels == cluster) | np.append(False, labels[:-1] == cluster)
        ax.fill_between(x, density, where=mine.tolist(), color=colour, alpha=0.3, linewidth=0)
    ax.plot(x, density, color=style.HAZE, linewidth=1.2)
    means, stds = mixture.means[:, 0], np.sqrt(mixture.covariances[:, 0, 0])
    colours = land.component_colours()
    ax.hlines(np.full(len(means), -0.05 * top), means - stds, means + stds, colors=colours, linewidth=1)
    ax.vlines(means, -0.075 * top, -0.025 * top, colors=colours, linewidth=1.6)
    if land.tree is not None:
        peaks, saddles = (
            np.column_stack([part.positions, np.exp(part.log_densities)])
            for part in (land.tree.peaks, land.tree.saddles)
        )
        _marks(peaks, saddles, land.inner(land.tree), ax)
    numbered = dict(land.numbered())
    heights = np.exp(mixture.log_density(list(numbered.values()))) + 0.09 * top
    places = np.column_stack([list(numbered.values()), heights])
    style.write_numbers(zip(numbered, places, strict=True), ax)


def _rows(rows: FloatArray, labels: IntArray, land: _Landscape, ax: Axes) -> None:
    """Draw rows below everything else. Rows of one column are ticks under the components."""
    mark, size = ".", 1.5
    if rows.shape[1] == 1:
        mark, size = "|", 4.0
        rows = np.column_stack([rows, np.full(len(rows), 0.8 * ax.get_ylim()[0])])
    for cluster, colour in enumerate(land.colours):
        x, y = rows[labels == cluster].T
        ax.plot(x, y, mark, color=colour, markersize=size, alpha=0.5, rasterized=True, zorder=0.7)
