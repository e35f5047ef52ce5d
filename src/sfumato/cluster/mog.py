"""DPMoG: a Gaussian mixture by noisy EM, with hard or soft assignment."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from sfumato.budget import Ledger, Plan
from sfumato.cluster.base import PrivateClusterer
from sfumato.cluster.checks import check_whole
from sfumato.cluster.lloyd import LloydKMeans
from sfumato.cluster.mixtures import fit_mixture, with_moments
from sfumato.curator import Curator, MomentShape
from sfumato.domain import Domain
from sfumato.errors import ParameterError
from sfumato.models import MixtureModel

MOMENTS_SHARE = Fraction(1, 2)  # the rest buys centres to start from
MOST_COMPONENTS = 10**4

Assignment = Literal["hard", "soft"]
SHAPES = ("full", "diag", "spherical")


class DPMoG(PrivateClusterer):
    """Gaussian mixture by noisy expectation maximisation.

    Half of the budget buys centres (noisy k-means with refinement); the other half buys rounds of moments:
    each assigns rows to the components of the mixture so far and releases their sizes, means and
    covariances. Merge the components into clusters of any shape with `MorseClustering`, at no cost.

    Parameters
    ----------
    n_components : int
        At most 10000.
    assign : {"hard", "soft"}
        "hard": a row counts in its most probable component. "soft": in all of them, by its responsibilities.
        Both cost the same.
    covariance : {"diag", "full", "spherical"}
        Shape of the covariances. Fewer numbers are less noisy: full ones need many rows.
    n_iter : int
        Rounds of moments, at most 100.
    epsilon, delta, rho : float
        Budget: `epsilon` alone, `epsilon` with `delta`, or `rho` alone.
    bounds : (low, high) or Ball
        Public bounds of the columns, never read off the data.
    unit : str, optional
        Column that identifies a person, see `max_rows_per_unit`.
    max_rows_per_unit : int
    ledger : Ledger, optional
        Where the budget is charged before any row is read.
    random_state : int, optional
        Reproducible noise for experiments. The release is then marked: do not publish.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
    means_ : ndarray of shape (n_components, d)
    covariances_ : ndarray of shape (n_components, d, d)
        Full matrices, whatever their shape.
    cluster_centers_ : ndarray of shape (n_components, d)
        The means.
    cluster_sizes_ : ndarray of shape (n_components,)
        Noisy rows of each component, at least 0.
    n_clusters_ : int
        Number of components.
    privacy_ : PrivacyStatement
    release_ : Release
    n_features_in_ : int
    labels_ : ndarray of shape (n,)
        Computed on demand for the holder of the rows; not private.

    Privacy
    -------
    Unit: one row added or removed. The steps of `LloydKMeans` for the centres; step "spread": a noisy
    histogram of distances; step "moments", `n_iter` times: noisy sizes, sums and second moments of the
    components of a released mixture. All compose to the budget. Public inputs: all parameters. Not private:
    ``labels_`` and ``predict``. Proof: docs/proofs/moments.md, docs/proofs/kmeans.md.

    References
    ----------
    .. [1] J. Byun, Y. Choi, J. Lee. Improving the utility of differentially private clustering through
    dynamical
       processing. 2023.
    .. [2] M. Park, J. Foulds, K. Choudhary, M. Welling. DP-EM: Differentially private expectation
    maximization.
       AISTATS 2017.

    Examples
    --------
    >>> from sfumato import DPMoG
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(5000, n_clusters=4, n_features=3, random_state=0)
    >>> model = DPMoG(n_components=4, epsilon=1.0, delta=1e-6, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.means_.shape, model.covariances_.shape
    ((4, 3), (4, 3, 3))
    """

    def __init__(
        self,
        n_components: int = 8,
        *,
        assign: Assignment = "hard",
        covariance: MomentShape = "diag",
        n_iter: int = 3,
        epsilon: float = 1.0,
        delta: float = 0.0,
        rho: float | None = None,
        bounds: object = None,
        unit: str | None = None,
        max_rows_per_unit: int = 1,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.assign = assign
        self.covariance = covariance
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.unit = unit
        self.max_rows_per_unit = max_rows_per_unit
        self.ledger = ledger
        self.random_state = random_state

    def _plan(self, domain: Domain) -> Plan:
        self._check_parameters()
        return with_moments(
            self._start()._plan(domain),
            domain,
            MOMENTS_SHARE,
            int(self.n_iter),
            self.covariance,
            soft=self.assign == "soft",
            n_components=int(self.n_components),
        )

    def _cluster(self, curator: Curator) -> MixtureModel:
        centers = self._start()._centres(curator).cluster_centers
        return fit_mixture(curator, centers, int(self.n_iter), self.covariance, soft=self.assign == "soft")

    def _start(self) -> LloydKMeans:
        """Where the centres come from; its budget only sets the number of its rounds."""
        return LloydKMeans(self.n_components, epsilon=self.epsilon, delta=self.delta, rho=self.rho)

    def _check_parameters(self) -> None:
        check_whole("n_components", self.n_components, most=MOST_COMPONENTS)
        check_whole("n_iter", self.n_iter, most=100)
        if self.assign not in ("hard", "soft"):
            raise ParameterError(f"`assign` must be 'hard' or 'soft', got {self.assign!r}")
        if self.covariance not in SHAPES:
            raise ParameterError(f"`covariance` must be one of {', '.join(SHAPES)}, got {self.covariance!r}")
