"""What every model provides, and checks of what a file says."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from sfumato.domain import LARGEST_BOUND, FloatArray, IntArray, Measure, check_shape
from sfumato.domain.partitions import Partition
from sfumato.errors import ParameterError

LARGEST_FLOAT = 10 * LARGEST_BOUND  # that a file may hold: sums and squares of larger numbers overflow


class Model(Protocol):
    """What an estimator computes from released values: a frozen dataclass, listed in `codec.PUBLISHABLE`.

    A model may offer more to reports and pictures, as the models in this package do: ``estimated_sizes``,
    ``centres``, ``spans``, ``groups``, ``synopsis``, and ``picture``, the name of the picture that suits it.
    ``exported`` has its clusters for GeoJSON, GeoParquet and CSV.
    """

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator, without the trailing underscore."""

    @property
    def partition(self) -> Partition:
        """Clusters as groups of rows: like `predict`, but each row is told by itself."""

    def moved(self, measure: Measure) -> Model:
        """The same model in other units."""

    def predict(self, rows: FloatArray) -> IntArray:
        """Cluster of each row."""


def check_places(name: str, places: FloatArray, least: int = 1) -> tuple[int, int]:
    """Number of places and of columns. Refuses other shapes and huge numbers."""
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
