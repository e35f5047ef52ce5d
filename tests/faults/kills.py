"""Fits that are killed at operations on files and at random moments, and what is on disk afterwards.

The tests kill a few; ``make faults KILLS=500`` runs this file.
"""

import os
import random
import re
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.faults.warm import Fault, Warm

from sfumato import Budget, Ledger, Release
from sfumato.budget.ledger import Charge

N_KILLS = int(os.environ.get("SFUMATO_KILLS", "20"))
PRICE = Budget(1)
CHARGED = ["--ledger", "budget.db", "--dataset", "people"]
METHOD = ["--method", "dpdbscan", "--set", "radius=0.2", "--set", "min_samples=200"]  # of the quickest
FIT = ["fit", "table.csv", *METHOD, "--epsilon", 1, "--bounds=-1,1"]
FIT_ONLY = (*FIT, *CHARGED, "--force", "--quiet")
FIT_AND_REPORT = (*FIT_ONLY, "--report", "report.html")
LEFT_OVER = re.compile(r"\.(release\.json|report\.html)\.[0-9a-f]{8}\.(json|html)")


def make_world(folder, total=1_000_000):
    """A table and a ledger, in the names of the commands above. A span over all of it would be warned of."""
    rows = np.random.default_rng(0).uniform(-0.2, 0.2, 3000)
    np.savetxt(Path(folder, "table.csv"), rows, header="x", comments="")
    return Ledger.create(Path(folder, "budget.db"), "people", Budget(total))


@dataclass(frozen=True)
class Disk:
    """What is in a folder, all of it whole."""

    history: list[Charge]
    release: Release | None
    report: str | None
    left_over: set[str]

    @classmethod
    def of(cls, folder):
        ledger, release, report = (
            Path(folder, name) for name in ("budget.db", "release.json", "report.html")
        )
        with closing(sqlite3.connect(ledger)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        known = {"table.csv", "budget.db", "budget.db-journal", "release.json", "report.html"}
        found = cls(
            Ledger(ledger, "people").history(),
            Release.load(release) if release.exists() else None,
            report.read_text("utf-8") if report.exists() else None,
            {path.name for path in Path(folder).iterdir()} - known,
        )
        assert found.report is None or found.report.rstrip().endswith("</html>")
        return found

    @property
    def checksum(self):
        return self.release and self.release.checksum()

    def check_after(self, before):
        """Nothing of before is lost, and whatever is published is charged. Returns whether something is."""
        n_old = len(before.history)
        new = self.history[n_old:]
        assert self.history[:n_old] == before.history
        assert len(new) <= 1
        assert all(charge.spend == PRICE for charge in new)
        assert before.release is None or self.release is not None
        assert before.report is None or self.report is not None
        published = self.checksum != before.checksum
        assert not published or [charge.outcome for charge in new] == ["released"]
        assert not published or self.release.privacy.spent == PRICE
        assert self.report == before.report or (published and self.checksum in self.report)
        return published


def spread(n_events, n):
    """Numbers of so many events, all over a run."""
    return [i * n_events // n for i in range(n)]


def kills(whole, n_at_files):
    """Commands, and kills before operations on files; then, without end, kills at random moments."""
    for event in spread(whole[FIT_AND_REPORT].n_events, n_at_files):
        yield FIT_AND_REPORT, Fault("kill", at=event)
    moments = random.Random(0)
    while True:
        command = moments.choice(list(whole))
        yield command, Fault("kill", after=moments.uniform(0, whole[command].seconds))


def kill_fits(warm, folder, n_kills, say=lambda line: None):
    """Kill so many fits, half of them before operations on files, and check the disk after each."""
    ledger = make_world(folder)
    whole = {command: warm.run(folder, *command) for command in (FIT_ONLY, FIT_AND_REPORT)}
    assert all(done.code == 0 for done in whole.values()), whole
    disk, n_runs, n_published, hits = Disk.of(folder), 0, len(whole), Counter()
    for command, fault in kills(whole, n_kills // 2):
        done = warm.run(folder, *command, fault=fault)
        assert done.killed or done.code == 0, done.said
        before, disk = disk, Disk.of(folder)
        n_published += disk.check_after(before)
        assert all(LEFT_OVER.fullmatch(name) for name in disk.left_over)
        n_runs += 1
        hits["at files" if fault.after is None else "at random"] += done.killed
        if n_runs % 50 == 0:
            say(f"{hits.total()} kills: {len(disk.history)} charges, {n_published} releases")
        if hits.total() == n_kills:
            break
    assert ledger.spent().epsilon == len(disk.history) * PRICE.epsilon >= n_published * PRICE.epsilon
    assert warm.run(folder, *FIT_AND_REPORT).code == 0
    assert Disk.of(folder).check_after(disk)
    return (
        f"{hits.total()} kills of {n_runs} fits hit ({hits['at files']} before operations on files, "
        f"{hits['at random']} at random): {len(disk.history)} charges, {n_published} releases, "
        f"{len(disk.left_over)} left-over temporary files; nothing lost, uncounted or half-written"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, Warm() as warm:
        print(kill_fits(warm, folder, N_KILLS, say=lambda line: print(line, flush=True)))
