"""The picture of clusters around centres and the table under it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from sfumato import plot
from sfumato.domain import FloatArray
from sfumato.models import CentreModel
from sfumato.release import Release
from sfumato.report.markup import figure, paragraph, table
from sfumato.synopsis import GridSynopsis

_SHAPES = {1: "a histogram of one column", 2: "a map of two columns"}


def clusters(release: Release, model: CentreModel) -> str:
    """Return the section on the clusters that were found, as HTML."""
    parts = [_picture(release, model), _centre_table(release, model)]
    if model.synopsis is not None:
        parts.append(paragraph(_about_noise(model.synopsis), "note"))
    return "".join(parts)


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


def _centre_table(release: Release, model: CentreModel) -> str:
    low, high = release.domain.low, release.domain.high
    head = ["cluster", "size", *plot.column_names(release)]
    places = [
        [coordinate(*part) for part in zip(center, low, high, strict=True)]
        for center in model.cluster_centers
    ]
    sizes = [[f"{size:,.0f}"] for size in (*model.cluster_sizes, model.cluster_sizes.sum())]
    if model.synopsis is not None:
        head[2:2] = ["noisy count", "noise"]
        sizes = [
            size + noisy for size, noisy in zip(sizes, _noisy_counts(model, model.synopsis), strict=True)
        ]
    *sizes, whole = sizes
    rows = [[str(i), *size, *place] for i, (size, place) in enumerate(zip(sizes, places, strict=True))]
    foot = ["all", *whole, *[""] * model.n_features]
    return table("Size of each cluster, in estimated rows, and its centre", head, rows, foot=foot)


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
