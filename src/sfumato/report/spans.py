"""Spans: the map, and the table under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, singledispatch

from sfumato import plot
from sfumato.plot.columns import Column, columns_of, direction, is_map, moment
from sfumato.public.density.spans import Span
from sfumato.public.models import DBSCANModel, DensityModel, SpannedModel
from sfumato.release import Release
from sfumato.report.choices import round_numbers, slider
from sfumato.report.findings import LONGEST_TABLE, NO_COST, findings, share, size_picture
from sfumato.report.maps import span_map
from sfumato.report.markup import paragraph, table
from sfumato.report.peaks import peak_tree

_FEWER, _MORE = 10, 1000  # other readings divide or multiply the number of neighbours by at most this

_MEANING = (
    "A span is an area where records lie close together. It consists of cells of a public grid, and it was "
    "found from noisy counts alone. Its outline follows the borders of the cells."
)
_INTERVAL = (
    "The number of records in a span is an estimate, and the interval says how far off it may be. If the "
    "method were run many times, {confidence} of these intervals would contain the true number of records in "
    "the area drawn. The borders of that area were themselves chosen from the noisy counts."
)
_OUTSIDE = (
    "Areas outside the spans may still hold records, but these are too few or too scattered to be told apart "
    "from noise. Prediction gives the number −1 to a record outside all spans."
)
_BY_NEIGHBOURS = (
    "The same published counts can be read with another minimum number of neighbours. A higher minimum "
    f"leaves only the densest areas. {NO_COST} Move the slider to compare."
)
_BY_NUMBER = (
    f"The same published counts can be read as fewer spans. The clearest ones remain. {NO_COST} Move the "
    "slider to compare."
)
_TREE = (
    "Read the tree from the top down. Each tip is a peak of the density, where records lie closest together. "
    "Two branches join at the density at which the areas around their peaks meet. Peaks that stand out "
    "enough carry the number of their span. The others are drawn thin, and they may be noise."
)
_NOTHING = (
    "No area is dense enough to be told apart from noise. This does not mean that the table is empty, or "
    "that its records are evenly spread. It may have dense areas that are too small to see with this budget."
)


@findings.register
def _(model: SpannedModel, release: Release) -> str:
    if not model.spans:
        return paragraph(_NOTHING) + _promise(model)
    interval = paragraph(_INTERVAL.format(confidence=_percent(model.spans[0])))
    return "".join([paragraph(_MEANING), _readings(model, release), interval, paragraph(_OUTSIDE)])


@singledispatch
def _readings(model: SpannedModel, release: Release) -> str:
    """What the release shows, and what it shows if it is read in other ways."""
    return _shown(model, release)


@_readings.register
def _(model: DBSCANModel, release: Release) -> str:
    """Read the counts with other numbers of neighbours: round ones, up to the last that leaves a span."""
    chosen = model.guarantee.min_samples
    models = {chosen: model}
    for value in round_numbers(chosen / _FEWER, chosen * _MORE):
        other = models.setdefault(value, model.at(value))
        if not other.spans and value > chosen:
            break
    models = {value: other for value, other in models.items() if other.spans}
    label = "Minimum number of neighbours (min_samples):"
    show = partial(_shown, release=release)
    return _slider(label, _BY_NEIGHBOURS, sorted(models), chosen, show, models.__getitem__)


@_readings.register
def _(model: DensityModel, release: Release) -> str:
    chosen = model.regions.n_spans
    show = partial(_with_tree, release=release)
    return _slider("Number of spans:", _BY_NUMBER, range(1, chosen + 1), chosen, show, model.cut)


def _slider(
    label: str,
    note: str,
    values: Sequence[int],
    chosen: int,
    show: Callable[..., str],
    read: Callable[[int], SpannedModel],
) -> str:
    """Readings of the counts, of which only those that are shown are made."""
    readings = slider("reading", label, values, chosen, lambda value: show(read(value)))
    return readings if len(values) == 1 else paragraph(note) + readings


def _with_tree(model: DensityModel, release: Release) -> str:
    if len(model.tree.heights) < 2:
        return _shown(model, release)
    alt = f"Picture: the tree of the peaks of the density. {model.regions.n_spans} of them are spans."
    return _shown(model, release, peak_tree(release, model, alt, _TREE))


def _shown(model: SpannedModel, release: Release, tree: str = "") -> str:
    """Pictures and table of one reading."""
    release = replace(release, model=model)
    ordered = sorted(model.spans, key=lambda span: -span.count)
    sizes = size_picture(model.estimated_sizes) if len(ordered) > 1 else ""
    picture = _picture(release, ordered)
    return "".join([_promise(model), picture, tree, sizes, _table(release, ordered)])


def _promise(model: SpannedModel) -> str:
    guarantee = getattr(model, "guarantee", None)
    return (
        ""
        if guarantee is None
        else paragraph(f"The method guarantees how accurate the spans are. {guarantee}")
    )


def _picture(release: Release, ordered: Sequence[Span]) -> str:
    if not is_map(release) and not release.is_in_degrees:
        return ""
    names, largest = ", ".join(plot.column_names(release)[:2]), ordered[0]
    number = "1 span" if len(ordered) == 1 else f"{len(ordered)} spans"
    alt = (
        f"Picture: a map of two columns ({names}) with {number}. The largest is number {largest.label}, with "
        f"about {round(largest.count):,} records. The table below gives the numbers."
    )
    caption = (
        "The spans, within the public bounds. The larger ones carry the number that prediction gives to "
        "their records. Colours only tell neighbours apart."
    )
    if release.model.n_features > 2:
        caption += " Spans that lie over each other differ in the other columns."
    return span_map(release, ordered, alt, caption)


def _table(release: Release, ordered: Sequence[Span]) -> str:
    total = sum(span.count for span in ordered)
    found = columns_of(release)
    head = ["span", "records", f"{_percent(ordered[0])} interval", "share", *(c.name for c in found)]
    rows = [
        [str(span.label), *_counts(span.count, total, span), *(_extent(column, span) for column in found)]
        for span in ordered[:LONGEST_TABLE]
    ]
    rest, blank = ordered[LONGEST_TABLE:], [""] * len(found)
    if rest:
        rows.append([f"{len(rest)} smaller", *_counts(sum(span.count for span in rest), total), *blank])
    foot = ["total", *_counts(total, total), *blank] if len(ordered) > 1 else []
    caption = (
        "Estimated number of records in each span, its share of the records in all spans, and where it "
        "begins and ends in each column"
    )
    texts = [column.name for column in found if column.kind == "category"]
    return table(caption, head, rows, foot=foot, texts=texts)


def _counts(count: float, total: float, span: Span | None = None) -> list[str]:
    interval = f"{round(span.count_low):,} to {round(span.count_high):,}" if span else ""
    return [f"{round(count):,}", interval, share(count, total)]


def _extent(column: Column, span: Span) -> str:
    """Where a span begins and ends in a column, or which levels it reaches."""
    low, high = span.extent[:, list(column.at)]
    if column.kind == "category":
        return ", ".join(
            level for level, end in zip(column.levels, high, strict=True) if end > column.high / 2
        )
    if column.kind == "cycle":
        turn, _ = direction(span.centroid[list(column.at)])
        return f"around {moment(turn, column.cycle)}"
    return f"{column.written(float(low[0]))} to {column.written(float(high[0]))}"


def _percent(span: Span) -> str:
    return f"{100 * span.confidence:g}%"
