"""k-means on a noisy grid: EUGkM (Su et al. 2017) and RUGNIK (Muthukrishnan and Tandon 2026)."""

from __future__ import annotations

from dataclasses import KW_ONLY

from sfumato.budget import Plan
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.grid_release import cell_bytes, check_grid_fits, grid_steps, release_grid
from sfumato.cluster.shared.habits import GridHabits
from sfumato.cluster.shared.number import Number, number_up_to
from sfumato.cluster.shared.parameters import MOST_CLUSTERS, parameter
from sfumato.cluster.shared.traits import Cells, Denoising, Traits
from sfumato.curator import Questions
from sfumato.domain import Domain
from sfumato.domain.constraints import none_or, one_of, whole
from sfumato.public.grid.cells import cells_of_grid
from sfumato.public.grid.chains import MISFIT
from sfumato.public.grid.posterior import affordable_sweeps
from sfumato.public.grid.size import RULES, Rule
from sfumato.public.grid.synopsis import CLEAR_CELL, NEARLY_ALL
from sfumato.public.models import CentreModel

MAX_CELLS = 10_000_000
# The rules assume that each noisy cell is taken as it is. Cells are denoised together, which is worth at
# least three times the budget, so the rule is asked for the grid of that budget. Tuned: docs/notes/grid.md,
# docs/notes/constants.md#grid
DENOISING_GAIN = 3
GRID_CLUSTERS = 16  # for which "auto" chooses the grid; tuned: docs/notes/how_many.md#constants


class GridKMeans(GridHabits, PrivateClusterer):
    """k-means on one noisy grid of counts.

    The domain is cut into a uniform grid whose resolution balances noise against rounding. Each cell's count
    is released with noise, and weighted k-means on the cells gives the centres. Best in two to four
    dimensions. The released grid (``synopsis_``) can be reused for another number of clusters, for range
    counts and for synthetic points, at no further cost.

    Parameters
    ----------
    n_clusters : int or "auto"
        "auto" releases the grid for 16 clusters and keeps as many as it shows to be separated.
    rule : {"rugnik", "eugkm"}
        Rule that chooses the resolution of the grid, see `grid_size`.
    n_public : int, optional
        Number of rows, if it is public. Otherwise a small share of the budget pays for a noisy count.
    max_cells : int
        Maximum number of cells. The grid needs up to 40 bytes per cell, and 32 more per cell and column. It
        never has more cells than fit into half a gigabyte.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Estimated number of rows per cluster.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of centres and sizes; clear clusters have less.
    n_clusters_ : int
    inertia_, inertia_std_ : float
        Sum of squared distances of the training rows to their centres, in measured units, as the noisy grid
        shows it, and the standard deviation of its error.
    grid_ : Grid
    synopsis_ : GridSynopsis

    Privacy
    -------
    Unit: one row added or removed. Step "rows" (unless `n_public`): noisy number of rows. Step "grid": noisy
    counts of disjoint cells, on a grid that depends only on the noisy number of rows. The two compose to the
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

    _most_columns = 8  # a grid has at least 2^d cells

    n_clusters: Number = parameter(number_up_to(MOST_CLUSTERS), default=8)
    _: KW_ONLY
    rule: Rule = parameter(one_of(*RULES), default="rugnik")
    n_public: int | None = parameter(none_or(whole()), default=None)
    max_cells: int = parameter(whole(), default=MAX_CELLS)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        rows = "rows" if self.n_public is None else None
        denoising = Denoising(affordable_sweeps, MISFIT, CLEAR_CELL, NEARLY_ALL, rows)
        return Traits(cells=Cells(cell_bytes(domain.n_features), denoising=denoising))

    def _plan(self, domain: Domain) -> Plan:
        check_grid_fits(domain, self.max_cells)
        return Plan(*grid_steps(self.n_public))

    def _cluster(self, curator: Questions) -> CentreModel:
        synopsis = release_grid(
            curator,
            GRID_CLUSTERS if self.n_clusters == "auto" else self.n_clusters,
            gain=DENOISING_GAIN,
            rule=self.rule,
            n_public=self.n_public,
            max_cells=self.max_cells,
        )
        k = cells_of_grid(synopsis).suggested if self.n_clusters == "auto" else self.n_clusters
        centers, sizes = synopsis.cluster(k)
        return CentreModel(centers, sizes, synopsis, *synopsis.noise_in(centers, sizes))
