"""The ledger: what may be spent on a data set, and what was spent on what. One SQLite file, no server."""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from sfumato.budget.amounts import Budget
from sfumato.budget.ledger_file import insert, transaction
from sfumato.errors import BudgetExceededError, LedgerError, ParameterError

PathLike: TypeAlias = str | os.PathLike[str]
Outcome: TypeAlias = Literal["open", "released", "failed"]

SAME_AGAIN = (
    " The last {} charges were for the same plan: every fit counts, so a cross-validation or a search is "
    "charged once for each fold and candidate."
)
_ACCEPTED = {
    "pure": (("pure",), "Budget(epsilon)"),
    "approximate": (("pure", "approximate"), "Budget(epsilon) or Budget(epsilon, delta)"),
    "zcdp": (("pure", "zcdp"), "Budget(epsilon) or Budget(rho=...)"),
}


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
    """

    id: int
    time: str
    method: str
    plan: str | dict[str, Any] = field(hash=False)
    spend: Budget
    seeded: bool
    outcome: Outcome


@dataclass(frozen=True, init=False)
class Ledger:
    """The budget of one data set, kept in a file that several processes can share.

    A ledger is a path and a name, not a counter. It can be copied, cloned, pickled and sent to workers; every
    copy draws on the same budget. Each call opens and closes the file.

    Parameters
    ----------
    path : str or path-like
        The SQLite file. A relative path is made absolute so that workers in other folders find it.
    dataset : str
        Name of the data set within the file.
    allow_seeded : bool, default=False
        Accept runs whose noise comes from a seed.
    timeout : float, default=30.0
        Seconds to wait while another process writes.

    See Also
    --------
    Ledger.create : add a data set and set its total.

    Notes
    -----
    A run is charged before it reads a row. One transaction adds up what was spent, in exact fractions, and
    writes the charge. A run that is killed wastes its charge but never goes uncounted. A failed run gets no
    refund, because it may have shown noisy values before it failed.

    Privacy
    -------
    Unit: the unit of the charges, which must be the same for all charges of a data set.
    Guarantee: all charges together stay within the total. Charges add up by basic composition: epsilons and
    deltas add (Dwork and Roth 2014, Theorem 3.16), rhos add, and in a total of rho a pure epsilon counts as
    epsilon^2 / 2 (Bun and Steinke 2016, Lemma 1.7 and Proposition 1.4). This holds even if each charge is
    chosen after seeing earlier results (Rogers et al. 2016; for rho, Feldman and Zrnic 2021).
    Spends: nothing. Public inputs: everything in the file.
    Not private: runs that were never charged, and a file that was edited or restored from an old copy.

    References
    ----------
    - C. Dwork and A. Roth, The Algorithmic Foundations of Differential Privacy, 2014.
    - M. Bun and T. Steinke, Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds,
      TCC 2016.
    - R. Rogers, A. Roth, J. Ullman and S. Vadhan, Privacy Odometers and Filters: Pay-as-you-Go Composition,
      NeurIPS 2016.
    - V. Feldman and T. Zrnic, Individual Privacy Accounting via a Renyi Filter, NeurIPS 2021.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(Path(folder.name) / "ledger.db", "patients", Budget(1))
    >>> number = ledger.charge(Budget(0.75), method="DPM", plan={"rows": 0.05, "centres": 0.95})
    >>> ledger.settle(number, "released")
    >>> print(ledger.remaining())
    epsilon=0.25
    >>> ledger.charge(Budget(0.5), method="DPM", plan="again")
    Traceback (most recent call last):
    ...
    sfumato.errors.BudgetExceededError: The budget of 'patients' does not cover this charge: requested \
