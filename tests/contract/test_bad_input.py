"""Bad input: a clear error that shows parameters and never data, and nothing charged.

The base class checks tables and ledgers, so one estimator speaks for all.
"""

import os
import sqlite3
from contextlib import closing
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import Budget, Ledger
from sfumato.errors import BudgetExceededError, DataError, LedgerError, ParameterError, SfumatoError

SECRET, SPELLED = 0.12345678901234567, "Ada Lovelace"
pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.of_base]


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(1))


def frame(column):
    return pd.DataFrame({"a": column, "b": 0.5})


BAD_TABLES = {
    "NaN": np.array([[SECRET, np.nan]]),
    "inf": np.array([[SECRET, np.inf]]),
    "both infinities": np.array([[np.inf, -np.inf]]),
    "minus inf": np.array([[SECRET, -np.inf]]),
    "strings": np.array([[SPELLED, "1"]]),
    "objects": np.array([[SPELLED, SECRET]], dtype=object),
    "lists of strings": [[SECRET, SPELLED]],
    "bytes": np.array([[SPELLED.encode(), b"1"]]),
    "pandas strings": frame([SPELLED]),
    "pandas categories": frame(pd.Categorical([SPELLED])),
    "pandas missing": frame(pd.array([None], dtype="Float64")),
    "pandas dates": frame(pd.to_datetime(["1815-12-10"])),
    "polars strings": pl.DataFrame({"a": [SPELLED], "b": [SECRET]}),
    "polars missing": pl.DataFrame({"a": [None, SECRET], "b": [0.5, 0.5]}),
    "arrow strings": pa.table({"a": [SPELLED], "b": [SECRET]}),
    "arrow missing": pa.table({"a": [None, SECRET], "b": [0.5, 0.5]}),
    "complex": np.array([[SECRET + 1j, 0]]),
    "one dimension": np.full(17, SECRET),
    "three dimensions": np.full((17, 2, 2), SECRET),
    "no dimension": SECRET,
    "ragged": [[SECRET, 1], [SECRET]],
    "no columns": np.empty((17, 0)),
    "beyond floats": [[10**400, SECRET]],
    "nothing": None,
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables(make, ledger, name):
    with pytest.raises((DataError, TypeError)) as error:
        make(ledger=ledger).fit(BAD_TABLES[name])
    assert_harmless(error)
    assert ledger.history() == []


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_to_predict(make, rows, name):
    named = name.startswith(("pandas", "polars", "arrow"))
    model = make(random_state=0).fit(pd.DataFrame(rows, columns=["a", "b"]) if named else rows)
    with pytest.raises((DataError, TypeError)) as error:
        model.predict(BAD_TABLES[name])
    assert_harmless(error)
    with pytest.raises(DataError) as error:
        model.release_.predict(BAD_TABLES[name])
    assert_harmless(error)


def assert_harmless(error):
    """No value and no number of rows, in the message or in an error behind it."""
    causes, exception = [], error.value
    while exception is not None:
        causes.append(str(exception))
        exception = exception.__cause__ or exception.__context__
    for text in causes:
        assert "0.123456" not in text
        assert "Ada" not in text
        assert "Lovelace" not in text
        assert "1815" not in text
        assert "17" not in text
        assert len(text) < 400


DATES = pd.DataFrame({"day": pd.date_range("1815-12-10", periods=17), "x": SECRET})
TABLES_WITH_DATES = {
    "pandas": DATES,
    "pandas, one column": DATES[["day"]],
    "pandas, time zone": DATES.assign(day=DATES["day"].dt.tz_localize("UTC")),
    "pandas, lengths of time": DATES.assign(day=DATES["day"] - DATES["day"][0]),
    "polars": pl.from_pandas(DATES),
    "arrow": pa.Table.from_pandas(DATES),
    "pandas objects": DATES.assign(day=DATES["day"].dt.date),
    "objects": DATES.astype(object).to_numpy(),
    "array": DATES[["day"]].to_numpy(),
}


@pytest.mark.parametrize("name", TABLES_WITH_DATES)
@pytest.mark.parametrize("bounds", [(-1, 1), "private"], ids=str)
def test_dates_need_bounds_that_are_dates(make, ledger, name, bounds):
    with pytest.raises(DataError, match="those of dates as dates") as error:
        make(ledger=ledger, bounds=bounds).fit(TABLES_WITH_DATES[name])
    assert_harmless(error)
    assert ("column 'day'" in str(error.value)) == ("objects" not in name and name != "array")
    assert ledger.history() == []


@pytest.mark.parametrize("day", [np.datetime64("2026-01-01"), date(2026, 1, 1), [date(2026, 1, 1)] * 2])
def test_plain_bounds_are_numbers(make, rows, ledger, day):
    with pytest.raises(ParameterError, match=r"`low` must be a number.* Dates need the name of their column"):
        make(ledger=ledger, bounds=(day, 1)).fit(rows)
    assert ledger.history() == []


def test_files_with_dates_are_told_how_to_write_their_bounds(make, ledger, tmp_path):
    DATES.to_parquet(tmp_path / "table.parquet")
    with pytest.raises(DataError, match=r"column 'day' must hold numbers.*'day': \(date, date\)"):
        make(ledger=ledger).fit(tmp_path / "table.parquet")
    assert ledger.history() == []


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_table_to_predict_that_lacks_a_column(make, rows, convert):
    frame = pd.DataFrame(rows, columns=["a", "b"])
    model = make(bounds={"a": (-1, 1), "b": (-1, 1)}, random_state=0).fit(frame)
    for predict in (model.predict, model.release_.predict):
        with pytest.raises(ParameterError, match="column 'b' must be in the table, which has a"):
            predict(convert(frame[["a"]]))


def test_too_many_columns(make, rows, ledger, monkeypatch):
    monkeypatch.setattr("sfumato.domain.space.MOST_COLUMNS", 1)
    with pytest.raises(ParameterError, match="`n_features` must be an integer >= 1 and at most 1, got 2"):
        make(ledger=ledger).fit(rows)
    with pytest.raises(ParameterError, match="`n_features` must be an integer >= 1 and at most 1, got 2"):
        make().plan(2)
    assert ledger.history() == []


def test_errors_can_be_caught_as_one(make):
    for parameters, table in (({"epsilon": -1}, [[0, 0]]), ({}, [["x", "y"]])):
        with pytest.raises(SfumatoError):
            make(**parameters).fit(table)
        with pytest.raises(ValueError):  # noqa: PT011 (the point is the builtin class)
            make(**parameters).fit(table)


GOOD_TABLES = {
    "list": lambda rows, _: rows.tolist(),
    "float32": lambda rows, _: rows.astype(np.float32),
    "float16": lambda rows, _: rows.astype(np.float16),
    "int": lambda rows, _: np.round(rows).astype(int),
    "uint8": lambda rows, _: (rows > 0).astype(np.uint8),
    "bool": lambda rows, _: rows > 0,
    "objects": lambda rows, _: rows.astype(object),
    "longdouble": lambda rows, _: rows.astype(np.longdouble),
    "big endian": lambda rows, _: rows.astype(">f8"),
    "Fortran order": lambda rows, _: np.asfortranarray(rows),
    "strided": lambda rows, _: np.repeat(rows, 2, axis=0)[::2],
    "read-only": lambda rows, _: np.load(saved(rows, _), mmap_mode="r"),
    "pandas": lambda rows, _: pd.DataFrame(rows, columns=["a", "b"]),
    "pandas mixed": lambda rows, _: pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1].astype(np.float32)}),
    "pandas nullable": lambda rows, _: pd.DataFrame(rows, columns=["a", "b"]).convert_dtypes(),
    "pandas arrow": lambda rows, _: pd.DataFrame(rows, columns=["a", "b"]).astype("double[pyarrow]"),
    "polars": lambda rows, _: pl.DataFrame(rows, schema=["a", "b"]),
    "arrow": lambda rows, _: pa.table({"a": rows[:, 0], "b": rows[:, 1]}),
    "arrow in chunks": lambda rows, _: pa.concat_tables(
        [pa.table({"a": p[:, 0], "b": p[:, 1]}) for p in (rows[:9], rows[9:])]
    ),
}


