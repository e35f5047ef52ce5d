"""The guarantee in words for those who decide, with its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.budget import PrivacyStatement
from sfumato.budget.amounts import as_exact
from sfumato.budget.exact import exp_up, float_up, rounded_down, rounded_up
from sfumato.domain import ALL_ROWS, Unit
from sfumato.report.markup import paragraph, table

DELTA_FOR_RHO = 1e-6
_RARE = 1e-3  # a larger delta exceeds one over the number of people in all but small tables
_BELIEFS = (0.01, 0.1, 0.5, 0.9)
_FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1, 0.5)

_OPENING = (
    "The results below come from a table that stays confidential. Random noise was added while they were "
    "computed. {enough} This is called differential privacy. It holds no matter what else an observer knows."
)
_ENOUGH = (
    "There is enough noise that everything on this page would be almost as likely if any one {unit} had not "
    "been in the table."
)
_LIMITED = (
    "The noise limits how much more or less likely anything on this page would be if any one {unit} had not "
    "been in the table. The limit is below."
)
_LIMITS = (
    "Two things are not promised. Facts about large groups are not hidden, because publishing them is the "
    "purpose. And losses of privacy add up: anything else that is published from the same table has its own "
    "epsilon, and what counts for a person is the total. The data holder's budget ledger keeps that total."
)
_ATTACKERS = (
    "Or suppose that someone tests whether {someone} is in the table, with this release, all other knowledge "
    "and any computer. A hit is the answer yes if that is true, a false alarm the answer yes if it is not. "
    "For a guess without the release, hits are as likely as false alarms. With it, they are at most as "
    "likely as this:"
)
_STRONG = 1
_STRENGTHS = (
    (_STRONG, "of up to 1 is a strong guarantee."),
    (10, "between 1 and 10 is a reasonable guarantee. An epsilon of up to 1 is a strong one."),
    (math.inf, "above 10 is a weak guarantee. It says little about what could be learned about one person."),
)


@dataclass(frozen=True)
class Protection:
    """The numbers of a privacy statement, computed once."""

    epsilon: float
    delta: float
    rho: float | None  # set if the budget was stated in rho. `epsilon` is then its value at `delta`
    unit: Unit  # who is protected
    hits: Mapping[float, float] = field(default_factory=dict)  # largest rate of hits, by that of false alarms

    @classmethod
    def of(cls, privacy: PrivacyStatement) -> Protection:
        """Return the protection that a statement gives."""
        spent = privacy.spent
        hits = {rate: privacy.attack_power(rate) for rate in _FALSE_ALARMS}
        if spent.epsilon is None:
            epsilon = privacy.epsilon_at(DELTA_FOR_RHO)
            return cls(epsilon, DELTA_FOR_RHO, privacy.rho, privacy.unit, hits)
        return cls(float_up(spent.epsilon), privacy.delta, None, privacy.unit, hits)

    @property
    def who(self) -> str:
        """What is protected, in one word."""
        return "record" if self.unit.column is None else "person"

    @property
    def is_strong(self) -> bool:
        """Whether a record or a person makes so little difference that it may be called almost none."""
        return self.epsilon <= _STRONG and self.delta <= _RARE

    def factor(self, units: int = 1) -> float:
        """Largest factor by which anyone's odds about one or more units can change."""
        return exp_up(min(units * self.epsilon, 700))

    def beliefs(self, prior: float) -> tuple[float, float]:
        """Lowest and highest probability after reading, for someone who started with `prior`."""
        odds = prior / (1 - prior)
        low, high = odds / self.factor(), odds * self.factor()
        return low / (1 + low), high / (1 + high)

    def summary(self) -> dict[str, str]:
        """Return the facts for the top of the page."""
        delta = f", delta = {rounded_up(self.delta, 2)}" if self.delta else ""
        return {
            "Guarantee": f"epsilon = {rounded_up(self.epsilon, 3)}{delta}",
            "Protects": f"each {self.who}",
            "Odds change by at most": f"a factor of {_times(self.factor())}",
        }


def in_words(protection: Protection) -> str:
    """Return the section on what is protected, and how strongly, as HTML."""
    return "".join(
        [
            paragraph(_opening(protection)),
            paragraph(_epsilon(protection)),
            _belief_table(protection),
            paragraph(_delta(protection)),
            _attackers(protection) if protection.hits else "",
            paragraph(_unit(protection)),
            paragraph(_LIMITS),
        ]
    )


