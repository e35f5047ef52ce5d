"""k-means by halving along released directions: the default with a delta or rho."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from sfumato.budget import Plan
from sfumato.cluster.shared.base import PrivateClusterer
from sfumato.cluster.shared.components import Frame, ask_components, ask_frame, component_steps, frame_steps
from sfumato.cluster.shared.habits import CentreHabits
from sfumato.cluster.shared.halving import halved, halving_steps
from sfumato.cluster.shared.number import Number, n_starts, number_up_to
from sfumato.cluster.shared.parameters import Auto, parameter
from sfumato.cluster.shared.refine import SEEN_ABOVE, last_radius, last_round
from sfumato.cluster.shared.rounds import (
    SCALED_EDGES,
    WITHIN,
    Cells,
    moved,
    round_steps,
    scaled_reach,
)
from sfumato.cluster.shared.traits import Refinement, Traits, Visible
from sfumato.curator import Questions, sums_sensitivity
from sfumato.domain import Domain, FloatArray
from sfumato.domain.constraints import Constraint, auto_or, none_or, whole
from sfumato.domain.partitions import Partition, Voronoi
from sfumato.errors import ParameterError
from sfumato.projection import orthonormal
from sfumato.public.cells import CellSynopsis
from sfumato.public.kmeans import merged_into
from sfumato.public.models import CentreModel

MAX_CLUSTERS = 1000  # a limit: Ward's merging of the cells takes memory quadratic in their number
MOST_DIRECTIONS = 64
MOMENT_COLUMNS = 2048  # a limit: the moments of more columns are millions of integers
PURE_COLUMNS = 12  # without a delta; the noise in moments grows with the square of their number
DIRECTIONS_SEED = 2026  # public: the directions are the same in every run

# Tuned: docs/notes/constants.md#private-kmeans
CELLS_PER_CLUSTER, LEAST_CELLS = 4, 64
FRAME_SHARE = Fraction(3, 100)  # without moments
N_CELL_ROUNDS = 8
EXTRA_DIRECTIONS = 6  # beyond log2(k), where directions are random
WIDE_COLUMNS = 64
MOST_POINTS = CELLS_PER_CLUSTER * MAX_CLUSTERS

points_or_none = none_or(Constraint("points, one per row", lambda value: np.ndim(value) == 2))


class Schedule(NamedTuple):
    """Shares of the budget in percent, the last round having the rest, and a number of rounds."""

    directions: int  # the frame is in it
    halving: int
    cells: int
    centres: int
    n_centre_rounds: int


NARROW = Schedule(directions=13, halving=12, cells=36, centres=15, n_centre_rounds=3)
# Noise in the directions is small there, and that of means in all columns large: it grows with the columns.
WIDE = Schedule(directions=20, halving=8, cells=14, centres=29, n_centre_rounds=1)


def schedule(domain: Domain) -> Schedule:
    """The schedule for a table's number of columns."""
    return WIDE if domain.n_features >= WIDE_COLUMNS else NARROW


