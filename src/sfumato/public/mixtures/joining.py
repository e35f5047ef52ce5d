"""The order in which components of a mixture are joined into clusters: by overlap, depth and size together.

A level alone cannot order them. A faint component far out joins at the lowest level of all, whatever its
size. A dense core and its wide surroundings share one peak, though few of their rows can be confused. So two
clusters with parts f and g of the density are as distinct as the sum of

1. minus the logarithm of their overlap, the cosine of f and g in L2, which is exact for Gaussians;
2. twice the fall from the lower of their peaks to the saddle between them, in logarithms. It counts twice
   because the overlap, too, is quadratic in the density;
3. half the logarithm of the weight of the lighter one. Of clusters that are equally far from the others, the
   lightest is given up first.

The least distinct pair is joined first, then the measures are taken anew. A cluster whose size may be noise
is joined before all others, to the cluster from which it is least distinct. The factors in 2 and 3 were
chosen on tables: docs/notes/mixtures.md.
"""

from __future__ import annotations

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.public.mixtures.mixture import Mixture
from sfumato.public.mixtures.peaks import Peaks
from sfumato.public.mixtures.saddles import Passes

# Tuned: docs/notes/constants.md#morse
SURE = 5.0  # standard deviations of a size's noise
_FALL_FACTOR = 2.0  # of the fall to a saddle
_WEIGHT_FACTOR = 0.5  # of the logarithm of the lighter weight

LEAST_STD = 1e-100  # no division by zero
_LEAST_WEIGHT = 1e-100  # a component without weight has a logarithm


def joining_order(
    mixture: Mixture, peaks: Peaks, saddles: Passes, sizes: FloatArray, stds: FloatArray
) -> IntArray:
    """Pairs of components whose clusters are joined, the first pair first, of shape (K - 1, 2).

    Parameters
    ----------
    mixture : Mixture
    peaks : Peaks
    saddles : Passes
        The saddles of a merge tree, the densest first.
    sizes, stds : float arrays of shape (K,)
        Noisy sizes of the components, and the standard deviations of the noise.
    """
    clusters = _Clusters(mixture, peaks, saddles)
    sizes, variances = sizes.astype(np.float64), stds.astype(np.float64) ** 2
    names, order = np.arange(len(sizes)), []
    while len(names) > 1:
        certainty = sizes / np.maximum(np.sqrt(variances), LEAST_STD)
        lowest = certainty.min()  # shared by all sizes that noise made zero
        chosen = np.flatnonzero(certainty <= lowest) if lowest < SURE else np.arange(len(names))
        first, second = divmod(int(clusters.distances()[chosen].argmin()), len(names))
        kept, gone = sorted((int(chosen[first]), second))
        order.append([names[kept], names[gone]])
        clusters.join(kept, gone)
        sizes[kept] += sizes[gone]
        variances[kept] += variances[gone]
        names, sizes, variances = np.delete(names, gone), np.delete(sizes, gone), np.delete(variances, gone)
    return np.array(order, dtype=np.int64).reshape(-1, 2)


class _Clusters:
    """What is needed to compare clusters, kept up to date as they are joined."""

    def __init__(self, mixture: Mixture, peaks: Peaks, saddles: Passes) -> None:
        self.log_weights = np.log(np.maximum(mixture.weights, _LEAST_WEIGHT))
        self.products = log_products(mixture) + np.add.outer(self.log_weights, self.log_weights)
        self.passes = pass_levels(peaks, saddles)[np.ix_(peaks.owners, peaks.owners)]
        self.tops = peaks.log_densities[peaks.owners]

    def distances(self) -> FloatArray:
        """How distinct each pair is; infinite on the diagonal."""
        lengths = np.diagonal(self.products) / 2
        overlaps = self.products - np.add.outer(lengths, lengths)
        falls = np.maximum(np.minimum.outer(self.tops, self.tops) - self.passes, 0.0)
        lighter = np.minimum.outer(self.log_weights, self.log_weights)
        found: FloatArray = _FALL_FACTOR * falls - overlaps + _WEIGHT_FACTOR * lighter
        np.fill_diagonal(found, np.inf)
        return found

    def join(self, kept: int, gone: int) -> None:
        for matrix, join in ((self.products, np.logaddexp), (self.passes, np.maximum)):
            matrix[kept] = join(matrix[kept], matrix[gone])
            matrix[:, kept] = join(matrix[:, kept], matrix[:, gone])
        for values, join in ((self.log_weights, np.logaddexp), (self.tops, np.maximum)):
            values[kept] = join(values[kept], values[gone])
        self.products, self.passes = (
            np.delete(np.delete(matrix, gone, axis=0), gone, axis=1)
            for matrix in (self.products, self.passes)
        )
        self.log_weights, self.tops = (np.delete(values, gone) for values in (self.log_weights, self.tops))


def log_products(mixture: Mixture) -> FloatArray:
    """Logarithms of the inner products of the components' densities in L2, of shape (K, K), up to a constant.

    The product of two Gaussians is the density of N(0, A + B) at the difference of their means.
    """
    n = mixture.n_components
    found = np.empty((n, n))
    for i, (mean, covariance) in enumerate(zip(mixture.means, mixture.covariances, strict=True)):
        sums = mixture.covariances[i:] + covariance
        apart = (mixture.means[i:] - mean)[..., None]
        squares = (apart * np.linalg.solve(sums, apart)).sum(axis=(1, 2))
        found[i, i:] = found[i:, i] = -(squares + np.linalg.slogdet(sums)[1]) / 2
    return found


def pass_levels(peaks: Peaks, saddles: Passes) -> FloatArray:
    """Log density of the lowest point on the best path between each two of S peaks, of shape (S, S)."""
    n = len(peaks.positions)
    found = np.empty((n, n))
    np.fill_diagonal(found, peaks.log_densities)
    part = np.arange(n)
    for pair, level in zip(saddles.peaks, saddles.log_densities, strict=True):
        first, second = (np.flatnonzero(part == part[peak]) for peak in pair)
        found[np.ix_(first, second)] = found[np.ix_(second, first)] = level
        part[second] = part[pair[0]]
    return found
