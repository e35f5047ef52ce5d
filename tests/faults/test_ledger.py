"""Faults: killed writers, racing writers, locks, and files that are no ledger.

Run as a script, this file is the process that forks the writers and kills them. It is small, so that
hundreds of forks are cheap, and none of pytest's processes, which may have threads.
"""

import importlib.util
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
import types
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

if __name__ == "__main__":
    # The writers need the ledger: skip what the packages around it import.
    for package in ("sfumato", "sfumato.budget"):
        found = importlib.util.find_spec(package)
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = found.submodule_search_locations

from sfumato.budget.amounts import Budget
from sfumato.budget.ledger import Ledger
from sfumato.errors import BudgetExceededError, LedgerError

N_KILLS = max(24, int(os.environ.get("SFUMATO_KILLS", "0")))
N_AT_ONCE = 4
N_RACERS = 8
SPEND = Budget(0.01)

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def attempt(ledger):
    return ledger.charge(SPEND, method="DPM", plan={"rows": 1})


def release(path, number):
    """Publish something, durably: one short line in a file."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{number}\n".encode())
    os.fsync(file)
    os.close(file)


def work_until_killed(ledger, released):
    while True:
        try:
            number = attempt(ledger)
        except BudgetExceededError:
            continue
        release(released, number)
        ledger.settle(number, "released")


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def kill_writers(ledger, released):
    """Kill N_KILLS writers at random moments, several of them alive at a time. Count the kills that hit."""
    kills, moments = 0, random.Random(0)
    while kills < N_KILLS:
        n_writers = min(N_AT_ONCE, N_KILLS - kills)
        writers = [forked(lambda: work_until_killed(ledger, released)) for _ in range(n_writers)]
        for writer in writers:
            time.sleep(moments.uniform(0, 0.08))
            os.kill(writer, signal.SIGKILL)
            _, status = os.waitpid(writer, 0)
            kills += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"kills": kills}


class Mortal(sqlite3.Connection):
    """A connection whose process dies instead of executing one more statement than it may."""

    lives = 0

    def execute(self, *statement):
        if not Mortal.lives:
            os.kill(os.getpid(), signal.SIGKILL)
        Mortal.lives -= 1
        return super().execute(*statement)


def die_at_every_statement(ledger, released):
    """Charge in processes that die at the first statement, at the second, and so on until one survives."""
    connect, deaths, died = sqlite3.connect, 0, True
    sqlite3.connect = lambda *args, **keywords: connect(*args, factory=Mortal, **keywords)
    while died:
        Mortal.lives = deaths
        _, status = os.waitpid(forked(lambda: release(released, attempt(ledger))), 0)
        died = os.WIFSIGNALED(status)
        deaths += died
    assert status == 0
    return {"deaths": deaths}


def leave_hot_journal(ledger, released):
    """Die with half of a large transaction in the file, and the way back in its journal."""

    def spill_and_die():
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("BEGIN IMMEDIATE")
            for _ in range(200):
                connection.execute(
                    "INSERT INTO charge (dataset, time, method, plan, seeded, epsilon) "
                    "VALUES (1, '', '', hex(randomblob(2000)), 0, '1/1000')"
                )
            os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(forked(spill_and_die), 0)
    return {"journal": Path(f"{ledger.path}-journal").stat().st_size, "size": ledger.path.stat().st_size}


def race(ledger, released):
    """Let N_RACERS processes charge until each is refused, from the same moment on."""
    start, go = os.pipe()

    def run():
        os.close(go)
        os.read(start, 1)
        try:
            while True:
                release(released, attempt(ledger))
        except BudgetExceededError:
            os._exit(7)

    racers = [forked(run) for _ in range(N_RACERS)]
    os.close(go)
    statuses = [os.waitpid(racer, 0)[1] for racer in racers]
    return {"refused": sum(os.waitstatus_to_exitcode(status) == 7 for status in statuses)}


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (kill_writers, die_at_every_statement, leave_hot_journal, race)
}


def run_scenario(scenario, ledger, released):
    command = [sys.executable, __file__, scenario.__name__, str(ledger.path), str(released)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def numbers_in(released):
    return [int(line) for line in released.read_text().split()] if released.exists() else []


def make_old(path):
    """A ledger as the first version wrote it, without checksums."""
    old = Path(__file__).parents[1] / "budget" / "ledger_version_1.sql"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(old.read_text("utf-8"))


def integrity(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def released(tmp_path):
    return tmp_path / "released.txt"


@needs_fork
def test_killed_writers_never_release_what_was_not_charged(path, released):
    ledger = Ledger.create(path, "patients", Budget(2))
    assert run_scenario(kill_writers, ledger, released)["kills"] == N_KILLS

    history, numbers = ledger.history(), numbers_in(released)
    assert len(numbers) == len(set(numbers))
    assert set(numbers) <= {charge.id for charge in history}
    assert {charge.id for charge in history if charge.outcome == "released"} <= set(numbers)
    assert ledger.spent().epsilon == len(history) * SPEND.epsilon
    assert len(numbers) * SPEND.epsilon <= ledger.spent().epsilon <= ledger.total().epsilon
    assert integrity(path) == [("ok",)]
    assert ledger.remaining() == ledger.total() - ledger.spent()


@needs_fork
def test_a_writer_may_die_at_any_statement(path, released):
    ledger = Ledger.create(path, "patients", Budget(1))
    assert run_scenario(die_at_every_statement, ledger, released)["deaths"] > 8
    assert numbers_in(released) == [charge.id for charge in ledger.history()]
    assert ledger.spent() == SPEND
    assert integrity(path) == [("ok",)]


@needs_fork
def test_a_writer_may_die_while_it_brings_an_old_file_up_to_date(path, released):
    make_old(path)
    ledger = Ledger(path, "patients")
    before = ledger.history()
    assert run_scenario(die_at_every_statement, ledger, released)["deaths"] > 40
    *old, new = ledger.history()
    assert old == before
    assert numbers_in(released) == [new.id]
    assert Ledger.verify(path).n_lines == 11
    assert integrity(path) == [("ok",)]


@needs_fork
def test_racing_writers_bring_an_old_file_up_to_date_once(path, released):
    make_old(path)
    ledger = Ledger(path, "patients")
    assert run_scenario(race, ledger, released)["refused"] == N_RACERS
    assert ledger.spent().epsilon == Fraction(5, 6) + 216 * SPEND.epsilon
    assert len(ledger.history()) == 2 + 216
    assert Ledger.verify(path).n_lines == 10 + 216


@needs_fork
def test_a_half_written_charge_is_rolled_back(path, released):
    ledger = Ledger.create(path, "patients", Budget(1))
    attempt(ledger)
    before = path.stat().st_size
    wreck = run_scenario(leave_hot_journal, ledger, released)
    assert wreck["journal"] > 0
    assert wreck["size"] > before
    assert ledger.spent() == SPEND
    attempt(ledger)
    assert ledger.spent() == SPEND + SPEND
    assert integrity(path) == [("ok",)]


@needs_fork
def test_racing_writers_get_exactly_what_fits(path, released):
    ledger = Ledger.create(path, "patients", Budget("0.405"))
    assert run_scenario(race, ledger, released)["refused"] == N_RACERS
    assert sorted(numbers_in(released)) == [charge.id for charge in ledger.history()]
    assert ledger.spent() == Budget("0.40")
    assert ledger.remaining().epsilon == Fraction(5, 1000)
    assert integrity(path) == [("ok",)]


@pytest.fixture
def ledger(path):
    return Ledger.create(path, "patients", Budget(1), timeout=0.05)


def every_call(ledger):
    return [
        lambda: attempt(ledger),
        lambda: ledger.settle(1, "released"),
        ledger.close,
        ledger.is_closed,
        ledger.total,
        ledger.spent,
        ledger.remaining,
        ledger.history,
        ledger.unit,
        ledger.parts,
        lambda: ledger.plan(2),
        lambda: Ledger.verify(ledger.path, timeout=ledger.timeout),
        lambda: Ledger.datasets(ledger.path, timeout=ledger.timeout),
        lambda: Ledger.create(ledger.path, "visits", Budget(1), timeout=ledger.timeout),
    ]


def assert_refused(call, *words):
    with pytest.raises(LedgerError) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert message.count(". ") <= 1


def test_a_locked_ledger_names_path_and_timeout(ledger, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        for call in every_call(ledger):
            assert_refused(call, str(path), "locked", "timeout=0.05")
    assert ledger.history() == []


def test_readers_wait_for_no_writer_that_has_not_committed(ledger, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert ledger.remaining() == Budget(1)
        assert_refused(lambda: attempt(ledger), "locked")


def test_a_commit_that_a_reader_blocks_charges_nothing(ledger, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM dataset").fetchall()
        assert_refused(lambda: attempt(ledger), "locked")
    assert ledger.history() == []
    attempt(ledger)


def test_a_missing_file_is_not_created(path):
    for call in every_call(Ledger(path, "patients"))[:-1]:
        assert_refused(call, str(path), "no ledger", "Ledger.create")
    assert not path.exists()


def test_a_folder_is_no_ledger(tmp_path):
    for call in every_call(Ledger(tmp_path, "patients")):
        assert_refused(call, str(tmp_path), "folder", "file name")


def test_a_path_below_a_file_or_in_no_folder_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in ("file", "missing"):
        for call in every_call(Ledger(tmp_path / folder / "ledger.db", "patients")):
            assert_refused(call, str(tmp_path / folder), "Create the folder")


def test_a_name_that_no_disk_takes(tmp_path):
    assert_refused(Ledger(tmp_path / ("x" * 300), "patients").spent, "cannot be opened")


def test_a_file_that_is_no_database_is_left_alone(path):
    path.write_text("name,age\nAda,36\n" * 100)
    for call in every_call(Ledger(path, "patients")):
        assert_refused(call, str(path), "not a SQLite database")
    assert path.read_text().startswith("name,age")


def test_a_database_of_something_else_is_left_alone(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE dataset (name TEXT)")
    for call in every_call(Ledger(path, "patients")):
        assert_refused(call, str(path), "not a sfumato ledger")


def test_an_empty_file_becomes_a_ledger_by_create_alone(path):
    path.touch()
    assert_refused(Ledger(path, "patients").spent, "not a sfumato ledger")
    assert Ledger.create(path, "patients", Budget(1)).total() == Budget(1)


def test_a_newer_schema_asks_for_an_upgrade(ledger, path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
    for call in every_call(ledger):
        assert_refused(call, str(path), "schema version 9", "Upgrade sfumato")


def test_an_unknown_data_set_lists_the_known_ones(ledger, path):
    Ledger.create(path, "visits", Budget(1))
    for call in every_call(Ledger(path, "patient"))[:-3]:
        assert_refused(call, "'patient'", "'patients', 'visits'", "Ledger.create")


def test_a_read_only_ledger_can_be_read(ledger, path, monkeypatch):
    attempt(ledger)
    before, connect = ledger.history(), sqlite3.connect

    def connect_read_only(address, **keywords):
        return connect(address.partition("?")[0] + "?mode=ro", **keywords)

    # Not by file modes, which do not bind the superuser.
    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    assert ledger.remaining() == Budget("0.99")
    for call in (lambda: attempt(ledger), lambda: ledger.settle(1, "failed"), ledger.close):
        assert_refused(call, str(path), "read-only")
    assert ledger.history() == before


def test_a_damaged_ledger_is_reported(ledger, path):
    for _ in range(50):
        attempt(ledger)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    assert_refused(ledger.spent, str(path), "damaged", "Restore a backup")


def test_a_charge_by_another_program_is_reported(ledger, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "INSERT INTO charge (dataset, time, method, plan, seeded, epsilon) VALUES (1, '', '', '', 0, 'x')"
        )
    for call in every_call(ledger):
        assert_refused(call, str(path), "line 'charge 1' has no checksum", "Restore a backup")


def test_a_full_disk_charges_nothing(ledger, monkeypatch):
    connect = sqlite3.connect

    class Full(sqlite3.Connection):
        def execute(self, statement, *args):
            if statement == "COMMIT":
                super().execute("PRAGMA max_page_count = 1")
                super().execute("CREATE TABLE filler AS SELECT hex(randomblob(100000)) AS x")
            return super().execute(statement, *args)

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kw: connect(*args, factory=Full, **kw))
    assert_refused(lambda: attempt(ledger), "disk is full")
    monkeypatch.undo()
    assert ledger.history() == []


def test_an_interrupted_charge_charges_nothing(ledger, monkeypatch):
    monkeypatch.setattr("sfumato.budget.ledger._now", interrupt)
    with pytest.raises(KeyboardInterrupt):
        attempt(ledger)
    monkeypatch.undo()
    assert ledger.history() == []
    attempt(ledger)


def interrupt():
    raise KeyboardInterrupt


JUMPS = [
    datetime(2026, 5, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2026, 5, 1, tzinfo=UTC),
]


def test_clocks_may_jump(ledger, monkeypatch):
    class Clock:
        def now(self, _):
            return times.pop(0)

    times = [time for time in JUMPS for _ in ("charged", "settled")]
    monkeypatch.setattr("sfumato.budget.ledger.datetime", Clock())
    numbers = [attempt(ledger) for _ in JUMPS]
    for number in reversed(numbers):
        ledger.settle(number, "released")
    history = ledger.history()
    assert [charge.id for charge in history] == numbers == sorted(numbers)
    assert [charge.time[:4] for charge in history] == ["2026", "2026", "1970", "1970", "9999"]
    assert {charge.outcome for charge in history} == {"released"}
    assert ledger.spent() == sum((SPEND for _ in JUMPS), Budget.zero("pure"))


def test_times_are_in_utc_wherever_the_machine_is(ledger, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    attempt(ledger)
    monkeypatch.undo()
    time.tzset()
    charged = datetime.fromisoformat(ledger.history()[0].time)
    assert abs(datetime.now(UTC) - charged) < timedelta(hours=1)


if __name__ == "__main__":
    name, ledger_path, side_path = sys.argv[1:]
    sys.stdout.write(json.dumps(SCENARIOS[name](Ledger(ledger_path, "patients"), side_path)))
