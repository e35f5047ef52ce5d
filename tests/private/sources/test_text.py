"""Tables in text files: what counts as a record, who names the columns, and what folders say."""

import datetime
import io
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import scan_csv
from sfumato.curator.tables import open_table
from sfumato.domain import Unit
from sfumato.domain.text import TextFormat
from sfumato.errors import DataError, ParameterError
from sfumato.private import records
from sfumato.private.aggregates.counts import RowCount
from sfumato.private.reading import read_rows
from sfumato.private.records import decoded, split_records
from sfumato.private.sources import open_source

JANUARY = (datetime.date(2026, 1, 1), datetime.date(2026, 2, 1))


def write(tmp_path, content, name="rows.csv"):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path / name


def read(X, bounds):
    """Coordinates of the rows that are used."""
    table = open_table(X, bounds, Unit(), "drop")
    return [
        row
        for batch in table._rows.batches(table.columns)
        for row in read_rows(table.columns, batch).tolist()
    ]


def count(X, bounds, unit=None):
    return open_table(X, bounds, unit or Unit(), "drop")._open_engine().fold(RowCount()).tolist()


def values(content, n_columns=2):
    """The values of each record."""
    chunks = decoded(io.BytesIO(content).read, "utf-8")
    batches = split_records(chunks, TextFormat(), n_columns, range(n_columns or 3))
    return [row for columns, _ in batches for row in zip(*(c.to_pylist() for c in columns), strict=True)]


RECORDS = {
    b"a,b\nc,d\n": [("a", "b"), ("c", "d")],
    b"a,b\r\n\r\nc,d": [("a", "b"), ("c", "d")],
    b"a,b\rc,d\r": [("a", "b"), ("c", "d")],
    b'"a,b","c\nd"\n': [("a,b", "c\nd")],
    b'"a ""b""", " c "\n': [('a "b"', " c ")],
    b'  a , b\t\na"b,""\n': [("a", "b"), ('a"b', "")],
    b'"a"b,c\n': [("ab", "c")],
    b",\n": [("", "")],
    b"a\nb,c\nd,e,f\n": [(None, None), ("b", "c"), (None, None)],
    b"a\x00,\xff\n": [("a\0", "\ufffd")],
    b"\xef\xbb\xbfa,b\n\xef\xbb\xbfa,b\n": [("a", "b"), ("a", "b")],
    b"": [],
    b"\n\n": [],
    b'"never closed,b\nc,d\n': [(None, None)],
}


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 2**20])
@pytest.mark.parametrize("content", RECORDS, ids=repr)
def test_records(monkeypatch, content, n_bytes):
    """However the file is cut."""
    monkeypatch.setattr(records, "CHUNK_BYTES", n_bytes)
    assert values(content) == RECORDS[content]


def test_records_of_any_length_where_no_number_of_columns_is_declared():
    assert values(b"a\nb,c\nd,e,f,g\n", n_columns=None) == [
        ("a", None, None),
        ("b", "c", None),
        ("d", "e", "f"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "utf-32", "gbk", "cp1252"])
def test_encodings(tmp_path, encoding):
    path = write(tmp_path, "né,x\né,1\n".encode(encoding, "replace"))
    names = open_source(scan_csv(path, encoding=encoding)).names
    assert read(scan_csv(path, encoding=encoding), {names[0]: ["é"], "x": (0, 1)}) == [[1.0, 0.0, 1.0]]


@pytest.mark.parametrize("encoding", ["utf-16", "UTF-32"])
def test_without_a_header_the_order_of_bytes_is_declared(encoding):
    with pytest.raises(ParameterError, match="must say the order of bytes"):
        scan_csv("rows.csv", encoding=encoding, names=["a"])
    assert scan_csv("rows.csv", encoding=f"{encoding}-be", names=["a"]).format.names == ("a",)


@pytest.mark.parametrize(
    "encoding", ["utf-7", "iso2022_jp", "hz", "unicode_escape", "hex", "rot13", "nonsense", 7]
)
def test_encodings_in_which_lines_are_not_read_for_themselves(encoding):
    with pytest.raises(ParameterError, match="`encoding` must be one that Python knows and"):
        scan_csv("rows.csv", encoding=encoding)


@pytest.mark.parametrize("form", ["%Y %Y", "%Q", "%"])
def test_formats_of_dates_that_python_does_not_know(form):
    with pytest.raises(ParameterError, match="`dates` must be formats"):
        scan_csv("rows.csv", dates=form)


def test_formats_of_dates(tmp_path):
    path = write(tmp_path, "day\n2.1.2026\n2026-01-03\n01/04/26\n")
    table = scan_csv(path, dates=["%d.%m.%Y", "%m/%d/%y"])
    assert [day for (day,) in read(table, {"day": JANUARY})] == [20455.0, 20457.0]


