"""What all private clusterers share: from parameters to a charged, recorded and published run."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.budget import Budget, Ledger, Plan, PricedPlan, PrivacyStatement, calibrate
from sfumato.cluster.bounds import bounds_steps, find_bounds
from sfumato.cluster.checks import check_choice, check_whole
from sfumato.columns import Columns, Missing, complete_rows, read_bounds
from sfumato.curator import Curator, check_types, column_names, held, is_outside, open_curator
from sfumato.domain import LARGEST_BOUND, MOST_COLUMNS, Domain, IntArray, Unit
from sfumato.errors import LedgerError, LedgerWarning, ParameterError
from sfumato.given import checked
from sfumato.models import Model, encode
from sfumato.release import Release

# Not published: the ledger is the holder's own, a seed would undo the noise, and the domain and the privacy
# statement say the rest.
_UNPUBLISHED = {"ledger", "random_state", "bounds", "unit", "max_rows_per_unit", "epsilon", "delta", "rho"}

# Kept as they are: the engine casts block by block. All else is cast before anything is charged.
_DTYPES = [np.float64, np.float32, np.float16, np.bool_]
_DTYPES += [np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8]

ANYWHERE = (-LARGEST_BOUND, LARGEST_BOUND)  # where rows may be before bounds are known
BOUNDS_SHARE = Fraction(1, 10)  # of the budget, with bounds="private"


class Table(NamedTuple):
    """A table as it was given, and what is public about it."""

    X: Any
    columns: Columns | None
    domain: Domain


@contextmanager
def charged(ledger: Ledger | None, method: str, plan: PricedPlan, *, seeded: bool) -> Iterator[None]:
    """Charge a ledger before anything is asked of the rows, and note the outcome.

    A note that cannot be written leaves the charge open, which counts as well: it costs no release.
    """
    if ledger is None:
        yield
        return
    if not isinstance(ledger, Ledger):
        raise ParameterError(f"`ledger` must be a sfumato.Ledger(path, dataset), got {ledger!r}")
    charge = ledger.charge(plan.budget, method=method, plan=str(plan), seeded=seeded)
    try:
        yield
    except BaseException:
        with suppress(LedgerError):
            ledger.settle(charge, "failed")
        raise
    try:
        ledger.settle(charge, "released")
    except LedgerError as error:
        warnings.warn(f"charge {charge} counts, but stays open: {error}", LedgerWarning, stacklevel=4)


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
    missing: Missing
    ledger: Ledger | None
    random_state: int | None

    def _fit(self, table: Table, plan: Plan, compute: Callable[[Curator], Model]) -> Self:
        """Charge the plan, let `compute` ask the curator, and publish."""
        seed, priced = self._seed(), self._priced(plan, table.domain)
        bought = getattr(self.bounds, "privacy", None)  # bounds of `estimate_bounds` say what they cost
        if bought is not None:
            PrivacyStatement(priced.budget, table.domain.unit, (), False).after(bought)  # or an error
        with charged(self.ledger, type(self).__name__, priced, seeded=seed is not None):
            curator = open_curator(table.X, table.domain, priced, seed, table.columns)
            if self._private_bounds:
                curator.narrow(*find_bounds(curator))
            model = compute(curator)
        privacy = curator.statement() if bought is None else curator.statement().after(bought)
        self._publish(model, curator.domain, privacy, table.columns)
        return self

    def predict(self, X: ArrayLike) -> IntArray:
        """Cluster of each row. Spends nothing; the labels describe the rows given and are not private.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "release_")
        if self.release_.table is None:
            X = self._checked(X, reset=False, finite=True)
        return self._labels(X)

    def _labels(self, X: Any) -> IntArray:
        if self.release_.table:
            return self.release_.predict(X)
        return self.release_.model.predict(np.ascontiguousarray(X, dtype=np.float64))

    def _priced(self, plan: Plan, domain: Domain) -> PricedPlan:
        if self._private_bounds:
            plan = plan.after(bounds_steps(domain.n_features), BOUNDS_SHARE)
        return calibrate(plan, self._budget(), domain.unit.max_rows)

    def _budget(self) -> Budget:
        if self.rho is None:
            return Budget(self.epsilon, self.delta)
        is_default = self.epsilon is None or (isinstance(self.epsilon, Real) and self.epsilon == 1)
        if not is_default or Budget(1, self.delta).delta:
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

    @property
    def _private_bounds(self) -> bool:
        return isinstance(self.bounds, str) and self.bounds == "private"

    @property
    def _named_bounds(self) -> bool:
        return isinstance(self.bounds, Mapping) or len(getattr(self.bounds, "columns", ())) > 0

    def _domain(self, n_features: int) -> Domain:
        """Domain of a table without names, or as far as it is known without the table."""
        unit = Unit(self.unit, self.max_rows_per_unit)
        if self._named_bounds:
            return read_bounds(self.bounds, None, unit)[1]
        return Domain.from_bounds(ANYWHERE if self._private_bounds else self.bounds, n_features, unit)

    def _open(self, X: Any, *, name: str = "X", reset: bool = True, people: bool = True) -> Table:
        """Check all that is public about a table: its columns and its bounds. Reads no row of files."""
        check_choice("missing", self.missing, ("error", "drop"))
        unit = Unit(self.unit, self.max_rows_per_unit) if people else Unit()
        if unit.column is None and not self._named_bounds and not is_outside(X):
            rows = self._checked(X, reset=reset, name=name)
            return Table(rows, None, self._domain(rows.shape[1]))
        X, bounds = held(X), ANYWHERE if self._private_bounds else self.bounds
        columns, domain = read_bounds(bounds, column_names(X), unit, self.missing)
        check_types(X, columns)
        self.n_features_in_ = domain.n_features
        self.feature_names_in_ = np.array(columns.labels, dtype=object)
        return Table(X, columns, domain)

    def _checked(self, X: ArrayLike, *, reset: bool, name: str = "X", finite: bool = False) -> Any:
        finite = finite or self.missing != "drop"
        options = {"ensure_min_samples": 0, "dtype": _DTYPES, "ensure_all_finite": finite}
        rows = checked(lambda: validate_data(self, X, reset=reset, **options), name)
        return rows if finite or (kept := complete_rows(rows, "drop")) is None else rows[kept]

    def _publish(
        self, model: Model, domain: Domain, privacy: PrivacyStatement, table: Columns | None
    ) -> None:
        for name, value in model.attributes().items():
            setattr(self, f"{name}_", value)
        parameters = {
            name: repr(value) if isinstance(value, PrivateClusterer) else encode(value)
            for name, value in self.get_params(deep=False).items()
            if name not in _UNPUBLISHED
        }
        columns = tuple(str(name) for name in getattr(self, "feature_names_in_", ()))
        self.privacy_ = privacy
        self.release_ = Release(type(self).__name__, parameters, domain, columns, model, privacy, table)


