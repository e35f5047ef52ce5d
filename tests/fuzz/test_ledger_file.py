"""Damaged and edited ledger files: refused, or read without a charge getting smaller unseen."""

import sqlite3
import tempfile
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from tests.fuzz.cases import attempt, fuzz
from tests.fuzz.mutations import damaged_bytes

from sfumato import Budget, Ledger

TABLES = ("dataset", "charge", "settlement", "closure", "checksum")
TOTALS = {"patients": Budget(10), "visits": Budget(5, 1e-3), "trips": Budget(rho=2)}
SPENDS = {"patients": Budget("1/3"), "visits": Budget(0.5, 1e-6), "trips": Budget(rho=0.125)}


@cache
def content():
    """The bytes of a ledger with data sets of all kinds, and charges in all states."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        for name, total in TOTALS.items():
            ledger = Ledger.create(path, name, total)
            for outcome in ("released", "failed", None):
                number = ledger.charge(SPENDS[name], method="DPM", plan={"rows": 0.05, "centres": 0.95})
                if outcome:
                    ledger.settle(number, outcome)
        ledger.close()
        return path.read_bytes()


@cache
def histories():
    """What that ledger says, before it is damaged."""
    found = {}
    in_file(content(), lambda path: found.update({name: Ledger(path, name).history() for name in TOTALS}))
    return found


def read(path):
    """All that can be asked of a ledger, then a charge: what is readable adds up, whatever it says."""
    names = attempt(Ledger.datasets, path, timeout=0.0) or []
    for name in {*TOTALS, *(name for name in names if isinstance(name, str))}:
        ledger = attempt(Ledger, path, name, timeout=0.0)
        if ledger is not None:
            read_one(ledger)


def read_one(ledger):
    history, before = attempt(ledger.history), attempt(ledger.spent)
    total, remaining, closed = (attempt(ask) for ask in (ledger.total, ledger.remaining, ledger.is_closed))
    if history is not None and before is not None and before.kind != "zcdp":
        assert before == sum((charge.spend for charge in history), Budget.zero())
    if total is not None and remaining is not None and before is not None:
        assert before <= total
    for spend in (Budget("1/100"), Budget(rho="1/100")):
        number = attempt(ledger.charge, spend, method="DPM", plan="again")
        after = attempt(ledger.spent)
        if number is not None:
            assert not closed
            assert before is not None
            assert before <= after
            assert before != after
        else:
            assert after == before
        before = after
    attempt(ledger.settle, 1, "released")
    attempt(ledger.close)


def in_file(data, use):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        path.write_bytes(data)
        use(path)


@fuzz(few=40, share=0.15, data=st.deferred(lambda: damaged_bytes(content())))
def test_damaged_bytes(shard, data):
    """What can be read is as it was written: checksums show any other digit."""

    def use(path):
        for name in TOTALS:
            ledger = Ledger(path, name, timeout=0.0)
            assert attempt(ledger.history) in (None, histories()[name])
            assert attempt(ledger.total) in (None, TOTALS[name])
        read(path)

    in_file(data, use)


numbers = ["1/4", "0", "-1", "1/0", "nan", "inf", "1e999999999", "1e-200", "x", "", "\0", "1" * 5000, "٣"]
cells = st.sampled_from([None, 0, 1, 2, 9, -1, 0.5, 2**62, b"\xff\xfe", *numbers, '{"a": NaN}', "[" * 10_000])
tables = st.sampled_from(TABLES)
names = "id name time epsilon delta rho dataset method plan seeded charge outcome unit part parts line sha256"
columns = st.sampled_from(names.split())


@st.composite
def edits(draw):
    """A statement of SQL and its values."""
    table, column = draw(tables), draw(columns)
    where = draw(st.sampled_from(["", " WHERE rowid = 1", " WHERE rowid = 2"]))
    statement = draw(
        st.sampled_from(
            [
                f"UPDATE {table} SET {column} = ?{where}",
                f"UPDATE {table} SET {column} = ?{where}",
                f"UPDATE {table} SET {column} = ?{where}",
                f"DELETE FROM {table}{where}",
                f"DROP TABLE {table}",
                f"ALTER TABLE {table} RENAME TO others",
                f"ALTER TABLE {table} RENAME COLUMN {column} TO other",
                f"ALTER TABLE {table} DROP COLUMN {column}",
                f"CREATE VIEW {table} AS SELECT * FROM others",
                f"CREATE TABLE {table} AS SELECT * FROM others",
                f"CREATE TABLE {table} (id, {column})",
                f"CREATE TRIGGER more AFTER INSERT ON {table} BEGIN DELETE FROM charge; END",
                "CREATE TABLE extra (id INTEGER)",
                "PRAGMA user_version = 7",
                "PRAGMA application_id = 7",
                "PRAGMA journal_mode = WAL",
                "PRAGMA encoding = 'UTF-16'",
                "PRAGMA auto_vacuum = 1",
                "VACUUM",
            ]
        )
    )
    return statement, (draw(cells),) if "?" in statement else ()


def edit(path, statements, hidden):
    """Change a file as somebody would who knows SQLite: rules and types off, and on again to hide it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL").fetchall()
        rules = [(name, sql) for kind, name, sql in schema if kind == "trigger"]
        lax = [f"DROP TRIGGER {name}" for name, _ in rules]
        lax += ["PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = replace(sql, ' STRICT', '')"]
        strict = "UPDATE sqlite_master SET sql = sql || ' STRICT' WHERE type = 'table'"
        again = ["PRAGMA writable_schema = RESET", *(sql for _, sql in rules)]
        run(connection, [*lax, again[0], *statements])
        if hidden:
            run(connection, [lax[-2], strict, *again])


def run(connection, statements):
    for statement in statements:
        with suppress(sqlite3.Error):
            connection.execute(*statement if isinstance(statement, tuple) else (statement,))


@fuzz(few=40, share=0.1, statements=st.lists(edits(), min_size=1, max_size=3), hidden=st.booleans())
def test_edited_rows(shard, statements, hidden):
    def use(path):
        edit(path, statements, hidden)
        read(path)

    in_file(content(), use)
