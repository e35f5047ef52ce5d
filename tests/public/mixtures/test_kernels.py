"""Each compiled sum against the same in plain NumPy, also with a component of tiny weight."""

import numpy as np
import pytest

from sfumato.public.mixtures import kernels
from sfumato.public.mixtures.peaks import climb, local_frame

pytestmark = pytest.mark.parametrize("d", [1, 2, 5])


@pytest.fixture
def mixture(random_mixture, d):
    whole = random_mixture(d, n_components=6, d=d)
    weights = np.where(np.arange(6) == 2, 1e-12, whole.weights)
    return type(whole)(weights / weights.sum(), whole.means, whole.covariances)


@pytest.fixture
def points(mixture, d):
    """As the kernels take them, from the centre."""
    return mixture.sample(30, 0) - mixture.centre


@pytest.fixture
def paths(mixture, d):
    """Crooked paths between means, from the centre."""
    rng = np.random.default_rng(d)
    ends = mixture.means[rng.integers(6, size=(2, 8))] - mixture.centre
    straight = ends[0][:, None] + np.linspace(0, 1, 9)[:, None] * (ends[1] - ends[0])[:, None]
    return straight + rng.normal(scale=0.1, size=straight.shape)


def around(mixture, x):
    """Log density, shares, pulls and mean precision at a point, from their definitions."""
    x = x + mixture.centre
    precisions = np.linalg.inv(mixture.covariances)
    pulls = np.einsum("kij,kj->ki", precisions, mixture.means - x)
    squares = np.einsum("ki,ki->k", pulls, mixture.means - x)
    volumes = np.linalg.det(2 * np.pi * mixture.covariances)
    parts = mixture.weights * np.exp(-squares / 2) / np.sqrt(volumes)
    shares = parts / parts.sum()
    return np.log(parts.sum()), shares, pulls, np.tensordot(shares, precisions, 1)


def along(mixture, path):
    """The same at each node of a path."""
    return [np.array(part) for part in zip(*(around(mixture, x) for x in path), strict=True)]


def curvature(mixture, x):
    """Gradient, and minus the Hessian, of the log density."""
    _, shares, pulls, precision = around(mixture, x)
    gradient = shares @ pulls
    centred = pulls - gradient
    return gradient, precision - (shares[:, None] * centred).T @ centred


def test_solve(d):
    rng = np.random.default_rng(d)
    matrix, vector = rng.normal(size=(d, d)), rng.normal(size=d)
    found = vector.copy()
    kernels.solve(matrix.copy(), found)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, vector), rtol=1e-9)


def test_solve_of_a_singular_system_is_huge_and_no_error(d):
    found = np.ones(d)
    kernels.solve(np.zeros((d, d)), found)
    assert np.abs(found).max() > 1e100


def test_invert_lower(mixture, d):
    lower, found = np.linalg.cholesky(mixture.covariances), np.zeros((6, d, d))
    kernels.invert_lower(lower, found)
    np.testing.assert_allclose(found, np.linalg.inv(lower), rtol=1e-9, atol=1e-12)


def test_slopes(mixture, points, d):
    found = np.empty(30), np.empty((30, 6)), np.empty((30, d)), np.empty((30, d, d))
    kernels.fill_slopes(points, mixture.sums, *found)
    for x, log_density, shares, gradient, precision in zip(points, *found, strict=True):
        twin = around(mixture, x)
        np.testing.assert_allclose(log_density, twin[0], rtol=1e-9)
        np.testing.assert_allclose(shares, twin[1], rtol=1e-8, atol=1e-20)
        np.testing.assert_allclose(gradient, twin[1] @ twin[2], atol=1e-9)
        np.testing.assert_allclose(precision, twin[3], rtol=1e-9, atol=1e-12)


def test_levels_along_paths(mixture, paths, d):
    levels = np.empty((8, 8 * 3 + 1))
    kernels.fill_levels(paths, 3, mixture.sums, levels)
    nodes = np.arange(9)
    for path, found in zip(paths, levels, strict=True):
        at = np.linspace(0, 8, 25)
        points = np.stack([np.interp(at, nodes, column) for column in path.T], axis=1)
        twin = [around(mixture, x)[0] for x in points]
        np.testing.assert_allclose(found, twin, rtol=1e-9)


def deepen_twin(mixture, path, left, right):
    while right - left > 1e-12:
        middle = (left + right) / 2
        node = min(int(middle), len(path) - 2)
        segment = path[node + 1] - path[node]
        gradient, _ = curvature(mixture, path[node] + (middle - node) * segment)
        left, right = (left, middle) if gradient @ segment > 0 else (middle, right)
    return path[node] + (middle - node) * segment


def test_deepen(mixture, paths, d):
    lowest, found = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.5, 8.0]), np.empty((8, d))
    kernels.deepen(paths, np.arange(8)[::-1].copy(), lowest, 1 / 3, mixture.sums, 0.0, found)
    for path, middle, position in zip(paths[::-1], lowest, found, strict=True):
        twin = deepen_twin(mixture, path, max(middle - 1 / 3, 0.0), min(middle + 1 / 3, 8.0))
        np.testing.assert_allclose(position, twin, atol=1e-9)


