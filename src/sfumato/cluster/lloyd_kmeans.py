"""DPLloyd (Su et al. 2016): Lloyd's k-means with noisy sums and sizes in every round."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np

from sfumato.budget import Budget, Plan, Step
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.habits import CovarianceHabits
from sfumato.cluster.shared.moments import (
    check_covariances,
    given_covariances,
    moments_traits,
    with_covariances,
)
from sfumato.cluster.shared.number import Number, merge_for, n_starts, number_up_to
from sfumato.cluster.shared.parameters import Auto, parameter
from sfumato.cluster.shared.refine import REFINE_SHARE, refine, refinement_steps, refinement_traits
from sfumato.cluster.shared.traits import Traits, Visible
from sfumato.curator import NoisySums, Questions, sums_sensitivity
from sfumato.domain import LATTICE_RADIUS, Domain, FloatArray
from sfumato.domain.constraints import auto_or, flag, whole
from sfumato.domain.partitions import Voronoi
from sfumato.public.means import mean_stds
from sfumato.public.models import CentreModel, MixtureModel
from sfumato.public.packing import PUBLIC_SEED, packed_start

FEWEST_ROUNDS, MOST_ROUNDS = 2, 7  # the range in which Su et al. (2016) find the best number
# Tuned: docs/notes/constants.md#lloyd
MOVES_ABOVE = 4  # a cluster moves if its noisy size is this many times the noise in it
RESEED_DISTANCE = 0.05  # of a new start from the largest cluster, in radii of the domain


def automatic_rounds(domain: Domain, n_clusters: int, budget: Budget) -> int:
    """Number of rounds for a budget, from public numbers: two if the noise is large, seven if it is small.

    With the whole budget in one round, the noise moves the mean of m rows by about ``needed / m`` of the
    domain's radius per cluster. Each factor of ten in `needed` costs a round.
    """
    sensitivity = sums_sensitivity(domain)
    l1 = sensitivity.l1 / LATTICE_RADIUS * domain.unit.max_rows
    l2 = math.sqrt(sensitivity.l2_squared) / LATTICE_RADIUS * domain.unit.max_rows
    if budget.kind == "pure":
        noise = math.sqrt(2) * l1 / float(budget.epsilon or 1)
    elif budget.kind == "zcdp":
        noise = l2 / math.sqrt(2 * float(budget.rho or 1))
    else:
        log_inverse, epsilon = math.log(1 / float(budget.delta)), float(budget.epsilon or 1)
        # The root of rho, without the cancellation in sqrt(L + epsilon) - sqrt(L).
        noise = l2 * (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse)) / (math.sqrt(2) * epsilon)
    needed = n_clusters * math.sqrt(domain.n_features) * noise
    return int(min(max(round(7.5 - math.log10(max(needed, 1e-9))), FEWEST_ROUNDS), MOST_ROUNDS))


class LloydKMeans(CovarianceHabits, PrivateClusterer):
    """Lloyd's k-means with noisy sums and sizes (DPLloyd).

    From public starting centres, each round assigns rows to the nearest centre and moves the centre to their
    noisy mean. Sizes and sums are released together. A cluster that is lost in its noise restarts next to a
    large one.

    Parameters
    ----------
    n_clusters : int or "auto"
        At most 10000. "auto" starts with 48 centres and keeps as many clusters as the released cells show to
        be separated.
    n_iter : "auto" or int
        Number of rounds, at most 1000. "auto" makes two to seven, fewer if the noise is larger.
    refine : bool
        Spend half of the budget on moving the centres to the means of the rows around them.
    covariances : bool
        Spend a quarter of the budget on the covariances of the clusters. The model is then a Gaussian
        mixture, for `MorseClustering`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Noisy number of rows per cluster in the last release, at least 0.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of centres and sizes.
    weights_, means_, covariances_ : ndarray
        The mixture, with `covariances`.
    n_clusters_ : int

    Privacy
    -------
    Unit: one row added or removed. Step "rounds", `n_iter` times: noisy sizes and sums of the cells of
    released centres. With `refine`, the steps of the refinement. All compose to the budget. The number of
    rounds depends only on public parameters. Public inputs: all parameters. Not private: ``labels_`` and
    ``predict``. Proof: docs/proofs/kmeans.md.

    References
    ----------
    - D. Su, J. Cao, N. Li, E. Bertino, H. Jin. Differentially private k-means clustering. CODASPY 2016.

    Examples
    --------
    >>> from sfumato.cluster.lloyd_kmeans import LloydKMeans
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(5000, n_clusters=4, n_features=3, random_state=0)
    >>> model = LloydKMeans(n_clusters=4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 3)
    """

    n_clusters: Number = parameter(number_up_to(10**4), default=8)
    _: KW_ONLY
    n_iter: int | Auto = parameter(auto_or(whole(1000)), default="auto")
    refine: bool = parameter(flag, default=True)
    covariances: bool = parameter(flag, default=False)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        found = Traits((Visible("rounds", MOVES_ABOVE),), "rounds")
        if self.refine:
            found = found.then(refinement_traits(domain, n_clusters))
        return found.then(moments_traits()) if self.covariances else found

    def _plan(self, domain: Domain) -> Plan:
        if self.covariances:
            check_covariances("n_clusters", int(self.n_clusters), domain.n_features)
        plan = self._centre_plan(domain)
        return with_covariances(plan, domain) if self.covariances else plan

    def _cluster(self, curator: Questions) -> CentreModel | MixtureModel:
        model = self._centres(curator)
        return given_covariances(curator, model) if self.covariances else model

    def _centre_plan(self, domain: Domain) -> Plan:
        own = 1 - REFINE_SHARE if self.refine else Fraction(1)
        rounds = Step("rounds", own, repeats=self._rounds(domain), sensitivity=sums_sensitivity(domain))
        return Plan(rounds, *(refinement_steps(domain, REFINE_SHARE) if self.refine else ()))

    def _centres(self, curator: Questions) -> CentreModel:
        domain = curator.domain
        centers = packed_start(domain, self._n_starts)
        origins = np.repeat(domain.middle[None], self._n_starts, axis=0)
        radii = np.full(self._n_starts, domain.reach)
        sizes = np.zeros(self._n_starts)
        rng = np.random.default_rng(PUBLIC_SEED)
        n_rounds = self._rounds(domain)
        for i in range(n_rounds):
            noisy = curator.sums("rounds", Voronoi(centers), origins, radii)
            sizes = np.maximum(noisy.sizes, 0.0)
            centers = _moved(domain, centers, noisy)
            if i < n_rounds - 1:
                centers = _reseeded(domain, centers, noisy, rng)
        if not self.refine:
            stds = mean_stds(noisy.sums, np.maximum(noisy.sizes, 1.0), noisy.sum_std, noisy.size_std)
            size_stds = np.full(self._n_starts, noisy.size_std)
            return CentreModel(centers, sizes, center_stds=stds, size_stds=size_stds)
        return refine(curator, centers, merge=merge_for(self.n_clusters))

    @property
    def _n_starts(self) -> int:
        return n_starts(self.n_clusters, refine=self.refine)

    def _rounds(self, domain: Domain) -> int:
        if self.n_iter == "auto":
            return automatic_rounds(domain, self._n_starts, self._budget())
        return int(self.n_iter)


def _moved(domain: Domain, centers: FloatArray, noisy: NoisySums) -> FloatArray:
    """Move clusters that stand out from their noise to their noisy means; leave the others."""
    visible = noisy.sizes > MOVES_ABOVE * noisy.size_std
    means = domain.clip(domain.middle + noisy.sums / np.maximum(noisy.sizes, 1.0)[:, None])
    return np.where(visible[:, None], means, centers)


def _reseeded(domain: Domain, centers: FloatArray, noisy: NoisySums, rng: np.random.Generator) -> FloatArray:
    """Restart lost clusters next to the largest ones, using noisy sizes and public random draws."""
    shares = np.where(noisy.sizes > MOVES_ABOVE * noisy.size_std, noisy.sizes, 0.0)
    directions = rng.normal(size=centers.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    centers = centers.copy()
    for lost in np.flatnonzero(shares == 0.0):
        largest = int(np.argmax(shares))
        if shares[largest] <= 0.0:
            break
        beside = centers[largest] + RESEED_DISTANCE * domain.reach * directions[lost]
        centers[lost] = domain.clip(beside[None])[0]
        shares[largest] /= 2
    return centers