class TestNames:
    """The names, and how many there are, are declared or in the header. No row tells them."""

    RAGGED = "1,2,3\n1,2\n1,2\n"

    def test_no_first_row_tells_the_number_of_columns(self, tmp_path):
        whole = write(tmp_path, self.RAGGED)
        rest = write(tmp_path, "1,2\n1,2\n", "rest.csv")
        for options in ({"names": ["a", "b"]}, {"header": False}):
            name = "a" if "names" in options else "column1"
            counts = [count(scan_csv(path, **options), {name: (0, 1)}) for path in (whole, rest)]
            assert counts in ([[2], [2]], [[3], [2]])

    def test_a_short_first_row(self, tmp_path):
        path = write(tmp_path, "1\n1,2\n")
        assert read(scan_csv(path, header=False), {"column2": (0, 9)}) == [[2.0]]
        assert read(scan_csv(path, names=["a", "b"]), {"a": (0, 9)}) == [[1.0]]

    def test_no_rows(self, tmp_path):
        path = write(tmp_path, "")
        assert count(scan_csv(path, names=["a", "b"]), {"a": (0, 9)}) == [0]
        assert count(scan_csv(path, header=False), {"column2": (0, 9)}) == [0]

    def test_without_a_header_columns_must_be_chosen(self, tmp_path):
        path = write(tmp_path, self.RAGGED)
        with pytest.raises(ParameterError, match="`bounds` must name columns of a table without a header"):
            count(scan_csv(path, header=False), (0, 1))
        with pytest.raises(ParameterError, match=r"column1, .*\.\.\.$"):
            count(scan_csv(path, header=False), {"a": (0, 1)})

    def test_a_header_that_is_replaced(self, tmp_path):
        path = write(tmp_path, "x,y\n1,2\n")
        assert read(scan_csv(path, header=True, names=["a", "b"]), {"b": (0, 9)}) == [[2.0]]
        with pytest.raises(ParameterError, match="`names` must name all 2 columns"):
            count(scan_csv(path, header=True, names=["a"]), {"a": (0, 9)})

    def test_no_header(self, tmp_path):
        with pytest.raises(DataError, match="must have a first line"):
            count(write(tmp_path, ""), {"a": (0, 1)})

    def test_names_in_another_encoding(self, tmp_path):
        with pytest.raises(DataError, match="encoding='latin-1'"):
            _ = open_source(write(tmp_path, b"\x80ast,north\n1,2\n")).names

    def test_names_twice(self, tmp_path):
        with pytest.raises(DataError, match="must be distinct"):
            _ = open_source(write(tmp_path, "a,a\n1,2\n")).names


def save(folder, suffix):
    folder.mkdir(parents=True)
    if suffix == "csv":
        write(folder, "x\n1\n2\n", "part.csv")
    else:
        pq.write_table(pa.table({"x": [1.0, 2.0]}), folder / "part.parquet")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
class TestFolders:
    """What the names of folders say is text, whatever is in the files."""

    @pytest.mark.parametrize("person", ["%FF", "a=b", "%2F..", "é", "%00", "007"])
    def test_persons(self, tmp_path, suffix, person):
        save(tmp_path / "table" / "who=7", suffix)
        save(tmp_path / "table" / f"who={person}", suffix)
        assert count(tmp_path / "table", {"x": (0, 9)}, Unit("who", 1)) == [2]

    @pytest.mark.parametrize("person", ["", "__HIVE_DEFAULT_PARTITION__"])
    def test_nobody(self, tmp_path, suffix, person):
        save(tmp_path / "table" / "who=7", suffix)
        save(tmp_path / "table" / f"who={person}", suffix)
        assert count(tmp_path / "table", {"x": (0, 9)}, Unit("who", 1)) == [1]

    def test_only_what_folders_say(self, tmp_path, suffix):
        for year in ("2024", "soon"):
            save(tmp_path / "table" / f"year={year}", suffix)
        assert read(tmp_path / "table", {"year": (2000, 2030)}) == [[2024.0], [2024.0]]

    def test_a_column_in_files_and_folders(self, tmp_path, suffix):
        save(tmp_path / "table" / "x=1", suffix)
        with pytest.raises(DataError, match="'x' must be in the files or in the names of folders"):
            count(tmp_path / "table", {"x": (0, 9)})


def test_a_folder_whose_name_is_no_text(tmp_path):
    save(tmp_path / "table" / os.fsdecode(b"who=\xff\xfe"), "csv")
    with pytest.raises(DataError, match="must be in UTF-8") as error:
        count(tmp_path / "table", {"x": (0, 9)}, Unit("who", 1))
    assert "who=" not in str(error.value)
