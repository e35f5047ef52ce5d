"""Private levels: the values of a category that many people have, from noisy counts above a threshold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sfumato.budget import Plan, PrivacyStatement, Step, calibrate
from sfumato.budget.bought import Bought, plain, purchases
from sfumato.cluster.shared.parameters import OF_FITS, SharedParameters, as_budget, as_seed, takes_shared
from sfumato.curator import Questions, levels_sensitivity, open_table, run
from sfumato.curator.levels import open_levels
from sfumato.domain import Unit
from sfumato.domain.columns import Missing
from sfumato.domain.constraints import whole
from sfumato.errors import NoiseWarning, ParameterError

LEVELS = "levels"  # name of the step
PRIVATE = {"levels": "private"}  # what `bounds` say of a category whose levels are not public
# Chosen: docs/notes/constants.md#levels
LEVELS_SHARE = Fraction(1, 10)  # of epsilon, for the levels that a fit finds
MOST_LEVELS = 32  # per column: those that most people have


class FoundLevels(NamedTuple):
    """What was released about a category."""

    levels: tuple[str, ...]  # sorted
    noisy_people: tuple[int, ...]  # how many people have each, at least the threshold
    threshold: int


def level_steps(n_columns: int) -> tuple[Step, ...]:
    """Steps that `find_levels` asks, with shares that sum to 1: one question about all columns."""
    return (Step(LEVELS, 1, sensitivity=levels_sensitivity(n_columns), threshold=True),)


def private_columns(bounds: object) -> tuple[str, ...]:
    """Names of the columns whose levels `bounds` leave to be found."""
    if not isinstance(bounds, Mapping):
        return ()
    return tuple(name for name, value in bounds.items() if isinstance(value, Mapping) and value == PRIVATE)


def find_levels(names: Sequence[str], most: int, curator: Questions) -> dict[str, FoundLevels]:
    """Levels of columns: the values that so many people have that a threshold shows them.

    Parameters
    ----------
    names : sequence of str
        The columns, in the order of the table that the curator holds.
    most : int
        Maximum number per column. Those with the largest noisy counts stay.
    curator : Questions
        Its plan must have the steps of `level_steps`.

    Privacy
    -------
    One noisy count for each value that occurs, of which only those above a public threshold are released.
    Proof: docs/proofs/levels.md.
    """
    noisy = curator.levels(LEVELS)
    found = {}
    for name, texts, counts in zip(names, noisy.texts, noisy.counts, strict=True):
        kept = sorted(np.argsort(-counts, kind="stable")[:most].tolist())
        found[name] = FoundLevels(
            tuple(texts[i] for i in kept), tuple(int(counts[i]) for i in kept), noisy.threshold
        )
        if not texts:
            warnings.warn(
                f"no level of column {name!r} was found: no value stands out at {noisy.threshold} people. "
                "The column says nothing about the rows. Spend more, or list the levels if they are public",
                NoiseWarning,
                stacklevel=2,
            )
    return found


def most_levels(plan_for: Callable[[int], Plan], n_features: int, n_columns: int, most_columns: int) -> int:
    """Number of levels per column for which the method can surely make a plan. Public numbers only.

    Parameters
    ----------
    plan_for : callable
        The plan of the method for a number of coordinates. It raises if there are too many.
    n_features : int
        Number of coordinates before any level of the `n_columns` columns is known.
    n_columns : int
    most_columns : int
        Maximum number of coordinates, unless there are more without any level.
    """
    plan_for(n_features)  # may raise
    n_most = max(0, min(n_columns * MOST_LEVELS, most_columns - n_features))
    for n_more in range(1, n_most + 1):
        try:
            plan_for(n_features + n_more)
        except ParameterError:
            return (n_more - 1) // n_columns
    return n_most // n_columns


def expected_levels(names: Sequence[str], n_levels: int) -> dict[str, list[str]]:
    """Levels that stand for `n_levels` which are not known yet, spread over columns."""
    return {name: [f"level {i}" for i in range(j, n_levels, len(names))] for j, name in enumerate(names)}


def room_for_levels(most: int, names: Sequence[str], missing: Missing) -> int:
    """How many levels may be found per column if a level that stands in for missing values needs room."""
    stands_in = not isinstance(missing, str) and any(name in missing for name in names)
    return most - int(stands_in)


@dataclass(frozen=True)
class EstimatedLevels(Sequence[Bought]):
    """Private levels of a category, to pass to a fit: ``bounds={"job": levels}``.

    A release that uses the levels includes their cost.

    Parameters
    ----------
    levels : tuple of Bought
        Texts, sorted. If it is empty, all rows have the same coordinate.
    noisy_people : tuple of int
        Released number of people who have each level.
    threshold : int
        A level is shown if its noisy number of people reaches this.
    privacy : PrivacyStatement
        What the levels cost, together with those of other columns found with them.
    """

    levels: tuple[Bought, ...]
    noisy_people: tuple[int, ...]
    threshold: int
    privacy: PrivacyStatement

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, index: Any) -> Any:
        return self.levels[index]


@takes_shared("bounds", "outside", *OF_FITS)
def estimate_levels(
    X: Any, columns: Sequence[str], max_levels: int = MOST_LEVELS, *, shared: SharedParameters
) -> dict[str, EstimatedLevels]:
    """Find the levels of categories under differential privacy, for a budget of their own.

    A level is found if many people have it: with certainty beyond doubt if three times as many have it as the
    threshold says. A value that only one person has is shown with a probability of at most delta, so `delta`
    is needed. Whatever is not found counts as other. Levels that are public knowledge are better, and free.

    Parameters
    ----------
    X : table with named columns
        As for a fit. The columns must hold text, integers or booleans.
    columns : sequence of str
    max_levels : int
        Maximum number of levels per column: those that most people have.

    Returns
    -------
    dict of str to EstimatedLevels
        For each column something to pass to a fit in `bounds`.

    Privacy
    -------
    A person counts once per column, with one of the values that this person has. Discrete Laplace noise on
    the counts costs epsilon; delta bounds the probability that the threshold shows a value that only one
    person has. `max_rows_per_unit` makes no difference. Proof: docs/proofs/levels.md.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"job": ["baker"] * 400 + ["judge"] * 300 + ["king"]})
    >>> found = estimate_levels(people, ["job"], epsilon=0.5, delta=1e-6, random_state=0)
    >>> found["job"].levels, found["job"].threshold
    (('baker', 'judge'), 28)
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence) or len(set(columns)) < len(columns):
        raise ParameterError(f"`columns` must be a list of distinct names, got {columns!r}")
    whole(10**6)("max_levels", max_levels)
    unit = Unit(shared.unit, plain(shared.max_rows_per_unit))
    bounds = dict.fromkeys(columns, PRIVATE)
    table = open_levels(open_table(X, bounds, unit, shared.missing), columns, shared.missing)
    budget = as_budget(shared.epsilon, shared.delta, shared.rho)
    priced = calibrate(Plan(*level_steps(len(columns))), budget, unit.max_rows)
    find, seed = partial(find_levels, tuple(columns), max_levels), as_seed(shared.random_state)
    done = run(table, priced, find, method="estimate_levels", ledger=shared.ledger, seed=seed)
    paid = (done.privacy, *purchases(shared.max_rows_per_unit))
    return {
        name: EstimatedLevels(tuple(Bought(level, paid) for level in found.levels), *found[1:], done.privacy)
        for name, found in done.found.items()
    }
