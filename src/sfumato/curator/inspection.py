"""Exact findings about a table, for its holder's screen: what a fit would read, leave out or refuse.

Nothing here is private. It is for holders, who see the rows anyway, so that they pay for no typing error. No
estimator and no release may use it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.curator.findings import Advice, ColumnFindings, Findings, Spell, as_python, listed
from sfumato.curator.formats import ROWS, WORDS, Tally, better_formats, open_declared, tried_formats
from sfumato.domain import Domain, FloatArray, Unit
from sfumato.domain.columns import (
    Columns,
    Coordinate,
    Described,
    Missing,
    check_names,
    described_columns,
    read_bounds,
)
from sfumato.domain.constraints import missing_rule, one_of
from sfumato.domain.space import LARGEST_BOUND, Outside
from sfumato.private.engines.spark import quiet
from sfumato.private.reading import Batch, Mask, is_text, read_names, read_values
from sfumato.private.sources import OnSpark, Source, TextSource

UNDECODED = "\N{REPLACEMENT CHARACTER}"
_NO_LEVEL = "\N{NULL}"  # in place of levels that are not known: no value and no spelling of a missing one
_BOUGHT = {"levels": "private"}
ENOUGH = 2000  # values of a table on which other formats are tried


def check(
    X: Any,
    *,
    bounds: Any,
    unit: str | None = None,
    missing: Missing = "error",
    outside: Outside = "clip",
    describe: Any = None,
) -> Findings:
    """Count what in a table is not as declared, before anything is paid for.

    Parameters
    ----------
    X : table
        As for a fit: a data frame, an array, files, `scan_csv`, or a Spark data frame.
    bounds, unit, missing, outside, describe
        As for a fit. With ``bounds="private"`` all columns must be numbers.

    Privacy
    -------
    None: the figures are exact. They are for the holder of the table, who sees its rows anyway, and enter no
    release.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31.0, None, 140.0], "ward": ["icu", "er", "?"]})
    >>> print(check(table, bounds={"age": (0, 120), "ward": ["icu", "er"]}))
    These figures are exact, not private. They are for the holder of the table: do not publish them.
    <BLANKLINE>
    column  read as   missing  unreadable  outside
    age     number    1        0           1
    ward    category  0        0           1
    <BLANKLINE>
    3 rows, of which a fit uses 2.
    - some rows have no usable value in column 'age'. Give missing='drop' or missing={'age': 'value'}
    - values of column 'age' outside the bounds are moved to the edge; density methods leave out their rows
    - values of column 'ward' that are not among the levels count as 'other'
    """
    return inspect(X, bounds, unit, missing, outside, as_python, describe)


def inspect(
    X: Any,
    bounds: Any,
    unit: str | None,
    missing: Missing,
    outside: Outside,
    spell: Spell,
    describe: Any = None,
) -> Findings:
    """The same for the command, which has its own way to spell an option."""
    missing_rule("missing", missing)
    one_of("clip", "drop")("outside", outside)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        X = pa.table({f"column{j + 1}": column for j, column in enumerate(X.T)})
    bounds, guessed = _as_known(bounds, missing)
    source, advice = open_declared(X, bounds, unit, spell)
    columns, domain = read_bounds(bounds, source.names, Unit(unit), missing, outside, source.text)
    beside, unknown = _described(describe, {coordinate.column for coordinate in columns.coordinates})
    check_names([told.column for _, told in beside], source.names)
    columns = replace(columns, described=tuple(coordinate for coordinate, _ in beside))
    source.check_types(columns)
    tally: Tally = Counter()
    told = tuple(told for _, told in beside)
    for one in _tallies(source, columns, domain, told, lambda: tally[ROWS, "tried"] < ENOUGH):
        tally.update(one)
    found = _findings(tally, columns, outside, [*guessed, *unknown])
    return replace(found, advice=(*advice, *found.advice))


def _described(describe: Any, clustered: set[str]) -> tuple[list[tuple[Coordinate, Described]], list[str]]:
    """Columns that are only described, and those of them whose levels a fit would buy."""
    if not describe:
        return [], []
    given = describe if isinstance(describe, Mapping) else dict.fromkeys(describe, _BOUGHT)
    known, guessed = _as_known(
        {name: value for name, value in given.items() if name not in clustered}, "error"
    )
    return described_columns(known), guessed


def _as_known(bounds: Any, missing: Missing) -> tuple[Any, list[str]]:
    """Bounds with something in place of what a fit would buy, and the columns whose levels it would."""
    if isinstance(bounds, str) and bounds == "private":
        return (-LARGEST_BOUND, LARGEST_BOUND), []
    if not isinstance(bounds, Mapping):
        return bounds, []
    guessed = [name for name, value in bounds.items() if value == _BOUGHT]
    fills = missing if isinstance(missing, Mapping) else {}
    return {**bounds, **{name: [fills.get(name, _NO_LEVEL)] for name in guessed}}, guessed


def _tallies(
    source: Source,
    columns: Columns,
    domain: Domain,
    told: tuple[Described, ...],
    is_trying: Callable[[], bool],
) -> Iterator[Tally]:
    """Counts of every batch."""
    if isinstance(source, OnSpark):
        work = partial(_tally_partition, columns, domain, told)
        with quiet():
            counted = source.rows(columns).mapped(columns.source_names, work, _SPARK_TALLY).collect()
        yield from (Counter({(row["name"], row["what"]): row["n"]}) for row in counted)
        return
    in_path = source.files.in_path_names if isinstance(source, TextSource) else columns.source_names
    written = [name for name in columns.source_names if name not in in_path]
    for batch in source.batches(columns):
        yield _tally(columns, domain, told, batch, written, is_trying=is_trying())


_SPARK_TALLY = "name string, what string, n long"


def _tally_partition(
    columns: Columns, domain: Domain, told: tuple[Described, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """On a worker: the counts of every batch."""
    for batch in batches:
        tally = _tally(columns, domain, told, batch)
        names, whats = zip(*tally, strict=True)
        yield pa.record_batch([names, whats, list(tally.values())], names=["name", "what", "n"])


def _tally(
    columns: Columns,
    domain: Domain,
    told: tuple[Described, ...],
    batch: Batch,
    written: Sequence[str] = (),
    *,
    is_trying: bool = False,
) -> Tally:
    """Exact counts of a batch: rows, and values that are not as declared.

    Parameters
    ----------
    columns : Columns
    domain : Domain
    told : tuple of Described
        Of the columns that are only described.
    batch : Arrow table
    written : sequence of str
        Columns of a text file.
    is_trying : bool
        Whether to try other formats on values of these that cannot be read.
    """
    tally: Tally = Counter({(ROWS, "rows"): batch.num_rows})
    rows, named = np.empty((batch.num_rows, domain.n_features)), np.ones(batch.num_rows, dtype=np.bool_)
    fills = np.array([np.nan if c.fill is None else c.fill for c in columns.coordinates])
    unreadable: dict[str, Mask] = {}
    arrays = {name: _array(batch, name) for name in columns.source_names}
    beside = {one.column: one for one in told}
    for name, values in arrays.items():
        places = [j for j, coordinate in enumerate(columns.coordinates) if coordinate.column == name]
        numbers = _numbers(columns, name, values)
        lost, absent = np.asarray(~np.isfinite(numbers).all(axis=1)), _absent(columns, values)
        if places:
            rows[:, places] = np.where(np.isfinite(numbers), numbers, fills[places])
        elif name == columns.unit:
            named = ~lost
        unreadable[name] = lost & ~absent
        tally[name, "missing"] = int((lost & absent).sum())
        tally[name, "unreadable"] = int(unreadable[name].sum())
        beyond = (
            _beyond(beside[name], numbers) if name in beside else _outside(columns, domain, places, numbers)
        )
        tally[name, "outside"] = int((~lost & beyond).sum())
        low, high = _ends(columns, domain, beside, name)
        tally[name, "at low"], tally[name, "at high"] = (int((numbers == end).sum()) for end in (low, high))
        if name in written:
            tally[name, "undecoded"] = pc.sum(pc.match_substring(values, UNDECODED)).as_py() or 0
            # A line with too few or too many values has none.
            tally[ROWS, "ragged"] = max(tally[ROWS, "ragged"], values.null_count)
    tally[ROWS, "used"] = int((domain.admits(rows) & named).sum())
    if written and is_trying:
        limits = [*zip(domain.low, domain.high, strict=True), *((one.low, one.high) for one in told)]
        tally.update(tried_formats(columns, limits, arrays, unreadable))
    return tally


def _array(batch: Batch, name: str) -> pa.Array:
    values = batch.column(name)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _numbers(columns: Columns, name: str, values: pa.Array) -> FloatArray:
    """Coordinates of a column, NaN where a value cannot be used as it is. Of a person, 0."""
    own = [c for c in (*columns.coordinates, *columns.described) if c.column == name]
    if not own:
        assert columns.unit is not None
        known = read_names(columns.unit, values, columns.text).is_valid().to_numpy(zero_copy_only=False)
        return np.where(known, 0.0, np.nan)[:, None]
    bare = [replace(coordinate, fill=None) for coordinate in own]
    levels = tuple(coordinate.level for coordinate in bare if coordinate.level is not None)
    numbers = np.column_stack([read_values(c, values, columns.text, levels) for c in bare])
    if bare[-1].kind == "other":  # which is read as 1 wherever there is a value
        numbers[:, -1] -= numbers[:, :-1].sum(axis=1)
    return numbers


def _absent(columns: Columns, values: pa.Array) -> Mask:
    """Whether each value is missing, rather than something that cannot be read."""
    absent = pc.is_null(values, nan_is_null=True)
    if is_text(values.type):
        spellings = pa.array(columns.text.missing_values, values.type)
        absent = pc.or_(absent, pc.is_in(pc.utf8_trim(values, " \t"), spellings))
    found: Mask = absent.to_numpy(zero_copy_only=False)
    return found


def _outside(columns: Columns, domain: Domain, places: list[int], numbers: FloatArray) -> Mask:
    """Whether each value is outside the bounds, or not among the levels."""
    if not places:
        return np.zeros(len(numbers), dtype=np.bool_)
    if columns.coordinates[places[-1]].kind == "other":
        return np.asarray(numbers[:, -1] == 1)
    low, high = np.array(domain.low)[places], np.array(domain.high)[places]
    with np.errstate(invalid="ignore"):
        return np.asarray(((numbers < low) | (numbers > high)).any(axis=1))


def _beyond(told: Described, numbers: FloatArray) -> Mask:
    """The same for a column that is only described."""
    with np.errstate(invalid="ignore"):
        if told.kind == "level":
            return np.asarray(numbers[:, 0] == len(told.levels))
        return np.asarray((numbers[:, 0] < told.low) | (numbers[:, 0] > told.high))


def _ends(
    columns: Columns, domain: Domain, beside: Mapping[str, Described], name: str
) -> tuple[float, float]:
    """Bounds of a column of numbers; NaN for others, and for booleans."""
    if name in beside:
        told = beside[name]
        return (told.low, told.high) if told.kind == "number" else (np.nan, np.nan)
    for coordinate, low, high in zip(columns.coordinates, domain.low, domain.high, strict=True):
        if coordinate.column == name and coordinate.kind == "number" and coordinate.level is None:
            return low, high
    return np.nan, np.nan


def _kind(coordinate: Coordinate) -> str:
    """What a column is declared to be."""
    if coordinate.kind == "cycle":
        return "date" if coordinate.is_time else "number"
    return {"number": "number", "date": "date", "rank": "ordered"}.get(coordinate.kind, "category")


def _findings(tally: Tally, columns: Columns, outside: Outside, guessed: list[str]) -> Findings:
    kinds = {columns.unit: "person"} if columns.unit else {}
    kinds |= {c.column: _kind(c) for c in (*columns.described, *columns.coordinates)}
    found = tuple(
        ColumnFindings(
            name,
            kinds[name],
            tally[name, "missing"],
            tally[name, "unreadable"],
            0 if name in guessed else tally[name, "outside"],
        )
        for name in columns.source_names
    )
    rows, used = tally[ROWS, "rows"], tally[ROWS, "used"]
    better = list(better_formats(tally, columns))
    helped = {name for names, _ in better for name in names}
    advice = [*_about_lines(tally, columns), *(one for _, one in better)]
    advice += [one for c in found if c.name not in helped for one in _about_column(c, rows)]
    beside = {coordinate.column for coordinate in columns.described}
    clustered = tuple(c for c in found if c.name not in beside)
    advice += _about_missing(clustered, columns, helped)
    advice += _about_outside(clustered, outside)
    advice += _about_levels(found)
    advice += _about_flags(tally, found)
    advice += _about_described([c for c in found if c.name in beside and (c.missing or c.unreadable)])
    if not used and not any(one.refuses for one in advice):
        advice.append(Advice("no row would be used" if rows else "the table has no rows"))
    return Findings(rows, used, found, tuple(advice), columns.unit)


def _about_described(lost: list[ColumnFindings]) -> Iterator[Advice]:
    """Columns that are only described leave out no row."""
    if lost:
        yield Advice(f"profiles count missing values of {listed([c.name for c in lost])}", refuses=False)


def _about_lines(tally: Tally, columns: Columns) -> Iterator[Advice]:
    if n := tally[ROWS, "ragged"]:
        refuses = 2 * n > tally[ROWS, "rows"]
        lines = "1 line has" if n == 1 else f"{n:,} lines have"
        says = f"{lines} fewer or more values than there are columns: all values there are missing"
        yield Advice(says, refuses=refuses)
    if undecoded := [name for name in columns.source_names if tally[name, "undecoded"]]:
        says = f"values of {listed(undecoded)} are not in the encoding {columns.text.encoding!r}"
        yield Advice(says, (("encoding", "latin-1"),))


def _about_column(column: ColumnFindings, rows: int) -> Iterator[Advice]:
    present = rows - column.missing
    if 2 * column.unreadable > present:
        says = f"most values of column {column.name!r} do not read as {WORDS[column.kind]}"
        if column.kind == "number":
            says += ". Numbers have no signs of currencies or units beside them: write the column without"
        yield Advice(says)
    elif present and column.outside == present - column.unreadable:
        place = "among its levels" if column.kind == "category" else "inside its bounds"
        yield Advice(f"no value of column {column.name!r} is {place}")


def _about_missing(
    found: tuple[ColumnFindings, ...], columns: Columns, helped: Collection[str]
) -> Iterator[Advice]:
    filled = {coordinate.column for coordinate in columns.coordinates if coordinate.fill is not None}
    lost = [c.name for c in found if c.missing or (c.unreadable and c.name not in helped)]
    lost = [name for name in lost if name not in filled]
    if columns.missing == "drop":
        if lost:
            yield Advice(f"rows without a usable value in {listed(lost)} are left out", refuses=False)
        return
    if columns.unit in lost:
        lost.remove(columns.unit)
        yield Advice(f"column {columns.unit!r} does not name a person in every row", (("missing", "drop"),))
    if lost:
        ways = ("missing", "drop"), ("missing", dict.fromkeys(lost, "value"))
        yield Advice(f"some rows have no usable value in {listed(lost)}", ways, either=True)


def _about_outside(found: tuple[ColumnFindings, ...], outside: Outside) -> Iterator[Advice]:
    """What happens to values outside the bounds. Nothing needs to be decided."""
    if beyond := [c.name for c in found if c.outside and c.kind != "category"]:
        done = (
            "moved to the edge; density methods leave out their rows"
            if outside == "clip"
            else "left out, with their rows"
        )
        yield Advice(f"values of {listed(beyond)} outside the bounds are {done}", refuses=False)


def _about_levels(found: tuple[ColumnFindings, ...]) -> Iterator[Advice]:
    """Values that are none of the levels, also of columns that are only described."""
    if others := [c.name for c in found if c.outside and c.kind == "category"]:
        yield Advice(
            f"values of {listed(others)} that are not among the levels count as 'other'", refuses=False
        )


def _about_flags(tally: Tally, found: tuple[ColumnFindings, ...]) -> Iterator[Advice]:
    """Numbers that are a yes or a no, as far as the rows tell."""
    flags = []
    for column in found:
        ends = tally[column.name, "at low"], tally[column.name, "at high"]
        if all(ends) and sum(ends) == tally[ROWS, "rows"] - column.missing - column.unreadable:
            flags.append(column.name)
    if flags:
        says = f"{listed(flags)} {'has' if len(flags) == 1 else 'have'} no value between the bounds"
        yield Advice(f"{says}. To see shares in profiles, declare bool or levels", refuses=False)
