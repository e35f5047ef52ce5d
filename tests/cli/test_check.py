import json
import re
from pathlib import Path

import pytest

from sfumato import Budget, Ledger, Release

FIT = ["--method", "grid-kmeans", "--clusters", "2", "--epsilon", "1000"]
BOUNDS = """
age = { bounds = [0, 120], missing = 40 }
day = { bounds = [2026-01-01, 2026-12-31], format = "%d.%m.%Y" }
job = { levels = ["smith", "none"], missing = "none" }
[csv]
delimiter = ";"
decimal = ","
"""


@pytest.fixture
def table():
    """A table with a semicolon, a decimal comma, days first, and missing values."""
    rows = ["31,5;24.12.2026;smith"] * 60 + [";25.12.2026;smith", "40;;", "40;26.12.2026;carpenter"] * 20
    Path("table.csv").write_text("\n".join(["age;day;job", *rows]))
    Path("bounds.toml").write_text(BOUNDS)
    return ["table.csv", "--bounds", "bounds.toml"]


def test_what_it_says(call, table):
    done = call("check", *table, code=0)
    assert done.stdout.startswith("These figures are exact, not private.")
    assert done.stdout.splitlines()[2:6] == [
        "column  read as   missing  unreadable  outside",
        "age     number    20       0           0",
        "day     date      20       0           0",
        "job     category  20       0           20",
    ]
    assert "120 rows, of which a fit uses 100." in done.stdout
    assert "- rows without a usable value in column 'day' are left out" in done.stdout
    assert "carpenter" not in done.stdout


def test_it_ends_with_a_code(call, table):
    done = call("check", *table, "--missing", "error", code=3)
    assert "Give --missing drop or --missing age=value,day=value,job=value" in done.stdout
    call("check", *table, "--missing", "drop", code=0)
    call("check", "table.csv", code=2)


def test_json(call, table):
    found = json.loads(call("check", *table, "--missing", "error", "--json", code=3).stdout)
    assert (found["rows"], found["used"], found["fits"]) == (120, 80, False)
    kind = {"name": "age", "kind": "number", "missing": 20, "unreadable": 0, "outside": 0}
    assert found["columns"][0] == kind
    assert "--missing drop" in found["advice"][0]["says"]
    assert "exact" in found["note"]


def test_the_command_line_wins_over_the_file(call, table):
    done = call("check", *table, "--decimal", ".", "--date-format", "%d-%m-%Y", code=3)
    assert "--decimal ," in done.stdout
    assert "--date-format %d-%m-%Y --date-format %d.%m.%Y" in done.stdout
    *_, together = done.stdout.splitlines()
    assert together == "Together: --decimal , --date-format %d-%m-%Y --date-format %d.%m.%Y"
    assert "Give --delimiter ';'" in call("check", *table, "--delimiter", "tab", code=3).stdout


def test_values_for_missing_ones(call, table):
    done = call("check", *table, "--missing", "age=30,day=2026-06-01", code=0)
    assert "120 rows, of which a fit uses 120." in done.stdout
    call("check", *table, "--missing", "age=smith", code=2)
    call("check", *table, "--missing", "job=carpenter", code=2)
    call("check", *table, "--missing", "size=3", code=2)


def test_it_takes_the_config_of_a_fit(call, table):
    Path("run.toml").write_text(
        'data = "table.csv"\nmethod = "grid-kmeans"\nclusters = 2\nepsilon = 1\n'
        'delimiter = ";"\ndecimal = ","\ndate_format = ["%d.%m.%Y"]\nquiet = true\n'
        "[missing]\nage = 40\n"
        "[bounds]\nage = [0, 120]\nday = [2026-01-01, 2026-12-31]\n"
    )
    assert "uses 100." in call("check", "--config", "run.toml").stdout
    call("fit", "--config", "run.toml")
    assert Release.load("release.json").columns == ("age", "day")


def test_a_fit_looks_first(call, table):
    ledger = Ledger.create("budget.db", "table", Budget(2000))
    charged = ["--ledger", "budget.db", "--dataset", "table"]
    for options, reason in (
        (["--missing", "error"], "Give --missing drop"),
        (["--missing", "drop", "--decimal", "."], "Give --decimal ,"),
        (
            ["--missing", "drop", "--columns", "age", "--thousands", ".", "--delimiter", ","],
            "Give --delimiter ';'",
        ),
    ):
        done = call("fit", *table, *FIT, *charged, *options, code=3)
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) == 1
        assert "nothing was charged" in done.stderr
        assert reason in done.stderr
    assert not ledger.history()
    call("fit", *table, *FIT, *charged, "--missing", "error", "--no-check", "--quiet", code=3)
    assert [charge.outcome for charge in ledger.history()] == ["failed"]


@pytest.mark.parametrize(
    ("content", "code", "option"),
    [
        ("age;job\n1;a\n", 2, "--delimiter ';'"),
        ("31,carpenter\n40,smith\n", 2, "give --names or --no-header"),
        ("age,se\xf1or\n1,a\n", 3, "--encoding 'latin-1'"),
    ],
)
def test_without_a_look_messages_still_name_the_option(call, content, code, option):
    Path("t.csv").write_bytes(content.encode("latin-1"))
    Path("b.toml").write_text("age = [0, 5]\n")
    done = call("fit", "t.csv", *FIT, "--bounds", "b.toml", "--no-check", code=code)
    assert option in done.stderr
    assert "carpenter" not in done.stderr


