"""A Gaussian mixture with the sizes of its components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.domain import FloatArray, IntArray, Measure
from sfumato.domain.partitions import GaussianCells, Partition
from sfumato.public.exports.exported import Exported, exported_centres
from sfumato.public.intervals import Sizes
from sfumato.public.mixtures.covariances import SizedComponents
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.morse_tree import MorseTree, merge_tree
from sfumato.public.models.base import check_places, check_sizes
from sfumato.public.models.centres import CentreModel
from sfumato.public.models.groups import Groups

_LEAST_WEIGHT = 0.25  # in standard deviations of a component's size; tuned: docs/notes/constants.md#mixtures
_LEAST_ROWS = 1.0  # keeps weights positive without noise


class GroupedModel(ABC):
    """What all models with a mixture share."""

    if TYPE_CHECKING:  # a property here would be the default of a field below

        @property
        def base(self) -> MixtureModel:
            """The mixture."""

    @property
    @abstractmethod
    def tree(self) -> MorseTree:
        """Peaks, saddles and the order in which they join."""

    @property
    @abstractmethod
    def groups(self) -> Groups:
        """Components, or clusters of them."""

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.base.means.shape[1])

    @property
    def estimated_sizes(self) -> Sizes:
        """Estimated rows in each group, with intervals."""
        return Sizes.of(self.groups.name, self.groups.sizes, self.groups.size_stds)

    @property
    def centres(self) -> CentreModel:
        """The groups as centres."""
        return CentreModel(self.groups.means, self.groups.sizes, center_stds=self.groups.mean_stds)

    @property
    def exported(self) -> tuple[Exported, ...]:
        """Groups for files of other programs."""
        return exported_centres(self.groups.means, self.estimated_sizes, self.groups.mean_stds)

    @property
    def picture(self) -> str:
        """Picture in `sfumato.plot` that suits the model."""
        return "mixture" if self.n_features <= 2 else "saddles"

    @property
    @abstractmethod
    def partition(self) -> Partition:
        """Groups of rows."""

    @abstractmethod
    def predict(self, rows: FloatArray) -> IntArray:
        """Group of each row."""


@dataclass(frozen=True, eq=False)
class MixtureModel(GroupedModel):
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
        """Mixture weighted by noisy sizes, or by the least size that is visible above the noise."""
        means, covariances, noisy_sizes, size_stds, mean_stds = components
        weights = np.maximum(noisy_sizes, np.maximum(_LEAST_WEIGHT * size_stds, _LEAST_ROWS))
        sizes = np.maximum(noisy_sizes, 0.0)
        return cls(weights / weights.sum(), means, covariances, sizes, size_stds, mean_stds)

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        k, d = check_places("means", self.means)
        check_sizes("sizes", self.sizes, k)
        check_sizes("size_stds", self.size_stds, k)
        check_sizes("mean_stds", self.mean_stds, k, d)
        self.mixture  # noqa: B018  # which checks the rest

    @property
    def base(self) -> MixtureModel:
        """The mixture of which the groups are made."""
        return self

    @cached_property
    def mixture(self) -> Mixture:
        """The mixture, for densities and for merging."""
        return Mixture(self.weights, self.means, self.covariances)

    @cached_property
    def tree(self) -> MorseTree:
        """Peaks, saddles and the order in which they join."""
        return merge_tree(self.mixture).doubting(self.sizes, self.size_stds)

    @cached_property
    def groups(self) -> Groups:
        """The components."""
        stds = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        labels = np.arange(len(self.means))
        return Groups("component", labels, self.sizes, self.means, stds, self.size_stds, self.mean_stds)

    def joined(self, n_clusters: int | None = None) -> Groups:
        """Components joined into clusters. The tree chooses their number by default."""
        labels = self.tree.cut(self.tree.n_clusters if n_clusters is None else n_clusters)
        return self.groups.joined(self.weights, labels)

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

    @property
    def partition(self) -> GaussianCells:
        """Rows that most probably belong to each component."""
        return GaussianCells.of(self.weights, self.means, self.covariances)

    def moved(self, measure: Measure) -> MixtureModel:
        """The same mixture in other units."""
        covariances = measure.lengths(np.swapaxes(measure.lengths(self.covariances), 1, 2))
        stds = None if self.mean_stds is None else measure.lengths(self.mean_stds)
        return replace(self, means=measure.of(self.means), covariances=covariances, mean_stds=stds)

    def predict(self, rows: FloatArray) -> IntArray:
        """Most probable component of each row."""
        return self.mixture.predict(rows) if len(rows) else np.empty(0, dtype=np.int64)
