"""Random tables of mixed kinds with hostile values, and the media that hold them."""

import datetime
import gzip
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote as percent
from zlib import crc32

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq

import sfumato

words = str.split

NAMES = ("who", "x", "y", "day", "kind")
DAYS = (datetime.date(2020, 1, 1), datetime.date(2030, 1, 1))
NOON = datetime.datetime(2026, 1, 2, 12, 0, 0, 123456)
EAST = datetime.timezone(datetime.timedelta(hours=14))
MARKS = ["a,b", "a;b", "a\tb", "a|b", 'a"b', '"', '""', "'", "a'b", "\\", '\\"', "\\N", "#", "a\nb", "a\r\nb"]
ODD = ["\r", "\n", "\0", "\x1a", "\x85", "\u2028", "\ufeff", "\ufffd", "\udcff", "\ud800", "é", "e\u0301"]
HOSTILE = [*MARKS, *ODD, *words("日本 =1+1 a=b %FF ../.. __HIVE_DEFAULT_PARTITION__"), " x ", "\t", "x" * 70]
NUMBERS = words("1 1.0 01 +1 -1 1e3 1,000 1,2,3 0.1 .5 5. -0 1e - 0x10 1_0 ½ 1e22 1e23 1e400 1e-320 inf -inf")
NUMBERS += words("nan NA text TRUE true False 9007199254740993 12345678901234567890 0.12345678901234567")
NUMBERS += [" 7 ", "", "9" * 400]
DATES = words("2026-01-02 2026-01-02T03:04 02.01.2026 1/2/26 20260102 2026-02-30 2026-W01-5 NaT today 1e3")
DATES += ["2026-01-02 03:04:05.678901+02:00", "0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59", ""]
KINDS = [*words("1 A1 NA True TRUE false 1.0 01 0.5 a nan Unknown"), " 1", ""]
WHO = [*words("7 007 7.0 +7 A017 1e3 9007199254740992 9007199254740993 ada Ada NA"), ""]
LEVELS = [["1"], ["1", "A1", "NA"], ["True"], [True, False], [1, 2], [0.5, 1.0], ["a", ""]]

NO_VALUES = [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"), Decimal("sNaN")]
NO_VALUES += [b"1", [1], (), {}, object(), 1 + 2j, np.array([1, 2])]
NUMBER_OBJECTS = [1, 1.0, True, 2**53 + 1, 10**400, -(10**30), 0.1, float("inf"), Fraction(1, 3), NOON, "0.1"]
NUMBER_OBJECTS += [np.float32(0.1), np.int8(1), np.uint64(2**63), np.True_, Decimal("0.1"), Decimal("1e400")]
DAY_OBJECTS = [NOON, NOON.date(), NOON.replace(tzinfo=EAST), pd.Timestamp(NOON), pd.Timestamp(1, unit="ns")]
DAY_OBJECTS += [np.datetime64(NOON), np.datetime64("2026"), np.datetime64(2**62, "Y"), 5, "2026-01-02"]
DAY_OBJECTS += [datetime.date.min, datetime.datetime.max, datetime.datetime.max.replace(tzinfo=EAST)]
KIND_OBJECTS = [1, 1.0, True, False, Decimal(1), np.int64(1), np.True_, 0.5, NOON.date(), "1", "A1", "True"]
WHO_OBJECTS = [
    7,
    "7",
    7.0,
    True,
    Decimal(7),
    Decimal("0.5"),
    np.int64(7),
    np.uint64(2**63),
    10**30,
    10**15,
    0.5,
]
DISTINCT = [7, 8, 0.5, Decimal("0.25"), NOON.date(), None]  # none equals another, or a text

INTEGERS = [0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63), None]
FLOATS = [0.0, -0.0, 1.0, 0.1, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), None]
TIMES = [NOON.replace(microsecond=0), datetime.datetime(1970, 1, 1), datetime.datetime(2025, 7, 1, 3), None]
TEXTS = [*KINDS, *(text for text in HOSTILE if text.isprintable()), "a\nb", None]
# The types of each column, with values and, for categories, levels.
TYPES = {
    "number": [
        (pa.float64(), FLOATS),
        (pa.float32(), [0.5, -0.0, float("nan"), float("inf"), None]),
        (pa.int64(), INTEGERS),
        (pa.uint64(), [0, 1, 2**64 - 1, None]),
        (pa.int8(), [0, 1, -128, None]),
        (pa.bool_(), [True, False, None]),
        (pa.decimal128(38, 10), [Decimal("0.1"), Decimal("1e20"), Decimal(-1), None]),
    ],
    "day": [
        (pa.timestamp("s"), TIMES),
        (pa.timestamp("us", tz="UTC"), TIMES),
        (pa.timestamp("ns"), TIMES),
        (pa.date32(), [NOON.date(), datetime.date.min, None]),
        (pa.string(), [*DATES, None]),
    ],
    "kind": [
        (pa.string(), TEXTS, ["1", "A1"]),
        (pa.large_string(), TEXTS, ["1", "NA"]),
        (pa.dictionary(pa.int32(), pa.string()), TEXTS, ["a"]),
        (pa.int64(), INTEGERS, [1, 7]),
        (pa.float64(), FLOATS, [0.5]),
        (pa.bool_(), [True, False, None], [True, False]),
    ],
    "who": [
        (pa.string(), [*WHO, *TEXTS]),
        (pa.int64(), INTEGERS),
        (pa.uint64(), [0, 7, 2**64 - 1, None]),
        (pa.dictionary(pa.int32(), pa.string()), [*WHO, *TEXTS]),
    ],
}