class PrivateKMeans(CentreHabits, PrivateClusterer):
    """k-means for tables of any width, whatever their bounds: the method to try first.

    Noisy second moments show the directions along which the rows vary most. Along these, cells are halved
    where rows vary, more of them than there are clusters. Noisy k-means rounds move the cells, in these few
    directions, where noise is small. They are then merged into clusters at no cost, and moved in all columns.

    Parameters
    ----------
    n_clusters : int or "auto"
        Number of clusters, at most 1000. "auto" finds the number of separated ones.
    init : array-like of shape (m, d), optional
        Public points to start from, such as the centres of an earlier release or of public rows: at least
        `n_clusters`. They must not come from the rows themselves. What finding a start would cost goes to the
        rounds.
    n_components : int or "auto"
        Maximum number of directions, at most 64. "auto" takes those whose variance stands out from the noise.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d)
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Estimated number of rows per cluster.
    cluster_center_stds_, cluster_size_stds_ : ndarray
        Standard deviations of the error of centres and sizes.
    n_clusters_ : int

    Privacy
    -------
    Unit: one row, added or removed. "mean" and "distances" release a noisy mean and a noisy histogram of the
    distances from it, "moments" the noisy second moments of all columns. "spread", "halves", "cell distances"
    and "cell means" are asked about rows that are projected to released or public directions. "spread" and
    all named distances are histograms of distances; "halves" releases sizes, sums and second moments along
    the directions, and all named means sizes and clipped sums, of disjoint groups; "centre means" and "last
    means" in all columns. All steps are always asked, so the spend does not depend on the data. Bounds and
    parameters are public. Cells, merges and moves depend on released values only. Not private: `predict` and
    ``labels_``. Proof: docs/proofs/kmeans.md.

    References
    ----------
    - C. Dwork, K. Talwar, A. Thakurta, L. Zhang. Analyze Gauss: optimal bounds for privacy-preserving
      principal component analysis. STOC 2014.
    - D. Boley. Principal direction divisive partitioning. Data Mining and Knowledge Discovery 2, 1998.
    - D. Su, J. Cao, N. Li, E. Bertino, H. Jin. Differentially private k-means clustering. CODASPY 2016.

    Examples
    --------
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(20_000, n_clusters=5, n_features=30, random_state=0)
    >>> model = PrivateKMeans(5, epsilon=1.0, delta=1e-6, bounds=(-1, 1), random_state=0).fit(X)
    >>> model.cluster_centers_.shape
    (5, 30)
    """

    n_clusters: Number = parameter(number_up_to(MAX_CLUSTERS), default=8)
    _: KW_ONLY
    init: Any = parameter(points_or_none, default=None)
    n_components: int | Auto = parameter(auto_or(whole(MOST_DIRECTIONS)), default="auto")

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """What a forecast needs to know."""
        n_columns = domain.n_features if self._asks_moments(domain) else 0
        return Traits(
            visible=(Visible("cell means", SEEN_ABOVE), Visible("last means", SEEN_ABOVE)),
            size_step="last means",
            n_integers=max(n_columns**2, self._n_cells * 2 * self._most_directions(domain)),
            refinement=Refinement(
                "last means",
                distances="last distances",
                splits=None,
                n_part_rounds=1,  # earlier rounds have more noise, and add little
                within=WITHIN,
                edges=_edges,
                last_radius=last_radius,
            ),
        )

    def _plan(self, domain: Domain) -> Plan:
        n_columns = self._most_directions(domain)
        in_all, in_directions = sums_sensitivity(domain), sums_sensitivity(domain, n_columns)
        *shares, n_centre_rounds = schedule(domain)
        directions, halving, cells, centres = (Fraction(share, 100) for share in shares)
        if self._asks_moments(domain):
            steps = [*component_steps(domain, directions)]
        else:
            directions = FRAME_SHARE
            steps = [*frame_steps(domain, directions)]
        if self._points(domain) is None:
            steps += halving_steps(domain, halving, self._n_cells, n_columns)
        else:
            cells += halving
            halving = Fraction(0)
        steps += round_steps("cell", cells, N_CELL_ROUNDS, in_directions)
        steps += round_steps("centre", centres, n_centre_rounds, in_all)
        steps += round_steps("last", 1 - directions - halving - cells - centres, 1, in_all)
        return Plan(*steps)

    def _cluster(self, curator: Questions) -> CentreModel:
        frame = ask_frame(curator)
        frame, projection, rest = self._directions(curator, frame)
        cells, groups = self._start(curator, frame, projection)
        cells, synopsis = moved(curator, "cell", N_CELL_ROUNDS, cells, groups, projection)
        merged = _merged(cells, self._found(synopsis))
        centers, of_cells = (
            curator.domain.clip(_lifted(some.centers, frame, projection)) for some in (merged, cells)
        )
        placed = curator.domain.placed(centers)
        first = merged._replace(centers=placed, scales=np.sqrt(merged.scales**2 + rest))
        n_rounds = schedule(curator.domain).n_centre_rounds
        last, _ = moved(curator, "centre", n_rounds, first, Voronoi(placed), None)
        return _last(curator, last, cells._replace(centers=of_cells), frame)

    def _start(self, curator: Questions, frame: Frame, projection: FloatArray) -> tuple[Cells, Partition]:
        """Cells to begin with, and which rows belong to each."""
        points = self._points(curator.domain)
        if points is None:
            halves = halved(curator, frame, projection, self._n_cells, self._n_forced)
            return halves.cells, halves.tree
        centers = points @ projection.T
        m = len(centers)
        cells = Cells(
            centers, np.full(m, frame.rows / m), np.full(m, frame.reach), np.full(m, frame.reach), 0.0
        )
        return cells, Voronoi(centers)

    def _found(self, synopsis: CellSynopsis) -> FloatArray:
        """Centres of the clusters among the cells."""
        if self.n_clusters == "auto":
            return synopsis.separated()
        return merged_into(synopsis.centers, np.maximum(synopsis.sizes, 0.0), int(self.n_clusters))[0]

    def _points(self, domain: Domain) -> FloatArray | None:
        """The points of `init` in measured units, checked."""
        if self.init is None:
            return None
        points = np.array(self.init, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != domain.n_features or not np.isfinite(points).all():
            raise ParameterError(
                f"`init` must be finite points with {domain.n_features} columns, got shape {points.shape}"
            )
        if len(points) < self._n_forced or len(points) > MOST_POINTS:
            raise ParameterError(
                f"`init` must have from {self._n_forced} to {MOST_POINTS} points, got {len(points)}"
            )
        if self._private_bounds:
            raise ParameterError("`init` needs bounds that are known, got bounds='private'")
        return self.domain(domain.n_features).measure.of(points)

    def _directions(self, curator: Questions, frame: Frame) -> tuple[Frame, FloatArray, float]:
        """A frame with a better middle, directions along which rows vary, and the variance along all others.

        The variance is about the noisy middle, and as large as the noise allows.

        They are random if the plan does not pay for moments.
        """
        most, n_features = self._most_directions(curator.domain), curator.domain.n_features
        if not self._asks_moments(curator.domain):
            rest = (1 - most / n_features) * frame.reach**2
            return frame, orthonormal(most, n_features, DIRECTIONS_SEED), rest
        found = ask_components(curator, frame, most)
        n_clear = max(int((found.variances > found.noise).sum()), min(most, self._fewest))
        rest = max(found.trace - float(found.variances[:n_clear].sum()), 0.0) + 2 * found.trace_std
        rest += n_features * found.mean_std**2
        return frame._replace(middle=found.mean), found.directions[:n_clear], rest

    @property
    def _n_cells(self) -> int:
        return max(CELLS_PER_CLUSTER * n_starts(self.n_clusters), LEAST_CELLS)

    @property
    def _n_forced(self) -> int:
        """Number of cells that are made whatever the noise."""
        return 1 if self.n_clusters == "auto" else int(self.n_clusters)

    @property
    def _fewest(self) -> int:
        """Number of directions that are taken whatever the noise."""
        return math.ceil(math.log2(n_starts(self.n_clusters))) + 1

    def _most_directions(self, domain: Domain) -> int:
        most = MOST_DIRECTIONS if self.n_components == "auto" else int(self.n_components)
        if not self._asks_moments(domain):
            most = min(most, math.ceil(math.log2(n_starts(self.n_clusters))) + EXTRA_DIRECTIONS)
        return min(most, domain.n_features)

    def _asks_moments(self, domain: Domain) -> bool:
        """Whether moments are worth their price. Without a delta, their noise grows with the columns."""
        if self._budget().kind == "pure":
            return domain.n_features <= PURE_COLUMNS
        return domain.n_features <= MOMENT_COLUMNS


def _lifted(centers: FloatArray, frame: Frame, projection: FloatArray) -> FloatArray:
    """Points in all columns that project to `centers` and are closest to the middle."""
    return np.asarray(frame.middle + (centers - projection @ frame.middle) @ projection)


def _merged(cells: Cells, centers: FloatArray) -> Cells:
    """Cells merged into clusters around given centres, at no cost."""
    if len(centers) == len(cells.centers):
        return cells
    labels, k, weights = Voronoi(centers).index(cells.centers), len(centers), np.maximum(cells.sizes, 1.0)
    squares = cells.scales**2 + ((cells.centers - centers[labels]) ** 2).sum(axis=1)
    totals = np.bincount(labels, weights, k)
    means = np.bincount(labels, weights * squares, k) / np.maximum(totals, 1.0)
    scales = np.sqrt(np.where(totals > 0, means, np.average(squares, weights=weights)))
    sizes = np.bincount(labels, cells.noisy_sizes, k).astype(np.float64)
    return Cells(centers, sizes, scales, np.zeros(k), cells.size_std)


def _edges(domain: Domain) -> FloatArray:
    return SCALED_EDGES * domain.reach


def _last(curator: Questions, last: Cells, cells: Cells, frame: Frame) -> CentreModel:
    """The means in all columns of the rows nearest to each centre."""
    groups = Voronoi(last.centers)
    found = scaled_reach(curator, "last distances", groups, last, None)
    noise = curator.noise_of_sums("last means") * len(last.centers) / max(frame.rows, 1.0)
    model = last_round(curator, "last means", last.centers, found.reach, noise, last.scales)
    square, std = found.mean_square(last)
    gaps = ((cells.centers - last.centers[groups.index(cells.centers)]) ** 2).sum(axis=1)
    between = float(cells.sizes @ gaps) / max(float(cells.sizes.sum()), 1.0)
    return replace(model, cells=cells.synopsis(max(square - between, square / 10), std))