class PrivateClusterer(ClusterMixin, PrivateEstimator, ABC):
    """Base of all private clusterers. A subclass says what it will ask (`_plan`) and asks it (`_cluster`).

    A subclass stores its parameters in ``__init__``, among them the shared ones: `epsilon`, `delta`, `rho`,
    `bounds`, `unit`, `max_rows_per_unit`, `missing`, `ledger`, `random_state`. Everything else (validation,
    ledger, curator, release, prediction) is here.

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
            NumPy array, pandas or polars data frame, Arrow table; a path to files, a folder or a pattern
            (Parquet, CSV, Feather), a ``pyarrow.dataset``, or a data frame of Spark. Rows outside the bounds
            are clipped.
        y : None
            Ignored, for compatibility with scikit-learn.
        """
        table = self._open(X)
        self._fit(table, self._plan(table.domain), self._cluster)
        self._table = table.X
        return self

    @property
    def labels_(self) -> IntArray:
        """Clusters of the training rows, computed on demand for their holder: not private, not published.

        Of the rows that were used, if others were dropped for missing values.
        """
        if "_table" not in vars(self):
            raise AttributeError(
                "labels_ needs the training rows, which are kept only by the object that was fitted"
            )
        return self._labels(self._table)

    def plan(self, n_features: int) -> PricedPlan:
        """What a fit on `n_features` columns will ask and spend. Prints as a table; spends nothing."""
        check_whole("n_features", n_features, most=MOST_COLUMNS)
        domain = self._domain(n_features)
        return self._priced(self._plan(domain), domain)

    def _again(self, model: Model, **parameters: Any) -> Self:
        """A fitted copy with another model of the same released values. Spends nothing."""
        other = copy.copy(self)
        other.set_params(**parameters)
        other._publish(model, self.release_.domain, self.privacy_, self.release_.table)
        if "_table" in vars(self):
            other._table = self._table
        return other

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling and copying: without the training rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "_table"}
