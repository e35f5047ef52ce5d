"""Text becomes records and values by a public grammar, never by what other records hold.

A record ends at a line break outside quotes. Its values stand between delimiters. A value may be quoted; then
it may contain delimiters and line breaks, and a doubled quote stands for one. Lines without a character are
no records. A record with another number of values than there are columns has missing values only. Where the
number of columns is not declared, a record has the values that it has, and others are missing.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterator, Sequence

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.domain import IntArray
from sfumato.domain.text import TextFormat

Bytes = NDArray[np.uint8]

CHUNK_BYTES = 2**22  # less is slower: each batch takes some time of its own
_NEW_LINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_NO_BYTE = 255  # of UTF-8
_MARK = "\ufeff"
_SUPERSETS = ("utf-8", "ascii", "iso8859-1", "cp1252")  # encodings in which ASCII needs no decoding
_AT_EASE = (b"", 0)  # state of a decoder that holds nothing back


def decoded(read: Callable[[int], bytes], encoding: str, n_bytes: int | None = None) -> Iterator[bytes]:
    """Chunks of a file in UTF-8. What cannot be decoded is replaced by U+FFFD.

    Byte order marks are left out wherever they stand: which row comes first must not matter.
    """
    name = codecs.lookup(encoding).name
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    while chunk := read(n_bytes or CHUNK_BYTES):
        if name in _SUPERSETS and chunk.isascii() and decoder.getstate() == _AT_EASE:
            yield chunk
        else:
            yield decoder.decode(chunk).replace(_MARK, "").encode(errors="replace")
    yield decoder.decode(b"", final=True).encode(errors="replace")


def split_records(
    chunks: Iterator[bytes], text: TextFormat, n_columns: int | None, wanted: Sequence[int]
) -> Iterator[tuple[list[pa.Array], int]]:
    """Batches of records: the values of each wanted column, as text, and how many bytes they took.

    Parameters
    ----------
    chunks : iterator of bytes
        In UTF-8. Where it is cut makes no difference.
    text : TextFormat
    n_columns : int or None
        None if it is not declared: records may then have any number of values.
    wanted : sequence of int
        Numbers of the columns to return.

    Examples
    --------
    >>> chunks = iter([b'1,"a, b"\\n2,', b'c\\n3\\n'])
    >>> for columns, n_bytes in split_records(chunks, TextFormat(), 2, [0, 1]):
    ...     print(*(column.to_pylist() for column in columns), n_bytes)
    ['1', '2', None] ['a, b', 'c', None] 15
    """
    places = np.full(max(wanted, default=0) + 1 if n_columns is None else n_columns, -1, dtype=np.int64)
    places[list(wanted)] = np.arange(len(wanted))
    grammar = *_marks(text), places, n_columns is None
    rest, n_least = bytearray(), CHUNK_BYTES
    for chunk, is_last in _with_last(chunks):
        rest += chunk
        if len(rest) < n_least and not is_last:
            continue
        n_used = yield from _batches(np.frombuffer(rest, dtype=np.uint8), grammar, len(wanted), is_last)
        del rest[:n_used]
        n_least = max(CHUNK_BYTES, 2 * len(rest))  # a long record is not read again for every chunk


def first_record(chunks: Iterator[bytes], text: TextFormat) -> list[str] | None:
    """Values of the first record, or None if there is none."""
    rest, n_least = bytearray(), 0
    for chunk, is_last in _with_last(chunks):
        rest += chunk
        if len(rest) < n_least and not is_last:
            continue
        if (found := _first_values(bytes(rest), *_marks(text), is_last)) is not None:
            return found
        n_least = 2 * len(rest)
    return None


def _marks(text: TextFormat) -> tuple[int, int]:
    is_quote = text.quote.strip(" \t") != ""  # spaces around values do not count
    return ord(text.delimiter), ord(text.quote) if is_quote else _NO_BYTE


def _with_last(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each chunk, and whether it is the last."""
    held = next(chunks, b"")
    for chunk in chunks:
        yield held, False
        held = chunk
    yield held, True


