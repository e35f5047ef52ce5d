"""Private choice of the row cap: how many rows per person are worth their noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sfumato.budget import Budget, Plan, PrivacyStatement, Step, calibrate
from sfumato.budget.bought import Bought
from sfumato.cluster.shared.bounds import noise_of_runs, visible_runs
from sfumato.cluster.shared.parameters import (
    MOST_CLUSTERS,
    OF_FITS,
    SharedParameters,
    as_budget,
    as_seed,
    takes_shared,
)
from sfumato.curator import Noisy, Questions, histograms_sensitivity, open_people, run
from sfumato.domain import ALL_ROWS, FloatArray, IntArray, Unit
from sfumato.domain.constraints import whole
from sfumato.errors import ParameterError
from sfumato.public.means import project_to_simplex

CONTRIBUTIONS = "contributions"  # name of the step
MOST_ROWS_EXPONENT = 40  # nobody has more than 2^40 rows
# Tuned: docs/notes/constants.md#caps
FALSE_ALARM = 1e-2  # probability that noise alone looks like people with many rows
LONGEST = 8  # bins in a run: four powers of two


@dataclass(frozen=True, eq=False)
class Contributions:
    """A row cap, and the released histogram it was chosen from. Public.

    Parameters
    ----------
    max_rows : int or Bought
        The cap.
    edges : float array of shape (n_bins + 1,)
        Bin b contains the people with edges[b] to edges[b + 1] - 1 rows.
    noisy_people : int array of shape (n_bins,)
        Released number of people per bin.
    kept : float
        Estimated share of the rows that the cap keeps, among people who stand out; 0 if nobody does.
    noise_std : float
        Standard deviation of the noise in each number of people.
    """

    max_rows: int | Bought
    edges: FloatArray
    noisy_people: IntArray
    kept: float
    noise_std: float


def contribution_steps() -> tuple[Step, ...]:
    """Steps that `choose_max_rows` asks, with shares that sum to 1."""
    return (Step(CONTRIBUTIONS, 1, sensitivity=histograms_sensitivity(1)),)


def choose_max_rows(n_clusters: int, noise_per_row: float, curator: Questions) -> Contributions:
    """Choose the cap that gives the most accurate cluster sizes.

    With K(m) rows kept under the cap m, a cluster with one in `n_clusters` of them has a size of relative
    variance

        n_clusters / K(m)  +  (n_clusters m noise_per_row / K(m))^2.

    The first term is sampling error. The second is the noise, which grows with the cap. K(m) / m never rises
    with m, so the noise alone always favours one row per person; only the first term favours more. It treats
    rows as independent draws. If a person's rows are alike, further ones tell less, and the cap comes out too
    large. If they were all equal, the first term would be n_clusters (sum of min(rows, m)^2) / K(m)^2, least
    at m = 1, and one row per person would always be best. The rule also ignores that a low cap gives people
    with few rows more weight.

    Parameters
    ----------
    curator : Questions
        Over a table with one row per person and one column, that person's number of rows. Its plan must have
        the steps of `contribution_steps`.
    n_clusters : int
        Expected number of clusters.
    noise_per_row : float
        Standard deviation of the noise in a count under a cap of one; sqrt(2) / epsilon for a pure budget.

    Privacy
    -------
    One noisy histogram, of sensitivity 1 for one person. Everything else is computed from it and from public
    numbers. Proof: docs/proofs/bounds.md.

    Examples
    --------
    >>> from sfumato.budget import Budget, Plan, calibrate
    >>> from sfumato.curator import open_table
    >>> rows_of_each = np.repeat([[1], [20]], 5000, axis=0)
    >>> plan = calibrate(Plan(*contribution_steps()), Budget(0.1))
    >>> curator = open_table(rows_of_each, (1, 2**40), Unit()).curator(plan, seed=0)
    >>> choose_max_rows(n_clusters=5, noise_per_row=1.5, curator=curator).max_rows
    23
    """
    edges = contribution_edges()
    noisy = curator.histograms(CONTRIBUTIONS, edges[None])
    people = _estimated(noisy)
    caps, typical = edges[:-1], np.sqrt(edges[:-1] * (edges[1:] - 1))
    rows_kept = np.minimum(typical, caps[:, None]) @ people  # per cap
    relative = n_clusters / np.maximum(rows_kept, 1e-100)  # the first cap, 1, wins if nobody stands out
    best = int(np.argmin(relative + (relative * caps * noise_per_row) ** 2))
    kept = float(rows_kept[best] / max(float(typical @ people), 1.0))
    return Contributions(int(caps[best]), edges, noisy.values[0], kept, noisy.std)


def _estimated(noisy: Noisy) -> FloatArray:
    """Number of people per bin, at least 0, and 0 beyond the bins where people stand out.

    In those bins, noise would count as people with up to 2^40 rows each.
    """
    counts = noisy.values[0].astype(np.float64)
    lengths = 2 ** np.arange(LONGEST.bit_length())
    noise = noise_of_runs(noisy, lengths, FALSE_ALARM / (len(counts) * len(lengths)))
    (first, _), (_, last) = visible_runs(noisy.values[0], lengths, noise)
    people = np.zeros(len(counts))
    if first < last:
        people[first:last] = project_to_simplex(counts[first:last], max(float(counts[first:last].sum()), 1.0))
    return people


def contribution_edges() -> FloatArray:
    """Powers of the square root of two, rounded to whole numbers: 1, 2, 3, 4, 6, 8, 11, 16, ..."""
    return np.unique(np.rint(2.0 ** (np.arange(2 * MOST_ROWS_EXPONENT + 1) / 2)))


@dataclass(frozen=True)
class SuggestedCap:
    """A privately chosen cap on the rows per person, for ``max_rows_per_unit``.

    Parameters
    ----------
    max_rows : Bought
        An integer. A release that uses it includes its cost.
    contributions : Contributions
        The released histogram that the cap was chosen from.
    privacy : PrivacyStatement
        What the cap cost.
    """

    max_rows: Bought
    contributions: Contributions
    privacy: PrivacyStatement


@takes_shared("bounds", "unit", "max_rows_per_unit", *OF_FITS)
def suggest_max_rows(
    X: Any, unit: str, n_clusters: int = 8, *, budget: Budget | None = None, shared: SharedParameters
) -> SuggestedCap:
    """Suggest ``max_rows_per_unit`` from a noisy histogram of the number of rows per person.

    More rows per person mean less sampling error but more noise. The cap balances the two for the size of a
    cluster with one in `n_clusters` of the rows, see `choose_max_rows`.

    Parameters
    ----------
    X : table with named columns
        As for a fit.
    unit : str
        As for a fit.
    n_clusters : int
    budget : Budget, optional
        Budget of the fit that will use the cap; by default epsilon 1. None of it is spent.

    Privacy
    -------
    A person, with any number of rows, is one count in one bin: sensitivity 1.
    Proof: docs/proofs/bounds.md.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rides = pd.DataFrame({"cab": np.repeat(np.arange(2000), 50), "km": 1.0})
    >>> suggest_max_rows(rides, "cab", epsilon=0.2, random_state=0).max_rows > 1
    True
    """
    whole(MOST_CLUSTERS)("n_clusters", n_clusters)
    if not isinstance(unit, str):
        raise ParameterError(f"`unit` must name the column that identifies a person, got {unit!r}")
    if budget is not None and not isinstance(budget, Budget):
        raise ParameterError(f"`budget` must be a Budget or None, got {budget!r}")
    table = open_people(X, unit, shared.missing)
    priced = calibrate(Plan(*contribution_steps()), as_budget(shared.epsilon, shared.delta, shared.rho))
    noise = calibrate(Plan(Step("count", 1)), budget or Budget(1)).records()[0].noise_std
    choose, seed = partial(choose_max_rows, int(n_clusters), noise), as_seed(shared.random_state)
    whom = Unit(unit, ALL_ROWS)
    done = run(table, priced, choose, method="suggest_max_rows", ledger=shared.ledger, seed=seed, unit=whom)
    cap = Bought(done.found.max_rows, (done.privacy,))
    return SuggestedCap(cap, replace(done.found, max_rows=cap), done.privacy)
