"""What the lines of a ledger say: data sets and charges, read in a transaction."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal, NamedTuple, TypeAlias

from sfumato.budget.accounts import Account, Parts
from sfumato.budget.amounts import Budget
from sfumato.errors import LedgerError, ParameterError

Outcome: TypeAlias = Literal["open", "released", "failed"]


@dataclass(frozen=True)
class Charge:
    """One line of a ledger's history.

    Attributes
    ----------
    id : int
        Number of the charge. Later charges have larger numbers, whatever the clock says.
    time : str
        When it was charged, in UTC and ISO 8601.
    method : str
        What was run.
    plan : str or dict
        The plan as it was passed to `Ledger.charge`.
    spend : Budget
        What was charged, as pure, approximate or zCDP, whichever the run used.
    seeded : bool
        Whether the noise came from a seed. The result must then not be published.
    outcome : {"open", "released", "failed"}
        The charge counts in any case.
    unit : str or None
        Whom the run protects, such as "one row". ``None`` if it was not said.
    part : str or None
        The part of the data set that the run read. ``None`` for the whole.
    """

    id: int
    time: str
    method: str
    plan: str | dict[str, Any] = field(hash=False)
    spend: Budget
    seeded: bool
    outcome: Outcome
    unit: str | None
    part: str | None


class Dataset(NamedTuple):
    """A data set of the file."""

    key: int
    unit: str | None  # as declared, or of the first charge that states one
    account: Account


def find_dataset(connection: sqlite3.Connection, name: str) -> Dataset | None:
    """Data set with this name, and all that was charged to it."""
    query = (
        "SELECT id, unit, parts_by, parts, max_parts_per_unit, epsilon, delta, rho "
        "FROM dataset WHERE name = ?"
    )
    rows = connection.execute(query, (name,)).fetchall()
    if not rows:
        return None
    key, unit, rule, names, most, *amounts = rows[0]
    parts = None if rule is None else Parts(rule, tuple(json.loads(names)), most)
    account = Account(name, _budget(amounts), parts)
    query = "SELECT part, unit, epsilon, delta, rho FROM charge WHERE dataset = ? ORDER BY id"
    charges = connection.execute(query, (key,)).fetchall()
    units = [unit, *(unit_of_run for _, unit_of_run, *_ in charges)]
    costs = tuple((part, account.cost(_budget(spend))) for part, _, *spend in charges)
    return Dataset(key, next(filter(None, units), None), replace(account, charges=costs))


def n_alike(connection: sqlite3.Connection, key: int, method: str, plan: str) -> int:
    """Number of charges in a row, up to the last one, that were for the same method and plan."""
    query = "SELECT method, plan FROM charge WHERE dataset = ? ORDER BY id DESC"
    charges = connection.execute(query, (key,))
    return sum(1 for _ in takewhile(lambda charge: tuple(charge) == (method, plan), charges))


def charges_of(connection: sqlite3.Connection, key: int) -> list[Charge]:
    """All charges to a data set, oldest first."""
    # Ordered by number and not by time: clocks jump.
    rows = connection.execute(
        "SELECT id, charge.time, method, plan, seeded, coalesce(outcome, 'open'), unit, part, epsilon, "
        "delta, rho FROM charge LEFT JOIN settlement ON settlement.charge = charge.id "
        "WHERE dataset = ? ORDER BY id",
        (key,),
    ).fetchall()
    return [
        Charge(number, time, method, _plan(plan), _budget(amounts), bool(seeded), outcome, unit, part)
        for number, time, method, plan, seeded, outcome, unit, part, *amounts in rows
    ]


def dataset_names(connection: sqlite3.Connection) -> list[str]:
    """Names of all data sets, oldest first."""
    return [name for (name,) in connection.execute("SELECT name FROM dataset ORDER BY id").fetchall()]


def is_closed(connection: sqlite3.Connection, key: int) -> bool:
    """Whether a data set accepts no more charges."""
    return bool(connection.execute("SELECT 1 FROM closure WHERE dataset = ?", (key,)).fetchall())


def _budget(amounts: Iterable[str | None]) -> Budget:
    named = zip(("epsilon", "delta", "rho"), amounts, strict=True)
    try:
        return Budget.from_dict({name: text for name, text in named if text is not None})
    except ParameterError as error:
        raise LedgerError("The ledger has an amount that is not exact. Restore a backup.") from error


def _plan(text: str) -> str | dict[str, Any]:
    try:
        plan = json.loads(text)
    except (ValueError, RecursionError):
        plan = None
    if not isinstance(plan, str | dict):
        raise LedgerError("The ledger has a plan that was altered. Restore a backup.")
    return plan
