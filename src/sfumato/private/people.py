"""A cap on the rows per person, which turns a per-row guarantee into a per-person one.

Which rows of a person are kept depends only on that person's rows and on how the person is spelled. It does
not depend on other people, on the order of rows, files and batches, or on the Arrow type of the unit column.
So tables that differ in one person differ, after the cap, in at most `max_rows` rows and in nothing else.
Proof: docs/proofs/people.md.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.domain import FloatArray, IntArray
from sfumato.errors import DataError

HashArray: TypeAlias = NDArray[np.uint64]
_T = TypeVar("_T")

MEMORY_BYTES = 256 * 2**20  # of rows and persons that are held before they go to disk
N_MERGED = 2**17  # persons from which on tallies are merged
BUCKET_BITS = 6
N_BUCKETS = 2**BUCKET_BITS  # files that are open at a time


class _Persons(NamedTuple):
    """The distinct spellings of people (large_string), and for each row the position of its person there."""

    names: pa.Array
    codes: IntArray

    @property
    def nbytes(self) -> int:
        return int(self.names.nbytes + self.codes.nbytes)


_Part: TypeAlias = tuple[_Persons, FloatArray]  # persons, and as many rows as they have codes


def cap_rows(ids: pa.Array, rows: FloatArray, max_rows: int) -> FloatArray:
    """Keep at most `max_rows` rows of each person.

    Parameters
    ----------
    ids : Arrow array of length n
        The person of each row, of any type that can be cast to a string, without nulls. Equal spellings mean
        the same person.
    rows : float array of shape (n, d)
        Finite, with all rows of every person in `ids`.
    max_rows : int
        At least 1.

    Returns
    -------
    float array of shape (at most n, d)
        In the order of the table, with -0.0 as 0.0. The multiset of rows does not depend on that order.

    Privacy
    -------
    Adding or removing a person adds or removes at most `max_rows` rows of the result and leaves the others
    unchanged. Nothing is random: a fixed public hash picks the rows. Proof: docs/proofs/people.md.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> cap_rows(pa.array(["ada", "ben", "ada", "ada"]), rows, 2).ravel()
    array([1., 2., 3.])
    """
    if len(ids) != len(rows):
        raise DataError("`ids` must have one entry per row, got a different number of entries and rows")
    return _cap(_persons(ids), rows, max_rows)


def contributions(chunks: Iterable[pa.Array]) -> IntArray:
    """Count the rows of each person, in no particular order. The counts are raw, before noise.

    Memory is proportional to the number of people.

    Examples
    --------
    >>> sorted(contributions([pa.array([7, 8, 7]), pa.array(["7", "9"])]).tolist())
    [1, 1, 3]
    """
    names, counts = [pa.array([], pa.large_string())], [np.zeros(0, dtype=np.int64)]
    n_held = n_merged = 0
    for ids in chunks:
        own_names, own_counts = _tally(ids, np.ones(len(ids)))
        names.append(own_names)
        counts.append(own_counts)
        n_held += len(own_names)
        if n_held > max(2 * n_merged, N_MERGED):  # rare enough that the work stays linear
            own_names, own_counts = _tally(pa.concat_arrays(names), np.concatenate(counts))
            names, counts = [own_names], [own_counts]
            n_held = n_merged = len(own_names)
    return _tally(pa.concat_arrays(names), np.concatenate(counts))[1]


def _tally(ids: pa.Array, weights: NDArray[Any]) -> tuple[pa.Array, IntArray]:
    """The people who occur and the sum of each one's weights, which is exact below 2^53."""
    persons = _persons(ids)
    counts = np.bincount(persons.codes, weights, minlength=len(persons.names)).astype(np.int64)
    return persons.names.filter(pa.array(counts > 0)), counts[counts > 0]


def capped_blocks(
    pairs: Iterable[tuple[pa.Array, FloatArray]], max_rows: int, folder: Path | None = None
) -> Generator[FloatArray]:
    """Cap the rows of a table that need not fit into memory. Gives the same multiset of rows as `cap_rows`.

    Up to `MEMORY_BYTES` nothing is written. Larger tables are split into files by a hash of the person. All
    rows of a person are then in one file, and each file is capped separately. This uses a few times
    `MEMORY_BYTES`, and the rows of one person must fit into memory.

    Parameters
    ----------
    pairs : iterable of (Arrow array, float array of shape (n, d))
        People and rows, as for `cap_rows`, in any number of parts.
    max_rows : int
    folder : Path, optional
        Where to create the private folder (mode 0700) for these files; by default the system's temporary
        folder. It is removed when the iteration ends, fails or is closed.
    """
    return _capped(_gathered((_persons(ids), rows) for ids, rows in pairs), max_rows, folder, 0)


