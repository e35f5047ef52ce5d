"""Sparse rows: the public declaration, and the public sketch that turns a row into coordinates.

A row has few active columns out of many. It is cut to a declared number of them, scaled, and mapped to a few
hundred coordinates by a sparse matrix of signs that a public hash gives. Each of these steps looks at one row
alone. Proof: docs/proofs/sparse.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numba
import numpy as np

from sfumato.domain.arrays import FloatArray
from sfumato.domain.constraints import Constraint, between, none_or, one_of, positive, whole
from sfumato.errors import ParameterError

MOST_ACTIVE = 2**16
FEWEST_COMPONENTS, MOST_COMPONENTS = 16, 2**13
MOST_SPARSE_COLUMNS = 2**31 - 1
LARGEST_NORM = 1e70  # squares are still numbers that a release may hold
N_COPIES = 4  # entries of a column in the sketch: two columns hardly ever share all of them

_seed = Constraint("an integer from 0 to 2**32 - 1", lambda value: _is_seed(value))


@dataclass(frozen=True)
class Sparse:
    """Bounds of sparse rows: how many active columns a row may have, and how it is scaled and sketched.

    Give it as the `bounds` of an estimator. ``X`` is then a SciPy CSR array, or a table with lists.

    Parameters
    ----------
    max_active : int
        Maximum number of active columns per row. Of longer rows the largest values are kept. Ties go by a
        public order of the columns, which a hash of their numbers gives.
    n_components : int
        Number of coordinates that the columns are mapped to, from 16 to 8192. More keep rows further apart,
        and take more time and noise. A table with no more columns than that is not sketched.
    norm : "unit" or float
        "unit" scales each row to length 1, for cosine distances; rows without active columns stay zero. A
        number shortens longer rows to this length.
    n_columns : int, optional
        Number of columns of a table with lists. Arrays tell it.
    lists : str or (str, str), optional
        Name of the column of a table that lists each row's active columns, numbered from 0, or pairs of
        column and value. Or the names of two columns: the active columns and their values.
    feature_names : sequence of str, optional
        Names of the columns, for the terms of each cluster. They must be public.
    seed : int
        Public seed of the sketch and of the order of ties. It is unrelated to the noise.

    Privacy
    -------
    All parts are public declarations. A row's coordinates depend on that row and on these parts alone.
    Proof: docs/proofs/sparse.md.

    Examples
    --------
    >>> Sparse(max_active=128).width(75_688)
    512
    """

    max_active: int = 128
    n_components: int = 512
    norm: Literal["unit"] | float = "unit"
    n_columns: int | None = None
    lists: str | tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        whole(MOST_ACTIVE)("max_active", self.max_active)
        between(FEWEST_COMPONENTS, MOST_COMPONENTS)("n_components", self.n_components)
        whole(MOST_COMPONENTS)("n_components", self.n_components)
        if not one_of("unit").allows(self.norm):
            positive(1 / LARGEST_NORM, LARGEST_NORM)("norm", self.norm)
        none_or(whole(MOST_SPARSE_COLUMNS))("n_columns", self.n_columns)
        _seed("seed", self.seed)
        if not isinstance(self.lists, str | None):
            object.__setattr__(self, "lists", _texts("lists", self.lists, 2))
        if self.feature_names is not None:
            object.__setattr__(
                self, "feature_names", _texts("feature_names", self.feature_names, self.n_columns)
            )

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in ("max_active", "n_components", "norm")}
        others = {name: getattr(self, name) for name in ("n_columns", "lists")}
        given |= {name: value for name, value in others.items() if value is not None}
        return f"Sparse({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def radius(self) -> float:
        """Radius of the ball that contains every row."""
        return 1.0 if self.norm == "unit" else float(self.norm)

    @property
    def list_names(self) -> tuple[str, ...]:
        """Names of the columns with lists."""
        return (self.lists,) if isinstance(self.lists, str) else tuple(self.lists or ())

    def width(self, n_columns: int) -> int:
        """Number of coordinates of a row of `n_columns` columns."""
        return min(int(self.n_components), n_columns)

    def of_columns(self, n_columns: int | None) -> Sparse:
        """The same declaration for a table with this number of columns, or with those that are declared."""
        declared = self.n_columns or (len(self.feature_names) if self.feature_names is not None else None)
        found = n_columns or declared
        if found is None:
            raise ParameterError(
                "`n_columns` of `Sparse` must be the number of columns of a table with lists, got None: it "
                "is public knowledge, for example the length of the vocabulary"
            )
        if declared is not None and declared != found:
            raise ParameterError(f"`X` must have the {declared} columns that `Sparse` declares, got {found}")
        whole(MOST_SPARSE_COLUMNS)("n_columns", found)
        return replace(self, n_columns=found)

    @property
    def n_kept(self) -> int:
        """Most active columns that a row of the table can have."""
        assert self.n_columns is not None
        return min(int(self.max_active), self.n_columns)

    def coordinates(self, active: FloatArray) -> FloatArray:
        """Coordinates of rows, from their active columns and values.

        Parameters
        ----------
        active : float array of shape (n, 2 * n_kept)
            For each row its active columns, increasing, and then -1; and their values. A row whose first
            value is NaN is incomplete and has NaN as coordinates.
        """
        assert self.n_columns is not None
        out = np.zeros((len(active), self.width(self.n_columns)))
        is_sketched = self.n_columns > self.n_components
        _fill_coordinates(active, self.n_kept, is_sketched, int(self.seed), self.radius, out)
        return out


def _texts(name: str, values: object, length: int | None) -> tuple[str, ...]:
    """A tuple of texts, checked."""
    found = tuple(values) if isinstance(values, Sequence | np.ndarray) else ()
    if not found or not all(isinstance(text, str) for text in found) or len(found) != (length or len(found)):
        which = f"{length} texts" if length else "texts"
        raise ParameterError(f"`{name}` must be {which}, got others")
    return tuple(str(text) for text in found)


def _is_seed(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) < 2**32


@numba.njit(cache=True, nogil=True)
def hashed(column: int, seed: int) -> np.uint64:
    """Public hash of a column: splitmix64 (Steele, Lea and Flood 2014), one to one for a seed."""
    state = np.uint64(column) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def _fill_coordinates(
    active: FloatArray, n_kept: int, is_sketched: bool, seed: int, radius: float, out: FloatArray
) -> None:
    # Sums run over the active columns of one row in their order, whichever block it arrives in.
    width = out.shape[1]
    weight, inverse = 1.0 / math.sqrt(float(N_COPIES)), 1.0 / radius
    for i in range(active.shape[0]):
        if not math.isfinite(active[i, n_kept]):
            out[i, :] = np.nan
            continue
        for a in range(n_kept):
            column = int(active[i, a])
            if column < 0:
                break
            value = active[i, n_kept + a]
            if not is_sketched:
                out[i, column] = value
                continue
            bits = hashed(column, seed)
            for copy in range(N_COPIES):
                first = width * copy // N_COPIES
                size = width * (copy + 1) // N_COPIES - first
                place = first + ((int(bits & np.uint64(0xFFFF)) >> 1) * size >> 15)
                out[i, place] += value * weight if bits & np.uint64(1) else -value * weight
                bits = bits >> np.uint64(16)
        squares = 0.0
        for j in range(width):
            squares += (out[i, j] * inverse) ** 2
        if squares > 1.0:  # the sketch keeps lengths on average only
            shrink = 1.0 / math.sqrt(squares)
            for j in range(width):
                out[i, j] *= shrink
