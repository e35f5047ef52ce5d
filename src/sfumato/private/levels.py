"""Count how many people have each value of some columns. Every value is read for itself, as text.

A person counts for one value per column, however many rows that person has: the value whose hash is smallest.
Proof: docs/proofs/levels.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.budget import Sensitivity
from sfumato.domain.columns import Columns
from sfumato.errors import DataError
from sfumato.private.people import spelling_hashes
from sfumato.private.reading import DROP, Batch, column_of, read_names, read_texts

N_MERGED = 2**17  # entries from which on they are merged
# Between a person and a value, to hash both. No property of it matters.
_BETWEEN = pa.scalar("\x1f", pa.large_string())


def levels_sensitivity(n_columns: int) -> Sensitivity:
    """Sensitivity for a whole privacy unit, which counts for at most one value of each column."""
    return Sensitivity(l1=n_columns, l2_squared=n_columns, spread=1, coordinates=n_columns)


def count_levels(columns: Columns, batches: Iterable[Batch]) -> pa.Table:
    """How many people have each value of each column. The counts are raw, before noise.

    Memory is proportional to the number of distinct values or, with a unit, of people.

    Parameters
    ----------
    columns : Columns
        Its coordinates name the columns, and then the described ones, whose values may be missing.
    batches : iterable of Arrow tables or batches

    Returns
    -------
    Arrow table
        The place of the column, the text of the value and the number n of people, sorted by place and text.

    Examples
    --------
    >>> from sfumato.domain.columns import Coordinate
    >>> columns = Columns((Coordinate("job", "level"),), unit="who")
    >>> table = pa.table({"who": ["ada", "ben", "ada", "eve"], "job": ["baker", "judge", "baker", "baker"]})
    >>> count_levels(columns, [table]).to_pylist()
    [{'place': 0, 'text': 'baker', 'n': 2}, {'place': 0, 'text': 'judge', 'n': 1}]
    """
    held = [_entries(columns).empty_table()]
    n_merged = 0
    for batch in batches:
        held.append(read_levels(columns, batch))
        if sum(part.num_rows for part in held) > max(2 * n_merged, N_MERGED):  # the work stays linear
            held = [_merged(held)]
            n_merged = held[0].num_rows
    return sorted_counts(one_each(_merged(held)))


def read_levels(columns: Columns, batch: Batch) -> pa.Table:
    """The values of a batch: the person, if any, the place of the column, the text, and n = 1."""
    people = None
    if columns.unit is not None:
        names = read_names(columns.unit, column_of(batch, columns.unit), columns.text)
        people = names.cast(pa.large_string())
    parts = [_entries(columns).empty_table()]
    for place, coordinate in enumerate((*columns.coordinates, *columns.described)):
        texts = read_texts(coordinate.column, column_of(batch, coordinate.column), columns.text)
        known = texts.is_valid() if people is None else pc.and_(texts.is_valid(), people.is_valid())
        must_be_known = columns.missing == "error" and place < len(columns.coordinates)
        if must_be_known and not pc.all(known, min_count=0).as_py():
            name = coordinate.column
            raise DataError(f"column {name!r} must have a value in every row, got rows without. {DROP}")
        arrays = [pa.repeat(pa.scalar(place, pa.int32()), len(texts)), texts, pa.repeat(1, len(texts))]
        whole = pa.table(([people] if people is not None else []) + arrays, schema=_entries(columns))
        parts.append(whole.filter(known))
    return _merged(parts)


def one_each(entries: pa.Table) -> pa.Table:
    """Keep one value per person and column, the one with the smallest hash, and forget who has it.

    Which one depends on the person and on that person's values alone. Ties are broken by the text.
    """
    return _smallest(entries).drop_columns("person") if "person" in entries.column_names else entries


def _smallest(entries: pa.Table) -> pa.Table:
    """The value with the smallest hash of each person and column. In parts or at once, it is the same."""
    entries = entries.combine_chunks()
    people, texts = (column_of(entries, name) for name in ("person", "text"))
    hashes = spelling_hashes(pc.binary_join_element_wise(people, texts, _BETWEEN))
    codes, places = people.dictionary_encode().indices.to_numpy(), entries["place"].to_numpy()
    distinct = texts.dictionary_encode()
    ranks = pc.rank(distinct.dictionary).to_numpy()[distinct.indices.to_numpy()]  # the order of the texts
    order = np.lexsort((ranks, hashes, places, codes))
    groups = np.stack([codes, places])[:, order]
    is_first = np.append(True, (groups[:, 1:] != groups[:, :-1]).any(axis=0))[: len(order)]
    return entries.take(pa.array(order[is_first]))


def sorted_counts(entries: pa.Table) -> pa.Table:
    """Sum of n for each place and text, sorted by both."""
    return _merged([entries]).sort_by([("place", "ascending"), ("text", "ascending")])


def _entries(columns: Columns) -> pa.Schema:
    fields = [("place", pa.int32()), ("text", pa.large_string()), ("n", pa.int64())]
    return pa.schema(([("person", pa.large_string())] if columns.unit is not None else []) + fields)


def _merged(parts: list[pa.Table]) -> pa.Table:
    """What the parts say together. People and values are compared in full, never by hash alone."""
    whole = pa.concat_tables(parts)
    names = whole.column_names
    if "person" in names:
        return _smallest(whole)
    summed = whole.group_by(names[:-1]).aggregate([("n", "sum")])
    return summed.select([*names[:-1], "n_sum"]).rename_columns(names)