def capped_rows(
    pairs: Iterable[tuple[pa.Array, FloatArray]], max_rows: int, n_features: int, folder: Path | None = None
) -> FloatArray:
    """Cap like `capped_blocks`, for rows that are read repeatedly.

    Returns
    -------
    float array of shape (n, n_features)
        In memory or, beyond `MEMORY_BYTES`, mapped from an unnamed file. The file vanishes with the last
        array that uses it, or with the process.
    """
    held, n_bytes = [np.empty((0, n_features))], 0
    with closing(capped_blocks(pairs, max_rows, folder)) as blocks:
        for block in blocks:
            held.append(block)
            n_bytes += block.nbytes
            if n_bytes > MEMORY_BYTES:
                return _mapped(chain(_emptied(held), blocks), n_features, folder)
    return np.concatenate(held)


def _persons(ids: pa.Array) -> _Persons:
    """Group by spelling. Spellings are compared in full, never by hash alone."""
    try:
        encoded = ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()
        names = encoded.dictionary.cast(pa.large_string())
    except pa.ArrowException:  # its message may quote a value
        raise DataError(
            f"`ids` must have a type that can be written as text, got {ids.type}. Use numbers or strings"
        ) from None
    codes: IntArray = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    if ids.type not in (pa.string(), pa.large_string()):
        # A dictionary-encoded column may list a person twice, or a null.
        distinct = names.dictionary_encode()
        codes = np.append(distinct.indices.fill_null(-1).to_numpy(), -1).astype(np.int64)[codes]
        names = distinct.dictionary
    if (codes < 0).any():
        raise DataError("`ids` must name the person of every row, got missing values. Drop these rows")
    return _Persons(names, codes)


def _cap(persons: _Persons, rows: FloatArray, max_rows: int) -> FloatArray:
    counts = np.bincount(persons.codes, minlength=len(persons.names))
    above = counts > max_rows
    keep = ~above[persons.codes]
    sizes = np.where(above, counts, 0)
    ends = np.cumsum(sizes)
    order = np.empty(sizes.sum(), dtype=np.int64)
    _fill_order(persons.codes, np.where(above, ends - sizes, -1), order)
    chosen = np.flatnonzero(above)
    seeds = spelling_hashes(persons.names)[chosen]
    borders = np.append(0, ends[chosen])
    _keep_smallest(np.ascontiguousarray(rows), order, borders, seeds, max_rows, keep)
    kept = rows[keep]
    kept += 0.0
    return kept


def spelling_hashes(names: pa.Array) -> HashArray:
    """Public hash of each spelling (large_string)."""
    out = np.empty(len(names), dtype=np.uint64)
    _, places, text = names.buffers()
    if len(names):
        offsets = np.frombuffer(places, dtype=np.int64)[names.offset : names.offset + len(names) + 1]
        _hash_spellings(offsets, np.frombuffer(text or b"", dtype=np.uint8), out)
    return out


def _gathered(parts: Iterable[_Part]) -> Iterator[_Part]:
    """Join parts into batches that just exceed `MEMORY_BYTES`."""
    held: list[_Part] = []
    n_bytes = 0
    for persons, rows in parts:
        held.append((persons, rows))
        n_bytes += persons.nbytes + rows.nbytes
        if n_bytes > MEMORY_BYTES:
            whole, held, n_bytes = _joined(held), [], 0  # frees the parts
            yield whole
    if held:
        yield _joined(held)


def _joined(parts: list[_Part]) -> _Part:
    names = pa.concat_arrays([persons.names for persons, _ in parts])
    codes, n_before = [], 0
    for persons, _ in parts:
        codes.append(persons.codes + n_before)
        n_before += len(persons.names)
    common = _persons(names)
    joined = _Persons(common.names, common.codes[np.concatenate(codes)])
    return joined, np.concatenate([rows for _, rows in parts])


def _capped(parts: Iterator[_Part], max_rows: int, folder: Path | None, level: int) -> Generator[FloatArray]:
    first = list(islice(parts, 2))
    if len(first) < 2:
        yield from (_cap(persons, rows, max_rows) for persons, rows in _emptied(first))
        return
    with TemporaryDirectory(prefix="sfumato-", dir=folder) as name:
        buckets = _spread(chain(_emptied(first), parts), Path(name), level)
        for path, is_one_hash in buckets.items():
            stored = _stored(path)
            if is_one_hash:  # no further bits would split these rows
                yield _cap(*_joined(list(stored)), max_rows)
            else:
                yield from _capped(_gathered(stored), max_rows, Path(name), level + 1)
            path.unlink()


