"""Count the cases that really ran, over all workers, and say so."""

import tempfile
from pathlib import Path

import pytest
from tests.fuzz import cases

_COUNTED = "fuzz cases"
_n_completed = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def count_cases(record_property):
    cases.completed = 0
    yield
    record_property(_COUNTED, cases.completed)


@pytest.fixture(autouse=True, scope="session")
def limited_memory():
    if cases.TOTAL:
        cases.limit_memory()


@pytest.fixture(autouse=True, scope="session")
def files_in_memory():
    """Files are tiny here, and many: a disk would be waited for, and a ledger waits for it on purpose."""
    with pytest.MonkeyPatch.context() as patch:
        if Path("/dev/shm").is_dir():
            patch.setattr(tempfile, "tempdir", "/dev/shm")
        yield


class Progress:
    """Prints where a long run is; told by the reports of workers."""

    def __init__(self):
        self.n_completed = 0

    def pytest_runtest_logreport(self, report):
        if report.when == "teardown" and report.passed:
            self.n_completed += dict(report.user_properties).get(_COUNTED, 0)
            print(f"\n{report.nodeid}: {self.n_completed} of {cases.TOTAL} cases", flush=True)


def pytest_configure(config):
    if cases.TOTAL and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(), "fuzz progress")


def pytest_sessionfinish(session, exitstatus):
    progress = session.config.pluginmanager.get_plugin("fuzz progress")
    if progress:
        session.config.stash[_n_completed] = progress.n_completed if exitstatus == 0 else 0


def pytest_unconfigure(config):
    if n := config.stash.get(_n_completed, 0):
        print(f"{n} cases ran, none with an unexpected outcome")
