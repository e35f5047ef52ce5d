"""Public random projections."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sfumato.budget import PrivacyStatement
from sfumato.budget.bought import Bought, plain, purchases
from sfumato.budget.paid_rows import check_cost_follows, paid_rows
from sfumato.domain import Ball, Domain, FloatArray
from sfumato.domain.arrays import checked
from sfumato.domain.row_products import project
from sfumato.errors import DataError, ParameterError

_ROUNDING = 1e-9  # relative allowance for sums of up to 2^20 products


def orthonormal(n_components: int, n_features: int, seed: int) -> FloatArray:
    """Public matrix of shape (n_components, n_features) with random orthonormal rows."""
    gaussian = np.random.default_rng(seed).normal(size=(n_features, n_components))
    rows: FloatArray = np.ascontiguousarray(np.linalg.qr(gaussian)[0].T)
    return rows


class RandomProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Project rows to a few public random directions.

    Noise grows with the number of columns, while random directions keep clusters apart. Clustering a
    projection can therefore beat clustering all columns. The directions are orthonormal and drawn from a
    public seed. Rows are first clipped to the bounds.

    Parameters
    ----------
    n_components : int
        Number of directions, at most the number of columns.
    bounds : (low, high) or Ball
        Public bounds of the columns, never read off the data, or the result of `estimate_bounds`.
    seed : int
        Public seed of the directions. It is unrelated to the noise and may be published.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, d)
        The directions.
    bounds_ : Ball
        Public ball that contains every projected row. Use it as the `bounds` of an estimator fitted on them.
        If `bounds` were bought, it carries what they cost into the release.
    n_features_in_ : int

    Privacy
    -------
    A public linear map is applied to each row separately, so tables that differ in one row stay tables that
    differ in one row. The guarantee of anything fitted on projected rows therefore holds for the original
    rows. ``fit`` learns only the number of columns and spends nothing. The result of ``transform`` is as
    sensitive as its input: never publish it. Proof: docs/proofs/kmeans.md.

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
        """Draw the directions for the number of columns in `X`. Its values are not used.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        check_cost_follows(X, [self.bounds])
        self._checked(X, reset=True)
        d = int(self.n_features_in_)
        self._check_parameters(d)
        self._domain = Domain.from_bounds(plain(self.bounds), d)
        self.components_ = orthonormal(self.n_components, d, self.seed)
        self.bounds_ = with_cost(ball_around(self._domain, self.components_), purchases(self.bounds))
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Projected rows, after clipping to the domain. Not private.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "components_")
        rows = self._domain.clip(self._checked(X, reset=False))
        return paid_rows(project(rows, self.components_), purchases(self.bounds))

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Points that project to the given ones, as near to the middle of the bounds as possible.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
            Projected rows or, more usefully, released centres.
        """
        check_is_fitted(self, "components_")
        points = projected_points(X, len(self.components_))
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


def with_cost(ball: Ball, paid: tuple[PrivacyStatement, ...]) -> Ball:
    """The ball, whose numbers state what was paid for what it depends on."""
    if not paid:
        return ball
    center = tuple(Bought(number, paid) for number in ball.center)  # type: ignore[union-attr]
    return Ball(Bought(ball.radius, paid), center)  # type: ignore[arg-type]


def projected_points(X: ArrayLike, n_components: int) -> FloatArray:
    """Points of a projection, checked."""
    points: FloatArray = checked(lambda: check_array(X, dtype=np.float64, ensure_min_samples=0))
    if points.shape[1] != n_components:
        raise DataError(f"`X` must have {n_components} columns, got {points.shape[1]}")
    return points


def ball_around(domain: Domain, components: FloatArray) -> Ball:
    """Ball that contains the projection of the whole domain, whatever the rounding.

    Orthonormal directions never lengthen a vector. For a box, each coordinate also has a bound of its own.
    """
    if domain.radius is None:
        half = domain.half_width
        radius = min(float(np.linalg.norm(half)), float(np.linalg.norm(np.abs(components) @ half)))
    else:
        radius = domain.radius
    largest = float(np.maximum(np.abs(domain.low), np.abs(domain.high)).max())
    slack = _ROUNDING * (radius + np.sqrt(domain.n_features) * largest)
    return Ball(radius + float(slack), tuple((components @ domain.midpoint).tolist()))