def _batches(
    data: Bytes, grammar: tuple[int, int, IntArray, bool], n_wanted: int, is_last: bool
) -> Generator[tuple[list[pa.Array], int], None, int]:
    """Split all complete records, as many at a time as there is room for. Returns the bytes they take."""
    n_used, is_full, scale = 0, True, 4
    while is_full:
        left = data[n_used:]
        # Columns of very different width, or short records, fill their room early.
        most = min(len(left), scale * len(left) // max(1, n_wanted) + 64)
        n_most = len(left) // max(8, 2 * n_wanted) + 2**10
        characters = np.empty((n_wanted, most), dtype=np.uint8)
        offsets = np.empty((n_wanted, n_most + 1), dtype=np.int64)
        offsets[:, 0] = 0
        present = np.empty((n_wanted, n_most), dtype=np.bool_)
        marks = _find_marks(left, *grammar[:2])
        n, n_bytes, is_full = _split(left, marks, *grammar, is_last, characters, offsets, present)
        if n:
            columns = zip(characters, offsets[:, : n + 1], present[:, :n], strict=True)
            yield [_as_arrow(*column) for column in columns], n_bytes
        n_used += n_bytes
        scale = 4 if n else 2 * scale
    return n_used


def _as_arrow(characters: Bytes, offsets: IntArray, present: NDArray[np.bool_]) -> pa.Array:
    mask = None if present.all() else pa.array(present).buffers()[1]
    buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(characters)]
    return pa.Array.from_buffers(pa.large_string(), len(present), buffers)


def _first_values(record: bytes, delimiter: int, quote: int, is_last: bool) -> list[str] | None:
    """Values of the first record, or None if it goes on."""
    data, characters = np.frombuffer(record, dtype=np.uint8), np.empty(len(record), dtype=np.uint8)
    marks = _find_marks(data, delimiter, quote)
    mark = place = len(record) - len(record.lstrip(b"\r\n"))
    values, ended = [], place == len(record)
    while not ended:
        after = _end_of_value(data, marks, mark, place, delimiter, quote)
        stop = int(marks[after])
        end = _copy_value(data, place, stop, quote, after - mark, characters, 0)
        values.append(characters[:end].tobytes().decode(errors="replace"))
        ended = stop == len(record) or data[stop] != delimiter
        mark, place = after + 1, stop + 1
    return values if values and (is_last or place <= len(record)) else None


@numba.njit(cache=True, nogil=True)
def _find_marks(data: Bytes, delimiter: int, quote: int) -> IntArray:
    """Places of all delimiters, line breaks and quotes, and then the end of the data."""
    is_mark = np.empty(2**12, dtype=np.bool_)
    marks = np.empty(data.shape[0] + 1, dtype=np.int64)
    one, other, n_marks = np.uint8(delimiter), np.uint8(quote), np.uint64(0)  # without a sign: faster
    for first in range(0, data.shape[0], is_mark.shape[0]):
        block = data[first : first + is_mark.shape[0]]
        for i in range(block.shape[0]):  # many at a time
            byte = block[i]
            is_mark[i] = (byte == one) | (byte == other) | (byte == np.uint8(10)) | (byte == np.uint8(13))
        for i in range(block.shape[0]):
            marks[n_marks] = first + i
            n_marks += np.uint64(is_mark[i])
    marks[n_marks] = data.shape[0]
    return marks


@numba.njit(cache=True, nogil=True)
def _is_space(byte: int, delimiter: int) -> bool:
    return byte in (_SPACE, _TAB) and byte != delimiter


