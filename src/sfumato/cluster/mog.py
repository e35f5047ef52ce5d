"""DPMoG: a Gaussian mixture by noisy EM, with hard or soft assignment."""

from __future__ import annotations

from dataclasses import KW_ONLY
from fractions import Fraction
from typing import Literal

from sfumato.budget import Plan
from sfumato.cluster.lloyd_kmeans import LloydKMeans
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.grid_release import GRID_BYTES_PER_CELL, check_grid_fits, grid_steps, release_grid
from sfumato.cluster.shared.habits import MixtureHabits
from sfumato.cluster.shared.moments import (
    check_covariances,
    check_squares,
    fit_mixture,
    moments_traits,
    with_moments,
)
from sfumato.cluster.shared.parameters import Auto, parameter
from sfumato.cluster.shared.traits import Cells, Traits
from sfumato.curator import MomentShape, Questions
from sfumato.domain import Domain
from sfumato.domain.constraints import auto_or, one_of, whole
from sfumato.public.mixtures.em import N_ITER, mixture_of_cells
from sfumato.public.models import MixtureModel

MOST_CELLS = 2**20  # a limit: finer grids show no more of a component, and each round reads all cells
MOST_COMPONENTS = 10**4  # a limit
# Tuned: docs/notes/mixtures.md, docs/notes/constants.md#mixtures
GRID_COLUMNS = 3  # up to here a grid says more than moments
MOMENTS_SHARE = Fraction(1, 2)  # the rest buys centres to start from
N_MOMENT_ROUNDS = 3

Assignment = Literal["hard", "soft"]
ASSIGNMENTS = ("hard", "soft")
SHAPES = ("full", "diag", "spherical")


class DPMoG(MixtureHabits, PrivateClusterer):
    """Gaussian mixture by noisy expectation maximisation.

    With up to three columns, the budget pays for a noisy grid of counts, and the mixture is fitted to its
    cells. With more columns, half of the budget pays for centres (noisy k-means with refinement) and half for
    rounds of moments. Each round assigns rows to the components of the current mixture and releases their
    sizes, means and covariances. `MorseClustering` merges the components into clusters of any shape, at no
    cost.

    Parameters
    ----------
    n_components : int
        At most 10000.
    assign : {"soft", "hard"}
        "soft" shares a row among all components by its responsibilities; "hard" assigns it to the most
        probable one. Both cost the same.
    covariance : {"auto", "diag", "full", "spherical"}
        Shape of the covariances. Fewer numbers have less noise: "full" needs many rows. "auto" is "full" from
        a grid, else "diag".
    start : {"auto", "grid", "centers"}
        What is released first. "auto" takes the grid in up to three columns.
    n_iter : int or "auto"
        Number of rounds, at most 100. "auto" makes 10 rounds over the cells of a grid, which are free, or 3
        of moments.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, d)
    covariances_ : ndarray of shape (n_components, d, d)
        Full matrices for every `covariance`.
    cluster_centers_ : ndarray of shape (n_components, d)
        The means.
    cluster_sizes_ : ndarray of shape (n_components,)
        Noisy number of rows per component, at least 0.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of means and sizes.
    n_clusters_ : int
        Number of components.

    Privacy
    -------
    Unit: one row added or removed. From a grid: the steps "rows" and "grid" of `GridKMeans`. Otherwise the
    steps of `LloydKMeans` for the centres; step "spread": a noisy histogram of distances; step "moments",
    `n_iter` times: noisy sizes, sums and second moments of the components of a released mixture. All compose
    to the budget. Public inputs: all parameters. Not private: ``labels_`` and ``predict``.
    Proof: docs/proofs/moments.md, docs/proofs/kmeans.md, docs/proofs/grid.md.

    References
    ----------
    .. [1] J. Byun, Y. Choi, J. Lee. Improving the utility of differentially private clustering through
       dynamical processing. 2023.
    .. [2] M. Park, J. Foulds, K. Choudhary, M. Welling. DP-EM: Differentially private expectation
       maximization. AISTATS 2017.

    Examples
    --------
    >>> from sfumato import DPMoG
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(5000, n_clusters=4, n_features=3, random_state=0)
    >>> model = DPMoG(n_components=4, epsilon=1.0, delta=1e-6, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.means_.shape, model.covariances_.shape
    ((4, 3), (4, 3, 3))
    """

    n_components: int = parameter(whole(MOST_COMPONENTS), default=8)
    _: KW_ONLY
    assign: Assignment = parameter(one_of(*ASSIGNMENTS), default="soft")
    covariance: MomentShape | Auto = parameter(one_of("auto", *SHAPES), default="auto")
    start: Literal["auto", "grid", "centers"] = parameter(one_of("auto", "grid", "centers"), default="auto")
    n_iter: int | Auto = parameter(auto_or(whole(100)), default="auto")

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        if not self._has_grid(domain):
            return self._lloyd().traits(domain, n_clusters).then(moments_traits())
        n_moments = 1 + domain.n_features + domain.n_features**2
        return Traits(cells=Cells(GRID_BYTES_PER_CELL * (2 * n_moments // 5)))

    def _plan(self, domain: Domain) -> Plan:
        check_squares(domain)
        check_covariances("n_components", int(self.n_components), domain.n_features)
        if self._has_grid(domain):
            check_grid_fits(domain, MOST_CELLS)
            return Plan(*grid_steps(None))
        return with_moments(
            self._lloyd()._plan(domain),
            domain,
            MOMENTS_SHARE,
            self._rounds(N_MOMENT_ROUNDS),
            self._shape("diag"),
            soft=self.assign == "soft",
            n_components=int(self.n_components),
        )

    def _cluster(self, curator: Questions) -> MixtureModel:
        k, soft = int(self.n_components), self.assign == "soft"
        if self._has_grid(curator.domain):
            synopsis = release_grid(curator, k, gain=1, max_cells=MOST_CELLS)  # cells are read as they are
            shape, n_iter = self._shape("full"), self._rounds(N_ITER)
            return MixtureModel.sized(mixture_of_cells(synopsis, k, shape, soft=soft, n_iter=n_iter))
        centers = self._lloyd()._centres(curator).cluster_centers
        return fit_mixture(curator, centers, self._rounds(N_MOMENT_ROUNDS), self._shape("diag"), soft=soft)

    def _has_grid(self, domain: Domain) -> bool:
        return self.start == "grid" or (self.start == "auto" and domain.n_features <= GRID_COLUMNS)

    def _rounds(self, automatic: int) -> int:
        return automatic if self.n_iter == "auto" else int(self.n_iter)

    def _shape(self, automatic: MomentShape) -> MomentShape:
        return automatic if self.covariance == "auto" else self.covariance

    def _lloyd(self) -> LloydKMeans:
        """The method that finds the centres. Its budget only sets its number of rounds."""
        return LloydKMeans(self.n_components, epsilon=self.epsilon, delta=self.delta, rho=self.rho)