def _spread(parts: Iterable[_Part], folder: Path, level: int) -> dict[Path, bool]:
    """Write every row to its person's file. Return the files, and whether all people in each share a hash."""
    seen: dict[Path, set[int]] = {}
    writers: dict[Path, pa.RecordBatchWriter] = {}
    with ExitStack() as files:
        for persons, rows in parts:
            hashes = spelling_hashes(persons.names)
            buckets = ((hashes >> np.uint64(BUCKET_BITS * level)) % np.uint64(N_BUCKETS)).astype(np.uint8)
            order = np.argsort(buckets[persons.codes], kind="stable")  # by radix
            ends = np.cumsum(np.bincount(buckets[persons.codes], minlength=N_BUCKETS))
            for bucket, mine in enumerate(np.split(order, ends[:-1])):
                if not len(mine):
                    continue
                path = folder / f"{bucket}.arrows"
                batch = _batch(persons.names.take(pa.array(persons.codes[mine])), rows[mine])
                if path not in writers:
                    file = files.enter_context(pa.OSFile(str(path), "wb"))
                    writers[path] = files.enter_context(pa.ipc.new_stream(file, batch.schema))
                writers[path].write_batch(batch)
                own = hashes[buckets == bucket]
                seen.setdefault(path, set()).update((int(own.min()), int(own.max())))
    return {path: len(hashes) == 1 for path, hashes in seen.items()}


def _batch(names: pa.Array, rows: FloatArray) -> pa.RecordBatch:
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    return pa.record_batch([names, values], ["person", "row"])


def _stored(path: Path) -> Iterator[_Part]:
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as batches:
        for batch in batches:
            rows = batch["row"].flatten().to_numpy().reshape(len(batch), -1)
            yield _persons(batch["person"]), rows


def _emptied(held: list[_T]) -> Iterator[_T]:
    """Yield the items of a list and drop each one."""
    while held:
        yield held.pop()


def _mapped(blocks: Iterable[FloatArray], n_features: int, folder: Path | None) -> FloatArray:
    # An unnamed file: nobody else can open it, and it disappears however this process ends.
    with TemporaryFile(dir=folder) as file:
        n_rows = 0
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
            n_rows += len(block)
        file.flush()
        return np.memmap(file, dtype=np.float64, mode="r", shape=(n_rows, n_features))


@numba.njit(cache=True, nogil=True)
def _mix(state: np.uint64, word: np.uint64) -> np.uint64:
    # SplitMix64 (Steele, Lea and Flood 2014) with Stafford's constants: a bijection of the word.
    bits = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def _hash_spellings(offsets: IntArray, text: NDArray[np.uint8], out: HashArray) -> None:
    for i in range(out.shape[0]):
        state = np.uint64(0)
        for place in range(offsets[i], offsets[i + 1]):
            state = _mix(state, np.uint64(text[place]))
        out[i] = state


@numba.njit(cache=True, nogil=True)
def _fill_order(codes: IntArray, places: IntArray, order: IntArray) -> None:
    """List rows person by person, starting at each person's place. A place of -1 leaves a person out."""
    for i in range(codes.shape[0]):
        place = places[codes[i]]
        if place >= 0:
            order[place] = i
            places[codes[i]] = place + 1


@numba.njit(cache=True, nogil=True)
def _sort_rows(rows: FloatArray, order: IntArray, is_copy: NDArray[np.bool_]) -> None:
    """Sort rows into `order` by value, column by column, and mark rows that equal the one before."""
    n_rows = rows.shape[0]
    for i in range(n_rows):
        order[i], is_copy[i] = i, i > 0
    for j in range(rows.shape[1]):
        first = 0
        for last in range(1, n_rows + 1):
            if last < n_rows and is_copy[last]:
                continue
            if last - first > 1:
                run = order[first:last].copy()
                # Not quicksort: no input can make this sort slow.
                order[first:last] = run[np.argsort(rows[:, j][run], kind="mergesort")]
            first = last
        for i in range(1, n_rows):
            is_copy[i] = is_copy[i] and rows[order[i], j] == rows[order[i - 1], j]


@numba.njit(cache=True, nogil=True)
def _keep_smallest(
    rows: FloatArray,
    order: IntArray,
    borders: IntArray,
    seeds: HashArray,
    max_rows: int,
    keep: NDArray[np.bool_],
) -> None:
    """Mark each person's rows of smallest hash. Ties are broken by value."""
    for person in range(seeds.shape[0]):
        mine = order[borders[person] : borders[person + 1]]
        own = np.empty((mine.shape[0], rows.shape[1]))
        for i in range(own.shape[0]):
            for j in range(own.shape[1]):
                own[i, j] = rows[mine[i], j] + 0.0  # -0.0 becomes 0.0
        by_value, is_copy = np.empty(own.shape[0], dtype=np.int64), np.empty(own.shape[0], dtype=np.bool_)
        _sort_rows(own, by_value, is_copy)
        words, hashes = own.view(np.uint64), np.empty(own.shape[0], dtype=np.uint64)
        copies = np.int64(0)
        for i in range(own.shape[0]):
            copies = np.int64(copies + 1 if is_copy[i] else 0)
            state = seeds[person]
            for j in range(own.shape[1]):
                state = _mix(state, words[by_value[i], j])
            hashes[i] = _mix(state, np.uint64(copies))
        for i in np.argsort(hashes, kind="mergesort")[:max_rows]:
            keep[mine[by_value[i]]] = True
