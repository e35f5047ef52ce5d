"""The public space in which rows live: its bounds, its lattice and who is protected.

It holds numbers that the user states before the data is opened, and per-row maps (clipping, lattice) that
engines apply. Nothing here reads private rows by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domain.arrays import FloatArray, IntArray
from sfumato.domain.blocks import (
    Block,
    balls_around,
    check_blocks,
    least_radius,
    middle_of,
    moved_into,
    reach_of,
)
from sfumato.domain.clipping import (
    LATTICE_RADIUS,
    ball_lattice,
    box_lattice,
    clip_and_measure,
    clip_to_ball,
    clipped_to_box,
    copied_inside,
    find_finite,
    find_in_ball,
    find_in_box,
    repeated,
    take_inside,
)
from sfumato.domain.constraints import whole
from sfumato.domain.measure import AS_THEY_ARE, Measure
from sfumato.domain.sparse import Sparse
from sfumato.errors import ParameterError

Outside = Literal["clip", "drop"]
ALL_ROWS = 2**40  # more than anybody has
MOST_COLUMNS = 2**20  # for which the lattice is proved
_ON_THE_SPHERE = 1e-9  # relative: rows of a given length are inside the ball of this radius, however rounded
LARGEST_BOUND = 1e140  # sums of squared distances neither overflow nor vanish
NARROWEST = 1e-12  # width of a column, in units of its larger bound: thousands of numbers fit between

BOUNDS_HELP = (
    "Bounds are public knowledge, never read off the data: give bounds=(low, high) with one number for all "
    "columns or one per column, for example bounds=([0, 0], [100, 250]), or one pair per named column, for "
    "example bounds={'age': (0, 100), 'height': (0, 250)}"
)


@dataclass(frozen=True)
class Unit:
    """Who is protected: one row, or one person with all their rows up to a cap.

    Parameters
    ----------
    column : str, optional
        Column that identifies the person. ``None`` protects each row separately.
    max_rows : int
        Maximum number of rows used per person. Every sensitivity scales with it.
    """

    column: str | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise ParameterError(f"`unit` must be the name of a column, got {self.column!r}")
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int):
            raise ParameterError(f"`max_rows_per_unit` must be an integer >= 1, got {self.max_rows!r}")
        if not 1 <= self.max_rows <= ALL_ROWS:
            raise ParameterError(f"`max_rows_per_unit` must be from 1 to 2**40, got {self.max_rows}")
        if self.column is None and self.max_rows != 1:
            raise ParameterError(
                f"`max_rows_per_unit` is {self.max_rows} but `unit` is None: name the column that "
                "identifies a person, for example unit='person_id'"
            )

    @property
    def who(self) -> str:
        """Who is protected, whatever the cap: a person's guarantee covers all their rows."""
        return "one row" if self.column is None else f"one person (column {self.column!r})"

    def __str__(self) -> str:
        if self.column is None:
            return self.who
        if self.max_rows >= ALL_ROWS:
            return f"one person (column {self.column!r}, with all rows)"
        rows = "row" if self.max_rows == 1 else "rows"
        return f"one person (column {self.column!r}, at most {self.max_rows} {rows} each)"


@dataclass(frozen=True)
class Ball:
    """A public ball that contains every row, as an alternative to box bounds.

    Parameters
    ----------
    radius : float
    center : float or sequence of float
        One number for all columns, or one per column.
    """

    radius: float
    center: float | Sequence[float] = 0.0


@dataclass(frozen=True)
class Sphere:
    """Rows count by their direction alone: each is scaled to the length `radius` before anything else.

    Centres lie on the sphere, too, and a row belongs to the centre with the largest cosine: spherical
    k-means. A row of zeros has no direction and stays at the middle.

    Parameters
    ----------
    radius : float
    """

    radius: float = 1.0


