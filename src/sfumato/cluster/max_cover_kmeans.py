"""k-means by private maximum coverage: EM-MC (Nguyen, Chaturvedi and Xu 2021)."""

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
from sfumato.cluster.shared.habits import CentreHabits
from sfumato.cluster.shared.number import Number, merge_for, n_starts, number_up_to
from sfumato.cluster.shared.parameters import parameter
from sfumato.cluster.shared.traits import Traits
from sfumato.curator import Questions, cover_sensitivity
from sfumato.domain import Domain, FloatArray
from sfumato.domain.constraints import flag
from sfumato.domain.partitions import Voronoi
from sfumato.public.kmeans import weighted_kmeans
from sfumato.public.models import CentreModel

# Of what refinement leaves. Tuned: docs/notes/constants.md#max-cover
CANDIDATE_SHARE = Fraction(45, 100)
COVER_SHARE = Fraction(25, 100)


class MaxCoverKMeans(CentreHabits, PrivateClusterer):
    """k-means by choosing balls that cover the most rows, one after the other.

    Rows are projected to a few public random directions. There, a private division of space into boxes gives
    candidates. Centres are then chosen greedily: each time, the exponential mechanism selects a candidate
    whose ball covers many rows that no earlier ball covers. Covered rows no longer count, so small clusters
    are found too. Finally, the rows nearest to each chosen candidate give its mean in all columns.

    Parameters
    ----------
    n_clusters : int or "auto"
        At most 1000. "auto" starts with 48 centres and keeps as many clusters as the released cells show to
        be separated.
    refine : bool
        Spend half of the budget on moving the centres to the means of the rows around them.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Estimated number of rows per cluster.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of centres and sizes; None without `refine`.
    n_clusters_ : int

    Privacy
    -------
    Unit: one row added or removed. Steps "middle" and "reach": noisy mean of all rows and noisy histogram of
    their distances from it. Step "boxes": noisy counts of disjoint boxes, once per level. Step "box means":
    noisy sums of the projected rows of each box. Step "radius": another histogram of distances. Step "cover",
    `n_clusters` times: a private selection by the number of newly covered rows, of spread 1. Steps
    "recovery": one histogram and the noisy sums of the groups. Then the steps of the refinement. All compose
    to the budget. Public inputs: all parameters, and the directions of the projection. Not private:
    ``labels_`` and ``predict``. Proof: docs/proofs/kmeans.md.

    References
    ----------
    - H. Nguyen, A. Chaturvedi, E. Z. Xu. Differentially private k-means via exponential mechanism and
      max cover. AAAI 2021.
    - M.-F. Balcan, T. Dick, Y. Liang, W. Mou, H. Zhang. Differentially private clustering in
      high-dimensional Euclidean spaces. ICML 2017.

    Examples
    --------
    >>> from sfumato.cluster.max_cover_kmeans import MaxCoverKMeans
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(2000, n_clusters=4, n_features=2, random_state=0)
    >>> model = MaxCoverKMeans(n_clusters=4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 2)
    """

    n_clusters: Number = parameter(number_up_to(MAX_CLUSTERS), default=8)
    _: KW_ONLY
    refine: bool = parameter(flag, default=True)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        return choice_traits(domain, n_clusters, refine=self.refine)

    def _plan(self, domain: Domain) -> Plan:
        k = self._n_starts
        cover = Step("cover", COVER_SHARE, k, cover_sensitivity(max_candidates(k)), selection=True)
        return choice_plan(domain, k, CANDIDATE_SHARE, cover, refine=self.refine)

    def _cluster(self, curator: Questions) -> CentreModel:
        candidates = find_candidates(curator, self._n_starts)
        chosen = self._covering(curator, candidates)
        centers, _ = weighted_kmeans(candidates.points, candidates.weights, self._n_starts, starts=[chosen])
        merge = merge_for(self.n_clusters)
        return recovered(curator, candidates, centers, refine=self.refine, merge=merge)

    @property
    def _n_starts(self) -> int:
        return n_starts(self.n_clusters, refine=self.refine)

    def _covering(self, curator: Questions, candidates: Candidates) -> FloatArray:
        """Greedy choice of candidates by the number of rows that each newly covers."""
        radius = self._radius(curator, candidates)
        chosen = np.empty((0, candidates.points.shape[1]))
        for _ in range(self._n_starts):
            best = curator.cover("cover", candidates.points, chosen, radius, candidates.projection)
            chosen = np.concatenate([chosen, candidates.points[best : best + 1]])
        return chosen

    def _radius(self, curator: Questions, candidates: Candidates) -> float:
        """Radius of the balls: it contains most rows around provisional centres found without the rows."""
        points, weights = candidates.points, candidates.weights
        provisional, _ = weighted_kmeans(points, weights, self._n_starts, n_init=3)
        cells, projection = Voronoi(provisional), candidates.projection
        return RADIUS_FACTOR * radius_of_most(curator, "radius", cells, provisional, projection)
