"""k-means on a noisy grid: EUGkM (Su et al. 2017) and RUGNIK (Muthukrishnan and Tandon 2026)."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import Literal

from sfumato.budget import Ledger, Plan, Step
from sfumato.cluster.base import PrivateClusterer
from sfumato.cluster.checks import MOST_CLUSTERS, check_choice, check_whole
from sfumato.columns import Missing
from sfumato.curator import Curator
from sfumato.domain import Domain, Grid
from sfumato.errors import ParameterError
from sfumato.models import CentreModel
from sfumato.synopsis import GridSynopsis

Rule = Literal["rugnik", "eugkm"]

MAX_CELLS = 10_000_000
ROWS_SHARE = Fraction(1, 20)  # the rule needs only the order of the number of rows

# The rules assume that each noisy cell is taken as it is. Cells are denoised together, which is worth at
# least three times the budget, so the rule is asked for the grid of that budget (measured: docs/grid.md).
DENOISING_GAIN = 3

_LARGEST = 1e100  # far beyond any budget or table; powers of it stay within floats


def grid_size(n: float, epsilon: float, k: int, d: int, rule: Rule = "rugnik") -> int:
    """Cells per side of the grid that a rule chooses.

    Parameters
    ----------
    n : float
        Number of rows, noisy or public; less than 1 counts as 1.
    epsilon : float
        Budget of the grid's counts. For other noise than Laplace, sqrt(2) over its standard deviation.
    k : int
        Number of clusters.
    d : int
        Number of columns.
    rule : {"rugnik", "eugkm"}
        RUGNIK: the integer that minimises h(m), its paper's bound on the error of the k-means objective.
        EUGkM: (n epsilon / 10)^(2 / (2 + d)), rounded.

    Examples
    --------
    >>> grid_size(1600, 1.0, k=8, d=2)
    20
    >>> grid_size(1600, 1.0, k=8, d=2, rule="eugkm")
    13
    """
    check_whole("k", k)
    check_whole("d", d, most=1000)
    check_choice("rule", rule, ("rugnik", "eugkm"))
    are_numbers = isinstance(n, Real) and isinstance(epsilon, Real)
    if not (are_numbers and n <= _LARGEST and 0 < epsilon <= _LARGEST):
        raise ParameterError(f"`n` and `epsilon` must be numbers, `epsilon` positive, got {n!r}, {epsilon!r}")
    n = max(float(n), 1.0)
    if rule == "eugkm":
        return max(1, round(math.pow(n * epsilon / 10, 2 / (2 + d))))

    def rises(m: int) -> bool:  # h falls up to its only minimum and rises after it (docs/proofs/grid.md)
        return _rugnik_bound(m + 1, n, epsilon, k, d) >= _rugnik_bound(m, n, epsilon, k, d)

    low, high = 0, 1
    while not rises(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    return high


def _rugnik_bound(m: int, n: float, epsilon: float, k: int, d: int) -> float:
    """h(m) of section III: noise, then the two terms of the quantisation error."""
    noise = math.sqrt(2) * math.pow(m, d / 2) / (epsilon * math.pow(k, 2 / d))
    return noise + 2 / (m * math.pow(k, 1 / d)) * math.sqrt(n / 3) + n / (3 * m**2)


def _visible_rows(noisy: float, std: float) -> float:
    """A noisy number of rows for the rule: numbers far below the noise's scale cannot be told apart."""
    return max(noisy, 0.5 * std / math.sqrt(2))


def grid_steps(n_public: int | None) -> tuple[Step, ...]:
    """What `release_grid` asks, for the whole budget."""
    if n_public is not None:
        return (Step("grid", share=1),)
    return Step("rows", share=ROWS_SHARE), Step("grid", share=1 - ROWS_SHARE)


def release_grid(
    curator: Curator,
    n_clusters: int,
    *,
    gain: float,
    rule: Rule = "rugnik",
    n_public: int | None = None,
    max_cells: int,
) -> GridSynopsis:
    """Noisy counts on the grid that a rule chooses for so many clusters and `gain` times the budget."""
    if n_public is None:
        noisy_rows = curator.count("rows")
        rows, rows_std = float(noisy_rows.values[0]), noisy_rows.std
    else:
        rows, rows_std = float(n_public), 0.0
    d = curator.domain.n_features
    laplace_epsilon = math.sqrt(2) / max(curator.noise_std("grid"), 1e-90)
    wanted = grid_size(_visible_rows(rows, rows_std), gain * laplace_epsilon, n_clusters, d, rule)
    enough = math.ceil(math.pow(n_clusters, 1 / d) - 1e-9)
    per_side = min(max(wanted, enough), math.floor(math.pow(max_cells, 1 / d) + 1e-9))
    grid = Grid.over(curator.domain, per_side)
    noisy_cells = curator.cells("grid", grid)
    laplace = noisy_cells.record.mechanism == "discrete Laplace"
    return GridSynopsis(grid, noisy_cells.values, noisy_cells.std, laplace, rows, rows_std)


