"""Runs tests on a copy of the library in which one piece of text is replaced.

Each run has a process of its own, forked from a server that has imported everything but sfumato. An import
hook compiles the altered text in place of the module, under its own file name, so that compiled kernels come
from their cache and nothing is written.
"""

import multiprocessing
import os
import sys
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ["dp_accounting.pld.privacy_loss_distribution", "dp_accounting.rdp", "joblib", "numba", "pandas"]
HEAVY += ["polars", "pyarrow.dataset", "pytest", "scipy.signal", "scipy.stats", "sklearn.cluster"]
HEAVY += ["sklearn.utils.estimator_checks", "sqlite3", "threadpoolctl"]
OPTIONS = ["-q", "--tb=no", f"--rootdir={ROOT}"]
OPTIONS += [f"-pno:{plugin}" for plugin in ("cacheprovider", "hypothesispytest", "xdist", "xdist.looponfail")]


@dataclass(frozen=True)
class Mutant:
    """One way to break the library, and the tests that should see it.

    `module` is the name below sfumato of the module in which `old` occurs once and becomes `new`. Each of
    `killers` is the name of a test below the folder of tests.
    """

    name: str
    module: str
    old: str
    new: str
    killers: tuple[str, ...]

    @property
    def path(self):
        return ROOT / "src" / "sfumato" / f"{self.module.replace('.', '/')}.py"

    def source(self):
        """The altered text, with every line in its place: a kernel's cache goes by its line."""
        text = self.path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.path} must hold once: {self.old}"
        assert self.old.count("\n") == self.new.count("\n"), f"as many lines must come as go: {self.new}"
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Failure:
    """A test that failed; `by_design` if by an assertion or by an error of the library's own."""

    test: str
    error: str
    by_design: bool


class Altered(SourceFileLoader, MetaPathFinder):
    """Finds one module only, and loads its altered text."""

    def __init__(self, mutant):
        super().__init__(f"sfumato.{mutant.module}", str(mutant.path))
        self.code = compile(mutant.source(), self.path, "exec")

    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, name):
        return self.code


class Witness:
    """Notes which tests passed and how the others failed."""

    def __init__(self):
        self.passed, self.failures = [], []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.failed:
            from sfumato.errors import SfumatoError

            designed = (AssertionError, pytest.fail.Exception, SfumatoError)
            by_design = issubclass(call.excinfo.type, designed)
            self.failures.append(Failure(item.nodeid, call.excinfo.exconly(), by_design))
        elif report.when == "call" and report.passed:
            self.passed.append(item.nodeid)
        return report


def examine(tests, mutant=None):
    """Run tests, up to the first failure of a mutant. Returns those that passed, and the failures."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(HEAVY)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sender, tests, mutant))
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"no result, exit code {process.exitcode}: {tests}") from None
    finally:
        process.join()
        receiver.close()


def _run(sender, tests, mutant):
    os.environ.pop("PYTEST_ADDOPTS", None)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    assert "sfumato" not in sys.modules, "the library must be imported after it is altered"
    if mutant is not None:
        sys.meta_path.insert(0, Altered(mutant))
    witness = Witness()
    stop = ["-x"] if mutant is not None else []
    os.chdir(ROOT)
    code = pytest.main([*OPTIONS, *stop, *(f"tests/{test}" for test in tests)], plugins=[witness])
    if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        sender.send((witness.passed, witness.failures))
    sender.close()
