"""Mixtures to test on."""

import numpy as np
import pytest

from sfumato.public.mixtures.mixture import Mixture


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


def _odd_mixture(seed):
    """Components that overlap, coincide, are nearly flat, of tiny weight, or of very different scales."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.choice([1, 2, 3, 5, 10, 30])), int(rng.integers(1, 40))
    axes = np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    variances = rng.choice([1.5, 4.0, 1e2, 1e6]) ** rng.uniform(-1, 1, size=(n, d))
    means = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 3.0, 30.0])
    weights = rng.dirichlet(np.ones(n))
    kind = seed % 6
    if kind == 1:
        variances[rng.integers(n)] *= 10.0 ** rng.uniform(-8, 8)
    elif kind == 2:
        variances[:, 0] = 1e-10 * variances.max(axis=1)
    elif kind == 3:
        means = means[rng.integers(max(1, n // 3), size=n)]
    elif kind == 4:
        weights = np.where(rng.random(n) < 0.5, 1e-6, weights)
    elif kind == 5:
        scale = 10.0 ** rng.uniform(-3, 3, size=d)
        means, axes = means * scale, axes * scale[:, None]
    covariances = np.einsum("kij,kj,klj->kil", axes, variances, axes)
    covariances = (covariances + covariances.transpose(0, 2, 1)) / 2
    return Mixture(weights / weights.sum(), means, covariances)


@pytest.fixture
def odd_mixture():
    return _odd_mixture


@pytest.fixture
def random_mixture():
    return _random_mixture


@pytest.fixture
def isotropic():
    return _isotropic
