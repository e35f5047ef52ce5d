"""MorseClustering: clusters of any shape from a private mixture, joined through its saddles."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Literal, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sfumato.budget import Plan
from sfumato.cluster.mog import GRID_COLUMNS, SHAPES, DPMoG
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.moments import (
    check_covariances,
    check_squares,
    given_covariances,
    moments_traits,
    with_covariances,
)
from sfumato.cluster.shared.parameters import (
    MOST_CLUSTERS,
    Auto,
    check_fields,
    given_shared,
    number_parameter,
    parameter,
)
from sfumato.cluster.shared.traits import Traits
from sfumato.curator import MomentShape, Questions
from sfumato.domain import Domain
from sfumato.domain.constraints import none_or, one_of, whole
from sfumato.domain.scaling import ALIKE_FOR_SHAPES
from sfumato.errors import ParameterError
from sfumato.public.mixtures.em import mixture_of_cells
from sfumato.public.models import CentreModel, MixtureModel, MorseModel

FEW_COMPONENTS = 20  # if no number is given: enough to follow curves


class MorseClustering(PrivateClusterer):
    """Join the components of a private Gaussian mixture into clusters of any shape.

    Two components belong together if the density falls little on the best path between them. A path counts by
    its lowest point, the saddle. As the level falls, components join in a tree, which is cut at the number of
    clusters. Clusters that may be mere noise are joined first. All of this is computed from the released
    mixture, so only the base spends. A saved release can be cut again with ``release_.model.cut(k)``.

    Parameters
    ----------
    base : estimator, optional
        A method that releases a mixture (`DPMoG`, or `LloydKMeans` with ``covariances=True``) or centres (any
        other centre method), with its own parameters. By default a `DPMoG` with three times as many
        components as clusters, and at least 20 with up to three columns or if no number is given. Set the
        budget, bounds, unit, ledger and seed here, not on the base.
    n_clusters : int, optional
        By default, the number given by the largest gap between the persistences of peaks.
    covariance : {"auto", "diag", "full", "spherical"}
        Shape of the covariances for a base that has none. They are read from its noisy grid if there is one
        (`GridKMeans`; "auto" is "full"). Otherwise a quarter of the budget pays for them ("auto" is "diag").
    labels : {"component", "basin"}
        What decides a row's cluster: its most probable component, or the peak that an ascent of the density
        from the row reaches.

    Attributes
    ----------
    n_clusters_ : int
    component_labels_ : ndarray of shape (n_components,)
        Cluster of each component.
    cluster_sizes_ : ndarray, one per cluster
        Estimated number of rows per cluster.
    mixture_ : Mixture
    saddles_ : Passes
        Where peaks join: positions, log densities and the pairs.
    merge_tree_ : ndarray of shape (n_peaks - 1, 4)
        The order of joining in SciPy's form, for dendrograms.

    Privacy
    -------
    Unit: one row added or removed. Steps: those of the base. If the base releases centres only, they are
    scaled to three quarters of the budget, and the steps "spread" and "moments" of `DPMoG` take the rest.
    Mixtures of the cells of a grid, saddles, tree and cuts are post-processing. Public inputs: all
    parameters. Not private: ``labels_`` and ``predict``. Proof: docs/proofs/moments.md, and the base's proof.

    References
    ----------
    .. [1] J. Byun, Y. Choi, J. Lee. Improving the utility of differentially private clustering through
       dynamical processing. 2023.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sfumato import DPMoG, MorseClustering
    >>> X, _ = make_moons(20_000, noise=0.05, random_state=0)
    >>> bounds = ([-1.5, -1], [2.5, 1.5])
    >>> base = DPMoG(n_components=12)
    >>> model = MorseClustering(base, n_clusters=2, epsilon=2.0, bounds=bounds, random_state=0).fit(X)
    >>> model.n_clusters_
    2
    >>> model.cut(3).n_clusters_
    3
    """

    base: PrivateClusterer | None = parameter(default=None)
    n_clusters: int | None = parameter(none_or(whole(MOST_CLUSTERS)), default=None)
    _: KW_ONLY
    covariance: MomentShape | Auto = parameter(one_of("auto", *SHAPES), default="auto")
    labels: Literal["component", "basin"] = parameter(one_of("component", "basin"), default="component")

    _alike = ALIKE_FOR_SHAPES

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        base = self._checked_base(domain)
        found = base.traits(domain, n_clusters).then(Traits(are_joined=True))
        return found if _shows_covariances(base, domain) else found.then(moments_traits())

    def cut(self, n_clusters: int | None = None) -> Self:
        """Return a fitted copy with another number of clusters, from the same release. Spends nothing.

        Parameters
        ----------
        n_clusters : int, optional
            From 1 to the number of components; None for the default.
        """
        check_is_fitted(self, "release_")
        none_or(whole(MOST_CLUSTERS))("n_clusters", n_clusters)
        return self._again(self.release_.model.cut(n_clusters), n_clusters=n_clusters)  # type: ignore[attr-defined]

    def _plan(self, domain: Domain) -> Plan:
        check_squares(domain)
        base = self._checked_base(domain)
        number = str(number_parameter(type(base)))
        check_covariances(number, int(getattr(base, number) or FEW_COMPONENTS), domain.n_features)
        plan = base._plan(domain)
        if _shows_covariances(base, domain):
            return plan
        return with_covariances(plan, domain, self._shape("diag"))

    def _cluster(self, curator: Questions) -> MorseModel:
        found: Any = self._checked_base(curator.domain)._cluster(curator)
        mixture = found.base if hasattr(found, "base") else self._with_covariances(curator, found)
        model = MorseModel(mixture, len(mixture.means), by_basin=self.labels == "basin")
        return model.cut(None if self.n_clusters is None else min(int(self.n_clusters), len(mixture.means)))

    def _with_covariances(self, curator: Questions, found: CentreModel) -> MixtureModel:
        if found.synopsis is None:
            return given_covariances(curator, found, self._shape("diag"))
        centers, shape = found.cluster_centers, self._shape("full")
        cells = mixture_of_cells(found.synopsis, len(centers), shape, soft=True, centers=centers)
        return MixtureModel.sized(cells)

    def _shape(self, automatic: MomentShape) -> MomentShape:
        return automatic if self.covariance == "auto" else self.covariance

    def _n_components(self, domain: Domain) -> int:
        """Number of components of the default base: enough to follow curves that a grid can show."""
        wanted = 3 * int(self.n_clusters or 0)
        return max(wanted, FEW_COMPONENTS) if domain.n_features <= GRID_COLUMNS or not wanted else wanted

    def _checked_base(self, domain: Domain) -> PrivateClusterer:
        """The base with our budget, which sets its number of rounds. Raises if the base is unsuitable."""
        base = self.base
        if base is None:
            base = DPMoG(self._n_components(domain))
        is_method = isinstance(base, PrivateClusterer) and not isinstance(base, type(self))
        if not is_method or number_parameter(type(base)) is None:
            raise ParameterError(
                f"`base` must be a method that releases centres or a mixture, got {base!r}: for example "
                "DPMoG(n_components=20)"
            )
        if given := given_shared(base):
            raise ParameterError(
                f"`{given[0]}` must be given to MorseClustering and not to its `base`, "
                f"got {getattr(base, given[0])!r}"
            )
        most = getattr(base, str(number_parameter(type(base))))
        if self.n_clusters is not None and isinstance(most, int) and self.n_clusters > most:
            raise ParameterError(
                f"`n_clusters` must be at most the {most} components of `base`, got {self.n_clusters}"
            )
        own: PrivateClusterer = clone(base)
        check_fields(own)
        own.set_params(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        return own


def _shows_covariances(base: PrivateClusterer, domain: Domain) -> bool:
    """Whether a base releases moments, or a grid off which they can be read."""
    traits = base.traits(domain, 1)
    return traits.moments is not None or traits.cells is not None
