"""Ledgers of the first version, which had no units, parts or checksums."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.budget import Budget, Ledger
from sfumato.domain import Unit
from sfumato.errors import BudgetExceededError, LedgerError

OLD = Path(__file__).with_name("ledger_version_1.sql").read_text("utf-8")


def make_old(path, *edits):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(OLD)
        for edit in edits:
            connection.execute(edit)
    return path


@pytest.fixture
def path(tmp_path):
    return make_old(tmp_path / "ledger.db")


def version(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def everything(path):
    found = {}
    for name in Ledger.datasets(path):
        ledger = Ledger(path, name)
        found[name] = [ledger.total(), ledger.spent(), ledger.is_closed(), ledger.history()]
    return found


def test_an_old_file_can_be_read_and_stays_as_it_is(path):
    before = path.read_bytes()
    assert [str(charge.spend) for charge in Ledger(path, "patients").history()] == [
        "epsilon=0.5",
        "epsilon=0.333334",
    ]
    assert Ledger(path, "patients").spent() == Budget("5/6")
    assert Ledger(path, "visits").is_closed()
    assert Ledger(path, "stays").remaining() == Budget(0.5, 9e-7)
    assert Ledger(path, "patients").unit() is Ledger(path, "patients").parts() is None
    assert Ledger.verify(path) == (10, None)
    assert path.read_bytes() == before


def test_the_first_write_brings_it_up_to_date_and_loses_nothing(path):
    before = everything(path)
    Ledger(path, "visits").settle(3, "failed")  # writes no line of its own
    assert version(path) == 2
    assert everything(path) == before
    n_lines, checksum = Ledger.verify(path)
    assert n_lines == 10
    number = Ledger(path, "patients").charge(Budget(1), method="DPM", plan="plan", unit=Unit("patient"))
    assert number == 5
    assert Ledger.verify(path, checksum).n_lines == 11
    assert Ledger(path, "patients").unit() == "one person (column 'patient')"


def test_a_new_file_and_one_brought_up_to_date_have_the_same_tables(path, tmp_path):
    Ledger.create(path, "new", Budget(1))
    Ledger.create(tmp_path / "new.db", "new", Budget(1))
    schemas = []
    for file in (path, tmp_path / "new.db"):
        with closing(sqlite3.connect(file)) as connection:
            schemas.append(set(connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()))
    assert schemas[0] == schemas[1]


def test_a_refused_charge_leaves_an_old_file_alone(path):
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError):
        Ledger(path, "patients").charge(Budget(3), method="DPM", plan="plan")
    assert version(path) == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("plan", ["x", "5", "", "[" * 10_000])
def test_a_plan_of_an_old_file_that_is_not_as_written(tmp_path, plan):
    line = f"VALUES (1, '', 'DPM', '{plan}', 0, '1/10')"
    edit = f"INSERT INTO charge (dataset, time, method, plan, seeded, epsilon) {line}"
    ledger = Ledger(make_old(tmp_path / "edited.db", edit), "patients")
    with pytest.raises(LedgerError, match="a plan that was altered"):
        ledger.history()
    assert ledger.spent() == Budget("14/15")


def test_an_amount_of_an_old_file_that_is_no_number(tmp_path):
    line = "VALUES (1, '', '', '', 0, 'x')"
    edit = f"INSERT INTO charge (dataset, time, method, plan, seeded, epsilon) {line}"
    ledger = Ledger(make_old(tmp_path / "edited.db", edit), "patients")
    for call in (ledger.spent, lambda: ledger.charge(Budget(1), method="DPM", plan="plan")):
        with pytest.raises(LedgerError, match="an amount that is not exact"):
            call()


def test_an_old_file_with_other_tables_is_refused(tmp_path):
    path = make_old(tmp_path / "edited.db", "DROP TRIGGER charge_update")
    with pytest.raises(LedgerError, match="damaged or was edited"):
        Ledger(path, "patients").spent()
