"""From released centres to a released Gaussian mixture, by rounds of noisy moments. Shared by all mixtures.

A round assigns rows to the components of the current mixture. For each component it releases the size, and
the sum and second moments of the displacements from its mean, clipped to a radius that depends on its
covariance. They are released together, with one joint sensitivity for any number of components.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.budget import Plan, Step
from sfumato.cluster.shared.refine import BINS_PER_OCTAVE, HISTOGRAM_SHARE, N_OCTAVES
from sfumato.cluster.shared.traits import Moments, Traits, Visible
from sfumato.curator import MomentShape, NoisyMoments, Questions, moments_sensitivity
from sfumato.domain import LARGEST_BOUND, Domain, FloatArray
from sfumato.domain.partitions import GaussianCells, Partition, Voronoi
from sfumato.errors import ParameterError
from sfumato.public.means import mean_stds, shrunk_means
from sfumato.public.mixtures.covariances import SizedComponents, centred, definite, shrunk_to_spheres
from sfumato.public.models import CentreModel, MixtureModel
from sfumato.public.reach import MOST_ROWS, Reach, distance_edges

# Tuned: docs/notes/constants.md#mixtures
COVARIANCE_SHARE = Fraction(1, 4)  # of the budget, for the covariances of centres
RADIUS = 2.0  # of the later rounds, in root mean squared distances from the mean
LEAST_SIZE = 1.5  # standard deviations of its noise: a smaller size counts as that

LARGEST_LENGTH = LARGEST_BOUND**0.5  # its square is still a number that a release may hold
MOST_COVARIANCES = 2**21  # a limit: 8 components in 512 columns take 16 s for 20,000 rows, and 400 MB
SMALLEST = 1e-3  # least standard deviation along any direction, in half widths: keeps covariances definite


def check_squares(domain: Domain) -> None:
    """Raise if covariances, which are squares of lengths, could be too large for a release."""
    if max(np.abs(domain.low).max(), np.abs(domain.high).max()) > LARGEST_LENGTH:
        raise ParameterError(
            f"`bounds` of a mixture must be at most {LARGEST_LENGTH:g} in size, got {domain.low}, "
            f"{domain.high}. Rescale the columns"
        )


def check_covariances(name: str, n_components: int, n_features: int) -> None:
    """Raise if the covariances of a mixture would be too many numbers: for each component, columns squared.

    Parameters
    ----------
    name : str
        Parameter that sets the number of components.
    n_components, n_features : int
    """
    if n_components * n_features**2 > MOST_COVARIANCES:
        raise ParameterError(
            f"the covariances of `{name}`={n_components} components in {n_features} columns are "
            f"{n_components * n_features**2:,} numbers, above the limit of {MOST_COVARIANCES:,}: use a "
            "PrivatePCA or a RandomProjection before it, fewer components, or a method that has only centres "
            "(LocalSearchKMeans)"
        )


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
    """A plan for centres, with `share` of the budget reserved for the steps of `fit_mixture`."""
    sensitivity = moments_sensitivity(domain, shape, soft=soft, n_components=n_components)
    spread = HISTOGRAM_SHARE * share
    return Plan(
        *(step.scaled(1 - share) for step in plan.steps),
        Step("spread", spread),
        Step("moments", share - spread, repeats=n_rounds, sensitivity=sensitivity),
    )


def with_covariances(plan: Plan, domain: Domain, shape: MomentShape = "diag") -> Plan:
    """A plan for centres, with a quarter of the budget reserved for `given_covariances`."""
    return with_moments(plan, domain, COVARIANCE_SHARE, 1, shape, soft=False, n_components=1)


def given_covariances(curator: Questions, model: CentreModel, shape: MomentShape = "diag") -> MixtureModel:
    """Mixture around the centres of a model, by one round of moments of the rows nearest to each."""
    return fit_mixture(curator, model.cluster_centers, 1, shape, soft=False)


def moments_traits() -> Traits:
    """What a forecast needs to know about `fit_mixture`."""
    step = "moments"
    return Traits((Visible(step, LEAST_SIZE),), step, moments=Moments(step, MOST_ROWS, RADIUS))


def fit_mixture(
    curator: Questions, centers: FloatArray, n_rounds: int, shape: MomentShape, *, soft: bool
) -> MixtureModel:
    """Mixture around released centres.

    Parameters
    ----------
    curator : Questions
        Its plan must come from `with_moments`, for the same rounds, shape and assignment.
    centers : float array of shape (k, d)
    n_rounds : int
    shape : {"full", "diag", "spherical"}
        Shape of the covariances.
    soft : bool
        Share rows among components by their responsibilities, from the second round on.
    """
    edges = distance_edges(curator.domain, BINS_PER_OCTAVE, N_OCTAVES)
    around: Partition = Voronoi(centers)
    reach = Reach.read(curator.distances("spread", around, centers, edges).values, edges)
    means, radii = centers, np.full(len(centers), reach.holding(MOST_ROWS))
    for i in range(n_rounds):
        noisy = curator.moments("moments", around, means, radii, shape, soft=soft and i > 0)
        model = _mixture_of(curator.domain, means, radii, noisy)
        means = model.means
        around = GaussianCells.of(model.weights, means, model.covariances)
        radii = RADIUS * np.sqrt(np.trace(model.covariances, axis1=1, axis2=2))
    return model


def _mixture_of(domain: Domain, origins: FloatArray, radii: FloatArray, noisy: NoisyMoments) -> MixtureModel:
    """Valid mixture from noisy moments: weights on the simplex, means in the domain, covariances definite."""
    sizes = np.maximum(noisy.sizes, max(1.0, LEAST_SIZE * noisy.size_std))
    moves = shrunk_means(noisy.sums, sizes, noisy.sum_std)
    means = domain.clip(origins + moves)
    noise = noisy.second_std / sizes
    seconds = noisy.seconds / sizes.reshape(-1, *(1,) * (noisy.seconds.ndim - 1))
    covariances = shrunk_to_spheres(centred(seconds, moves), noise, is_full=seconds.ndim == 3)
    smallest = np.maximum(noise, (SMALLEST * float(domain.half_width.min())) ** 2)
    return MixtureModel.sized(
        SizedComponents(
            means,
            definite(covariances, smallest),
            noisy.sizes,
            np.full(len(means), noisy.size_std),
            mean_stds(noisy.sums, sizes, noisy.sum_std, noisy.size_std),
        )
    )
