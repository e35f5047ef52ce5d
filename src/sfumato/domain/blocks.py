"""Blocks: coordinates that belong together, because they tell one column.

The coordinates of a category are a point of a simplex, those of a cycle a point of a disc. A row is a corner
of the simplex, or a point on the circle; a mean of rows is anywhere within.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.domain.arrays import FloatArray
from sfumato.errors import ParameterError

# How far a point of a simplex may be off, and the least radius of a sum around it, in units of its corners.
# Their ratio is 2^-30, so what is off is less than one unit of a lattice of 2^29 units per radius.
SIMPLEX_SLACK = 2.0**-40
LEAST_OF_CORNER = 2.0**-10


@dataclass(frozen=True)
class Block:
    """Consecutive coordinates of a domain that tell one column.

    Parameters
    ----------
    kind : {"simplex", "disc"}
        "simplex": coordinates are at least 0, and their sum is the high bound that all of them share. "disc":
        two coordinates within the circle that touches their bounds.
    start, stop : int
        Its coordinates are those from `start` to before `stop`.
    """

    kind: Literal["simplex", "disc"]
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.stop - self.start

    @property
    def squared_l1(self) -> int:
        """Bound on the squared ratio of the L1 norm to the L2 norm of a row's displacement in the block.

        Notes
        -----
        A row of a category with corners of length a is a e_l. Its displacement from a point p of the simplex
        has the L1 norm (a - p_l) + sum of the other p_i = 2 (a - p_l), and an L2 norm of at least a - p_l.
        The ratio is at most 2, for any number of levels; by Cauchy-Schwarz also at most the root of the
        number of coordinates. Proof: docs/proofs/categories.md.
        """
        return min(self.size, 4) if self.kind == "simplex" else self.size


def check_blocks(blocks: tuple[Block, ...], low: FloatArray, high: FloatArray) -> None:
    """Raise if blocks overlap, or do not fit the bounds of their coordinates."""
    ends = [0, *(end for block in blocks for end in (block.start, block.stop)), len(low)]
    fits = ends == sorted(ends) and all(
        block.size >= (1 if block.kind == "simplex" else 2) for block in blocks
    )
    for block in blocks if fits else ():
        own = slice(block.start, block.stop)
        corner = -high[block.start] if block.kind == "disc" else 0.0
        fits &= bool((low[own] == corner).all() and (high[own] == high[block.start]).all())
        fits &= block.kind == "simplex" or block.size == 2
    if not fits:
        raise ParameterError(f"`blocks` must be apart and fit their bounds, got {blocks}")


def middle_of(blocks: tuple[Block, ...], midpoint: FloatArray, high: FloatArray) -> FloatArray:
    """The middle of a domain: of its box, and of each simplex the point with equal coordinates."""
    middle = midpoint.copy()
    for block in blocks:
        if block.kind == "simplex":
            middle[block.start : block.stop] = high[block.start] / block.size
    return middle


def reach_of(blocks: tuple[Block, ...], half_width: FloatArray) -> float:
    """Largest distance of a point of the domain from its middle."""
    squares = half_width**2
    for block in blocks:
        own, half = slice(block.start, block.stop), half_width[block.start]
        squares[own] = 0.0
        squares[block.start] = half**2 if block.kind == "disc" else (2 * half) ** 2 * (1 - 1 / block.size)
    return math.sqrt(float(squares.sum()))


def moved_into(blocks: tuple[Block, ...], points: FloatArray, high: FloatArray) -> FloatArray:
    """Points with the coordinates of each block moved to the nearest ones that a mean of rows may have."""
    if not blocks:
        return points
    points = points.copy()
    for block in blocks:
        own, most = points[:, block.start : block.stop], float(high[block.start])
        if block.kind == "simplex":
            own[:] = nearest_in_simplex(own, most)
        else:
            own /= np.maximum(np.linalg.norm(own, axis=1, keepdims=True) / most, 1.0)
    return points


def nearest_in_simplex(points: FloatArray, total: float) -> FloatArray:
    """Nearest non-negative points whose coordinates have the given positive sum (Duchi et al. 2008)."""
    ordered = -np.sort(-points, axis=1)
    excess = (np.cumsum(ordered, axis=1) - total) / np.arange(1, points.shape[1] + 1)
    n_kept = (ordered > excess).sum(axis=1)
    thresholds = np.take_along_axis(excess, np.maximum(n_kept, 1)[:, None] - 1, axis=1)
    found: FloatArray = np.maximum(points - thresholds, 0.0)
    return found


def lies_within(blocks: tuple[Block, ...], points: FloatArray, high: FloatArray) -> bool:
    """Whether the coordinates of each category are at least 0 and have the right sum, up to rounding."""
    for block in blocks:
        if block.kind == "simplex":
            own, corner = points[:, block.start : block.stop], float(high[block.start])
            off = np.abs(own.sum(axis=1) - corner) - 2 * np.minimum(own, 0.0).sum(axis=1)
            if (off > SIMPLEX_SLACK * corner).any():
                return False
    return True


def least_radius(blocks: tuple[Block, ...], high: FloatArray) -> float:
    """Least radius of a sum for which the rounding of its origin is covered."""
    corners = [float(high[block.start]) for block in blocks if block.kind == "simplex"]
    return LEAST_OF_CORNER * max(corners, default=0.0)


def balls_around(
    blocks: tuple[Block, ...], low: FloatArray, high: FloatArray, corners: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Middles of boxes, and radii around them that hold all rows that may be in the box.

    Parameters
    ----------
    blocks : tuple of Block
    low, high : float array of shape (n, d)
    corners : float array of shape (d,)
        High bounds of the domain.
    """
    middles, squares = (low + high) / 2, ((high - low) / 2) ** 2
    for block in blocks:
        if block.kind != "simplex":
            continue
        own, corner = slice(block.start, block.stop), float(corners[block.start])
        is_chosen = low[:, own] > 0
        possible = np.where(is_chosen.any(axis=1, keepdims=True), is_chosen, high[:, own] >= corner)
        n_possible = possible.sum(axis=1, keepdims=True)
        possible = possible | (n_possible == 0)  # a box without corners has no rows
        n_possible = possible.sum(axis=1, keepdims=True)
        middles[:, own] = possible * corner / n_possible
        squares[:, own] = 0.0
        squares[:, block.start] = corner**2 * (1 - 1 / n_possible[:, 0])
    return middles, np.sqrt(squares.sum(axis=1))
