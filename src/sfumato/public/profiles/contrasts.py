"""Which columns set a cluster apart from all other rows, from released counts and their noise alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

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


def contrasts(
    own: View, rest: View, between: FloatArray, *, in_order: bool
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Distance of the distributions of a column in each cluster and its rest, and whether it is beyond noise.

    It is the total variation distance: the least share of the cluster's rows that must change for the two to
    be equal. Noise makes it larger. So only bins that differ by two standard deviations count, and what noise
    alone gives on average is subtracted. Neighbouring bins are also taken together, which hides a part of the
    distance but more of the noise; the largest distance counts.

    Parameters
    ----------
    own, rest : View
        Of the same bins; counts of shape (k, n_bins).
    between : float array of shape (n_bins, n_bins)
        Covariance of the linear counts of the two.
    in_order : bool
        Whether neighbouring bins are alike.

    Returns
    -------
    scores : float array of shape (k,)
    are_clear : bool array of shape (k,)
    """
    scores, are_clear = _contrasts(own, rest, between)
    for run in RUNS if in_order else ():
        sums = _runs(own.linear.shape[-1], run)
        more = _contrasts(_summed(own, sums), _summed(rest, sums), sums @ between @ sums.T)
        scores, are_clear = np.maximum(scores, more[0]), are_clear | more[1]
    hidden = (own.is_hidden | rest.is_hidden)[..., 0]
    return np.where(hidden, 0.0, scores), are_clear & ~hidden


def _contrasts(own: View, rest: View, between: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    gaps = np.abs(own.shares() - rest.shares())
    linear = own.linear / _safe(own.linear_sizes) - rest.linear / _safe(rest.linear_sizes)
    stds = np.sqrt(np.maximum(_gap_variance(own, rest, between), 0.0))
    noise = _MEAN_SIZE * stds.sum(axis=-1) / 2
    std = _SIZE_STD * np.sqrt((stds**2).sum(axis=-1)) / 2
    counted = np.where(gaps > COUNTED * stds, gaps, 0.0).sum(axis=-1)
    scores = np.clip((counted - _COUNTED_SIZE * stds.sum(axis=-1)) / 2, 0.0, 1.0)
    return scores, np.abs(linear).sum(axis=-1) / 2 > noise + CLEAR * std


def _safe(sizes: FloatArray) -> FloatArray:
    """Sizes to divide by. Those of hidden clusters do not matter."""
    return np.where(np.abs(sizes) > 1e-9, sizes, 1.0)


def _runs(n_bins: int, run: int) -> FloatArray:
    """Matrix that sums runs of bins; missing values, the last bin, stay alone."""
    places = np.append(np.arange(n_bins - 1) // run, (n_bins - 2) // run + 1)
    return np.eye(int(places[-1]) + 1)[:, places]


def _summed(view: View, sums: FloatArray) -> View:
    covariance = sums @ view.covariance @ sums.T
    return View(view.linear @ sums.T, view.counts @ sums.T, covariance, view.tails, view.variance)


def _gap_variance(own: View, rest: View, between: FloatArray) -> FloatArray:
    """Variance of the difference of the shares in each bin, to first order."""
    sizes = _safe(own.linear_sizes), _safe(rest.linear_sizes)
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