@numba.njit(cache=True, nogil=True, inline="always")
def _end_of_value(data: Bytes, marks: IntArray, mark: int, place: int, delimiter: int, quote: int) -> int:
    """The mark that ends a value: a delimiter, a line break or the end of the data."""
    n_bytes = data.shape[0]
    while place < n_bytes and _is_space(data[place], delimiter):
        place += 1
    in_quotes = marks[mark] == place and place < n_bytes and data[place] == quote
    mark += in_quotes
    while in_quotes:
        while marks[mark] < n_bytes and data[marks[mark]] != quote:
            mark += 1
        in_quotes = marks[mark] < n_bytes and marks[mark + 1] == marks[mark] + 1 < n_bytes
        in_quotes = in_quotes and data[marks[mark] + 1] == quote  # doubled
        mark += 2 if in_quotes else 0
    while marks[mark] < n_bytes and data[marks[mark]] == quote:
        mark += 1
    return mark


@numba.njit(cache=True, nogil=True)
def _copy_quoted(data: Bytes, start: int, stop: int, quote: int, out: Bytes, end: int) -> np.int64:
    """Copy what follows a quote up to the next, doubled ones as one, and then the rest as it is."""
    in_quotes = True
    while start < stop:
        if in_quotes and data[start] == quote:
            start += 1
            if start >= stop or data[start] != quote:
                in_quotes = False
                continue
        out[end] = data[start]
        start, end = start + 1, end + 1
    return np.int64(end)


@numba.njit(cache=True, nogil=True, inline="always")
def _copy_value(
    data: Bytes, start: int, stop: int, quote: int, n_marks: int, out: Bytes, end: int
) -> np.int64:
    """Copy a value with some marks in it, without quotes and spaces around it. Returns the copy's end."""
    while start < stop and (data[start] == _SPACE or data[start] == _TAB):
        start += 1
    while stop > start and (data[stop - 1] == _SPACE or data[stop - 1] == _TAB):
        stop -= 1
    if start < stop and data[start] == quote:
        if n_marks != 2 or data[stop - 1] != quote:
            return _copy_quoted(data, start + 1, stop, quote, out, end)
        start, stop = start + 1, stop - 1
    here, there = np.uint64(start), np.uint64(end)
    while here < np.uint64(stop):
        out[there] = data[here]
        here, there = here + np.uint64(1), there + np.uint64(1)
    return np.int64(there)


@numba.njit(cache=True, nogil=True)
def _leave_out(record: int, offsets: IntArray, present: NDArray[np.bool_]) -> None:
    """Let all values of a record be missing."""
    for j in range(offsets.shape[0]):
        offsets[j, record + 1], present[j, record] = offsets[j, record], False


@numba.njit(cache=True, nogil=True)
def _split(
    data: Bytes,
    marks: IntArray,
    delimiter: int,
    quote: int,
    places: IntArray,
    any_number: bool,
    is_last: bool,
    characters: Bytes,
    offsets: IntArray,
    present: NDArray[np.bool_],
) -> tuple[int, int, bool]:
    """Copy the wanted values of complete records.

    Returns the number of records, how many bytes they take, and whether there was no room for more.
    """
    n_records, start, mark, n_bytes, most = 0, 0, 0, data.shape[0], characters.shape[1]
    while start < n_bytes and n_records < present.shape[1]:
        if marks[mark] == start and data[start] != delimiter and data[start] != quote:  # an empty line
            start, mark = start + 1, mark + 1
            continue
        _leave_out(n_records, offsets, present)
        place, column, ended = start, 0, False
        while not ended:
            after = _end_of_value(data, marks, mark, place, delimiter, quote)
            stop = marks[after]
            j = places[column] if column < places.shape[0] else -1
            no_room = j >= 0 and stop - place > most - offsets[j, n_records]
            if no_room or (stop == n_bytes and not is_last):  # or the rest of the record follows
                return n_records, start, no_room
            if j >= 0:
                end = _copy_value(
                    data, place, stop, quote, after - mark, characters[j], offsets[j, n_records]
                )
                offsets[j, n_records + 1], present[j, n_records] = end, True
            ended = stop == n_bytes or data[stop] != delimiter
            column, place, mark = column + 1, stop + 1, after + (stop < n_bytes)
        if column != places.shape[0] and not any_number:
            _leave_out(n_records, offsets, present)
        n_records += 1
        start = min(place, n_bytes)
    return n_records, start, start < n_bytes
