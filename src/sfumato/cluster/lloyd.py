"""DPLloyd (Su et al. 2016): Lloyd's k-means with noisy sums and sizes in every round."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from sfumato.budget import Budget, Ledger, Plan, Step
from sfumato.cluster.base import PrivateClusterer
from sfumato.cluster.checks import check_flag, check_whole, check_whole_or_auto
from sfumato.cluster.mixtures import given_covariances, with_covariances
from sfumato.cluster.refine import refine, refinement_steps
from sfumato.columns import Missing
from sfumato.curator import Curator, NoisySums, sums_sensitivity
from sfumato.domain import LATTICE_RADIUS, Domain, FloatArray
from sfumato.models import CentreModel, MixtureModel
from sfumato.partition import Voronoi
from sfumato.shrinkage import mean_stds

REFINE_SHARE = Fraction(1, 2)
FEWEST_ROUNDS, MOST_ROUNDS = 2, 7  # the range in which Su et al. find the best number
VISIBLE = 4  # a cluster moves when its noisy size is this many times the noise in it
RESEED_DISTANCE = 0.05  # of a new start from the largest cluster, in radii of the domain
DRAWS_PER_CENTRE, MOST_DRAWS = 100, 2000
MOST_VALUES = 200_000  # in many columns a few draws are as far apart as many
HALVINGS = 12  # of the interval that holds the radius of the packing
PUBLIC_SEED = 2016


def _radius(domain: Domain) -> float:
    """Radius of the smallest ball around the midpoint that holds the domain."""
    return float(np.linalg.norm(domain.half_width)) if domain.radius is None else domain.radius


def packed_start(domain: Domain, n_clusters: int) -> FloatArray:
    """Public starting centres, far from each other and from the border, whatever the rows are.

    With columns scaled to [-1, 1], each centre is the middle of a ball of the same radius; balls do not
    overlap and lie within the domain. The radius is about the largest for which random draws find room.

    Parameters
    ----------
    domain : Domain
    n_clusters : int

    Returns
    -------
    ndarray of shape (n_clusters, d)
    """
    unit_start, _ = unit_packing(domain.n_features, n_clusters, domain.radius is not None)
    return domain.clip(domain.midpoint + unit_start * domain.half_width)


@lru_cache(maxsize=64)
def unit_packing(n_features: int, n_clusters: int, ball: bool) -> tuple[FloatArray, float]:
    """Middles of equal balls in [-1, 1]^d, or in the ball of radius 1, and their radius."""
    rng = np.random.default_rng(PUBLIC_SEED)
    n_draws = max(2 * n_clusters, min(DRAWS_PER_CENTRE * n_clusters, MOST_DRAWS, MOST_VALUES // n_features))
    draws = rng.uniform(-1, 1, size=(n_draws, n_features))
    if ball:
        draws = rng.normal(size=draws.shape)
        depths = rng.uniform(size=(n_draws, 1)) ** (1 / n_features)
        draws *= depths / np.linalg.norm(draws, axis=1, keepdims=True)
    if n_clusters == 1:
        return np.zeros((1, n_features)), 1.0
    low, high = 0.0, 1.0
    found = draws[:n_clusters]
    for _ in range(HALVINGS):
        radius = (low + high) / 2
        # Shrunk draws keep their distance from the border.
        chosen = _far_apart(draws, 2 * radius / (1 - radius), n_clusters)
        if len(chosen) == n_clusters:
            low, found = radius, (1 - radius) * chosen
        else:
            high = radius
    return found, low


def _far_apart(draws: FloatArray, distance: float, n: int) -> FloatArray:
    """Take draws in order, up to `n`, unless they are too close to one that was taken."""
    squares = (draws**2).sum(axis=1)
    free = np.ones(len(draws), dtype=bool)
    taken: list[int] = []
    while len(taken) < n and free.any():
        taken.append(int(np.argmax(free)))
        gaps = squares + squares[taken[-1]] - 2 * (draws @ draws[taken[-1]])
        free &= gaps >= distance**2
        free[taken[-1]] = False
    return draws[taken]


def automatic_rounds(domain: Domain, n_clusters: int, budget: Budget) -> int:
    """Rounds that a budget is worth: two where noise is large, seven where it is small, by public numbers.

    One round with the whole budget moves the mean of m rows by noise of about ``needed / m`` of the domain's
    radius per cluster; every tenfold of `needed` costs a round.
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
        # Without the cancellation of sqrt(L + epsilon) - sqrt(L), the root of rho.
        noise = l2 * (math.sqrt(log_inverse + epsilon) + math.sqrt(log_inverse)) / (math.sqrt(2) * epsilon)
    needed = n_clusters * math.sqrt(domain.n_features) * noise
    return int(min(max(round(7.5 - math.log10(max(needed, 1e-9))), FEWEST_ROUNDS), MOST_ROUNDS))


