"""Public scaling of columns, for pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sfumato.budget.bought import Bought, plain, purchases
from sfumato.budget.paid_rows import paid_rows
from sfumato.domain import Ball, Domain, FloatArray, Unit
from sfumato.domain.arrays import checked, numbers
from sfumato.domain.columns import check_names, names_columns, read_bounds
from sfumato.errors import DataError, ParameterError

LEAST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e6  # beyond, a column does not count beside others, or alone does


class PublicScaler(TransformerMixin, BaseEstimator):
    """Map the public bounds of each column to 0 and 1.

    Use it where scikit-learn's pipelines have a `StandardScaler` or `MinMaxScaler`. Those learn from all
    rows, and a clustering behind them is no longer private. Estimators of this library measure columns in
    units of their bounds by themselves, so they need no scaler. It is for what stands between: projections,
    or transformers of other libraries. Values outside the bounds are mapped to numbers outside 0 to 1.

    Parameters
    ----------
    bounds : (low, high), Ball or mapping
        Public bounds of the columns, never read off the data, or the result of `estimate_bounds`. A mapping
        chooses numeric columns of a data frame by name; the others are dropped. A ball is mapped to one of
        radius 1/2 around 1/2.
    weights : mapping or sequence of float, optional
        A column of weight 2 is mapped to 0 to 2, so that it counts twice. By name, or one for each column.

    Attributes
    ----------
    bounds_ : (low, high) or Ball
        Public bounds of the scaled columns. Use them as the `bounds` of an estimator fitted on these, with
        ``scale=None`` if there are weights. If `bounds` were bought, they carry what those cost.
    n_features_in_ : int

    Privacy
    -------
    Each value is mapped by public numbers alone, so tables that differ in one row stay tables that differ in
    one row. ``fit`` learns only the number and the names of the columns, and spends nothing. The result of
    ``transform`` is as sensitive as its input. Proof: docs/proofs/projections.md.

    Examples
    --------
    >>> from sfumato import PublicScaler
    >>> scaler = PublicScaler(bounds=([0, 0], [100, 1_000_000]))
    >>> scaler.fit_transform([[50, 250_000], [100, 0]])
    array([[0.5 , 0.25],
           [1.  , 0.  ]])
    """

    def __init__(
        self, bounds: object = None, *, weights: Mapping[str, float] | Sequence[float] | None = None
    ) -> None:
        self.bounds = bounds
        self.weights = weights

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Read the number and the names of the columns. Values are not used.

        Parameters
        ----------
        X : array-like of shape (n, d)
            An array, or a data frame with numeric columns.
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        self._names = self._chosen_names()
        if self._names:
            domain = read_bounds(plain(self.bounds), None, Unit())[1]
            self._of_frame(X, self._names, reset=True)
        else:
            self._checked(X, reset=True)
            domain = Domain.from_bounds(plain(self.bounds), int(self.n_features_in_))
        self._origin, widths = np.array(domain.low), 2 * domain.half_width
        self._step = widths / self._checked_weights(len(widths))
        self.bounds_ = self._scaled_bounds(domain)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Scaled rows. Missing values stay missing. Not private.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "bounds_")
        rows = self._of_frame(X, self._names, reset=False) if self._names else self._checked(X, reset=False)
        return paid_rows((rows - self._origin) / self._step, purchases(self.bounds))

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Rows or released centres in the units of the data.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "bounds_")
        options: dict[str, Any] = {"dtype": np.float64, "ensure_min_samples": 0, "ensure_all_finite": False}
        points: FloatArray = checked(lambda: check_array(X, **options))
        if points.shape[1] != len(self._step):
            raise DataError(f"`X` must have {len(self._step)} columns, got {points.shape[1]}")
        return np.asarray(points * self._step + self._origin)

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Names of the scaled columns.

        Parameters
        ----------
        input_features : None
            Ignored unless the columns have no names.
        """
        check_is_fitted(self, "bounds_")
        known = self._names or list(getattr(self, "feature_names_in_", ()))
        named = known or input_features or [f"x{j}" for j in range(len(self._step))]
        return np.asarray(named, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _scaled_bounds(self, domain: Domain) -> Any:
        """Bounds of the scaled columns, whose numbers state what `bounds` cost if these were bought."""
        paid = purchases(self.bounds)

        def carrying(number: float) -> Any:
            return Bought(number, paid) if paid else number

        if domain.radius is not None:
            return Ball(carrying(0.5), carrying(0.5))
        weights = (2 * domain.half_width / self._step).tolist()
        return [carrying(0.0) for _ in weights], [carrying(weight) for weight in weights]

    def _chosen_names(self) -> list[str]:
        """Columns that a mapping chooses; empty if `bounds` apply to all columns."""
        if not names_columns(self.bounds):
            return []
        columns = read_bounds(plain(self.bounds), None, Unit())[0]
        for coordinate in columns.coordinates:
            if coordinate.kind != "number":
                raise ParameterError(
                    f"`bounds` of a PublicScaler must be numbers, got others for {coordinate.column!r}. Give "
                    "the mapping to the estimator itself: it reads dates and categories, and scales them"
                )
        return [coordinate.column for coordinate in columns.coordinates]

    def _of_frame(self, X: Any, names: list[str], *, reset: bool) -> FloatArray:
        """The chosen columns of a data frame as numbers."""
        present = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))]
        if not present:
            raise DataError("`X` must be a data frame with named columns, because `bounds` name columns")
        check_names(names, present)
        if reset:
            self.n_features_in_ = len(present)
            self.feature_names_in_ = np.array(present, dtype=object)
        return np.column_stack([numbers(np.asarray(X[name])) for name in names])

    def _checked(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        options: dict[str, Any] = {"dtype": np.float64, "ensure_min_samples": 0, "ensure_all_finite": False}
        found: FloatArray = checked(lambda: validate_data(self, X, reset=reset, **options))
        return found

    def _checked_weights(self, n_columns: int) -> FloatArray:
        if self.weights is None:
            return np.ones(n_columns)
        if isinstance(plain(self.bounds), Ball):
            raise ParameterError("`weights` must be None for a ball, whose columns count alike")
        given: Sequence[Any]
        if isinstance(self.weights, Mapping):
            names = self._names or [str(name) for name in getattr(self, "feature_names_in_", ())]
            if unknown := [name for name in self.weights if name not in names]:
                raise ParameterError(f"`weights` must name columns that are scaled, got {unknown[0]!r}")
            given = [self.weights.get(name, 1.0) for name in names]
        else:
            given = list(self.weights)
        found = np.empty(0)
        if not any(isinstance(weight, str | bool) for weight in given):
            try:
                found = np.asarray(given, dtype=np.float64)
            except (TypeError, ValueError):
                found = np.empty(0)
        if found.shape != (n_columns,) or not ((found >= LEAST_WEIGHT) & (found <= LARGEST_WEIGHT)).all():
            raise ParameterError(
                f"`weights` must be {n_columns} numbers from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}, or such "
                f"numbers by name, got {self.weights!r}"
            )
        return found
