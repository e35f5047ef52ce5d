"""Pictures of a release: its centres, its spans, its noisy grid, its budget.

Everything is drawn from released values and public parameters; only `spans` draws rows, if it is given some.
Matplotlib comes with the extra ``report``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sfumato.cluster.base import PrivateClusterer
from sfumato.density.spans import Span
from sfumato.domain import FloatArray
from sfumato.errors import ParameterError
from sfumato.models import CentreModel
from sfumato.release import Release
from sfumato.synopsis import GridSynopsis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path
    from matplotlib.patheffects import AbstractPathEffect

__all__ = ["blank", "budget", "centres", "column_names", "grid", "spans", "step_shares"]

Source: TypeAlias = Release | PrivateClusterer

# Okabe and Ito (2008): told apart with every kind of colour vision. Yellow and black are left out, because
# they vanish on a white or on a black page.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
BLUE, VERMILLION = OKABE_ITO[:2]
_DASHES = ("-", "--", ":", "-.")
_LARGEST_MARK = 1 / 14  # of the width of the axes
_LONGEST_LABEL = 28
_MOST_NUMBERS = 20  # on a map of spans
_NUMBER_SIZE = (0.07, 0.05)  # width and height that each of them takes, in longer sides of the map
_MOST_CORNERS = 20_000  # beyond that, outlines weigh more than an image of them


def centres(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the centres, each with its number and a mark whose area is proportional to its size.

    Two columns: a map over the noisy grid, if the release has one. One column: marks on the axis under the
    grid's histogram. More: parallel coordinates, one line per centre and one vertical axis per column.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.centres(Release.load("release.json"))  # doctest: +SKIP
    """
    release, model = _centre_model(source)
    ax = ax or _new_axes()
    if model.n_features == 2:
        _map(release, model, ax)
    elif model.n_features == 1:
        _line(release, model, ax)
    else:
        _parallel(release, model, ax)
    _title(release, f"{release.method}, {len(model.cluster_centers)} clusters, {release.privacy.budget}", ax)
    return ax


def spans(source: Source, ax: Axes | None = None, *, X: ArrayLike | None = None) -> Axes:
    """Draw the spans of a release with two columns, with the numbers of the larger ones.

    Spans near each other differ in colour. If the metric is "geo", the columns are longitude and latitude,
    and degrees of both are drawn as long as they are on the ground in the middle of the map.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    X : array-like of shape (n, 2), optional
        Rows to draw over the spans, pale where they are in none. Such a picture shows people: the title says
        that it must not be published.

    Examples
    --------
    >>> from sfumato import Release, plot
    >>> plot.spans(Release.load("release.json"))  # doctest: +SKIP
    """
    release, found = _spans(source)
    ax = ax or _new_axes()
    _frame(release, ax, _stretch(release))
    _outlines(found, ax)
    if X is not None:
        _rows(release, X, ax)
    number = "1 span" if len(found) == 1 else f"{len(found)} spans"
    _title(release, f"{release.method}, {number}, {release.privacy.budget}", ax, shows_rows=X is not None)
    return ax


