"""Exact findings, for the holder's screen: every count against a table that was made with it."""

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import check, scan_csv
from sfumato.errors import DataError, ParameterError

BOUNDS = {
    "age": (0, 120),
    "day": (datetime.date(2026, 1, 1), datetime.date(2026, 12, 31)),
    "ward": ["icu", "er"],
}
LINES = [
    "ann,31,2026-01-05,icu",
    "bob,,2026-02-05,er",  # missing
    "cem,elderly,2026-02-05,er",  # no number
    "dia,140,2026-02-05,er",  # outside
    "eli,40,2026-02-30,er",  # no date
    "fay,40,2027-02-03,er",  # outside
    "gus,40,2026-02-03,hall",  # no level
    "hal,40,2026-02-03,NA",  # missing
    ",40,2026-02-03,er",  # nobody
    "ida,40,2026-02-03",  # too short
    "jim,40,2026-02-03,er,er",  # too long
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "stays.csv"
    path.write_text("\n".join(["name,age,day,ward", *LINES]))
    return str(path)


def counts(found):
    return {c.name: (c.kind, c.missing, c.unreadable, c.outside) for c in found.columns}


def test_every_kind_of_finding(table):
    found = check(table, bounds=BOUNDS, unit="name")
    assert counts(found) == {
        "age": ("number", 3, 1, 1),
        "day": ("date", 2, 1, 1),
        "ward": ("category", 3, 0, 1),
        "name": ("person", 3, 0, 0),
    }
    assert (found.rows, found.used, found.fits) == (11, 4, False)
    text = str(found)
    assert "2 lines have fewer or more values than there are columns" in text
    assert "some rows have no usable value in columns 'age', 'day', 'ward'. Give missing='drop' or" in text
    assert "column 'name' does not name a person in every row. Give missing='drop'" in text
    assert "exact, not private" in text


def test_what_is_decided_needs_no_decision(table):
    dropped = check(table, bounds=BOUNDS, unit="name", missing="drop", outside="drop")
    assert (dropped.used, dropped.fits) == (2, True)
    filled = check(table, bounds=BOUNDS, missing={"age": 40, "day": datetime.date(2026, 6, 1), "ward": "er"})
    assert (filled.used, filled.fits) == (11, True)


def test_no_value_is_quoted(table):
    text = str(check(table, bounds=BOUNDS, unit="name"))
    words = {word for line in LINES for word in line.split(",") if len(word) > 2} - {"icu", "er"}
    assert not [word for word in words if word in text]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_in_memory(make):
    columns = {"age": [31.0, None, 140.0, 40.0], "ward": ["icu", "er", "hall", None]}
    found = check(make(columns), bounds={"age": (0, 120), "ward": ["icu", "er"]})
    assert counts(found) == {"age": ("number", 1, 0, 1), "ward": ("category", 1, 0, 1)}
    assert found.used == 2


def test_objects_are_read_one_by_one():
    found = check(pd.DataFrame({"age": [31, "old", None, "40"]}, dtype=object), bounds={"age": (0, 120)})
    assert counts(found) == {"age": ("number", 1, 1, 0)}


def test_arrays_and_private_bounds():
    rows = np.array([[1.0, np.nan], [500.0, np.inf]])
    assert counts(check(rows, bounds=(0, 100))) == {
        "column1": ("number", 0, 0, 1),
        "column2": ("number", 1, 1, 0),
    }
    assert counts(check(rows, bounds="private"))["column1"] == ("number", 0, 0, 0)


def test_levels_that_a_fit_would_buy(table):
    found = check(table, bounds={"ward": {"levels": "private"}}, missing="drop")
    assert counts(found) == {"ward": ("category", 3, 0, 0)}
    empty = pa.table({"ward": ["", "a"]})
    assert (
        counts(check(empty, bounds={"ward": {"levels": "private"}}))["ward"][1] == 0
    )  # a type says what is missing
    Path(table).write_text("ward,x\n,1\na,1\n")
    assert counts(check(table, bounds={"ward": {"levels": "private"}}))["ward"][1] == 1
    assert check(table, bounds={"ward": {"levels": "private"}}, missing={"ward": "none"}).fits


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ({"day": (0, 1)}, "most values of column 'day' do not read as numbers"),
        ({"age": (200, 300)}, "no value of column 'age' is inside its bounds"),
        ({"ward": ["ICU"]}, "no value of column 'ward' is among its levels"),
    ],
)
def test_plain_mistakes_need_a_decision_even_if_rows_may_be_dropped(table, bounds, reason):
    found = check(table, bounds=bounds, missing="drop")
    assert not found.fits
    assert reason in str(found)


