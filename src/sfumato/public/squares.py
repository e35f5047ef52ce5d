"""Mean squared distance of rows from their centres, read off a noisy histogram of distances."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from sfumato.domain import FloatArray, IntArray
from sfumato.public.reach import CLEAR_COUNT

N_PLACES = 8  # of the middle of a law, per bin: a definition
SPREADS = 2.0 ** np.arange(-5.0, 3.5)  # of the logarithm of a distance, in widths of a bin
BEFORE = 4  # bins before the first clear one that may hold rows: nearer ones add nothing to the mean
TAIL = 2  # bins after the last clear one that may still hold rows
SMOOTH = 0.25  # of the error within a bin: what is left if a law fits


def mean_square_of(noisy_counts: IntArray, edges: FloatArray, noise: float) -> tuple[float, float]:
    """Mean squared distance, and the standard deviation of its error.

    In many columns all distances are nearly the same and fall in one or two bins, whose middle says little.
    So log-normal laws are compared with the counts, and each law that fits says where in its bin a row is
    expected. The error covers the noise and the laws that fit as well as the best.

    Parameters
    ----------
    noisy_counts : int array of shape (n_bins + 1,)
        Noisy number of rows per bin. The last one is beyond all edges.
    edges : float array of shape (n_bins,)
        Upper edges of the bins, in a geometric series.
    noise : float
        Standard deviation of the noise in each count.
    """
    seen = noisy_counts[:-1].astype(np.float64)
    clear = np.flatnonzero(seen > CLEAR_COUNT * noise)
    last = clear.max(initial=0) + TAIL
    window = slice(max(int(clear.min(initial=len(seen))) - BEFORE, 0) if len(clear) else 0, int(last) + 1)
    counts = seen[window]
    rows = max(float(counts.sum()), 1.0)
    ratio = float(edges[1] / edges[0])
    unit = float(edges[-1])  # squares of squares would overflow with huge bounds
    squares = (edges[window] / unit) ** 2 / ratio  # of the middles
    shares, within = _laws(len(counts), ratio)
    spread = noise**2 + rows * shares.clip(1e-9, 1.0)
    misfits = ((counts - rows * shares) ** 2 / spread).sum(axis=1)
    # No law fits quite: misfits count in units of the least, per bin that holds rows.
    least = float(misfits.min())
    trust = np.exp(-(misfits - least) / (2 * max(1.0, least / max(len(clear), 1))))
    means = within @ (counts * squares) / rows
    mean = float(np.average(means, weights=trust))
    of_laws = float(np.average((means - mean) ** 2, weights=trust))
    of_shape = _of_shape(counts / rows, shares[misfits.argmin()], ratio) * mean
    of_noise = noise**2 * float((squares**2).sum()) / rows**2
    error = float(np.sqrt(of_laws + of_shape**2 + of_noise))
    return max(mean, 0.0) * unit**2, error * unit**2


def _of_shape(seen: FloatArray, expected: FloatArray, ratio: float) -> float:
    """Relative error where rows are not spread in their bins as the law says, as with several spreads."""
    within: float = (ratio**2 - 1) / (ratio**2 + 1) / np.sqrt(3)  # of an even spread in a bin
    apart = min(float(np.abs(seen - expected).sum()), 1.0)  # of the best law
    return within * float(np.linalg.norm(seen)) * (SMOOTH + (1 - SMOOTH) * apart)


def _laws(n_bins: int, ratio: float) -> tuple[FloatArray, FloatArray]:
    """For each law: the share of rows in each bin, and their mean square in units of the middle's."""
    width = np.log(ratio)
    ends = width * np.arange(n_bins + 1.0)  # logarithms of the edges, in units of the first lower edge
    middles = ends[:-1] + width / 2
    places = (np.arange(N_PLACES * n_bins) + 0.5) * width / N_PLACES
    mu, sigma = (grid.ravel()[:, None] for grid in np.meshgrid(places, SPREADS * width, indexing="ij"))
    below = ndtr((ends - mu) / sigma)
    shares = np.diff(below, axis=1)
    second = np.diff(ndtr((ends - mu) / sigma - 2 * sigma), axis=1)
    # exp(2 mu + 2 sigma^2) / exp(2 middle), with no overflow for laws far from the bin
    scale = np.exp(np.clip(2 * (mu - middles) + 2 * sigma**2, -50.0, 50.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        within = np.where(shares > 1e-12, scale * second / shares, 1.0)
    return shares, np.clip(within, 1 / ratio, ratio)
