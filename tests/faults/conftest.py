"""A warm process for all tests of faults, and folders on disks that are full or cannot be written."""

import os

import pytest

if not hasattr(os, "fork"):
    collect_ignore_glob = ["*"]


@pytest.fixture(scope="session")
def warm():
    from tests.faults.warm import Warm

    with Warm() as process:
        yield process


@pytest.fixture(scope="session")
def n_events(warm, tmp_path_factory):
    """Operations on files, and statements of SQLite, of a fit with a report."""
    from tests.faults.kills import FIT_AND_REPORT, make_world

    folder = tmp_path_factory.mktemp("whole")
    make_world(folder)
    return warm.run(folder, *FIT_AND_REPORT).n_events


@pytest.fixture
def ledger(tmp_path):
    """A ledger beside a table."""
    from tests.faults.kills import make_world

    return make_world(tmp_path)


@pytest.fixture
def small_disk(warm, tmp_path):
    """A folder that is, for commands, on a disk of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not warm.may_mount or not warm.mount("-t", "tmpfs", "-o", "size=4m", "none", folder):
        pytest.skip("may not mount")
    return folder


@pytest.fixture
def archive(warm, tmp_path):
    """A folder that commands cannot write to. File modes would not bind the superuser."""
    folder = tmp_path / "archive"
    folder.mkdir()
    options = ("--bind", folder, folder), ("-o", "remount,bind,ro", folder, folder)
    if not warm.may_mount or not all(warm.mount(*option) for option in options):
        pytest.skip("may not mount")
    return folder