@pytest.mark.parametrize(
    ("values", "bounds", "option"),
    [
        (["1,5", "2,25"], (0, 10), "decimal=','"),
        (["1,500", "2,250"], (0, 10), "decimal=','"),
        (["1,500", "2,250"], (1000, 3000), "thousands=','"),
        (["1,500,000", "2"], (0, 1e7), "thousands=','"),
        (["1.500,5", "2.250,5"], (1000, 3000), "decimal=',', thousands='.'"),
        (["1 500", "2 250"], (1000, 3000), "thousands=' '"),
        (["1'500", "2'250"], (1000, 3000), 'thousands="\'"'),
        (["31.12.2026", "01.02.2026"], BOUNDS["day"], "dates=['%d.%m.%Y']"),
        (["12/31/2026", "01/02/2026"], BOUNDS["day"], "dates=['%m/%d/%Y']"),
        (["31/12/2026 17:30", "01/02/2026 09:00"], BOUNDS["day"], "dates=['%d/%m/%Y %H:%M']"),
        (["01/02/2026"], BOUNDS["day"], "dates=['%d/%m/%Y']) or scan_csv(path, dates=['%m/%d/%Y']"),
    ],
)
def test_the_option_that_reads_more_values(tmp_path, values, bounds, option):
    path = tmp_path / "table.csv"
    path.write_text("value;other\n" + "".join(f"{value};1\n" for value in values))
    written = scan_csv(path, delimiter=";")
    found = check(written, bounds={"value": bounds}, missing="drop")
    assert not found.fits
    assert option in str(found)


