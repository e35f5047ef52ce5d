"""Other ways in which a text file may be written, tried on the values that cannot be read as declared.

A fit never guesses. The holder is told which option would help, and no value is quoted. Not private.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.curator.findings import Advice, Spell, listed
from sfumato.domain import FloatArray
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError, ParameterError, SfumatoError
from sfumato.private.reading import Mask, read_values
from sfumato.private.sources import Source, TextSource, open_source

Settings = Mapping[str, Any]
Tally = Counter[tuple[str, str]]  # exact counts by column, or "" for rows, and by what is counted

ROWS = ""  # what is counted for rows, not for a column
SAMPLE = 200  # values of a column and batch on which other formats are tried
WORDS = {
    "number": "numbers",
    "date": "dates",
    "category": "text",
    "ordered": "one of its levels",
    "person": "names",
}
_DELIMITERS = (",", ";", "\t", "|")
_ENCODINGS = ("utf-8", "utf-16", "latin-1")  # the last decodes every file
_NUMBERS: tuple[Settings, ...] = (
    {"decimal": ","},
    {"thousands": ","},
    {"decimal": ",", "thousands": "."},
    {"decimal": ",", "thousands": " "},
    {"thousands": " "},
    {"thousands": "'"},
)
_DAYS: tuple[str, ...]
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%y")
_DAYS += ("%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%Y-%m-%d", "%Y%m%d")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", "T%H:%M:%S")
_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p")  # for cycles of a day
_TRIED: dict[str, tuple[Settings, ...]] = {
    "number": _NUMBERS,
    "date": tuple({"dates": (one,)} for one in (*(d + t for t in _TIMES for d in _DAYS), *_CLOCKS)),
}


def open_declared(X: Any, bounds: Any, unit: str | None, spell: Spell) -> tuple[Source, list[Advice]]:
    """Source of a table with the declared columns, in another format if need be, and advice to give it."""
    source = open_source(X)
    if not isinstance(source, TextSource):
        return source, []
    declared = list(bounds if isinstance(bounds, Mapping) else getattr(bounds, "columns", ()))
    wanted = {*declared, *([unit] if unit else [])} if declared else set()

    def fits(text: TextFormat) -> bool:
        names = _names(replace(source, text=text))
        return wanted <= set(names) if wanted else len(names) > 1 and not any(map(_is_number, names))

    text = source.text
    if fits(text):
        return source, []
    for encoding in (text.encoding, *_ENCODINGS):
        for delimiter in (text.delimiter, *_DELIMITERS):
            other = replace(text, encoding=encoding, delimiter=delimiter)
            if fits(other):
                marks = {"delimiter": delimiter, "encoding": encoding}
                settings = tuple(mark for mark in marks.items() if mark[1] != getattr(text, mark[0]))
                says = "the first line, as it is read, does not have the declared columns"
                return replace(source, text=other), [Advice(says, settings)]
    first_line = source.first_line(source.files.paths[0]) or []
    if text.header and not text.names and any(map(_is_number, first_line)):
        says = "the first line has no names of columns: it looks like a row"
        ways = ("names", ("a", "b", "...")), ("header", False)
        raise DataError(Advice(says, ways, either=True).text(spell))
    return source, []


def _names(source: TextSource) -> list[str]:
    try:
        return source.names
    except (SfumatoError, UnicodeError):
        return []


def _is_number(name: str) -> bool:
    return re.fullmatch(r"\s*[-+]?[.,]?\d[\d.,]*\s*", name) is not None


def tried_formats(
    columns: Columns,
    limits: Sequence[tuple[float, float]],
    batch: Mapping[str, pa.Array],
    unreadable: Mapping[str, Mask],
) -> Tally:
    """How many values of a sample other formats would read; those inside the bounds count twice.

    Format 0 is the one that was given. `limits` are the bounds of all coordinates, then of the columns that
    are only described.
    """
    tally: Tally = Counter()
    bounded = list(zip((*columns.coordinates, *columns.described), limits, strict=True))
    for kind, tried in _TRIED.items():
        of_kind = [(c, ends) for c, ends in bounded if _is_written_as(kind, c)]
        if not any(unreadable[coordinate.column].any() for coordinate, _ in of_kind):
            continue
        for coordinate, (low, high) in of_kind:
            values, lost = batch[coordinate.column], pa.array(unreadable[coordinate.column])
            parts = values.filter(lost)[:SAMPLE], values.filter(pc.invert(lost))[:SAMPLE]
            sample = pa.concat_arrays(parts)
            tally[ROWS, "tried"] += len(sample)
            for i, settings in enumerate(({}, *tried)):
                numbers = _read_as(replace(coordinate, fill=None), sample, columns.text, settings)
                inside = (numbers >= low) & (numbers <= high)
                tally[coordinate.column, f"{kind} {i}"] += int(np.isfinite(numbers).sum() + inside.sum())
    return tally


def _is_written_as(kind: str, coordinate: Coordinate) -> bool:
    """Whether values are numbers, or dates; of a cycle, one of its two coordinates is enough."""
    if coordinate.kind == "cycle":
        return coordinate.part == "cos" and kind == ("date" if coordinate.is_time else "number")
    return coordinate.kind == kind


def _read_as(coordinate: Coordinate, values: pa.Array, text: TextFormat, settings: Settings) -> FloatArray:
    """Values as another format would read them, NaN where it would not."""
    other = text
    with suppress(ParameterError):  # such as two equal marks
        other = replace(text, **settings)
    numbers = read_values(coordinate, values, other)
    if mark := re.escape(settings.get("thousands", "")):
        grouped = pc.match_substring_regex(values, rf"^[-+]?\d{{1,3}}({mark}\d{{3}})+(\D|$)")
        plain = pc.invert(pc.match_substring_regex(values, mark))
        numbers[~pc.or_(grouped, plain).fill_null(True).to_numpy(zero_copy_only=False)] = np.nan
    return numbers


def better_formats(tally: Tally, columns: Columns) -> Iterator[tuple[list[str], Advice]]:
    """Columns that another format would read, and this format."""
    for kind, find in (("number", _better_marks), ("date", _better_dates)):
        told = (*columns.coordinates, *columns.described)
        names = list(dict.fromkeys(c.column for c in told if _is_written_as(kind, c)))
        scores = {name: [tally[name, f"{kind} {i}"] for i in range(len(_TRIED[kind]) + 1)] for name in names}
        helped = [name for name in names if tally[name, "unreadable"] and max(scores[name]) > scores[name][0]]
        if helped and (settings := find(scores, columns.text)):
            yield helped, Advice(f"values of {listed(helped)} do not read as {WORDS[kind]}", *settings)


def _better_marks(scores: Mapping[str, list[int]], _: TextFormat) -> tuple[tuple[Any, ...], bool] | None:
    """Marks that read most numbers of the whole table. If several do, one of them."""
    totals = [sum(each) for each in zip(*scores.values(), strict=True)]
    best = [_NUMBERS[i - 1] for i, total in enumerate(totals) if total == max(totals)]
    if totals[0] == max(totals):
        return None
    if len(best) == 1:
        return tuple(best[0].items()), False
    return tuple(item for way in best if len(way) == 1 for item in way.items()), True


def _better_dates(scores: Mapping[str, list[int]], text: TextFormat) -> tuple[tuple[Any, ...], bool]:
    """Formats that read most dates of each column, after those that are given."""
    best: list[list[str]] = []  # for each column, the formats that read equally many dates
    for asis, *others in scores.values():
        # A format replaces ISO 8601, so columns that are in ISO 8601 need one of their own.
        if max(others) > asis or (max(others) == asis > 0 and not text.dates):
            formats = [settings["dates"][0] for settings in _TRIED["date"]]
            best.append([one for one, n in zip(formats, others, strict=True) if n == max(others)])
    if len(best) == 1:
        return tuple(("dates", (*text.dates, one)) for one in best[0]), True
    return (("dates", tuple(dict.fromkeys([*text.dates, *(first for first, *_ in best)]))),), False