def grid(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the noisy grid of a release with one or two columns: the estimated rows in each cell.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    release, model = _centre_model(source)
    if model.synopsis is None or model.n_features > 2:
        raise ParameterError(
            f"`source` must have a noisy grid over one or two columns, got {release.method} on "
            f"{model.n_features} columns. Draw its centres with sfumato.plot.centres."
        )
    ax = ax or _new_axes()
    draw = _heat_map if model.n_features == 2 else _histogram
    draw(release, model.synopsis, ax)
    _title(release, f"Noisy grid, {release.privacy.budget}", ax)
    return ax


def budget(source: Source, ax: Axes | None = None) -> Axes:
    """Draw the share of the budget that each step took.

    Parameters
    ----------
    source : Release or fitted estimator
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    release = _release(source)
    ax = ax or _new_axes()
    shares = step_shares(release)
    bars = ax.barh(range(len(shares)), [100 * share for share in shares.values()], color=BLUE, height=0.6)
    ax.bar_label(bars, labels=[f"{share:.1%}" for share in shares.values()], padding=4)
    ax.set_yticks(range(len(shares)), _labels(shares), parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 115)
    ax.set_xticks(range(0, 101, 25))
    ax.set_xlabel(f"share of the budget ({_currency(release)}), %")
    ax.spines[["top", "right"]].set_visible(False)
    _title(release, f"Budget of {release.method}, {release.privacy.budget}", ax)
    return ax


def blank(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, that pyplot does not know and nobody has to close.

    Parameters
    ----------
    width, height : float

    Examples
    --------
    >>> from sfumato import plot
    >>> figure = plot.blank(8, 6)
    >>> plot.centres(release, figure.add_subplot())  # doctest: +SKIP
    >>> figure.savefig("picture.png")  # doctest: +SKIP
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise _no_matplotlib() from None
    return Figure(figsize=(width, height), layout="constrained")


def column_names(source: Source) -> tuple[str, ...]:
    """Names of the columns; "column 1", "column 2", ... if the table had none.

    Parameters
    ----------
    source : Release or fitted estimator
    """
    release = _release(source)
    return release.columns or tuple(f"column {j}" for j in range(1, release.domain.n_features + 1))


def step_shares(source: Source) -> dict[str, float]:
    """Share of each step in the sum of the costs: epsilons for a pure budget, else the rhos of zCDP.

    Parameters
    ----------
    source : Release or fitted estimator
    """
    release = _release(source)
    is_pure = release.privacy.budget.kind == "pure"
    costs: dict[str, Fraction] = {}
    for record in release.privacy.steps:
        cost = record.epsilon if is_pure and record.epsilon is not None else record.rho
        costs[record.step] = costs.get(record.step, Fraction(0)) + cost
    total = sum(costs.values())
    return {step: float(cost / total) for step, cost in costs.items()}


def _release(source: Source) -> Release:
    if isinstance(source, Release):
        return source
    check_is_fitted(source)
    return source.release_


def _centre_model(source: Source) -> tuple[Release, CentreModel]:
    release = _release(source)
    if not isinstance(release.model, CentreModel):
        raise ParameterError(f"`source` must have centres, got a {type(release.model).__name__}")
    return release, release.model


def _spans(source: Source) -> tuple[Release, list[Span]]:
    """Release and its spans, the largest first."""
    release = _release(source)
    found: Sequence[Span] | None = getattr(release.model, "spans", None)
    if found is None or release.model.n_features != 2:
        raise ParameterError(
            f"`source` must have spans over two columns, got {release.method} on {release.model.n_features} "
            "columns. The boxes of a span, span.boxes, are there for any number of columns."
        )
    return release, sorted(found, key=lambda span: -span.count)


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise _no_matplotlib() from None
    return plt.subplots(layout="constrained")[1]


def _no_matplotlib() -> ImportError:
    return ImportError("pictures need matplotlib: pip install 'sfumato[report]'")


def _currency(release: Release) -> str:
    return "epsilon" if release.privacy.budget.kind == "pure" else "rho"


def _labels(names: Iterable[str]) -> list[str]:
    tidy = (" ".join(name.split()) for name in names)
    return [name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…" for name in tidy]


def _title(release: Release, text: str, ax: Axes, *, shows_rows: bool = False) -> None:
    if release.privacy.seeded or shows_rows:
        reason = "SHOWS ROWS" if shows_rows else "SEEDED"
        ax.set_title(f"{reason}: DO NOT PUBLISH\n{text}", color=VERMILLION, fontweight="bold")
    else:
        ax.set_title(text)


def _map(release: Release, model: CentreModel, ax: Axes) -> None:
    if model.synopsis is None:
        _frame(release, ax)
    else:
        _heat_map(release, model.synopsis, ax)
    ax.scatter(
        model.cluster_centers[:, 0],
        model.cluster_centers[:, 1],
        s=_areas(model, ax),
        facecolors="none",
        edgecolors="white",
        linewidths=1.8,
        path_effects=_outline(3.6),
        clip_on=False,
        zorder=3,
    )
    for number, (x, y) in enumerate(model.cluster_centers):
        _number(number, x, y, _crowding(len(model.cluster_centers)), ax)


def _frame(release: Release, ax: Axes, stretch: float = 1.0) -> None:
    """Axes over the public box of two columns, to scale unless the columns differ too much.

    One unit of the second column is as long as `stretch` units of the first.
    """
    (x_low, y_low), (x_high, y_high) = release.domain.low, release.domain.high
    ax.set_xlim(x_low, x_high)
    ax.set_ylim(y_low, y_high)
    ratio = (x_high - x_low) / (y_high - y_low) / stretch
    ax.set_aspect(stretch if 1 / 3 <= ratio <= 3 else "auto")
    x_name, y_name = _labels(column_names(release))
    ax.set_xlabel(x_name, parse_math=False)
    ax.set_ylabel(y_name, parse_math=False)


def _stretch(release: Release) -> float:
    if getattr(release.model, "metric", "euclidean") != "geo":
        return 1.0
    latitude = math.radians(float(release.domain.midpoint[1]))
    return 1 / max(math.cos(latitude), 0.1)


def _outlines(found: list[Span], ax: Axes) -> None:
    from matplotlib.collections import PathCollection

    paths = [_path(span) for span in found]
    is_heavy = sum(map(len, paths)) > _MOST_CORNERS
    colours = _colours(found, _longer_side(ax))
    pale = [(colour, 0.65) for colour in colours]
    shapes = PathCollection(paths, facecolors=pale, edgecolors=colours, linewidths=0.8, rasterized=is_heavy)
    ax.add_collection(shapes, autolim=False)
    places = _number_places(found, ax)
    for label, (x, y) in places.items():
        _number(label, x, y, _crowding(len(places)), ax)
    if not found:
        ax.text(0.5, 0.5, "no place stands out of the noise", ha="center", transform=ax.transAxes)


def _longer_side(ax: Axes) -> FloatArray:
    """How much of each column is as long as the longer side of the axes."""
    size, aspect = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())]), ax.get_aspect()
    if isinstance(aspect, str):
        return size
    longer: FloatArray = max(size * (1, aspect)) / np.array([1, aspect])
    return longer


def _path(span: Span) -> Path:
    from matplotlib.path import Path

    # Holes run the other way round than outer rings, so that they stay empty.
    return Path.make_compound_path(*(Path(ring, closed=True) for rings in span.polygons for ring in rings))


def _colours(found: list[Span], scale: FloatArray) -> list[str]:
    """For each span the colour whose bearers, so far, are furthest away."""
    extents = np.array([span.extent / scale for span in found]).reshape(-1, 2, 2)
    centroids = np.array([span.centroid / scale for span in found]).reshape(-1, 2)
    chosen = np.full(len(found), -1)
    for i, (low, high) in enumerate(extents):
        gaps = np.maximum(extents[:i, 0] - high, low - extents[:i, 1]).clip(min=0)
        apart = np.linalg.norm(gaps, axis=1) + np.linalg.norm(centroids[:i] - centroids[i], axis=1)
        nearest = [apart[chosen[:i] == c].min(initial=np.inf) for c in range(len(OKABE_ITO))]
        chosen[i] = np.argmax(nearest)
    return [OKABE_ITO[c] for c in chosen]


def _number_places(found: list[Span], ax: Axes) -> dict[int, FloatArray]:
    """Places for the numbers of the larger spans, none over another."""
    size = _longer_side(ax) * _NUMBER_SIZE
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    places: dict[int, FloatArray] = {}
    for span in found:
        place = np.clip(_number_place(span, size), low + size / 2, high - size / 2)
        if all((np.abs(place - other) >= size).any() for other in places.values()):
            places[span.label] = place
        if len(places) == _MOST_NUMBERS:
            break
    return places


def _number_place(span: Span, size: FloatArray) -> FloatArray:
    """Middle of the widest box of a span; above a span that the number would hide."""
    low, high = span.extent
    if (high - low < size).all():
        return np.array([(low[0] + high[0]) / 2, high[1] + size[1] / 2])
    widths = ((span.boxes[:, 1] - span.boxes[:, 0]) / size).min(axis=1)
    middle: FloatArray = span.boxes[np.argmax(widths)].mean(axis=0)
    return middle


def _rows(release: Release, X: ArrayLike, ax: Axes) -> None:
    is_in_none = release.predict(X) < 0
    rows = np.asarray(X, dtype=np.float64)
    for part, alpha in ((is_in_none, 0.3), (~is_in_none, 0.8)):
        ax.plot(*rows[part].T, ".", color="#444444", markersize=1.5, alpha=alpha, rasterized=True)


def _heat_map(release: Release, synopsis: GridSynopsis, ax: Axes) -> None:
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    _frame(release, ax)
    grid = synopsis.grid
    counts = synopsis.estimated_counts().reshape(grid.shape)
    image = ax.imshow(
        counts.T,
        extent=(grid.low[0], grid.high[0], grid.low[1], grid.high[1]),
        origin="lower",
        aspect=ax.get_aspect(),
        cmap="viridis",
        norm=PowerNorm(0.5, vmin=0, vmax=max(float(counts.max()), 1.0)),
    )
    bar = ax.figure.colorbar(image, ax=ax, location="bottom", aspect=40, ticks=MaxNLocator(4))
    bar.set_label("estimated rows per cell")


def _line(release: Release, model: CentreModel, ax: Axes) -> None:
    """Marks above the histogram, or at the height of their size if there is none."""
    x, heights = model.cluster_centers[:, 0], model.cluster_sizes
    if model.synopsis is None:
        _strip(release, "estimated rows per cluster", ax)
    else:
        _histogram(release, model.synopsis, ax)
        heights = np.full(len(x), 1.12 * ax.dataLim.ymax)
    ax.vlines(x, 0, heights, color=VERMILLION, linestyle=":")
    ax.scatter(x, heights, s=_areas(model, ax), color=VERMILLION, clip_on=False, zorder=3)
    for number, (at, height) in enumerate(zip(x, heights, strict=True)):
        _number(number, at, height, _crowding(len(x)), ax)


def _strip(release: Release, ylabel: str, ax: Axes) -> None:
    ax.set_xlim(release.domain.low[0], release.domain.high[0])
    ax.set_xlabel(_labels(column_names(release))[0], parse_math=False)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)


def _histogram(release: Release, synopsis: GridSynopsis, ax: Axes) -> None:
    ax.stairs(synopsis.estimated_counts(), synopsis.grid.edges()[0], fill=True, color=BLUE, alpha=0.6)
    _strip(release, "estimated rows per cell", ax)


def _parallel(release: Release, model: CentreModel, ax: Axes) -> None:
    """Each column has a vertical axis from its public lower to its upper bound."""
    low, high = np.array(release.domain.low), np.array(release.domain.high)
    heights = (model.cluster_centers - low) / (high - low)
    widths = 1 + 4 * np.sqrt(_shares_of_largest(model))
    labelled = _spread(heights[:, -1], gap=0.06)
    at = range(model.n_features)
    for number, line in enumerate(heights):
        colour, dash = OKABE_ITO[number % len(OKABE_ITO)], _DASHES[number // len(OKABE_ITO) % len(_DASHES)]
        ax.plot(at, line, dash, color=colour, linewidth=widths[number])
        aside = (model.n_features - 1 + 0.03 * model.n_features, labelled[number])
        ax.text(*aside, str(number), color=colour, fontweight="bold", va="center_baseline")
    names = _labels(column_names(release))
    ranges = [f"{name}\n{a:g} to {b:g}" for name, a, b in zip(names, low, high, strict=True)]
    many = model.n_features > 5
    ax.set_xticks(at, ranges, parse_math=False, rotation=60 if many else 0, ha="right" if many else "center")
    ax.set_yticks([0, 0.5, 1], ["low", "middle", "high"])
    ax.set_ylabel("position between the public bounds")
    ax.set_ylim(-0.02, 1.02)
    ax.grid(axis="x", alpha=0.5)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _spread(heights: FloatArray, gap: float) -> FloatArray:
    """Move heights apart, so that numbers written there do not cover each other."""
    order, stairs = np.argsort(heights), gap * np.arange(len(heights))
    spread = np.empty(len(heights))
    spread[order] = np.maximum.accumulate(heights[order] - stairs) + stairs
    overshoot = max(float(spread.max(initial=0.0)) - 1, 0.0)
    return spread - overshoot


def _areas(model: CentreModel, ax: Axes) -> FloatArray:
    """Areas of marks in square points."""
    width = 72 * ax.bbox.width / ax.figure.dpi
    return (_LARGEST_MARK * width * _crowding(len(model.cluster_centers))) ** 2 * _shares_of_largest(model)


def _crowding(n_marks: int) -> float:
    """Factor by which marks shrink where there are many."""
    return min(1.0, 3 / math.sqrt(max(n_marks, 1)))


def _shares_of_largest(model: CentreModel) -> FloatArray:
    sizes = np.maximum(model.cluster_sizes, 0.0)
    shares: FloatArray = sizes / max(float(sizes.max(initial=0.0)), 1e-300)
    return shares


def _number(number: int, x: float, y: float, crowding: float, ax: Axes) -> None:
    style = {"color": "white", "fontweight": "bold", "ha": "center", "va": "center_baseline"}
    size = 10 * max(crowding, 0.6)
    ax.text(x, y, str(number), style, fontsize=size, path_effects=_outline(2.6), zorder=4)


def _outline(width: float) -> list[AbstractPathEffect]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="#222222")]
