"""Clusters around centres: the picture, and the tables under it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from sfumato import plot
from sfumato.domain import FloatArray
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.intervals import half_widths
from sfumato.public.models import CentreModel
from sfumato.release import Release
from sfumato.report.findings import coordinate, findings, size_picture
from sfumato.report.markup import figure, paragraph, table

_SHAPES = {1: "a histogram of one column", 2: "a map of two columns"}
_MOST_COLUMNS = 5  # side by side in a table

_MEANING = (
    "A cluster is a group of records that are similar to each other. Its centre is the estimated average of "
    "its records."
)
_ERRORS = {
    1: " A horizontal bar is the 95% interval of a centre, where it is wide enough to see.",
    2: " An ellipse is the 95% region of a centre, where it is large enough to see.",
    3: " Vertical bars are the 95% intervals of a centre, where they are long enough to see.",
}


@findings.register
def _(model: CentreModel, release: Release) -> str:
    sizes = size_picture(release, model.estimated_sizes)
    parts = [paragraph(_MEANING), _picture(release, model), sizes, _centre_tables(release, model)]
    if model.center_stds is not None:
        parts.append(paragraph(_in_doubt(model), "note"))
    if model.synopsis is not None:
        parts.append(paragraph(_about_noise(model.synopsis), "note"))
    return "".join(parts)


def with_error(value: float, half: float, low: float, high: float) -> str:
    """Write a coordinate and half of its interval, which gets two digits."""
    if half <= 0:
        return coordinate(value, low, high)
    digits = 1 - math.floor(math.log10(half))
    if not -3 <= digits <= 8:
        return f"{value:.6g} ± {half:.2g}"
    digits = max(digits, 0)
    return f"{value:,.{digits}f} ± {half:,.{digits}f}"


def cell_sums(model: CentreModel, synopsis: GridSynopsis) -> tuple[FloatArray, FloatArray]:
    """Plain sum of the noisy counts in the cells nearest to each centre, and its standard deviation.

    The sizes are the method's own estimates, which may trade bias for noise. This sum is right on average
    instead, and its noise is known: it is the sum of the independent noise in the cells.
    """
    n_clusters = len(model.cluster_centers)
    nearest = model.predict(synopsis.grid.centers())
    sums: FloatArray = np.bincount(nearest, synopsis.noisy_counts, n_clusters).astype(np.float64)
    n_cells = np.bincount(nearest, minlength=n_clusters)
    return sums, synopsis.noise_std * np.sqrt(n_cells)


def _picture(release: Release, model: CentreModel) -> str:
    caption = "Each centre carries the number that prediction gives to its cluster. "
    if model.n_features > 2:
        caption += (
            "Thicker lines mean larger clusters. Each column has its own axis between its public bounds."
        )
    else:
        caption += "The area of a mark is proportional to the size of its cluster."
        if model.synopsis is not None:
            caption += " The background is the noisy grid from which the centres were computed."
    if model.center_stds is not None:
        caption += _ERRORS[min(model.n_features, 3)]
    height = 4.7 if model.n_features == 2 else 3.4
    draw = partial(plot.centres, release)
    return figure(draw, _alt(release, model), caption, salt="clusters", size=(5.2, height))


def _alt(release: Release, model: CentreModel) -> str:
    names = ", ".join(plot.column_names(release))
    shape = _SHAPES.get(model.n_features, "one axis per column")
    largest = int(np.argmax(model.cluster_sizes))
    return (
        f"Picture: {shape} ({names}) with {len(model.cluster_centers)} cluster centres. The largest cluster "
        f"is number {largest}, with about {model.cluster_sizes[largest]:,.0f} records. The table below gives "
        "all numbers."
    )


def _centre_tables(release: Release, model: CentreModel) -> str:
    """Sizes and centres in one table, or in several tables with few columns each, which fit on paper."""
    names, places = plot.column_names(release), _places(release, model)
    head, *sizes, whole = _size_columns(model)
    if model.n_features <= _MOST_COLUMNS:
        rows = [[str(i), *size, *place] for i, (size, place) in enumerate(zip(sizes, places, strict=True))]
        foot = ["total", *whole, *[""] * model.n_features]
        caption = "Estimated number of records in each cluster (its size), and its centre"
        return table(caption, ["cluster", *head, *names], rows, foot=foot)
    rows = [[str(i), *size] for i, size in enumerate(sizes)]
    caption = "Estimated number of records in each cluster (its size)"
    parts = [table(caption, ["cluster", *head], rows, foot=["total", *whole])]
    for start in range(0, model.n_features, _MOST_COLUMNS):
        some = slice(start, start + _MOST_COLUMNS)
        caption = f"Centre of each cluster, columns {start + 1} to {start + len(names[some])}"
        rows = [[str(i), *place[some]] for i, place in enumerate(places)]
        parts.append(table(caption, ["cluster", *names[some]], rows))
    return "".join(parts)


def _places(release: Release, model: CentreModel) -> list[list[str]]:
    centers, stds = model.cluster_centers, model.center_stds
    halves = np.zeros_like(centers) if stds is None else half_widths(stds)
    bounds = release.domain.low, release.domain.high
    return [
        [with_error(*part) for part in zip(center, half, *bounds, strict=True)]
        for center, half in zip(centers, halves, strict=True)
    ]


def _size_columns(model: CentreModel) -> list[list[str]]:
    """Head, clusters and total of the columns about sizes."""
    sizes = np.append(model.cluster_sizes, model.cluster_sizes.sum())
    plain = [[f"{size:,.0f}"] for size in sizes]
    if model.synopsis is not None:
        noisy = _noisy_counts(model, model.synopsis)
        return [["size", "noisy count", "noise"], *(a + b for a, b in zip(plain, noisy, strict=True))]
    if model.size_stds is None:
        return [["size"], *plain]
    halves = half_widths(np.append(model.size_stds, np.linalg.norm(model.size_stds)))
    return [["size"], *([f"{size:,.0f} ± {half:,.0f}"] for size, half in zip(sizes, halves, strict=True))]


def _noisy_counts(model: CentreModel, synopsis: GridSynopsis) -> list[list[str]]:
    """Noisy count and noise of each cluster, then of all."""
    sums, noise = cell_sums(model, synopsis)
    sums, noise = np.append(sums, sums.sum()), np.append(noise, np.linalg.norm(noise))
    return [
        [f"{count:,.0f}", f"± {std:,.0f}" if std else "—"] for count, std in zip(sums, noise, strict=True)
    ]


def _in_doubt(model: CentreModel) -> str:
    sizes_too = model.synopsis is None and model.size_stds is not None
    about = "centres and sizes" if sizes_too else "centres"
    return (
        "The scale of the noise is known, so we can say how far it may have moved a number. The number after "
        f"± in {about} is half the width of a 95% interval. The method may also have taken two groups for "
        "one. No interval covers that."
    )


def _about_noise(synopsis: GridSynopsis) -> str:
    cells = " × ".join(map(str, synopsis.grid.shape))
    return (
        "Two numbers say how many records a cluster has. The size is the method's own estimate. The noisy "
        "count is the plain sum of the published counts in the cells of the cluster. It is right on average, "
        "and the column “noise” gives the standard deviation of its noise. The true count is within one "
        f"standard deviation of it in two of three cases, and within two in 19 of 20. The grid has {cells} "
        f"cells. The noise in each has a standard deviation of {synopsis.noise_std:.3g}, and the noise in "
        "the sum of m cells is larger by the square root of m."
    )
