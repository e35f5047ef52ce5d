"""Commands that something happens to, at the price of a fork each.

Run as a script, this is a process that has loaded and compiled what `sfumato fit` needs. It has no threads,
and forks a process for each command that it is sent. `Warm` starts it and talks to it.
"""

import contextlib
import io
import json
import mmap
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

TIMEOUT = 120
UNEXPECTED = 99
FEW_BYTES = 1000  # enough for messages, and less than a page of a ledger, a release or a report
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
FILE_EVENTS = {"open", "os.chmod", "os.remove", "os.rename", "sqlite3.connect"}


@dataclass(frozen=True)
class Fault:
    """What happens to a command, and when.

    Attributes
    ----------
    kind : {"none", "kill", "interrupt", "terminate", "limit", "cut", "fill"}
        A signal, files that cannot grow any more, death in the middle of the next long write, or a disk that
        is full from now on.
    after : float, optional
        Seconds until a signal.
    at : int or str, optional
        Before the event of this number, or before the first operation on a file whose path has this part.
    """

    kind: str = "none"
    after: float | None = None
    at: int | str | None = None


NO_FAULT = Fault()


class Done(NamedTuple):
    """How a command ended: its exit code, or less than 0 if a signal ended it; and what it said."""

    code: int
    said: str
    seconds: float
    n_events: int

    @property
    def killed(self):
        return self.code == -signal.SIGKILL


class Warm:
    """A warm process, in a mount namespace of its own where that is allowed, until the block is left."""

    def __enter__(self):
        command = [sys.executable, "-m", "tests.faults.warm"]
        apart = ["unshare", "--mount"]
        self.may_mount = bool(shutil.which("unshare")) and not subprocess.call([*apart, "true"])
        self._process = subprocess.Popen(
            [*apart, *command] if self.may_mount else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            text=True,
        )
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(TIMEOUT)
        self._process.stdout.close()

    def run(self, folder, *arguments, fault=NO_FAULT):
        """Run one command in a folder."""
        return self.run_together(folder, arguments, fault=fault)[0]

    def run_together(self, folder, *commands, fault=NO_FAULT):
        """Run several commands at once in a folder."""
        words = [[str(word) for word in command] for command in commands]
        return [Done(*done) for done in self._ask(folder=str(folder), commands=words, fault=asdict(fault))]

    def mount(self, *options):
        """Mount something that only the warm process and its commands see."""
        return self._ask(mount=[str(option) for option in options]) == 0

    def seen(self, path):
        """Where this process finds what commands find at a path. SQLite does not understand such names."""
        return Path(f"/proc/{self._process.pid}/root{path}")

    def _ask(self, **request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def serve():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warm_up()
    for line in sys.stdin:
        request = json.loads(line)
        if "mount" in request:
            answer = subprocess.run(["mount", *request["mount"]]).returncode
        else:
            fault = Fault(**request["fault"])
            started = [start(request["folder"], words, fault) for words in request["commands"]]
            answer = [finish(*process, fault) for process in started]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def warm_up():
    """Load and compile, without Arrow's threads: a process that forks should have none."""
    import numpy as np
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    from sfumato import DPDBSCAN, report
    from sfumato.cli.app import app

    rows = np.random.default_rng(0).uniform(-1, 1, (3000, 1))
    report.render(DPDBSCAN(0.2, 200, bounds=(-1, 1)).fit(rows).release_)
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        app(
            ["plan", "--method", "lloyd-kmeans", "--clusters", "3", "--epsilon", "1", "--columns-number", "2"]
        )
    assert threading.active_count() == 1


def start(folder, words, fault):
    said = tempfile.TemporaryFile()  # noqa: SIM115, `finish` closes it
    count, began = mmap.mmap(-1, 8), time.monotonic()
    child = os.fork()
    if not child:
        try:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os.chdir(folder)
            signal.alarm(TIMEOUT)  # a command that hangs fails its test
            watch_events(fault, count)
            run_command(words)
        except BaseException:
            traceback.print_exc()
        os._exit(UNEXPECTED)
    return child, said, count, began


def run_command(words):
    from sfumato.cli.app import app

    try:
        app(words, prog_name="sfumato")
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)


def finish(child, said, count, began, fault):
    if fault.after is not None:
        time.sleep(max(0.0, began + fault.after - time.monotonic()))
        os.kill(child, SIGNALS[fault.kind])
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - began
    said.seek(0)
    with said, count:
        code, n_events = os.waitstatus_to_exitcode(status), int.from_bytes(count[:], "little")
        return code, said.read().decode(), seconds, n_events


def watch_events(fault, count):
    """Count operations on files of this folder and statements of SQLite. Strike before one is carried out."""
    folder = str(Path.cwd())

    def event(what=""):
        number = int.from_bytes(count[:], "little")
        count[:] = (number + 1).to_bytes(8, "little")
        if fault.at == number or (isinstance(fault.at, str) and fault.at in what):
            strike(fault.kind, Path(what).parent)

    def hear(name, arguments):
        path = os.path.abspath(str(arguments[0])) if name in FILE_EVENTS else ""  # noqa: PTH100
        if path.startswith(folder):
            event(path)

    class Watched(sqlite3.Connection):
        def execute(self, *statement):
            event()
            return super().execute(*statement)

    connect, fsync = sqlite3.connect, os.fsync
    sqlite3.connect = lambda *arguments, **options: connect(*arguments, factory=Watched, **options)
    os.fsync = lambda file: (event(), fsync(file))[1]
    sys.addaudithook(hear)


def strike(kind, folder):
    if kind in SIGNALS:
        os.kill(os.getpid(), SIGNALS[kind])
    elif kind in ("limit", "cut"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if kind == "limit" else signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FEW_BYTES, resource.RLIM_INFINITY))
    elif kind == "fill":
        fill(folder)


def fill(folder):
    """Leave no room on the disk of a folder."""
    with contextlib.suppress(OSError), Path(folder, "filler").open("ab", buffering=0) as file:
        while True:
            file.write(bytes(512))


if __name__ == "__main__":
    serve()
    os._exit(0)
