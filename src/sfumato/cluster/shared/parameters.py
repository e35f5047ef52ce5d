"""Parameters of estimators: declared, constrained and described once.

An estimator lists its own parameters as fields, like a dataclass, and inherits those of `SharedParameters`.
Each field carries its constraint. The text of shared parameters and attributes is added to the docstring of
every estimator. Messages repeat parameters, never data.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from typing import Any, Literal, TypeVar

import numpy as np

from sfumato.budget import Budget, Ledger
from sfumato.domain import Outside
from sfumato.domain.columns import Missing
from sfumato.domain.constraints import (
    Constraint,
    auto_or,
    between,
    missing_rule,
    none_or,
    one_of,
    seed,
)
from sfumato.domain.scaling import Scale
from sfumato.errors import ParameterError

Number = float | Fraction | str
Auto = Literal["auto"]
T = TypeVar("T")

# An object of its own: only its identity tells an epsilon of 1 that was given from one that was not.
DEFAULT_EPSILON = float("1")
MOST_CLUSTERS = 10**6  # above any use; keeps arrays within memory


def parameter(
    check: Constraint | None = None,
    *,
    default: Any,
    published: bool = True,
    kw_only: Any = dataclasses.MISSING,
) -> Any:
    """A field of an estimator.

    Parameters
    ----------
    check : callable, optional
        Takes the name and the value, and raises a `ParameterError` for a value that is not allowed.
    default : object
    published : bool
        Whether the release states the value.
    kw_only : bool, optional
        Whether it must be given by name. Shared parameters must, and so must those that change their default.
    """
    metadata = {"check": check, "published": published}
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


def check_fields(estimator: Any) -> None:
    """Raise if a parameter of an estimator has a value that its field does not allow."""
    for field in dataclasses.fields(estimator):
        if check := field.metadata.get("check"):
            check(field.name, getattr(estimator, field.name))


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class SharedParameters:
    """Parameters and attributes that every estimator has.

    Parameters
    ----------
    epsilon, delta, rho : float
        Privacy budget: `epsilon` alone, `epsilon` with `delta`, or `rho` alone. Giving both `epsilon` and
        `rho` is an error.
    bounds : (low, high), Ball, Sphere, Sparse, mapping or "private"
        Public bounds of the columns, never read off the data. A mapping chooses columns by name, see
        `read_bounds`; "private" finds bounds with a tenth of the budget, see `estimate_bounds`. In a mapping,
        ``{"levels": "private"}`` finds the levels of a category with a tenth, see `estimate_levels`. Sparse
        rows need `Sparse`. With `Sphere`, rows count by their direction alone: spherical k-means.
    scale : "bounds" or None
        "bounds" measures each column in units of its public bounds, so that a step across them counts the
        same in each. Columns that share a unit keep it: see docs/columns.md. The plan says which rule
        applied. None takes all columns as they are, for maps, embeddings and pixels.
    weights : mapping or sequence, optional
        How much more a column counts than others: ``{"age": 2}``, or one number per column of an array.
    unit : str, optional
        Column that identifies a person. By default every row counts as a separate person.
    max_rows_per_unit : int
        Maximum number of rows used per person. All noise grows in proportion.
    missing : {"error", "drop"} or mapping
        What to do with rows that have a missing value, or one that is not what was declared. A mapping gives
        columns a public value to use instead, for a category also "other"; rows that still miss one are
        dropped.
    outside : {"clip", "drop"}
        Whether rows outside the bounds are moved to the bounds, or left out. Density methods drop them unless
        told otherwise.
    profiles : "auto" or float
        Share of the budget for profiles: what is in each cluster, column by column. "auto" is a sixth where
        `bounds` name columns, or with `describe`; density methods need `describe`. 0 for none.
    describe : list of str or mapping, optional
        Columns that profiles tell about beside those of `bounds`. A mapping gives bounds or levels. The
        levels of columns in a list are found with a part of the budget, as by ``{"levels": "private"}``.
    ledger : Ledger, optional
        Where the budget is charged before any row is read.
    random_state : int, optional
        Seed for reproducible noise in experiments. The release is then marked: do not publish.

    Attributes
    ----------
    privacy_ : PrivacyStatement
        What was promised and what was spent. Prints in words.
    release_ : Release
        Everything that may be published.
    n_features_in_ : int
        Number of columns.
    labels_ : ndarray of shape (n,)
        Cluster of each training row, or -1 for none. Computed on demand for the data holder; not private.
    """

    epsilon: Number | None = parameter(default=DEFAULT_EPSILON, published=False)
    delta: Number = parameter(default=0.0, published=False)
    rho: Number | None = parameter(default=None, published=False)
    bounds: Any = parameter(default=None, published=False)
    scale: Scale | None = parameter(none_or(one_of("bounds")), default="bounds")
    weights: Any = parameter(default=None)
    unit: str | None = parameter(default=None, published=False)
    max_rows_per_unit: int = parameter(default=1, published=False)
    missing: Missing = parameter(missing_rule, default="error")
    outside: Outside = parameter(one_of("clip", "drop"), default="clip")
    profiles: float | Auto = parameter(auto_or(between(0, 1, open_high=True)), default="auto")
    describe: Any = parameter(default=None, published=False)
    ledger: Ledger | None = parameter(default=None, published=False)
    random_state: int | None = parameter(seed, default=None, published=False)


OF_FITS = ("scale", "weights", "profiles", "describe")  # shared parameters that only a fit has
SHARED = tuple(field.name for field in dataclasses.fields(SharedParameters))


def number_parameter(cls: type) -> str | None:
    """Name of the parameter that gives the number of clusters of an estimator class, if there is one."""
    known = inspect.signature(cls).parameters
    return next((name for name in ("n_clusters", "n_components") if name in known), None)


def given_shared(estimator: Any) -> list[str]:
    """Names of the shared parameters that are not at their defaults."""
    defaults = SharedParameters()

    def is_default(name: str) -> bool:
        value, default = getattr(estimator, name), getattr(defaults, name)
        return value is default or (default is not None and np.array_equal(value, default))

    return [name for name in SHARED if not is_default(name)]


def as_budget(epsilon: Number | None, delta: Number, rho: Number | None) -> Budget:
    """Budget of the three parameters. With `rho`, the others must not be given."""
    if rho is None:
        return Budget(epsilon, delta)
    if not (epsilon is None or epsilon is DEFAULT_EPSILON) or Budget(1, delta).delta:
        raise ParameterError(
            f"use `rho`, or `epsilon` and `delta`, got rho={rho!r}, epsilon={epsilon!r}, "
            f"delta={delta!r}. With `rho`, do not give the other two, or give epsilon=None and delta=0."
        )
    return Budget(rho=rho)


def as_seed(random_state: int | None) -> int | None:
    """Seed of the noise, or None for noise from the operating system."""
    seed("random_state", random_state)
    return None if random_state is None else int(random_state)


def with_shared_text(docstring: str | None, without: Sequence[str] = ()) -> str:
    """Docstring with the shared parameters and attributes described after its own.

    Examples
    --------
    >>> own = "Cluster.\\n\\nParameters\\n----------\\nradius : float\\n"
    >>> print(with_shared_text(own, without=["bounds"]))  # doctest: +ELLIPSIS
    Cluster.
    <BLANKLINE>
    Parameters
    ----------
    radius : float
    epsilon, delta, rho : float
        Privacy budget: ...
    """
    text = inspect.cleandoc(docstring or "")
    for head, entries in _SECTIONS.items():
        shared = "".join(entry for name, entry in entries.items() if name not in without)
        if head in text and shared not in text:
            before, _, after = text.partition(head)
            own, gap, rest = after.partition("\n\n")
            text = f"{before}{head}{own.rstrip()}\n{shared.rstrip()}{gap}{rest}"
    return text


def takes_shared(*without: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a function the shared parameters as keywords, except `without`.

    The function receives them, checked, in its keyword `shared`.
    """
    fields = [field for field in dataclasses.fields(SharedParameters) if field.name not in without]

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "shared"]
        taken = [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
            )
            for field in fields
        ]
        complete = signature.replace(parameters=[*own, *taken])

        @wraps(function)
        def with_shared(*args: Any, **keywords: Any) -> T:
            given = complete.bind(*args, **keywords).arguments
            shared = SharedParameters(**{f.name: given.pop(f.name) for f in fields if f.name in given})
            check_fields(shared)
            return function(**given, shared=shared)

        with_shared.__signature__ = complete  # type: ignore[attr-defined]
        with_shared.__doc__ = with_shared_text(function.__doc__, without)
        return with_shared

    return decorate


def _shared_entries(head: str) -> dict[str, str]:
    """Entries of a section of the shared text, by name."""
    section = inspect.cleandoc(SharedParameters.__doc__ or "").partition(head)[2].partition("\n\n")[0] + "\n"
    entries = re.split(r"(?m)^(?=\S)", section)
    return {entry.partition(" :")[0].partition(",")[0]: entry for entry in entries if entry}


_HEADS = ("Parameters\n----------\n", "Attributes\n----------\n")
_SECTIONS = {head: _shared_entries(head) for head in _HEADS}
