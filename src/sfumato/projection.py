"""Public random projections."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sfumato.domain import Ball, Domain, FloatArray
from sfumato.domain.arrays import checked
from sfumato.domain.partitions import project
from sfumato.errors import DataError, ParameterError

_ROUNDING = 1e-9  # relative allowance for sums of up to 2^20 products


def orthonormal(n_components: int, n_features: int, seed: int) -> FloatArray:
    """Public matrix of shape (n_components, n_features) with random orthonormal rows."""
    gaussian = np.random.default_rng(seed).normal(size=(n_features, n_components))
    rows: FloatArray = np.ascontiguousarray(np.linalg.qr(gaussian)[0].T)
    return rows


class RandomProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Project rows to a few public random directions.

    Noise grows with the number of columns, and random directions keep clusters apart, so that clustering a
    projection may be worth more than clustering all columns. The directions are orthonormal and drawn from a
    public seed; rows are brought into the domain first.

    Parameters
    ----------
    n_components : int
        Number of directions, at most the number of columns.
    bounds : (low, high) or Ball
        Public bounds of the columns, never read off the data.
    seed : int
        Public seed of the directions. It has nothing to do with noise and may be published.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, d)
        The directions.
    bounds_ : Ball
        Public ball that holds every projected row: the `bounds` of an estimator that is fitted on them.
    n_features_in_ : int

    Privacy
    -------
    A public linear map of each row by itself: tables that differ in one row are projected to tables that
    differ in one row, so that the guarantee of whatever is fitted on projected rows holds for the rows
    themselves. ``fit`` learns nothing but the number of columns, and spends nothing. What ``transform``
    returns is as private as the rows that went in: never publish it. Proof: docs/proofs/kmeans.md.

    Examples
    --------
    >>> from sfumato import GridKMeans
    >>> from sfumato.datasets import separated_gaussians
    >>> from sfumato.projection import RandomProjection
    >>> X, _ = separated_gaussians(2000, n_clusters=4, n_features=20, random_state=0)
    >>> directions = RandomProjection(2, bounds=(-1, 1)).fit(X)
    >>> model = GridKMeans(n_clusters=4, bounds=directions.bounds_, random_state=0)
    >>> model.fit(directions.transform(X)).cluster_centers_.shape
    (4, 2)
    >>> directions.inverse_transform(model.cluster_centers_).shape
    (4, 20)
    """

    def __init__(self, n_components: int = 2, *, bounds: object = None, seed: int = 0) -> None:
        self.n_components = n_components
        self.bounds = bounds
        self.seed = seed

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Draw the directions for as many columns as `X` has. Its values are not used.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        self._checked(X, reset=True)
        d = int(self.n_features_in_)
        self._check_parameters(d)
        self._domain = Domain.from_bounds(self.bounds, d)
        self.components_ = orthonormal(self.n_components, d, self.seed)
        self.bounds_ = _ball_around(self._domain, self.components_)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Projected rows, after clipping to the domain. Not private.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "components_")
        return project(self._domain.clip(self._checked(X, reset=False)), self.components_)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Points of the domain that project to the given ones, as near to its middle as possible.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
            Projected rows or, more to the point, released centres of them.
        """
        check_is_fitted(self, "components_")
        points = checked(lambda: check_array(X, dtype=np.float64, ensure_min_samples=0))
        if points.shape[1] != len(self.components_):
            raise DataError(f"`X` must have {len(self.components_)} columns, got {points.shape[1]}")
        middle = self._domain.midpoint
        return self._domain.clip(middle + (points - self.components_ @ middle) @ self.components_)

    def _checked(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        return checked(lambda: validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=0))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _check_parameters(self, n_features: int) -> None:
        for name, least in (("n_components", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ParameterError(f"`{name}` must be an integer >= {least}, got {value!r}")
        if self.n_components > n_features:
            raise ParameterError(
                f"`n_components` must be at most the number of columns, got {self.n_components} for "
                f"n_features={n_features}"
            )


def _ball_around(domain: Domain, components: FloatArray) -> Ball:
    """Ball that holds the projection of the whole domain, whatever the rounding.

    Orthonormal directions shorten; each coordinate of a box is also bounded by itself.
    """
    if domain.radius is None:
        half = domain.half_width
        radius = min(float(np.linalg.norm(half)), float(np.linalg.norm(np.abs(components) @ half)))
    else:
        radius = domain.radius
    largest = float(np.maximum(np.abs(domain.low), np.abs(domain.high)).max())
    slack = _ROUNDING * (radius + np.sqrt(domain.n_features) * largest)
    return Ball(radius + float(slack), tuple((components @ domain.midpoint).tolist()))
