"""Components that share a peak, and the order in which to merge them.

The density alone does not separate them: between them it only rises. If more clusters are asked for than
there are peaks, the rows of a wide component can still be told from those of a narrow one on top of it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from sfumato.domain import FloatArray, IntArray
from sfumato.public.mixtures.mixture import Mixture


def shoulder_pairs(mixture: Mixture, owners: IntArray) -> IntArray:
    """Pairs of components that span all components of each peak, of shape (K - S, 2), least distinct first.

    Parameters
    ----------
    mixture : Mixture
    owners : int array of shape (K,)
        Peak of each component, out of S.
    """
    distances = bhattacharyya(mixture.means, mixture.covariances)
    # A sparse graph cannot have edges of length zero, which coinciding components would give.
    lengths = np.where(owners[:, None] == owners, 1 + distances, 0.0)
    tree = minimum_spanning_tree(csr_array(np.triu(lengths, 1))).tocoo()
    order = np.argsort(tree.data, kind="stable")
    return np.stack([tree.row[order], tree.col[order]], axis=1).astype(np.int64)


def bhattacharyya(means: FloatArray, covariances: FloatArray) -> FloatArray:
    """Bhattacharyya distances between Gaussians, of shape (K, K): minus the logarithm of their overlap.

    Examples
    --------
    >>> import numpy as np
    >>> bhattacharyya(np.array([[0.0], [4.0]]), np.array([[[1.0]], [[1.0]]]))
    array([[0., 2.],
           [2., 0.]])
    """
    volumes = np.linalg.slogdet(covariances)[1]
    found = np.empty((len(means), len(means)))
    for i, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        between = (covariances + covariance) / 2
        apart = (means - mean)[..., None]
        squares = (apart * np.linalg.solve(between, apart)).sum(axis=(1, 2))
        found[i] = squares / 8 + (np.linalg.slogdet(between)[1] - (volumes + volumes[i]) / 2) / 2
    return np.maximum(found, 0.0)
