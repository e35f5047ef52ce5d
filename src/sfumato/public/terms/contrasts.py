"""How far terms set clusters apart, from noisy counts and the size of the noise alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.domain import FloatArray, IntArray

# Tuned: docs/notes/constants.md#terms
CLEAR = 3.0  # standard deviations by which a share must at least exceed that of all others
FALSE_TERMS = 0.25  # that noise alone may show in each cluster, on average
CAUTION = 1.0  # standard deviations by which shares are moved towards each other before terms are ranked
LEAST_SIZE = 3.0  # standard deviations of a cluster's size; of a smaller one nothing is told


class Shares(NamedTuple):
    """Share of the people of each cluster who use each term, and of all others: (k, n_terms) each."""

    own: FloatArray
    own_stds: FloatArray
    others: FloatArray
    others_stds: FloatArray


def shares_of(counts: IntArray, sizes: IntArray, std: float) -> Shares:
    """Shares that noisy counts and sizes tell, and the noise in them to first order. Some are below 0."""
    k = len(sizes)
    n, rest_n = (np.maximum(part, 1.0)[:, None] for part in (sizes, sizes.sum() - sizes))
    own, others = counts / n, (counts.sum(axis=0) - counts) / rest_n
    n_others = max(k - 1, 0)
    return Shares(
        own,
        std * np.sqrt(1 + np.clip(own, 0, 1) ** 2) / n,
        others,
        std * np.sqrt(n_others * (1 + np.clip(others, 0, 1) ** 2)) / rest_n,
    )


def clear_distance(n_terms: int, mechanism: str) -> float:
    """Standard deviations of noise that at most `FALSE_TERMS` of so many terms exceed on average; 3 or more.

    Examples
    --------
    >>> round(clear_distance(400, "discrete Gaussian"), 2), round(clear_distance(400, "discrete Laplace"), 2)
    (3.23, 4.73)
    """
    share = min(FALSE_TERMS / max(n_terms, 1), 0.5)
    found = math.log(0.5 / share) / math.sqrt(2) if mechanism == "discrete Laplace" else float(-ndtri(share))
    return max(found, CLEAR)


def contrasts(
    counts: IntArray, sizes: IntArray, std: float, mechanism: str
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Score of each term in each cluster, and whether it sets the cluster apart by more than noise shows.

    The score is p log(p / q), the term's part of the Kullback-Leibler divergence of a cluster (share p) from
    all others (share q): large for terms that many in the cluster use, and few elsewhere. Here p is moved
    down and q up by a standard deviation of the noise each, so that noise alone does not make a term look
    rare elsewhere. One person is added to the others, so that q is never 0.

    Parameters
    ----------
    counts : int array of shape (k, n_terms)
    sizes : int array of shape (k,)
    std : float
        Standard deviation of the noise in each of both.
    mechanism : str
        Its law: of Laplace noise, more terms look large by chance.

    Returns
    -------
    scores : float array of shape (k, n_terms)
    are_clear : bool array of shape (k, n_terms)
    """
    found = shares_of(counts, sizes, std)
    one = 1 / np.maximum(sizes.sum() - sizes, 1.0)[:, None]
    low = np.maximum(found.own - CAUTION * found.own_stds, 0.0)
    high = np.maximum(found.others, 0.0) + CAUTION * found.others_stds + one
    if len(sizes) == 1:
        high = np.full_like(low, math.exp(-1))  # nothing to compare with: by share
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(low > 0, low * np.log(low / high), 0.0)
    noise = np.sqrt(found.own_stds**2 + found.others_stds**2)
    gaps = found.own - np.maximum(found.others, 0.0)
    is_large = (sizes >= LEAST_SIZE * std)[:, None]
    distance = clear_distance(counts.shape[1], mechanism)
    return scores, (gaps > distance * noise) & (scores > 0) & is_large
