"""Records and values against Python's csv module, and against an obvious reader for text of any kind."""

import csv
import io
import itertools

import numpy as np
import pytest

from sfumato.domain.text import TextFormat
from sfumato.private import records
from sfumato.private.records import decoded, first_record, split_records

DIALECTS = [(d, q) for d in ",;\t|:" for q in "\"'"]
CHARACTERS = ["a", "b", " ", "\t", "\n", "\r", ",", ";", '"', '""', "'", "é", "0", "."]


def chunked(data: bytes, sizes) -> list[bytes]:
    stops = itertools.accumulate(itertools.chain(sizes, itertools.repeat(1)))
    borders = [0, *itertools.takewhile(lambda stop: stop < len(data), stops), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(borders)]


def rows_of(chunks, text: TextFormat, n_columns: int | None, wanted: list[int]) -> list[tuple]:
    batches = [columns for columns, _ in split_records(iter(chunks), text, n_columns, wanted)]
    for columns in batches:
        for column in columns:
            column.validate(full=True)
    return [row for columns in batches for row in zip(*(c.to_pylist() for c in columns), strict=True)]


def plain_records(data: str, text: TextFormat) -> list[list[str]]:
    """The obvious twin: one character at a time."""
    found, place = [], 0
    while place < len(data):
        if data[place] in "\r\n":
            place += 1
            continue
        record, ended = [], False
        while not ended:
            place, value = plain_value(data, place, text)
            record.append(value)
            ended = place == len(data) or data[place] != text.delimiter
            place += 1
        found.append(record)
    return found


def plain_value(data: str, place: int, text: TextFormat) -> tuple[int, str]:
    spaces = "".join({" ", "\t"} - {text.delimiter})
    while place < len(data) and data[place] in spaces:
        place += 1
    kept, value = "", ""
    if text.quote and data[place : place + 1] == text.quote:
        place += 1
        while place < len(data):
            if data[place : place + 2] == 2 * text.quote:
                place += 1
            elif data[place] == text.quote:
                kept, value, place = value, "", place + 1
                break
            value, place = value + data[place], place + 1
    while place < len(data) and data[place] not in "\r\n" + text.delimiter:
        value, place = value + data[place], place + 1
    return place, kept + value.rstrip(" \t")


def expected(data: str, text: TextFormat, n_columns: int | None, wanted: list[int]) -> list[tuple]:
    rows = []
    for record in plain_records(data, text):
        if n_columns is not None and len(record) != n_columns:
            record = []
        rows.append(tuple(record[j] if j < len(record) else None for j in wanted))
    return rows


@pytest.mark.parametrize(("delimiter", "quote"), DIALECTS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_well_formed_tables_read_as_by_the_csv_module(delimiter, quote, end):
    rng = np.random.default_rng(0)
    letters = ["a", "7", ".", "é", "-", "\n", delimiter, quote, " b "]
    table = [
        ["".join(rng.choice(letters, rng.integers(1, 6))).strip() or "x" for _ in range(4)] for _ in range(60)
    ]
    out = io.StringIO(newline="")
    how = csv.QUOTE_ALL if end == "\r" else csv.QUOTE_MINIMAL
    csv.writer(out, delimiter=delimiter, quotechar=quote, lineterminator=end, quoting=how).writerows(table)
    read = list(csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=delimiter, quotechar=quote))
    text = TextFormat(delimiter=delimiter, quote=quote)
    found = rows_of([out.getvalue().encode()], text, 4, [0, 1, 2, 3])
    assert found == [tuple(row) for row in read] == [tuple(row) for row in table]