epsilon=0.5, remaining epsilon=0.25, difference epsilon=0.25. Ask for less; nothing was charged.
    >>> folder.cleanup()
    """

    path: Path
    dataset: str
    allow_seeded: bool
    timeout: float

    def __init__(
        self, path: PathLike, dataset: str, *, allow_seeded: bool = False, timeout: float = 30.0
    ) -> None:
        object.__setattr__(self, "path", _checked_path(path))
        object.__setattr__(self, "dataset", _checked_name("dataset", dataset))
        object.__setattr__(self, "allow_seeded", allow_seeded)
        object.__setattr__(self, "timeout", _checked_timeout(timeout))

    @classmethod
    def create(
        cls, path: PathLike, dataset: str, total: Budget, *, allow_seeded: bool = False, timeout: float = 30.0
    ) -> Self:
        """Add a data set, in a new file or in an existing ledger.

        Parameters
        ----------
        path, dataset, allow_seeded, timeout
            As for `Ledger`.
        total : Budget
            Everything that may ever be spent. It cannot be changed later.

        Raises
        ------
        LedgerError
            If the data set exists, or if the file cannot be written or is not a ledger.
        """
        ledger = cls(path, dataset, allow_seeded=allow_seeded, timeout=timeout)
        _check_amount("total", total)
        with transaction(ledger.path, ledger.timeout, "IMMEDIATE", create=True) as connection:
            if dataset in _names(connection):
                raise LedgerError(
                    f"The data set {dataset!r} already exists in {ledger.path}, and its total cannot change. "
                    f"Use it with Ledger(path, {dataset!r}), or choose another name."
                )
            insert(connection, "dataset", name=dataset, time=_now(), **total.to_dict())
        return ledger

    @staticmethod
    def datasets(path: PathLike, *, timeout: float = 30.0) -> list[str]:
        """Return the names of the data sets in a file, oldest first."""
        with transaction(_checked_path(path), _checked_timeout(timeout)) as connection:
            return _names(connection)

    def charge(
        self, spend: Budget, *, method: str, plan: str | Mapping[str, Any], seeded: bool = False
    ) -> int:
        """Spend part of the budget before anything is computed.

        Parameters
        ----------
        spend : Budget
            The cost of the whole run.
        method : str
            What will be run.
        plan : str or dict
            What the run will ask, for the history. A dict must be serialisable as JSON.
        seeded : bool, default=False
            Whether the noise will come from a seed.

        Returns
        -------
        int
            Number of the charge, for `settle`. By the time it is returned, the charge is on disk.

        Raises
        ------
        BudgetExceededError
            If `spend` is more than remains.
        ParameterError
            If `spend` is of a kind that the total does not cover.
        LedgerError
            If the file cannot be used, the data set is closed or unknown, or seeded runs are not allowed.
            Nothing is charged after any of these errors.
        """
        _check_amount("spend", spend)
        line: dict[str, str | int] = {"plan": _as_json(plan), "seeded": bool(seeded), **spend.to_dict()}
        _checked_name("method", method)
        if seeded and not self.allow_seeded:
            raise LedgerError(
                f"A seeded run cannot be charged to {self.dataset!r}: "
                "anyone who knows the seed can remove the noise. "
                "Leave out `random_state`, or use Ledger(..., allow_seeded=True) for tests on public data."
            )
        with transaction(self.path, self.timeout, "IMMEDIATE") as connection:
            key, total = self._find(connection)
            if _is_closed(connection, key):
                raise LedgerError(
                    f"The data set {self.dataset!r} in {self.path} is closed for good. "
                    "Nothing more can be released from it under this ledger."
                )
            n_alike = _n_alike(connection, key, method, str(line["plan"]))
            self._check_fits(spend, total, _spent(connection, key, total), n_alike)
            return insert(connection, "charge", dataset=key, time=_now(), method=method, **line)

    def settle(self, charge_id: int, outcome: Literal["released", "failed"]) -> None:
        """Note how a charged run ended. No outcome refunds the budget.

        Parameters
        ----------
        charge_id : int
            Number that `charge` returned.
        outcome : {"released", "failed"}
            A charge that is never settled stays ``"open"``. Repeating the same outcome does nothing.

        Raises
        ------
        LedgerError
            If the charge is unknown, or already has the other outcome.
        """
        if outcome not in ("released", "failed"):
            raise ParameterError(f"`outcome` must be 'released' or 'failed', got {outcome!r}.")
        with transaction(self.path, self.timeout, "IMMEDIATE") as connection:
            key, _ = self._find(connection)
            known = {charge.id: charge.outcome for charge in _charges(connection, key)}.get(charge_id)
            if known == "open":
                insert(connection, "settlement", charge=int(charge_id), time=_now(), outcome=outcome)
            elif known != outcome:
                state = "is not known" if known is None else f"was settled as {known!r}"
                raise LedgerError(f"Charge {charge_id!r} of {self.dataset!r} {state}. See `history()`.")

    def close(self) -> None:
        """Accept no more charges, ever. Open charges can still be settled."""
        with transaction(self.path, self.timeout, "IMMEDIATE") as connection:
            key, _ = self._find(connection)
            if not _is_closed(connection, key):
                insert(connection, "closure", dataset=key, time=_now())

    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        with transaction(self.path, self.timeout) as connection:
            return _is_closed(connection, self._find(connection)[0])

    def total(self) -> Budget:
        """Return the total that may ever be spent on the data set."""
        with transaction(self.path, self.timeout) as connection:
            return self._find(connection)[1]

    def spent(self) -> Budget:
        """Return what was charged so far, in the numbers of the total. It is false if nothing was."""
        with transaction(self.path, self.timeout) as connection:
            return _spent(connection, *self._find(connection))

    def remaining(self) -> Budget:
        """Return the total minus what was spent. It is false when nothing is left."""
        with transaction(self.path, self.timeout) as connection:
            key, total = self._find(connection)
            return total - _spent(connection, key, total)

    def history(self) -> list[Charge]:
        """Return all charges, oldest first."""
        with transaction(self.path, self.timeout) as connection:
            return _charges(connection, self._find(connection)[0])

    def _find(self, connection: sqlite3.Connection) -> tuple[int, Budget]:
        """Return the key of the data set and its total."""
        query = "SELECT id, epsilon, delta, rho FROM dataset WHERE name = ?"
        rows = connection.execute(query, (self.dataset,)).fetchall()
        if not rows:
            known = ", ".join(map(repr, _names(connection))) or "none"
            raise LedgerError(
                f"The data set {self.dataset!r} is not in the ledger {self.path}, which knows: {known}. "
                "Create it with Ledger.create(path, dataset, total)."
            )
        return rows[0][0], _budget(rows[0][1:])

    def _check_fits(self, spend: Budget, total: Budget, spent: Budget, n_alike: int) -> None:
        kinds, advice = _ACCEPTED[total.kind]
        if spend.kind not in kinds:
            raise ParameterError(
                f"`spend` must be {advice}, because the total of {self.dataset!r} is {total}, got {spend}. "
                "Nothing was charged."
            )
        cost, remaining = _cost(spend, total), total - spent
        if not cost <= remaining:
            raise BudgetExceededError(
                f"The budget of {self.dataset!r} does not cover this charge: requested {cost}, "
                f"remaining {remaining:down}, difference {cost.excess_over(remaining)}. "
                "Ask for less; nothing was charged." + (SAME_AGAIN.format(n_alike) if n_alike > 1 else "")
            )


def _n_alike(connection: sqlite3.Connection, key: int, method: str, plan: str) -> int:
    """Number of charges in a row, up to the last one, that were for the same method and plan."""
    query = "SELECT method, plan FROM charge WHERE dataset = ? ORDER BY id DESC"
    charges = connection.execute(query, (key,))
    return sum(1 for _ in takewhile(lambda charge: tuple(charge) == (method, plan), charges))


def _cost(spend: Budget, total: Budget) -> Budget:
    """State `spend` in the numbers of `total`."""
    return spend.as_zcdp() if total.kind == "zcdp" else spend


def _spent(connection: sqlite3.Connection, key: int, total: Budget) -> Budget:
    rows = connection.execute("SELECT epsilon, delta, rho FROM charge WHERE dataset = ?", (key,)).fetchall()
    return sum((_cost(_budget(row), total) for row in rows), Budget.zero(total.kind))


def _charges(connection: sqlite3.Connection, key: int) -> list[Charge]:
    # Ordered by number and not by time: clocks jump.
    rows = connection.execute(
        "SELECT id, charge.time, method, plan, seeded, coalesce(outcome, 'open'), epsilon, delta, rho "
        "FROM charge LEFT JOIN settlement ON settlement.charge = charge.id WHERE dataset = ? ORDER BY id",
        (key,),
    ).fetchall()
    return [
        Charge(number, time, method, _plan(plan), _budget(amounts), bool(seeded), outcome)
        for number, time, method, plan, seeded, outcome, *amounts in rows
    ]


def _names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM dataset ORDER BY id").fetchall()]


def _is_closed(connection: sqlite3.Connection, key: int) -> bool:
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _check_amount(name: str, amount: Budget) -> None:
    if not isinstance(amount, Budget) or not amount:
        raise ParameterError(
            f"`{name}` must be a Budget above zero, got {amount!r}. Write Budget(1), for example."
        )


def _checked_path(path: PathLike) -> Path:
    # A NUL would end the name inside SQLite and open another file.
    if not isinstance(path, str | os.PathLike) or "\0" in str(path) or not str(path):
        raise ParameterError(f"`path` must be the path of a file, got {path!r}.")
    return Path(path).absolute()


def _checked_name(parameter: str, name: str) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ParameterError(f"`{parameter}` must be a printable name, got {name!r}.")
    return name


def _checked_timeout(timeout: float) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout <= 86_400:
        raise ParameterError(f"`timeout` must be between 0 and 86400 seconds, got {timeout!r}.")
    return float(timeout)


def _as_json(plan: str | Mapping[str, Any]) -> str:
    if not isinstance(plan, str | Mapping):
        raise ParameterError(f"`plan` must be a string or a dict, got {type(plan).__name__}.")
    try:
        return json.dumps(plan if isinstance(plan, str) else dict(plan), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"`plan` must be serialisable as JSON, got {type(plan).__name__}: {error}."
        ) from error
