"""What all pictures share: axes, titles, colours, marks and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sfumato.domain import FloatArray
from sfumato.errors import ParameterError
from sfumato.plot.columns import Column, columns_of
from sfumato.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.patheffects import AbstractPathEffect

    from sfumato.cluster.shared.base import PrivateClusterer

Source: TypeAlias = "Release | PrivateClusterer"

# Okabe and Ito (2008): distinct for every kind of colour vision. Yellow and black are left out, because
# they vanish on a white or a black page.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
BLUE, VERMILLION = OKABE_ITO[:2]
HAZE = "#7d8b99"  # for the background: visible on a white and on a black page
NOTHING = "nothing stands out from the noise"
MOST_CORNERS = 20_000  # above this, outlines need more space than an image
_LARGEST_MARK = 1 / 14  # of the width of the axes
_LONGEST_LABEL = 28
_MOST_TICKS = 6
MOST_LETTERS = 34  # of all numbers along the axis of a map
_MOST_NUMBERS = 20  # on a map
_NUMBER_SIZE = (0.07, 0.05)  # width and height of a number, as shares of the longer side of the map


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches. Pyplot does not know it, so nobody has to close it.

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
    """Names of the columns, or "column 1", "column 2", ... if the table had none.

    Parameters
    ----------
    source : Release or fitted estimator
    """
    release = released(source)
    return release.columns or tuple(f"column {j}" for j in range(1, release.domain.n_features + 1))


def released(source: Source) -> Release:
    """Return the release of a fitted estimator, or the release itself."""
    if isinstance(source, Release):
        return source
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(source)
    return source.release_


def part_of(release: Release, name: str, wanted: str) -> Any:
    """Return what the model offers under this name, or refuse a model that does not offer it."""
    part = getattr(release.model, name, None)
    if part is None:
        raise refusal(release, wanted)
    return part


def refusal(release: Release, wanted: str) -> ParameterError:
    """Return the error for a release without what is `wanted`. It names a picture that can be drawn."""
    columns, picture = (
        counted(release.model.n_features, "column"),
        getattr(release.model, "picture", "budget"),
    )
    return ParameterError(
        f"`source` must have {wanted}, got {release.method} on {columns}. Draw it with sfumato.plot.{picture}"
    )


def counted(count: int, one: str) -> str:
    """Return a number of things in words."""
    return f"1 {one}" if count == 1 else f"{count:,} {one}s"


def say(text: str, ax: Axes) -> None:
    """Write in the middle of empty axes."""
    ax.text(0.5, 0.5, text, ha="center", transform=ax.transAxes)


def new_axes() -> Axes:
    """Return the axes of a new figure of pyplot."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise _no_matplotlib() from None
    return plt.subplots(layout="constrained")[1]


def require_matplotlib() -> None:
    """Say how to install matplotlib if it is missing. It is not loaded: not every page needs it."""
    if find_spec("matplotlib") is None:
        raise _no_matplotlib()


def _no_matplotlib() -> ImportError:
    return ImportError("pictures need matplotlib: pip install 'sfumato[report]'")


