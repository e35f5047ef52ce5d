"""Disks without room: what is refused before it costs anything, what is kept, and what is said."""

import errno
import json
import re
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.faults.kills import CHARGED, FIT, FIT_AND_REPORT, FIT_ONLY, N_KILLS, PRICE, Disk, spread
from tests.faults.warm import FEW_BYTES, Fault, fill

from sfumato import Budget, Ledger, LloydKMeans, Release
from sfumato.curator import open_table, run
from sfumato.domain import Unit
from sfumato.errors import LedgerError, LedgerWarning
from sfumato.release import whole_file, write_whole

REFUSED, LEDGER, RELEASE = 2, 5, 6


def check_line(done, code, *words):
    (line,) = [line for line in done.said.splitlines() if line.startswith("error: ")]
    assert done.code == code, done.said
    assert all(word in line for word in words), line
    return line


def test_a_full_disk_is_refused_before_anything_is_spent(warm, small_disk, tmp_path, ledger):
    fill(warm.seen(small_disk))
    for option in ("--out", "--report"):
        done = warm.run(tmp_path, *FIT, *CHARGED, option, small_disk / "file")
        check_line(done, REFUSED, "file must be in a folder that can be written", "No space left on device")
    assert ledger.history() == []


@pytest.mark.usefixtures("ledger")
def test_files_that_cannot_grow_from_any_moment_on(warm, tmp_path, n_events):
    disk = Disk.of(tmp_path)
    for event in spread(n_events, max(5, N_KILLS // 10)):
        done = warm.run(tmp_path, *FIT_AND_REPORT, fault=Fault("limit", at=event))
        before, disk = disk, Disk.of(tmp_path)
        disk.check_after(before)
        assert disk.left_over == set()
        assert done.code in (0, REFUSED, LEDGER, RELEASE), done.said
        assert done.said.count("\n") == (done.code != 0) + ("stays open" in done.said)


def test_a_release_without_room_is_kept_elsewhere(warm, small_disk, tmp_path, ledger):
    to_disk = ["--out", small_disk / "release.json"]
    done = warm.run(tmp_path, *FIT, *CHARGED, "--quiet", *to_disk, fault=Fault("fill", at="release.json"))
    line = check_line(done, RELEASE, "release.json could not be written: No space left on device", "is spent")
    kept = Path(re.search(r"the release is in (\S+): move it", line)[1])
    assert Release.load(kept).privacy.spent == ledger.spent() == PRICE
    kept.unlink()
    assert [path.name for path in warm.seen(small_disk).iterdir()] == ["filler"]


def test_a_release_without_room_anywhere(warm, tmp_path, ledger):
    done = warm.run(tmp_path, *FIT_ONLY, fault=Fault("limit", at="release.json"))
    check_line(done, RELEASE, "release.json could not be written: File too large", "spent", "release is lost")
    assert len(ledger.history()) == 1
    assert Disk.of(tmp_path).left_over == set()


def test_a_report_without_room_costs_nothing_more(warm, tmp_path, ledger):
    done = warm.run(tmp_path, *FIT_AND_REPORT, fault=Fault("limit", at="report.html"))
    check_line(done, RELEASE, "report.html could not be written: File too large", "report release.json`")
    assert warm.run(tmp_path, "report", "release.json").code == 0
    disk = Disk.of(tmp_path)
    assert disk.checksum in disk.report
    assert disk.left_over == set()
    assert ledger.spent() == PRICE


def test_an_outcome_that_cannot_be_noted_costs_no_release(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "ledger.db", "visits", Budget(2), allow_seeded=True)

    def full(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Ledger, "settle", full)
    rows = np.full((20, 2), 0.5)
    model = LloydKMeans(2, epsilon=1.0, bounds=(0, 1), ledger=ledger, random_state=0)
    with pytest.warns(LedgerWarning, match="charge 1 counts but stays open: the disk is full"):
        release = model.fit(rows).release_
    assert ledger.spent() == release.privacy.spent
    with pytest.raises(ZeroDivisionError):  # the first error is told, not the second
        run(
            open_table(rows, (0, 1), Unit()),
            model.plan(2),
            lambda _: 1 / 0,
            method="own",
            ledger=ledger,
            seed=0,
        )
    assert [charge.outcome for charge in ledger.history()] == ["open", "open"]


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_labels_without_room_leave_no_file(warm, tmp_path, name):
    warm.run(tmp_path, *FIT_ONLY)
    predict = ["predict", "release.json", "table.csv", "--keep", "x", "--out", name]
    done = warm.run(tmp_path, *predict, fault=Fault("limit", at=name))
    check_line(done, 70, f"{name}: File too large")
    assert Disk.of(tmp_path).left_over == set()


@pytest.mark.usefixtures("ledger")
def test_a_ledger_without_room_charges_nothing(warm, small_disk, tmp_path):
    for name in ("budget.db", "table.csv"):
        (warm.seen(small_disk) / name).write_bytes((tmp_path / name).read_bytes())
    fill(warm.seen(small_disk))
    fit = [*FIT, *CHARGED, "--quiet", "--out", tmp_path / "release.json"]
    check_line(warm.run(small_disk, *fit), LEDGER, "budget.db could not be written", "the disk is full")
    new = warm.run(small_disk, "ledger", "create", "new.db", "people", "--epsilon", 1)
    check_line(new, LEDGER, "new.db could not be written", "the disk is full")
    (warm.seen(small_disk) / "filler").unlink()
    assert warm.run(small_disk, *fit).code == 0
    (charge,) = json.loads(warm.run(small_disk, "ledger", "history", "budget.db", "people", "--json").said)
    assert (charge["charge"], charge["outcome"]) == ("1", "released")


@contextmanager
def small_files():
    """This process may write only a few bytes to a file, and pytest none of its own."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FEW_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_error_names_the_file_and_keeps_the_old_one(tmp_path):
    path = tmp_path / "release.json"
    write_whole(path, "old")
    with pytest.raises(OSError, match="File too large") as caught, small_files():
        write_whole(path, "new" * FEW_BYTES)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_devices_are_not_replaced():
    with pytest.raises(OSError, match="Not a file"), whole_file("/dev/full"):
        pass
    assert Path("/dev/full").is_char_device()
