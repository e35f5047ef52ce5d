"""Accidents that checksums show: a changed digit, a lost line, a line too many."""

import sqlite3
from contextlib import closing

import pytest

from sfumato.budget import Budget, Ledger
from sfumato.domain import Unit
from sfumato.errors import LedgerError


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, "patients", Budget(3), unit=Unit(), parts_by="ward", parts=["a", "b"])
    for amount in (0.25, 0.5, 0.75):
        number = Ledger(path, "patients", part="a").charge(Budget(amount), method="DPM", plan="plan")
        ledger.settle(number, "released")
    Ledger.create(path, "visits", Budget(rho=1)).close()
    return path


def edit(path, *statements):
    """Change a file as if there were no rules against it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rules = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in rules:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, rule in rules:
            connection.execute(rule)


EDITS = {
    "UPDATE charge SET epsilon = '1/8' WHERE id = 2": "'charge 2' does not match",
    "UPDATE charge SET part = 'b' WHERE id = 2": "'charge 2' does not match",
    "UPDATE charge SET unit = 'one row' WHERE id = 1": "'charge 1' does not match",
    "UPDATE charge SET time = '' WHERE id = 3": "'charge 3' does not match",
    "UPDATE dataset SET epsilon = '30' WHERE id = 1": "'dataset 1' does not match",
    "UPDATE dataset SET max_parts_per_unit = 2 WHERE id = 1": "'dataset 1' does not match",
    "UPDATE settlement SET outcome = 'failed' WHERE charge = 1": "'settlement 1' does not match",
    "DELETE FROM settlement WHERE charge = 3": "'settlement 3' is missing",
    "DELETE FROM closure": "'closure 2' is missing",
    "INSERT INTO closure VALUES (1, '')": "'closure 1' has no checksum",
    "DELETE FROM checksum WHERE line = 'charge 2'": "'settlement 2' does not match its checksum, or",
    "DELETE FROM checksum WHERE line = 'closure 2'": "'closure 2' has no checksum",
    "UPDATE checksum SET id = 99 WHERE line = 'charge 2'": "'settlement 2' does not match",
}


@pytest.mark.parametrize("statement", EDITS)
def test_a_change_is_seen_and_named(path, statement):
    edit(path, statement)
    ledger = Ledger(path, "patients")
    calls = [ledger.spent, ledger.total, ledger.history, ledger.close, lambda: Ledger.verify(path)]
    for call in [*calls, lambda: ledger.charge(Budget("1/9"), method="DPM", plan="plan")]:
        with pytest.raises(LedgerError, match="was changed after it was written") as caught:
            call()
        assert EDITS[statement] in str(caught.value)


def test_a_line_that_is_lost_together_with_its_checksum(path):
    lost = ["DELETE FROM settlement WHERE charge = 2", "DELETE FROM checksum WHERE line = 'settlement 2'"]
    edit(path, *lost, "DELETE FROM charge WHERE id = 2", "DELETE FROM checksum WHERE line = 'charge 2'")
    with pytest.raises(
        LedgerError, match="'charge 3' does not match its checksum, or a line before it is gone"
    ):
        Ledger(path, "patients").spent()


@pytest.mark.parametrize(("old", "new"), [(b"3/4", b"1/4"), (b"1/2", b"1/9"), (b"DPM", b"DPN")])
def test_changed_bytes_are_seen(path, old, new):
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    with pytest.raises(LedgerError, match="does not match its checksum"):
        Ledger(path, "patients").spent()


def test_lines_cut_from_the_end_are_seen_by_a_noted_checksum_alone(path):
    """What no checksum in the file can show: it is as it was before, like an old copy."""
    before = path.read_bytes()
    Ledger(path, "patients").charge(Budget(1), method="DPM", plan="plan")
    noted = Ledger.verify(path).checksum
    assert Ledger.verify(path, noted).checksum == noted
    path.write_bytes(before)
    assert Ledger(path, "patients").spent() == Budget(1.5)
    with pytest.raises(LedgerError, match="lines were removed, or it is an old copy"):
        Ledger.verify(path, noted)


def test_a_noted_checksum_holds_while_lines_are_added(path):
    first = Ledger.verify(path)
    Ledger(path, "patients").charge(Budget(1), method="DPM", plan="plan")
    second = Ledger.verify(path, first.checksum)
    assert second.n_lines == first.n_lines + 1
    assert second.checksum != first.checksum