def check_columns(domain: Domain, max_cells: int) -> None:
    """Refuse a table with so many columns that a grid has too many cells."""
    if 2**domain.n_features > max_cells:
        raise ParameterError(
            f"a grid over {domain.n_features} columns has at least 2^{domain.n_features} cells, above "
            f"`max_cells`={max_cells}: use fewer columns, or a method made for many (DPM, CoresetKMeans)"
        )


class GridKMeans(PrivateClusterer):
    """k-means on one noisy grid of counts.

    The domain is cut into a uniform grid whose resolution balances noise against rounding; each cell's
    count is released with noise; weighted k-means on the cells gives the centres. Best in two to four
    dimensions. The released grid (``synopsis_``) can be used again for another number of clusters, for
    range counts and for synthetic points, at no further cost.

    Parameters
    ----------
    n_clusters : int
    rule : {"rugnik", "eugkm"}
        How the resolution of the grid is chosen, see `grid_size`.
    n_public : int, optional
        Number of rows, if it is public. Otherwise a noisy count is bought with a small share of the budget.
    max_cells : int
        Limit on the number of cells; the grid needs about 40 bytes per cell.
    epsilon, delta, rho : float
        Budget: `epsilon` alone, `epsilon` with `delta`, or `rho` alone.
    bounds : (low, high), Ball, mapping or "private"
        Public bounds of the columns, never read off the data. A mapping chooses columns by name, see
        `read_bounds`; "private" finds them with a tenth of the budget, see `estimate_bounds`.
    unit : str, optional
        Column that identifies a person. By default every row is a person of its own.
    max_rows_per_unit : int
        At most so many rows of a person are used; all noise grows in proportion.
    missing : {"error", "drop"}
        What to do with rows that have a missing value.
    ledger : Ledger, optional
        Where the budget is charged before any row is read.
    random_state : int, optional
        Reproducible noise for experiments. The release is then marked: do not publish.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Estimated rows per cluster.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        How far they may be off, as standard deviations; in clear clusters it is less.
    n_clusters_ : int
    grid_ : Grid
    synopsis_ : GridSynopsis
    privacy_ : PrivacyStatement
    release_ : Release
    n_features_in_ : int
    labels_ : ndarray of shape (n,)
        Computed on demand for the holder of the rows; not private.

    Privacy
    -------
    Unit: one row added or removed. Step "rows" (unless `n_public`): noisy number of rows. Step "grid": noisy
    counts of disjoint cells, on a grid that depends on the noisy number of rows only. The two compose to the
    budget. Public inputs: all parameters. Not private: ``labels_`` and ``predict``.
    Proof: docs/proofs/counts.md, docs/proofs/grid.md.

    References
    ----------
    .. [1] D. Su, J. Cao, N. Li, E. Bertino, M. Lyu, H. Jin. Differentially private k-means clustering and a
       hybrid approach to private optimization. ACM TOPS 20(4), 2017.
    .. [2] G. Muthukrishnan, A. Tandon. On the optimal number of grids for differentially private
       non-interactive k-means clustering. arXiv:2603.26963, 2026.

    Examples
    --------
    >>> from sfumato import GridKMeans
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(2000, n_clusters=4, n_features=2, random_state=0)
    >>> model = GridKMeans(n_clusters=4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 2)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        rule: Rule = "rugnik",
        n_public: int | None = None,
        max_cells: int = MAX_CELLS,
        epsilon: float = 1.0,
        delta: float = 0.0,
        rho: float | None = None,
        bounds: object = None,
        unit: str | None = None,
        max_rows_per_unit: int = 1,
        missing: Missing = "error",
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.rule = rule
        self.n_public = n_public
        self.max_cells = max_cells
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.unit = unit
        self.max_rows_per_unit = max_rows_per_unit
        self.missing = missing
        self.ledger = ledger
        self.random_state = random_state

    def _plan(self, domain: Domain) -> Plan:
        self._check_parameters(domain)
        return Plan(*grid_steps(self.n_public))

    def _cluster(self, curator: Curator) -> CentreModel:
        synopsis = release_grid(
            curator,
            self.n_clusters,
            gain=DENOISING_GAIN,
            rule=self.rule,
            n_public=self.n_public,
            max_cells=self.max_cells,
        )
        centers, sizes = synopsis.cluster(self.n_clusters)
        return CentreModel(centers, sizes, synopsis, *synopsis.noise_in(centers, sizes))

    def _check_parameters(self, domain: Domain) -> None:
        check_whole("max_cells", self.max_cells)
        check_whole("n_clusters", self.n_clusters, most=MOST_CLUSTERS)
        if self.n_public is not None:
            check_whole("n_public", self.n_public)
        if self.rule not in ("rugnik", "eugkm"):
            raise ParameterError(f"`rule` must be 'rugnik' or 'eugkm', got {self.rule!r}")
        check_columns(domain, self.max_cells)
