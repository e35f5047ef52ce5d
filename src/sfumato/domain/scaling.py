"""The rule by which columns are measured, so that they can be compared: in units of their public bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.domain.arrays import FloatArray
from sfumato.domain.blocks import Block
from sfumato.domain.columns import Coordinate
from sfumato.domain.measure import Measure
from sfumato.domain.space import Domain
from sfumato.errors import ParameterError

Scale = Literal["bounds"]

ALIKE = 2.0  # columns of a map may differ in width by this factor
ALIKE_FOR_SHAPES = 6.0  # where shapes are looked for, a coast or a corridor is a map, too
MAP_COLUMNS = (2, 3)
LARGEST_SCALED = 1e70  # squares of the user's units are still numbers that a release may hold
CORNER = math.sqrt(0.5)  # corners of a simplex this far from the origin are 1 apart


@dataclass(frozen=True)
class Scaling:
    """The rule by which columns are measured. It depends on public declarations alone.

    Parameters
    ----------
    scale : "bounds" or None
        None takes all columns as they are.
    weights : mapping or sequence, optional
        How much longer a step counts: by the name of a column, or one for each column of an array.
    because : str, optional
        Why columns must share a unit: for example that a parameter is a length in this unit.
    alike : float
        Factor by which columns of a map may differ in width.
    """

    scale: Scale | None = "bounds"
    weights: Mapping[str, float] | Sequence[float] | None = None
    because: str | None = None
    alike: float = ALIKE

    def applied(
        self, domain: Domain, coordinates: Sequence[Coordinate] = (), names: Sequence[str] = ()
    ) -> Domain:
        """The domain with its measure.

        Parameters
        ----------
        domain : Domain
        coordinates : sequence of Coordinate
            Empty for an array.
        names : sequence of str
            Column names of an array, if any.
        """
        weights = self._weights([c.column for c in coordinates] or list(names), domain.n_features)
        widths = 2 * domain.half_width
        steps, words = self._steps(domain, widths, coordinates)
        steps = steps / weights
        if (weights != 1).any():
            words += ", times their weights"
        if (steps == 1).all():
            return replace(domain, measure=Measure(words=words))
        if max(np.abs(domain.low).max(), np.abs(domain.high).max()) > LARGEST_SCALED:
            raise ParameterError(
                f"`bounds` of columns of different widths must be at most {LARGEST_SCALED:g} in size, got "
                f"{domain.low}, {domain.high}. Rescale the columns, or use scale=None"
            )
        in_blocks = np.zeros(domain.n_features, dtype=bool)
        for block in domain.blocks:
            in_blocks[block.start : block.stop] = True
        origin = np.where(in_blocks, 0.0, domain.low)
        return replace(domain, measure=Measure(_plain(origin), _plain(steps), words))

    def _steps(
        self, domain: Domain, widths: FloatArray, coordinates: Sequence[Coordinate]
    ) -> tuple[FloatArray, str]:
        """What counts as one step of each coordinate, before weights, and the rule in words."""
        ones = np.ones(len(widths))
        if self.scale is None:
            return ones, "columns are measured as they are (scale=None): they must share a unit"
        if domain.radius is not None:
            return ones, "columns are measured as they are: a ball has one radius"
        if not domain.blocks and (widths == widths[0]).all():
            return ones, "columns are measured as they are: their bounds are equally wide"
        if self.because is not None:
            return ones, f"columns are measured as they are: {self.because}"
        units = [c.unit if c.kind in ("number", "date") else "" for c in coordinates]
        is_map = len(widths) in MAP_COLUMNS and widths.max() <= self.alike * widths.min()
        if is_map and not any(units) and all(c.kind == "number" for c in coordinates):
            return ones, (
                "columns are measured as they are, as on a map: there are at most "
                f"{MAP_COLUMNS[-1]}, and their bounds are alike in width. Declare units if they have "
                "different ones: bounds={'age': (0, 100, 'years'), ...}"
            )
        if units and units[0] and len(set(units)) == 1:
            return ones, f"columns are measured as they are: all are in {units[0]}"
        steps = widths.copy()
        shared = {unit for unit in units if unit and units.count(unit) > 1}
        for unit in shared:
            own = np.array([other == unit for other in units])
            steps[own] = widths[own].max()
        for block in domain.blocks:
            steps[block.start : block.stop] = _step_of(block, widths)
        words = "columns are measured in units of their bounds, so a step across counts the same in each"
        if shared:
            words += f"; those in {', '.join(sorted(shared))} by the widest of their bounds"
        return steps, words

    def _weights(self, columns: Sequence[str], n_features: int) -> FloatArray:
        """Weight of each coordinate."""
        if self.weights is None:
            return np.ones(n_features)
        if isinstance(self.weights, Mapping):
            for name in self.weights:
                if name not in columns:
                    raise ParameterError(
                        f"`weights` must name columns that are clustered by, got {name!r}. For an array, "
                        "give one weight per column"
                    )
            given = [self.weights.get(name, 1.0) for name in columns]
        else:
            given = list(self.weights)
        try:
            found = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != (n_features,) or not ((found >= 1e-6) & (found <= 1e6)).all():
            raise ParameterError(
                f"`weights` must be from 1e-6 to 1e6, by column or {n_features} of them, got {self.weights!r}"
            )
        return found


def _step_of(block: Block, widths: FloatArray) -> float:
    """The length that counts as one step: corners of a simplex, or ends of a diameter, are 1 apart."""
    return float(widths[block.start]) / (CORNER if block.kind == "simplex" else 1.0)


def _plain(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