@dataclass(frozen=True)
class Medium:
    """Something that holds a table: which values it can hold, and how it is written."""

    pools: dict[str, list[Any]]
    write: Callable[[list[tuple], Path], Any]
    levels: list[Any]


def draw_rows(rng, medium, n_most=12):
    """Rows of a few people, most of them with values that the column is made for."""
    people = [rng.choice(medium.pools["who"]) for _ in range(rng.randint(1, 4))]
    n_rows = rng.randint(1, n_most)
    return [
        (rng.choice(people), *(rng.choice(medium.pools[name]) for name in NAMES[1:])) for _ in range(n_rows)
    ]


def draw_medium(rng, kind):
    """A medium of this kind with random options."""
    return MEDIA[kind](rng)


def _fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _text_pools(decimal, thousands):
    marks = str.maketrans({".": decimal, ",": thousands or ","})
    numbers = [number.translate(marks) for number in NUMBERS] * 2 + HOSTILE
    kinds = {"day": DATES * 3 + HOSTILE, "kind": KINDS * 3 + HOSTILE, "who": WHO * 3 + HOSTILE}
    return {"x": numbers, "y": numbers, **kinds}


def draw_text(rng):
    """Text files in a random dialect: one file or several, compressed or not, with a header or names."""
    decimal, thousands = rng.choice([(".", ""), (".", ""), (",", "."), (".", ","), (",", " "), (".", "'")])
    form = {
        "delimiter": rng.choice(",;\t|"),
        "decimal": decimal,
        "thousands": thousands,
        "quote": rng.choice(['"', '"', '"', "'", ""]),
        "encoding": rng.choice(
            ["utf-8", "utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le", "cp1252", "gbk"]
        ),
        "names": rng.choice([(), (), NAMES]),
        "dates": rng.choice([(), (), ("%d.%m.%Y",), ("%m/%d/%y", "%Y-%m-%d")]),
    }
    if form["names"] and form["encoding"] == "utf-16":
        form["encoding"] = "utf-16-le"  # without a header, a mark of the order of bytes is not enough
    if rng.random() < 0.2:
        form["missing_values"] = rng.choice([(), ("", "1"), ("NA", "7", "x")])
    style = {
        "line": rng.choice(["\n", "\n", "\r\n", "\r"]),
        "quote_all": rng.random() < 0.3,
        "ends": rng.random() < 0.8,
        "ragged": rng.choice([0, 0, 0.2]),
        "seed": rng.random(),
        "bom": rng.random() < 0.3,
    }
    n_files, packed = rng.choice([1, 1, 1, 3]), rng.random() < 0.1

    def write(rows, folder):
        _fresh(folder)
        for i in range(n_files):
            content = written(rows[i::n_files], NAMES, form, style)
            (folder / f"part-{i}.csv{'.gz' * packed}").write_bytes(
                gzip.compress(content) if packed else content
            )
        return sfumato.scan_csv(folder if n_files > 1 else next(folder.iterdir()), **form)

    return Medium(_text_pools(decimal, thousands), write, rng.choice(LEVELS))


def written(rows, names, form, style):
    """A text file. A row is written by its own cells alone."""
    lines = [] if form["names"] else [[str(name) for name in names]]
    for row in rows:
        cells = list(row)
        odd = crc32(repr((style["seed"], row)).encode()) / 2**32
        if odd < style["ragged"]:
            cells = cells[:-1] if odd < style["ragged"] / 2 else [*cells, "more"]
        lines.append(cells)
    delimiter, line = (_encoded(mark, form["encoding"]) for mark in (form["delimiter"], style["line"]))
    found = line.join(delimiter.join(_cell(cell, form, style) for cell in cells) for cells in lines)
    marks = {"utf-8": b"\xef\xbb\xbf" * style["bom"], "utf-8-sig": b"\xef\xbb\xbf", "utf-16": b"\xff\xfe"}
    return marks.get(form["encoding"], b"") + found + line * (style["ends"] and bool(lines))


