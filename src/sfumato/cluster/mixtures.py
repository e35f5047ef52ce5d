"""From released centres to a released Gaussian mixture: rounds of noisy moments. Shared by all mixtures.

A round assigns rows to the components of the mixture so far and releases, for each, its size, the sum and
the second moments of the displacements from its mean, clipped to a radius that follows from its covariance.
They are released together, so one joint sensitivity pays for all, whatever the number of components.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.budget import Plan, Step
from sfumato.cluster.distances import Reach, distance_edges
from sfumato.cluster.shrinkage import shrunk_means
from sfumato.curator import Curator, MomentShape, NoisyMoments, moments_sensitivity
from sfumato.domain import Domain, FloatArray
from sfumato.models import CentreModel, MixtureModel
from sfumato.partition import GaussianCells, Partition, Voronoi

COVARIANCE_SHARE = Fraction(1, 4)  # of the budget, for the covariances of centres
SPREAD_SHARE = Fraction(1, 20)  # of the moments, for the radius of the first round
WITHIN_FIRST_RADIUS = 0.9
RADIUS = 2.0  # of the later rounds, in root mean squared distances from the mean
VISIBLE = 1.5  # a size below so many standard deviations of its noise counts as these
BINS_PER_OCTAVE, N_OCTAVES = 3, 16
SMALLEST = 1e-3  # standard deviation of a component along any direction, at least, in half widths


def with_moments(
    plan: Plan,
    domain: Domain,
    share: Fraction,
    n_rounds: int,
    shape: MomentShape,
    *,
    soft: bool,
    n_components: int,
) -> Plan:
    """A plan that releases centres, with `share` of the budget kept for the steps of `fit_mixture`."""
    sensitivity = moments_sensitivity(domain, shape, soft=soft, n_components=n_components)
    spread = SPREAD_SHARE * share
    return Plan(
        *(scaled(step, 1 - share) for step in plan.steps),
        Step("spread", spread),
        Step("moments", share - spread, repeats=n_rounds, sensitivity=sensitivity),
    )


def with_covariances(plan: Plan, domain: Domain, shape: MomentShape = "diag") -> Plan:
    """A plan that releases centres, with a quarter of the budget kept for `given_covariances`."""
    return with_moments(plan, domain, COVARIANCE_SHARE, 1, shape, soft=False, n_components=1)


def given_covariances(curator: Curator, model: CentreModel, shape: MomentShape = "diag") -> MixtureModel:
    """Mixture around the centres of a model, by one round of moments of the rows that are nearest to each."""
    return fit_mixture(curator, model.cluster_centers, 1, shape, soft=False)


def scaled(step: Step, factor: Fraction) -> Step:
    """The same step for a part of its share."""
    return Step(step.name, Fraction(step.share) * factor, step.repeats, step.sensitivity, step.selection)


def fit_mixture(
    curator: Curator, centers: FloatArray, n_rounds: int, shape: MomentShape, *, soft: bool
) -> MixtureModel:
    """Mixture around released centres.

    Parameters
    ----------
    curator : Curator
        Whose plan `with_moments` made, for the same rounds, shape and assignment.
    centers : float array of shape (k, d)
    n_rounds : int
    shape : {"full", "diag", "spherical"}
        Of the covariances.
    soft : bool
        Share rows among components by their responsibilities, from the second round on.
    """
    edges = distance_edges(curator.domain, BINS_PER_OCTAVE, N_OCTAVES)
    around: Partition = Voronoi(centers)
    reach = Reach.read(curator.distances("spread", around, centers, edges).values, edges)
    means, radii = centers, np.full(len(centers), reach.holding(WITHIN_FIRST_RADIUS))
    for i in range(n_rounds):
        noisy = curator.moments("moments", around, means, radii, shape, soft=soft and i > 0)
        model = _mixture_of(curator.domain, means, radii, noisy)
        means = model.means
        around = GaussianCells.of(model.weights, means, model.covariances)
        radii = RADIUS * np.sqrt(np.trace(model.covariances, axis1=1, axis2=2))
    return model


def _mixture_of(domain: Domain, origins: FloatArray, radii: FloatArray, noisy: NoisyMoments) -> MixtureModel:
    """Valid mixture from noisy moments: weights on the simplex, means in the domain, covariances definite."""
    sizes = np.maximum(noisy.sizes, max(1.0, VISIBLE * noisy.size_std))
    moves = shrunk_means(noisy.sums, sizes, noisy.sum_std)
    means = domain.clip(origins + moves)
    noise = noisy.second_std / sizes
    covariances = _covariances(noisy.seconds / _like(sizes, noisy.seconds), moves, noise)
    smallest = np.maximum(noise, (SMALLEST * float(domain.half_width.min())) ** 2)
    weights = np.maximum(noisy.sizes, max(1.0, noisy.size_std / 4))
    counts = np.maximum(noisy.sizes, 0.0)
    return MixtureModel(weights / weights.sum(), means, _definite(covariances, smallest), counts)


def _covariances(seconds: FloatArray, moves: FloatArray, noise: FloatArray) -> FloatArray:
    """Centred second moments as matrices, shrunk towards a sphere where they differ from it by noise only."""
    d = moves.shape[1]
    if seconds.ndim == 1:
        spheres = (seconds - (moves**2).sum(axis=1)) / d
        return np.asarray(spheres[:, None, None] * np.eye(d))
    if seconds.ndim == 2:
        seconds = seconds[:, :, None] * np.eye(d)
        centred = seconds - (moves**2)[:, :, None] * np.eye(d)
        n_entries = d
    else:
        centred = seconds - moves[:, :, None] * moves[:, None, :]
        n_entries = d * d
    spheres = (np.trace(centred, axis1=1, axis2=2) / d)[:, None, None] * np.eye(d)
    apart = centred - spheres
    energy = np.maximum((apart**2).sum(axis=(1, 2)), 1e-300)
    kept = np.maximum(0.0, 1.0 - n_entries * noise**2 / energy)
    return np.asarray(spheres + kept[:, None, None] * apart)


def _definite(covariances: FloatArray, smallest: FloatArray) -> FloatArray:
    """Symmetric matrices with eigenvalues of at least `smallest`."""
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, smallest[:, None])
    matrices = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray((matrices + matrices.transpose(0, 2, 1)) / 2)


def _like(sizes: FloatArray, seconds: FloatArray) -> FloatArray:
    return sizes.reshape(-1, *(1,) * (seconds.ndim - 1))