def test_rows_that_are_left_out_are_told_to_the_holder(call, table):
    done = call("fit", *table, *FIT)
    assert done.stderr.startswith("20 rows are left out. This figure is exact, for you alone")
    done = call("fit", *table, *FIT, "--missing", "age=30,day=2026-06-01", "--force")
    assert "left out" not in done.stderr
    assert call("fit", *table, *FIT, "--force", "--quiet").output == ""


def test_one_row_that_is_left_out(call):
    Path("t.csv").write_text("x\n" + "1\n" * 50 + "NA\n")
    done = call("fit", "t.csv", *FIT, "--bounds", "0,5", "--missing", "drop")
    assert "1 row is left out. This figure" in done.stderr


def test_a_release_remembers_how_text_is_written(call, table):
    call("fit", *table, *FIT, "--quiet")
    call("predict", "release.json", "table.csv", "--out", "labels.csv", "--keep", "job", "--quiet")
    labels = Path("labels.csv").read_text().splitlines()
    assert len(labels) == 121
    Path("plain.csv").write_text(Path("table.csv").read_text().replace(",", ".").replace(";", "|"))
    same = ["--delimiter", "|", "--decimal", ".", "--out", "same.csv", "--keep", "job", "--quiet"]
    call("predict", "release.json", "plain.csv", *same)
    assert Path("same.csv").read_text().splitlines() == labels


def test_outside(call, table):
    bounds = [
        "--bounds",
        "0,32",
        "--columns",
        "age",
        "--delimiter",
        ";",
        "--decimal",
        ",",
        "--missing",
        "drop",
    ]
    assert "uses 100." in call("check", "table.csv", *bounds).stdout
    assert "uses 60." in call("check", "table.csv", *bounds, "--outside", "drop").stdout
    call("fit", "table.csv", *FIT, *bounds, "--outside", "drop", "--quiet")
    assert Release.load("release.json").domain.outside == "drop"
    assert "`outside` must be" in call("check", "table.csv", *bounds, "--outside", "keep", code=2).stderr


def test_private_bounds_and_bought_ones(call, trips):
    assert "Everything is as declared" in call("check", trips, "--bounds", "private", "--unit", "cab").stdout
    call("fit", trips, *FIT, "--estimate-bounds", 0.5, "--columns", "east,north", "--quiet")


def test_columns_in_folders(call):
    for day in (1, 2):
        Path(f"t/day={day}").mkdir(parents=True)
        Path(f"t/day={day}/a.csv").write_text("x;y\n1;2\n3;4\n")
    Path("b.toml").write_text('x = [0, 5]\nday = { levels = ["1", "2"] }\n[csv]\ndelimiter = ";"\n')
    assert "4 rows, of which a fit uses 4." in call("check", "t", "--bounds", "b.toml").stdout


@pytest.mark.parametrize(
    ("content", "fix"),
    [
        ("age = [0, 1, 2]", "column 'age' must have bounds"),
        ("age = { bounds = [0, 1], levels = ['a'] }", "column 'age' must have bounds"),
        ("age = { bounds = [0, 1], wrong = 3 }", "column 'age' must have bounds"),
        ("age = { levels = 'public' }", "column 'age' must have bounds"),
        ("age.years = [0, 120]", 'write it in quotes: "age.years" = [0, 120]'),
        ("age = {}", "column 'age' must have bounds, got {}"),
        ("age = [120, 0]", "column 'age' must have bounds [low, high] with low < high, got [120, 0]"),
        ("day = [2026-12-31, 2026-01-01]", "column 'day' must have bounds [low, high] with low < high"),
        (
            "[bounds]\nage = [0, 120]",
            "delete the line [bounds], or take that table alone: --bounds b.toml#bounds",
        ),
        ("age = [0, 120]\n[csv]\nseparator = ';'", "[csv] in b.toml must have only delimiter, decimal"),
        ("age = [0, 120]\n[csv]\ndelimiter = ';;'", "`delimiter` must be one ASCII character"),
        ("age = [0, 120]\n[csv]\nencoding = 'klingon'", "`encoding` must be one that Python knows"),
    ],
)
def test_files_of_bounds_that_are_refused(call, table, content, fix):
    Path("b.toml").write_text(content)
    assert fix in call("check", "table.csv", "--bounds", "b.toml", code=2).stderr


@pytest.mark.parametrize("name", ["csv", "bounds"])
def test_a_column_may_be_called_as_a_table_is(call, name):
    Path("t.csv").write_text(f"{name},x\na,1\nb,2\n")
    Path("b.toml").write_text(f'{name} = {{ levels = ["a", "b"] }}\nx = [0, 5]\n')
    assert re.search(rf"{name} +category", call("check", "t.csv", "--bounds", "b.toml").stdout)


@pytest.mark.parametrize("command", ["check", "fit"])
def test_a_table_that_does_not_exist(call, table, command):
    budget = FIT if command == "fit" else []
    done = call(command, "trips.csv", *table[1:], *budget, code=2)
    assert "got 'trips.csv', which does not exist" in done.stderr


def test_options_of_text_are_refused_for_typed_files(call, stays):
    done = call("check", stays, "--bounds", "0,40", "--columns", "east", "--delimiter", ";", code=2)
    assert "`--delimiter` must be given for text files only" in done.stderr
    Path("b.toml").write_text('east = [0, 40]\n[csv]\ndelimiter = ";"\n')
    call("check", stays, "--bounds", "b.toml")  # the same bounds do for the table as text and as Parquet
