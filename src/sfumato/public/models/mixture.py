"""A Gaussian mixture with the sizes of its components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.public.mixtures.covariances import SizedComponents
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.models.base import check_places, check_sizes

_LEAST_WEIGHT = 0.25  # of a component, in standard deviations of its size
_LEAST_ROWS = 1.0


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """A Gaussian mixture; a row belongs to the component that most probably made it.

    Parameters
    ----------
    weights : float array of shape (k,)
    means : float array of shape (k, d)
    covariances : float array of shape (k, d, d)
    sizes : float array of shape (k,)
        Estimated number of rows of each component.
    size_stds : float array of shape (k,)
        Standard deviations of the noise in these numbers.
    mean_stds : float array of shape (k, d), optional
        Standard deviations of the noise in the means.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    sizes: FloatArray
    size_stds: FloatArray
    mean_stds: FloatArray | None = None

    @classmethod
    def sized(cls, components: SizedComponents) -> MixtureModel:
        """Mixture whose weights are noisy sizes, where these are above the least that noise lets one see."""
        means, covariances, noisy_sizes, size_stds, mean_stds = components
        weights = np.maximum(noisy_sizes, np.maximum(_LEAST_WEIGHT * size_stds, _LEAST_ROWS))
        sizes = np.maximum(noisy_sizes, 0.0)
        return cls(weights / weights.sum(), means, covariances, sizes, size_stds, mean_stds)

    def check(self) -> None:
        """Refuse parts that do not fit together: a file may hold such."""
        k, d = check_places("means", self.means)
        check_sizes("sizes", self.sizes, k)
        check_sizes("size_stds", self.size_stds, k)
        check_sizes("mean_stds", self.mean_stds, k, d)
        self.mixture  # noqa: B018  # which checks the rest

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.means.shape[1])

    @cached_property
    def mixture(self) -> Mixture:
        """The mixture, for densities and for merging."""
        return Mixture(self.weights, self.means, self.covariances)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {
            "weights": self.weights,
            "means": self.means,
            "covariances": self.covariances,
            "cluster_centers": self.means,
            "cluster_sizes": self.sizes,
            "cluster_center_stds": self.mean_stds,
            "cluster_size_stds": self.size_stds,
            "n_clusters": len(self.means),
        }

    def predict(self, rows: FloatArray) -> IntArray:
        """Most probable component of each row."""
        return self.mixture.predict(rows) if len(rows) else np.empty(0, dtype=np.int64)
