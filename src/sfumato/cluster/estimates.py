"""What may be bought before a fit: bounds of the columns, and a cap on the rows of a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.budget import Budget, Ledger, Plan, PrivacyStatement, Step, calibrate
from sfumato.cluster.base import ANYWHERE, PrivateEstimator, charged
from sfumato.cluster.bounds import bounds_steps, find_bounds
from sfumato.cluster.checks import MOST_CLUSTERS, check_choice, check_whole
from sfumato.cluster.contributions import Contributions, choose_max_rows, contribution_steps
from sfumato.columns import Missing, check_names
from sfumato.curator import column_names, open_curator, open_people
from sfumato.domain import ALL_ROWS, Domain, Unit
from sfumato.errors import ParameterError


@dataclass(frozen=True)
class EstimatedBounds(Sequence[tuple[float, ...]]):
    """Bounds that were bought; a pair (low, high), to be given to a fit as ``bounds``.

    Of named columns, they choose these columns. A release that rests on them states their cost with its own.

    Parameters
    ----------
    low, high : tuple of float
    columns : tuple of str
        Names of the columns, if they have any.
    privacy : PrivacyStatement
        What they cost.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    columns: tuple[str, ...]
    privacy: PrivacyStatement

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        return (self.low, self.high)[index]


@dataclass(frozen=True)
class SuggestedCap:
    """A cap on the rows of a person that was bought, for ``max_rows_per_unit``.

    Parameters
    ----------
    max_rows : int
    contributions : Contributions
        The released histogram that it was chosen from.
    privacy : PrivacyStatement
        What it cost.
    """

    max_rows: int
    contributions: Contributions
    privacy: PrivacyStatement


def _are_names(columns: object) -> bool:
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        return False
    return all(isinstance(name, str) for name in columns)


class _Question(PrivateEstimator):
    """The parameters that a question before a fit shares with a fit."""

    def __init__(self, **parameters: Any) -> None:
        for name, value in parameters.items():
            setattr(self, name, value)


def estimate_bounds(
    X: Any,
    columns: Sequence[str] | None = None,
    *,
    epsilon: Any = 1.0,
    delta: Any = 0.0,
    rho: Any = None,
    unit: str | None = None,
    max_rows_per_unit: int = 1,
    missing: Missing = "error",
    ledger: Ledger | None = None,
    random_state: int | None = None,
) -> EstimatedBounds:
    """Find bounds of numeric columns under differential privacy, for a budget of their own.

    Three passes of noisy histograms: powers of two, then twice equal bins within what was found. The result
    is tight around what stands out of the noise; single outliers do not widen it. Bounds that are public
    knowledge are better, and free. If the noise hides all rows of a column, its bounds are (-1, 1).

    Parameters
    ----------
    X : table
        As for a fit.
    columns : sequence of str, optional
        Columns of a table with names; by default all but that of `unit`.
    epsilon, delta, rho : float
        Budget: `epsilon` alone, `epsilon` with `delta`, or `rho` alone.
    unit : str, optional
        Column that identifies a person. By default every row is a person of its own.
    max_rows_per_unit : int
        At most so many rows of a person are used; all noise grows in proportion.
    missing : {"error", "drop"}
        What to do with rows that have a missing value.
    ledger : Ledger, optional
        Where the budget is charged before any row is read.
    random_state : int, optional
        Reproducible noise for experiments; do not publish what it gives.

    Privacy
    -------
    Each histogram has sensitivity 1 per column for one row; its bins depend on earlier released values only.
    Proof: docs/proofs/bounds.md.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal([37.7, -122.4], 0.02, (50_000, 2))
    >>> bounds = estimate_bounds(rows, epsilon=0.5, random_state=0)
    >>> bool((bounds.low < np.array([37.66, -122.44])).all())
    True
    >>> bool((bounds.high < np.array([37.9, -122.2])).all())
    True
    """
    if columns is not None and not _are_names(columns):
        raise ParameterError(f"`columns` must be a list of names or None, got {columns!r}")
    chosen = ANYWHERE if columns is None else dict.fromkeys(columns, ANYWHERE)
    question = _Question(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        bounds=chosen,
        unit=unit,
        max_rows_per_unit=max_rows_per_unit,
        missing=missing,
        random_state=random_state,
    )
    table = question._open(X)
    seed = question._seed()
    priced = question._priced(Plan(*bounds_steps(table.domain.n_features)), table.domain)
    with charged(ledger, "estimate_bounds", priced, seeded=seed is not None):
        curator = open_curator(table.X, table.domain, priced, seed, table.columns)
        low, high = find_bounds(curator)
    names = tuple(str(name) for name in getattr(question, "feature_names_in_", ()))
    return EstimatedBounds(tuple(low.tolist()), tuple(high.tolist()), names, curator.statement())


def suggest_max_rows(
    X: Any,
    unit: str,
    n_clusters: int = 8,
    *,
    budget: Budget | None = None,
    epsilon: Any = 1.0,
    delta: Any = 0.0,
    rho: Any = None,
    missing: Missing = "error",
    ledger: Ledger | None = None,
    random_state: int | None = None,
) -> SuggestedCap:
    """Suggest ``max_rows_per_unit`` from a noisy histogram of how many rows people have.

    More rows of each person mean less chance in what is seen, and more noise. The cap balances the two for
    the size of a cluster that holds one in `n_clusters` of the rows, see `choose_max_rows`.

    Parameters
    ----------
    X : table with named columns
        As for a fit.
    unit : str
        Column that identifies a person.
    n_clusters : int
    budget : Budget, optional
        Of the fit for which the cap is meant; by default epsilon 1. Nothing of it is spent.
    epsilon, delta, rho : float
        Budget of the histogram.
    missing : {"error", "drop"}
        What to do with rows without a person.
    ledger : Ledger, optional
        Where the budget is charged before any row is read.
    random_state : int, optional
        Reproducible noise for experiments; do not publish what it gives.

    Privacy
    -------
    A person with all rows, however many, is one count in one bin: sensitivity 1.
    Proof: docs/proofs/bounds.md.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rides = pd.DataFrame({"cab": np.repeat(np.arange(2000), 50), "km": 1.0})
    >>> suggest_max_rows(rides, "cab", epsilon=0.2, random_state=0).max_rows > 1
    True
    """
    check_whole("n_clusters", n_clusters, most=MOST_CLUSTERS)
    if not isinstance(unit, str):
        raise ParameterError(f"`unit` must name the column that identifies a person, got {unit!r}")
    if budget is not None and not isinstance(budget, Budget):
        raise ParameterError(f"`budget` must be a Budget or None, got {budget!r}")
    check_choice("missing", missing, ("error", "drop"))
    check_names([unit], column_names(X))
    question = _Question(
        epsilon=epsilon, delta=delta, rho=rho, bounds=(1, ALL_ROWS), random_state=random_state
    )
    domain, seed = Domain.from_bounds((1, ALL_ROWS), 1), question._seed()
    priced = question._priced(Plan(*contribution_steps()), domain)
    noise = calibrate(Plan(Step("count", 1)), budget or Budget(1)).records()[0].noise_std
    with charged(ledger, "suggest_max_rows", priced, seeded=seed is not None):
        curator = open_people(X, unit, missing, domain, priced, seed)
        found = choose_max_rows(curator, int(n_clusters), noise)
    records, whole = curator.records, Unit(unit, ALL_ROWS)
    return SuggestedCap(
        found.max_rows, found, PrivacyStatement(priced.budget, whole, records, seed is not None)
    )
