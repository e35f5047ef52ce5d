"""Mixtures: the picture, the tree that joins components, and the tables under them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from sfumato import plot
from sfumato.plot.columns import Column, columns_of, coordinate, duration, is_map
from sfumato.plot.groups import in_words
from sfumato.plot.marks import centres_height
from sfumato.public.mixtures import MorseTree
from sfumato.public.models import GroupedModel, MixtureModel, MorseModel
from sfumato.public.models.groups import Groups
from sfumato.release import Release
from sfumato.report.choices import slider
from sfumato.report.findings import LONGEST_TABLE, NO_COST, findings, share, size_picture
from sfumato.report.markup import figure, paragraph, table

_CURVE, _MAP = "the density of one column", "a map of two columns"

_COMPONENTS = (
    "The table is described as a mixture: a sum of components. A component is a cloud of records around "
    "their mean. It is dense in the middle and thinner further out, with its own spread in each column. In "
    "each column, about two of three records of a component are within one standard deviation of the mean."
)
_NOISE = (
    "Means, spreads and sizes contain noise. The fewer records there are, the more the noise matters: a "
    "small component may be nothing but noise. Sizes are estimates and never below 0."
)
_JOINING = (
    "A long or bent group of records may need several components. So components are joined into clusters. "
    "The density says how close together records lie. It has peaks, and each peak belongs to one or more "
    "components. Two peaks belong together if the density falls little on the best path between them. The "
    "lowest point of that path is called a saddle. Think of a mountain range: peaks on one high ridge are "
    "one massif, and a deep valley separates two."
)
_CUTS = (
    "The tree that joins the components can be cut anywhere. It can give fewer clusters than here, or more, "
    f"some of which may be noise. {NO_COST}"
)
_DEPTH = (
    "How far the density falls at a saddle says how clearly two clusters are separated. A fall to 90% of the "
    "lower peak hardly separates them. A fall to 10% separates them clearly. On either side of the saddle, "
    "the highest peak counts; the lower peak is the lower of these two."
)
_WITHIN = (
    "Within the clusters, the density on the best path from peak to peak never falls below {lowest} of the "
    "lower peak."
)
_LABELS = (
    "Prediction gives the {one} of a new record. It uses this release only, but it says something about that "
    "record, so it is not protected. The labels of the records in the table are not part of the release and "
    "must not be published."
)
_CAPTIONS = {
    1: (
        "The density of the column, within the public bounds. The marks under it are the mean of each "
        "component, with one standard deviation to either side."
    ),
    2: (
        "The density, within the public bounds. From each line to the next, it falls by the same factor. An "
        "ellipse is one standard deviation around the mean of a component. Thin lines run from peak to peak "
        "over the saddles. They are left out if there are many."
    ),
}
_NUMBERS = (
    " Neighbouring {one}s have different colours. The larger {one}s carry the number that prediction gives "
    "to their records."
)
_PARALLEL = (
    "Each {one} is a line through its mean, with the number that prediction gives to its records. Thicker "
    "lines mean larger {one}s. A shaded band, if there is one, is one standard deviation. Each column has "
    "its own axis between its public bounds."
)
_TREE = (
    "Read the tree from the top down. Each dot is a peak. The numbers of its components stand above it, and "
    "its area is proportional to their records. Two branches join at the lowest density on the best path "
    "between them. The dashed line, if there is one, cuts the tree into clusters. Each cluster carries its "
    "number."
)


@findings.register
def _(model: MixtureModel, release: Release) -> str:
    return "".join([paragraph(_COMPONENTS), _shown(release, model, ""), _notes("component")])


@findings.register
def _(model: MorseModel, release: Release) -> str:
    numbers = range(1, max(model.tree.n_peaks, model.n_clusters) + 1)
    cuts = slider("reading", "Number of clusters:", numbers, model.n_clusters, partial(_cut, release, model))
    return "".join([paragraph(_COMPONENTS), paragraph(_JOINING), paragraph(_CUTS), cuts, _notes("cluster")])


def _cut(release: Release, model: MorseModel, n_clusters: int) -> str:
    """What the release shows if its tree is cut into this number of clusters."""
    cut = model.cut(n_clusters)
    release, suffix = replace(release, model=cut), f"-{n_clusters}"
    shown = _shown(release, cut, suffix)
    return shown + _tree(release, cut, f"tree{suffix}") + _saddles(cut.tree, cut.groups)


def _shown(release: Release, model: GroupedModel, suffix: str) -> str:
    picture = _picture(release, model.groups, f"mixture{suffix}")
    sizes = size_picture(model.estimated_sizes)
    return picture + sizes + _group_table(release, model.groups)


def _notes(one: str) -> str:
    return paragraph(_NOISE) + paragraph(_LABELS.format(one=one))


def _picture(release: Release, groups: Groups, salt: str) -> str:
    found, largest = columns_of(release), int(np.argmax(groups.sizes))
    axes = [column for column in found if column.is_plain]
    if not axes:
        return ""
    is_curve = len(found) == release.domain.n_features == 1
    shape = _CURVE if is_curve else _MAP if is_map(release) else "one axis per column"
    alt = (
        f"Picture: {shape} ({', '.join(axis.name for axis in axes)}) with {in_words(groups)}. The largest is "
        f"number {largest}, with about {groups.sizes[largest]:,.0f} records. The table below gives all "
        "numbers."
    )
    if not is_curve and not is_map(release):
        draw, caption = partial(plot.centres, release), _PARALLEL.format(one=groups.name)
    else:
        draw = partial(plot.mixture, release)
        caption = _CAPTIONS[1 if is_curve else 2] + _NUMBERS.format(one=groups.name)
    return figure(draw, alt, caption, salt=salt, size=(5.2, centres_height(release)))


def _group_table(release: Release, groups: Groups) -> str:
    total, counts = groups.sizes.sum(), np.bincount(groups.labels)
    found = columns_of(release)
    blank, rest = [""] * len(found), counts[LONGEST_TABLE:]

    def row(name: str, n_components: int, size: float, places: list[str]) -> list[str]:
        return [name, *[str(n_components)] * groups.is_joined, f"{size:,.0f}", share(size, total), *places]

    rows = [
        row(str(i), counts[i], groups.sizes[i], [_place(column, groups, i) for column in found])
        for i in range(min(len(counts), LONGEST_TABLE))
    ]
    if len(rest):
        rows.append(row(f"{len(rest)} more", rest.sum(), groups.sizes[LONGEST_TABLE:].sum(), blank))
    foot = row("total", counts.sum(), total, blank) if len(counts) > 1 else []
    names = [column.name for column in found]
    head = [groups.name, *["components"] * groups.is_joined, "records", "share", *names]
    caption = (
        f"Estimated number of records in each {groups.name}, their share, and mean ± one standard deviation "
        "in each column"
    )
    texts = [column.name for column in found if column.kind == "category"]
    return table(caption, head, rows, foot=foot, texts=texts)


def _place(column: Column, groups: Groups, i: int) -> str:
    """Mean and standard deviation of a group in a column. A category has shares instead."""
    if not column.is_plain or column.kind in ("rank", "flag"):
        return column.in_words(groups.means[i], None)
    mean, std = float(groups.means[i, column.at[0]]), float(groups.stds[i, column.at[0]])
    if column.kind == "date":
        return f"{column.written(mean)} ± {duration(std)}"
    low, high = column.low, column.high
    return f"{coordinate(mean, low, high)} ± {coordinate(std, low, high)}"


def _tree(release: Release, model: MorseModel, salt: str) -> str:
    tree = model.tree
    if tree.n_peaks == 1:
        return paragraph("The density has a single peak, so there is one cluster and nothing to join.")
    alt = (
        f"Picture: the tree in which {tree.n_peaks} peaks of the density join, cut into "
        f"{in_words(model.groups)}."
    )
    return figure(partial(plot.saddles, release), alt, _TREE, salt=salt, size=(5.2, 4.2))


def _saddles(tree: MorseTree, groups: Groups) -> str:
    """How deep the saddles are, between clusters and within them."""
    left = np.exp(-tree.persistences)
    of_peak = np.empty(tree.n_peaks, dtype=np.int64)
    of_peak[tree.peaks.owners] = groups.labels
    pairs = of_peak[tree.saddles.peaks]
    between = pairs[:, 0] != pairs[:, 1]
    parts = [paragraph(_DEPTH)] if tree.n_peaks > 1 else []
    if not between.all():
        parts.append(paragraph(_WITHIN.format(lowest=_percent(left[~between].min()))))
    rows = [
        [" and ".join(map(str, sorted(pair))), _percent(rest) if exact else f"≥ {rest:.1%}"]
        for pair, rest, exact in zip(pairs[between], left[between], tree.saddles.exact[between], strict=True)
    ]
    if rows:
        caption = "Lowest density on the best path between two clusters, as a share of the lower peak"
        if not tree.saddles.exact[between].all():
            caption += " (≥ where a better path may exist)"
        parts.append(table(caption, ("between clusters", "density falls to"), rows))
    return "".join(parts)


def _percent(rest: float) -> str:
    if rest < 0.001:
        return "below 0.1%"
    return f"{rest:.0%}" if rest >= 0.01 else f"{rest:.1%}"
