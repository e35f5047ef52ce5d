"""Gaussian mixtures as functions: density, gradient and Hessian, in logarithms. Released values only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domain import LARGEST_BOUND, FloatArray, IntArray
from sfumato.errors import ParameterError
from sfumato.public.mixtures.kernels import Sums, fill_densities, fill_slopes, invert_lower

_BLOCK_BYTES = 2**21  # points are taken in blocks whose deviations from all means stay in the cache


class Local(NamedTuple):
    """A mixture around n points, as needed for an ascent.

    Parameters
    ----------
    log_density : float array of shape (n,)
    shares : float array of shape (n, K)
        Responsibilities of the components.
    gradient : float array of shape (n, d)
        Of the log density.
    precision : float array of shape (n, d, d)
        Mean of the components' precisions, weighted by `shares`. This is the local scale: in it, the Hessian
        of the log density is at least minus one in every direction.
    """

    log_density: FloatArray
    shares: FloatArray
    gradient: FloatArray
    precision: FloatArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of K Gaussians in d dimensions.

    Parameters
    ----------
    weights : array-like of shape (K,)
        Non-negative, with sum 1. A component of weight zero does not contribute to the density.
    means : array-like of shape (K, d)
    covariances : array-like of shape (K, d, d)
        Symmetric and positive definite.

    Examples
    --------
    >>> from sfumato.public.mixtures.mixture import Mixture
    >>> pair = Mixture([0.5, 0.5], [[-2.0], [2.0]], [[[1.0]], [[1.0]]])
    >>> pair.predict([[-3.0], [0.5]])
    array([0, 1])
    >>> pair.gradient([[0.0]])
    array([[0.]])
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    def __post_init__(self) -> None:
        for name, n_axes in (("weights", 1), ("means", 2), ("covariances", 3)):
            object.__setattr__(self, name, _finite(name, getattr(self, name), n_axes))
        n, d = self.means.shape
        if self.weights.shape != (n,) or self.covariances.shape != (n, d, d) or not n * d:
            raise ParameterError(
                "`weights`, `means` and `covariances` must have shapes (K,), (K, d) and (K, d, d) with K and "
                f"d at least 1, got {self.weights.shape}, {self.means.shape} and {self.covariances.shape}: "
                "give one weight, one mean and one full covariance matrix per component"
            )
        total = self.weights.sum()
        if (self.weights < 0).any() or abs(total - 1) > 1e-6:
            raise ParameterError(
                f"`weights` must be at least 0 with sum 1, got sum {total:.6g} and least value "
                f"{self.weights.min():.3g}: project them onto the simplex"
            )
        object.__setattr__(self, "weights", self.weights / total)
        self._factors  # noqa: B018  # raises if a covariance has no Cholesky factor

    @property
    def n_components(self) -> int:
        """Number of components, K."""
        return len(self.weights)

    @property
    def n_features(self) -> int:
        """Number of columns, d."""
        return int(self.means.shape[1])

    def log_density(self, points: ArrayLike) -> FloatArray:
        """Natural logarithm of the density at each point."""
        points = self.checked(points)
        found = np.empty(len(points))
        fill_densities(points - self.centre, self.sums, found)
        return found

    def responsibilities(self, points: ArrayLike) -> FloatArray:
        """Share of each component in the density at each point, of shape (n, K)."""
        points = self.checked(points)
        found = np.zeros((len(points), self.n_components))
        found[:, self.live] = self.local(points).shares
        return found

    def predict(self, points: ArrayLike) -> IntArray:
        """Component with the highest responsibility at each point."""
        points = self.checked(points)
        found = np.empty(len(points), dtype=np.int64)
        for rows in self.blocks(len(points)):
            found[rows] = self.live[self.log_joint(self.deviations(points[rows])).argmax(axis=1)]
        return found

    def gradient(self, points: ArrayLike) -> FloatArray:
        """Gradient of the log density at each point, of shape (n, d)."""
        return self.local(self.checked(points)).gradient

    def hessian(self, points: ArrayLike) -> FloatArray:
        """Hessian of the log density at each point, of shape (n, d, d)."""
        points = self.checked(points)
        here = self.local(points)
        return self.pull_covariance(points, here) - here.precision

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> FloatArray:
        """Draw n points. The parameters are public, so this has no privacy cost."""
        rng = np.random.default_rng(random_state)
        component = rng.choice(self.n_components, size=n, p=self.weights)
        noise = rng.standard_normal((n, self.n_features))
        spread = np.linalg.cholesky(self.covariances)
        found: FloatArray = self.means[component] + np.einsum("nij,nj->ni", spread[component], noise)
        return found

    def blocks(self, n: int) -> Iterator[slice]:
        """Slices of n points, small enough that `deviations` take little memory."""
        size = max(64, _BLOCK_BYTES // (8 * len(self.live) * self.n_features))
        return (slice(start, start + size) for start in range(0, n, size))

    @cached_property
    def live(self) -> IntArray:
        """Components of positive weight."""
        return np.flatnonzero(self.weights > 0)

    @cached_property
    def centre(self) -> FloatArray:
        """Origin for the points of `sums`, chosen so that no digits are lost to a distant origin."""
        found: FloatArray = self.means[self.live].mean(axis=0)
        return found

    @cached_property
    def sums(self) -> Sums:
        """Constants for the kernels."""
        whitened = np.einsum("ki,kij->jk", self.means[self.live] - self.centre, self._factors)
        half_log_det = np.log(np.diagonal(self._factors, axis1=1, axis2=2)).sum(axis=1)
        tops = np.log(self.weights[self.live]) + half_log_det - self.n_features / 2 * math.log(2 * math.pi)
        precisions = self._factors @ self._factors.transpose(0, 2, 1)
        factors = np.ascontiguousarray(self._factors.transpose(1, 2, 0))
        starts = (factors != 0).any(axis=2).argmax(axis=0), (precisions != 0).any(axis=0).argmax(axis=1)
        return Sums(factors, starts[0], np.ascontiguousarray(whitened), tops, precisions, starts[1])

    def deviations(self, points: FloatArray) -> FloatArray:
        """Whitened deviations of points from the means of the L live components, of shape (n, L, d)."""
        d = self.n_features
        found: FloatArray = (points - self.centre) @ self._factors.transpose(1, 0, 2).reshape(d, -1)
        found -= self.sums.whitened.T.ravel()
        return found.reshape(len(points), len(self.live), d)

    def log_joint(self, deviations: FloatArray) -> FloatArray:
        """Logarithm of weight times density of each live component, of shape (n, L)."""
        with np.errstate(over="ignore"):  # points may be far from every component
            found: FloatArray = self.sums.tops - 0.5 * np.einsum("nkd,nkd->nk", deviations, deviations)
        return found

    def local(self, points: FloatArray) -> Local:
        """Density, responsibilities, gradient and local scale at points."""
        n, d = points.shape
        found = Local(np.empty(n), np.empty((n, len(self.live))), np.empty((n, d)), np.empty((n, d, d)))
        fill_slopes(points - self.centre, self.sums, *found)
        return found

    def pulls(self, deviations: FloatArray) -> FloatArray:
        """Gradient of each live component's log density, of shape (n, L, d)."""
        found: FloatArray = np.matmul(deviations.transpose(1, 0, 2), -self._factors.transpose(0, 2, 1))
        return found.transpose(1, 0, 2)

    def pull_covariance(self, points: FloatArray, here: Local) -> FloatArray:
        """Covariance of the pulls by responsibilities: the Hessian plus the precision."""
        centred = self.pulls(self.deviations(points)) - here.gradient[:, None]
        found: FloatArray = (centred * here.shares[:, :, None]).transpose(0, 2, 1) @ centred
        return found

    @cached_property
    def _factors(self) -> FloatArray:
        """Factors F of the live components: each precision is F F^T."""
        asymmetry = np.abs(self.covariances - self.covariances.transpose(0, 2, 1)).max()
        try:
            if asymmetry > 1e-8 * np.abs(self.covariances).max():
                raise np.linalg.LinAlgError
            lower = np.linalg.cholesky(self.covariances)
        except np.linalg.LinAlgError:
            raise ParameterError(
                "`covariances` must be symmetric and positive definite, got one that is not: raise its "
                "eigenvalues to a positive floor"
            ) from None
        inverse = np.zeros((len(self.live), self.n_features, self.n_features))
        invert_lower(lower[self.live].astype(np.float64), inverse)
        return inverse.transpose(0, 2, 1)

    def checked(self, points: ArrayLike) -> FloatArray:
        """Points as an array with the mixture's columns, clipped to the largest possible domain."""
        found = _finite("points", points, 2)
        if found.shape[1] != self.n_features:
            raise ParameterError(
                f"`points` must have {self.n_features} columns, got {found.shape[1]}: "
                "use the columns of the mixture"
            )
        return found.clip(-LARGEST_BOUND, LARGEST_BOUND)


def squared_lengths(vectors: FloatArray, scales: FloatArray) -> FloatArray:
    """Squared length of each vector v under its matrix A: v^T A v."""
    found: FloatArray = np.einsum("...i,...i->...", np.matmul(scales, vectors[..., None])[..., 0], vectors)
    return found


def _finite(name: str, values: ArrayLike, n_axes: int) -> FloatArray:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"`{name}` must be an array of numbers") from None
    if found.ndim != n_axes or not np.isfinite(found).all():
        raise ParameterError(
            f"`{name}` must be an array of finite numbers with {n_axes} axes, got {found.ndim} axes or "
            "values that are not finite: remove NaN and infinity"
        )
    return found
