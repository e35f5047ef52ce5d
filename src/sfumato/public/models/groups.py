"""Groups of records that a mixture describes: their sizes, means and spreads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.domain import FloatArray, IntArray


class Groups(NamedTuple):
    """The k groups that the K components of a mixture form.

    Parameters
    ----------
    name : {"component", "cluster"}
        What a group is: a single component, or a cluster of several.
    labels : int array of shape (K,)
        Group of each component.
    sizes : float array of shape (k,)
        Estimated number of rows.
    means : float array of shape (k, d)
    stds : float array of shape (k, d)
        Standard deviation of the rows in each column.
    size_stds : float array of shape (k,)
        Standard deviation of the noise in each size.
    mean_stds : float array of shape (k, d), optional
        Standard deviation of the noise in each mean. It is known for single components only.
    """

    name: str
    labels: IntArray
    sizes: FloatArray
    means: FloatArray
    stds: FloatArray
    size_stds: FloatArray
    mean_stds: FloatArray | None = None

    @property
    def is_joined(self) -> bool:
        """Whether components were joined into clusters."""
        return self.name == "cluster"

    def joined(self, weights: FloatArray, labels: IntArray) -> Groups:
        """Join single components of these weights into clusters."""
        member = np.eye(labels.max() + 1)[:, labels]  # (k, K)
        shares = member * np.maximum(weights, np.finfo(float).tiny)
        shares /= shares.sum(axis=1, keepdims=True)
        means = shares @ self.means
        apart = means[:, None] - self.means  # (k, K, d)
        variances = shares @ self.stds**2 + np.einsum("kc,kcd->kd", shares, apart**2)
        size_stds = np.sqrt(member @ self.size_stds**2)
        return Groups("cluster", labels, member @ self.sizes, means, np.sqrt(variances), size_stds)
