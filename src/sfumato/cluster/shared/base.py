"""What all estimators share: from parameters to a charged, recorded and published run."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.budget import Budget, Plan, PricedPlan, PrivacyStatement, calibrate
from sfumato.budget.bought import after_purchases, plain, purchases
from sfumato.budget.paid_rows import check_cost_follows
from sfumato.cluster.shared.bounds import ANYWHERE, bounds_steps, find_bounds
from sfumato.cluster.shared.column_terms import (
    check_room,
    find_terms,
    sparse_attributes,
    terms_share,
    terms_steps,
)
from sfumato.cluster.shared.describing import Describing
from sfumato.cluster.shared.habits import Habits
from sfumato.cluster.shared.keywords import with_advice
from sfumato.cluster.shared.levels import (
    LEVELS_SHARE,
    MOST_LEVELS,
    FoundLevels,
    expected_levels,
    find_levels,
    level_steps,
    most_levels,
    private_columns,
    room_for_levels,
)
from sfumato.cluster.shared.parameters import (
    DEFAULT_EPSILON,
    SharedParameters,
    as_budget,
    as_seed,
    check_fields,
    number_parameter,
    parameter,
    with_shared_text,
)
from sfumato.cluster.shared.profiles import find_profiles, profile_steps
from sfumato.cluster.shared.texts import DescribesTexts
from sfumato.cluster.shared.traits import Traits
from sfumato.curator import Curator, Questions, Table, open_table, run
from sfumato.curator.holder import labels_of
from sfumato.curator.levels import move_to, open_levels, table_with_levels
from sfumato.curator.sparse import open_sparse, show_active
from sfumato.curator.tables import as_numbers, check_described, describe
from sfumato.domain import MOST_COLUMNS, Domain, IntArray, Unit
from sfumato.domain.arrays import checked
from sfumato.domain.columns import (
    Columns,
    described_columns,
    names_columns,
    read_bounds,
)
from sfumato.domain.levels import with_levels
from sfumato.domain.on_spark import on_spark
from sfumato.domain.scaling import ALIKE, Scaling
from sfumato.domain.sparse import Sparse
from sfumato.errors import ParameterError
from sfumato.public.doubts import warn_of
from sfumato.public.models import CentreModel, Model, encode
from sfumato.public.models.column_terms import ColumnTerms
from sfumato.public.profiles import Profiles
from sfumato.public.terms import Terms
from sfumato.release import Release

BOUNDS_SHARE = Fraction(1, 10)  # of the budget, for bounds="private"; tuned: docs/notes/constants.md#bounds
_UNIT_BOX = (-1.0, 1.0)
_MEASURED_LATER = "columns are measured by the bounds that are found"


@dataclass_transform(field_specifiers=(parameter, dataclasses.field))
class PrivateEstimator(SharedParameters, BaseEstimator):
    """Base of all estimators: runs a plan, charges the ledger and publishes the model.

    A subclass lists its own parameters as fields, ``n_clusters: int = parameter(whole(), default=8)``, and
    inherits those of `SharedParameters`.

    Privacy
    -------
    A model is computed from the curator's answers only, so it is post-processing of what the plan pays for.
    `predict` describes rows that the caller holds: its labels are not private and enter no release.
    """

    _most_columns: ClassVar[int] = MOST_COLUMNS  # up to which a fit adds columns for private levels
    _explains: ClassVar[bool] = True  # whether a fit on named columns buys profiles unless told otherwise
    _covers: ClassVar[bool] = True  # whether every row is in a cluster
    _alike: ClassVar[float] = ALIKE  # factor by which columns of a map may differ in width
    _takes_sparse: ClassVar[bool] = True  # whether rows may be sketched

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(eq=False, repr=False)(cls)
        with_advice(cls)
        cls.__doc__ = with_shared_text(cls.__doc__, () if hasattr(cls, "labels_") else ("labels_",))

    def _fit(
        self, table: Table, plan_for: Callable[[Domain], Plan], compute: Callable[[Curator], Model]
    ) -> Table:
        """Charge the plan, let `compute` ask the curator, and publish. Return the table with all levels."""
        priced = self._priced(plan_for(table.domain.measured), table.domain)
        private, described = private_columns(self.bounds), self._describing.private
        most = self._most_levels(plan_for, table.domain.n_features, len(private))
        bought = purchases(*self.get_params(deep=False).values())
        after_purchases(PrivacyStatement(priced.budget, table.domain.unit, (), False), bought)  # may raise

        def within_bounds(curator: Curator) -> tuple[Model, Profiles | ColumnTerms | None]:
            nonlocal table
            if self._private_bounds:
                space = Domain.from_bounds(
                    find_bounds(curator), table.domain.n_features, outside=self.outside
                )
                curator.narrow(table.scaling.applied(replace(space, unit=table.domain.unit), (), table.names))
            found: dict[str, FoundLevels] = {}
            if private or described:
                room = room_for_levels(most, private, self.missing) if private else MOST_LEVELS
                found = find_levels((*private, *described), room, curator)
                table = self._with_levels(table, found, plan_for, curator)
            model = compute(curator)
            return model, self._profiled(table, {name: found[name].levels for name in found}, model, curator)

        (model, profiles), domain, privacy = run(
            table,
            priced,
            within_bounds,
            method=type(self).__name__,
            ledger=self.ledger,
            seed=as_seed(self.random_state),
        )
        model = model.moved(domain.measure.inverse) if domain.measure else model
        if profiles is not None and isinstance(model, CentreModel):
            sizes = profiles.estimated_sizes if isinstance(profiles, ColumnTerms) else profiles.sizes
            model = model.sized(sizes)  # of the rows nearest to the last centres
        self._publish(model, domain, after_purchases(privacy, bought), table.columns, profiles, table.sparse)
        warn_of(self.release_)
        return table

    def _most_levels(self, plan_for: Callable[[Domain], Plan], n_features: int, n_private: int) -> int:
        """Number of levels per column that a fit may find, if `bounds` leave any to it."""
        if not n_private:
            return 0
        return most_levels(
            lambda n: plan_for(self.domain(n).measured), n_features, n_private, self._most_columns
        )

    def _with_levels(
        self,
        table: Table,
        found: Mapping[str, FoundLevels],
        plan_for: Callable[[Domain], Plan],
        curator: Curator,
    ) -> Table:
        """The table with the levels that were found. The curator asks for them from now on."""
        levels = {name: found[name].levels for name in private_columns(self.bounds)}
        table = table_with_levels(table, levels, self.missing)
        move_to(curator, table, self._priced(plan_for(table.domain.measured), table.domain))
        self._name_columns(table)
        return table

    def _profiled(
        self, table: Table, levels: Mapping[str, Sequence[str]], model: Model, curator: Curator
    ) -> Profiles | ColumnTerms | None:
        """Profiles of the clusters of a model, or terms of sparse rows, if the plan pays for them."""
        if table.sparse is not None:
            if not self._terms_share:
                return None
            show_active(curator, table)
            return find_terms(curator, model.partition, table.sparse)
        if not self._describing.share:
            return None
        columns = self._describing.columns(table.names, curator.space, levels)
        describe(curator, table, [coordinate for coordinate, _ in columns])
        told = [described for _, described in columns]
        return find_profiles(curator, model.partition, told, complete=self._covers)

    @property
    def _describing(self) -> Describing:
        """Which columns profiles tell about, and what they cost."""
        if self._sparse is not None:
            return Describing(Fraction(0), {}, {})
        bounds, beside = plain(self.bounds), plain(self.describe)
        return Describing.of(self.profiles, beside, bounds, self.unit, explains=self._explains)

    @property
    def _sparse(self) -> Sparse | None:
        """How sparse rows are declared, if `bounds` declare them."""
        return self.bounds if isinstance(self.bounds, Sparse) else None

    @property
    def _terms_share(self) -> Fraction:
        """Share of the budget for the terms of sparse rows."""
        return terms_share(self.profiles, self.describe) if self._sparse is not None else Fraction(0)

    def predict(self, X: ArrayLike) -> IntArray:
        """Cluster of each row. Spends nothing. The labels describe the given rows and are not private.

        Rows that a fit would leave out, for missing values or because they are outside, have the label -1.

        Parameters
        ----------
        X : array-like of shape (n, d)
        """
        check_is_fitted(self, "release_")
        if self.release_.reading is not None or self.release_.sparse is not None:
            return self.release_.predict(X)
        options = {"reset": False, "ensure_min_samples": 0, "dtype": np.float64, "order": "C"}
        table = X if self.missing == "error" else as_numbers(X)
        rows = checked(lambda: validate_data(self, table, ensure_all_finite=False, **options))
        return self.release_.predict(rows)

    def _priced(self, plan: Plan, domain: Domain) -> PricedPlan:
        if self._private_bounds:
            plan = plan.after(bounds_steps(domain.n_features), BOUNDS_SHARE)
        describing = self._describing
        if describing.share:
            plan = plan.then(profile_steps(describing.n_columns(domain)), describing.share)
        if self._sparse is not None and self._terms_share:
            plan = plan.then(terms_steps(self._sparse), self._terms_share)
        if n_private := len(private_columns(self.bounds)) + len(describing.private):
            plan = plan.after(level_steps(n_private), LEVELS_SHARE)
        priced = calibrate(plan, self._budget(), domain.unit.max_rows)
        later = self._private_bounds and self.scale is not None
        return replace(priced, note=_MEASURED_LATER if later else domain.measure.words)

    def _budget(self) -> Budget:
        return as_budget(self.epsilon, self.delta, self.rho)

    @property
    def _private_bounds(self) -> bool:
        return isinstance(self.bounds, str) and self.bounds == "private"

    def domain(self, n_features: int) -> Domain:
        """Domain of a table of `n_features` columns, from the parameters alone.

        With private bounds, the domain is -1 to 1: lengths are then in half widths of the domain. With
        private levels, `n_features` counts those that are expected.
        """
        unit = Unit(self.unit, plain(self.max_rows_per_unit))
        if names_columns(self.bounds):
            columns, domain = read_bounds(plain(self.bounds), None, unit, outside=self.outside)
            private, n_more = private_columns(self.bounds), n_features - domain.n_features
            if private and n_more > 0:
                columns, domain = with_levels(columns, domain, expected_levels(private, n_more))
            return self._scaling.applied(domain, columns.coordinates)
        bounds = _UNIT_BOX if self._private_bounds else plain(self.bounds)
        return self._scaling.applied(Domain.from_bounds(bounds, n_features, unit, self.outside))

    @property
    def _scaling(self) -> Scaling:
        """The rule by which columns are measured."""
        return Scaling(self.scale, plain(self.weights), self._shared_unit, self._alike)

    @property
    def _shared_unit(self) -> str | None:
        """Why all columns must share a unit, if they must: for example a parameter is a length."""
        return None

    def _open(self, X: Any, *, name: str = "X", reset: bool = True, people: bool = True) -> Table:
        """Check the public facts of a table: its columns and bounds. Reads no rows from files."""
        check_fields(self)
        check_cost_follows(X, self.get_params(deep=False).values())
        unit = Unit(self.unit, plain(self.max_rows_per_unit)) if people else Unit()
        validate = partial(validate_data, self, reset=reset)
        bounds = ANYWHERE if self._private_bounds else plain(self.bounds)
        scaling = self._scaling if not self._private_bounds else Scaling(None)
        if self._sparse is not None:
            return self._open_sparse(X, unit)
        options: dict[str, Any] = {"scaling": scaling, "name": name, "validate": validate}
        table = open_table(X, bounds, unit, self.missing, self.outside, **options)
        table = dataclasses.replace(table, scaling=self._scaling)
        describing = self._describing
        if describing.beside:
            check_described(table, [coordinate for coordinate, _ in described_columns(describing.beside)])
        private, described = private_columns(self.bounds), describing.private
        if private or described:
            table = open_levels(table, private, self.missing, described)
        if table.columns is not None:
            self._name_columns(table)
        return table

    def _open_sparse(self, X: Any, unit: Unit) -> Table:
        """The same for sparse rows."""
        if not self._takes_sparse:
            raise ParameterError(f"{type(self).__name__} takes no sparse rows: `bounds` must not be `Sparse`")
        table = open_sparse(X, plain(self.bounds), unit, self.missing, self.outside, self._scaling)
        assert table.sparse is not None
        assert table.sparse.n_columns is not None
        if self._terms_share:
            asked = getattr(self, number_parameter(type(self)) or "", None)
            check_room(table.sparse, int(asked) if isinstance(asked, Integral) else 1)
        self.n_features_in_ = table.sparse.n_columns
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return table

    def _name_columns(self, table: Table) -> None:
        self.n_features_in_ = table.domain.n_features
        self.feature_names_in_ = np.array(table.names, dtype=object)

    def _publish(
        self,
        model: Model,
        domain: Domain,
        privacy: PrivacyStatement,
        reading: Columns | None,
        profiles: Profiles | ColumnTerms | None = None,
        sparse: Sparse | None = None,
    ) -> None:
        """Set the attributes of a fitted estimator, from a model in the user's units."""
        terms = profiles if isinstance(profiles, ColumnTerms) else None
        profiles = None if isinstance(profiles, ColumnTerms) else profiles
        attributes = model.attributes() if sparse is None else sparse_attributes(model, terms)
        for name, value in attributes.items():
            setattr(self, f"{name}_", value)
        published = {
            field.name for field in dataclasses.fields(self) if field.metadata.get("published", True)
        }
        parameters = {
            name: repr(value) if isinstance(value, PrivateClusterer) else encode(value)
            for name, value in self.get_params(deep=False).items()
            if name in published
        }
        columns = tuple(str(name) for name in getattr(self, "feature_names_in_", ()))
        self.privacy_ = privacy
        self.profiles_ = profiles
        self.terms_: Terms | None = None  # until `describe_terms`
        self.release_ = Release(
            type(self).__name__,
            parameters,
            domain,
            columns,
            model,
            privacy,
            reading,
            profiles,
            sparse=None if sparse is None else replace(sparse, feature_names=None),
            column_terms=terms,
        )

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling and copying. An epsilon that was not given stays so: the class supplies it."""
        state = dict(super().__getstate__())
        if state.get("epsilon") is DEFAULT_EPSILON:
            del state["epsilon"]
        return state

    @property
    def _repr_html_(self) -> Callable[[], str]:
        shown = super()._repr_html_
        return lambda: _without_warnings(shown)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return _without_warnings(partial(super()._repr_mimebundle_, **options))


class PrivateClusterer(Habits, DescribesTexts, ClusterMixin, PrivateEstimator, ABC):
    """Base of all private clusterers. A subclass declares its questions (`_plan`) and asks them (`_cluster`).

    Everything else is here: validation, ledger, curator, release, prediction.

    Privacy
    -------
    `_cluster` sees rows only through the curator, so its result is post-processing of what the plan pays for.
    `predict` and ``labels_`` describe rows that the caller holds: they are not private and enter no release.
    """

    @abstractmethod
    def _plan(self, domain: Domain) -> Plan:
        """Declare the steps, from public values only. Each parameter has already been checked by itself."""

    @abstractmethod
    def _cluster(self, curator: Questions) -> Model:
        """Ask the curator and compute the model."""

    def fit(self, X: ArrayLike, y: None = None, *, spark: Any = None) -> Self:
        """Cluster a table under differential privacy.

        Parameters
        ----------
        X : array-like of shape (n, d)
            A NumPy array, a pandas, polars or Spark data frame, an Arrow table, a ``pyarrow.dataset``, or a
            path to a file, a folder or a pattern (Parquet, Feather, CSV: see `scan_csv`).
        y : None
            Ignored, for compatibility with scikit-learn.
        spark : SparkSession, optional
            Its workers read the files at a path, see `on_spark`.
        """
        table = self._open(X if spark is None else on_spark(X, spark))  # type: ignore[arg-type]
        self._table = self._fit(table, self._plan, self._cluster)
        return self

    @property
    def labels_(self) -> IntArray:
        """Clusters of the training rows, computed on demand for their holder: not private, not published.

        Rows that were left out, for missing values or because they are outside, have the label -1.
        """
        if "_table" not in vars(self):
            raise AttributeError(
                "labels_ needs the training rows, which only the fitted object keeps. Use predict(X)"
            )
        return labels_of(self._table, self.release_.label)

    def plan(self, n_features: int) -> PricedPlan:
        """What a fit on `n_features` columns will ask and spend. Prints as a table. Spends nothing."""
        check_fields(self)
        domain = self.domain(n_features)
        return self._priced(self._plan(domain.measured), domain)

    def traits(self, domain: Domain, n_clusters: int) -> Traits:
        """Public facts about the method for a forecast, for example what it can tell from noise.

        A subclass may state its own. Otherwise a forecast has only passes and memory.

        Parameters
        ----------
        domain : Domain
        n_clusters : int
            Expected number of clusters.
        """
        return Traits()

    def rehearse(self, questions: Questions) -> Model:
        """Ask the same questions as a fit, of anything that answers. Reads no rows and charges nothing.

        Parameters
        ----------
        questions : Questions
            Stands in for the curator.
        """
        return self._cluster(questions)

    def _again(self, model: Model, **parameters: Any) -> Self:
        """Return a fitted copy with another model of the same released values. Spends nothing."""
        other = copy.copy(self)
        other.set_params(**parameters)
        old = self.release_
        other._publish(model, old.domain, self.privacy_, old.reading, sparse=old.sparse)
        if "_table" in vars(self):
            other._table = self._table
        return other

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling and copying, without the training rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "_table"}


def _without_warnings(show: Callable[[], Any]) -> Any:
    # scikit-learn's display reads docstrings and warns about sections it does not know, such as Privacy.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unknown section")
        return show()
