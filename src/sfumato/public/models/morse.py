"""Components of a mixture joined through its saddles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.domain import FloatArray, IntArray, Measure
from sfumato.domain.partitions import Joined
from sfumato.errors import ParameterError
from sfumato.public.mixtures.morse_tree import MorseTree
from sfumato.public.models.groups import Groups
from sfumato.public.models.mixture import GroupedModel, MixtureModel


@dataclass(frozen=True, eq=False)
class MorseModel(GroupedModel):
    """Components of a mixture joined through its saddles.

    Parameters
    ----------
    base : MixtureModel
    n_clusters : int
    by_basin : bool
        Whether a row belongs to the cluster of the peak that its ascent leads to. Otherwise it belongs to the
        cluster of its most probable component.
    """

    base: MixtureModel
    n_clusters: int
    by_basin: bool = False

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may hold."""
        if not 1 <= self.n_clusters <= len(self.base.means):
            raise ParameterError(
                f"`n_clusters` must be from 1 to {len(self.base.means)}, got {self.n_clusters}"
            )

    @property
    def tree(self) -> MorseTree:
        """Peaks, saddles and the order in which they join."""
        return self.base.tree

    @cached_property
    def groups(self) -> Groups:
        """Clusters of components."""
        return self.base.joined(self.n_clusters)

    def cut(self, n_clusters: int | None = None) -> MorseModel:
        """The same mixture with another number of clusters. This post-processing costs no budget."""
        return replace(self, n_clusters=self.tree.n_clusters if n_clusters is None else n_clusters)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        clusters = self.tree.cut(self.n_clusters)
        n_clusters = int(clusters.max()) + 1
        return {
            "mixture": self.base.mixture,
            "merge_tree": self.tree.linkage,
            "saddles": self.tree.saddles,
            "component_labels": clusters,
            "cluster_sizes": np.bincount(clusters, self.base.sizes, n_clusters),
            "n_clusters": n_clusters,
        }

    @property
    def partition(self) -> Joined:
        """Rows whose most probable component is in each cluster, also if `by_basin`."""
        return Joined(self.base.partition, self.tree.cut(self.n_clusters))

    def moved(self, measure: Measure) -> MorseModel:
        """The same clusters in other units."""
        return replace(self, base=self.base.moved(measure))

    def predict(self, rows: FloatArray) -> IntArray:
        """Cluster of each row."""
        if self.by_basin and len(rows):
            return self.tree.predict(rows, self.n_clusters)
        return self.tree.cut(self.n_clusters)[self.base.predict(rows)]
