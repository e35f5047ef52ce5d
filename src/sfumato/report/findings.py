"""The picture of clusters around centres and the table under it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from sfumato import plot
from sfumato.domain import FloatArray
from sfumato.plot.bars import MOST_BARS
from sfumato.plot.style import WITHIN
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.models import CentreModel
from sfumato.release import Release
from sfumato.report.markup import figure, paragraph, table

_SHAPES = {1: "a histogram of one column", 2: "a map of two columns"}
_MOST_COLUMNS = 5  # of a table side by side

_ERRORS = {
    1: "A horizontal bar is the 95% interval of a centre",
    2: "An ellipse is the 95% region of a centre",
    3: "Vertical bars are the 95% intervals of a centre",
}
_IN_DOUBT = (
    "The noise was made to a known scale, so it is known how far it moves a number: after ± stands half a "
    "95% interval for the mean of the rows of a cluster, and for how many there are. It is not known whether "
    "the method saw two groups as one: no interval covers that."
)


def clusters(release: Release, model: CentreModel) -> str:
    """Return the section on the clusters that were found, as HTML."""
    sizes = size_picture(release, "clusters", len(model.cluster_sizes))
    parts = [_picture(release, model), sizes, _centre_tables(release, model)]
    if model.center_stds is not None:
        parts.append(paragraph(_IN_DOUBT, "note"))
    if model.synopsis is not None:
        parts.append(paragraph(_about_noise(model.synopsis), "note"))
    return "".join(parts)


def size_picture(release: Release, what: str, n_bars: int, salt: str = "sizes") -> str:
    """Return the picture of the sizes with their intervals."""
    return figure(
        partial(plot.sizes, release),
        f"Picture: bars with the estimated rows of the {what}, the largest first.",
        f"Estimated rows of the {what}, the largest first. A line over the end of a bar is a 95% interval.",
        salt=salt,
        size=(5.2, 1.0 + 0.24 * min(n_bars, MOST_BARS)),
    )


def with_error(value: float, half: float, low: float, high: float) -> str:
    """Write a coordinate and half its 95% interval, with two digits of the latter."""
    if half <= 0:
        return coordinate(value, low, high)
    digits = 1 - math.floor(math.log10(half))
    if not -3 <= digits <= 8:
        return f"{value:.6g} ± {half:.2g}"
    digits = max(digits, 0)
    return f"{value:,.{digits}f} ± {half:,.{digits}f}"


def rows_in_words(release: Release) -> str:
    """Return how many rows the table has, as far as the release says."""
    synopsis = getattr(release.model, "synopsis", None)
    if not isinstance(synopsis, GridSynopsis):
        return "not released"
    if not synopsis.rows_std:
        return f"{synopsis.noisy_rows:,.0f} (public)"
    return f"{synopsis.noisy_rows:,.0f} ± {synopsis.rows_std:,.0f}"


def coordinate(value: float, low: float, high: float) -> str:
    """Write a coordinate with a thousandth of its public range as the last digit."""
    digits = 3 - math.floor(math.log10(high - low))
    return f"{value:,.{max(digits, 0)}f}" if -3 <= digits <= 8 else f"{value:.6g}"


def cell_sums(model: CentreModel, synopsis: GridSynopsis) -> tuple[FloatArray, FloatArray]:
    """Plain sum of the noisy counts of the cells nearest to each centre, and its standard deviation.

    Unlike the sizes, which the method may estimate in a way that trades bias for noise, it is right on
    average and its noise is known: that of independent counts, added up.
    """
    n_clusters = len(model.cluster_centers)
    nearest = model.predict(synopsis.grid.centers())
    sums: FloatArray = np.bincount(nearest, synopsis.noisy_counts, n_clusters).astype(np.float64)
    n_cells = np.bincount(nearest, minlength=n_clusters)
    return sums, synopsis.noise_std * np.sqrt(n_cells)


def _picture(release: Release, model: CentreModel) -> str:
    caption = "Each centre has the number that prediction gives to its cluster. "
    if model.n_features > 2:
        caption += "Larger clusters have thicker lines; each column has an axis between its public bounds."
    else:
        caption += "The area of a mark is proportional to the size of the cluster."
        if model.synopsis is not None:
            caption += " Behind it: the noisy grid from which the centres were computed."
    if model.center_stds is not None:
        caption += f" {_ERRORS[min(model.n_features, 3)]}, unless it is too small to be seen."
    height = 4.7 if model.n_features == 2 else 3.4
    draw = partial(plot.centres, release)
    return figure(draw, _alt(release, model), caption, salt="clusters", size=(5.2, height))


def _alt(release: Release, model: CentreModel) -> str:
    names = ", ".join(plot.column_names(release))
    shape = _SHAPES.get(model.n_features, "parallel coordinates")
    text = f"Picture: {shape} ({names}) with {len(model.cluster_centers)} cluster centres"
    if len(model.cluster_sizes):
        largest = int(np.argmax(model.cluster_sizes))
        text += f"; the largest is number {largest}, with about {model.cluster_sizes[largest]:,.0f} rows"
    return text + ". The table below gives all numbers."


def _centre_tables(release: Release, model: CentreModel) -> str:
    """Sizes and centres in one table, or in several of few columns each, which fit on paper."""
    names, places = plot.column_names(release), _places(release, model)
    head, *sizes, whole = _size_columns(model)
    if model.n_features <= _MOST_COLUMNS:
        rows = [[str(i), *size, *place] for i, (size, place) in enumerate(zip(sizes, places, strict=True))]
        foot = ["all", *whole, *[""] * model.n_features]
        caption = "Size of each cluster, in estimated rows, and its centre"
        return table(caption, ["cluster", *head, *names], rows, foot=foot)
    rows = [[str(i), *size] for i, size in enumerate(sizes)]
    parts = [table("Estimated rows of each cluster", ["cluster", *head], rows, foot=["all", *whole])]
    for start in range(0, model.n_features, _MOST_COLUMNS):
        some = slice(start, start + _MOST_COLUMNS)
        caption = f"Centre of each cluster, columns {start + 1} to {start + len(names[some])}"
        rows = [[str(i), *place[some]] for i, place in enumerate(places)]
        parts.append(table(caption, ["cluster", *names[some]], rows))
    return "".join(parts)


def _places(release: Release, model: CentreModel) -> list[list[str]]:
    centers, stds = model.cluster_centers, model.center_stds
    halves = np.zeros_like(centers) if stds is None else WITHIN * stds
    bounds = release.domain.low, release.domain.high
    return [
        [with_error(*part) for part in zip(center, half, *bounds, strict=True)]
        for center, half in zip(centers, halves, strict=True)
    ]


def _size_columns(model: CentreModel) -> list[list[str]]:
    """Head, clusters and sum of the columns on sizes."""
    sizes = np.append(model.cluster_sizes, model.cluster_sizes.sum())
    plain = [[f"{size:,.0f}"] for size in sizes]
    if model.synopsis is not None:
        noisy = _noisy_counts(model, model.synopsis)
        return [["size", "noisy count", "noise"], *(a + b for a, b in zip(plain, noisy, strict=True))]
    if model.size_stds is None:
        return [["size"], *plain]
    halves = WITHIN * np.append(model.size_stds, np.linalg.norm(model.size_stds))
    return [["size"], *([f"{size:,.0f} ± {half:,.0f}"] for size, half in zip(sizes, halves, strict=True))]


def _noisy_counts(model: CentreModel, synopsis: GridSynopsis) -> list[list[str]]:
    """Noisy count and noise of each cluster, then of all."""
    sums, noise = cell_sums(model, synopsis)
    sums, noise = np.append(sums, sums.sum()), np.append(noise, np.linalg.norm(noise))
    return [
        [f"{count:,.0f}", f"± {std:,.0f}" if std else "—"] for count, std in zip(sums, noise, strict=True)
    ]


def _about_noise(synopsis: GridSynopsis) -> str:
    cells = " × ".join(map(str, synopsis.grid.shape))
    return (
        "Two numbers say how many rows a cluster has. The size is the method's own estimate. The noisy count "
        "is the plain sum of the published counts of its cells: it is right on average, and its noise has "
        "the standard deviation given beside it. In two of three cases the true count is within one "
        "standard deviation, in 19 of 20 within two. "
        f"The grid has {cells} cells, each with noise of standard deviation {synopsis.noise_std:.3g}; "
        "m cells together have the square root of m times as much."
    )
