"""Forecasts of a fit, and the least budget that is good enough."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import brentq

from sfumato import cluster
from sfumato.cluster import PrivateClusterer
from sfumato.cluster.shared.parameters import DEFAULT_EPSILON, MOST_CLUSTERS, number_parameter
from sfumato.cluster.shared.traits import Cells, Denoising
from sfumato.curator.footprint import fold_bytes, state_bytes
from sfumato.domain import ALL_ROWS, LARGEST_BOUND
from sfumato.domain.constraints import flag, positive, whole
from sfumato.errors import ParameterError
from sfumato.planner import centres, density, grid_centres
from sfumato.planner.columns import column_errors, n_coordinates
from sfumato.planner.forecast import Forecast
from sfumato.planner.recommendation import CLUSTERS_UNKNOWN, LARGEST_COUNT, recommend
from sfumato.planner.rehearsal import Rehearsal
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.doubts import HIDDEN
from sfumato.public.intervals import half_widths

Number = float | Fraction | str

UNIT_BOX = (-1.0, 1.0)  # lengths are then in half widths of the domain
_PERSON = "person"  # stands for a column that names people
_BUDGETS = (1e-4, 1e3)  # least and largest epsilon or rho that `budget_for` tries
_STRIDE = math.log(4)
_PRECISION = 2e-3  # relative, of the least budget


def plan(
    n: float,
    d: int | None = None,
    k: int | None = None,
    epsilon: Number | None = DEFAULT_EPSILON,
    delta: Number = 0.0,
    method: str | type[PrivateClusterer] | None = None,
    *,
    rho: Number | None = None,
    spread: float | None = None,
    bounds: Any = UNIT_BOX,
    max_rows_per_unit: int = 1,
    **settings: Any,
) -> Forecast:
    """Forecast what a fit will give: errors, the smallest cluster that shows, passes and memory.

    Reads no data and spends nothing: all numbers are public, and those about the data are guesses.

    Parameters
    ----------
    n : float
        Approximate number of rows.
    d : int, optional
        Number of columns. Bounds that name columns say it.
    k : int, optional
        Number of clusters, assumed equal in size. By default 10.
    epsilon, delta : float
        The budget, as for an estimator.
    method : str or class
        A name as on the command line ("dpm", "grid-kmeans"), or an estimator class. By default the one that
        `recommend` names.
    rho : float, optional
        The budget, instead of epsilon.
    spread : float, optional
        Standard deviation of the rows of a cluster along a column, in the units of the data (in metres for
        ``metric="geo"``), or as a part of their widths where columns are measured by their bounds. By default
        0.16 times half the width of the domain, over the d-th root of `k`.
    bounds : (low, high), Ball or mapping
        As for an estimator.
    max_rows_per_unit : int
        Maximum number of rows used per person, if people are protected.
    **settings
        Other parameters of the method, for example ``radius`` and ``min_samples`` of DPDBSCAN, ``describe``
        or ``weights``.

    Returns
    -------
    Forecast
        Prints as a table.

    Notes
    -----
    docs/budget.md explains how errors are computed and where a forecast does not hold. BENCHMARKS.md compares
    forecast and measured errors.

    Examples
    --------
    >>> found = plan(n=50_000, d=6, k=8, epsilon=1.0, method="lloyd-kmeans")
    >>> 0.001 < found.center_error < 0.003
    True
    >>> round(found.size_error), found.passes
    (157, 13)
    >>> found = plan(n=50_000, k=5, delta=1e-6, bounds={"age": (0, 100), "income": (0, 200_000)})
    >>> [(one.column, one.error < 0.01 * one.width) for one in found.columns]
    [('age', True), ('income', True)]
    >>> plan(n=500, d=6, k=8, method="lloyd-kmeans").is_visible
    False
    """
    if method is None:
        found = recommend(n, d, k, epsilon, delta, rho, bounds=bounds)
        method, settings = found.method, {"n_clusters": found.parameters["n_clusters"], **settings}
    made = _made(method, k, settings, bounds, max_rows_per_unit)
    estimator = made(epsilon=epsilon, delta=delta, rho=rho)
    return forecast(estimator, n, d, k=k, spread=spread)


def forecast(
    estimator: PrivateClusterer,
    n: float,
    d: int | None = None,
    *,
    k: int | None = None,
    spread: float | None = None,
) -> Forecast:
    """Forecast what a fit of an estimator will give, with all its parameters. See `plan`.

    Examples
    --------
    >>> from sfumato import DensityTree
    >>> found = forecast(DensityTree(bounds=(0, 100)), n=100_000, d=2, k=5)
    >>> found.cells
    (360, 360)
    """
    positive(most=LARGEST_COUNT)("n", n)
    d = n_coordinates(estimator.bounds, d)
    if k is not None:
        whole(MOST_CLUSTERS)("k", k)
    if spread is not None:
        positive(least=1 / LARGEST_BOUND, most=LARGEST_BOUND)("spread", spread)
    rehearsal = Rehearsal.of(estimator, float(n), int(d), int(k or _n_clusters(estimator)), spread)
    cells = rehearsal.traits.cells
    facts = _centre_facts(rehearsal) if cells is None else _cell_facts(rehearsal, cells)
    if rehearsal.traits.are_joined:
        facts |= {"center_error": None, "size_error": None}
    error = facts["center_error"]
    found = Forecast(
        method=type(estimator).__name__,
        budget=rehearsal.plan.budget,
        n=rehearsal.n,
        d=rehearsal.d,
        k=rehearsal.k,
        spread=rehearsal.spread,
        passes=rehearsal.passes(),
        memory=facts.pop("memory") + _fold_bytes(rehearsal),
        columns=() if error is None else column_errors(estimator, d, error),
        share_error=rehearsal.share_error(),
        **facts,
    )
    return _with_notes(found)


def _n_clusters(estimator: PrivateClusterer) -> int:
    name = number_parameter(type(estimator))
    number = None if name is None else getattr(estimator, name)
    return number if isinstance(number, int) else CLUSTERS_UNKNOWN


def _with_notes(found: Forecast) -> Forecast:
    notes = found.notes
    if not found.is_visible:
        notes += (f"clusters of {found.n / found.k:,.0f} rows would not show: errors do not hold",)
    if found.center_error and found.center_error > found.spread / 2:
        notes += ("centres would be lost in noise: errors do not hold",)
    if hidden := [one.column for one in found.columns if float(half_widths(np.array(one.of_width))) > HIDDEN]:
        notes += (f"noise would hide centres in {', '.join(hidden)}: see how columns are measured",)
    return Forecast(**{**vars(found), "notes": notes})


def _centre_facts(rehearsal: Rehearsal) -> dict[str, Any]:
    of_groups = rehearsal.k * (2 + rehearsal.d)
    center_error, size_error = centres.touching(
        rehearsal, centres.center_error(rehearsal), centres.size_error(rehearsal)
    )
    return {
        "center_error": center_error,
        "size_error": size_error,
        "smallest_cluster": centres.smallest_cluster(rehearsal),
        "memory": state_bytes(max(of_groups, rehearsal.traits.n_integers)),
    }


def _fold_bytes(rehearsal: Rehearsal) -> int:
    shares_rows = rehearsal.traits.moments is not None
    return fold_bytes(rehearsal.n, rehearsal.d, rehearsal.k if shares_rows else 0)


def _cell_facts(rehearsal: Rehearsal, cells: Cells) -> dict[str, Any]:
    histogram = rehearsal.histogram()
    facts = {
        "cells": histogram.grid.shape,
        "cell_width": float(density.cell_widths(rehearsal, histogram).mean()),
        "cell_error": math.sqrt(histogram.variance),
        "memory": cells.bytes_per_cell * histogram.grid.n_cells if histogram.is_dense else cells.bytes_listed,
    }
    if cells.are_spans:
        return facts | _span_facts(rehearsal, histogram)
    return facts | _grid_facts(rehearsal, histogram, cells.denoising)


def _grid_facts(
    rehearsal: Rehearsal, histogram: NoisyHistogram, denoising: Denoising | None
) -> dict[str, Any]:
    center_error, size_error = grid_centres.errors(rehearsal, histogram, denoising)
    facts: dict[str, Any] = {
        "center_error": center_error,
        "size_error": size_error,
        "smallest_cluster": grid_centres.smallest_cluster(rehearsal, histogram),
    }
    if not grid_centres.is_settled(rehearsal, histogram.grid, denoising):
        facts["notes"] = (
            "the grid is too large for the model: errors of centres are rough, see docs/budget.md",
        )
    return facts


def _span_facts(rehearsal: Rehearsal, histogram: NoisyHistogram) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "center_error": None,
        "size_error": density.size_error(rehearsal, histogram),
        "smallest_cluster": density.smallest_cluster(rehearsal, histogram),
    }
    promised = density.promise(rehearsal, histogram)
    if promised is None:
        return facts | {"least_height": density.least_height(histogram)}
    radius, min_samples = density.fitting(rehearsal) or (None, None)
    fitting = {"fitting_radius": radius, "fitting_min_samples": min_samples}
    return facts | fitting | {"guarantee": promised.guarantee}


def budget_for(
    n: float,
    d: int | None = None,
    k: int | None = None,
    method: str | type[PrivateClusterer] | None = None,
    *,
    center_error: float | None = None,
    size_error: float | None = None,
    smallest_cluster: float | None = None,
    delta: Number = 0.0,
    in_rho: bool = False,
    spread: float | None = None,
    bounds: Any = UNIT_BOX,
    max_rows_per_unit: int = 1,
    **settings: Any,
) -> Forecast:
    """Find the least budget whose forecast is good enough. Reads no data and spends nothing.

    Parameters
    ----------
    n, d, k, method
        As for `plan`; the method is by default the one that `recommend` names for an epsilon of 1 with
        this delta, or a rho of 1/2.
    center_error, size_error, smallest_cluster : float, optional
        Upper limits on the forecast. Give at least one.
    delta : float
        Delta of the budget.
    in_rho : bool
        Whether to look for a rho instead of an epsilon.
    spread, bounds, max_rows_per_unit, **settings
        As for `plan`.

    Returns
    -------
    Forecast
        For the least budget, which is its ``budget``, rounded up to three digits. A grid has a whole number
        of cells, so for a method that chooses a grid a slightly smaller budget may be enough too.

    Examples
    --------
    >>> print(budget_for(n=50_000, d=6, k=8, method="lloyd-kmeans", size_error=100).budget)
    epsilon=1.58
    """
    asked = {"center_error": center_error, "size_error": size_error, "smallest_cluster": smallest_cluster}
    wanted = {name: value for name, value in asked.items() if value is not None}
    if not wanted:
        raise ParameterError("`center_error`, `size_error` or `smallest_cluster` must be given, got none")
    for name, value in wanted.items():
        positive()(name, value)
    flag("in_rho", in_rho)
    if in_rho and not (isinstance(delta, Real) and delta == 0):
        raise ParameterError(f"`delta` must be 0 with a rho, got {delta!r}")
    if method is None:
        found = recommend(n, d, k, bounds=bounds, **typical_budget(delta, in_rho=in_rho))
        method, settings = found.method, {"n_clusters": found.parameters["n_clusters"], **settings}
    make = _made(method, k, settings, bounds, max_rows_per_unit)

    @cache
    def at(amount: float) -> Forecast:
        budget = {"rho": amount} if in_rho else {"epsilon": amount, "delta": delta}
        return forecast(make(**budget), n, d, k=k, spread=spread)

    return _least(at, wanted)


def typical_budget(delta: Number, *, in_rho: bool) -> dict[str, Any]:
    """Budget for which a method is recommended while the least one is not known yet."""
    return {"rho": 0.5} if in_rho else {"epsilon": DEFAULT_EPSILON, "delta": delta}


def _made(
    method: str | type[PrivateClusterer],
    k: int | None,
    settings: dict[str, Any],
    bounds: Any,
    max_rows_per_unit: int,
) -> Callable[..., PrivateClusterer]:
    """Constructor of the estimator that needs only the budget."""
    cls = _found(method) if isinstance(method, str) else method
    if not (inspect.isclass(cls) and issubclass(cls, PrivateClusterer)):
        raise ParameterError(f"`method` must be a name or a class of a method, got {method!r}")
    known = [name for name in inspect.signature(cls).parameters if name not in ("epsilon", "delta", "rho")]
    if unknown := sorted(set(settings) - set(known)):
        raise ParameterError(
            f"settings must be parameters of {cls.__name__} ({', '.join(known)}), got `{unknown[0]}`"
        )
    whole(ALL_ROWS)("max_rows_per_unit", max_rows_per_unit)
    parameters = {"bounds": bounds, "max_rows_per_unit": max_rows_per_unit, **settings}
    if max_rows_per_unit != 1:
        parameters.setdefault("unit", _PERSON)
    number = number_parameter(cls)
    if number and k is not None:
        parameters.setdefault(number, k)
    return lambda **budget: cls(**parameters, **budget)


def _found(name: str) -> type[PrivateClusterer]:
    """Class by its name on the command line: lower case, with or without hyphens."""
    classes = {
        cls.__name__.lower(): cls
        for cls in (getattr(cluster, each) for each in cluster.__all__)
        if inspect.isclass(cls) and issubclass(cls, PrivateClusterer) and not inspect.isabstract(cls)
    }
    plain = name.replace("-", "").lower()
    found = classes.get(plain) or classes.get(f"{plain}clustering") or classes.get(f"private{plain}")
    if found is None:
        names = ", ".join(sorted(cls.__name__ for cls in classes.values()))
        raise ParameterError(f"`method` must be one of {names}, got {name!r}")
    return found


def _least(at: Callable[[float], Forecast], wanted: dict[str, float]) -> Forecast:
    """Forecast for the least budget that meets all limits."""

    def excess(log_amount: float) -> float:
        found = at(math.exp(log_amount))
        values = {name: getattr(found, name) for name in wanted}
        if None in values.values():
            none = next(name for name, value in values.items() if value is None)
            raise ParameterError(f"`{none}` must not be given: there is no forecast of it for {found.method}")
        return max(math.log(values[name] / value) for name, value in wanted.items())

    low = high = 0.0
    while excess(high) > 0:
        low, high = high, high + _STRIDE
        if high > math.log(_BUDGETS[1]):
            got = ", ".join(f"{name}={value:g}" for name, value in wanted.items())
            raise ParameterError(
                f"no budget up to {_BUDGETS[1]:g} is enough for {got}: use more rows, or allow larger numbers"
            )
    while high == 0.0 or excess(low) <= 0:
        low, high = low - _STRIDE, low
        if low < math.log(_BUDGETS[0]):
            return at(_BUDGETS[0])
        if excess(low) > 0:
            break
    amount = _rounded_up(math.exp(brentq(excess, low, high, xtol=_PRECISION)))
    while excess(math.log(amount)) > 0:
        amount = _rounded_up(amount * (1 + _PRECISION))
    return at(amount)


def _rounded_up(amount: float) -> float:
    """At least the amount, with three digits."""
    unit = 10.0 ** (math.floor(math.log10(amount)) - 2)
    return float(f"{np.ceil(amount / unit - 1e-9) * unit:.3g}")
