"""Values bought with a budget. They carry what they cost, so that a release that uses them can state it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce, total_ordering
from numbers import Real
from typing import Any, NoReturn

from sfumato.budget.statement import PrivacyStatement
from sfumato.domain import Ball
from sfumato.errors import ParameterError

_REFUSAL = (
    "a value that was bought with a privacy budget must not become a plain number or part of an array, which "
    "would hide its cost. Pass it to a fit as it is, alone, in tuples or in a mapping. To show it, use its "
    "`value`; whoever publishes results that depend on that must add its `privacy`"
)


def _forward(function: Callable[[Any, Any], Any]) -> Callable[[Bought, object], Bought]:
    return lambda self, other: _applied(function, self, other)


def _backward(function: Callable[[Any, Any], Any]) -> Callable[[Bought, object], Bought]:
    return lambda self, other: _applied(function, other, self)


@total_ordering
@dataclass(frozen=True, eq=False, repr=False)
class Bought:
    """A released number or text that carries what it cost. Arithmetic with numbers keeps the cost.

    Parameters
    ----------
    value : int, float or str
        The value alone.
    privacy : tuple of PrivacyStatement
        What it cost: one statement for each purchase that it depends on.

    Privacy
    -------
    The value is public, because it was released. A release that depends on it must state its cost, too. So
    it turns into an array or a plain number only by its `value`.
    """

    value: Any
    privacy: tuple[PrivacyStatement, ...]

    __array_ufunc__ = None  # arithmetic with NumPy numbers comes here; with arrays it is refused

    __add__, __radd__ = _forward(operator.add), _backward(operator.add)
    __sub__, __rsub__ = _forward(operator.sub), _backward(operator.sub)
    __mul__, __rmul__ = _forward(operator.mul), _backward(operator.mul)
    __truediv__, __rtruediv__ = _forward(operator.truediv), _backward(operator.truediv)

    def __neg__(self) -> Bought:
        return Bought(-self.value, self.privacy)

    def __round__(self, digits: int | None = None) -> Bought:
        return Bought(round(self.value, digits), self.privacy)

    def __eq__(self, other: object) -> Any:
        return self.value == plain(other)

    def __lt__(self, other: object) -> Any:
        return self.value < plain(other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def _refuse(self, *args: object, **options: object) -> NoReturn:
        raise ParameterError(_REFUSAL)

    __array__ = __float__ = __int__ = __index__ = _refuse


def _applied(function: Callable[[Any, Any], Any], a: object, b: object) -> Bought:
    if not all(isinstance(plain(value), Real) for value in (a, b)):
        raise ParameterError(_REFUSAL)
    return Bought(function(plain(a), plain(b)), purchases(a, b))


def purchases(*values: object) -> tuple[PrivacyStatement, ...]:
    """What was bought among values, in tuples, mappings and balls too. Each purchase counts once.

    Examples
    --------
    >>> purchases(1.0, {"x": (0, 1)}, Ball(2.0), None)
    ()
    """
    return tuple({id(statement): statement for value in values for statement in _found(value)}.values())


def _found(value: object) -> Iterator[PrivacyStatement]:
    inner: Sequence[object] = ()
    if isinstance(value, Bought):
        yield from value.privacy
    elif isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, Ball):
        inner = (value.radius, value.center)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        inner = value
    for part in inner:
        yield from _found(part)
    if isinstance(own := getattr(value, "privacy", None), PrivacyStatement):
        yield own


def plain(value: Any) -> Any:
    """The same without what it cost. What was not bought is returned as it is."""
    if isinstance(value, Bought):
        return value.value
    if not purchases(value):
        return value
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    return replace(value, **{field.name: plain(getattr(value, field.name)) for field in fields(value)})


def after_purchases(privacy: PrivacyStatement, bought: Sequence[PrivacyStatement]) -> PrivacyStatement:
    """Statement of a release together with what it uses. Raises if they cannot be added."""
    return reduce(lambda total, earlier: total.after(earlier), bought, privacy)
