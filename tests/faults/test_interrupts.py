"""Ctrl-C before operations on files: it ends the command, and leaves no part of a file behind."""

import pytest
from tests.faults.kills import CHARGED, FIT, FIT_AND_REPORT, N_KILLS, Disk, spread
from tests.faults.warm import Fault

from sfumato import report
from sfumato.release import write_whole

INTERRUPTED = 130


@pytest.mark.usefixtures("ledger")
def test_an_interrupted_fit_leaves_no_temporary_file(warm, tmp_path, n_events):
    disk = Disk.of(tmp_path)
    for event in spread(n_events, max(5, N_KILLS // 10)):
        done = warm.run(tmp_path, *FIT_AND_REPORT, fault=Fault("interrupt", at=event))
        assert done.code == INTERRUPTED, done.said
        assert "Traceback" not in done.said
        before, disk = disk, Disk.of(tmp_path)
        disk.check_after(before)
        assert disk.left_over == set()


@pytest.mark.parametrize("name", ["release.json", "report.html"])
def test_an_interrupt_while_a_file_is_written(warm, tmp_path, ledger, name):
    done = warm.run(tmp_path, *FIT, *CHARGED, "--report", "report.html", fault=Fault("interrupt", at=name))
    assert done.code == INTERRUPTED, done.said
    disk = Disk.of(tmp_path)
    assert [charge.outcome for charge in disk.history] == ["released"]
    assert (disk.release is None) == (name == "release.json")
    assert disk.report is None
    assert disk.left_over == set()


def test_an_interrupted_page_keeps_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_whole(path, "old")
    monkeypatch.setattr(report, "render", lambda _: "new")
    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        report.write(None, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def interrupt(_):
    raise KeyboardInterrupt
