"""What all private clusterers share: from parameters to a charged, recorded and published run."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.budget import Budget, Ledger, Plan, PricedPlan, PrivacyStatement, calibrate
from sfumato.curator import Curator, open_curator
from sfumato.domain import Domain, IntArray, Unit
from sfumato.errors import DataError, ParameterError
from sfumato.models import Model, encode
from sfumato.release import Release

# Not published: the ledger is the holder's own, a seed would undo the noise, and the domain and the privacy
# statement say the rest.
_UNPUBLISHED = {"ledger", "random_state", "bounds", "unit", "max_rows_per_unit", "epsilon", "delta", "rho"}

# Kept as they are: the engine casts block by block. All else is cast before anything is charged.
_DTYPES = [np.float64, np.float32, np.float16, np.bool_]
_DTYPES += [np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8]

# scikit-learn quotes values and the number of rows in some of its messages: only these pass as they are.
_HARMLESS = ("X has ", "The feature names should match", "Found array with dim")
_REFUSALS = {
    "contains NaN": "must have no missing values, got NaN somewhere: drop or fill them",
    "contains infinity": "must be finite, got infinity or a number beyond 64-bit floats somewhere",
    "Complex data": "must hold real numbers. Complex data not supported",
    "2D array": "must have two dimensions. Reshape your data: X.reshape(-1, 1) makes one column",
    "0 feature(s)": "must have at least one column",
}


class PrivateEstimator(BaseEstimator):
    """From rows to a charged, recorded and published run, whatever else `fit` takes.

    Privacy
    -------
    What computes a model sees rows only through the curator, so the model is post-processing of what the plan
    pays for. `predict` describes rows that the caller holds: its labels are not private and enter no release.
    """

    epsilon: Any
    delta: Any
    rho: Any
    bounds: Any
    unit: str | None
    max_rows_per_unit: int
    ledger: Ledger | None
    random_state: int | None

    def _fit(self, rows: Any, domain: Domain, plan: Plan, compute: Callable[[Curator], Model]) -> Self:
        """Charge the plan, let `compute` ask the curator, and publish."""
        budget, seed = self._budget(), self._seed()
        priced = calibrate(plan, budget, domain.unit.max_rows)
        with self._charged(priced, seeded=seed is not None):
            curator = open_curator(rows, domain, priced, seed)
            model = compute(curator)
        self._publish(model, domain, PrivacyStatement(budget, domain.unit, curator.records, seed is not None))
        return self

    def predict(self, X: ArrayLike) -> IntArray:
        """Cluster of each row. Spends nothing; the labels describe the rows given and are not private.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "release_")
        return self.release_.model.predict(
            np.ascontiguousarray(self._checked(X, reset=False), dtype=np.float64)
        )

    def _budget(self) -> Budget:
        if self.rho is None:
            return Budget(self.epsilon, self.delta)
        if self.epsilon not in (None, 1.0) or self.delta:
            raise ParameterError(
                f"give `rho`, or `epsilon` and `delta`, got rho={self.rho!r}, epsilon={self.epsilon!r}, "
                f"delta={self.delta!r}. With `rho`, leave the other two at their defaults."
            )
        return Budget(rho=self.rho)

    def _seed(self) -> int | None:
        seed = self.random_state
        if seed is None:
            return None
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ParameterError(f"`random_state` must be None or an integer >= 0, got {seed!r}")
        return int(seed)

    def _unit(self) -> Unit:
        if self.unit is not None:
            raise ParameterError(
                f"`unit` must be None, got {self.unit!r}: no engine caps the rows of a person yet. "
                "Reduce the table to one row per person first."
            )
        return Unit(self.unit, self.max_rows_per_unit)

    def _domain(self, n_features: int) -> Domain:
        return Domain.from_bounds(self.bounds, n_features, self._unit())

    def _checked(self, X: ArrayLike, *, reset: bool, name: str = "X") -> Any:
        try:
            return validate_data(self, X, reset=reset, ensure_min_samples=0, dtype=_DTYPES)
        except (ValueError, OverflowError) as error:
            problem = str(error)
        # Raised out here, so that no traceback holds the message above.
        raise DataError(_without_data(problem, name))

    @contextmanager
    def _charged(self, plan: PricedPlan, *, seeded: bool) -> Iterator[None]:
        """Charge the ledger before anything is asked of the rows, and note the outcome."""
        if self.ledger is None:
            yield
            return
        if not isinstance(self.ledger, Ledger):
            raise ParameterError(f"`ledger` must be a sfumato.Ledger(path, dataset), got {self.ledger!r}")
        charge = self.ledger.charge(plan.budget, method=type(self).__name__, plan=str(plan), seeded=seeded)
        try:
            yield
        except BaseException:
            self.ledger.settle(charge, "failed")
            raise
        self.ledger.settle(charge, "released")

    def _publish(self, model: Model, domain: Domain, privacy: PrivacyStatement) -> None:
        for name, value in model.attributes().items():
            setattr(self, f"{name}_", value)
        parameters = {
            name: repr(value) if isinstance(value, PrivateClusterer) else encode(value)
            for name, value in self.get_params(deep=False).items()
            if name not in _UNPUBLISHED
        }
        columns = tuple(str(name) for name in getattr(self, "feature_names_in_", ()))
        self.privacy_ = privacy
        self.release_ = Release(type(self).__name__, parameters, domain, columns, model, privacy)


