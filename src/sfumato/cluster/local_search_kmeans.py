"""k-means by private local search (Balcan, Dick, Liang, Mou and Zhang 2017)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from fractions import Fraction

import numpy as np

from sfumato.budget import Plan, Step
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.candidates import (
    MAX_CLUSTERS,
    RADIUS_FACTOR,
    Candidates,
    choice_plan,
    choice_traits,
    find_candidates,
    max_candidates,
    radius_of_most,
    recovered,
)
from sfumato.cluster.shared.habits import CovarianceHabits
from sfumato.cluster.shared.moments import (
    check_covariances,
    given_covariances,
    moments_traits,
    with_covariances,
)
from sfumato.cluster.shared.number import Number, merge_for, n_starts, number_up_to
from sfumato.cluster.shared.parameters import Auto, parameter
from sfumato.cluster.shared.traits import Traits
from sfumato.curator import Questions, swap_sensitivity
from sfumato.domain import Domain, FloatArray
from sfumato.domain.constraints import auto_or, flag, whole
from sfumato.domain.partitions import Voronoi
from sfumato.public.kmeans import weighted_kmeans
from sfumato.public.models import CentreModel, MixtureModel

MAX_SWAPS = 1000  # a limit
FREE_WORK = 4e9  # a limit on the additions of the search on noisy counts: a few seconds

# Tuned: docs/notes/constants.md#local-search
CANDIDATE_SHARE = Fraction(55, 100)  # of what refinement leaves
SWAP_SHARE = Fraction(15, 100)
N_SWAPS = 4  # the search on noisy counts has done most of the work


class LocalSearchKMeans(CovarianceHabits, PrivateClusterer):
    """k-means by swapping centres for candidates while that lowers the cost.

    Rows are projected to a few public random directions. There, a private division of space into boxes gives
    candidates with noisy counts. A local search on these noisy counts spends no budget and gives the start.
    The exponential mechanism then chooses a few more swaps by the cost of the rows themselves, with each
    row's cost truncated at a radius. Finally, the rows nearest to each centre give its mean in all columns.

    Parameters
    ----------
    n_clusters : int or "auto"
        At most 1000. "auto" starts with 48 centres and keeps as many clusters as the released cells show to
        be separated.
    n_swaps : int or "auto"
        Number of private swaps. "auto" makes 4.
    refine : bool
        Spend half of the budget on moving the centres to the means of the rows around them.
    covariances : bool
        Spend a quarter of the budget on the covariances of the clusters. The model is then a Gaussian
        mixture, for `MorseClustering`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Estimated number of rows per cluster.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of centres and sizes; None without `refine`.
    weights_, means_, covariances_ : ndarray
        The mixture, with `covariances`.
    n_clusters_ : int

    Privacy
    -------
    Unit: one row added or removed. Steps "middle" and "reach": noisy mean of all rows and noisy histogram of
    their distances from it. Step "boxes": noisy counts of disjoint boxes, once per level. Step "box means":
    noisy sums of the projected rows of each box. Step "radius": another histogram of distances. Step "swap",
    `n_swaps` times: a private selection by the decrease of the truncated cost, of spread one cost unit. Steps
    "recovery": one histogram and the noisy sums of the groups. Then the steps of the refinement. All compose
    to the budget. Public inputs: all parameters, and the directions of the projection. Not private:
    ``labels_`` and ``predict``. Proof: docs/proofs/kmeans.md.

    References
    ----------
    - M.-F. Balcan, T. Dick, Y. Liang, W. Mou, H. Zhang. Differentially private clustering in
      high-dimensional Euclidean spaces. ICML 2017.
    - E. Schubert, P. J. Rousseeuw. Faster k-medoids clustering: improving the PAM, CLARA, and CLARANS
      algorithms. SISAP 2019.

    Examples
    --------
    >>> from sfumato.cluster.local_search_kmeans import LocalSearchKMeans
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(2000, n_clusters=4, n_features=2, random_state=0)
    >>> model = LocalSearchKMeans(n_clusters=4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 2)
    """

    n_clusters: Number = parameter(number_up_to(MAX_CLUSTERS), default=8)
    _: KW_ONLY
    n_swaps: int | Auto = parameter(auto_or(whole(MAX_SWAPS)), default="auto")
    refine: bool = parameter(flag, default=True)
    covariances: bool = parameter(flag, default=False)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        n_candidates = max_candidates(n_clusters)
        swaps = Traits(n_integers=max(n_clusters, n_candidates) * n_candidates)
        found = swaps.then(choice_traits(domain, n_clusters, refine=self.refine))
        return found.then(moments_traits()) if self.covariances else found

    def _plan(self, domain: Domain) -> Plan:
        k = self._n_starts
        if self.covariances:
            check_covariances("n_clusters", k, domain.n_features)
        swap = Step("swap", SWAP_SHARE, self._n_swaps, swap_sensitivity(k, max_candidates(k)), selection=True)
        plan = choice_plan(domain, k, CANDIDATE_SHARE, swap, refine=self.refine)
        return with_covariances(plan, domain) if self.covariances else plan

    def _cluster(self, curator: Questions) -> CentreModel | MixtureModel:
        candidates = find_candidates(curator, self._n_starts)
        centers = free_search(candidates.points, candidates.weights, self._n_starts)
        centers = self._swapped(curator, candidates, centers)
        merge = merge_for(self.n_clusters)
        model = recovered(curator, candidates, centers, refine=self.refine, merge=merge)
        return given_covariances(curator, model) if self.covariances else model

    @property
    def _n_starts(self) -> int:
        return n_starts(self.n_clusters, refine=self.refine)

    @property
    def _n_swaps(self) -> int:
        return N_SWAPS if self.n_swaps == "auto" else int(self.n_swaps)

    def _swapped(self, curator: Questions, candidates: Candidates, centers: FloatArray) -> FloatArray:
        """Make private swaps, with free k-means on the candidates after each."""
        projection = candidates.projection
        radius = RADIUS_FACTOR * radius_of_most(curator, "radius", Voronoi(centers), centers, projection)
        centers = swapped_freely(candidates.points, candidates.weights, centers, radius)
        for _ in range(self._n_swaps):
            swap = curator.swap("swap", centers, candidates.points, radius, projection)
            if swap is not None:
                centers = centers.copy()
                centers[swap[0]] = candidates.points[swap[1]]
                centers = _moved_to_means(candidates.points, candidates.weights, centers)
        return centers


def free_search(points: FloatArray, weights: FloatArray, n_clusters: int) -> FloatArray:
    """Local search on released points with released weights: free post-processing."""
    centers, _ = weighted_kmeans(points, weights, n_clusters, n_init=3)
    return swapped_freely(points, weights, centers, np.inf)


def swapped_freely(points: FloatArray, weights: FloatArray, centers: FloatArray, radius: float) -> FloatArray:
    """Alternate swaps that lower the truncated weighted cost with k-means; return the centres.

    Each escapes where the other is stuck. Truncation keeps centres away from points that are mere noise, far
    from all others.
    """
    between = np.minimum(_squares(points, points), radius**2)
    n_swaps = int(min(2 * len(centers), FREE_WORK / (len(centers) * len(points) ** 2)))
    for _ in range(2):
        for _ in range(n_swaps):
            swapped = best_swap(points, weights, centers, between, radius)
            if swapped is None:
                break
            centers = swapped
        settled = _moved_to_means(points, weights, centers)
        # k-means ignores the truncation and may move centres towards distant noise.
        centers = min(centers, settled, key=lambda c: _truncated_cost(points, weights, c, radius))
    return centers


def best_swap(
    points: FloatArray, weights: FloatArray, centers: FloatArray, between: FloatArray, radius: float
) -> FloatArray | None:
    """Centres after the swap that lowers the truncated cost the most; None if no swap lowers it.

    `between` holds the truncated squared distances between the points. As in FastPAM (Schubert and Rousseeuw
    2019), a new point's savings do not depend on the dropped centre, except for that centre's points, which
    fall back on their second nearest.
    """
    costs = np.minimum(_squares(points, centers), radius**2)
    nearest = costs.argmin(axis=1)
    first = costs[np.arange(len(points)), nearest]
    costs[np.arange(len(points)), nearest] = np.inf
    # With one centre there is no second nearest. A large cost sends all points to the new one.
    second = np.minimum(costs.min(axis=1), min(radius**2, 4 * float(between.max()) + 4 * float(first.max())))
    saved = first[:, None] - between
    gains = weights @ np.maximum(saved, 0.0)
    owned = (nearest == np.arange(len(centers))[:, None]) * weights
    savings = gains + owned @ np.maximum(np.minimum(saved, 0.0), (first - second)[:, None])
    out, new = divmod(int(savings.argmax()), len(points))
    if savings[out, new] <= 1e-9 * (weights @ first):
        return None
    swapped = centers.copy()
    swapped[out] = points[new]
    return swapped


def _truncated_cost(points: FloatArray, weights: FloatArray, centers: FloatArray, radius: float) -> float:
    costs = _squares(points, centers).min(axis=1)
    return float(weights @ np.minimum(costs, radius**2))


def _moved_to_means(points: FloatArray, weights: FloatArray, centers: FloatArray) -> FloatArray:
    """Centres after weighted k-means, started from the given ones."""
    settled, _ = weighted_kmeans(points, weights, len(centers), starts=[centers])
    return settled


def _squares(points: FloatArray, centers: FloatArray) -> FloatArray:
    """Squared distances."""
    from sklearn.metrics import pairwise_distances  # slow to load, and other methods do without it

    squares: FloatArray = pairwise_distances(points, centers, metric="sqeuclidean")
    return squares