def test_formats_of_several_date_columns_are_given_together(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n31.12.2026,30.12.2026 17:30,2026-12-31\n")
    found = check(tmp_path / "t.csv", bounds=dict.fromkeys("abc", BOUNDS["day"]))
    formats = ["%d.%m.%Y", "%d.%m.%Y %H:%M", "%Y-%m-%d"]
    assert f"dates={formats}" in str(found)
    assert check(scan_csv(tmp_path / "t.csv", dates=formats), bounds=dict.fromkeys("abc", BOUNDS["day"])).fits


def test_a_few_odd_values_do_not_change_the_format(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n" + "1.5;1\n" * 50 + "1,5;1\n")
    found = check(scan_csv(tmp_path / "t.csv", delimiter=";"), bounds={"a": (0, 10)}, missing="drop")
    assert found.fits
    assert counts(found) == {"a": ("number", 0, 1, 0)}


@pytest.mark.parametrize(
    ("content", "option"),
    [
        (b"age;job\n1;a\n", "delimiter=';'"),
        (b"age\tjob\n1\ta\n", "delimiter='\\t'"),
        ("age,job,señor\n1,a,b\n".encode("latin-1"), "encoding='latin-1'"),
        ("age,job\n1,a\n".encode("utf-16"), "encoding='utf-16'"),
        ("age,job\n1,señor\n".encode("latin-1"), "encoding='latin-1'"),
    ],
)
def test_the_option_that_finds_the_columns(tmp_path, content, option):
    (tmp_path / "t.csv").write_bytes(content)
    found = check(tmp_path / "t.csv", bounds={"age": (0, 10), "job": ["a", "b"]}, missing="drop")
    assert not found.fits
    assert option in str(found)


def test_a_first_line_that_is_a_row_is_not_quoted(tmp_path):
    (tmp_path / "t.csv").write_text("31, carpenter\n40, smith\n")
    for bounds in ({"age": (0, 10)}, (0, 100)):
        with pytest.raises(DataError, match=r"looks like a row. Give .*names=.* or .*header=False") as e:
            check(tmp_path / "t.csv", bounds=bounds)
        assert "carpenter" not in str(e.value)


def test_columns_that_no_format_has(tmp_path):
    (tmp_path / "t.csv").write_text("age,job\n1,a\n")
    with pytest.raises(ParameterError, match="column 'size' must be in the table"):
        check(tmp_path / "t.csv", bounds={"size": (0, 10)})


def test_tables_without_usable_rows(tmp_path):
    (tmp_path / "t.csv").write_text("age,job\n")
    assert "the table has no rows" in str(check(tmp_path / "t.csv", bounds={"age": (0, 10)}))
    frame = pd.DataFrame({"age": [1.0, None], "size": [None, 1.0]})
    found = check(frame, bounds={"age": (0, 10), "size": (0, 10)}, missing="drop")
    assert (found.used, found.fits) == (0, False)


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match="`missing` must be"):
        check(np.ones((2, 2)), bounds=(0, 1), missing="fill")
    with pytest.raises(ParameterError, match="`outside` must be"):
        check(np.ones((2, 2)), bounds=(0, 1), outside="keep")


@pytest.mark.slow
def test_spark(spark):
    frame = pd.DataFrame({"a.b": [31.0, None, 140.0, 40.0], "ward": ["icu", "er", "hall", None]})
    bounds = {"a.b": (0, 120), "ward": ["icu", "er"]}
    found = check(
        spark.createDataFrame(pa.Table.from_pandas(frame)).repartition(3), bounds=bounds, missing="drop"
    )
    assert found == check(frame, bounds=bounds, missing="drop")
    assert (found.rows, found.used) == (4, 2)


def test_ordered_levels_cycles_booleans_and_other_values(tmp_path):
    table = pd.DataFrame(
        {
            "size": ["S", "M", "XL", None, "L"],
            "hour": ["3", "25", "noon", "", "23"],
            "at": ["2026-01-01T08:00", "never", "2026-01-02", "", "2026-03-01"],
            "paid": ["1", "0", "2", "1", "maybe"],
            "ward": ["icu", "er", "?", None, "other"],
        }
    )
    bounds = {
        "size": {"levels": ["S", "M", "L"], "ordered": True},
        "hour": {"cycle": (0, 24)},
        "at": {"cycle": "day"},
        "paid": bool,
        "ward": ["icu", "er"],
    }
    table.to_csv(tmp_path / "table.csv", index=False)
    found = check(tmp_path / "table.csv", bounds=bounds, missing="drop")
    told = {c.name: (c.kind, c.missing, c.unreadable, c.outside) for c in found.columns}
    assert told == {
        "size": ("ordered", 1, 1, 0),  # a value that is no level has no rank
        "hour": ("number", 1, 1, 0),  # 25 is 1 o'clock
        "at": ("date", 1, 1, 0),
        "paid": ("number", 0, 1, 1),
        "ward": ("category", 1, 0, 2),
    }
    assert found.used == 1
    assert any("among the levels count as 'other'" in one.says for one in found.advice)


def test_other_formats_of_times_on_a_cycle(tmp_path):
    frame = pd.DataFrame({"at": ["24.12.2026", "25.12.2026"] * 30, "size": ["x"] * 60})
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert "%d.%m.%Y" in str(check(tmp_path / "table.csv", bounds={"at": {"cycle": "year"}}))
    found = check(tmp_path / "table.csv", bounds={"size": {"levels": ["S", "L"], "ordered": True}})
    assert "most values of column 'size' do not read as one of its levels" in str(found)


def test_columns_that_are_only_described():
    table = pd.DataFrame(
        {
            "age": [31.0, 40.0, 52.0],
            "ward": ["icu", None, "?"],
            "days": ["3", "many", "99"],
            "job": ["a", "b", "c"],
        }
    )
    beside = {"ward": ["icu", "er"], "days": (0, 30), "job": {"levels": "private"}, "age": (0, 1)}
    table = pa.Table.from_pandas(table.assign(days=[3.0, None, 99.0]))
    found = check(table, bounds={"age": (0, 120)}, describe=beside)
    told = {c.name: (c.kind, c.missing, c.unreadable, c.outside) for c in found.columns}
    assert told == {
        "age": ("number", 0, 0, 0),
        "ward": ("category", 1, 0, 1),
        "days": ("number", 1, 0, 1),
        "job": ("category", 0, 0, 0),
    }
    assert (found.used, found.fits) == (3, True)  # no row is left out for them
    assert "profiles count missing values of columns 'ward', 'days'" in str(found)
    assert check(table, bounds={"age": (0, 120)}, describe=["job"]).fits
    with pytest.raises(ParameterError, match="column 'colour' must be in the table"):
        check(table, bounds={"age": (0, 120)}, describe=["colour"])


def test_numbers_that_are_a_yes_or_a_no():
    table = pd.DataFrame(
        {
            "smoker": [1.0, 0.0, None, 1.0],
            "group": [2, 1, 1, 2],
            "share": [0.0, 0.5, 1.0, 1.0],
            "same": [1, 1, 1, 1],
            "paid": [0, 1, 1, 0],
            "cured": [1, 1, 0, 0],
        }
    )
    declared = {"smoker": (0, 1), "group": (1, 2), "share": (0, 1), "same": (0, 1), "paid": bool}
    advice = {one.says: one.refuses for one in check(table, bounds=declared, missing="drop").advice}
    says = "columns 'smoker', 'group' have no value between the bounds"
    assert advice.pop(f"{says}. To see shares in profiles, declare bool or levels") is False
    assert not any("between" in one for one in advice)
    assert "column 'cured' has no value between" in str(
        check(table, bounds={"share": (0, 1)}, describe={"cured": (0, 1)})
    )


def test_other_formats_of_described_columns_and_of_times_of_day(tmp_path):
    frame = pd.DataFrame({"size": [1.0] * 60, "day": ["24.12.2026"] * 60, "at": ["07:42"] * 60})
    frame.to_csv(tmp_path / "table.csv", index=False)
    day = {"day": (datetime.date(2026, 1, 1), datetime.date(2027, 1, 1))}
    found = check(tmp_path / "table.csv", bounds={"size": (0, 2)}, describe=day)
    assert "scan_csv(path, dates=['%d.%m.%Y'])" in str(found)
    assert "%H:%M" in str(check(tmp_path / "table.csv", bounds={"at": {"cycle": "day"}}))


def test_the_cap_on_rows_of_a_person_is_named():
    table = pd.DataFrame({"size": [1.0, 1.0], "who": ["a", "a"]})
    found = str(check(table, bounds={"size": (0, 2)}, unit="who"))
    assert "a fit uses 2, less those beyond the maximum number of rows per person." in found
    assert "per person" not in str(check(table, bounds={"size": (0, 2)}))