@dataclass(frozen=True)
class Domain:
    """The public space in which rows live, with its fixed-point lattice.

    Coordinates are measured from the midpoint. One row then moves a sum by at most half the width of the box
    (or the radius of the ball), rather than by the norm of its far corner.

    Parameters
    ----------
    low, high : tuple of float
        The box. For a ball, its bounding box.
    radius : float, optional
        Rows are also projected into the ball of this radius around the midpoint.
    unit : Unit
    outside : {"clip", "drop"}
        Whether rows outside are moved to the nearest point inside, or left out.
    measure : Measure
        How columns are measured. All else here is in the user's units; `measured` has the rest.
    blocks : tuple of Block
        Coordinates that belong together, as those of a category.
    is_sphere : bool
        Whether rows are scaled to the length `radius`, instead of being moved into the ball.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    radius: float | None = None
    unit: Unit = field(default_factory=Unit)
    outside: Outside = "clip"
    measure: Measure = AS_THEY_ARE
    blocks: tuple[Block, ...] = ()
    is_sphere: bool = False

    @classmethod
    def from_bounds(
        cls, bounds: object, n_features: int, unit: Unit | None = None, outside: Outside = "clip"
    ) -> Domain:
        """Check the user's ``bounds`` and broadcast them to `n_features` columns.

        Sparse rows of `n_features` columns live in the ball of their sketch.
        """
        if isinstance(bounds, Sparse):
            n_features, bounds = bounds.width(n_features), Ball(bounds.radius)
        whole(MOST_COLUMNS)("n_features", n_features)
        unit = unit or Unit()
        if bounds is None:
            raise ParameterError(f"`bounds` must be given, got None. {BOUNDS_HELP}")
        if isinstance(bounds, Sphere):
            return replace(cls.from_bounds(Ball(bounds.radius), n_features, unit, outside), is_sphere=True)
        if isinstance(bounds, Ball):
            center = _one_per_column("center", bounds.center, n_features)
            radius = float(_one_per_column("radius", bounds.radius, 1)[0])
            if radius <= 0:
                raise ParameterError(f"`radius` must be positive, got {bounds.radius!r}")
            return cls(_plain(center - radius), _plain(center + radius), radius, unit, outside)
        if isinstance(bounds, str) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
            raise ParameterError(f"`bounds` must be a pair (low, high), got {bounds!r}. {BOUNDS_HELP}")
        _check_unambiguous(bounds, n_features)
        low = _one_per_column("low", bounds[0], n_features)
        high = _one_per_column("high", bounds[1], n_features)
        return cls(_plain(low), _plain(high), None, unit, outside)

    def __post_init__(self) -> None:
        low, high = np.array(self.low), np.array(self.high)
        if low.shape != high.shape:
            raise ParameterError(f"`bounds` must have as many lows as highs, got {self.low}, {self.high}")
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ParameterError(f"`bounds` must be finite, got low={self.low}, high={self.high}")
        if (low >= high).any():
            raise ParameterError(
                f"`bounds` must have low < high in every column, got {self.low}, {self.high}"
            )
        too_large = max(np.abs(low).max(), np.abs(high).max()) > LARGEST_BOUND
        if too_large or self.half_width.min() < 1 / LARGEST_BOUND:
            raise ParameterError(
                f"`bounds` must be at most {LARGEST_BOUND:g} in size and at least {2 / LARGEST_BOUND:g} "
                f"apart, got {self.low}, {self.high}. Rescale the columns"
            )
        if (self.half_width < NARROWEST / 2 * np.maximum(np.abs(low), np.abs(high))).any():
            raise ParameterError(
                f"`bounds` must be at least {NARROWEST:g} times their size apart, got {self.low}, "
                f"{self.high}. Subtract a public number from the column, for example its low bound"
            )
        if self.is_sphere and self.radius is None:
            raise ParameterError("a sphere must have a radius, got None")
        if self.measure and len(self.measure.step) != len(low):
            raise ParameterError(f"a measure must have {len(low)} steps, got {len(self.measure.step)}")
        check_blocks(self.blocks, low, high)

    @cached_property
    def measured(self) -> Domain:
        """The same space in measured units: what questions, plans and models work in."""
        if not self.measure:
            return self
        low, high = (_plain(self.measure.of(np.array(limit))) for limit in (self.low, self.high))
        return replace(self, low=low, high=high, measure=AS_THEY_ARE)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.low)

    @property
    def midpoint(self) -> FloatArray:
        """Middle of the box, the origin of the lattice."""
        return np.array(self.low) / 2 + np.array(self.high) / 2

    @property
    def half_width(self) -> FloatArray:
        """Half the width of each column."""
        return np.array(self.high) / 2 - np.array(self.low) / 2

    @property
    def middle(self) -> FloatArray:
        """A point from which no row is farther than `reach`: the midpoint, and the middle of each simplex."""
        return middle_of(self.blocks, self.midpoint, np.array(self.high))

    @property
    def reach(self) -> float:
        """Radius of a ball around the middle that contains the domain."""
        if self.blocks:
            return max(reach_of(self.blocks, self.half_width), self.least_radius)  # one level alone has none
        return float(np.linalg.norm(self.half_width)) if self.radius is None else self.radius

    @property
    def lattice_step(self) -> FloatArray:
        """Width of one lattice unit per column: the half-width is exactly 2^29 units.

        In a box each column has its own step, so its noise is proportional to its width. In a ball all
        columns share one step.
        """
        half_width = self.half_width if self.radius is None else np.full(self.n_features, self.radius)
        return half_width / LATTICE_RADIUS

    def admits(self, rows: ArrayLike) -> NDArray[np.bool_]:
        """Whether each row is used: its coordinates are finite and, with outside="drop", inside."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        used = np.empty(len(rows), dtype=np.bool_)
        if self.outside == "clip" or self.is_sphere:
            find_finite(rows, used)
        elif self.radius is None:
            find_in_box(rows, np.array(self.low), np.array(self.high), used)
        else:
            find_in_ball(rows, self.midpoint, self.radius * (1 + _ON_THE_SPHERE), used)
        return used

    def admitted(self, rows: ArrayLike) -> FloatArray:
        """The rows that aggregates see: those that are used, clipped and measured. None has NaN, ever.

        Values after the coordinates, of columns that are only described, pass as they are.
        """
        rows = np.asarray(rows)
        if rows.shape[1] > self.n_features:
            coordinates, described = rows[:, : self.n_features], rows[:, self.n_features :]
            return np.hstack([self.admitted(coordinates), described[self.admits(coordinates)]])
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        if self.outside == "clip":
            out = np.empty_like(rows)
            if not self._clip_in_one_pass(rows, out):
                out = out[(np.isfinite(rows) & np.isfinite(out)).all(axis=1)]
            return out
        if self.radius is None:
            return self.measure.of(self._inside_box(rows))
        used = self.admits(rows)
        rows = rows if used.all() else rows[used]
        return self.measure.of(self._clip_rows(rows, onto_sphere=self.is_sphere))

    def clip(self, points: ArrayLike) -> FloatArray:
        """Move points into the domain: to the nearest ones of a box and its blocks, or of a ball."""
        return self.settled(self._clip_rows(points))

    def placed(self, centers: FloatArray) -> FloatArray:
        """Centres of clusters: as they are, but on a sphere, those in the same directions on it."""
        return self._clip_rows(centers, onto_sphere=True) if self.is_sphere else centers

    def balls(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Middles of boxes of shape (n, d), and radii around them that hold all rows that may be inside."""
        return balls_around(self.blocks, low, high, np.array(self.high))

    def settled(self, points: FloatArray) -> FloatArray:
        """Points of the box with the coordinates of each block moved to what a mean of rows may have."""
        return moved_into(self.blocks, points, np.array(self.high))

    @property
    def least_radius(self) -> float:
        """Least radius of sums of displacements; more than 0 with categories."""
        return least_radius(self.blocks, np.array(self.high))

    def _clip_in_one_pass(self, rows: FloatArray, out: FloatArray) -> bool:
        """Clip and measure rows. Returns whether all are finite."""
        if self.radius is not None:
            are_finite = bool(clip_to_ball(rows, self.midpoint, self.lattice_step, self.is_sphere, out))
            if self.measure:
                out[:] = self.measure.of(out)
            return are_finite
        if not self.measure:
            return clipped_to_box(rows, self.low, self.high, out)
        limits = (self.low, self.high, self.measure.origin, self.measure.step)
        low, high, origin, step = repeated(*limits)
        return bool(clip_and_measure(rows.reshape(-1), low, high, origin, step, out.reshape(-1)))

    def _inside_box(self, rows: FloatArray) -> FloatArray:
        """Rows inside the box, in their order. One pass if all are."""
        out = np.empty_like(rows)
        low, high = repeated(self.low, self.high)
        if copied_inside(rows.reshape(-1), low, high, out.reshape(-1)):
            return out
        return out[: take_inside(rows, np.array(self.low), np.array(self.high), out)]

    def _clip_rows(self, rows: ArrayLike, *, onto_sphere: bool = False) -> FloatArray:
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        out = np.empty_like(rows)
        if self.radius is None:
            clipped_to_box(rows, self.low, self.high, out)
        else:
            clip_to_ball(rows, self.midpoint, self.lattice_step, onto_sphere, out)
        return out

    def to_lattice(self, rows: ArrayLike) -> IntArray:
        """Clip rows and round them to the lattice.

        Every result satisfies, in exact integers, ``|u_j| <= 2^29`` (box) or ``||u||_2 <= 2^29`` (ball).

        Notes
        -----
        Box: coordinates are rounded to the nearest unit, and the integer is clamped. Ball: the row is shrunk
        to norm 2^29 - 1 in floating point, with a relative error below ``(d + 8) 2^-52``, and truncated
        towards zero, which never increases a norm. The spare unit exceeds the error for d up to 2^20. Proof:
        docs/proofs/lattice.md.
        """
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        out = np.empty(rows.shape, dtype=np.int64)
        kernel = box_lattice if self.radius is None else ball_lattice
        kernel(rows, self.midpoint, self.lattice_step, out)
        return out

    def from_lattice(self, units: ArrayLike) -> FloatArray:
        """Coordinates of lattice points (or of sums divided by counts)."""
        return self.midpoint + np.asarray(units, dtype=np.float64) * self.lattice_step


def _check_unambiguous(bounds: Sequence[object] | NDArray[Any], n_features: int) -> None:
    """Raise if `bounds` of two columns may be the low and the high bounds, or a pair for each column.

    A tuple of two lists or arrays is a low and a high, as documented. Other nestings are common for a list of
    pairs. They are refused unless one of these pairs would have low >= high.
    """
    is_documented = isinstance(bounds, tuple) and not all(isinstance(part, tuple) for part in bounds)
    if is_documented or n_features != 2 or not isinstance(bounds, tuple | list | np.ndarray):
        return
    table = np.empty((0, 0))
    with suppress(TypeError, ValueError, OverflowError):  # refused later, by name
        table = np.asarray(bounds, dtype=np.float64)
    if table.shape == (2, 2) and (table[:, 0] < table[:, 1]).all():
        as_limits, as_columns = (tuple(part.tolist()) for part in (table, table.T))
        raise ParameterError(
            f"`bounds` of two columns must be a tuple of two lists, got {bounds!r}. If the first part holds "
            f"the low bounds, write bounds={as_limits}. If it holds the bounds of the first column, write "
            f"bounds={as_columns}"
        )


def _one_per_column(name: str, value: object, n_features: int) -> FloatArray:
    try:
        if np.asarray(value).dtype.kind in "mM":
            raise TypeError  # NumPy would count in some unit
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"`{name}` must be a number or one per column, got {value!r}. Dates need the name of their "
            "column: bounds={'day': (date(2026, 1, 1), date(2027, 1, 1))}"
        ) from None
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_features):
        raise ParameterError(f"`{name}` must be one number or {n_features} numbers, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ParameterError(f"`{name}` must be finite, got {value!r}")
    return np.array(np.broadcast_to(array, (n_features,)))


def _plain(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