def _opening(protection: Protection) -> str:
    enough = _ENOUGH if protection.is_strong else _LIMITED
    return _OPENING.format(enough=enough.format(unit=protection.who))


def _someone(protection: Protection) -> str:
    return "the record of a particular person" if protection.unit.column is None else "a particular person"


def _epsilon(protection: Protection) -> str:
    opening = (
        "A number called epsilon measures the strength of the protection. Smaller is stronger. Here, epsilon "
        f"is {rounded_up(protection.epsilon, 3)}."
    )
    if protection.rho is not None:
        opening = (
            f"The budget is rho = {rounded_up(protection.rho, 3)}, in zero-concentrated differential "
            f"privacy. In more common terms, epsilon is {rounded_up(protection.epsilon, 3)}; a smaller "
            "epsilon is stronger."
        )
    strength = next(text for limit, text in _STRENGTHS if protection.epsilon <= limit)
    if protection.delta > _RARE:
        strength += " This rule is for a tiny delta, and here it is large, see below."
    return (
        f"{opening} Suppose someone wants to know whether {_someone(protection)} is in the table. Reading "
        f"all of this release can change their odds by a factor of at most {_times(protection.factor())}. By "
        f"a common rule of thumb (Ponomareva et al., JAIR 77, 2023), an epsilon {strength}"
    )


def _belief_table(protection: Protection) -> str:
    beliefs = {prior: protection.beliefs(prior) for prior in _BELIEFS}
    rows = [
        (f"{prior:.0%}", _percent(low, rounded_down), _percent(high, rounded_up))
        for prior, (low, high) in beliefs.items()
    ]
    caption = f"How sure someone can be that {_someone(protection)} is in the table, before and after reading"
    return table(caption, ("before", "after, at least", "after, at most"), rows)


def _attackers(protection: Protection) -> str:
    someone = _someone(protection)
    rows = [
        (f"{100 * rate:g}%", f"{100 * rate:g}%", _percent(hits, rounded_up))
        for rate, hits in protection.hits.items()
    ]
    caption = f"How likely the best attacker is to notice that {someone} is in the table"
    head = ("false alarms", "hits by guessing", "hits with this release, at most")
    return paragraph(_ATTACKERS.format(someone=someone)) + table(caption, head, rows)


def _delta(protection: Protection) -> str:
    if not protection.delta:
        return "This limit holds without exception: delta is 0."
    one_in = math.floor(1 / as_exact("delta", protection.delta))
    text = (
        f"Delta is {rounded_up(protection.delta, 2)}, or 1 in {one_in:,}. The probability of any "
        "result may exceed the limit by this much and no more. "
    )
    if protection.delta <= _RARE:
        return f"{text}Delta allows for rare cases in which the limit fails."
    return (
        f"{text}This is not rare, so the guarantee is weak, whatever epsilon is. Delta should be well below "
        "one over the number of people in the table."
    )


def _unit(protection: Protection) -> str:
    unit = protection.unit
    if unit.column is not None:
        text = (
            f"Each person is protected, together with all their records. The column {unit.column!r} "
            "identifies the person."
        )
        if unit.max_rows < ALL_ROWS:
            used = "one record" if unit.max_rows == 1 else f"at most {unit.max_rows:,} records"
            text += f" To make this possible, {used} of each person entered the computation."
        return text
    almost = " almost as if it had never been there" if protection.is_strong else ""
    text = (
        f"Each single record, which is one row of the table, is protected{almost}. If each person has one "
        "record, this protects the person. A person with several records is protected less"
    )
    # Group privacy has this simple form only without delta.
    return text + (
        "." if protection.delta else f": with two records, the factor is {_times(protection.factor(2))}."
    )


def _times(factor: float) -> str:
    if factor < 1000:
        return rounded_up(factor, 3)
    return f"{math.ceil(factor):,}" if factor < 1e6 else rounded_up(factor, 2)


def _percent(probability: float, rounded: Callable[[Fraction, int], str]) -> str:
    """Write a probability so that it never reads as certainty."""
    if 0.001 <= probability <= 0.999:
        return f"{rounded(100 * as_exact('probability', probability), 3)}%"
    return "below 0.1%" if probability < 0.001 else "above 99.9%"