class PrivateClusterer(ClusterMixin, PrivateEstimator, ABC):
    """Base of all private clusterers. A subclass says what it will ask (`_plan`) and asks it (`_cluster`).

    A subclass stores its parameters in ``__init__``, among them the shared ones: `epsilon`, `delta`, `rho`,
    `bounds`, `unit`, `max_rows_per_unit`, `ledger`, `random_state`. Everything else (validation, ledger,
    curator, release, prediction) is here.

    Privacy
    -------
    `_cluster` sees rows only through the curator, so whatever it computes is post-processing of what the plan
    pays for. `predict` and ``labels_`` describe rows that the caller holds: they are not private and enter no
    release.
    """

    @abstractmethod
    def _plan(self, domain: Domain) -> Plan:
        """Check the estimator's own parameters and declare its steps. Public values only."""

    @abstractmethod
    def _cluster(self, curator: Curator) -> Model:
        """Ask the curator and compute the model."""

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Cluster a table under differential privacy.

        Parameters
        ----------
        X : array-like of shape (n, d)
            NumPy array, pandas or polars data frame, or Arrow table. Rows outside the bounds are clipped.
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        rows = self._checked(X, reset=True)
        domain = self._domain(rows.shape[1])
        self._fit(rows, domain, self._plan(domain), self._cluster)
        self._rows = rows
        return self

    @property
    def labels_(self) -> IntArray:
        """Clusters of the training rows, computed on demand for their holder: not private, not published."""
        if "_rows" not in vars(self):
            raise AttributeError(
                "labels_ needs the training rows, which are kept only by the object that was fitted"
            )
        return self.release_.model.predict(np.ascontiguousarray(self._rows, dtype=np.float64))

    def plan(self, n_features: int) -> PricedPlan:
        """What a fit on `n_features` columns will ask and spend. Prints as a table; spends nothing."""
        domain = self._domain(n_features)
        return calibrate(self._plan(domain), self._budget(), domain.unit.max_rows)

    def _again(self, model: Model, **parameters: Any) -> Self:
        """A fitted copy with another model of the same released values. Spends nothing."""
        other = copy.copy(self)
        other.set_params(**parameters)
        other._publish(model, self.release_.domain, self.privacy_)
        if "_rows" in vars(self):
            other._rows = self._rows
        return other

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling and copying: without the training rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "_rows"}


def _without_data(problem: str, name: str) -> str:
    if problem.startswith(_HARMLESS):
        return problem.replace("X has ", f"{name} has ", 1)
    for sign, answer in _REFUSALS.items():
        if sign in problem:
            return f"`{name}` {answer}"
    return f"`{name}` must be a table of numbers: drop or encode the other columns"