def saved(rows, folder):
    np.save(folder / "rows.npy", rows)
    return folder / "rows.npy"


@pytest.mark.parametrize("name", GOOD_TABLES)
def test_all_tables_of_equal_numbers_give_the_same_release(make, rows, tmp_path, name):
    table = GOOD_TABLES[name](rows, tmp_path)
    plain = np.asarray(table, dtype=np.float64)
    fitted, reference = make(random_state=0).fit(table), make(random_state=0).fit(plain)
    assert fitted.release_.to_dict()["model"] == reference.release_.to_dict()["model"]
    assert (fitted.labels_ == reference.labels_).all()
    assert (fitted.predict(table) == reference.labels_).all()
    assert (fitted.release_.predict(plain) == reference.labels_).all()
    assert fitted.release_.columns == (("a", "b") if name.startswith(("pandas", "polars", "arrow")) else ())


@pytest.mark.parametrize("n", [0, 1])
def test_short_data_frames(make, rows, n):
    for table in (
        pd.DataFrame(rows[:n], columns=["a", "b"]),
        pl.DataFrame(rows[:n], schema=["a", "b"]),
        pa.table({"a": rows[:n, 0], "b": rows[:n, 1]}),
    ):
        model = make().fit(table)
        assert model.labels_.shape == (n,)


