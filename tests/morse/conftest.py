"""Mixtures to test on."""

import numpy as np
import pytest

from sfumato.morse import Mixture


def _random_mixture(seed, n_components, d, spread=1.5, elongation=3.0):
    """Components of random size, direction and elongation in a cube that holds them loosely."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(n_components, d, d)))[0]
    variances = elongation ** rng.uniform(-1, 1, size=(n_components, d))
    covariances = np.einsum("kij,kj,klj->kil", axes, variances, axes)
    means = rng.uniform(-1, 1, size=(n_components, d)) * spread * n_components ** (1 / d)
    return Mixture(rng.dirichlet(np.full(n_components, 2.0)), means, covariances)


def _isotropic(means, variance=1.0, weights=None):
    """Equal round components."""
    means = np.asarray(means, dtype=float)
    n, d = means.shape
    weights = np.full(n, 1 / n) if weights is None else weights
    return Mixture(weights, means, np.tile(variance * np.eye(d), (n, 1, 1)))


@pytest.fixture
def random_mixture():
    return _random_mixture


@pytest.fixture
def isotropic():
    return _isotropic
