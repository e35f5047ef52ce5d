"""Measured units: those of distances, lattices, noise and cells. Results come back in the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.domain.arrays import FloatArray
from sfumato.errors import ParameterError


@dataclass(frozen=True)
class Measure:
    """From the user's units to measured ones: ``(value - origin) / step``, for each coordinate.

    Parameters
    ----------
    origin, step : tuple of float
        Empty if columns are measured as they are.
    words : str
        How columns are measured, and why.
    """

    origin: tuple[float, ...] = ()
    step: tuple[float, ...] = ()
    words: str = "columns are measured as they are"

    def check(self) -> None:
        """Raise if the parts, perhaps from a file, do not fit together."""
        fits = len(self.origin) == len(self.step)
        if not fits or not all(math.isfinite(o) and 0 < s < math.inf for o, s in self.pairs):
            raise ParameterError(f"a measure must have as many positive steps as origins, got {self}")

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """Origin and step of each coordinate."""
        return list(zip(self.origin, self.step, strict=True))

    def __bool__(self) -> bool:
        return bool(self.step)

    def of(self, points: FloatArray) -> FloatArray:
        """Points in measured units."""
        return (points - np.array(self.origin)) / np.array(self.step) if self else points

    def lengths(self, values: FloatArray) -> FloatArray:
        """Lengths along each column, such as deviations, in measured units."""
        return values / np.array(self.step) if self else values

    @property
    def inverse(self) -> Measure:
        """The way back, from measured units to the user's."""
        return _Back(self.origin, self.step, self.words)


class _Back(Measure):
    """The way back of a measure with the same origin and steps. Never saved."""

    def of(self, points: FloatArray) -> FloatArray:
        return points * np.array(self.step) + np.array(self.origin) if self else points

    def lengths(self, values: FloatArray) -> FloatArray:
        return values * np.array(self.step) if self else values

    @property
    def inverse(self) -> Measure:
        return Measure(self.origin, self.step, self.words)


AS_THEY_ARE = Measure()
