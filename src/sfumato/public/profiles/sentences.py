"""A cluster in one sentence, from the numbers of its profile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.domain.columns import Described
from sfumato.public.profiles.estimates import Bars, Estimate, Tells
from sfumato.public.profiles.readable import is_readable_quantile, is_readable_size, spread
from sfumato.public.profiles.wording import cycle_in_words, number, on_cycle, percent, quantity, unit_for

READABLE = 1 / 20  # numbers are not told finer than this part of the table's middle half
LEAST_SCORE = 0.05  # a column is told only if it sets apart so many of the rows
LEAST_GAP = 0.02  # a level is told only if its share differs by so much from that elsewhere


def sentence(profiles: Tells, cluster: int, noun: str, labels: Mapping[str, str], most: int) -> str:
    """Size of a cluster and the columns that set it apart, in words."""
    size = profiles.size(cluster)
    if not is_readable_size(size):
        return f"Too few {noun} to describe: at most {_count(size.high, size)}."
    told = f"About {number(size.value, unit_for(_half(size), least=1.0))} {noun}"
    told += f" ({_count(size.low, size)} to {_count(size.high, size)})"
    alone = profiles.n_clusters == 1
    apart = profiles.distinct(cluster)
    chosen = [name for name, score, is_clear in apart if alone or (is_clear and score >= LEAST_SCORE)]
    facts = [fact for name in chosen if (fact := _fact(profiles, cluster, name, labels))][:most]
    facts += _flat_cycles(profiles, cluster, chosen, labels)[: max(most - len(facts), 0)]
    if facts:
        return f"{told}: {', '.join(facts)}."
    if chosen or alone:
        return f"{told}. The noise hides what they are like."
    return f"{told}. No column sets them apart from the others beyond the noise."


def _count(end: float, size: Estimate) -> str:
    """End of the interval of a size, to a tenth of its width."""
    return number(end, unit_for(_half(size) / 10, least=1.0))


def _half(three: Estimate) -> float:
    return (three.high - three.low) / 2


def _fact(profiles: Tells, cluster: int, name: str, labels: Mapping[str, str]) -> str:
    """What a column says about a cluster, or nothing if the noise hides it."""
    column = profiles.column(name)
    match column.kind:
        case "level":
            told = _ordered(profiles, cluster, column, labels) if column.ordered else ""
            return told or _level(profiles, cluster, column, labels)
        case "cycle":
            found = profiles.direction(cluster, name)
            if found.is_flat:
                return _labelled(name, labels, f"all through {cycle_in_words(column)}")
            if not found.is_clear:
                return ""
            half = (found.high - found.low) / 2
            width = (column.high - column.low) / max(len(profiles.bars(cluster, name).shares) - 1, 1)
            start, end = (on_cycle(column, part, width) for part in found.half)
            at = on_cycle(column, found.value, half)
            middle = f"half of them from {start} to {end}"
            return _labelled(name, labels, f"around {at} ({middle})")
        case _:
            return _middle(profiles, cluster, column, labels)


def _middle(profiles: Tells, cluster: int, column: Described, labels: Mapping[str, str]) -> str:
    """Median and middle half of numbers or dates."""
    name = column.column
    low, median, high = (profiles.quantile(cluster, name, q) for q in (0.25, 0.5, 0.75))
    width = spread(profiles, cluster, name)
    if not is_readable_quantile(median, width):
        return ""
    is_whole = profiles.is_whole(name)
    ends = max(_half(low), _half(high))
    halves = [ends, _half(median), ends]
    if column.kind == "number":
        halves = [max(half, READABLE * width) for half in halves]
        halves = _in_order([low.value, median.value, high.value], halves)
    values = (low.value, median.value, high.value)

    def texts(halves: Sequence[float]) -> list[str]:
        pairs = zip(values, halves, strict=True)
        return [_with_bare_zero(quantity(column, value, half, is_whole=is_whole)) for value, half in pairs]

    start, middle, end = texts(halves)
    if len(set(texts([min(halves)] * 3))) == 1:
        tail = _tail(profiles, cluster, column, median.value)
        return _labelled(name, labels, f"mostly {_bare(middle)}{tail}")
    if len(set(texts([max(halves)] * 3))) == 1:  # the ends are told too coarsely to tell them from the middle
        return _labelled(name, labels, f"around {_bare(middle)}")
    unit = f" {column.unit}" if column.unit and column.kind == "number" else ""
    return _labelled(name, labels, f"around {middle} (half of them {start.removesuffix(unit)} to {end})")


def _tail(profiles: Tells, cluster: int, column: Described, usual: float) -> str:
    """A tenth of the rows that is farther from the usual value than in the whole table."""
    if column.kind != "number":
        return ""
    for q, words in ((0.9, "or more"), (0.1, "or less")):
        own, table = (profiles.quantile(of, column.column, q) for of in (cluster, None))
        is_farther = own.low > max(usual, table.value) if q > 0.5 else own.high < min(usual, table.value)
        if is_farther:
            told = quantity(column, own.value, _half(own), is_whole=profiles.is_whole(column.column))
            return f" (a tenth of them {told} {words})"
    return ""


def _bare(text: str) -> str:
    """A number without zeros after the point: "2" for "2.00"."""
    return re.sub(r"\.0+(?!\d)", "", text)


def _with_bare_zero(text: str) -> str:
    """The same for 0 only: zeros after the point of other numbers say how exact they are."""
    return re.sub(r"^0\.0+(?!\d)", "0", text)


def _in_order(values: list[float], halves: list[float]) -> list[float]:
    """Half widths at which rounded values keep their order: the widest for all, if they would not.

    The ends of the middle half are often rounded to more than the median. It could then lie outside them:
    "around 800 (half of them 1,000 to 2,000)".
    """
    units = [unit_for(half) for half in halves]
    low, median, high = (round(value / unit) * unit for value, unit in zip(values, units, strict=True))
    return halves if low <= median <= high else [max(halves)] * 3


def _ordered(profiles: Tells, cluster: int, column: Described, labels: Mapping[str, str]) -> str:
    """Median and middle half of an ordered category; nothing if they are one level or noise hides them."""
    own, n = profiles.bars(cluster, column.column), len(column.levels)
    total = float(own.shares[:n].sum())
    if total <= 0.5:  # most have no value: `_level` tells it
        return ""
    below = np.cumsum(own.shares[:n]) / total
    noise = np.sqrt(np.cumsum((own.highs - own.lows)[:n] ** 2)) / 2 / total
    low, middle, high = (int((below < q).sum()) for q in (0.25, 0.5, 0.75))
    is_clear = (below + noise < 0.5).sum() >= middle - 1 and (below - noise < 0.5).sum() <= middle + 1
    if low == high or not is_clear:
        return ""
    start, at, end = (own.labels[min(place, n - 1)] for place in (low, middle, high))
    return _labelled(column.column, labels, f"around {at} (half of them {start} to {end})")


def _level(profiles: Tells, cluster: int, column: Described, labels: Mapping[str, str]) -> str:
    """The level that says most: the usual one if it stands out, else the one that differs most."""
    own = profiles.bars(cluster, column.column)
    rest = profiles.elsewhere(cluster, column.column) if profiles.n_clusters > 1 else None
    gaps = own.shares - rest.shares if rest is not None else own.shares
    top, widest = int(np.argmax(own.shares)), int(np.argmax(np.abs(gaps)))
    chosen = top if own.shares[top] > 0.5 and gaps[top] >= gaps.max() / 2 else widest
    is_flag = column.levels == (False, True) and isinstance(column.levels[0], bool)
    tells_yes = is_flag and chosen < len(column.levels)  # of a yes and a no, the share of the yes
    chosen = 1 if tells_yes else chosen
    # The interval of the cluster must leave out the share elsewhere: otherwise nothing is told.
    if rest is not None:
        other = float(rest.shares[chosen])
        if own.lows[chosen] <= other <= own.highs[chosen] or abs(gaps[chosen]) < LEAST_GAP:
            return ""
    text = "no value" if chosen == len(own.shares) - 1 else str(own.labels[chosen])
    if gaps[chosen] <= 0:
        how = "less often"
    elif own.lows[chosen] > 0.5:
        how = "mostly"
    else:
        how = "more often" if rest is not None else "often"
    numbers = _percent(own, chosen)
    if tells_yes:
        beside = f" (elsewhere {_percent(rest, chosen)})" if rest is not None else ""
        return _labelled(column.column, labels, numbers + beside)
    if rest is not None:
        numbers += f", elsewhere {_percent(rest, chosen)}"
    return _labelled(column.column, labels, f"{how} {text} ({numbers})")


def _percent(bars: Bars, place: int) -> str:
    return percent(float(bars.shares[place]), float(bars.lows[place]), float(bars.highs[place]))


def _flat_cycles(profiles: Tells, cluster: int, chosen: list[str], labels: Mapping[str, str]) -> list[str]:
    """Cycles that are the same all through, as far as the noise can tell."""
    cycles = [c for c in profiles.columns if c.kind == "cycle" and c.column not in chosen]
    return [
        _labelled(column.column, labels, f"all through {cycle_in_words(column)}")
        for column in cycles
        if profiles.direction(cluster, column.column).is_flat
    ]


def _labelled(name: str, labels: Mapping[str, str], text: str) -> str:
    label = labels.get(name, name).strip()
    return f"{label} {text}" if label else text
