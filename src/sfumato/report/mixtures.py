"""The picture of a mixture, the tree that joins its components, and the tables under them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from sfumato import plot
from sfumato.plot.groups import Groups, in_words
from sfumato.public.mixtures import MorseTree
from sfumato.public.models import MixtureModel, MorseModel
from sfumato.release import Release
from sfumato.report.choices import slider
from sfumato.report.findings import coordinate, size_picture
from sfumato.report.markup import figure, paragraph, table

_LONGEST_TABLE = 100
_SHAPES = {1: "the density of one column", 2: "a map of two columns"}

_COMPONENTS = (
    "The table is described as a mixture: a sum of components. A component is a cloud of rows around a mean, "
    "dense in the middle and thinner outwards, with a spread of its own in each column. In each column, "
    "about two of three of its rows are within one standard deviation of the mean."
)
_NOISE = (
    "Means, spreads and sizes carry noise, which weighs more the fewer rows there are: a small component may "
    "be noise alone. Sizes are estimates, at least 0."
)
_JOINING = (
    "One group of rows may need several components, if it is long or bent. So components are joined to "
    "clusters. The density says how close to each other rows lie; it has a peak at one or several "
    "components. Two peaks belong together if the density falls little on the best path between them. The "
    "lowest point of that path is called a saddle. Think of a mountain range: peaks that a high ridge "
    "connects are one massif, and a deep valley parts two."
)
_CUTS = (
    "The tree that joins the components can be cut anywhere: into fewer clusters than here, or into more, "
    "some of which may be noise. That costs nothing, and needs nobody's data."
)
_DEPTH = (
    "How far the density falls at a saddle says how clearly two clusters are apart: a fall to 90% of the "
    "lower peak hardly parts them, a fall to 10% does so clearly. The lower peak is the lower one of the two "
    "that are highest on either side."
)
_WITHIN = (
    "Within the clusters, the density on the best path from peak to peak falls to no less than {lowest} of "
    "the lower peak."
)
_LABELS = (
    "The {one} of a new row, which prediction gives, is computed from this release. It says something about "
    "that row, and so it is not protected: the labels of the rows of the table are not part of the release "
    "and must not be published."
)
_CAPTIONS = {
    1: (
        "The density of the column, within the public bounds. Under it: the mean of each component, with one "
        "standard deviation to both sides."
    ),
    2: (
        "The density, within the public bounds: from each line to the next it falls by the same factor. An "
        "ellipse is one standard deviation around the mean of a component. Thin lines, which are left out if "
        "there are many, run from peak to peak over the saddles."
    ),
}
_NUMBERS = (
    " Colours tell neighbouring {one}s apart. The larger {one}s carry the number that prediction gives to "
    "their rows."
)
_PARALLEL = (
    "Each {one} is a line through its mean, with the number that prediction gives to its rows. Larger {one}s "
    "have thicker lines; a band, where there is one, is one standard deviation. Each column has an axis "
    "between its public bounds."
)
_TREE = (
    "From the top down: each dot is a peak, with the numbers of its components above it and an area "
    "proportional to their rows. Two branches join where the density is lowest on the best path between "
    "them. The dashed line cuts the tree into clusters, which have their number there."
)


def mixtures(release: Release, model: MixtureModel | MorseModel) -> str:
    """Return the section on a mixture and on the clusters of its components, as HTML."""
    if isinstance(model, MixtureModel):
        return (
            paragraph(_COMPONENTS) + _shown(release, Groups.of(model), "component", "") + _notes("component")
        )
    numbers = range(1, max(model.tree.n_peaks, model.n_clusters) + 1)
    cuts = slider("reading", "Number of clusters:", numbers, model.n_clusters, partial(_cut, release, model))
    return "".join([paragraph(_COMPONENTS), paragraph(_JOINING), paragraph(_CUTS), cuts, _notes("cluster")])


def _cut(release: Release, model: MorseModel, n_clusters: int) -> str:
    """What the release shows if its tree is cut into so many clusters."""
    cut = model.cut(n_clusters)
    release, groups, suffix = replace(release, model=cut), Groups.of(cut), f"-{n_clusters}"
    shown = _shown(release, groups, "cluster", suffix)
    return shown + _tree(release, cut, groups, f"tree{suffix}") + _saddles(cut.tree, groups)


def _shown(release: Release, groups: Groups, one: str, suffix: str) -> str:
    return "".join(
        [
            _picture(release, groups, one, f"mixture{suffix}"),
            size_picture(release, f"{one}s", len(groups.sizes), salt=f"sizes{suffix}"),
            _group_table(release, groups, one),
        ]
    )


def _notes(one: str) -> str:
    return paragraph(_NOISE) + paragraph(_LABELS.format(one=one))


def _picture(release: Release, groups: Groups, one: str, salt: str) -> str:
    n_features = release.domain.n_features
    shape = _SHAPES.get(n_features, "parallel coordinates")
    text = in_words(len(groups.sizes), len(groups.labels), joined=one == "cluster")
    largest = int(np.argmax(groups.sizes))
    alt = (
        f"Picture: {shape} ({', '.join(plot.column_names(release))}) with {text}; the largest is number "
        f"{largest}, with about {groups.sizes[largest]:,.0f} rows. The table below gives all numbers."
    )
    if n_features > 2:
        draw, caption = partial(plot.centres, release), _PARALLEL.format(one=one)
    else:
        draw = partial(plot.mixture, release)
        caption = _CAPTIONS[n_features] + _NUMBERS.format(one=one)
    return figure(draw, alt, caption, salt=salt, size=(5.2, 4.7 if n_features == 2 else 3.6))


def _group_table(release: Release, groups: Groups, one: str) -> str:
    total, counts = groups.sizes.sum(), np.bincount(groups.labels)
    joined = one == "cluster"
    head = [one, *["components"] * joined, "rows", "share", *plot.column_names(release)]
    rows = [
        [str(i), *[str(counts[i])] * joined, *_sizes(groups.sizes[i], total), *_places(release, groups, i)]
        for i in range(min(len(counts), _LONGEST_TABLE))
    ]
    blank, rest = [""] * release.domain.n_features, counts[_LONGEST_TABLE:]
    if len(rest):
        more = groups.sizes[_LONGEST_TABLE:].sum()
        rows.append([f"{len(rest)} more", *[str(rest.sum())] * joined, *_sizes(more, total), *blank])
    foot = ["all", *[str(counts.sum())] * joined, *_sizes(total, total), *blank] if len(counts) > 1 else []
    caption = f"Estimated rows of each {one}, their share, and mean ± one standard deviation in each column"
    return table(caption, head, rows, foot=foot)


def _sizes(size: float, total: float) -> list[str]:
    return [f"{size:,.0f}", f"{size / total:.1%}" if total > 0 else "—"]


def _places(release: Release, groups: Groups, i: int) -> list[str]:
    bounds = zip(release.domain.low, release.domain.high, strict=True)
    return [
        f"{coordinate(mean, low, high)} ± {coordinate(std, low, high)}"
        for mean, std, (low, high) in zip(groups.means[i], groups.stds[i], bounds, strict=True)
    ]


def _tree(release: Release, model: MorseModel, groups: Groups, salt: str) -> str:
    tree = model.tree
    if tree.n_peaks == 1:
        return paragraph("The density has a single peak, so there is one cluster and nothing to join.")
    alt = (
        f"Picture: the tree in which {tree.n_peaks} peaks of the density join, cut into "
        f"{in_words(len(groups.sizes), len(groups.labels), joined=True)}."
    )
    return figure(partial(plot.saddles, release), alt, _TREE, salt=salt, size=(5.2, 4.2))


def _saddles(tree: MorseTree, groups: Groups) -> str:
    """How deep the saddles between clusters are, and how deep those within them."""
    left = np.exp(-tree.persistences)
    of_peak = np.empty(tree.n_peaks, dtype=np.int64)
    of_peak[tree.peaks.owners] = groups.labels
    pairs = of_peak[tree.saddles.peaks]
    between = pairs[:, 0] != pairs[:, 1]
    parts = [paragraph(_DEPTH)] if tree.n_peaks > 1 else []
    if not between.all():
        lowest = _percent(left[~between].min())
        parts.append(paragraph(_WITHIN.format(lowest=lowest)))
    rows = [
        [" and ".join(map(str, sorted(pair))), _percent(share) if exact else f"≥ {share:.1%}"]
        for pair, share, exact in zip(pairs[between], left[between], tree.saddles.exact[between], strict=True)
    ]
    if rows:
        caption = "What is left of the density of the lower peak on the best path between two clusters"
        if not tree.saddles.exact[between].all():
            caption += "; ≥ where a better path may exist"
        parts.append(table(caption, ("between clusters", "density falls to"), rows))
    return "".join(parts)


def _percent(share: float) -> str:
    if share < 0.001:
        return "below 0.1%"
    return f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
