"""Private principal components: where rows are, how far they reach, and along which directions they vary."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sfumato.budget import Step
from sfumato.curator import NoisySums, Questions, moments_sensitivity, sums_sensitivity
from sfumato.domain import Domain, FloatArray
from sfumato.domain.partitions import Voronoi
from sfumato.public.means import shrunk_means
from sfumato.public.mixtures.covariances import centred
from sfumato.public.reach import Reach, distance_edges

# Chosen on simulated tables with 5 to 60 columns: docs/pipelines.md
MEAN_SHARE, DISTANCE_SHARE = Fraction(1, 10), Fraction(1, 20)  # of the share; the rest buys moments
WITHIN = 0.9  # share of the rows whose displacements are not clipped
BINS_PER_OCTAVE, N_OCTAVES = 3, 16


class Frame(NamedTuple):
    """Where the rows of a table are. Released."""

    middle: FloatArray  # (d,); noisy mean
    reach: float  # radius around it that contains most rows
    rows: float  # noisy number of rows


class Components(NamedTuple):
    """Released principal components, in measured units."""

    mean: FloatArray  # (d,)
    mean_std: float  # noise in each coordinate of the mean
    directions: FloatArray  # (p, d); orthonormal, the one of the largest variance first
    variances: FloatArray  # (p,)
    total: float  # variance over all directions
    trace: float  # the same without a bias from the noise
    trace_std: float  # noise in it
    noise: float  # largest variance that noise alone is likely to show


def frame_steps(domain: Domain, share: Fraction) -> tuple[Step, ...]:
    """Steps that `ask_frame` asks, for `share` of the whole budget."""
    of_mean = MEAN_SHARE / (MEAN_SHARE + DISTANCE_SHARE)
    return (
        Step("mean", of_mean * share, sensitivity=sums_sensitivity(domain)),
        Step("distances", (1 - of_mean) * share),
    )


def component_steps(domain: Domain, share: Fraction) -> tuple[Step, ...]:
    """Steps that `ask_frame` and `ask_components` ask, for `share` of the whole budget."""
    frame = MEAN_SHARE + DISTANCE_SHARE
    return (
        *frame_steps(domain, frame * share),
        Step("moments", (1 - frame) * share, sensitivity=moments_sensitivity(domain, "full")),
    )


def ask_frame(curator: Questions) -> Frame:
    """Noisy mean of all rows, and the radius around it that contains most of them."""
    domain, everything = curator.domain, Voronoi(curator.domain.middle[None])
    sums = curator.sums("mean", everything, domain.middle[None], np.array([domain.reach]))
    middle = domain.clip(domain.middle + shrunk_means(sums.sums, _sizes(sums), sums.sum_std))
    edges = distance_edges(domain, BINS_PER_OCTAVE, N_OCTAVES)
    noisy = curator.distances("distances", everything, middle, edges)
    reach = Reach.read(noisy.values, edges, noisy.std).holding(WITHIN)
    return Frame(middle[0], reach, float(sums.sizes[0]))


def ask_components(curator: Questions, frame: Frame, n_components: int) -> Components:
    """Principal components of the rows within a frame.

    Displacements from a noisy mean are short, and the noise in their products grows with the square of the
    radius to which they are clipped. So the frame is bought first.
    """
    domain, origin = curator.domain, frame.middle[None]
    moments = curator.moments("moments", Voronoi(origin), origin, np.array([frame.reach]), "full")
    sizes = _sizes(moments)
    move = shrunk_means(moments.sums, sizes, moments.sum_std)
    covariance = centred(moments.seconds / sizes[:, None, None], move)[0]
    values, vectors = np.linalg.eigh(covariance)
    directions = vectors[:, ::-1][:, :n_components].T
    largest = directions[np.arange(n_components), np.abs(directions).argmax(axis=1)]
    d = domain.n_features
    return Components(
        domain.clip(origin + move)[0],
        float(moments.sum_std[0] / sizes[0]),
        np.ascontiguousarray(directions * np.where(largest < 0, -1.0, 1.0)[:, None]),
        np.maximum(values[::-1][:n_components], 0.0),
        float(np.maximum(values, 0.0).sum()),
        float(values.sum()),
        math.sqrt(2 * d)
        * float(moments.second_std[0] / sizes[0]),  # squares have at most sqrt(2) times the noise
        # Norm of a symmetric matrix of d x d independent entries.
        2 * math.sqrt(d) * float(moments.second_std[0] / sizes[0]),
    )


def _sizes(noisy: NoisySums) -> FloatArray:
    """Numbers of rows to divide by: a number lost in its noise is replaced by the noise."""
    return np.maximum(noisy.sizes, max(1.0, noisy.size_std))