def short_names(names: Iterable[str]) -> list[str]:
    """Return each name on one line, cut if it is long."""
    tidy = (" ".join(name.split()) for name in names)
    return [name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…" for name in tidy]


def title(release: Release, text: str, ax: Axes, *, shows_rows: bool = False) -> None:
    """Write the title, with a warning if the picture must not be published."""
    if release.privacy.seeded or shows_rows:
        reason = "SHOWS RECORDS" if shows_rows else "SEEDED"
        ax.set_title(f"{reason}: DO NOT PUBLISH\n{text}", color=VERMILLION, fontweight="bold")
    else:
        ax.set_title(text)


def frame(release: Release, ax: Axes, stretch: float = 1.0) -> None:
    """Set the axes to the public bounds of two columns, to scale unless the columns differ too much.

    One unit of the second column is drawn as long as `stretch` units of the first.
    """
    (x_low, y_low), (x_high, y_high) = release.domain.low[:2], release.domain.high[:2]
    ax.set_xlim(x_low, x_high)
    ax.set_ylim(y_low, y_high)
    ax.set_aspect(stretch if is_to_scale((x_high - x_low) / (y_high - y_low) / stretch) else "auto")
    x_name, y_name = short_names(column_names(release)[:2])
    ax.set_xlabel(x_name, parse_math=False)
    ax.set_ylabel(y_name, parse_math=False)
    _set_ticks(release, ax.xaxis, 0, MOST_LETTERS)
    _set_ticks(release, ax.yaxis, 1)


def is_to_scale(ratio: float) -> bool:
    """Whether a map that is so many times as wide as high is drawn to scale."""
    return 1 / 3 <= ratio <= 3


def strip(release: Release, ylabel: str, ax: Axes) -> None:
    """Set the axes to the public bounds of one column."""
    ax.set_xlim(release.domain.low[0], release.domain.high[0])
    ax.set_xlabel(short_names(column_names(release))[0], parse_math=False)
    _set_ticks(release, ax.xaxis, 0, 2 * MOST_LETTERS)
    ax.set_ylabel(ylabel)
    ax.spines[["top", "right"]].set_visible(False)


def _set_ticks(release: Release, axis: Axis, j: int, most_letters: int | None = None) -> None:
    """Set as many ticks as fit beside each other, if they lie side by side. Dates are written as dates."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    column = next(column for column in columns_of(release) if j in column.at)
    axis.set_major_locator(MaxNLocator(most_ticks(column, most_letters)))
    if column.kind == "date":
        axis.set_major_formatter(FuncFormatter(lambda value, _: column.written(value)))


def most_ticks(column: Column, most_letters: int | None = None) -> int:
    """Maximum number of intervals between ticks, if their texts share so many letters."""
    longest = max(len(column.written(value)) for value in (column.low, column.high)) + 2
    fitting = _MOST_TICKS if most_letters is None else most_letters // longest
    return min(max(fitting, 2), _MOST_TICKS)


def longer_side(ax: Axes) -> FloatArray:
    """Length of the longer side of the axes, in units of each column."""
    size, aspect = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())]), ax.get_aspect()
    if isinstance(aspect, str):
        return size
    longer: FloatArray = max(size * (1, aspect)) / np.array([1, aspect])
    return longer


def mark_areas(sizes: FloatArray, ax: Axes, largest: float | None = None) -> FloatArray:
    """Areas of marks in square points, proportional to sizes. `largest` is a share of the axes."""
    largest = _LARGEST_MARK * crowding(len(sizes)) if largest is None else largest
    width = 72 * ax.bbox.width / ax.figure.dpi
    return (largest * width) ** 2 * shares_of_largest(sizes)


def crowding(n_marks: int) -> float:
    """Factor by which marks shrink if there are many."""
    return min(1.0, 3 / math.sqrt(max(n_marks, 1)))


def shares_of_largest(sizes: FloatArray) -> FloatArray:
    """Sizes as shares of the largest. Negative sizes, which noise can cause, count as 0."""
    sizes = np.maximum(sizes, 0.0)
    shares: FloatArray = sizes / max(float(sizes.max(initial=0.0)), 1e-300)
    return shares


def number(text: int, x: float, y: float, shrink: float, ax: Axes) -> None:
    """Write a number that is legible on any background. `shrink` makes it smaller."""
    style = {"color": "white", "fontweight": "bold", "ha": "center", "va": "center_baseline"}
    size = 10 * max(shrink, 0.6)
    ax.text(x, y, str(text), style, fontsize=size, path_effects=outline(2.6), zorder=4)


def outline(width: float) -> list[AbstractPathEffect]:
    """Return the effect that draws a dark line around white marks and numbers."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="#222222")]


def distinct_colours(extents: FloatArray, centroids: FloatArray) -> list[str]:
    """For each of n shapes, choose the colour whose nearest earlier shape is farthest away.

    Parameters
    ----------
    extents : float array of shape (n, 2, d)
        Lower and upper corner of the box around each shape.
    centroids : float array of shape (n, d)
    """
    chosen = np.full(len(extents), -1)
    for i, (low, high) in enumerate(extents):
        gaps = np.maximum(extents[:i, 0] - high, low - extents[:i, 1]).clip(min=0)
        apart = np.linalg.norm(gaps, axis=1) + np.linalg.norm(centroids[:i] - centroids[i], axis=1)
        nearest = np.full(len(OKABE_ITO), np.inf)
        np.minimum.at(nearest, chosen[:i], apart)
        chosen[i] = np.argmax(nearest)
    return [OKABE_ITO[c] for c in chosen]


def number_size(longer: FloatArray) -> FloatArray:
    """Width and height of a number on a map whose longer side is this long, in units of its columns."""
    size: FloatArray = longer * _NUMBER_SIZE
    return size


def numbers_apart(
    wanted: Iterable[tuple[int, FloatArray]], size: FloatArray, low: FloatArray, high: FloatArray
) -> dict[int, FloatArray]:
    """Places of numbers on a map, the first first. Numbers that would overlap are left out."""
    places: dict[int, FloatArray] = {}
    for label, where in wanted:
        place = np.clip(where, low + size / 2, high - size / 2)
        if all((np.abs(place - other) >= size).any() for other in places.values()):
            places[label] = place
        if len(places) == _MOST_NUMBERS:
            break
    return places


def write_numbers(wanted: Iterable[tuple[int, FloatArray]], ax: Axes) -> None:
    """Write numbers on a map, the first first. Numbers that would overlap are left out."""
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    places = numbers_apart(wanted, number_size(longer_side(ax)), low, high)
    for label, (x, y) in places.items():
        number(label, x, y, crowding(len(places)), ax)