@pytest.mark.parametrize("seed", range(4))
def test_text_of_any_kind_reads_as_by_the_obvious_reader(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(records, "CHUNK_BYTES", 7)
    for _ in range(250):
        data = "".join(rng.choice(CHARACTERS, rng.integers(0, 40)))
        delimiter, quote = str(rng.choice([",", ";", "\t", " "])), str(rng.choice(['"', "'", ""]))
        text, n_columns = TextFormat(delimiter=delimiter, quote=quote), int(rng.integers(1, 4))
        wanted = rng.permutation(n_columns)[: rng.integers(1, n_columns + 1)].tolist()
        chunks = chunked(data.encode(), rng.integers(1, 12, 40))
        for declared in (n_columns, None):
            assert rows_of(chunks, text, declared, wanted) == expected(data, text, declared, wanted)
        first = plain_records(data, text)[:1]
        assert first_record(iter(chunks), text) == (first[0] if first else None)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", ',"never closed\n1,2\n'])
def test_where_the_text_is_cut_makes_no_difference(ending, monkeypatch):
    monkeypatch.setattr(records, "CHUNK_BYTES", 1)
    data = ('1, "a ""b"", c\r\n" ,x\r\n\r\n2\n,,\n"", \t"é" z,3' + ending).encode()
    whole = rows_of([data], TextFormat(), 3, [2, 0, 1])
    for cut in range(len(data) + 1):
        assert rows_of([data[:cut], data[cut:]], TextFormat(), 3, [2, 0, 1]) == whole


def test_records_of_another_length_are_missing_and_empty_lines_are_no_records():
    data = b"1,2\n\n\r\n3\n4,5,6\n,\n \n7,8"
    both = (None, None)
    assert rows_of([data], TextFormat(), 2, [0, 1]) == [("1", "2"), both, both, ("", ""), both, ("7", "8")]
    unknown = [("1", "2"), ("3", None), ("4", "5"), ("", ""), ("", None), ("7", "8")]
    assert rows_of([data], TextFormat(), None, [0, 1]) == unknown


def test_an_unclosed_quote_takes_the_rest():
    assert rows_of([b'1,2\n3,"4\n5,6\n'], TextFormat(), 2, [0, 1]) == [("1", "2"), ("3", "4\n5,6\n")]


def test_a_record_may_be_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr(records, "CHUNK_BYTES", 100)
    long = "x" * 5000
    data = f'1,"{long}"\n2,b\n'.encode()
    assert rows_of(chunked(data, [100] * 60), TextFormat(), 2, [1, 0]) == [(long, "1"), ("b", "2")]
    assert first_record(iter(chunked(data, [100] * 60)), TextFormat()) == ["1", long]


def test_many_columns_of_very_different_width(monkeypatch):
    monkeypatch.setattr(records, "CHUNK_BYTES", 2**12)
    rows = [tuple("y" * (700 if j == i % 50 else j % 3) for j in range(50)) for i in range(40)]
    data = "".join(",".join(row) + "\n" for row in rows).encode()
    assert rows_of(chunked(data, [1000] * 50), TextFormat(), 50, list(range(50))) == rows


def test_bytes_that_records_took_add_up():
    data = b"\n1,2\n\n3,4\r\n5,6"
    assert sum(n for _, n in split_records(iter([data]), TextFormat(), 2, [0])) == len(data)


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "iso2022_jp", "utf-7"],
)
def test_every_encoding_becomes_utf8(encoding, n_bytes):
    text = "name,ort\nAda,Zürich\nÉva,x\n" if encoding != "iso2022_jp" else "name\n東京\nplain\n"
    stream = io.BytesIO(text.encode(encoding))
    assert b"".join(decoded(stream.read, encoding, n_bytes)).decode().lstrip("\ufeff") == text


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 4, 100])
def test_byte_order_marks_are_left_out_wherever_they_are(n_bytes):
    """Were it for the first only, a row would be read otherwise once it is the first."""
    stream = io.BytesIO(b"\xef\xbb\xbfa,b\n\xef\xbb\xbf1,2\n")
    assert b"".join(decoded(stream.read, "utf-8", n_bytes)) == b"a,b\n1,2\n"


@pytest.mark.parametrize("n_bytes", [1, 2, 100])
def test_bytes_that_cannot_be_decoded_become_u_fffd_and_change_nothing_else(n_bytes):
    stream = io.BytesIO(b"1,Z\xfcrich\n2,\xc3\n3,\xc3")
    assert b"".join(decoded(stream.read, "utf-8", n_bytes)).decode() == "1,Z\ufffdrich\n2,\ufffd\n3,\ufffd"


def test_kernels_without_compilation(monkeypatch):
    for name in ("_find_marks", "_end_of_value", "_copy_quoted", "_copy_value", "_leave_out", "_split"):
        monkeypatch.setattr(records, name, getattr(records, name).py_func)
    data = '1,"a ""b"", c"\n2, d \n3\n'
    assert rows_of([data.encode()], TextFormat(), 2, [0, 1]) == expected(data, TextFormat(), 2, [0, 1])
