"""Which saddles are beyond doubt if component sizes are noisy."""

from __future__ import annotations

import numpy as np

from sfumato.domain import FloatArray, IntArray
from sfumato.public.mixtures.joining import LEAST_STD, SURE
from sfumato.public.mixtures.peaks import Peaks
from sfumato.public.mixtures.saddles import Passes


def sure_saddles(peaks: Peaks, saddles: Passes, sizes: FloatArray, stds: FloatArray) -> IntArray:
    """Saddles between clusters that are both beyond doubt, once clusters in doubt are joined.

    A cluster is beyond doubt if its size is at least five standard deviations of the size's noise, and if the
    resulting relative error of its density is below a fifth of its rise above the saddle, in logarithms. The
    most doubtful is joined first.

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
    left = np.arange(len(saddles.peaks))
    while len(left):
        ends = cluster[saddles.peaks[left]]
        certainty = rows[ends] / np.maximum(np.sqrt(variances[ends]), LEAST_STD)
        rises = np.maximum(tops[ends] - saddles.log_densities[left, None], 0.0)
        evidence = (certainty * np.minimum(rises, 1.0)).min(axis=1)
        chosen = int(evidence.argmin())
        if evidence[chosen] >= SURE:
            break
        elder, younger = sorted(ends[chosen])
        cluster[cluster == younger] = elder
        rows[elder] += rows[younger]
        variances[elder] += variances[younger]
        tops[elder] = max(tops[elder], tops[younger])
        left = np.delete(left, chosen)
    return left
