"""What a data set has spent: charges to the whole of it, and to parts that are disjoint by a public rule."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.budget.amounts import Budget
from sfumato.errors import BudgetExceededError, ParameterError

_ACCEPTED = {
    "pure": (("pure",), "Budget(epsilon)"),
    "approximate": (("pure", "approximate"), "Budget(epsilon) or Budget(epsilon, delta)"),
    "zcdp": (("pure", "zcdp"), "Budget(epsilon) or Budget(rho=...)"),
}


@dataclass(frozen=True)
class Parts:
    """Parts of a table, disjoint by a public rule that looks at one row at a time.

    Parameters
    ----------
    rule : str
        What puts a row into a part, such as "month of admission".
    names : tuple of str
        Names of the parts.
    max_per_unit : int
        Maximum number of parts that hold rows of one privacy unit.
    """

    rule: str
    names: tuple[str, ...]
    max_per_unit: int


@dataclass(frozen=True)
class Account:
    """A total, and the costs that were charged, each to the whole data set or to one part.

    Parameters
    ----------
    dataset : str
        Name of the data set in errors.
    total : Budget
    parts : Parts, optional
    charges : sequence of (part or None, Budget)
        Costs in the numbers of the total; ``None`` stands for the whole data set.

    Privacy
    -------
    A unit has rows in at most m parts, so charges to the other parts do not touch it. Its loss is at most
    all charges to the whole, plus those to the m parts that spent most. Proof: docs/proofs/composition.md.

    Examples
    --------
    >>> account = Account("stays", Budget(2), Parts("month", ("January", "February"), 1))
    >>> account = account.charged(Budget(1), "January").charged(Budget(0.5), "February")
    >>> print(account.spent(), account.remaining("February"))
    epsilon=1 epsilon=1.5
    """

    dataset: str
    total: Budget
    parts: Parts | None = None
    charges: Sequence[tuple[str | None, Budget]] = field(default=())

    def spent(self, part: str | None = None) -> Budget:
        """Largest loss of any unit; with a part, of any unit that has a row in that part."""
        self._check_part(part)
        sums = self._sums()
        own = [sums.pop(name) for name in {None, part} if name in sums]
        n_others = 0 if self.parts is None else self.parts.max_per_unit - (part is not None)
        others = Budget.largest(list(sums.values()), n_others, self.total.kind)
        return sum(own, others)

    def remaining(self, part: str | None = None) -> Budget:
        """Largest charge that fits, to the whole data set or to a part."""
        return self.total - self.spent(part)

    def cost(self, spend: Budget) -> Budget:
        """State `spend` in the numbers of the total."""
        return spend.as_zcdp() if self.total.kind == "zcdp" else spend

    def charged(
        self, spend: Budget, part: str | None = None, *, what: str = "this charge", note: str = ""
    ) -> "Account":
        """Return the account with one more charge, or raise if it is of another kind or does not fit."""
        kinds, advice = _ACCEPTED[self.total.kind]
        if spend.kind not in kinds:
            raise ParameterError(
                f"`spend` must be {advice}, because the total of {self.dataset!r} is {self.total}, "
                f"got {spend}. Nothing was charged."
            )
        cost, remaining = self.cost(spend), self.remaining(part)
        if not cost <= remaining:
            of_part = "" if part is None else f" to part {part!r}"
            raise BudgetExceededError(
                f"The budget of {self.dataset!r} does not cover {what}{of_part}: requested {cost}, "
                f"remaining {remaining:down}, difference {cost.excess_over(remaining)}. "
                f"Ask for less; nothing was charged.{note}"
            )
        return replace(self, charges=(*self.charges, (part, cost)))

    def equal_share(self, parts: Sequence[str | None]) -> Budget:
        """Largest budget that fits once for each entry of `parts`, ``None`` for the whole data set."""
        for part in set(parts):
            self._check_part(part)
        sums = {None: Budget.zero(self.total.kind), **self._sums()}
        names = ("rho",) if self.total.kind == "zcdp" else ("epsilon", "delta")
        shares = {}
        for name in names:
            spent = {part: getattr(budget, name) for part, budget in sums.items()}
            shares[name] = str(self._equal_number(getattr(self.total, name), spent, parts))
        return Budget.from_dict(shares)

    def _equal_number(
        self, total: Fraction, spent: dict[str | None, Fraction], parts: Sequence[str | None]
    ) -> Fraction:
        """Largest x such that spending x for each entry of `parts` keeps one number within its total.

        What is spent is convex and piecewise linear in x, and at most `total` at 0. Newton's method from the
        right, with exact fractions, ends at the solution after finitely many steps.
        """
        most = 0 if self.parts is None else self.parts.max_per_unit
        named = {part for part in {*spent, *parts} if part is not None}
        x = total
        while True:
            after = {part: spent.get(part, Fraction(0)) + x * parts.count(part) for part in named}
            worst = [None, *sorted(named, key=after.__getitem__, reverse=True)[:most]]
            fixed = sum((spent.get(part, Fraction(0)) for part in worst), Fraction(0))
            n_fits = sum(parts.count(part) for part in worst)
            if fixed + n_fits * x <= total:
                return x
            x = (total - fixed) / n_fits

    def _sums(self) -> dict[str | None, Budget]:
        sums: dict[str | None, Budget] = {}
        for part, cost in self.charges:
            sums[part] = sums[part] + cost if part in sums else cost
        return sums

    def _check_part(self, part: str | None) -> None:
        if part is None:
            return
        if self.parts is None:
            raise ParameterError(
                f"`part` must be left out, as {self.dataset!r} was created without parts, got {part!r}. "
                "Parts are declared by Ledger.create(..., unit=..., parts_by=..., parts=...)."
            )
        if part not in self.parts.names:
            raise ParameterError(
                f"`part` must be one of the parts of {self.dataset!r}, by {self.parts.rule}: "
                f"{', '.join(map(repr, self.parts.names))}, got {part!r}."
            )


def declared_parts(rule: str, names: Sequence[str], max_per_unit: int | None, *, unit_is_row: bool) -> Parts:
    """Check a declaration of parts.

    A row is in one part, by the rule. A person may have rows in several parts, so their number must be
    declared.
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"`parts` must be a list of names, got {names!r}.")
    texts = [rule, *names]
    if not all(isinstance(text, str) and text.strip() and text.isprintable() for text in texts):
        raise ParameterError(f"`parts_by` and `parts` must be printable texts, got {rule!r} and {names!r}.")
    if not names or len({name.strip().casefold() for name in names}) < len(names):
        raise ParameterError(f"`parts` must be different names, at least one, got {list(names)}.")
    if max_per_unit is None and not unit_is_row:
        raise ParameterError(
            "`max_parts_per_unit` must be declared when the unit is a person, because a person may have "
            "rows in several parts. If each person is in one part alone, write max_parts_per_unit=1."
        )
    most = 1 if max_per_unit is None else max_per_unit
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most < 2**31:
        raise ParameterError(f"`max_parts_per_unit` must be an integer >= 1, got {max_per_unit!r}.")
    if unit_is_row and most > 1:
        raise ParameterError(
            f"`max_parts_per_unit` must be 1 when the unit is a row, which is in one part, got {most}."
        )
    return Parts(rule, tuple(names), most)