def test_predict_wants_the_same_columns(make, rows):
    model = make(random_state=0).fit(pd.DataFrame(rows, columns=["age", "income"]))
    with pytest.raises(DataError, match="feature names should match"):
        model.predict(pd.DataFrame(rows, columns=["income", "age"]))
    with pytest.raises(DataError, match="now missing:\n- income"):
        model.predict(pd.DataFrame(rows[:, :1], columns=["age"]))


def test_a_ledger_with_less_left(make, rows, ledger):
    make(epsilon=0.75, ledger=ledger).fit(rows)
    model = make(epsilon=0.5, ledger=ledger)
    with pytest.raises(BudgetExceededError, match=r"requested epsilon=0\.5, remaining epsilon=0\.25"):
        model.fit(rows)
    assert ledger.spent() == Budget(0.75)
    assert not hasattr(model, "release_")


@pytest.mark.parametrize("budget", [{"epsilon": 0.1, "delta": 1e-6}, {"rho": 0.1}])
def test_a_ledger_of_another_kind(make, rows, ledger, budget):
    with pytest.raises(ParameterError, match="Nothing was charged"):
        make(**budget, ledger=ledger).fit(rows)
    assert ledger.history() == []


def test_a_seeded_run_needs_a_ledger_that_allows_it(make, rows, ledger):
    with pytest.raises(LedgerError, match="seeded run"):
        make(random_state=0, ledger=ledger).fit(rows)
    assert ledger.history() == []
    lax = Ledger(ledger.path, "people", allow_seeded=True)
    make(random_state=0, ledger=lax).fit(rows)
    assert [charge.seeded for charge in ledger.history()] == [True]


def test_a_locked_ledger(make, rows, ledger):
    impatient = Ledger(ledger.path, "people", timeout=0.01)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="locked"):
            make(ledger=impatient).fit(rows)
    assert ledger.history() == []


def test_ledgers_that_cannot_be_used(make, rows, tmp_path, ledger):
    (tmp_path / "text.db").write_text("not a database, but long enough to look at" * 100)
    bad = [
        Ledger(tmp_path / "missing.db", "people"),
        Ledger(tmp_path / "nowhere" / "ledger.db", "people"),
        Ledger(tmp_path, "people"),
        Ledger(tmp_path / "text.db", "people"),
        Ledger(ledger.path, "others"),
    ]
    for one in bad:
        model = make(ledger=one)
        with pytest.raises(LedgerError):
            model.fit(rows)
        assert not hasattr(model, "release_")
    for one in ("ledger.db", tmp_path / "ledger.db", 5):
        with pytest.raises(ParameterError, match="`ledger` must be a sfumato"):
            make(ledger=one).fit(rows)
    assert ledger.history() == []
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_ledger(make, rows, ledger):
    ledger.path.chmod(0o444)
    with pytest.raises(LedgerError, match="read-only"):
        make(ledger=ledger).fit(rows)
    assert ledger.history() == []


def test_a_closed_ledger(make, rows, ledger):
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        make(ledger=ledger).fit(rows)
    assert ledger.history() == []


@pytest.mark.parametrize("n_features", [0, -1, 1.5, "2", None, 10**9])
def test_a_plan_for_no_columns(make, n_features):
    with pytest.raises(ParameterError, match="`n_features` must be an integer >= 1"):
        make().plan(n_features)
