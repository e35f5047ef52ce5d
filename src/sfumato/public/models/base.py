"""What every model provides, and checks of what a file states."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from sfumato.domain import LARGEST_BOUND, FloatArray, IntArray, check_shape
from sfumato.errors import ParameterError

LARGEST_FLOAT = 10 * LARGEST_BOUND  # of what files state: beyond, sums and squares leave the range of numbers


class Model(Protocol):
    """What an estimator computes from released values: a frozen dataclass, listed in `codec.PUBLISHABLE`."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator, without the trailing underscore."""

    def predict(self, rows: FloatArray) -> IntArray:
        """Cluster of each row."""


def check_places(name: str, places: FloatArray, least: int = 1) -> tuple[int, int]:
    """Number of places and of columns; or an error."""
    if places.ndim != 2 or len(places) < least or not places.shape[1]:
        raise ParameterError(f"`{name}` must have rows and columns, got shape {places.shape}")
    if (np.abs(places) > LARGEST_FLOAT).any():
        raise ParameterError(f"`{name}` must be at most {LARGEST_FLOAT:g} in size, got more")
    return len(places), int(places.shape[1])


def check_sizes(name: str, sizes: FloatArray | None, *shape: int) -> None:
    """Refuse sizes of another shape, and negative ones."""
    if sizes is None:
        return
    check_shape(name, sizes, *shape)
    if not ((sizes >= 0) & (sizes <= LARGEST_FLOAT)).all():
        raise ParameterError(f"`{name}` must be from 0 to {LARGEST_FLOAT:g}, got others")
