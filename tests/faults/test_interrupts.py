"""Ctrl-C or SIGTERM before operations on files: it ends the command, and leaves no part of a file behind."""

import pytest
from tests.faults.kills import CHARGED, FIT, FIT_AND_REPORT, N_KILLS, Disk, spread
from tests.faults.warm import Fault

from sfumato import report
from sfumato.release import write_whole

CODES = {"interrupt": 130, "terminate": 143}


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("signal", CODES)
def test_an_interrupted_fit_leaves_no_temporary_file(warm, tmp_path, n_events, signal):
    disk = Disk.of(tmp_path)
    for event in spread(n_events, max(5, N_KILLS // 10)):
        done = warm.run(tmp_path, *FIT_AND_REPORT, fault=Fault(signal, at=event))
        assert done.code == CODES[signal], done.said
        assert "Traceback" not in done.said
        before, disk = disk, Disk.of(tmp_path)
        disk.check_after(before)
        assert disk.left_over == set()
        is_charged = len(disk.history) > len(before.history)
        assert ("epsilon=1" in done.said) >= is_charged, done.said


@pytest.mark.parametrize("signal", CODES)
@pytest.mark.parametrize(
    ("name", "place"),
    [("release.json", "may not be in release.json"), ("report.html", "is in release.json")],
)
def test_an_interrupt_while_a_file_is_written(warm, tmp_path, ledger, name, place, signal):
    done = warm.run(tmp_path, *FIT, *CHARGED, "--report", "report.html", fault=Fault(signal, at=name))
    assert done.code == CODES[signal], done.said
    said = f"interrupted: epsilon=1 was spent and counts; the release {place}"
    assert said in done.said.splitlines()
    disk = Disk.of(tmp_path)
    assert [charge.outcome for charge in disk.history] == ["released"]
    assert (disk.release is None) == (name == "release.json")
    assert disk.report is None
    assert disk.left_over == set()


def test_an_interrupted_page_keeps_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_whole(path, "old")
    monkeypatch.setattr(report, "render", lambda *_: "new")
    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        report.write(None, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def interrupt(_):
    raise KeyboardInterrupt
