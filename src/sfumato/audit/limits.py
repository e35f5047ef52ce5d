"""Lower bound on the privacy loss, from how often an event happened on two neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from sfumato.budget import Budget
from sfumato.domain import FloatArray
from sfumato.errors import ParameterError

# Any orders give a valid bound. Small ones suit frequent events, large ones rare events.
RENYI_ORDERS = np.geomspace(1.01, 1000.0, 40)


def lower_bound(
    budget: Budget, n_likely: int, n_unlikely: int, n_runs: int, confidence: float = 0.99
) -> float:
    """Lower bound on epsilon (or rho) that holds with the given confidence.

    Parameters
    ----------
    budget : Budget
        The promise. A budget in rho gives a bound on rho, any other a bound on epsilon at its delta.
    n_likely, n_unlikely : int
        How often an event happened in `n_runs` independent runs on each of two neighbours. The event, and
        which neighbour is which, must have been chosen without looking at these runs.
    n_runs : int
    confidence : float

    Returns
    -------
    float
        At least 0.

    Notes
    -----
    Let p and q be the probabilities of the event. Each limit of Clopper and Pearson (1934) fails with
    probability at most (1 - confidence) / 2, so p >= p_low and q <= q_high hold together with `confidence`.
    Then (epsilon, delta) needs epsilon >= log((p - delta) / q) >= log((p_low - delta) / q_high). By data
    processing, rho-zCDP needs D_a(p || q) <= a rho for the Rényi divergence of the two-point laws at every
    order a > 1. Where p > q this divergence grows with p and falls with q, so p_low and q_high bound it too.

    Examples
    --------
    >>> round(lower_bound(Budget(1), n_likely=6200, n_unlikely=2300, n_runs=10_000), 2)
    0.92
    >>> lower_bound(Budget(1), n_likely=2300, n_unlikely=6200, n_runs=10_000)
    0.0
    """
    if not (0 < confidence < 1):
        raise ParameterError(f"`confidence` must be between 0 and 1, got {confidence!r}. Try 0.99")
    if not (min(n_likely, n_unlikely) >= 0 and max(n_likely, n_unlikely) <= n_runs):
        raise ParameterError(
            f"`n_likely` and `n_unlikely` must be from 0 to {n_runs}, got {n_likely} and {n_unlikely}"
        )
    low, high = limits(n_runs, 1 - confidence)
    return float(least_loss(budget, low[n_likely], high[n_unlikely]))


def limits(n_runs: int, miss: float) -> tuple[FloatArray, FloatArray]:
    """Limits of a probability for every number of hits; each fails with probability `miss` / 2."""
    hits = np.arange(n_runs + 1, dtype=np.float64)
    low, high = np.zeros(n_runs + 1), np.ones(n_runs + 1)
    low[1:] = stats.beta.ppf(miss / 2, hits[1:], n_runs - hits[1:] + 1)
    high[:-1] = stats.beta.isf(miss / 2, hits[:-1] + 1, n_runs - hits[:-1])
    return low, high


def least_loss(budget: Budget, p: ArrayLike, q: ArrayLike) -> FloatArray:
    """Least epsilon at the budget's delta, or least rho, that allows one event the probabilities p and q.

    Parameters
    ----------
    budget : Budget
    p, q : array-like
        p below 1 and q above 0, as with Clopper and Pearson's limits.
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if budget.rho is None:
        loss: FloatArray = np.log(np.maximum(p - float(budget.delta), q) / q)
        return loss
    return np.where(p > q, _least_rho(np.maximum(p, q), np.where(p > q, q, 0.5)), 0.0)


def _least_rho(p: FloatArray, q: FloatArray) -> FloatArray:
    """Largest D_a(p || q) / a over the orders, for the laws of one event."""
    order = RENYI_ORDERS.reshape(-1, *(1,) * p.ndim)
    with np.errstate(divide="ignore"):
        inside = order * np.log(p) + (1 - order) * np.log(q)
        outside = order * np.log1p(-p) + (1 - order) * np.log1p(-q)
    divergence = np.logaddexp(inside, outside) / (order - 1)
    rho: FloatArray = (divergence / order).max(axis=0)
    return rho
