"""Counts, sums and second moments of clipped displacements per group, to fit a Gaussian mixture."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, Generic, TypeVar, get_args

import numba
import numpy as np

from sfumato.budget.records import Sensitivity
from sfumato.domain import LATTICE_RADIUS, FloatArray, IntArray, check_shape
from sfumato.domain.few_blocks import quickest
from sfumato.domain.partitions import GaussianCells, MomentShape, Partition
from sfumato.errors import ParameterError
from sfumato.private.aggregates.base import Grouped, check_columns
from sfumato.private.aggregates.displacements import add_at, clipped_units
from sfumato.private.aggregates.limbs import LimbSums, carried
from sfumato.private.aggregates.products import PRODUCT_WEIGHT, SQUARE_WEIGHT, add_products
from sfumato.private.aggregates.sums import COUNT_WEIGHT, add_displacements

SHAPES: tuple[MomentShape, ...] = get_args(MomentShape)
P = TypeVar("P", bound=Partition)

LEAST_MOMENT_RADIUS, LARGEST_MOMENT_RADIUS = 1e-145, 1e145  # sums of squares neither vanish nor overflow
SMALLEST_SHARE = 2.0**-29  # every entry of a row is below 2^29, so that less of it truncates to zero
SHARED_VALUES = 2**20  # responsibilities that are held at a time
WIDE = 8  # columns from which on the second moments of one group are taken by exact matrix products


@dataclass(frozen=True, eq=False)
class _Moments(LimbSums, Generic[P]):
    """What hard and soft moments have in common: origins, lattice and layout."""

    partition: P
    origins: FloatArray
    radii: FloatArray
    shape: MomentShape
    second_weight: ClassVar[float] = 1.0  # by which the noise in products of two columns is divided

    def __post_init__(self) -> None:
        check_shape("origins", self.origins, self.partition.n_cells, self.origins.shape[-1])
        check_shape("radii", self.radii, self.partition.n_cells)
        if not np.isfinite(self.origins).all():
            raise ParameterError("`origins` must be finite, got NaN or infinity")
        if not ((self.radii >= LEAST_MOMENT_RADIUS) & (self.radii <= LARGEST_MOMENT_RADIUS)).all():
            raise ParameterError(
                f"`radii` must be from {LEAST_MOMENT_RADIUS:g} to {LARGEST_MOMENT_RADIUS:g}, got "
                f"{self.radii.min():g} to {self.radii.max():g}. Rescale the columns"
            )
        n_moments(self.n_features, self.shape)

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Sensitivity for one row."""

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return int(self.origins.shape[1])

    def zero(self) -> IntArray:
        n_entries = 2 + self.n_features + n_moments(self.n_features, self.shape)
        return np.zeros((2, len(self.origins), n_entries), dtype=np.int64)

    def unpack(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Sizes, clipped sizes, sums of displacements and sums of their products, in the units of the data.

        Depending on `shape`, products are symmetric matrices, diagonals or squared norms.
        """
        d = self.n_features
        sizes, clipped = values[:, 0] / COUNT_WEIGHT, values[:, 1] / COUNT_WEIGHT
        sums = values[:, 2 : 2 + d] * (self.radii / LATTICE_RADIUS)[:, None]
        seconds: FloatArray = values[:, 2 + d :] * (self.radii**2 / LATTICE_RADIUS)[:, None]
        if self.shape == "spherical":
            seconds = seconds[:, 0]
        elif self.shape == "full":
            place = np.empty((d, d), dtype=np.int64)
            upper = np.triu_indices(d)
            place[upper] = place.T[upper] = np.arange(len(upper[0]))
            seconds = seconds[:, place]
        return sizes, clipped, sums, seconds

    def _add(self, state: IntArray, rows: FloatArray, first: IntArray, shares: FloatArray) -> None:
        kind = SHAPES.index(self.shape)
        _add_moments(rows, first, shares, self.origins, self.radii / LATTICE_RADIUS, kind, state[0])
        carried(state)


class GroupedMoments(_Moments[Partition], Grouped):
    """Per group: counts of rows and of those beyond a public radius, sum and second moments of displacements.

    Displacements are measured from a public origin and clipped to the radius: u = displacement / radius has
    norm at most 1. Column 0 counts rows and column 1 clipped rows, both in units of 2^27. The other columns
    hold, in units of 2^-29, the sum of u and its second moments: the products u_i u_j with i <= j row by row
    ("full"), the squares u_j^2 ("diag"), or the squared norm of u ("spherical").

    Privacy
    -------
    A row's group depends only on that row, so adding or removing one row changes the entries of one group
    only: by w = 2^27 in the count, by 0 or w in the count of clipped rows, by a vector of norm at most R =
    2^29 in the sum, and by one of norm at most R in the moments, since the sum of (u_i u_j)^2 over i <= j is
    at most ||u||^4. Hence L2^2 <= 2 w^2 + 2 R^2 and L1 <= 2 w + sqrt(d) R + c R, with c = (d + 1) / 2 for
    "full" and 1 otherwise, in exact integers. Moments are not centred, because the mean of the rows is not
    public. Origins and radii must be public. Proof: docs/proofs/moments.md.

    Parameters
    ----------
    partition : Partition
    origins : float array of shape (n_groups, d)
    radii : float array of shape (n_groups,)
        From 1e-145 to 1e145.
    shape : {"full", "diag", "spherical"}
    """

    @staticmethod
    def sensitivity_in(n_features: int, shape: MomentShape) -> Sensitivity:
        """Sensitivity for one row of `n_features` columns, for a plan to declare in advance."""
        moments = LATTICE_RADIUS * (n_features + 1) // 2 if shape == "full" else LATTICE_RADIUS
        return Sensitivity(
            l1=2 * COUNT_WEIGHT + math.isqrt(n_features * LATTICE_RADIUS**2) + moments,
            l2_squared=2 * COUNT_WEIGHT**2 + 2 * LATTICE_RADIUS**2,
            spread=2 * LATTICE_RADIUS,
            coordinates=2 + n_features + n_moments(n_features, shape),
        )

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(self.n_features, self.shape)

    def add_to_groups(self, state: IntArray, rows: FloatArray, groups: IntArray) -> IntArray:
        """Add the rows of a block to the moments of their groups."""
        quickest(_hard_with_kernel, _hard_with_numpy)(
            rows, groups, self.origins, self.radii / LATTICE_RADIUS, SHAPES.index(self.shape), state[0]
        )
        return carried(state)


class WideMoments(_Moments[Partition]):
    """The moments of `GroupedMoments` with the shape "full", of one group in many columns.

    Counts and sums are the same integers. Products u_i u_j are those of u clipped to a norm just below 1 and
    rounded to the nearest multiple of 2^-13, so that matrix products add them up exactly. Products of two
    columns weigh 11 / 8 times as much as squares: for the same price, their noise is that much smaller.

    Privacy
    -------
    In units of 2^-13, u is an integer vector U with ||U||_2 <= 2^13. The entries are 8 U_i^2 and 11 U_i U_j
    with i < j, in units of 2^-29. Since 11^2 < 2 * 8^2, the sum of their squares is at most 64 ||U||^4 <= R^2
    with R = 2^29. The sum of |U_i U_j| over i < j is at most (d - 1) / 2 ||U||^2, so the sum of their sizes
    is at most (1 + 11 (d - 1) / 16) R. Counts and sums add what they add in `GroupedMoments`. Floats add the
    products up exactly, as integers below 2^53. The origin and the radius must be public. Proof:
    docs/proofs/moments.md.

    Parameters
    ----------
    partition : Partition
        With one group.
    origins : float array of shape (1, d)
    radii : float array of shape (1,)
        From 1e-145 to 1e145.
    shape : {"full"}
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape != "full" or len(self.origins) != 1:
            raise ParameterError(f"`shape` must be 'full' for one group, got {self.shape!r}")

    second_weight = PRODUCT_WEIGHT / SQUARE_WEIGHT

    @staticmethod
    def sensitivity_in(n_features: int) -> Sensitivity:
        """Sensitivity for one row of `n_features` columns, for a plan to declare in advance."""
        grouped = GroupedMoments.sensitivity_in(n_features, "full")
        of_sums = 2 * COUNT_WEIGHT + math.isqrt(n_features * LATTICE_RADIUS**2)
        n_sixteenths = 2 * SQUARE_WEIGHT + PRODUCT_WEIGHT * (n_features - 1)
        return replace(grouped, l1=of_sums + LATTICE_RADIUS * n_sixteenths // (2 * SQUARE_WEIGHT))

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(self.n_features)

    def unpack(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """As `GroupedMoments` does, with products of two columns divided by their weight."""
        sizes, clipped, sums, seconds = super().unpack(values)
        weights = np.full(seconds.shape[1:], self.second_weight)
        np.fill_diagonal(weights, 1.0)
        return sizes, clipped, sums, seconds / weights

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add the rows of a block to the moments of the group."""
        check_columns(rows, self.n_features)
        groups, n_first = self.partition.index(rows), 2 + self.n_features
        firsts = np.zeros((1, n_first), dtype=np.int64)
        add_displacements(rows, groups, self.origins, self.radii / LATTICE_RADIUS, firsts, COUNT_WEIGHT)
        state[0, :, :n_first] += firsts
        add_products(state[0, 0, n_first:], rows, groups, self.origins[0], float(self.radii[0]))
        return carried(state)


class SoftMoments(_Moments[GaussianCells]):
    """The moments of `GroupedMoments`, with each row shared among all components of a public mixture.

    A row adds to component c what it would add to group c, times the component's responsibility for the row.

    Privacy
    -------
    The responsibilities g_c of a row depend only on that row and sum to at most 1. If the row would add a
    vector of norm at most B to one group, then its whole contribution has squared norm at most sum of g_c^2
    B^2 <= (sum of g_c)^2 B^2 <= B^2. The same holds for L1. Sharing a row thus costs no more than assigning
    it, over k times as many entries. Entries are truncated towards zero. The mixture, origins and radii must
    be public. Proof: docs/proofs/moments.md.

    Parameters
    ----------
    partition : GaussianCells
    origins : float array of shape (k, d)
    radii : float array of shape (k,)
        From 1e-145 to 1e145.
    shape : {"full", "diag", "spherical"}
    """

    @staticmethod
    def sensitivity_in(n_features: int, shape: MomentShape, n_components: int) -> Sensitivity:
        """Sensitivity for one row of `n_features` columns, for a plan to declare in advance."""
        hard = GroupedMoments.sensitivity_in(n_features, shape)
        return Sensitivity(hard.l1, hard.l2_squared, hard.spread, n_components * hard.coordinates)

    @property
    def sensitivity(self) -> Sensitivity:
        return self.sensitivity_in(self.n_features, self.shape, len(self.origins))

    def add(self, state: IntArray, rows: FloatArray) -> IntArray:
        """Add the rows of a block to the moments of all components."""
        check_columns(rows, self.n_features)
        stride = max(1, SHARED_VALUES // len(self.origins))
        for start in range(0, len(rows), stride):
            part = rows[start : start + stride]
            self._add(state, part, np.zeros(len(part), dtype=np.int64), self.partition.responsibilities(part))
        return state


def is_wide(n_features: int, shape: MomentShape, n_groups: int) -> bool:
    """Whether hard moments are taken by `WideMoments`: a plan declares what the curator asks."""
    return shape == "full" and n_groups == 1 and n_features >= WIDE


def n_moments(n_features: int, shape: MomentShape) -> int:
    """Number of second moments kept per group."""
    counts = {"full": n_features * (n_features + 1) // 2, "diag": n_features, "spherical": 1}
    if shape not in counts:
        raise ParameterError(f"`shape` must be one of {', '.join(counts)}, got {shape!r}")
    return counts[shape]


def _hard_with_kernel(
    rows: FloatArray, groups: IntArray, origins: FloatArray, steps: FloatArray, kind: int, state: IntArray
) -> None:
    _add_moments(rows, groups, np.ones((len(rows), 1)), origins, steps, kind, state)


def _hard_with_numpy(
    rows: FloatArray, groups: IntArray, origins: FloatArray, steps: FloatArray, kind: int, state: IntArray
) -> None:
    units, is_clipped = clipped_units(rows, groups, origins, steps)
    add_at(state[:, 0], groups, COUNT_WEIGHT)
    add_at(state[:, 1], groups, COUNT_WEIGHT * is_clipped)
    scaled, d = units * (1.0 / LATTICE_RADIUS), len(units)
    pairs = zip(*np.triu_indices(d), strict=True) if kind == 0 else ((j, j) for j in range(d))
    seconds: Iterator[FloatArray] = (scaled[i] * units[j] for i, j in pairs)
    if kind == 2:
        seconds = iter([sum(seconds, np.zeros(len(rows)))])
    for sums, values in zip(state.T[2:], chain(units, seconds), strict=True):
        add_at(sums, groups, values.astype(np.int64))


@numba.njit(cache=True, nogil=True)
def _add_moments(
    rows: FloatArray,
    first: IntArray,
    shares: FloatArray,
    origins: FloatArray,
    steps: FloatArray,
    kind: int,
    state: IntArray,
) -> None:
    """Add share m of row i to group first[i] + m. A hard assignment has one share, a soft one has all."""
    values = np.empty(state.shape[1])
    for i in range(rows.shape[0]):
        for m in range(shares.shape[1]):
            group, share = first[i] + m, shares[i, m]
            if group < 0 or share < SMALLEST_SHARE:
                continue
            _fill_values(rows[i], origins[group], 1.0 / steps[group], kind, values)
            for e in range(values.shape[0]):
                state[group, e] += np.int64(share * values[e])


@numba.njit(cache=True, nogil=True)
def _fill_values(
    row: FloatArray, origin: FloatArray, inverse_step: float, kind: int, values: FloatArray
) -> None:
    # As for sums of displacements: shrink to one unit below the limit, so that the later truncation towards
    # zero stays within it. The spare unit also covers the rounding of the products.
    limit, largest, unit = float(LATTICE_RADIUS - 1), 2.0**400, 1.0 / LATTICE_RADIUS
    d = row.shape[0]
    squares = 0.0
    for j in range(d):
        value = min(max((row[j] - origin[j]) * inverse_step, -largest), largest)
        values[2 + j] = value
        squares += value * value
    norm = math.sqrt(squares)
    values[0] = float(COUNT_WEIGHT)
    values[1] = float(COUNT_WEIGHT) if norm > limit else 0.0
    shrink = limit / norm if norm > limit else 1.0
    for j in range(d):
        values[2 + j] *= shrink
    entry = 2 + d
    if kind == 0:
        for i in range(d):
            scaled = values[2 + i] * unit
            for j in range(i, d):
                values[entry] = scaled * values[2 + j]
                entry += 1
    elif kind == 1:
        for j in range(d):
            values[entry + j] = values[2 + j] * unit * values[2 + j]
    else:
        values[entry] = 0.0
        for j in range(d):
            values[entry] += values[2 + j] * unit * values[2 + j]
