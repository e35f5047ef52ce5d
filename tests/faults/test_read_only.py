"""Folders that cannot be written are refused before anything is spent, ledgers before a row is read."""

import pytest
from tests.faults.kills import CHARGED, FIT, Disk

from sfumato import Ledger


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_place_that_cannot_be_written_costs_nothing(warm, tmp_path, ledger, archive, option):
    done = warm.run(tmp_path, *FIT, *CHARGED, option, archive / "file")
    assert done.code == 2, done.said
    assert "must be in a folder that can be written, got: Read-only file system" in done.said
    assert Disk.of(tmp_path).left_over == {"archive"}
    assert ledger.history() == []


def test_a_ledger_that_cannot_be_written_is_refused_before_rows_are_read(warm, tmp_path, ledger, archive):
    copy = archive / "budget.db"
    copy.write_bytes(ledger.path.read_bytes())
    (tmp_path / "table.csv").write_text("x\n0.5\nnan\n")  # not usable, as whoever reads it will say
    done = warm.run(tmp_path, *FIT, "--no-check", "--dataset", "people", "--ledger", copy)
    assert done.code == 5, done.said
    assert f"{copy} is read-only" in done.said
    assert Ledger(copy, "people").history() == []
    assert warm.run(tmp_path, *FIT, *CHARGED).code == 3
