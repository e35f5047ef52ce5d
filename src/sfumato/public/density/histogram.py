"""A released histogram on a public grid and its noise, from which density methods start. Public."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sfumato.domain import Grid, IntArray, Measure, check_shape
from sfumato.errors import ParameterError

NOISES = ("discrete Laplace", "discrete Gaussian")


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Noisy counts of the cells of a grid: of all cells, or of those that reach a threshold.

    Parameters
    ----------
    grid : Grid
    counts : int array
        Noisy counts: of all cells in C order, or of `cells`.
    mechanism : str
        ``"discrete Laplace"`` or ``"discrete Gaussian"``.
    scale : float
        Scale of the noise.
    cells : int array, optional
        Flat indices of the listed cells, in increasing order; None for all.
    threshold : int
        Cells not listed have a noisy count below it. 0 if all are listed.
    """

    grid: Grid
    counts: IntArray
    mechanism: str
    scale: float
    cells: IntArray | None = None
    threshold: int = 0

    def check(self) -> None:
        """Raise if the parts do not fit together, as in a damaged file."""
        if self.cells is not None:
            self.grid.check_cells(self.cells)
        check_shape("counts", self.counts, self.grid.n_cells if self.cells is None else len(self.cells))
        if self.mechanism not in NOISES or not 2**-32 < self.scale <= 2**52:
            raise ParameterError(
                f"the noise must be {' or '.join(NOISES)}, with a scale that can be drawn, got "
                f"{self.mechanism!r} with {self.scale!r}"
            )

    def moved(self, measure: Measure) -> NoisyHistogram:
        """The same counts in other units."""
        return replace(self, grid=self.grid.moved(measure))

    @property
    def is_dense(self) -> bool:
        """Whether every cell is listed."""
        return self.cells is None

    @property
    def variance(self) -> float:
        """Variance of the noise of a count."""
        if self.mechanism == "discrete Gaussian":
            return self.scale**2  # up to terms that vanish for scales above 1
        ratio = math.exp(-1 / self.scale)
        return 2 * ratio / (1 - ratio) ** 2

    def at(self, cells: IntArray) -> IntArray:
        """Noisy counts of cells by flat index; 0 for cells that are not listed."""
        if self.cells is None:
            return self.counts[cells]
        if not len(self.cells):
            return np.zeros(len(cells), dtype=np.int64)
        place = np.searchsorted(self.cells, cells).clip(max=len(self.cells) - 1)
        return np.where(self.cells[place] == cells, self.counts[place], 0)
