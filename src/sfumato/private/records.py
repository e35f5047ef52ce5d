"""Text becomes records and values by a public grammar, never by what other records hold.

A record ends at a line break outside quotes. Its values stand between delimiters. A value may be quoted; then
it may contain delimiters and line breaks, and a doubled quote stands for one. Lines without a character are
no records. A record with another number of values than there are columns has missing values only. Where the
number of columns is not declared, a record has the values that it has, and others are missing.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.domain import IntArray
from sfumato.domain.text import TextFormat

Bytes = NDArray[np.uint8]

CHUNK_BYTES = 2**20
_BOM = codecs.BOM_UTF8
_NEW_LINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9


def decoded(read: Callable[[int], bytes], encoding: str, n_bytes: int | None = None) -> Iterator[bytes]:
    """Chunks of a file in UTF-8, without a byte order mark. What cannot be decoded is replaced by U+FFFD."""
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    decoder = codecs.getincrementaldecoder("utf-8-sig" if is_utf8 else encoding)(errors="replace")
    while chunk := read(n_bytes or CHUNK_BYTES):
        yield decoder.decode(chunk).encode(errors="replace")
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
    marks = ord(text.delimiter), ord(text.quote) if text.quote else -1
    places = np.full(max(wanted, default=0) + 1 if n_columns is None else n_columns, -1, dtype=np.int64)
    places[list(wanted)] = np.arange(len(wanted))
    rest = b""
    for chunk, is_last in _with_last(chunks):
        rest += chunk
        if len(rest) < CHUNK_BYTES and not is_last:
            continue  # a record may be longer than a chunk: do not start again for every small one
        data = np.frombuffer(rest, dtype=np.uint8)
        n_most = int(np.count_nonzero((data == _NEW_LINE) | (data == _RETURN))) + 1
        values = np.full((len(wanted), n_most, 2), -1, dtype=np.int64)
        n_records, n_bytes = _find_values(data, *marks, places, n_columns is None, is_last, values)
        if n_records:
            yield [_as_arrow(data, values[j, :n_records], marks[1]) for j in range(len(wanted))], n_bytes
        rest = rest[n_bytes:]


def first_record(chunks: Iterator[bytes], text: TextFormat) -> list[str] | None:
    """Values of the first record, or None if there is none."""
    marks = ord(text.delimiter), ord(text.quote) if text.quote else -1
    rest = b""
    for chunk, is_last in _with_last(chunks):
        rest += chunk
        data = np.frombuffer(rest, dtype=np.uint8)
        n_most = int(np.count_nonzero(data == marks[0])) + 1
        values = np.empty((n_most, 1, 2), dtype=np.int64)
        n_values = _first_values(data, *marks, is_last, values)
        if n_values:
            return [str(_as_arrow(data, values[j], marks[1])[0]) for j in range(n_values)]
    return None


def _with_last(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each chunk, and whether it is the last."""
    held = next(chunks, b"")
    for chunk in chunks:
        yield held, False
        held = chunk
    yield held, True


def _as_arrow(data: Bytes, values: IntArray, quote: int) -> pa.Array:
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(np.maximum(values[:, 1] - values[:, 0], 0), out=offsets[1:])
    characters = np.empty(offsets[-1], dtype=np.uint8)
    present = np.empty(len(values), dtype=np.bool_)
    _copy_values(data, values, quote, offsets, characters, present)
    mask = None if present.all() else pa.array(present).buffers()[1]
    buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(characters)]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers)


@numba.njit(cache=True, nogil=True)
def _is_space(byte: int, delimiter: int) -> bool:
    return byte in (_SPACE, _TAB) and byte != delimiter


@numba.njit(cache=True, nogil=True)
def _end_of_value(data: Bytes, start: int, delimiter: int, quote: int) -> int:
    """Place of the delimiter or line break after a value, or the end of the data."""
    place, n_bytes = start, data.shape[0]
    while place < n_bytes and _is_space(data[place], delimiter):
        place += 1
    if place < n_bytes and data[place] == quote:
        place += 1
        while place < n_bytes:
            if data[place] != quote:
                place += 1
            elif place + 1 < n_bytes and data[place + 1] == quote:
                place += 2
            else:
                place += 1
                break
    while place < n_bytes and not (
        data[place] == delimiter or data[place] == _NEW_LINE or data[place] == _RETURN
    ):
        place += 1
    return place


@numba.njit(cache=True, nogil=True)
def _find_values(
    data: Bytes,
    delimiter: int,
    quote: int,
    places: IntArray,
    any_number: bool,
    is_last: bool,
    out: IntArray,
) -> tuple[int, int]:
    """Find where the wanted values of all complete records start and stop; -1 if they are missing, as before.

    Returns the numbers of records and of bytes used.
    """
    n_records, start, n_bytes, n_columns = 0, 0, data.shape[0], places.shape[0]
    while start < n_bytes:
        if data[start] == _NEW_LINE or data[start] == _RETURN:
            start += 1
            continue
        place, column, ended = start, 0, False
        while not ended:
            stop = _end_of_value(data, place, delimiter, quote)
            ended = stop == n_bytes or data[stop] != delimiter
            if stop == n_bytes and not is_last:  # the rest of the record follows
                return n_records, start
            if column < n_columns and places[column] >= 0:
                out[places[column], n_records, 0] = place
                out[places[column], n_records, 1] = stop
            column += 1
            place = stop + 1
        if column != n_columns and not any_number:
            out[:, n_records, :] = -1
        n_records += 1
        start = min(place, n_bytes)
    return n_records, start


@numba.njit(cache=True, nogil=True)
def _first_values(data: Bytes, delimiter: int, quote: int, is_last: bool, out: IntArray) -> int:
    """Find where the values of the first record start and stop. Returns their number, or 0 if it goes on."""
    start, n_bytes = 0, data.shape[0]
    while start < n_bytes and (data[start] == _NEW_LINE or data[start] == _RETURN):
        start += 1
    column, ended = 0, start == n_bytes
    while not ended:
        stop = _end_of_value(data, start, delimiter, quote)
        if stop == n_bytes and not is_last:
            return 0
        ended = stop == n_bytes or data[stop] != delimiter
        out[column, 0, 0], out[column, 0, 1] = start, stop
        column += 1
        start = stop + 1
    return column


@numba.njit(cache=True, nogil=True)
def _copy_values(
    data: Bytes,
    values: IntArray,
    quote: int,
    offsets: IntArray,
    characters: Bytes,
    present: NDArray[np.bool_],
) -> None:
    """Copy values without the spaces around them and without their quotes."""
    end = 0
    for i in range(values.shape[0]):
        start, stop = values[i, 0], values[i, 1]
        present[i] = start >= 0
        while start < stop and (data[start] == _SPACE or data[start] == _TAB):
            start += 1
        while stop > start and (data[stop - 1] == _SPACE or data[stop - 1] == _TAB):
            stop -= 1
        in_quotes = start < stop and data[start] == quote
        if in_quotes:
            start += 1
        while start < stop:
            if in_quotes and data[start] == quote:
                start += 1
                if start >= stop or data[start] != quote:
                    in_quotes = False
                    continue
            characters[end] = data[start]
            end += 1
            start += 1
        offsets[i + 1] = end