def spread_twin(path, precision, shares):
    apart = np.diff(path, axis=0)
    scale = precision[:-1] + precision[1:]
    lengths = np.sqrt(np.einsum("mi,mij,mj->m", apart, scale, apart))
    changes = np.abs(np.diff(shares, axis=0)).sum(axis=1)
    parts = lengths / lengths.sum() + changes / max(changes.sum(), 1e-300)
    reached = np.concatenate([[0.0], np.cumsum(parts)])
    wanted = np.linspace(0, reached[-1], len(path))
    return np.stack([np.interp(wanted, reached, column) for column in path.T], axis=1)


def test_spread(mixture, paths, d):
    for path in paths:
        _, shares, _, precision = along(mixture, path)
        found = path.copy()
        kernels.spread(found, precision, shares)
        np.testing.assert_allclose(found, spread_twin(path, precision, shares), atol=1e-9)


def push_up_twin(mixture, path, n_sweeps):
    for _ in range(n_sweeps):
        _, shares, pulls, precision = along(mixture, path)
        gradient = np.einsum("mk,mki->mi", shares, pulls)
        step = np.linalg.solve(precision, gradient[..., None])[..., 0]
        tangent = path[2:] - path[:-2]
        square = np.einsum("mi,mij,mj->m", tangent, precision[1:-1], tangent)
        rise = (tangent * gradient[1:-1]).sum(axis=1)
        step[1:-1] -= tangent * (rise / np.maximum(square, 1e-16))[:, None]
        path = spread_twin(path + step, precision, shares)
    return path


def test_push_up(mixture, paths, d):
    found = paths.copy()
    kernels.push_up(found, mixture.sums, 2)
    for path, pushed in zip(paths, found, strict=True):
        np.testing.assert_allclose(pushed, push_up_twin(mixture, path, 2), atol=1e-7)


def newton_twin(mixture, x, n_steps):
    """Newton's method in position and log parts together, on the whole linear system."""
    n, d = mixture.means.shape
    precisions = np.linalg.inv(mixture.covariances)
    logs = None
    for _ in range(n_steps):
        log_density, here, pulls, _ = around(mixture, x)
        joint = np.log(here) + log_density
        logs = joint if logs is None else logs
        shares = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        # sum_k shares_k pulls_k = 0 and logs_k = joint_k(x), in the unknowns x and logs.
        slope = (np.diag(shares) - np.outer(shares, shares)) @ pulls
        system = np.block([[-np.tensordot(shares, precisions, 1), slope.T], [-pulls, np.eye(n)]])
        step = np.linalg.solve(system, np.concatenate([-shares @ pulls, joint - logs]))
        length = np.sqrt(step[:d] @ np.tensordot(shares, precisions, 1) @ step[:d])
        step /= max(1.0, length)
        x, logs = x + step[:d], logs + step[d:]
    return x


def test_newton(mixture, points, d):
    found = points.copy()
    kernels.newton(found, mixture.sums, 2, 0.0)
    for x, moved in zip(points, found, strict=True):
        np.testing.assert_allclose(moved, newton_twin(mixture, x, 2), rtol=1e-5, atol=1e-6)


def test_frames(mixture, points, d):
    frame = local_frame(mixture, points + mixture.centre)
    for x, log_density, gradient, curvatures, directions in zip(points, *frame, strict=True):
        slope, bend = curvature(mixture, x)
        precision = around(mixture, x)[3]
        assert log_density == pytest.approx(around(mixture, x)[0])
        np.testing.assert_allclose(gradient, slope, atol=1e-9)
        np.testing.assert_allclose(directions.T @ precision @ directions, np.eye(d), atol=1e-8)
        np.testing.assert_allclose(directions.T @ bend @ directions, np.diag(curvatures), atol=1e-8)
        assert (np.diff(curvatures) >= 0).all()


def ascend_twin(mixture, x):
    """One step: Newton's, turned uphill, if the density rises along it, or else the EM step."""
    log_density, _, _, precision = around(mixture, x)
    gradient, bend = curvature(mixture, x)
    root = np.linalg.inv(np.linalg.cholesky(precision))
    curvatures, vectors = np.linalg.eigh(root @ bend @ root.T)
    slopes = vectors.T @ root @ gradient
    turned = slopes / np.abs(curvatures)
    turned /= max(1.0, np.linalg.norm(turned) / max(np.linalg.norm(slopes), 1.0))
    step = root.T @ vectors @ turned
    half, end = (around(mixture, x + part * step)[0] for part in (0.5, 1.0))
    return x + (step if end >= half >= log_density else np.linalg.solve(precision, gradient))


def test_ascend(mixture, points, d):
    found = points.copy()
    kernels.ascend(found, mixture.sums, 1, 1e-8, 1e-6)
    for x, moved in zip(points, found, strict=True):
        np.testing.assert_allclose(moved, ascend_twin(mixture, x), atol=1e-7)


def test_ascend_ends_at_peaks(mixture, points, d):
    for x in climb(mixture, points + mixture.centre) - mixture.centre:
        gradient, bend = curvature(mixture, x)
        np.testing.assert_allclose(gradient, 0, atol=1e-7)
        assert (np.linalg.eigvalsh(bend) > 0).all()


def test_ascend_leaves_a_saddle(isotropic, d):
    means = np.zeros((3, d))
    means[:, 0] = -3.0, 0.0, 3.0
    mixture = isotropic(means, weights=[0.5 - 1e-4, 2e-4, 0.5 - 1e-4])
    top = climb(mixture, np.zeros((1, d)))[0]
    assert abs(top[0]) == pytest.approx(3.0, abs=0.01)
