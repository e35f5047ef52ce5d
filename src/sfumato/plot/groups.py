"""Clusters of a released mixture: their sizes, means and spreads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.plot.style import Source, counted, distinct_colours, refusal, released
from sfumato.public.models import MixtureModel, MorseModel
from sfumato.release import Release


class Groups(NamedTuple):
    """The k clusters that the K components of a mixture form.

    Parameters
    ----------
    labels : int array of shape (K,)
        Cluster of each component.
    sizes : float array of shape (k,)
        Estimated rows.
    means : float array of shape (k, d)
    stds : float array of shape (k, d)
        Standard deviation of each column.
    size_stds : float array of shape (k,)
        Standard deviations of the noise in the sizes.
    mean_stds : float array of shape (k, d), optional
        Standard deviations of the noise in the means, which are known of single components.
    """

    labels: IntArray
    sizes: FloatArray
    means: FloatArray
    stds: FloatArray
    size_stds: FloatArray
    mean_stds: FloatArray | None = None

    @classmethod
    def of(cls, model: MixtureModel | MorseModel) -> Groups:
        """Return the clusters of a model; those of a mixture are its components."""
        if isinstance(model, MixtureModel):
            stds = np.sqrt(np.diagonal(model.covariances, axis1=1, axis2=2))
            labels = np.arange(len(model.means))
            return cls(labels, model.sizes, model.means, stds, model.size_stds, model.mean_stds)
        base, labels = model.base, model.tree.cut(model.n_clusters)
        member = np.eye(labels.max() + 1)[:, labels]  # (k, K)
        shares = member * np.maximum(base.weights, np.finfo(float).tiny)
        shares /= shares.sum(axis=1, keepdims=True)
        means = shares @ base.means
        apart = means[:, None] - base.means  # (k, K, d)
        inner = np.diagonal(base.covariances, axis1=1, axis2=2)
        variances = shares @ inner + np.einsum("kc,kcd->kd", shares, apart**2)
        size_stds = np.sqrt(member @ base.size_stds**2)
        return cls(labels, member @ base.sizes, means, np.sqrt(variances), size_stds)

    def colours(self) -> list[str]:
        """Colour of each cluster: different for neighbours."""
        scale = np.maximum(np.ptp(self.means, axis=0), self.stds.max(axis=0))
        means, stds = self.means / scale, self.stds / scale
        return distinct_colours(np.stack([means - stds, means + stds], axis=1), means)


def mixture_of(source: Source) -> tuple[Release, MixtureModel | MorseModel]:
    """Return the release and its model, which must hold a mixture."""
    release = released(source)
    if not isinstance(release.model, MixtureModel | MorseModel):
        raise refusal(release, "a mixture, such as DPMoG or MorseClustering release")
    return release, release.model


def in_words(n_clusters: int, n_components: int, *, joined: bool) -> str:
    """Return how many clusters or components there are."""
    components = counted(n_components, "component")
    return f"{counted(n_clusters, 'cluster')} of {components}" if joined else components