def _cell(cell, form, style):
    quote = form["quote"]
    if not quote:
        cell = cell.translate(dict.fromkeys(map(ord, "\r\n" + form["delimiter"]), " "))
    elif style["quote_all"] or any(mark in cell for mark in ("\r", "\n", form["delimiter"], quote)):
        cell = quote + cell.replace(quote, 2 * quote) + quote
    return _encoded(cell, form["encoding"])


def _encoded(text, encoding):
    plain = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(encoding, encoding)
    for errors in ("surrogateescape", "surrogatepass", "replace"):  # bytes that are no text, if possible
        try:
            return text.encode(plain, errors)
        except UnicodeError:
            pass
    raise AssertionError


def draw_text_folders(rng):
    """Folders whose names hold the person or the category, of text files."""
    form = {"names": (), "delimiter": ",", "quote": '"', "encoding": "utf-8"}
    style = {"line": "\n", "quote_all": False, "ends": True, "ragged": 0, "seed": 0, "bom": False}

    def save(rows, names, file):
        file.with_suffix(".csv").write_bytes(written(rows, names, form, style))

    return Medium(_text_pools(".", ""), _folder_writer(rng, save), rng.choice(LEVELS))


def _folder_writer(rng, save):
    column = rng.choice(["who", "who", "kind"])
    place = NAMES.index(column)

    def write(rows, folder):
        _fresh(folder)
        groups = {"nobody": []}  # a folder without files would be no table
        for row in rows:
            groups.setdefault(_folder_name(row[place]), []).append(row)
        for name, own in groups.items():
            (folder / f"{column}={name}").mkdir()
            rest = [row[:place] + row[place + 1 :] for row in own]
            save(rest, NAMES[:place] + NAMES[place + 1 :], folder / f"{column}={name}" / "part")
        return folder

    return write


def _folder_name(value):
    return percent(_encoded("" if value is None else str(value), "utf-8"), safe="")


def _typed(rng):
    """Types and values of the columns, and levels of the category."""
    kinds = {"who": "who", "x": "number", "y": "number", "day": "day", "kind": "kind"}
    chosen = {name: rng.choice(TYPES[kind]) for name, kind in kinds.items()}
    pools = {name: choice[1] for name, choice in chosen.items()}
    return pa.schema([(name, choice[0]) for name, choice in chosen.items()]), pools, chosen["kind"][2]


def _arrow(rows, schema):
    names = schema.names
    return pa.table(
        [pa.array([row[j] for row in rows], schema.field(j).type) for j in range(len(names))], schema
    )


def draw_files(rng):
    """Parquet or Feather: one file or several, in groups of a few rows; or a dataset of the user."""
    schema, pools, levels = _typed(rng)
    suffix, n_files, n_group = (
        rng.choice(["parquet", "feather"]),
        rng.choice([1, 3]),
        rng.choice([1, 2, 1000]),
    )
    as_dataset = rng.random() < 0.1

    def write(rows, folder):
        _fresh(folder)
        for i in range(n_files):
            _save(_arrow(rows[i::n_files], schema), folder / f"part-{i}.{suffix}", n_group)
        return ds.dataset(folder, format=suffix) if as_dataset else folder

    return Medium(pools, write, levels)


def _save(table, path, n_group=1000):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=n_group)
    else:
        pyarrow.feather.write_feather(table, path, chunksize=n_group)


def draw_typed_folders(rng):
    """Folders whose names hold the person or the category, of typed files."""
    schema, pools, _ = _typed(rng)
    suffix = rng.choice([".parquet", ".feather"])

    def save(rows, names, file):
        _save(_arrow(rows, pa.schema([schema.field(name) for name in names])), file.with_suffix(suffix))

    writer = _folder_writer(rng, save)
    texts = [*WHO, *KINDS, *HOSTILE]
    pools = pools | {"who": texts, "kind": texts}
    schema = schema.set(0, pa.field("who", pa.string())).set(4, pa.field("kind", pa.string()))
    return Medium(
        {name: [_valid(v) for v in pool] for name, pool in pools.items()}, writer, rng.choice([["1", "A1"]])
    )


def _valid(value):
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def draw_arrow(rng):
    """Arrow tables in pieces, record batches, and data frames of polars, also lazy, made of them."""
    schema, pools, levels = _typed(rng)
    n_piece, form = rng.randint(1, 12), rng.choice(["table", "batch", "polars", "lazy", "pandas"])

    def write(rows, _):
        table = _arrow(rows, schema)
        if form == "batch":
            return pa.record_batch([column.combine_chunks() for column in table.columns], schema=schema)
        if form == "polars" or form == "lazy":
            frame = pl.from_arrow(table)
            return frame.lazy() if form == "lazy" else frame
        if form == "pandas":
            return table.to_pandas(types_mapper=pd.ArrowDtype)
        pieces = [table.slice(i, n_piece) for i in range(0, len(rows), n_piece)]
        return pa.concat_tables(pieces) if pieces else table

    return Medium(pools, write, levels)


