"""The name of a file is put on disk after its content, where the system can do that."""

import errno
import os
import stat
from pathlib import Path

import pytest

from sfumato.release import write_whole


@pytest.fixture
def events(monkeypatch):
    """Syncs and renames, in their order."""
    seen, fsync, replace = [], os.fsync, Path.replace

    def watched_fsync(file):
        status = os.fstat(file)
        seen.append(("folder" if stat.S_ISDIR(status.st_mode) else "file", status.st_ino))
        fsync(file)

    def watched_replace(path, target):
        seen.append(("rename", path.stat().st_ino))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    return seen


def test_the_folder_is_synced_after_the_rename(tmp_path, events):
    path = write_whole(tmp_path / "release.json", "text")
    file, folder = path.stat().st_ino, tmp_path.stat().st_ino
    assert events == [("file", file), ("rename", file), ("folder", folder)]


def test_the_current_folder_is_synced_for_a_bare_name(tmp_path, events, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_whole("release.json", "text")
    assert events[-1] == ("folder", tmp_path.stat().st_ino)


def open_files(monkeypatch):
    """Descriptors that are still open: a dictionary that `os.open` and `os.close` keep."""
    held, opened, closed = {}, os.open, os.close

    def watched_open(path, *rest):
        file = opened(path, *rest)
        held[file] = path
        return file

    def watched_close(file):
        held.pop(file, None)
        closed(file)

    monkeypatch.setattr(os, "open", watched_open)
    monkeypatch.setattr(os, "close", watched_close)
    return held


def failing(monkeypatch, name, code):
    """Let an operation on folders fail, and on files work."""
    real = getattr(os, name)

    def fail(what, *rest):
        if os.path.isdir(what):  # noqa: PTH112 (of a path or a descriptor)
            raise OSError(code, os.strerror(code))
        return real(what, *rest)

    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EISDIR, errno.EPERM])
def test_a_system_that_cannot_open_folders_writes_all_the_same(tmp_path, monkeypatch, code):
    failing(monkeypatch, "open", code)
    assert write_whole(tmp_path / "release.json", "text").read_text() == "text"
    assert [path.name for path in tmp_path.iterdir()] == ["release.json"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EBADF])
def test_a_file_system_that_cannot_sync_folders_writes_all_the_same(tmp_path, monkeypatch, code):
    held = open_files(monkeypatch)
    failing(monkeypatch, "fsync", code)
    assert write_whole(tmp_path / "release.json", "text").read_text() == "text"
    assert held == {}


def test_a_disk_that_fails_is_reported(tmp_path, monkeypatch):
    """The file has its name by then, but nobody knows for how long."""
    held = open_files(monkeypatch)
    failing(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(OSError, match="error") as caught:
        write_whole(tmp_path / "release.json", "text")
    assert caught.value.filename == str(tmp_path / "release.json")
    assert held == {}
    assert [path.name for path in tmp_path.iterdir()] == ["release.json"]
