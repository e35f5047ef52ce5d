"""Private source-target clustering: choose centres among public targets, given a private source.

The source is sanitised, that is, released as points that represent it, or as noisy counts of rings around
targets. Everything after that is public: k-medoids with these points as free centres, or with the distances
from the nearest row that the counts make likely.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from fractions import Fraction
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sfumato.budget import Plan, PricedPlan, Step
from sfumato.cluster.shared.base import PrivateEstimator
from sfumato.cluster.shared.levels import private_columns
from sfumato.cluster.shared.parameters import Auto, check_fields, parameter
from sfumato.curator import Questions, nearest_distance_sensitivity, nearest_sensitivity, sums_sensitivity
from sfumato.curator.holder import rows_of
from sfumato.domain import Domain, FloatArray, IntArray
from sfumato.domain.constraints import auto_or, between, none_or, one_of, whole
from sfumato.domain.partitions import Rings, Voronoi
from sfumato.domain.scaling import Scale
from sfumato.errors import ParameterError
from sfumato.public.models import SourceTargetModel
from sfumato.public.places.coverings import cover
from sfumato.public.places.medoids import k_medoids
from sfumato.public.places.nearest_rows import CountNoise, chances_of_none, likely_distances, ring_radii

Sanitizer = Literal["rings", "nna", "nas"]
SANITIZERS = ("rings", "nna", "nas")

# Tuned: docs/notes/source_target.md, docs/notes/constants.md#source-target
RING_EDGES = (0.5, 1.0, 1.5)  # outer radii, and ...
RING_SPACING = (
    0.6  # ... maximum distance of a target from its representative, in mean distances without a source
)
SHARES = (0.3, 0.3, 0.2, 0.15, 0.04, 0.01)  # of likely distances from the nearest row, from near to far

NEIGHBOURS = 4  # representatives that a released place is away from
LEAST_SPACING = 1e-6  # of the domain's diameter, where representatives coincide
MOST_LISTED = 2**27  # numbers in the lists of nearest rows: about 1 GB


class Targets(NamedTuple):
    """Public points, and those that represent the others."""

    points: FloatArray  # (n, d)
    representatives: FloatArray  # (n_representatives, d)
    sizes: IntArray  # (n_representatives,); number of points that each represents
    mean_distance: float  # mean distance of the points from their representatives
    spacing: float  # maximum distance of a point from its representative

    @classmethod
    def covered(cls, points: FloatArray, diameter: float) -> Targets:
        """Choose representatives so that no point is farther than `diameter` from its own."""
        indices, labels = cover(points, diameter)
        gaps = np.linalg.norm(points - points[indices][labels], axis=1)
        return cls(points, points[indices], np.bincount(labels), float(gaps.mean()), diameter)


class SourceTargetClustering(PrivateEstimator):
    """Choose k public target points as centres, given a private source whose points are centres too.

    A target is served by the nearest centre, which is a chosen target or a point of the source. The mean
    distance should be small. The source is sanitised, that is, released as points that represent it, and
    k-medoids with these as free centres chooses the targets.

    Parameters
    ----------
    n_clusters : int
        Number of targets to choose.
    sanitizer : {"rings", "nna", "nas"}
        How the source is sanitised. "rings" counts the rows nearest to each representative target by their
        distance from it; "nna" sums these rows [1]; "nas" averages the `t` rows nearest to each
        representative [1].
    t : int
        Number of rows to average, for "nas".
    coreset : float or "auto"
        Maximum distance of a target from its representative, which is another target, as a share of the
        domain's diameter, from 0 to 1. "auto" takes the mean distance of the targets to the nearest of
        `n_clusters` of them, chosen without a source; for "rings", 0.6 times as much. The outer radii of the
        three rings are 5/6, 5/3 and 5/2 of the maximum distance.
    gamma : float
        Between 0 and 1. For "nna": probability that a group without rows is taken for one with rows. For
        "nas": probability that ``diff_bound_`` fails.
    bound_share : float
        Share of the budget that pays for ``diff_bound_``, for "nas". With 0 there is no bound.

    Attributes
    ----------
    center_indices_ : ndarray of shape (n_clusters,)
        The chosen targets.
    cluster_centers_ : ndarray of shape (n_clusters, d)
    sanitized_source_ : ndarray of shape (m, d)
        Points that represent the source. For "rings", one for each representative that likely has a row near
        it, at the likely distance; in which direction is not known.
    cost_ : float
        Mean distance of the targets to the nearest chosen target or sanitised point; for "rings", the
        expected mean distance given the noisy counts. `cost` gives the cost with the source itself.
    n_representatives_ : int
    diff_bound_ : float or None
        With probability 1 - `gamma`, and for every choice of targets, the cost with the sanitised source
        differs from the cost with the source itself by at most this. Only "nas" has this bound.

    Privacy
    -------
    Unit: one row of the source added or removed. "rings": step "rings", noisy counts of disjoint groups.
    "nna": step "groups", noisy sizes and sums. "nas": step "averages", noisy sums of the rows nearest to each
    representative; step "distance" if `bound_share` is positive. They compose to the budget. Public inputs:
    all parameters, and the target. Not private: `cost` and `predict`. Proof: docs/proofs/source_target.md.

    References
    ----------
    .. [1] Differentially private source-target clustering (anonymous, under review), after A. de Mathelin,
       F. Deheeger, M. Mougeot, N. Vayatis. Discrepancy-based active learning for domain adaptation. ICLR
       2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import SourceTargetClustering
    >>> rng = np.random.default_rng(0)
    >>> target = np.concatenate([rng.normal(0.2, 0.02, (300, 2)), rng.normal(0.8, 0.02, (300, 2))])
    >>> medics = rng.normal(0.2, 0.02, (400, 2))  # private, and near to one half of the targets
    >>> model = SourceTargetClustering(1, epsilon=1.0, bounds=(0, 1), random_state=0).fit(target, medics)
    >>> bool((model.cluster_centers_ > 0.7).all())  # the other half gets the centre
    True
    """

    _explains = False  # centres are public points
    _takes_sparse = False

    n_clusters: int = parameter(whole(), default=8)
    sanitizer: Sanitizer = parameter(one_of(*SANITIZERS), default="rings")
    _: KW_ONLY
    t: int = parameter(whole(10**6), default=150)
    coreset: float | Auto = parameter(auto_or(between(0, 1)), default="auto")
    gamma: float = parameter(between(0, 1, open_low=True, open_high=True), default=0.05)
    bound_share: float = parameter(between(0, 1, open_high=True), default=0.0)
    # Costs are distances, so columns must share a unit.
    scale: Scale | None = parameter(none_or(one_of("bounds")), default=None)

    def fit(self, target: ArrayLike, source: ArrayLike) -> Self:
        """Choose targets under differential privacy for the source.

        Parameters
        ----------
        target : array-like of shape (n, d)
            Public points within the bounds.
        source : array-like of shape (m, d)
            Private rows with the same columns; may be empty. Rows outside the bounds are clipped.
        """
        targets, domain = self._targets(target)
        table = self._open(source, name="source", reset=False)
        if table.domain.n_features != domain.n_features:
            got, wanted = table.domain.n_features, domain.n_features
            raise ParameterError(f"`source` must have {wanted} columns like `target`, got {got}")
        self._fit(table, partial(self._plan, targets=targets), partial(self._choose, targets))
        return self

    def plan(self, target: ArrayLike) -> PricedPlan:
        """What a fit with this target will ask and spend. Prints as a table; spends nothing."""
        targets, domain = self._targets(target)
        return self._priced(self._plan(domain.measured, targets), domain)

    def cost(self, target: ArrayLike, source: ArrayLike) -> float:
        """Mean distance of targets to the nearest chosen target or row of the source.

        For the holder of the source only: it reads the source exactly and is **not private**. Do not publish
        it.

        Parameters
        ----------
        target : array-like of shape (n, d)
        source : array-like of shape (m, d)
        """
        from sklearn.neighbors import KDTree  # slow to load, and other methods do without it

        check_is_fitted(self, "release_")
        points, rows = self._exact_rows(target, "target"), self._exact_rows(source, "source")
        measure, centers = self.release_.domain.measure, self.release_.model.cluster_centers  # type: ignore[attr-defined]
        served = measure.of(np.concatenate([centers, rows]))
        return float(KDTree(served).query(measure.of(points))[0].mean())

    def _targets(self, target: ArrayLike) -> tuple[Targets, Domain]:
        """Check all public inputs except the budget, and choose representatives."""
        check_fields(self)
        if self.bound_share and self.sanitizer != "nas":
            raise ParameterError(
                f"`bound_share` must be 0, got {self.bound_share!r}: no bound is known for sanitizer="
                f"{self.sanitizer!r}. Use sanitizer='nas'"
            )
        if self._private_bounds:
            raise ParameterError("`bounds` must be public, got 'private'. Use the range of the targets")
        if private_columns(self.bounds):
            raise ParameterError("the levels of all columns must be public, got 'private'. Use the targets'")
        points = self._exact_rows(target, "target", reset=True)
        domain = self.domain(points.shape[1])
        if not 1 <= self.n_clusters <= len(points):
            raise ParameterError(
                f"`n_clusters` must be an integer from 1 to {len(points)}, the number of targets, "
                f"got {self.n_clusters!r}"
            )
        gaps = np.abs(points - domain.midpoint)
        outside = (gaps > domain.half_width * (1 + 1e-9)).any()
        if domain.radius is not None:
            outside = (np.linalg.norm(gaps, axis=1) > domain.radius * (1 + 1e-9)).any()
        if outside:
            raise ParameterError(
                "`target` must lie within `bounds`, got points outside. Drop them, or state wider bounds"
            )
        points = domain.measure.of(points)
        return Targets.covered(points, self._spacing(points, domain.measured)), domain

    def _exact_rows(self, X: Any, name: str, *, reset: bool = False) -> FloatArray:
        """Exact rows of a table that may be read without noise."""
        return rows_of(self._open(X, name=name, reset=reset, people=False))

    def _spacing(self, points: FloatArray, domain: Domain) -> float:
        """Maximum distance of a target from its representative."""
        if self.coreset == "auto":
            alone = k_medoids(points, int(self.n_clusters), n_init=1).cost / len(points)
            return RING_SPACING * alone if self.sanitizer == "rings" else alone
        return float(self.coreset) * 2 * domain.reach

    def _plan(self, domain: Domain, targets: Targets) -> Plan:
        if self.sanitizer == "rings":
            return Plan(Step("rings", 1))
        if self.sanitizer == "nna":
            return Plan(Step("groups", 1, sensitivity=sums_sensitivity(domain)))
        n_representatives = len(targets.representatives)
        if n_representatives * self.t * (1 + domain.n_features) > MOST_LISTED:
            raise ParameterError(
                f"`t` must be smaller for {n_representatives} representatives, got {self.t}: their lists of "
                "nearest rows do not fit into memory. Lower `t` or raise `coreset`"
            )
        sensitivity = nearest_sensitivity(domain, n_representatives)
        if not self.bound_share:
            return Plan(Step("averages", 1, sensitivity=sensitivity))
        share = Fraction(str(self.bound_share))
        distance = nearest_distance_sensitivity(domain, len(targets.points))
        return Plan(
            Step("averages", 1 - share, sensitivity=sensitivity),
            Step("distance", share, sensitivity=distance),
        )

    def _choose(self, targets: Targets, curator: Questions) -> SourceTargetModel:
        bound = caps = shares = None
        if self.sanitizer == "rings":
            (sanitized, caps), shares = ringed(curator, targets), SHARES
        elif self.sanitizer == "nna":
            sanitized = noisy_neighbours(curator, targets.representatives, self.gamma)
        else:
            sanitized, bound = self._averaged(curator, targets)
        chosen = k_medoids(
            targets.points, int(self.n_clusters), free_centres=sanitized, caps=caps, cap_shares=shares
        )
        return SourceTargetModel(
            targets.points[chosen.indices],
            chosen.indices,
            sanitized,
            chosen.cost / len(targets.points),
            len(targets.representatives),
            bound,
        )

    def _averaged(self, curator: Questions, targets: Targets) -> tuple[FloatArray, float | None]:
        """Noisy averages of the rows nearest to each representative, and the bound if it is asked for."""
        noisy = curator.nearest("averages", targets.representatives, int(self.t))
        sanitized = curator.domain.clip(noisy.means)
        if not self.bound_share:
            return sanitized, None
        mean = curator.nearest_distance("distance", targets.representatives, targets.sizes, int(self.t))
        cells, d = Voronoi(targets.representatives), curator.domain.n_features
        one = Voronoi(targets.representatives[:1])
        # Half of gamma for all entries of all averages, in both directions, half for the mean distance.
        entry = curator.threshold_for("averages", cells, self.gamma / (4 * d))
        below = curator.threshold_for("distance", one, self.gamma / 2)
        rounding = 2 * (1 + np.sqrt(d)) * float(noisy.units.max()) * self.t
        bound = (
            float(mean.means[0, 0])
            + below * float(mean.units[0])
            + entry * float(np.linalg.norm(noisy.units))
            + targets.mean_distance
            + rounding
        )
        return sanitized, min(max(bound, 0.0), 2 * curator.domain.reach)


def ringed(curator: Questions, targets: Targets) -> tuple[FloatArray, FloatArray]:
    """Where rows likely are, and quantiles of each target's distance from the nearest row.

    Rows are counted in rings around the nearest representative. All else is public.
    """
    representatives = targets.representatives
    edges = ring_edges(curator.domain, targets.spacing)
    noisy = curator.cells("rings", Rings(representatives, edges))
    noise = CountNoise(noisy.record.mechanism == "discrete Laplace", float(noisy.record.scale))
    none = chances_of_none(representatives, edges, noisy.values.reshape(-1, len(edges)), noise)
    levels = np.cumsum(SHARES) - np.array(SHARES) / 2
    caps = likely_distances(targets.points, representatives, edges, none, levels)
    return curator.domain.clip(_likely_places(representatives, edges, none[:, :, -1])), caps


def ring_edges(domain: Domain, spacing: float) -> FloatArray:
    """Outer radii of the rings around representatives."""
    return np.array(RING_EDGES) * max(spacing, LEAST_SPACING * 2 * domain.reach) / RING_SPACING


def _likely_places(representatives: FloatArray, edges: FloatArray, none: FloatArray) -> FloatArray:
    """One place for each representative that likely has rows: in its first such ring, away from others."""
    from sklearn.neighbors import KDTree

    rows = none < 0.5  # (n, n_rings)
    n_near = min(NEIGHBOURS, len(representatives) - 1)
    nearest = KDTree(representatives).query(representatives, n_near + 1)[1]
    away = representatives - representatives[nearest].mean(axis=1)
    lengths = np.linalg.norm(away, axis=1)
    first = np.eye(representatives.shape[1])[0]
    directions = np.where(lengths[:, None] > 0, away / np.maximum(lengths, 1e-300)[:, None], first)
    radii = ring_radii(edges, representatives.shape[1], 1)[rows.argmax(axis=1)]
    places: FloatArray = (representatives + radii * directions)[rows.any(axis=1)]
    return places


def noisy_neighbours(curator: Questions, representatives: FloatArray, gamma: float) -> FloatArray:
    """Noisy means of the rows nearest to each representative, where there are any (NNA, Algorithm 2)."""
    domain, groups = curator.domain, Voronoi(representatives)
    origins = np.repeat(domain.middle[None], len(representatives), axis=0)
    noisy = curator.sums("groups", groups, origins, np.full(len(origins), domain.reach))
    # Line 6 with the exact quantile of the noise in a size.
    quantile = curator.threshold_for("groups", groups, gamma * len(origins))
    kept = noisy.sizes >= 1 + quantile * noisy.size_std / curator.noise_std("groups")
    return domain.clip(domain.middle + noisy.sums[kept] / noisy.sizes[kept, None])
