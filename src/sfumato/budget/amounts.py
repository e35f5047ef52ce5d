"""An amount of privacy loss, kept as exact fractions."""

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from sfumato.budget.exact import rounded_down, rounded_up
from sfumato.errors import BudgetExceededError, ParameterError

Kind: TypeAlias = Literal["pure", "approximate", "zcdp"]
Number: TypeAlias = int | float | str | Fraction | Decimal | np.integer[Any] | np.floating[Any]

# Amounts beyond 1e100 are typing errors, and "1e999999999" would exhaust memory as a fraction.
_LARGEST_EXPONENT = 100
_LARGEST = Fraction(10**_LARGEST_EXPONENT)
# By default Python refuses to write integers of more than 4300 digits as text.
_MOST_BITS = 14_000
_RANGE = f"between 1e-{_LARGEST_EXPONENT} and 1e{_LARGEST_EXPONENT}"


@dataclass(frozen=True, init=False, repr=False)
class Budget:
    """An amount of privacy loss: pure, approximate or zero-concentrated.

    Numbers are exact. A float stands for the decimal you typed, so ten times 0.1 is 1.

    Parameters
    ----------
    epsilon : int, float, str, Fraction or Decimal, optional
        Positive. On its own it is a budget of pure differential privacy.
    delta : int, float, str, Fraction or Decimal, default=0
        At least 0 and below 1. A positive delta means approximate differential privacy.
    rho : int, float, str, Fraction or Decimal, optional
        Positive. A budget of zero-concentrated differential privacy (zCDP), instead of `epsilon`.

    Raises
    ------
    ParameterError
        If an amount is out of range, or unless exactly one of `epsilon` and `rho` is given.

    See Also
    --------
    sfumato.budget.ledger.Ledger : the total budget of a data set, and what was spent.

    Notes
    -----
    The constructor refuses an amount of zero. A total can be spent completely, however, so an empty budget
    exists: ``Budget.zero(kind)``, also the result of ``b - b``. It is false in a condition.

    Privacy
    -------
    A budget is a public parameter. It states a guarantee; it does not give one.

    Examples
    --------
    >>> print(Budget(1, 1e-5))
    epsilon=1, delta=1e-05
    >>> sum([Budget(0.1)] * 10, Budget.zero()) == Budget(1)
    True
    >>> Budget(rho=0.5).kind
    'zcdp'
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None

    def __init__(
        self, epsilon: Number | None = None, delta: Number = 0, *, rho: Number | None = None
    ) -> None:
        if (epsilon is None) == (rho is None):
            got = "neither" if epsilon is None else "both"
            raise ParameterError(
                f"exactly one of `epsilon` and `rho` must be given, got {got}. "
                "Write Budget(epsilon), Budget(epsilon, delta) or Budget(rho=...)."
            )
        exact_delta = as_exact("delta", delta)
        if not 0 <= exact_delta < 1:
            raise _refusal("delta", "at least 0 and below 1", delta)
        if rho is not None and exact_delta:
            raise ParameterError(
                f"`delta` must be 0 with `rho`, got {delta!r}. Leave it out: rho holds for every delta."
            )
        self._set(
            None if epsilon is None else _positive("epsilon", epsilon),
            exact_delta,
            None if rho is None else _positive("rho", rho),
        )

    def _set(self, epsilon: Fraction | None, delta: Fraction, rho: Fraction | None) -> None:
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "rho", rho)

    @classmethod
    def _of(cls, epsilon: Fraction | None, delta: Fraction, rho: Fraction | None) -> Self:
        """Build a budget from checked numbers, which may be zero."""
        budget = cls.__new__(cls)
        budget._set(epsilon, delta, rho)
        return budget

    @classmethod
    def zero(cls, kind: Kind = "pure") -> Self:
        """Return an empty budget: ``epsilon=0``, or ``rho=0`` for the kind ``"zcdp"``."""
        nothing = Fraction(0)
        return cls._of(None, nothing, nothing) if kind == "zcdp" else cls._of(nothing, nothing, None)

    @classmethod
    def largest(cls, budgets: Sequence["Budget"], n: int, kind: Kind) -> Self:
        """Return the sum of the `n` largest epsilons, and so for delta and rho: no `n` of them sum to more.

        Parameters
        ----------
        budgets : sequence of Budget
            All in rho, or none.
        n : int
            How many to add up.
        kind : {"pure", "approximate", "zcdp"}
            Of the empty sum.

        Examples
        --------
        >>> print(Budget.largest([Budget(1), Budget(2, 1e-7), Budget(3, 1e-6)], 2, "approximate"))
        epsilon=5, delta=1.1e-06
        """

        def top(numbers: Iterable[Fraction | None]) -> Fraction:
            return sum(sorted((x for x in numbers if x is not None), reverse=True)[:n], Fraction(0))

        if kind == "zcdp":
            return cls._of(None, Fraction(0), top(budget.rho for budget in budgets))
        return cls._of(top(b.epsilon for b in budgets), top(b.delta for b in budgets), None)

    @property
    def kind(self) -> Kind:
        """Kind of guarantee: ``"pure"``, ``"approximate"`` or ``"zcdp"``."""
        if self.rho is not None:
            return "zcdp"
        return "approximate" if self.delta else "pure"

    def as_zcdp(self) -> "Budget":
        """Return the rho that this budget implies.

        A mechanism that is epsilon-DP is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016, Proposition 1.4).

        Returns
        -------
        Budget
            Of kind ``"zcdp"``, exact.

        Raises
        ------
        ParameterError
            If delta is above 0: approximate differential privacy implies no rho.

        Examples
        --------
        >>> print(Budget(0.2).as_zcdp())
        rho=0.02
        """
        if self.epsilon is None:
            return self
        if self.delta:
            raise ParameterError(
                f"`delta` must be 0 to state a budget in rho, got {self}. Use Budget(rho=...)."
            )
        return Budget._of(None, Fraction(0), self.epsilon**2 / 2)

    def excess_over(self, other: "Budget") -> "Budget":
        """Return how far each number of this budget exceeds `other`, or zero where it does not.

        Examples
        --------
        >>> print(Budget(1, 1e-5).excess_over(Budget(0.75, 1e-4)))
        epsilon=0.25
        """
        self._check_kind(other)
        delta = max(self.delta - other.delta, Fraction(0))
        return Budget._of(_excess(self.epsilon, other.epsilon), delta, _excess(self.rho, other.rho))

    def __add__(self, other: "Budget") -> "Budget":
        if not isinstance(other, Budget):
            return NotImplemented
        self._check_kind(other)
        delta = self.delta + other.delta
        if delta >= 1:
            raise ParameterError(f"`delta` must stay below 1 in a sum, got {self} and {other}.")
        return Budget._of(_sum(self.epsilon, other.epsilon), delta, _sum(self.rho, other.rho))

    def __sub__(self, other: "Budget") -> "Budget":
        if not isinstance(other, Budget):
            return NotImplemented
        shortfall = other.excess_over(self)
        if shortfall:
            raise BudgetExceededError(f"requested {other}, remaining {self:down}, difference {shortfall}.")
        return self.excess_over(other)

    def __le__(self, other: "Budget") -> bool:
        if not isinstance(other, Budget):
            return NotImplemented
        return not self.excess_over(other)

    def __bool__(self) -> bool:
        return bool(self.epsilon or self.delta or self.rho)

    def _check_kind(self, other: "Budget") -> None:
        if (self.rho is None) != (other.rho is None):
            raise ParameterError(
                f"Budgets in rho and in epsilon must not be mixed, got {self} and {other}. "
                "Convert the one in epsilon with `as_zcdp()`."
            )

    def _amounts(self) -> dict[str, Fraction]:
        """Return the numbers by name, without a delta of 0."""
        named = {"epsilon": self.epsilon, "delta": self.delta or None, "rho": self.rho}
        return {name: value for name, value in named.items() if value is not None}

    def to_dict(self) -> dict[str, str]:
        """Return the exact numbers as text, ready for JSON.

        Examples
        --------
        >>> Budget(0.1, 1e-5).to_dict()
        {'epsilon': '1/10', 'delta': '1/100000'}
        """
        return {name: str(value) for name, value in self._amounts().items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, str]) -> Self:
        """Return the budget that `to_dict` wrote, zero included.

        Examples
        --------
        >>> Budget.from_dict({"epsilon": "1/3"})
        Budget(epsilon='1/3')
        """
        if set(record) not in ({"epsilon"}, {"epsilon", "delta"}, {"rho"}):
            raise ParameterError(
                "`record` must have the keys epsilon, epsilon and delta, or rho, "
                f"got {sorted(map(str, record))}."
            )
        numbers = {name: as_exact(name, text) for name, text in record.items()}
        delta = numbers.get("delta", Fraction(0))
        if min(numbers.values()) < 0 or delta >= 1:
            raise ParameterError(
                f"`record` must have no negative number and a delta below 1, got {dict(record)}."
            )
        return cls._of(numbers.get("epsilon"), delta, numbers.get("rho"))

    def __format__(self, direction: str) -> str:
        """Text with exact decimals or six digits, rounded up; ``f"{budget:down}"`` rounds down.

        A guarantee must not read smaller than it is, and what remains of a total must not read larger.

        Examples
        --------
        >>> f"{Budget('1/3')}, {Budget('1/3'):down}, {Budget('1/4'):down}"
        'epsilon=0.333334, epsilon=0.333333, epsilon=0.25'
        """
        if direction not in ("", "down"):
            raise ValueError(f"the format of a Budget must be empty or 'down', got {direction!r}")
        rounded = rounded_down if direction else rounded_up
        return ", ".join(f"{name}={_readable(value, rounded)}" for name, value in self._amounts().items())

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return f"Budget({', '.join(f'{name}={_literal(value)}' for name, value in self._amounts().items())})"


def _sum(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else a + b


def _excess(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None else max(a - b, Fraction(0))


def _readable(value: Fraction, rounded: Callable[[Fraction, int], str] = rounded_up) -> str:
    """Write the shortest exact decimal, or six digits if there is none."""
    text = repr(float(value)).removesuffix(".0")
    return text if Fraction(text) == value else rounded(value, 6)


def _literal(value: Fraction) -> str:
    text = _readable(value)
    return text if Fraction(text) == value else f"'{value}'"


def _refusal(name: str, wanted: str, value: object) -> ParameterError:
    return ParameterError(
        f"`{name}` must be {wanted}, got {reprlib.repr(value)}. Write it like 0.5, '1e-6' or '1/3'."
    )


def _positive(name: str, value: Number) -> Fraction:
    exact = as_exact(name, value)
    if exact <= 0:
        raise _refusal(name, "a positive, finite number", value)
    return exact


def as_exact(name: str, value: Number) -> Fraction:
    """Read a number without rounding. A float stands for the shortest decimal that gives it.

    Parameters
    ----------
    name : str
        Name of the number in errors.
    value : int, float, str, Fraction, Decimal or NumPy scalar

    Returns
    -------
    Fraction
        Zero, or of either sign with a size between 1e-100 and 1e100.

    Raises
    ------
    ParameterError
        If `value` is not a finite number, or is a boolean.

    Examples
    --------
    >>> as_exact("share", 0.1)
    Fraction(1, 10)
    """
    if isinstance(value, bool | np.bool_):
        raise _refusal(name, "a number", value)
    if isinstance(value, int | np.integer):
        exact = Fraction(int(value))
    elif isinstance(value, Fraction):
        exact = value
    elif isinstance(value, float | np.floating | str | Decimal):
        exact = _parsed(name, value)
    else:
        raise _refusal(name, "a number", value)
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
        raise ParameterError(f"`{name}` must have at most {_MOST_BITS} bits, got a longer number. Round it.")
    if exact and not 1 / _LARGEST <= abs(exact) <= _LARGEST:
        raise _refusal(name, _RANGE, value)
    return exact


def _parsed(name: str, value: float | str | Decimal | np.floating[Any]) -> Fraction:
    text = str(value)
    try:
        if "/" in text:
            return Fraction(text)
        decimal = Decimal(text)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        raise _refusal(name, "a finite number", value) from None
    if not decimal.is_finite():
        raise _refusal(name, "a finite number", value)
    if decimal and abs(decimal.adjusted()) > _LARGEST_EXPONENT:
        raise _refusal(name, _RANGE, value)
    return Fraction(decimal)
