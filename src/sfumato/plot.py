"""Pictures of a release: its centres, its noisy grid, its budget.

Everything is drawn from released values and public parameters. Matplotlib comes with the extra ``report``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.cluster.base import PrivateClusterer
from sfumato.domain import FloatArray
from sfumato.errors import ParameterError
from sfumato.models import CentreModel
from sfumato.release import Release
from sfumato.synopsis import GridSynopsis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patheffects import AbstractPathEffect

__all__ = ["blank", "budget", "centres", "column_names", "grid", "step_shares"]

Source: TypeAlias = Release | PrivateClusterer

# Okabe and Ito (2008): told apart with every kind of colour vision. Yellow and black are left out, because
# they vanish on a white or on a black page.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
BLUE, VERMILLION = OKABE_ITO[:2]
_DASHES = ("-", "--", ":", "-.")
_LARGEST_MARK = 1 / 14  # of the width of the axes
_LONGEST_LABEL = 28


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


def _title(release: Release, text: str, ax: Axes) -> None:
    if release.privacy.seeded:
        ax.set_title(f"SEEDED: DO NOT PUBLISH\n{text}", color=VERMILLION, fontweight="bold")
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
        _number(number, x, y, model, ax)


def _frame(release: Release, ax: Axes) -> None:
    """Axes over the public box of two columns, to scale unless the columns differ too much."""
    (x_low, y_low), (x_high, y_high) = release.domain.low, release.domain.high
    ax.set_xlim(x_low, x_high)
    ax.set_ylim(y_low, y_high)
    ratio = (x_high - x_low) / (y_high - y_low)
    ax.set_aspect("equal" if 1 / 3 <= ratio <= 3 else "auto")
    x_name, y_name = _labels(column_names(release))
    ax.set_xlabel(x_name, parse_math=False)
    ax.set_ylabel(y_name, parse_math=False)


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
        _number(number, at, height, model, ax)


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
    return (_LARGEST_MARK * width * _crowding(model)) ** 2 * _shares_of_largest(model)


def _crowding(model: CentreModel) -> float:
    """Factor by which marks shrink where there are many."""
    return min(1.0, 3 / math.sqrt(max(len(model.cluster_centers), 1)))


def _shares_of_largest(model: CentreModel) -> FloatArray:
    sizes = np.maximum(model.cluster_sizes, 0.0)
    shares: FloatArray = sizes / max(float(sizes.max(initial=0.0)), 1e-300)
    return shares


def _number(number: int, x: float, y: float, model: CentreModel, ax: Axes) -> None:
    style = {"color": "white", "fontweight": "bold", "ha": "center", "va": "center_baseline"}
    size = 10 * max(_crowding(model), 0.6)
    ax.text(x, y, str(number), style, fontsize=size, path_effects=_outline(2.6), zorder=4)


def _outline(width: float) -> list[AbstractPathEffect]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="#222222")]
