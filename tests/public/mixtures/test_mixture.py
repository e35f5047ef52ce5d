"""The mixture as a function: against SciPy's densities and finite differences."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sfumato.errors import ParameterError
from sfumato.public.mixtures.mixture import Mixture


def log_density_twin(mixture, points):
    parts = zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
    return np.log(sum(w * multivariate_normal(m, c).pdf(points) for w, m, c in parts))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_log_density_is_that_of_scipy(random_mixture, d):
    mixture = random_mixture(0, n_components=6, d=d)
    points = mixture.sample(50, 1)
    np.testing.assert_allclose(mixture.log_density(points), log_density_twin(mixture, points), rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_gradient_and_hessian_are_finite_differences(random_mixture, d):
    mixture = random_mixture(1, n_components=5, d=d)
    points, h = mixture.sample(20, 2), 1e-5
    for axis in range(d):
        ahead, behind = (points + sign * h * np.eye(d)[axis] for sign in (1, -1))
        slope = (mixture.log_density(ahead) - mixture.log_density(behind)) / (2 * h)
        bend = (mixture.gradient(ahead) - mixture.gradient(behind)) / (2 * h)
        np.testing.assert_allclose(mixture.gradient(points)[:, axis], slope, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mixture.hessian(points)[:, axis], bend, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_zero", [[], [(0, 1)], [(0, 1), (0, 2), (1, 2)]])
def test_zeros_in_covariances_change_nothing_but_the_time(random_mixture, is_zero):
    mixture = random_mixture(1, 5, 3)
    covariances = mixture.covariances + 2 * np.eye(3)
    for i, j in is_zero:
        covariances[:, i, j] = covariances[:, j, i] = 0
    mixture = Mixture(mixture.weights, mixture.means, covariances)
    points = mixture.sample(20, 0)
    np.testing.assert_allclose(mixture.log_density(points), log_density_twin(mixture, points))
    moves = 1e-5 * np.eye(3)
    slopes = [(mixture.log_density(points + by) - mixture.log_density(points - by)) / 2e-5 for by in moves]
    np.testing.assert_allclose(mixture.gradient(points), np.stack(slopes, axis=1), atol=1e-7)
    scale = np.einsum("nk,kij->nij", mixture.responsibilities(points), np.linalg.inv(covariances))
    np.testing.assert_allclose(mixture.local(points).precision, scale, atol=1e-9)


def test_nothing_vanishes_far_away(random_mixture):
    mixture = random_mixture(2, n_components=4, d=3)
    far = np.full((1, 3), 1e6)
    assert np.isfinite(mixture.log_density(far)).all()
    assert np.isfinite(mixture.gradient(far)).all()
    assert mixture.responsibilities(far).sum() == pytest.approx(1)


def test_responsibilities_name_the_predicted_component_and_skip_weightless_ones(random_mixture):
    whole = random_mixture(3, n_components=4, d=2)
    weights = np.insert(whole.weights, 1, 0.0)
    means, covariances = (np.insert(part, 1, part[0], axis=0) for part in (whole.means, whole.covariances))
    mixture = Mixture(weights, means, covariances)
    points = mixture.sample(100, 0)
    shares = mixture.responsibilities(points)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares[:, 1] == 0).all()
    np.testing.assert_array_equal(mixture.predict(points), shares.argmax(axis=1))
    np.testing.assert_allclose(mixture.log_density(points), whole.log_density(points))


def test_samples_have_the_moments_of_the_mixture(random_mixture):
    mixture = random_mixture(4, n_components=3, d=2)
    points = mixture.sample(200_000, 0)
    mean = mixture.weights @ mixture.means
    np.testing.assert_allclose(points.mean(axis=0), mean, atol=0.05)
    apart = mixture.means - mean
    second = mixture.covariances + apart[:, :, None] * apart[:, None]
    np.testing.assert_allclose(
        np.cov(points.T), np.tensordot(mixture.weights, second, 1), rtol=0.03, atol=0.05
    )


@pytest.mark.parametrize(
    ("weights", "means", "covariances", "name"),
    [
        ([0.5, 0.6], [[0.0], [1.0]], [[[1.0]], [[1.0]]], "weights"),
        ([1.5, -0.5], [[0.0], [1.0]], [[[1.0]], [[1.0]]], "weights"),
        ([1.0], [[0.0], [1.0]], [[[1.0]], [[1.0]]], "weights"),
        ([1.0], [[np.nan]], [[[1.0]]], "means"),
        ([1.0], [0.0], [[[1.0]]], "means"),
        ([1.0], "far", [[[1.0]]], "means"),
        ([1.0], [[0.0]], [[[-1.0]]], "covariances"),
        ([1.0], [[0.0]], [[[0.0]]], "covariances"),
        ([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.0, 1.0]]], "covariances"),
        ([1.0], [[0.0, 0.0]], [[[1.0]]], "covariances"),
        ([], np.empty((0, 2)), np.empty((0, 2, 2)), "weights"),
    ],
)
def test_refuses_what_is_no_mixture(weights, means, covariances, name):
    with pytest.raises(ParameterError, match=f"`{name}`"):
        Mixture(weights, means, covariances)


def test_refuses_points_of_other_columns(random_mixture):
    with pytest.raises(ParameterError, match="`points` must have 2 columns, got 3"):
        random_mixture(0, n_components=2, d=2).predict(np.zeros((1, 3)))
