"""A batch of fits to come: what each may spend, and what the data set will have spent then."""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.budget.accounts import Account
from sfumato.budget.amounts import Budget
from sfumato.errors import BudgetExceededError, ParameterError

_MOST_FITS = 10_000


@dataclass(frozen=True)
class PlannedFit:
    """A fit that is not charged yet.

    Parameters
    ----------
    spend : Budget, optional
        Its budget. By default, an equal share of what the fits with a budget leave.
    part : str, optional
        The part of the data set that it reads. By default the whole.
    """

    spend: Budget | None = None
    part: str | None = None


@dataclass(frozen=True)
class Batch:
    """What each fit of a batch may spend. Prints as a table.

    Attributes
    ----------
    fits : tuple of PlannedFit
        All with a budget, in the order in which they were asked for.
    before : Budget
        What the data set has spent so far.
    after : Budget
        What it will have spent when all fits are charged.
    total : Budget
        What may ever be spent.
    """

    fits: tuple[PlannedFit, ...]
    before: Budget
    after: Budget
    total: Budget

    def rows(self) -> list[tuple[str, ...]]:
        """Table rows: fit, part, what it may spend. Amounts are rounded down, so they fit as printed."""
        return [(str(number), fit.part or "", f"{fit.spend:down}") for number, fit in enumerate(self.fits, 1)]

    def __str__(self) -> str:
        lines = [("fit", "part", "may spend"), *self.rows()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join(
            [*table, f"spent: {self.before} now, {self.after} after these fits, of {self.total} in all"]
        )


def planned(account: Account, fits: int | Sequence[Budget | PlannedFit], part: str | None = None) -> Batch:
    """Plan a batch of fits, or raise if it does not fit. Charges nothing.

    Parameters
    ----------
    account : Account
    fits : int or sequence of Budget or PlannedFit
        A number stands for that many fits with equal shares.
    part : str, optional
        Part of fits that name none.
    """
    asked = [PlannedFit(fit.spend, fit.part or part) for fit in _as_fits(fits)]
    after = account
    for number, fit in enumerate(asked, 1):
        if fit.spend is not None:
            after = after.charged(fit.spend, fit.part, what=f"charge {number} of {len(asked)}")
    sharing = [fit.part for fit in asked if fit.spend is None]
    share = after.equal_share(sharing) if sharing else None
    if share is not None and not (share.epsilon or share.rho):
        raise BudgetExceededError(
            f"The budget of {account.dataset!r} leaves nothing to share: of {account.total}, "
            f"{after.remaining():down} is left for {len(sharing)} fits. Plan fewer or smaller ones."
        )
    whole = tuple(PlannedFit(fit.spend or share, fit.part) for fit in asked)
    for part_of_one in sharing:
        assert share is not None
        after = after.charged(share, part_of_one)
    return Batch(whole, account.spent(), after.spent(), account.total)


def _as_fits(fits: int | Sequence[Budget | PlannedFit]) -> list[PlannedFit]:
    if isinstance(fits, int) and not isinstance(fits, bool):
        listed: Sequence[object] = [PlannedFit()] * min(fits, _MOST_FITS + 1)
    else:
        listed = fits if isinstance(fits, Sequence) and not isinstance(fits, str) else []
    found = [PlannedFit(fit) if isinstance(fit, Budget) else fit for fit in listed]
    checked = [fit for fit in found if isinstance(fit, PlannedFit) and _has_amount(fit)]
    if len(checked) < len(found) or not 1 <= len(found) <= _MOST_FITS:
        raise ParameterError(
            f"`fits` must be a number from 1 to {_MOST_FITS}, or a list of Budget or PlannedFit with a "
            f"budget above zero, got {fits!r}."
        )
    return checked


def _has_amount(fit: PlannedFit) -> bool:
    return fit.spend is None or (isinstance(fit.spend, Budget) and bool(fit.spend))
