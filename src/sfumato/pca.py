"""Private principal components."""

from __future__ import annotations

import warnings
from contextlib import suppress
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sfumato.budget import Ledger, Plan, PricedPlan, PrivacyStatement, calibrate
from sfumato.budget.bought import after_purchases, plain, purchases
from sfumato.budget.paid_rows import check_cost_follows, paid_rows, paid_table
from sfumato.cluster.shared.components import Components, ask_components, ask_frame, component_steps
from sfumato.cluster.shared.parameters import DEFAULT_EPSILON, Number, as_budget, as_seed
from sfumato.curator import Questions, open_table, run
from sfumato.domain import Ball, Domain, FloatArray, Unit
from sfumato.domain.arrays import checked, numbers
from sfumato.domain.columns import check_names
from sfumato.domain.constraints import whole
from sfumato.domain.row_products import project
from sfumato.domain.scaling import Scaling
from sfumato.errors import DataError, NoiseWarning
from sfumato.projection import ball_around, projected_points, with_cost

MOST_COLUMNS = 2000  # a limit: the moments of more columns are millions of integers
ROUNDING = 1e-6  # relative allowance for the rounding of projected rows


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal components under differential privacy.

    Use it where scikit-learn's pipelines have a `PCA`, whose components are exact functions of the rows. The
    budget buys one noisy matrix of second moments, about a noisy mean and within a noisy radius. Its
    eigenvectors are the components. What is fitted on the projected rows must pay for both, see `bounds_`.

    Columns are measured in units of their bounds, by the rule of all estimators. The projection is centred at
    the middle of the bounds, not at the mean, so that a ball around it is known before the fit.

    Parameters
    ----------
    n_components : int
        Number of components, at most the number of columns.
    epsilon, delta, rho : float
        Privacy budget: `epsilon` alone, `epsilon` with `delta`, or `rho` alone. With many columns, a `delta`
        makes the noise much smaller.
    bounds : (low, high) or Ball
        Public bounds of the columns, never read off the data, or the result of `estimate_bounds`.
    scale : "bounds" or None
        None takes columns as they are: they must share a unit.
    unit : str, optional
        Column of a data frame that identifies a person. By default every row counts as a separate person.
    max_rows_per_unit : int
        Maximum number of rows used per person. All noise grows in proportion.
    ledger : Ledger, optional
        Where the budget is charged before any row is read.
    random_state : int, optional
        Seed for reproducible noise in experiments. What is made with it must not be published.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, d)
        Orthonormal directions in measured units, the one of the largest variance first.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Noisy variance along each, in measured units, and its share of the variance over all columns.
    noise_variance_ : float
        Largest variance that noise alone is likely to show. A smaller one says nothing about its direction.
    mean_ : ndarray of shape (d,)
        Noisy mean, in the units of the data.
    bounds_ : Ball
        Ball that contains every projected row. Use it as the `bounds` of what is fitted on them. It carries
        what the components cost into the release.
    privacy_ : PrivacyStatement
        What was promised and what was spent, with what was paid for `bounds`.
    n_features_in_ : int

    Privacy
    -------
    Unit: one row added or removed, or one person. Step "mean": noisy sums of all rows within the bounds; step
    "distances": a noisy histogram of distances from the noisy mean; step "moments": noisy second moments of
    displacements from it, clipped to the radius that the histogram shows. They compose to the budget.
    Everything else is post-processing. Each row is projected by released numbers alone, so what is fitted on
    projected rows adds its own cost and no more. The result of ``transform`` is as sensitive as its input:
    never publish it. Public inputs: all parameters.
    Proof: docs/proofs/projections.md, docs/proofs/moments.md.

    References
    ----------
    - C. Dwork, K. Talwar, A. Thakurta, L. Zhang. Analyze Gauss: optimal bounds for privacy-preserving
      principal component analysis. STOC 2014.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sfumato import GridKMeans, PrivatePCA
    >>> from sfumato.datasets import separated_gaussians
    >>> X, _ = separated_gaussians(5000, n_clusters=4, n_features=20, random_state=0)
    >>> pca = PrivatePCA(2, epsilon=0.5, delta=1e-6, bounds=(-1, 1), random_state=0)
    >>> model = GridKMeans(4, epsilon=0.5, bounds=pca.ball(20), random_state=0)
    >>> model = make_pipeline(pca, model).fit(X)[-1]
    >>> print(model.privacy_.budget)  # of both steps
    epsilon=1, delta=1e-06
    """

    epsilon = DEFAULT_EPSILON  # only its identity tells that it was not given; pickles lose it

    def __init__(
        self,
        n_components: int = 2,
        *,
        epsilon: Number | None = DEFAULT_EPSILON,
        delta: Number = 0.0,
        rho: Number | None = None,
        bounds: object = None,
        scale: Literal["bounds"] | None = "bounds",
        unit: str | None = None,
        max_rows_per_unit: int = 1,
        ledger: Ledger | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon  # type: ignore[assignment]
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.scale = scale
        self.unit = unit
        self.max_rows_per_unit = max_rows_per_unit
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Release the components of a table. Charges the ledger.

        Parameters
        ----------
        X : array-like of shape (n, d)
            An array, or a data frame with numeric columns, besides `unit`.
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        check_cost_follows(X, [self.bounds, self.max_rows_per_unit])
        rows, people = self._read(X, reset=True)
        priced, paid = self.plan(int(self.n_features_in_)), self._bought
        after_purchases(self._promise(priced), paid)  # raises before anything is charged
        self._domain = self._measured(int(self.n_features_in_))
        moved: Any = self._moved(rows)
        if people is not None:
            moved = pa.table([*moved.T, people], [f"_{j}" for j in range(moved.shape[1])] + [str(self.unit)])
        table = open_table(moved, Ball(self._domain.measured.reach), self._unit)
        done = run(
            table,
            priced,
            self._ask,
            method=type(self).__name__,
            ledger=self.ledger,
            seed=as_seed(self.random_state),
        )
        self._publish(done.found)
        self._paid = (done.privacy, *paid)
        self.privacy_ = after_purchases(done.privacy, paid)
        self.bounds_ = with_cost(ball_around(_centred(self._domain.measured), self.components_), self._paid)
        return self

    def transform(self, X: ArrayLike) -> Any:
        """Projected rows, after clipping to the bounds. Not private.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, n_components) or pyarrow.Table
            With a `unit`, an Arrow table that has the column of the unit, too.
        """
        check_is_fitted(self, "components_")
        rows, people = self._read(X, reset=False)
        projected = project(self._moved(rows), self.components_)
        if people is None:
            return paid_rows(projected, self._paid)
        names = [*self.get_feature_names_out(), str(self.unit)]
        return paid_table(pa.table([*projected.T, people], names), self._paid)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Points in the units of the data that project to the given ones, as near to the mean as possible.

        Parameters
        ----------
        X : array-like of shape (n, n_components)
            Projected rows or, more usefully, released centres.
        """
        check_is_fitted(self, "components_")
        points = projected_points(X, len(self.components_))
        measure, middle = self._domain.measure, self._domain.measured.midpoint
        mean = measure.of(self.mean_)
        moves = points - (mean - middle) @ self.components_.T
        return self._domain.clip(measure.inverse.of(mean + moves @ self.components_))

    def ball(self, n_features: int) -> Ball:
        """Ball that contains every projected row, known before the fit: for the next step of a pipeline.

        It carries what the fit will cost. So a release of a clustering behind this step states both.

        Parameters
        ----------
        n_features : int
            Number of columns of the table, without the unit.
        """
        paid = (self._promise(self.plan(n_features)), *self._bought)
        radius = self._measured(n_features).measured.reach
        return with_cost(Ball(radius * (1 + ROUNDING), (0.0,) * self.n_components), paid)

    def plan(self, n_features: int) -> PricedPlan:
        """What a fit on `n_features` columns will ask and spend. Prints as a table. Spends nothing.

        Parameters
        ----------
        n_features : int
        """
        whole(MOST_COLUMNS)("n_features", n_features)
        whole(n_features)("n_components", self.n_components)
        domain = self._measured(n_features).measured
        plan = Plan(*component_steps(domain, Fraction(1)))
        return calibrate(plan, as_budget(self.epsilon, self.delta, self.rho), self._unit.max_rows)

    def _promise(self, priced: PricedPlan) -> PrivacyStatement:
        """What a fit will have spent."""
        is_seeded = as_seed(self.random_state) is not None
        return PrivacyStatement(priced.budget, self._unit, priced.records(), is_seeded)

    @property
    def _unit(self) -> Unit:
        return Unit(self.unit, plain(self.max_rows_per_unit))

    @property
    def _bought(self) -> tuple[PrivacyStatement, ...]:
        return purchases(self.bounds, self.max_rows_per_unit)

    def _measured(self, n_features: int) -> Domain:
        """The domain of the rows, with the measure of its columns."""
        return Scaling(self.scale).applied(Domain.from_bounds(plain(self.bounds), n_features))

    def _moved(self, rows: FloatArray) -> FloatArray:
        """Rows clipped to the bounds, in measured units, from the middle of the bounds."""
        measured = self._domain.measure.of(self._domain.clip(rows))
        return np.ascontiguousarray(measured - self._domain.measured.midpoint)

    def _ask(self, curator: Questions) -> Components:
        return ask_components(curator, ask_frame(curator), int(self.n_components))

    def _publish(self, found: Components) -> None:
        self.components_ = found.directions
        self.explained_variance_ = found.variances
        self.explained_variance_ratio_ = found.variances / max(found.total, 1e-300)
        self.noise_variance_ = found.noise
        self.mean_ = self._domain.measure.inverse.of(found.mean + self._domain.measured.midpoint)
        n_hidden = int((found.variances < found.noise).sum())
        if n_hidden:
            warnings.warn(
                f"noise hides {n_hidden} of {len(found.variances)} components: their directions are "
                "arbitrary. Use fewer components, a larger budget or a delta",
                NoiseWarning,
                stacklevel=3,
            )

    def _read(self, X: Any, *, reset: bool) -> tuple[FloatArray, pa.ChunkedArray | None]:
        """Coordinates of the rows, and who they are of if there is a unit."""
        if self.unit is None:
            return self._checked(X, reset=reset), None
        if not hasattr(X, "__arrow_c_stream__"):
            raise DataError("`X` must be a data frame with named columns, because `unit` names one")
        frame = _as_arrow(X)
        check_names([self.unit], frame.column_names)
        names = [name for name in frame.column_names if name != self.unit]
        if reset:
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        check_names(self.feature_names_in_, names)
        columns = [numbers(frame[name].to_numpy()) for name in self.feature_names_in_]
        rows = np.column_stack([*columns, np.empty((len(frame), 0))])
        return checked(lambda: check_array(rows, dtype=np.float64, ensure_min_samples=0)), frame[self.unit]

    def _checked(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        return checked(lambda: validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=0))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling and copying. An epsilon that was not given stays so: the class supplies it."""
        state = dict(super().__getstate__())
        if state.get("epsilon") is DEFAULT_EPSILON:
            del state["epsilon"]
        return state


def _as_arrow(X: Any) -> pa.Table:
    """A data frame as an Arrow table. If a column has values of several types, the error quotes none."""
    with suppress(pa.ArrowException, TypeError, ValueError):
        return X.to_arrow() if hasattr(X, "to_arrow") else pa.table(X)
    # Raised outside the handler, so that no traceback contains Arrow's message, which quotes the value.
    raise DataError("each column of `X` must hold values of one type, got several in one of them")


def _centred(domain: Domain) -> Domain:
    """The same domain around the origin."""
    if domain.radius is not None:
        return Domain.from_bounds(Ball(domain.radius), domain.n_features)
    return Domain.from_bounds((-domain.half_width, domain.half_width), domain.n_features)
