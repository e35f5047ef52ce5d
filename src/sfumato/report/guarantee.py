"""The guarantee in words for those who decide, with its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.budget import PrivacyStatement
from sfumato.domain import Unit
from sfumato.report.markup import paragraph, table

DELTA_FOR_RHO = 1e-6
_BELIEFS = (0.01, 0.1, 0.5, 0.9)

_OPENING = (
    "The clusters below come from a table that stays confidential. Random noise was added while they were "
    "computed, enough that everything on this page would be almost as likely if any one {unit} had not been "
    "in the table. This is called differential privacy, and it holds whatever else an observer knows."
)
_LIMITS = (
    "What is not promised: facts about large groups are not hidden, because to publish them is the purpose. "
    "And losses add up: whatever else is published from the same table has its own epsilon, and what counts "
    "for a person is the sum of all. The budget ledger of the data holder keeps that sum."
)
_STRENGTHS = (
    (1, "of up to 1 is a strong guarantee."),
    (10, "between 1 and 10 is a reasonable guarantee, and one of up to 1 a strong one."),
    (math.inf, "above 10 is a weak guarantee: it says little about what could be learned of one person."),
)


@dataclass(frozen=True)
class Guarantee:
    """The numbers of a privacy statement, computed once.

    Parameters
    ----------
    epsilon : float
    delta : float
    rho : float or None
        If the budget was stated in rho; `epsilon` is then the one at `delta`.
    unit : Unit
        Who is protected.
    """

    epsilon: float
    delta: float
    rho: float | None
    unit: Unit

    @classmethod
    def of(cls, privacy: PrivacyStatement) -> Guarantee:
        """Return the guarantee that a statement gives."""
        spent = privacy.spent
        if spent.epsilon is None:
            epsilon = privacy.epsilon_at(DELTA_FOR_RHO)
            return cls(epsilon, DELTA_FOR_RHO, float(spent.rho or 0), privacy.unit)
        return cls(float(spent.epsilon), float(spent.delta), None, privacy.unit)

    def factor(self, units: int = 1) -> float:
        """Largest factor by which anyone's odds about one unit, or about several, can change."""
        return math.exp(min(units * self.epsilon, 700))

    def beliefs(self, prior: float) -> tuple[float, float]:
        """Least and largest probability that someone can give after reading, who gave `prior` before."""
        odds = prior / (1 - prior)
        low, high = odds / self.factor(), odds * self.factor()
        return low / (1 + low), high / (1 + high)

    def summary(self) -> dict[str, str]:
        """Return the facts for the head of the page."""
        delta = f", delta = {self.delta:.2g}" if self.delta else ""
        return {
            "Guarantee": f"epsilon = {self.epsilon:.3g}{delta}",
            "Protected": "one row" if self.unit.column is None else "one person",
            "Odds change at most by": f"a factor of {_times(self.factor())}",
        }


def in_words(guarantee: Guarantee) -> str:
    """Return the section on what is protected, and how strongly, as HTML."""
    unit = "row" if guarantee.unit.column is None else "person"
    return "".join(
        [
            paragraph(_OPENING.format(unit=unit)),
            paragraph(_epsilon(guarantee)),
            _belief_table(guarantee),
            paragraph(_delta(guarantee)),
            paragraph(_unit(guarantee)),
            paragraph(_LIMITS),
        ]
    )


def _who(guarantee: Guarantee) -> str:
    return "the row of a particular person" if guarantee.unit.column is None else "a particular person"


def _epsilon(guarantee: Guarantee) -> str:
    opening = f"Epsilon is {guarantee.epsilon:.3g}."
    if guarantee.rho is not None:
        opening = (
            f"The budget is rho = {guarantee.rho:.3g}, in zero-concentrated differential privacy. In common "
            f"terms, epsilon is {guarantee.epsilon:.3g}."
        )
    strength = next(text for limit, text in _STRENGTHS if guarantee.epsilon <= limit)
    return (
        f"{opening} Whoever wants to know whether {_who(guarantee)} is in the table can change their odds, "
        f"by reading everything that was published, by a factor of at most {_times(guarantee.factor())}. In "
        f"a common reading (Ponomareva et al., JAIR 77, 2023) an epsilon {strength}"
    )


def _belief_table(guarantee: Guarantee) -> str:
    rows = [(f"{prior:.0%}", *map(_percent, guarantee.beliefs(prior))) for prior in _BELIEFS]
    caption = f"How sure someone can be that {_who(guarantee)} is in the table, before reading and after"
    return table(caption, ("sure before", "after, at least", "after, at most"), rows)


def _delta(guarantee: Guarantee) -> str:
    if not guarantee.delta:
        return "There is no delta: the bound holds without exception."
    return (
        f"Delta is {guarantee.delta:.2g}, that is 1 in {1 / guarantee.delta:,.0f}: the probability of any "
        "result may exceed the bound by this much and no more. It is the allowance for rare cases in which "
        "the bound fails."
    )


def _unit(guarantee: Guarantee) -> str:
    unit = guarantee.unit
    if unit.column is not None:
        rows = "one row" if unit.max_rows == 1 else f"at most {unit.max_rows:,} rows"
        return (
            f"Protected is each person, as named by the column {unit.column!r}, with all their rows. To make "
            f"that possible, {rows} of each person entered the computation."
        )
    text = (
        "Protected is each single row of the table, almost as if it had never been there. Where each person "
        "has one row, that is the person. Someone with several rows is protected less"
    )
    # Group privacy has this simple form only without delta.
    return text + (
        "." if guarantee.delta else f": with two rows, the factor is {_times(guarantee.factor(2))}."
    )


def _times(factor: float) -> str:
    if factor < 1000:
        return f"{factor:.3g}"
    return f"{factor:,.0f}" if factor < 1e6 else f"{factor:.2g}"


def _percent(share: float) -> str:
    """Write a probability so that it never reads as certainty."""
    if 0.001 <= share <= 0.999:
        return f"{100 * share:.3g}%"
    return "below 0.1%" if share < 0.001 else "above 99.9%"
