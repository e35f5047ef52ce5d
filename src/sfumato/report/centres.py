"""Clusters around centres: the picture, and the tables under it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from sfumato import plot
from sfumato.domain import FloatArray
from sfumato.plot.columns import UNREADABLE, Column, columns_of, is_map
from sfumato.plot.marks import centres_height
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.intervals import half_widths
from sfumato.public.models import CentreModel
from sfumato.release import Release
from sfumato.report.bars import MOST_PARTS, Parts, parts_of_bars
from sfumato.report.findings import findings, size_picture
from sfumato.report.markup import Faint, figure, paragraph, table

_HISTOGRAM = "a histogram of one column"
_MOST_COLUMNS = 5  # side by side in a table
_HIDDEN = "hidden by noise"

_MEANING = (
    "A cluster is a group of records that are similar to each other. Its centre is the estimated average of "
    "its records."
)
_ERRORS = {
    "line": " A horizontal bar is the 95% interval of a centre, where it is wide enough to see.",
    "map": " An ellipse is the 95% region of a centre, where it is large enough to see.",
    "axes": " Bars are the 95% intervals of a centre, where they are long enough to see.",
}


@findings.register
def _(model: CentreModel, release: Release) -> str:
    sizes = size_picture(model.estimated_sizes)
    parts = [paragraph(_MEANING), _picture(release, model), sizes, _centre_tables(release, model)]
    if getattr(release, "profiles", None) is None:  # whose cards show levels with intervals
        parts += [_levels(column, model) for column in columns_of(release) if column.kind == "category"]
    if model.center_stds is not None:
        parts.append(paragraph(_in_doubt(release, model), "note"))
    if model.synopsis is not None:
        parts.append(paragraph(_about_noise(model.synopsis), "note"))
    return "".join(parts)


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
    found = columns_of(release)
    if not any(column.is_plain for column in found):
        return ""
    caption = "Each centre carries the number that prediction gives to its cluster. "
    is_line, is_flat = len(found) == model.n_features == 1, is_map(release)
    if not is_line and not is_flat:
        caption += (
            "Thicker lines mean larger clusters. Each column has its own axis between its public bounds."
        )
        if not all(column.is_plain for column in found):
            caption += " Categories and cycles are in the tables."
    else:
        caption += "The area of a mark is proportional to the size of its cluster."
        if model.synopsis is not None:
            caption += " The background is the noisy grid from which the centres were computed."
    if model.center_stds is not None:
        caption += _ERRORS["line" if is_line else "map" if is_flat else "axes"]
    size = (5.2, centres_height(release))
    return figure(partial(plot.centres, release), _alt(release, model), caption, salt="clusters", size=size)


def _alt(release: Release, model: CentreModel) -> str:
    found = columns_of(release)
    names = ", ".join(column.name for column in found if column.is_plain)
    shape = "a map of two columns" if is_map(release) else "one axis per column"
    shape = _HISTOGRAM if len(found) == model.n_features == 1 else shape
    largest = int(np.argmax(model.cluster_sizes))
    return (
        f"Picture: {shape} ({names}) with {len(model.cluster_centers)} cluster centres. The largest cluster "
        f"is number {largest}, with about {model.cluster_sizes[largest]:,.0f} records. The table below gives "
        "all numbers."
    )


def _centre_tables(release: Release, model: CentreModel) -> str:
    """Sizes and centres in one table, or in several tables with few columns each, which fit on paper."""
    found = sorted(columns_of(release), key=lambda column: column.kind == "category")
    places = [[_cell(column, model, i) for column in found] for i in range(len(model.cluster_centers))]
    head, *sizes, whole = _size_columns(model)
    names = [column.name for column in found]
    texts = [column.name for column in found if column.kind == "category"]
    if sum(map(_room, found)) <= _MOST_COLUMNS:
        rows = [[str(i), *size, *place] for i, (size, place) in enumerate(zip(sizes, places, strict=True))]
        foot = ["total", *whole, *[""] * len(found)]
        caption = "Estimated number of records in each cluster (its size), and its centre"
        return table(caption, ["cluster", *head, *names], rows, foot=foot, texts=texts)
    rows = [[str(i), *size] for i, size in enumerate(sizes)]
    caption = "Estimated number of records in each cluster (its size)"
    parts = [table(caption, ["cluster", *head], rows, foot=["total", *whole])]
    for some in _sheets(found):
        which = f"columns {some.start + 1} to {some.stop}" if some.stop > some.start + 1 else names[some][0]
        rows = [[str(i), *place[some]] for i, place in enumerate(places)]
        parts.append(table(f"Centre of each cluster, {which}", ["cluster", *names[some]], rows, texts=texts))
    return "".join(parts)


def _cell(column: Column, model: CentreModel, i: int) -> str:
    """A centre in one column. What noise hides is set in grey and says so."""
    stds = None if model.center_stds is None else model.center_stds[i]
    text = column.in_words(model.cluster_centers[i], stds)
    return Faint(f"{text} ({_HIDDEN})") if column.is_hidden(stds) else text


def _room(column: Column) -> int:
    """Columns of a table that a column takes: names of levels are long."""
    return 2 if column.kind == "category" else 1


def _sheets(found: Sequence[Column]) -> list[slice]:
    """Runs of columns that fit into one table each. Categories have tables of their own."""
    sheets, start, taken = [], 0, 0
    for j, column in enumerate(found):
        is_first = column.kind == "category" and j > 0 and found[j - 1].kind != "category"
        if taken and (is_first or taken + _room(column) > _MOST_COLUMNS):
            sheets.append(slice(start, j))
            start, taken = j, 0
        taken += _room(column)
    return [*sheets, slice(start, len(found))]


def _levels(column: Column, model: CentreModel) -> str:
    """Shares of the levels of a category in each cluster, as bars of several parts."""
    shares = np.array([column.shares(center) for center in model.cluster_centers])
    weights = np.maximum(model.cluster_sizes, 1e-9)
    largest = np.argsort(-(weights @ shares), kind="stable")[:MOST_PARTS].tolist()
    rows = []
    for i, own in enumerate(shares):
        top = int(np.argmax(own))
        stds = None if model.center_stds is None else model.center_stds[i]
        text = f"{column.levels[top]} {own[top]:.0%}"
        halves = np.zeros(len(own)) if stds is None else half_widths(stds[list(column.at)]) / column.high
        drawn = [float(own[j]) if own[j] > halves[j] else 0.0 for j in largest]
        rows.append(Parts(f"cluster {i}", drawn, text, column.is_hidden(stds)))
    caption = f"{column.name}: shares of its levels at the centre of each cluster, and the most frequent one"
    names = [column.levels[j] for j in largest]
    rest = len(column.levels) - len(largest)
    return parts_of_bars(caption, names, rows, rest)


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
    return [["size"], *([_with_noise(size, half)] for size, half in zip(sizes, halves, strict=True))]


def _with_noise(size: float, half: float) -> str:
    """A size with half of its interval; the upper end alone if noise explains the size."""
    return f"{size:,.0f} ± {half:,.0f}" if size > half or not half else f"under {size + half:,.0f}"


def _noisy_counts(model: CentreModel, synopsis: GridSynopsis) -> list[list[str]]:
    """Noisy count and noise of each cluster, then of all."""
    sums, noise = cell_sums(model, synopsis)
    sums, noise = np.append(sums, sums.sum()), np.append(noise, np.linalg.norm(noise))
    return [
        [f"{count:,.0f}", f"± {std:,.0f}" if std else "—"] for count, std in zip(sums, noise, strict=True)
    ]


def _in_doubt(release: Release, model: CentreModel) -> str:
    sizes_too = model.synopsis is None and model.size_stds is not None
    about = "centres and sizes" if sizes_too else "centres"
    text = (
        "The scale of the noise is known, so we can say how far it may have moved a number. The number after "
        f"± in {about} is half the width of a 95% interval. It belongs to its column and cluster. "
    )
    if any(column.kind in ("category", "flag") for column in columns_of(release)):
        text += "After a share, it is in percentage points. "
    all_stds = () if model.center_stds is None else model.center_stds
    if any(column.is_hidden(stds) for column in columns_of(release) for stds in all_stds):
        text += (
            f"What is grey cannot be read: the noise may have moved it by more than {UNREADABLE:.0%} of the "
            "width of its column. "
        )
    return text + "The method may also have taken two groups for one. No interval covers that."


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
