"""A first look in one command, ``sfumato demo``.

It simulates the homes in a city, publishes their clusters under differential privacy, and writes the files
that a data holder would publish: a release, a picture and a report. Nobody in the table is real.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato import plot, report
from sfumato.budget import Budget, Ledger
from sfumato.cluster import GridKMeans
from sfumato.datasets import CITY_BOUNDS, CITY_COLUMNS, city
from sfumato.errors import BudgetExceededError
from sfumato.release import Release

TOTAL, EPSILON, N_CLUSTERS = Budget(2), 1, 9
NEW_HOMES = ((19.0, 13.0), (26.0, 20.5), (5.5, 24.0))


def show(folder: Path, *, n: int = 300_000) -> None:
    """Run the demonstration, or say that its budget is spent.

    Parameters
    ----------
    folder : Path
        Where to write.
    n : int
        Number of simulated people.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sheet = plot.blank(9, 8)  # without matplotlib, stop before anything is spent

    ledger = _ledger(folder / "ledger.db")
    path = folder / "release.json"
    if not _spend(ledger, path, n):
        return
    release = Release.load(path)
    plot.centres(release, sheet.add_subplot())
    sheet.savefig(folder / "picture.png", dpi=150)
    report.write(release, folder / "report.html")
    _predict(release)
    _point_to(folder)


def _ledger(path: Path) -> Ledger:
    if not path.exists():
        return Ledger.create(path, "city", TOTAL)
    return Ledger(path, "city")


def _spend(ledger: Ledger, path: Path, n: int) -> bool:
    """Publish a release if the ledger allows it. Return whether there is a release to show."""
    model = GridKMeans(N_CLUSTERS, epsilon=EPSILON, bounds=CITY_BOUNDS, ledger=ledger)
    print(f"Where do {n:,} people live? Their homes are sensitive; a map of their clusters need not be.\n")
    print(f"The plan, known before any row is read:\n\n{model.plan(n_features=2)}\n")
    print(f"The ledger allows {ledger.total()} in total for this table; {ledger.remaining():down} is left.")
    try:
        model.fit(_simulated_table(n))
    except BudgetExceededError as error:
        return _explain(error, ledger, path)
    model.release_.save(path)
    print(f"Charged first, then computed; now {ledger.remaining():down} is left.\n\n{model.privacy_}\n")
    return True


def _simulated_table(n: int) -> pa.Table:
    homes, _ = city(n)  # the same simulated people each time, so that the ledger means something
    return pa.table(dict(zip(CITY_COLUMNS, homes.T, strict=True)))


def _explain(error: BudgetExceededError, ledger: Ledger, path: Path) -> bool:
    print(
        f"\nRefused: {error}\n\n"
        "This is what a ledger is for. Every release reveals a little more about the people in the table,\n"
        "and the total is a promise to them. You can still use what was published as often as you like."
    )
    if path.exists():
        print(f"This run therefore shows the last release, {path}, and spends nothing.\n")
    print(
        "These people are simulated, so you may start again by deleting the ledger:\n"
        f"  {ledger.path}\n"
        "With real people that would break the promise.\n"
    )
    return path.exists()


def _predict(release: Release) -> None:
    print("New homes, assigned to clusters by the release file alone:")
    labels = release.predict(np.array(NEW_HOMES))
    sizes = release.model.attributes()["cluster_sizes"][labels]
    for (east, north), label, size in zip(NEW_HOMES, labels, sizes, strict=True):
        print(f"  {east:4.1f} km east, {north:4.1f} km north: cluster {label}, of about {size:,.0f} people")


def _point_to(folder: Path) -> None:
    print(
        f"\nLook at\n"
        f"  {folder / 'report.html'}   for people: open it in a browser\n"
        f"  {folder / 'picture.png'}   the map\n"
        f"  {folder / 'release.json'}  for programs: sfumato.Release.load\n"
        f"  {folder / 'ledger.db'}     what was spent: the data holder keeps it"
    )
