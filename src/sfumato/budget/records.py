"""What happened: which mechanism ran, at which sensitivity and noise scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

Mechanism = Literal["discrete Laplace", "discrete Gaussian", "exponential", "permute-and-flip"]


@dataclass(frozen=True)
class Sensitivity:
    """How far one privacy unit can move an integer vector, in exact integers.

    Parameters
    ----------
    l1 : int
        Largest change in L1 norm.
    l2_squared : int
        Largest change in squared L2 norm.
    spread : int
        Largest value of (greatest change - least change) over the entries. A selection depends only on
        differences of scores, so this is what it pays for.
    coordinates : int
        Largest number of entries that change.
    """

    l1: int = 1
    l2_squared: int = 1
    spread: int = 1
    coordinates: int = 1

    def times(self, max_rows: int) -> Sensitivity:
        """Sensitivity for a person with at most `max_rows` rows.

        By the triangle inequality every norm grows by at most the factor `max_rows`. The rows may fall on
        different entries, so up to `max_rows` times as many entries change.
        """
        return Sensitivity(
            l1=self.l1 * max_rows,
            l2_squared=self.l2_squared * max_rows**2,
            spread=self.spread * max_rows,
            coordinates=self.coordinates * max_rows,
        )


@dataclass(frozen=True)
class Record:
    """One use of a mechanism.

    Parameters
    ----------
    step : str
        Name of the step in the plan.
    mechanism : str
    sensitivity : Sensitivity
        For one privacy unit: the row cap is already applied.
    scale : Fraction
        Scale b of the discrete Laplace, sigma of the discrete Gaussian, or temperature of a selection
        (scores are divided by it).
    delta : Fraction
        Probability that a threshold shows a value which only one privacy unit has; 0 without a threshold.
        It comes on top of the cost of the noise.
    """

    step: str
    mechanism: Mechanism
    sensitivity: Sensitivity
    scale: Fraction
    delta: Fraction = Fraction(0)

    @property
    def epsilon(self) -> Fraction | None:
        """Pure cost: L1 sensitivity (spread, for a selection) over scale. ``None`` for Gaussian noise.

        A threshold adds its `delta`.
        """
        match self.mechanism:
            case "discrete Laplace":
                return self.sensitivity.l1 / self.scale
            case "exponential" | "permute-and-flip":
                return self.sensitivity.spread / self.scale
            case "discrete Gaussian":
                return None

    @property
    def rho(self) -> Fraction:
        """zCDP cost.

        Discrete Gaussian: L2^2 / (2 sigma^2) (Canonne, Kamath and Steinke 2020). Exponential: epsilon^2 /
        8, since it is epsilon-bounded-range (Cesar and Rogers 2021). Any other pure mechanism: epsilon^2 /
        2 (Bun and Steinke 2016).
        """
        if self.epsilon is None:
            return self.sensitivity.l2_squared / (2 * self.scale**2)
        return self.epsilon**2 / (8 if self.mechanism == "exponential" else 2)

    def sensitivity_in_words(self) -> str:
        """The sensitivity that the mechanism covers, such as "1 (L1)"."""
        match self.mechanism:
            case "discrete Laplace":
                return f"{self.sensitivity.l1} (L1)"
            case "discrete Gaussian":
                return f"{math.sqrt(self.sensitivity.l2_squared):.6g} (L2)"
            case "exponential" | "permute-and-flip":
                return f"{self.sensitivity.spread} (spread)"

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise; for a selection, its temperature."""
        scale = float(self.scale)
        match self.mechanism:
            case "discrete Laplace":
                return math.sqrt(0.5) / math.sinh(0.5 / scale) if scale > 1e-3 else 0.0
            case "discrete Gaussian":
                return _discrete_gaussian_std(scale)
            case _:
                return scale


def _discrete_gaussian_std(sigma: float) -> float:
    if sigma > 2:  # the discrete variance differs from sigma^2 by less than 1e-30
        return sigma
    x = np.arange(1, 64)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return math.sqrt(2 * float(weights @ x**2) / (1 + 2 * float(weights.sum())))
