"""Which peaks to join first if component sizes are noisy: those that may be noise."""

from __future__ import annotations

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.public.mixtures.peaks import Peaks
from sfumato.public.mixtures.saddles import Passes

_SURE = 5.0  # standard deviations; tuned: docs/notes/constants.md#morse
_LEAST_STD = 1e-100  # no division by zero


def joining_order(peaks: Peaks, saddles: Passes, sizes: FloatArray, stds: FloatArray) -> tuple[IntArray, int]:
    """Order in which saddles join clusters, doubtful clusters first; and the number that join doubtful ones.

    A cluster is beyond doubt if its size is at least five standard deviations of the size's noise, and if the
    resulting relative error of its density is below a fifth of its rise above the saddle, in logarithms.
    Doubtful clusters are joined first, the most doubtful leading. Then come the other saddles in the order
    given, from the densest down.

    Parameters
    ----------
    peaks : Peaks
    saddles : Passes
        The saddles of a merge tree, the densest first.
    sizes, stds : float arrays of shape (n_components,)
        Noisy sizes of the components, and the standard deviations of the noise.
    """
    n_peaks = len(peaks.positions)
    rows = np.bincount(peaks.owners, sizes, n_peaks)
    variances = np.bincount(peaks.owners, stds**2, n_peaks)
    tops, cluster = peaks.log_densities.copy(), np.arange(n_peaks)
    left, order, n_doubtful = np.arange(len(saddles.peaks)), [], 0
    while len(left):
        ends = cluster[saddles.peaks[left]]
        certainty = rows[ends] / np.maximum(np.sqrt(variances[ends]), _LEAST_STD)
        rises = np.maximum(tops[ends] - saddles.log_densities[left, None], 0.0)
        evidence = (certainty * np.minimum(rises, 1.0)).min(axis=1)
        is_doubtful = bool(evidence.min() < _SURE)
        chosen = int(evidence.argmin()) if is_doubtful else 0
        n_doubtful += is_doubtful
        elder, younger = sorted(ends[chosen])
        cluster[cluster == younger] = elder
        rows[elder] += rows[younger]
        variances[elder] += variances[younger]
        tops[elder] = max(tops[elder], tops[younger])
        order.append(left[chosen])
        left = np.delete(left, chosen)
    return np.array(order, dtype=np.int64), n_doubtful