class LloydKMeans(PrivateClusterer):
    """Lloyd's k-means with noisy sums and sizes (DPLloyd).

    From public starting centres, each round assigns rows to the nearest centre and moves the centre to their
    noisy mean. Sizes and sums are released together. A cluster that is not visible above its noise is started
    again beside a large one.

    Parameters
    ----------
    n_clusters : int
        At most 10000.
    n_iter : "auto" or int
        Rounds, at most 1000. Automatic: two to seven, fewer where the noise is larger.
    refine : bool
        Spend half of the budget on moving the centres to the means of the rows around them.
    covariances : bool
        Buy the covariances of the clusters, too, with a quarter of the budget: the model is then a Gaussian
        mixture, for `MorseClustering`.
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
        Noisy rows per cluster in the last release, at least 0.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        How far they may be off, as standard deviations.
    weights_, means_, covariances_ : ndarray
        With `covariances`: the mixture.
    n_clusters_ : int
    privacy_ : PrivacyStatement
    release_ : Release
    n_features_in_ : int
    labels_ : ndarray of shape (n,)
        Computed on demand for the holder of the rows; not private.

    Privacy
    -------
    Unit: one row added or removed. Step "rounds", `n_iter` times: noisy sizes and sums of the cells of
    released centres. With `refine`, the steps of the refinement. All compose to the budget; the number of
    rounds follows from public parameters. Public inputs: all parameters. Not private: ``labels_`` and
    ``predict``. Proof: docs/proofs/kmeans.md.

    References
    ----------
    - D. Su, J. Cao, N. Li, E. Bertino, H. Jin. Differentially private k-means clustering. CODASPY 2016.

    Examples
    --------
    >>> from sfumato.cluster.lloyd import LloydKMeans
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(5000, n_clusters=4, n_features=3, random_state=0)
    >>> model = LloydKMeans(n_clusters=4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (4, 3)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_iter: int | Literal["auto"] = "auto",
        refine: bool = True,
        covariances: bool = False,
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
        self.n_iter = n_iter
        self.refine = refine
        self.covariances = covariances
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
        check_flag("covariances", self.covariances)
        plan = self._centre_plan(domain)
        return with_covariances(plan, domain) if self.covariances else plan

    def _cluster(self, curator: Curator) -> CentreModel | MixtureModel:
        model = self._centres(curator)
        return given_covariances(curator, model) if self.covariances else model

    def _centre_plan(self, domain: Domain) -> Plan:
        self._check_parameters()
        own = 1 - REFINE_SHARE if self.refine else Fraction(1)
        rounds = Step("rounds", own, repeats=self._rounds(domain), sensitivity=sums_sensitivity(domain))
        return Plan(rounds, *(refinement_steps(domain, REFINE_SHARE) if self.refine else ()))

    def _centres(self, curator: Curator) -> CentreModel:
        domain = curator.domain
        centers = packed_start(domain, self.n_clusters)
        origins = np.repeat(domain.midpoint[None], self.n_clusters, axis=0)
        radii = np.full(self.n_clusters, _radius(domain))
        sizes = np.zeros(self.n_clusters)
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
            size_stds = np.full(self.n_clusters, noisy.size_std)
            return CentreModel(centers, sizes, center_stds=stds, size_stds=size_stds)
        return refine(curator, centers)

    def _rounds(self, domain: Domain) -> int:
        if self.n_iter == "auto":
            return automatic_rounds(domain, self.n_clusters, self._budget())
        return int(self.n_iter)

    def _check_parameters(self) -> None:
        check_flag("refine", self.refine)
        check_whole("n_clusters", self.n_clusters, most=10**4)
        check_whole_or_auto("n_iter", self.n_iter, most=1000)


def _moved(domain: Domain, centers: FloatArray, noisy: NoisySums) -> FloatArray:
    """Noisy means of the clusters that are visible above their noise; the others stay."""
    visible = noisy.sizes > VISIBLE * noisy.size_std
    means = domain.clip(domain.midpoint + noisy.sums / np.maximum(noisy.sizes, 1.0)[:, None])
    return np.where(visible[:, None], means, centers)


def _reseeded(domain: Domain, centers: FloatArray, noisy: NoisySums, rng: np.random.Generator) -> FloatArray:
    """Start clusters that are not visible again beside the largest ones, by noisy sizes and public draws."""
    shares = np.where(noisy.sizes > VISIBLE * noisy.size_std, noisy.sizes, 0.0)
    directions = rng.normal(size=centers.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    centers = centers.copy()
    for lost in np.flatnonzero(shares == 0.0):
        largest = int(np.argmax(shares))
        if shares[largest] <= 0.0:
            break
        beside = centers[largest] + RESEED_DISTANCE * _radius(domain) * directions[lost]
        centers[lost] = domain.clip(beside[None])[0]
        shares[largest] /= 2
    return centers
