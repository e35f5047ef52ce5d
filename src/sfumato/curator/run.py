"""The one way to run: charge a plan, let a computation ask, and state what was spent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from sfumato.budget import Ledger, PricedPlan, PrivacyStatement
from sfumato.curator.curator import Curator
from sfumato.curator.tables import Table
from sfumato.domain import Domain, Unit
from sfumato.errors import LedgerError, LedgerWarning, ParameterError, told_if_interrupted

T = TypeVar("T")


class Run(NamedTuple, Generic[T]):
    """What a run computed."""

    found: T  # what the computation returned
    domain: Domain  # the table's domain in the user's units, or a narrower one if the run released bounds
    privacy: PrivacyStatement


def run(
    table: Table,
    plan: PricedPlan,
    compute: Callable[[Curator], T],
    *,
    method: str,
    ledger: Ledger | None = None,
    seed: int | None = None,
    unit: Unit | None = None,
) -> Run[T]:
    """Charge the plan to the ledger, open the table, and let `compute` ask the curator.

    Parameters
    ----------
    table : Table
    plan : PricedPlan
    compute : callable
        Takes the curator. It may ask only what the plan declares.
    method : str
        Name of the method, for the ledger.
    ledger : Ledger, optional
    seed : int, optional
        Makes the noise reproducible. The statement then says not to publish.
    unit : Unit, optional
        Who is protected, if it is not the unit of the table's domain.
    """
    unit = unit or table.domain.unit
    with _charged(ledger, method, plan, unit, seeded=seed is not None):
        curator = table.curator(plan, seed)
        found = compute(curator)
    return Run(found, curator.space, replace(curator.statement(), unit=unit))


@contextmanager
def _charged(
    ledger: Ledger | None, method: str, plan: PricedPlan, unit: Unit, *, seeded: bool
) -> Iterator[None]:
    """Charge a ledger before any row is read, and note the outcome.

    If the outcome cannot be noted, the charge stays open and still counts; the release goes ahead. An
    interrupt carries a note that says what to count as spent.
    """
    if ledger is None:
        with told_if_interrupted(lambda: f"the noise may have been drawn: count {plan.budget} as spent"):
            yield
        return
    if not isinstance(ledger, Ledger):
        raise ParameterError(f"`ledger` must be a sfumato.Ledger(path, dataset), got {ledger!r}")
    state = f"may have been charged to {ledger.dataset!r}"
    with told_if_interrupted(lambda: f"{plan.budget} {state}; nothing was released"):
        charge = ledger.charge(plan.budget, method=method, plan=str(plan), seeded=seeded, unit=unit)
        state = f"was charged to {ledger.dataset!r} and counts"
        try:
            yield
        except BaseException:
            with suppress(LedgerError):
                ledger.settle(charge, "failed")
            raise
        try:
            ledger.settle(charge, "released")
        except LedgerError as error:
            warnings.warn(f"charge {charge} counts but stays open: {error}", LedgerWarning, stacklevel=6)
