"""The map of the spans and the table under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from sfumato import plot
from sfumato.public.density.spans import Span
from sfumato.public.models import DBSCANModel, DensityModel, Model
from sfumato.release import Release
from sfumato.report.choices import round_numbers, slider
from sfumato.report.findings import coordinate, size_picture
from sfumato.report.markup import figure, paragraph, table

_LONGEST_TABLE = 100
_FEWER, _MORE = 10, 1000  # times the number of neighbours, that other readings reach at most

_MEANING = (
    "A span is a place where the rows of the table lie dense: cells of a public grid, found from noisy "
    "counts alone. Its outline follows the borders of the cells."
)
_INTERVAL = (
    "How many rows a span holds is estimated. The interval says how far off the estimate may be: if the "
    "method were run many times, {confidence} of such intervals would contain the true number of rows in the "
    "drawn region, whose borders were themselves chosen from the noisy counts."
)
_OUTSIDE = (
    "Places outside the spans may still hold rows, too few or too far apart to be told apart from noise. "
    "Prediction gives the number −1 to what belongs to no span."
)
_BY_NEIGHBOURS = (
    "The same published counts can be read with another least number of neighbours: more leave the densest "
    "places only. That costs nothing, and needs nobody's data. Move the slider to see it."
)
_BY_NUMBER = (
    "The same published counts can be read as fewer places, of which the clearest stay. That costs nothing, "
    "and needs nobody's data. Move the slider to see it."
)
_TREE = (
    "From the top down: each tip is a peak of the density, at the height where rows lie densest, and joins "
    "another where the density between them is highest. Peaks that stand out enough have the number of their "
    "place; the others are drawn thin and may be noise."
)
_NOTHING = (
    "No place is dense enough to be told apart from noise. That does not mean that the table is empty or "
    "even: it may have dense places that are too small to be seen with this budget."
)


def spans(release: Release, found: Sequence[Span]) -> str:
    """Return the section on the dense places that were found, as HTML."""
    if not found:
        return paragraph(_NOTHING) + _promise(release)
    interval = paragraph(_INTERVAL.format(confidence=_percent(found[0])))
    return "".join([paragraph(_MEANING), _readings(release), interval, paragraph(_OUTSIDE)])


def _readings(release: Release) -> str:
    """What the release shows, and what it shows if it is read in other ways, at no cost."""
    model = release.model
    models: Mapping[int, Model]
    if isinstance(model, DBSCANModel):
        models = _by_min_samples(model)
        label, chosen = "Least number of neighbours (min_samples):", model.guarantee.min_samples
        note = _BY_NEIGHBOURS
    elif isinstance(model, DensityModel):
        chosen = model.regions.n_spans
        models = {k: model if k == chosen else model.cut(k) for k in range(1, chosen + 1)}
        label, note = "Number of places:", _BY_NUMBER
    else:
        return _shown(release, "")
    readings = slider(
        "reading",
        label,
        sorted(models),
        chosen,
        lambda value: _shown(replace(release, model=models[value]), f"-{value}"),
    )
    return readings if len(models) == 1 else paragraph(note) + readings


def _by_min_samples(model: DBSCANModel) -> dict[int, DBSCANModel]:
    """The model for other numbers of neighbours: round ones, up to the last that leaves a place."""
    chosen = model.guarantee.min_samples
    models = {chosen: model}
    for value in round_numbers(chosen / _FEWER, chosen * _MORE):
        other = models.setdefault(value, model.at(value))
        if not other.spans and value > chosen:
            break
    return {value: other for value, other in models.items() if other.spans}


def _shown(release: Release, suffix: str) -> str:
    """Pictures and table of the spans of one reading; `suffix` tells its pictures from others in the page."""
    ordered = sorted(release.model.spans, key=lambda span: -span.count)  # type: ignore[attr-defined]
    drawn = size_picture(release, "spans", len(ordered), salt=f"sizes{suffix}") if len(ordered) > 1 else ""
    return "".join(
        [
            _promise(release),
            _picture(release, ordered, f"spans{suffix}"),
            _tree(release, f"tree{suffix}"),
            drawn,
            _table(release, ordered),
        ]
    )


def _promise(release: Release) -> str:
    guarantee = getattr(release.model, "guarantee", None)
    return "" if guarantee is None else paragraph(str(guarantee))


def _tree(release: Release, salt: str) -> str:
    if not isinstance(release.model, DensityModel) or len(release.model.tree.heights) < 2:
        return ""
    alt = (
        f"Picture: the tree of the peaks of the density, of which {release.model.regions.n_spans} are places."
    )
    return figure(partial(plot.tree, release), alt, _TREE, salt=salt, size=(5.2, 3.8))


def _picture(release: Release, ordered: Sequence[Span], salt: str) -> str:
    if release.domain.n_features != 2:
        return ""
    names, largest = ", ".join(plot.column_names(release)), ordered[0]
    number = "1 span" if len(ordered) == 1 else f"{len(ordered)} spans"
    alt = (
        f"Picture: a map of two columns ({names}) with {number}; the largest is number {largest.label}, with "
        f"about {round(largest.count):,} rows. The table below gives the numbers."
    )
    caption = (
        "The spans, within the public bounds. The larger ones carry the number that prediction gives to "
        "their rows; colours only tell neighbours apart."
    )
    return figure(partial(plot.spans, release), alt, caption, salt=salt, size=(5.2, 4.7))


def _table(release: Release, ordered: Sequence[Span]) -> str:
    total = sum(span.count for span in ordered)
    head = ["span", "rows", f"{_percent(ordered[0])} interval", "share", *plot.column_names(release)]
    rows = [
        [str(span.label), *_counts(span.count, total, span), *_extent(release, span)]
        for span in ordered[:_LONGEST_TABLE]
    ]
    rest, blank = ordered[_LONGEST_TABLE:], [""] * release.domain.n_features
    if rest:
        rows.append([f"{len(rest)} smaller", *_counts(sum(span.count for span in rest), total), *blank])
    foot = ["all", *_counts(total, total), *blank] if len(ordered) > 1 else []
    caption = "Estimated rows of each span, their share of the rows in all spans, and the extent of the span"
    return table(caption, head, rows, foot=foot)


def _counts(count: float, total: float, span: Span | None = None) -> list[str]:
    interval = f"{round(span.count_low):,} to {round(span.count_high):,}" if span else ""
    return [f"{round(count):,}", interval, f"{count / total:.1%}" if total > 0 else "—"]


def _extent(release: Release, span: Span) -> list[str]:
    low, high = release.domain.low, release.domain.high
    return [
        f"{coordinate(first, a, b)} to {coordinate(last, a, b)}"
        for first, last, a, b in zip(*span.extent, low, high, strict=True)
    ]


def _percent(span: Span) -> str:
    return f"{100 * span.confidence:g}%"
