"""Which method to use, from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.budget import Plan, Step, calibrate
from sfumato.cluster import (
    DPM,
    GridKMeans,
    LloydKMeans,
    LocalSearchKMeans,
    PrivateClusterer,
    PrivateKMeans,
)
from sfumato.cluster.private_kmeans import MAX_CLUSTERS
from sfumato.cluster.shared.candidates import MAX_CLUSTERS as CHOSEN_CLUSTERS
from sfumato.cluster.shared.parameters import DEFAULT_EPSILON, MOST_CLUSTERS, Auto, as_budget
from sfumato.domain.columns import names_columns
from sfumato.domain.constraints import auto_or, positive, whole
from sfumato.domain.sparse import Sparse
from sfumato.planner.centres import smallest_cluster
from sfumato.planner.columns import has_categories, n_coordinates
from sfumato.planner.rehearsal import Rehearsal

GRID_COLUMNS = 8  # more columns leave a grid two cells per side
GRID_ROWS = 1000  # rows per cluster and unit of epsilon, below which the grid is better: docs/notes/kmeans.md
# With a delta, PrivateKMeans is better unless rows are very few: grids suffer from wide bounds.
DELTA_GRID_COLUMNS, DELTA_GRID_ROWS = 4, 300
SPLIT_ROWS = 500  # ... below which splits find less than Lloyd's iterations
FEW_COLUMNS = 2
CLUSTERS_UNKNOWN = 10  # when no number is given
LARGEST_COUNT = 10**18
UNKNOWN_ROWS = "rows that are not said to be few"


@dataclass(frozen=True)
class Recommendation:
    """A method and why it is recommended.

    Parameters
    ----------
    method : type
        The estimator class.
    parameters : dict
        Parameters that follow from the numbers given.
    reason : str
    """

    method: type[PrivateClusterer]
    parameters: dict[str, Any]
    reason: str

    def make(self, **others: Any) -> PrivateClusterer:
        """Build the estimator; give at least `bounds`."""
        return self.method(**self.parameters, **others)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.method.__name__}({given}): {self.reason}"


def recommend(
    n: float | None = None,
    d: int | None = None,
    k: int | Auto | None = None,
    epsilon: float | Fraction | str | None = DEFAULT_EPSILON,
    delta: float | Fraction | str = 0.0,
    rho: float | Fraction | str | None = None,
    *,
    bounds: Any = None,
) -> Recommendation:
    """Recommend a method for a table of about `n` rows and `d` columns. Reads and spends nothing.

    ``sfumato plan`` and ``sfumato fit`` take this method if none is named.

    Parameters
    ----------
    n : float, optional
        Number of rows: a public guess; its order of magnitude is enough. If None, there are enough.
    d : int, optional
        Number of columns. Bounds that name columns say it.
    k : int or "auto", optional
        Number of clusters wanted; None or "auto" if the method should find it.
    epsilon, delta, rho : float
        The budget, as for an estimator.
    bounds : optional
        As for an estimator. Columns with names are those of a real table, where clusters touch, for which a
        grid is not recommended. A category counts as many columns as it has levels here: a grid would need
        cells along each. How wide the bounds are does not matter: only grids depend on it.

    Returns
    -------
    Recommendation
        Prints as a sentence; ``make(bounds=...)`` builds the estimator.

    Notes
    -----
    The rule follows measurements on simulated and real data: docs/notes/kmeans.md.

    Examples
    --------
    >>> print(recommend(n=2_000, d=2, k=8))
    GridKMeans(n_clusters=8, epsilon=1.0): few columns and 261 rows per cluster and unit of epsilon
    >>> recommend(n=100_000, d=40, k=10, epsilon=1, delta=1e-8).make(bounds=(-10, 10))
    PrivateKMeans(bounds=(-10, 10), delta=1e-08, epsilon=1, n_clusters=10)
    """
    if n is not None:
        positive(most=LARGEST_COUNT)("n", n)
    d = n_coordinates(bounds, d)
    if k is not None:
        auto_or(whole(MOST_CLUSTERS))("k", k)
    wanted = None if k == "auto" else k
    per_cluster = _rows_per_cluster(n, wanted, _laplace_epsilon(epsilon, delta, rho))
    budget = {"epsilon": epsilon, "delta": delta} if rho is None else {"rho": rho}
    parameters: dict[str, Any] = {"n_clusters": k} | {name: value for name, value in budget.items() if value}
    found = UNKNOWN_ROWS if n is None else f"{per_cluster:,.0f} rows per cluster and unit of epsilon"
    is_table = names_columns(bounds)
    is_pure = as_budget(epsilon, delta, rho).kind == "pure"
    most_columns, most_rows = (GRID_COLUMNS, GRID_ROWS) if is_pure else (DELTA_GRID_COLUMNS, DELTA_GRID_ROWS)
    few_rows = per_cluster < most_rows and not (is_table or isinstance(bounds, Sparse))
    if wanted is not None and d <= most_columns and (few_rows or (is_pure and d <= FEW_COLUMNS)):
        return Recommendation(GridKMeans, parameters, f"few columns and {found}")
    if is_pure and d > FEW_COLUMNS:
        touching = is_table and not has_categories(bounds)
        return _without_delta(per_cluster, parameters, found, touching=touching)
    if wanted is None:
        parameters["n_clusters"] = "auto"
        return Recommendation(PrivateKMeans, parameters, "finds the number of separated clusters by itself")
    if wanted > MAX_CLUSTERS:
        return Recommendation(LloydKMeans, parameters, f"more than {MAX_CLUSTERS:,} clusters")
    expected = _expected(n, d, wanted, parameters)
    return Recommendation(PrivateKMeans, parameters, f"suits tables of any width and bounds{expected}")


def _rows_per_cluster(n: float | None, k: int | None, epsilon: float) -> float:
    """Rows per cluster and unit of epsilon; without end if the number of rows is not known."""
    return math.inf if n is None else float(n) * epsilon / (k or CLUSTERS_UNKNOWN)


def _expected(n: float | None, d: int, k: int, parameters: dict[str, Any]) -> str:
    """How large a cluster of `PrivateKMeans` must be to show, if the number of rows is known."""
    if n is None:
        return ""
    rows = smallest_cluster(Rehearsal.of(PrivateKMeans(**parameters, bounds=(-1, 1)), n, d, k, None)) or 0.0
    shown = f"; a cluster shows from about {rows:,.0f} rows on"
    if n >= rows * k:
        return shown
    return f"{shown}, and yours have {n / k:,.0f}: take fewer clusters or a larger budget"


def _without_delta(
    per_cluster: float, parameters: dict[str, Any], found: str, *, touching: bool
) -> Recommendation:
    """Without a delta, noise in directions grows with the columns: splits and plain rounds need none."""
    k = parameters["n_clusters"]
    if k in (None, "auto"):
        return Recommendation(DPM, parameters, "finds the number of clusters by itself")
    if touching and k <= CHOSEN_CLUSTERS:
        return Recommendation(LocalSearchKMeans, parameters, "clusters of a table with named columns touch")
    if per_cluster < SPLIT_ROWS:
        return Recommendation(LloydKMeans, parameters, f"too few for splits: {found}")
    return Recommendation(DPM, parameters, f"enough for splits: {found}")


def _laplace_epsilon(epsilon: Any, delta: Any, rho: Any) -> float:
    """Epsilon whose Laplace noise is as large as the noise in a count that gets the whole budget."""
    plan = calibrate(Plan(Step("rows", share=1)), as_budget(epsilon, delta, rho))
    return math.sqrt(2) / max(plan.nominal(plan["rows"]).noise_std, 1e-90)
