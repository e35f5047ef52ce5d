"""Stable points of a mixture: the peaks that an ascent reaches from the means of its components.

One step of the ascent goes to the maximum of the quadratic that touches the log density from below (modal
EM): x + P(x)^-1 grad log p(x), where P is the mean precision weighted by responsibilities. On the segment to
the next point, the density is never lower than at x, since the quadratic is not. So the ascent stays in the
connected part of {p >= p(x)} in which it starts. The merge tree needs nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from sfumato.domain import FloatArray, IntArray
from sfumato.public.mixtures.kernels import ascend, fill_frames
from sfumato.public.mixtures.mixture import Local, Mixture, squared_lengths

# Precision of double numbers; finer or coarser finds the same peaks.
_CONVERGED = 1e-8  # norm of the gradient in the local scale, before the last step
_STUCK = 1e-6  # the same where no step raises the density
_MOST_STEPS = 500  # a limit
_FLAT = 1e-8  # a dip of the log density that is rounding
_SAME = 1e-4  # distance of one point from another in the local scale
_NEAR = 3.0  # in the local scale: farther peaks are not compared; measured: docs/notes/constants.md#morse
_ALONG = np.linspace(0, 1, 9)[1:-1]  # where the density between two peaks is read


class Peaks(NamedTuple):
    """Stable points, the densest first."""

    positions: FloatArray  # (S, d)
    log_densities: FloatArray  # (S,)
    owners: IntArray  # (K,); stable point reached from the mean of each component
    precisions: FloatArray  # (S, d, d); local scale at each stable point


def find_peaks(mixture: Mixture) -> Peaks:
    """Stable points reached from the means."""
    tops = climb(mixture, mixture.means)
    here = mixture.local(tops)
    groups = _same_peak(mixture, tops, here)
    order = np.argsort(-here.log_density, kind="stable")
    _, first, owners = np.unique(groups[order], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    owner = np.empty(len(tops), dtype=np.int64)
    owner[order] = rank[owners]
    chosen = order[np.sort(first)]
    return Peaks(tops[chosen], here.log_density[chosen], owner, here.precision[chosen])


def climb(mixture: Mixture, points: FloatArray) -> FloatArray:
    """Peak above each point.

    Takes Newton steps, turned uphill and no longer than an EM step or one local unit. If the density does not
    rise half way and at the end, takes the EM step instead.
    """
    found: FloatArray = points - mixture.centre
    ascend(found, mixture.sums, _MOST_STEPS, _CONVERGED, _STUCK)
    found += mixture.centre
    return found


def nearest_peak(peaks: Peaks, points: FloatArray) -> IntArray:
    """Stable point at each converged point, or -1 if there is none."""
    apart = points[:, None] - peaks.positions
    distances = np.einsum("nsi,sij,nsj->ns", apart, peaks.precisions, apart, optimize=True)
    nearest = distances.argmin(axis=1)
    known = distances[np.arange(len(points)), nearest] < _NEAR**2 * _SAME
    return np.where(known, nearest, -1)


def with_hidden(mixture: Mixture, peaks: Peaks, tops: FloatArray) -> tuple[Peaks, IntArray]:
    """Peaks, with new ones among the converged points added at the end, and the peak of each point."""
    found = nearest_peak(peaks, tops)
    hidden = np.flatnonzero(found < 0)
    if not len(hidden):
        return peaks, found
    here = mixture.local(tops[hidden])
    _, first, groups = np.unique(
        _same_peak(mixture, tops[hidden], here), return_index=True, return_inverse=True
    )
    found[hidden] = len(peaks.positions) + groups
    new = (tops[hidden[first]], here.log_density[first], np.empty(0, np.int64), here.precision[first])
    return Peaks(*(np.concatenate(parts) for parts in zip(peaks, new, strict=True))), found


class Frame(NamedTuple):
    """Main axes of a mixture at n points, in the local scale."""

    log_density: FloatArray  # (n,)
    gradient: FloatArray  # (n, d); gradient of the log density
    curvatures: FloatArray  # (n, d); curvatures of minus the log density, in increasing order; at most 1
    directions: FloatArray  # (n, d, d); directions as columns v, with v^T P v = 1


def local_frame(mixture: Mixture, points: FloatArray) -> Frame:
    """Main axes at each point."""
    n, d = points.shape
    found = Frame(np.empty(n), np.empty((n, d)), np.empty((n, d)), np.empty((n, d, d)))
    fill_frames(points - mixture.centre, mixture.sums, *found)
    return found


def _same_peak(mixture: Mixture, tops: FloatArray, here: Local) -> IntArray:
    """Group reached points that are one peak: equal, or with no dip of the density between them."""
    i, j = np.triu_indices(len(tops), 1)
    apart = tops[j] - tops[i]
    scale = np.minimum(*(squared_lengths(apart, here.precision[e]) for e in (i, j)))
    close = scale < _NEAR**2
    i, j, apart, scale = i[close], j[close], apart[close], scale[close]
    between = (tops[i][:, None] + _ALONG[:, None] * apart[:, None]).reshape(-1, tops.shape[1])
    lowest = mixture.log_density(between).reshape(-1, len(_ALONG)).min(axis=1)
    flat = lowest >= np.minimum(here.log_density[i], here.log_density[j]) - _FLAT
    same = np.eye(len(tops), dtype=bool)
    same[i, j] = flat | (scale < _SAME**2)
    return np.asarray(connected_components(same, directed=False)[1], dtype=np.int64)