def draw_spark(rng):
    """Arrow tables of types that Spark knows."""
    texts = [_valid(text) for text in [*KINDS, *WHO, *HOSTILE]]
    numbers = [(pa.float64(), FLOATS), (pa.int64(), INTEGERS)]
    days = [(pa.timestamp("us", tz="UTC"), TIMES), (pa.date32(), [NOON.date(), None]), (pa.string(), DATES)]
    chosen = [rng.choice(numbers), rng.choice(numbers), rng.choice(days), (pa.string(), texts)]
    people = rng.choice([(pa.string(), texts), (pa.int64(), INTEGERS)])
    named = dict(zip(NAMES, [people, *chosen], strict=True))
    schema = pa.schema([(name, choice[0]) for name, choice in named.items()])
    pools = {name: choice[1] for name, choice in named.items()}
    return Medium(pools, lambda rows, _: _arrow(rows, schema), ["1", "A1"])


def draw_objects(rng):
    """Columns of Python objects in pandas, also as categories, or in polars, also lazy."""
    numbers = NUMBER_OBJECTS * 3 + NUMBERS
    pools = {"x": numbers, "y": numbers, "day": DAY_OBJECTS * 3 + DATES, "kind": KIND_OBJECTS * 3 + KINDS}
    pools = {name: [*pool, *NO_VALUES, *HOSTILE] for name, pool in pools.items()}
    pools["who"] = [*WHO_OBJECTS * 3, *WHO, *NO_VALUES, *HOSTILE]
    form = rng.choice(["pandas", "pandas", "category", "polars", "lazy"])
    if form == "category":
        pools |= {"kind": [*KINDS, *HOSTILE, *DISTINCT], "who": [*WHO, *HOSTILE, *DISTINCT]}

    def write(rows, _):
        columns = {name: [row[j] for row in rows] for j, name in enumerate(NAMES)}
        if form in ("polars", "lazy"):
            frame = pl.DataFrame([pl.Series(name, values, pl.Object) for name, values in columns.items()])
            return frame.lazy() if form == "lazy" else frame
        frame = pd.DataFrame(
            {name: pd.Series(_objects(values), dtype=object) for name, values in columns.items()}
        )
        if form == "category":
            frame = frame.assign(**{name: _categories(columns[name]) for name in ("kind", "who")})
        return frame

    return Medium(pools, write, rng.choice(LEVELS))


def _pandas(dtype, values):
    return pd.Series(_categories(values, "str") if dtype == "category" else values, dtype=dtype)


def _categories(values, dtype=object):
    """Only the categories that occur, in the order in which they do."""
    found = [value for value in dict.fromkeys(values) if value is not None]
    codes = [-1 if value is None else found.index(value) for value in values]
    return pd.Categorical.from_codes(codes, pd.Index(_objects(found), dtype=dtype))


def _objects(values):
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def draw_pandas(rng):
    """Columns of the types that pandas itself has."""
    numbers = [
        ("float64", FLOATS[:-1]),
        ("Int64", INTEGERS),
        ("boolean", [True, False, None]),
        ("int64", [0, 7]),
    ]
    numbers += [("Float32", [0.5, None]), ("float16", [0.5, 65504.0])]
    days = [("datetime64[ns]", TIMES), ("datetime64[s]", TIMES), ("str", [*DATES, None])]
    kinds = [("str", TEXTS, ["1"]), ("category", TEXTS, ["A1"]), ("boolean", [True, False, None], [True])]
    kinds += [("Int64", INTEGERS, [7]), ("string[pyarrow]", TEXTS, ["NA"])]
    people = [
        ("str", [*WHO, *TEXTS]),
        ("int64", INTEGERS[:-1]),
        ("Int64", INTEGERS),
        ("category", [*WHO, None]),
    ]
    pools = {"who": people, "x": numbers, "y": numbers, "day": days, "kind": kinds}
    chosen = {name: rng.choice(pool) for name, pool in pools.items()}

    def write(rows, _):
        columns = {name: [row[j] for row in rows] for j, name in enumerate(NAMES)}
        return pd.DataFrame({name: _pandas(chosen[name][0], values) for name, values in columns.items()})

    return Medium({name: choice[1] for name, choice in chosen.items()}, write, chosen["kind"][2])


MEDIA = {
    "text": draw_text,
    "text in folders": draw_text_folders,
    "typed files": draw_files,
    "typed files in folders": draw_typed_folders,
    "arrow and polars": draw_arrow,
    "objects": draw_objects,
    "pandas": draw_pandas,
}
