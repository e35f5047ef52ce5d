"""One card for each cluster: what it is like in a sentence, and pictures of the columns that set it apart."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sfumato.domain.columns import Described
from sfumato.plot.columns import MONTHS, columns_of, day
from sfumato.plot.style import counted
from sfumato.public.intervals import Sizes, half_widths
from sfumato.public.profiles import Bars, Direction, Estimate, Profiles, wording
from sfumato.public.profiles.readable import (
    WIDEST_SHARE,
    is_readable_quantile,
    is_readable_share,
    is_readable_size,
    spread,
)
from sfumato.public.profiles.wording import on_cycle, percent, quantity
from sfumato.release import Release
from sfumato.report.bars import Bar, Box, bars, boxes, columns
from sfumato.report.markup import Faint, details, paragraph, table
from sfumato.report.words import word_section, words_on_card

MOST_CARDS = 30
MOST_PICTURES = 4  # on a card
MOST_LEVELS = 6  # of a category in a picture
_LEAST_SHARE = 0.01  # of a level that is told, or of missing values that have a bar
_MIDDLE, _WIDE = (0.25, 0.75), (0.1, 0.9)

_INTRODUCTION = (
    "One card for each cluster, the largest first. The sentence and the pictures come from noisy counts that "
    "were published with the clusters. They tell what sets the cluster apart from the other records."
)
_KEY = (
    "Blue stands for the cluster, grey for the whole table. Thin dark lines are 95% intervals: they say how "
    "far the noise may have moved a number. In pictures of numbers and dates, a box holds half of the "
    "records, a pale line four of five, and the mark in the box is the median, which stands beside it."
)
_HIDDEN = (
    "The noise hides what this cluster is like. It may be small, or a product of the noise. Nothing about "
    "its columns can be read."
)
_GREY = "What is grey is hidden by noise."
_ALIKE = "No difference from the other records that stands out from the noise: "
_SIZES = (
    "Sizes on the cards are estimated from the counts of all columns together. The method's own estimates, "
    "in the tables below, used other noisy numbers, and may share rows out in another way."
)


def card_section(release: Release, labels: Mapping[str, str]) -> str:
    """Return the section with a card for each cluster, as HTML; without profiles, with their typical words.

    Parameters
    ----------
    release : Release
    labels : mapping
        Text for columns, by name.
    """
    profiles: Profiles | None = getattr(release, "profiles", None)
    if profiles is None:
        return word_section(release)
    order = np.argsort(-profiles.sizes.estimates, kind="stable").tolist()
    total = profiles.size(None).value
    sizes: Sizes | None = getattr(release.model, "estimated_sizes", None)
    group = "cluster" if sizes is None else sizes.group
    shown = [
        _card(
            profiles,
            cluster,
            group,
            total,
            labels,
            words_on_card(release, cluster) + _centre_in_words(release, profiles, cluster, labels),
        )
        for cluster in order[:MOST_CARDS]
    ]
    rest = order[MOST_CARDS:]
    if rest:
        records = sum(profiles.size(cluster).value for cluster in rest)
        others = counted(len(rest), f"smaller {group}")
        shown.append(paragraph(f"Without a card: {others}, about {records:,.0f} records in total.", "note"))
    same = sizes is not None and np.array_equal(sizes.estimates, profiles.sizes.estimates)
    note = "" if same else paragraph(_SIZES, "note")
    body = "".join([paragraph(_INTRODUCTION), paragraph(_KEY, "note"), *shown, note])
    return (
        f'<section aria-labelledby="clusters"><h2 id="clusters">The clusters, one by one</h2>{body}</section>'
    )


def _centre_in_words(release: Release, profiles: Profiles, cluster: int, labels: Mapping[str, str]) -> str:
    """Where the centre differs from the others, if the profile tells nothing: it has less noise."""
    model, told = getattr(release.model, "centres", None), profiles.sentence(cluster)
    if model is None or model.center_stds is None or ": " in told or is_hidden(profiles, cluster):
        return ""
    sizes = np.maximum(np.delete(model.cluster_sizes, cluster), 0.0)
    if len(model.cluster_sizes) != profiles.n_clusters or not sizes.sum():
        return ""
    place, stds = model.cluster_centers[cluster], model.center_stds[cluster]
    others = np.average(np.delete(model.cluster_centers, cluster, axis=0), axis=0, weights=sizes)
    differs = np.abs(place - others) > half_widths(stds)
    words = [
        f"{labels.get(column.source, column.name)} {column.in_words(place, stds)}"
        for column in columns_of(release)
        if column.is_plain and differs[list(column.at)].all() and not column.is_hidden(stds)
    ]
    if not words:
        return ""
    return paragraph(f"The centre says more than these counts: {', '.join(words[:MOST_PICTURES])}.")


def is_hidden(profiles: Profiles, cluster: int) -> bool:
    """Whether noise hides what a cluster is like: its size is as good as unknown."""
    return not is_readable_size(profiles.size(cluster))


def _card(
    profiles: Profiles, cluster: int, group: str, total: float, labels: Mapping[str, str], words: str
) -> str:
    hidden = is_hidden(profiles, cluster)
    size = profiles.size(cluster)
    bar = Bar("size", size.value, "", (size.low, size.high))
    parts = [
        f'<h3 id="cluster-{cluster}">{html.escape(group.capitalize())} {cluster}</h3>',
        paragraph(profiles.sentence(cluster, noun="records", labels=labels), "sentence"),
    ]
    if not hidden:
        part = percent(*(min(value / max(total, 1.0), 1.0) for value in size))
        share = f"{part} of all records"
        parts.append(bars("", [bar._replace(name=share)], longest=max(total, size.high), css="size"))
    parts.append(words)
    parts.append(paragraph(_HIDDEN, "note") if hidden else _pictures(profiles, cluster, labels))
    css = "card faint" if hidden else "card"
    return f'<article class="{css}" aria-labelledby="cluster-{cluster}">{"".join(parts)}</article>'


def _pictures(profiles: Profiles, cluster: int, labels: Mapping[str, str]) -> str:
    """Pictures of the columns that set the cluster apart, the others by name, and all numbers on demand."""
    contrasts = profiles.distinct(cluster)
    clear = [one.column for one in contrasts if one.is_clear]
    clear = clear or ([one.column for one in contrasts] if profiles.n_clusters == 1 else [])
    drawn = "".join(picture(profiles, cluster, name, labels) for name in clear[:MOST_PICTURES])
    alike = [labels.get(one.column, one.column) for one in contrasts if one.column not in clear]
    parts = [f'<div class="minis">{drawn}</div>' if drawn else ""]
    if alike:
        parts.append(paragraph(f"{_ALIKE}{', '.join(alike)}.", "note faint"))
    parts.append(details("All columns of this cluster", _all_columns(profiles, cluster, labels)))
    return "".join(parts)


def picture(profiles: Profiles, cluster: int, name: str, labels: Mapping[str, str]) -> str:
    """Return a small picture of a column in a cluster, beside the whole table."""
    column, title = profiles.column(name), labels.get(name, name)
    match column.kind:
        case "level":
            drawn = _level_bars(column, profiles.bars(cluster, name), profiles.bars(None, name))
        case "cycle":
            drawn = _around(column, profiles, cluster)
        case _:
            drawn = _box(column, profiles, cluster)
    return f'<div class="mini"><h4>{html.escape(title)}</h4>{drawn}</div>'


def _level_bars(column: Described, own: Bars, table_bars: Bars) -> str:
    """Shares of the levels that are most frequent, or of all in their order."""
    n = len(own.shares) - 1  # without missing values
    order = np.argsort(-np.maximum(own.shares[:n], table_bars.shares[:n]), kind="stable").tolist()
    chosen = order[:MOST_LEVELS]
    if column.ordered:
        chosen = sorted(chosen)
    else:
        chosen.sort(key=lambda i: -own.shares[i])
    if _is_told(own, n) or _is_told(table_bars, n):
        chosen.append(n)
    rows = [
        Bar(
            "no value" if i == n else str(own.labels[i]),
            float(own.shares[i]) if own.lows[i] > 0 else 0.0,
            _share(own, i),
            (float(own.lows[i]), float(own.highs[i])),
            float(table_bars.shares[i]) if table_bars.lows[i] > 0 else None,
            bool(own.highs[i] - own.lows[i] > WIDEST_SHARE),
        )
        for i in chosen
    ]
    left = n - len([i for i in chosen if i < n])
    note = f"Of {n} levels, the {n - left} most frequent. " if left else ""
    note += _GREY if any(row.is_faint for row in rows) else ""
    return bars("", rows) + (paragraph(note, "note") if note else "")


def _is_told(found: Bars, i: int) -> bool:
    """Whether a level, or missing values, are worth a mention beside the most frequent level."""
    three = float(found.shares[i]), float(found.lows[i]), float(found.highs[i])
    return three[0] >= _LEAST_SHARE and is_readable_share(*three)


def _with_interval(found: Bars, i: int) -> str:
    """A share and its interval; alone, if it is told by its interval."""
    told = _share(found, i)
    is_number = told.removesuffix(" %").isdigit()
    return f"{told} ({found.lows[i]:.0%} to {found.highs[i]:.0%})" if is_number else told


def _share(found: Bars, i: int) -> str:
    return percent(float(found.shares[i]), float(found.lows[i]), float(found.highs[i]))


def _box(column: Described, profiles: Profiles, cluster: int) -> str:
    """Quantiles of the cluster above those of the whole table."""
    name = column.column
    both = {
        q: (profiles.quantile(cluster, name, q), profiles.quantile(None, name, q))
        for q in (*_WIDE, *_MIDDLE, 0.5)
    }
    rows = []
    for i, title in enumerate(("cluster", "table")):
        median = both[0.5][i]
        text = short_months(quantity(column, median.value, _half(median), is_whole=profiles.is_whole(name)))
        quantiles = tuple(both[q][i].value for q in (0.1, 0.25, 0.5, 0.75, 0.9))
        rows.append(
            Box(
                title,
                quantiles,
                text,
                (median.low, median.high),
                is_hidden_median(profiles, None if i else cluster, name),
            )
        )
    low = min(min(row.quantiles) for row in rows)
    high = max(max(row.quantiles) for row in rows)
    low, high = (low, high) if high > low else (column.low, column.high)
    bare, is_whole = replace(column, unit=""), profiles.is_whole(name)
    ends = [quantity(bare, end, (high - low) / 20, is_whole=is_whole) for end in (low, high)]
    if column.kind == "date":
        ends = [day(end, column.low, column.high) for end in (low, high)]
    note = paragraph(_GREY, "note") if any(row.is_faint for row in rows) else ""
    return boxes(rows, (low, high), (ends[0], ends[1])) + note


def short_months(date: str) -> str:
    """A date with a short name of its month. Other texts stay as they are."""
    for whole, short in zip(wording.MONTHS, MONTHS, strict=True):
        date = date.replace(f"{whole} ", f"{short} ")
    return date


def is_hidden_median(profiles: Profiles, cluster: int | None, name: str) -> bool:
    """Whether noise hides the median of a column in a cluster, or in the whole table."""
    return not is_readable_quantile(profiles.quantile(cluster, name, 0.5), spread(profiles, cluster, name))


def _around(column: Described, profiles: Profiles, cluster: int) -> str:
    """Shares of the parts of a cycle, with those of the whole table."""
    own, whole = profiles.bars(cluster, column.column), profiles.bars(None, column.column)
    length = column.high - column.low
    marks = [
        on_cycle(column, column.low + part * length, length / 1000) for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    told = _direction(column, profiles.direction(cluster, column.column))
    n = len(own.shares) - 1
    drawn = columns(own.shares[:n], own.lows[:n], own.highs[:n], whole.shares[:n], marks)
    return drawn + paragraph(told, "note")


def _direction(column: Described, told: Direction) -> str:
    if not told.is_clear:
        return "No part stands out from the noise."
    return f"Around {on_cycle(column, told.value, (told.high - told.low) / 2)}."


def _all_columns(profiles: Profiles, cluster: int, labels: Mapping[str, str]) -> str:
    rows = []
    for column in profiles.columns:
        name = column.column
        rows.append((labels.get(name, name), *(_in_table(profiles, of, column) for of in (cluster, None))))
    caption = f"Cluster {cluster} and the whole table. In brackets, 95% intervals"
    head = ("column", "this cluster", "whole table")
    return table(caption, head, rows, texts=head[1:])


def _in_table(profiles: Profiles, cluster: int | None, column: Described) -> str:
    """A column of a cluster, or of the whole table, in grey if noise hides it."""
    text = in_words(profiles, cluster, column)
    is_plain = column.kind in ("number", "date")
    hidden = is_plain and is_hidden_median(profiles, cluster, column.column)
    return Faint(f"{text} (hidden by noise)") if hidden else text


def in_words(profiles: Profiles, cluster: int | None, column: Described) -> str:
    """A column of a cluster, or of the whole table, in words with intervals."""
    name = column.column
    match column.kind:
        case "level":
            found = profiles.bars(cluster, name)
            order = np.argsort(-found.shares, kind="stable")[:3].tolist()
            n = len(found.shares) - 1
            return ", ".join(
                f"{'no value' if i == n else found.labels[i]} {_with_interval(found, i)}"
                for i in order
                if i == order[0] or _is_told(found, i)
            )
        case "cycle":
            return _direction(column, profiles.direction(cluster, name)).removesuffix(".")
        case _:
            is_whole = profiles.is_whole(name)
            low, median, high = (profiles.quantile(cluster, name, q) for q in (0.25, 0.5, 0.75))
            texts = [
                quantity(column, each.value, _half(each), is_whole=is_whole) for each in (low, median, high)
            ]
            ends = [quantity(column, end, _half(median) / 10, is_whole=is_whole) for end in median[1:]]
            return f"median {texts[1]} ({ends[0]} to {ends[1]}), half of them {texts[0]} to {texts[2]}"


def _half(three: Estimate) -> float:
    return (three.high - three.low) / 2
