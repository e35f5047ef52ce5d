"""The ledger: what may be spent on a data set, and what was spent on what. One SQLite file, no server."""

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from sfumato.budget.accounts import Parts, declared_parts
from sfumato.budget.amounts import Budget
from sfumato.budget.batch import Batch, PlannedFit, planned
from sfumato.budget.ledger_checksums import has_checksum, last_checksum
from sfumato.budget.ledger_file import SCHEMA_VERSION, insert, transaction
from sfumato.budget.ledger_lines import (
    Charge,
    Dataset,
    charges_of,
    dataset_names,
    find_dataset,
    is_closed,
    n_alike,
)
from sfumato.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from sfumato.domain import Unit

PathLike: TypeAlias = str | os.PathLike[str]

SAME_AGAIN = (
    " The last {} charges were for the same plan: every fit counts, so a cross-validation or a search is "
    "charged once for each fold and candidate."
)


class Verified(NamedTuple):
    """What `Ledger.verify` found: all lines are as they were written."""

    n_lines: int  # of all data sets in the file
    checksum: str | None  # the last one; None for an old file, which gets checksums with the next charge


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
    part : str, optional
        The part of the data set that is read: one of those that `create` declared. Whoever charges a part
        must pass a table with rows of that part alone. By default the whole data set.

    See Also
    --------
    Ledger.create : add a data set and set its total.
    sfumato.Unit : who is protected.

    Notes
    -----
    A run is charged before it reads a row. One transaction adds up what was spent, in exact fractions, and
    writes the charge. A run that is killed wastes its charge but never goes uncounted. A failed run gets no
    refund, because it may have shown noisy values before it failed.

    Privacy
    -------
    Unit: a row or a person, the same for all charges of a data set. It is declared by `create`, or else by
    the first run that is charged; runs with another unit are refused.
    Guarantee: all charges together stay within the total. Charges add up by basic composition: epsilons and
    deltas add (Dwork and Roth 2014, Theorem 3.16), rhos add, and in a total of rho a pure epsilon counts as
    epsilon^2 / 2 (Bun and Steinke 2016, Lemma 1.7 and Proposition 1.4). This holds even if each charge is
    chosen after seeing earlier results (Rogers et al. 2016; for rho, Feldman and Zrnic 2021).
    Of parts, those that spent most count, as many as one unit may have rows in (`max_parts_per_unit`). This
    holds if each row's part depends on that row alone, and no unit is in more parts than declared; proof:
    docs/proofs/composition.md.
    Spends: nothing. Public inputs: everything in the file.
    Not private: runs that were never charged, and a file that was edited or restored from an old copy.
    Checksums show accidents, not somebody who computes them again.

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
    part: str | None

    def __init__(
        self,
        path: PathLike,
        dataset: str,
        *,
        allow_seeded: bool = False,
        timeout: float = 30.0,
        part: str | None = None,
    ) -> None:
        object.__setattr__(self, "path", _checked_path(path))
        object.__setattr__(self, "dataset", _checked_name("dataset", dataset))
        object.__setattr__(self, "allow_seeded", allow_seeded)
        object.__setattr__(self, "timeout", _checked_timeout(timeout))
        object.__setattr__(self, "part", None if part is None else _checked_name("part", part))

    @classmethod
    def create(
        cls,
        path: PathLike,
        dataset: str,
        total: Budget,
        *,
        unit: "Unit | None" = None,
        parts_by: str | None = None,
        parts: Sequence[str] = (),
        max_parts_per_unit: int | None = None,
        allow_seeded: bool = False,
        timeout: float = 30.0,
    ) -> Self:
        """Add a data set, in a new file or in an existing ledger.

        Parameters
        ----------
        path, dataset, allow_seeded, timeout
            As for `Ledger`.
        total : Budget
            Everything that may ever be spent. It cannot be changed later.
        unit : Unit, optional
            Who is protected: ``Unit()`` for each row, ``Unit("patient")`` for a person. By default that of
            the first run that is charged.
        parts_by : str, optional
            The public rule that puts each row into a part, by that row's own values: "month of admission".
        parts : sequence of str
            Names of all parts, such as months to come.
        max_parts_per_unit : int, optional
            Maximum number of parts that hold rows of one unit. A row is in one part. For persons it must be
            given, and it is a promise about the table: if it is broken, so is the guarantee.

        Raises
        ------
        LedgerError
            If the data set exists, or if the file cannot be written or is not a ledger.

        Examples
        --------
        >>> import tempfile
        >>> from sfumato import Unit
        >>> folder = tempfile.TemporaryDirectory()
        >>> stays = Ledger.create(
        ...     Path(folder.name) / "ledger.db", "stays", Budget(1), unit=Unit(),
        ...     parts_by="month of admission", parts=["January", "February"])
        >>> for month in ["January", "February"]:
        ...     _ = Ledger(stays.path, "stays", part=month).charge(Budget(1), method="DPM", plan=month)
        >>> print(stays.spent())
        epsilon=1
        >>> folder.cleanup()
        """
        ledger = cls(path, dataset, allow_seeded=allow_seeded, timeout=timeout)
        _check_amount("total", total)
        declared = _declared(unit, parts_by, parts, max_parts_per_unit)
        with transaction(ledger.path, ledger.timeout, "IMMEDIATE", create=True) as connection:
            if dataset in dataset_names(connection):
                raise LedgerError(
                    f"The data set {dataset!r} already exists in {ledger.path}, and its total cannot change. "
                    f"Use it with Ledger(path, {dataset!r}), or choose another name."
                )
            insert(connection, "dataset", name=dataset, time=_now(), **declared, **total.to_dict())
        return ledger

    @staticmethod
    def datasets(path: PathLike, *, timeout: float = 30.0) -> list[str]:
        """Return the names of the data sets in a file, oldest first."""
        with transaction(_checked_path(path), _checked_timeout(timeout)) as connection:
            return dataset_names(connection)

    @staticmethod
    def verify(path: PathLike, noted: str | None = None, *, timeout: float = 30.0) -> Verified:
        """Check that every line of a file is as it was written. Each other call checks this, too.

        Parameters
        ----------
        path : str or path-like
        noted : str, optional
            A checksum that was noted elsewhere. The file must still have it, so lines up to it are neither
            lost nor replaced by an old copy.
        timeout : float, default=30.0
            Seconds to wait while another process writes.

        Returns
        -------
        Verified
            Number of lines, and the last checksum.

        Raises
        ------
        LedgerError
            If a line was changed or removed; the message names it. Or if the file lacks `noted`.
        """
        with transaction(_checked_path(path), _checked_timeout(timeout)) as connection:
            if noted is not None and not has_checksum(connection, noted):
                raise LedgerError(
                    f"The ledger {path} lacks the checksum {noted!r}: lines were removed, or it is an old "
                    "copy. Restore a newer backup and charge what was released since."
                )
            n_lines, checksum = last_checksum(connection)
            ((version,),) = connection.execute("PRAGMA user_version").fetchall()
            return Verified(n_lines, checksum if version == SCHEMA_VERSION and checksum else None)

    def charge(
        self,
        spend: Budget,
        *,
        method: str,
        plan: str | Mapping[str, Any],
        seeded: bool = False,
        unit: "Unit | None" = None,
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
        unit : Unit, optional
            Whom the run protects. By default the unit of the data set. The cap on rows may differ.

        Returns
        -------
        int
            Number of the charge, for `settle`. By the time it is returned, the charge is on disk.

        Raises
        ------
        BudgetExceededError
            If `spend` is more than remains.
        ParameterError
            If `spend` is of a kind that the total does not cover, or `unit` is not that of the data set.
        LedgerError
            If the file cannot be used, the data set is closed or unknown, or seeded runs are not allowed.
            Nothing is charged after any of these errors.
        """
        _check_amount("spend", spend)
        line: dict[str, Any] = {"plan": _as_json(plan), "seeded": bool(seeded), **spend.to_dict()}
        line |= {"unit": _who(unit), "part": self.part}
        _checked_name("method", method)
        if seeded and not self.allow_seeded:
            raise LedgerError(
                f"A seeded run cannot be charged to {self.dataset!r}: "
                "anyone who knows the seed can remove the noise. "
                "Leave out `random_state`, or use Ledger(..., allow_seeded=True) for tests on public data."
            )
        with transaction(self.path, self.timeout, "IMMEDIATE") as connection:
            key, known_unit, account = self._find(connection)
            self._check_open(connection, key)
            self._check_unit(line["unit"], known_unit)
            n_same = n_alike(connection, key, method, line["plan"])
            note = SAME_AGAIN.format(n_same) if n_same > 1 else ""
            account.charged(spend, self.part, note=note)
            return insert(connection, "charge", dataset=key, time=_now(), method=method, **line)

    def plan(self, fits: int | Sequence[Budget | PlannedFit]) -> Batch:
        """Say what each fit of a batch may spend. Charges nothing, and reserves nothing.

        Parameters
        ----------
        fits : int or sequence of Budget or PlannedFit
            That many fits with equal shares of what remains, or the budgets of the fits. A ``PlannedFit()``
            without a budget takes an equal share of what the others leave.

        Returns
        -------
        Batch
            The budget of each fit, and what is spent before and after. Prints as a table.

        Raises
        ------
        BudgetExceededError
            If the fits are more than remains. The message names the first that does not fit.
        """
        with transaction(self.path, self.timeout) as connection:
            found = self._find(connection)
            self._check_open(connection, found.key)
            return planned(found.account, fits, self.part)

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
            key = self._find(connection).key
            known = {charge.id: charge.outcome for charge in charges_of(connection, key)}.get(charge_id)
            if known == "open":
                insert(connection, "settlement", charge=int(charge_id), time=_now(), outcome=outcome)
            elif known != outcome:
                state = "is not known" if known is None else f"was settled as {known!r}"
                raise LedgerError(f"Charge {charge_id!r} of {self.dataset!r} {state}. See `history()`.")

    def close(self) -> None:
        """Accept no more charges, ever. Open charges can still be settled."""
        with transaction(self.path, self.timeout, "IMMEDIATE") as connection:
            key = self._find(connection).key
            if not is_closed(connection, key):
                insert(connection, "closure", dataset=key, time=_now())

    def is_closed(self) -> bool:
        """Return whether `close` was called."""
        with transaction(self.path, self.timeout) as connection:
            return is_closed(connection, self._find(connection).key)

    def total(self) -> Budget:
        """Return the total that may ever be spent on the data set."""
        with transaction(self.path, self.timeout) as connection:
            return self._find(connection).account.total

    def spent(self) -> Budget:
        """Return what was charged so far, in the numbers of the total. It is false if nothing was.

        Of parts, those that spent most count, as many as one unit may be in. For a ledger with a `part`:
        what was spent on the units in that part.
        """
        with transaction(self.path, self.timeout) as connection:
            return self._find(connection).account.spent(self.part)

    def remaining(self) -> Budget:
        """Return the total minus what was spent: the largest charge that fits. False if nothing is left."""
        with transaction(self.path, self.timeout) as connection:
            return self._find(connection).account.remaining(self.part)

    def unit(self) -> str | None:
        """Return who is protected, such as "one row", or ``None`` if nothing has said it yet."""
        with transaction(self.path, self.timeout) as connection:
            return self._find(connection).unit

    def parts(self) -> Parts | None:
        """Return the rule, the names and the maximum per unit of the parts, or ``None`` without parts."""
        with transaction(self.path, self.timeout) as connection:
            return self._find(connection).account.parts

    def history(self) -> list[Charge]:
        """Return all charges to the data set and its parts, oldest first."""
        with transaction(self.path, self.timeout) as connection:
            return charges_of(connection, self._find(connection).key)

    def _find(self, connection: sqlite3.Connection) -> Dataset:
        found = find_dataset(connection, self.dataset)
        if found is None:
            known = ", ".join(map(repr, dataset_names(connection))) or "none"
            raise LedgerError(
                f"The data set {self.dataset!r} is not in the ledger {self.path}, which knows: {known}. "
                "Create it with Ledger.create(path, dataset, total)."
            )
        return found

    def _check_open(self, connection: sqlite3.Connection, key: int) -> None:
        if is_closed(connection, key):
            raise LedgerError(
                f"The data set {self.dataset!r} in {self.path} is closed for good. "
                "Nothing more can be released from it under this ledger."
            )

    def _check_unit(self, unit: str | None, known: str | None) -> None:
        if None not in (unit, known) and unit != known:
            raise ParameterError(
                f"`unit` must be that of {self.dataset!r} in the ledger, which protects {known}, got a run "
                f"that protects {unit}. Charge it to a data set of its own; nothing was charged."
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _declared(
    unit: "Unit | None", rule: str | None, names: Sequence[str], most: int | None
) -> dict[str, Any]:
    """What the line of a data set says on its unit and its parts."""
    who = _who(unit)
    if rule is None:
        if names or most is not None:
            raise ParameterError("`parts_by` must be given with `parts`: the rule that puts a row into one.")
        return {"unit": who}
    if unit is None:
        raise ParameterError(
            "`unit` must be given with `parts_by`, as a person may be in several parts: unit=Unit() protects "
            "each row, unit=Unit('patient') a person."
        )
    parts = declared_parts(rule, names, most, unit_is_row=unit.column is None)
    return {
        "unit": who,
        "parts_by": parts.rule,
        "parts": json.dumps(parts.names),
        "max_parts_per_unit": parts.max_per_unit,
    }


def _who(unit: "Unit | None") -> str | None:
    if unit is None:
        return None
    from sfumato.domain import Unit  # not at the top: it compiles code that a ledger does not need

    if not isinstance(unit, Unit):
        raise ParameterError(
            f"`unit` must be sfumato.Unit() for rows or sfumato.Unit(column) for a person, got {unit!r}."
        )
    return unit.who


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
