"""Which columns set a cluster apart from all other rows, from released counts and their noise alone."""

from __future__ import annotations

import math

import numpy as np

from sfumato.domain import FloatArray
from sfumato.public.profiles.views import View

# Expected size of standard normal noise, and its standard deviation.
_MEAN_SIZE = math.sqrt(2 / math.pi)
_SIZE_STD = math.sqrt(1 - 2 / math.pi)
COUNTED = 2.0  # standard deviations from which on the difference of a bin counts
# Expected size of standard normal noise, 0 where it is smaller than that.
_COUNTED_SIZE = _MEAN_SIZE * math.exp(-(COUNTED**2) / 2)
CLEAR = 3.5  # standard deviations above the distance that noise alone shows
RUNS = (2, 4, 8)  # bins that are taken together


def contrast(own: View, rest: View, between: FloatArray, *, in_order: bool) -> tuple[float, bool]:
    """Distance of the distributions of a column in a cluster and in the rest, and whether it is beyond noise.

    It is the total variation distance: the least share of the cluster's rows that must change for the two to
    be equal. Noise makes it larger. So only bins that differ by two standard deviations count, and what noise
    alone gives on average is subtracted. Neighbouring bins are also taken together, which hides a part of the
    distance but more of the noise; the largest distance counts.

    Parameters
    ----------
    own, rest : View
        Of the same bins.
    between : float array of shape (n_bins, n_bins)
        Covariance of the linear counts of the two.
    in_order : bool
        Whether neighbouring bins are alike.
    """
    if own.is_hidden or rest.is_hidden:
        return 0.0, False
    found = [_contrast(own, rest, between)]
    for run in RUNS if in_order else ():
        sums = _runs(len(own.linear), run)
        found.append(_contrast(_summed(own, sums), _summed(rest, sums), sums @ between @ sums.T))
    return max(score for score, _ in found), any(is_clear for _, is_clear in found)


def _contrast(own: View, rest: View, between: FloatArray) -> tuple[float, bool]:
    gaps = own.shares() - rest.shares()
    linear = own.linear / own.linear.sum() - rest.linear / rest.linear.sum()
    stds = np.sqrt(np.maximum(_gap_variance(own, rest, between), 0.0))
    noise = _MEAN_SIZE * float(stds.sum()) / 2
    std = _SIZE_STD * math.sqrt(float((stds**2).sum())) / 2
    counted = float(np.abs(gaps)[np.abs(gaps) > COUNTED * stds].sum())
    score = max(counted - _COUNTED_SIZE * float(stds.sum()), 0.0) / 2
    return min(score, 1.0), float(np.abs(linear).sum()) / 2 > noise + CLEAR * std


def _runs(n_bins: int, run: int) -> FloatArray:
    """Matrix that sums runs of bins; missing values, the last bin, stay alone."""
    places = np.append(np.arange(n_bins - 1) // run, (n_bins - 2) // run + 1)
    return np.eye(int(places[-1]) + 1)[:, places]


def _summed(view: View, sums: FloatArray) -> View:
    covariance = sums @ view.covariance @ sums.T
    return View(sums @ view.linear, sums @ view.counts, covariance, view.tails, view.variance)


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
