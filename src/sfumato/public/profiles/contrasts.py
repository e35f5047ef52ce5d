"""Which columns set a cluster apart from all other rows, from released counts and their noise alone."""

from __future__ import annotations

import math

import numpy as np

from sfumato.domain import FloatArray
from sfumato.public.profiles.views import View

# Expected size of standard normal noise, and its standard deviation.
_MEAN_SIZE = math.sqrt(2 / math.pi)
_SIZE_STD = math.sqrt(1 - 2 / math.pi)
CLEAR = 3.0  # standard deviations above the distance that noise alone shows


def contrast(own: View, rest: View, between: FloatArray) -> tuple[float, bool]:
    """Distance of the distributions of a column in a cluster and in the rest, and whether it is beyond noise.

    It is the total variation distance: the least share of the cluster's rows that must change for the two to
    be equal. Noise makes it larger; what noise alone gives on average is subtracted.

    Parameters
    ----------
    own, rest : View
        Of the same bins.
    between : float array of shape (n_bins, n_bins)
        Covariance of the linear counts of the two.
    """
    if own.is_hidden or rest.is_hidden:
        return 0.0, False
    gaps = own.shares() - rest.shares()
    linear = own.linear / own.linear.sum() - rest.linear / rest.linear.sum()
    stds = np.sqrt(np.maximum(_gap_variance(own, rest, between), 0.0))
    noise = _MEAN_SIZE * float(stds.sum()) / 2
    std = _SIZE_STD * math.sqrt(float((stds**2).sum())) / 2
    score = max(float(np.abs(gaps).sum()) / 2 - noise, 0.0)
    return min(score, 1.0), float(np.abs(linear).sum()) / 2 > noise + CLEAR * std


def _gap_variance(own: View, rest: View, between: FloatArray) -> FloatArray:
    """Variance of the difference of the shares in each bin, to first order."""
    sizes = float(own.linear.sum()), float(rest.linear.sum())
    p, r = own.shares(), rest.shares()
    first = _of_shares(own.covariance, p, p) / sizes[0] ** 2
    second = _of_shares(rest.covariance, r, r) / sizes[1] ** 2
    both = _of_shares(between, p, r) / (sizes[0] * sizes[1])
    return first + second - 2 * both


def _of_shares(covariance: FloatArray, p: FloatArray, r: FloatArray) -> FloatArray:
    """Covariance of count - p size and count - r size in each bin."""
    found: FloatArray = (
        np.diagonal(covariance)
        - p * covariance.sum(axis=0)
        - r * covariance.sum(axis=1)
        + p * r * covariance.sum()
    )
    return found
