"""Forecasts of a fit, and the least budget whose forecast is good enough."""

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
from sfumato.cluster import DPDBSCAN, DensityTree, DPMoG, GridKMeans, MorseClustering, PrivateClusterer
from sfumato.cluster.coreset_kmeans import EXTRA_LEVELS
from sfumato.cluster.coreset_kmeans import N_BINS as CORESET_BINS
from sfumato.cluster.dpm import N_BINS as TREE_BINS
from sfumato.cluster.shared.candidates import LEAVES_PER_CANDIDATE, max_candidates
from sfumato.cluster.shared.density_base import BYTES_PER_CELL, BYTES_PER_LISTED, N_FALSE
from sfumato.cluster.shared.parameters import MOST_CLUSTERS
from sfumato.cluster.shared.refine import SPLIT_RULE
from sfumato.domain import ALL_ROWS, LARGEST_BOUND, MOST_COLUMNS
from sfumato.domain.constraints import flag, positive, whole
from sfumato.errors import ParameterError
from sfumato.planner import cells, centres, density
from sfumato.planner.forecast import Forecast
from sfumato.planner.recommendation import CLUSTERS_UNKNOWN, LARGEST_COUNT
from sfumato.planner.rehearsal import UNIT_BOX, Rehearsal
from sfumato.private.aggregates.moments import BLOCK_VALUES as MOST_SHARED
from sfumato.private.engines.base import BLOCK_VALUES, N_THREADS
from sfumato.public.density.histogram import NoisyHistogram

Number = float | Fraction | str

_PERSON = "person"  # stands for a column that names people
_NUMBERS = ("n_clusters", "n_components")
_CELL_METHODS = (GridKMeans, DPMoG, DPDBSCAN, DensityTree)
_BYTES_PER_VALUE = 24  # of a block of rows: as they are, clipped, and displaced
_GRID_BYTES = 40  # per cell of a grid that is read as a whole
_BUDGETS = (1e-4, 1e3)  # least and largest epsilon or rho that `budget_for` tries
_STRIDE = math.log(4)
_PRECISION = 2e-3  # relative, of the least budget


def plan(
    n: float,
    d: int,
    k: int | None = None,
    epsilon: Number | None = 1.0,
    delta: Number = 0.0,
    method: str | type[PrivateClusterer] = "dpm",
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
        About how many rows.
    d : int
        Number of columns.
    k : int, optional
        Number of clusters, taken to be equal; 10 if not given.
    epsilon, delta : float
        The budget, as for an estimator.
    method : str or class
        A name of the command line, such as "dpm" or "grid-kmeans", or an estimator class.
    rho : float, optional
        The budget, instead of epsilon.
    spread : float, optional
        Standard deviation of the rows of a cluster along a column, in the units of the data (in metres for
        ``metric="geo"``). By default 0.16 times half the width of the domain, over the d-th root of `k`.
    bounds : (low, high), Ball or mapping
        As for an estimator.
    max_rows_per_unit : int
        Rows of a person, where people are protected.
    **settings
        Other parameters of the method, such as ``radius`` and ``min_samples`` of DPDBSCAN.

    Returns
    -------
    Forecast
        Prints as a table.

    Notes
    -----
    How errors are computed, and where the forecast does not hold: docs/budget.md. Forecast and measured
    errors: BENCHMARKS.md.

    Examples
    --------
    >>> found = plan(n=50_000, d=6, k=8, epsilon=1.0, method="lloyd-kmeans")
    >>> 0.001 < found.center_error < 0.003
    True
    >>> round(found.size_error), found.passes
    (157, 13)
    >>> plan(n=500, d=6, k=8, method="lloyd-kmeans").is_visible
    False
    """
    budget = {"epsilon": epsilon, "delta": delta} if rho is None else {"rho": rho}
    estimator = _made(method, k, settings, bounds, max_rows_per_unit)(**budget)
    return forecast(estimator, n, d, k=k, spread=spread)


def forecast(
    estimator: PrivateClusterer, n: float, d: int, *, k: int | None = None, spread: float | None = None
) -> Forecast:
    """Forecast what a fit of an estimator will give, with all of its parameters. See `plan`.

    Examples
    --------
    >>> from sfumato import DensityTree
    >>> found = forecast(DensityTree(bounds=(0, 100)), n=100_000, d=2, k=5)
    >>> found.cells
    (119, 119)
    """
    positive(most=LARGEST_COUNT)("n", n)
    whole(MOST_COLUMNS)("d", d)
    if k is not None:
        whole(MOST_CLUSTERS)("k", k)
    if spread is not None:
        positive(least=1 / LARGEST_BOUND, most=LARGEST_BOUND)("spread", spread)
    rehearsal = Rehearsal.of(estimator, float(n), int(d), int(k or _n_clusters(estimator)), spread)
    has_cells = isinstance(rehearsal.method, _CELL_METHODS) and rehearsal.steps & {"grid", "cells"}
    facts = _cell_facts(rehearsal) if has_cells else _centre_facts(rehearsal)
    if isinstance(estimator, MorseClustering):  # its clusters are components joined, of any shape
        facts |= {"center_error": None, "size_error": None}
    found = Forecast(
        method=type(estimator).__name__,
        budget=rehearsal.plan.budget,
        n=rehearsal.n,
        d=rehearsal.d,
        k=rehearsal.k,
        spread=rehearsal.spread,
        passes=rehearsal.passes(),
        memory=facts.pop("memory") + _block_bytes(rehearsal),
        **facts,
    )
    return _with_notes(found)


def _n_clusters(estimator: PrivateClusterer) -> int:
    given = [getattr(estimator, name, None) for name in _NUMBERS]
    return next((number for number in given if isinstance(number, int)), CLUSTERS_UNKNOWN)


def _with_notes(found: Forecast) -> Forecast:
    notes = found.notes
    if not found.is_visible:
        notes += (f"clusters of {found.n / found.k:,.0f} rows would not show: errors do not hold",)
    if found.center_error and found.center_error > found.spread / 2:
        notes += ("centres would be lost in noise: errors do not hold",)
    return Forecast(**{**vars(found), "notes": notes})


def _centre_facts(rehearsal: Rehearsal) -> dict[str, Any]:
    return {
        "center_error": centres.center_error(rehearsal),
        "size_error": centres.size_error(rehearsal),
        "smallest_cluster": centres.smallest_cluster(rehearsal),
        "memory": 8 * (N_THREADS + 2) * _largest_state(rehearsal),
    }


def _block_bytes(rehearsal: Rehearsal) -> int:
    """Bytes of the rows that are looked at at a time, and of what is computed from them."""
    values = min(rehearsal.n * rehearsal.d, N_THREADS * BLOCK_VALUES)
    shared = values / rehearsal.d * rehearsal.k if "moments" in rehearsal.steps else 0.0
    return int(_BYTES_PER_VALUE * values + 8 * min(shared, N_THREADS * MOST_SHARED))


def _largest_state(rehearsal: Rehearsal) -> int:
    """Integers in the largest summary of the rows that a step needs; each thread has one."""
    d, k, steps = rehearsal.d, rehearsal.k, rehearsal.steps
    entries = [k * (2 + d)]
    if "cell splits" in steps:
        entries.append(k * d * SPLIT_RULE.n_bins)
    if isinstance(rehearsal.method, cluster.DPM):
        entries.append(2**rehearsal.method.max_depth * d * TREE_BINS)
    if "cuts" in steps:
        entries.append(2 ** (k - 1).bit_length() * 2**EXTRA_LEVELS * CORESET_BINS)
    if "boxes" in steps:
        entries.append(LEAVES_PER_CANDIDATE * max_candidates(k) * (2 + d))
    if "swap" in steps:
        entries.append(max(k, max_candidates(k)) * max_candidates(k))
    return max(entries)


def _cell_facts(rehearsal: Rehearsal) -> dict[str, Any]:
    histogram = rehearsal.histogram()
    facts = {
        "cells": histogram.grid.shape,
        "cell_width": float(density.cell_widths(rehearsal, histogram).mean()),
        "cell_error": math.sqrt(histogram.variance),
    }
    is_density = isinstance(rehearsal.method, DPDBSCAN | DensityTree)
    return facts | (_density_facts if is_density else _grid_facts)(rehearsal, histogram)


def _grid_facts(rehearsal: Rehearsal, histogram: NoisyHistogram) -> dict[str, Any]:
    center_error, size_error = cells.errors(rehearsal, histogram)
    facts: dict[str, Any] = {
        "center_error": center_error,
        "size_error": size_error,
        "smallest_cluster": cells.smallest_cluster(rehearsal, histogram),
        "memory": _GRID_BYTES * histogram.grid.n_cells,
    }
    if not cells.is_settled(rehearsal, histogram.grid):
        facts["notes"] = (
            "the grid is too large for the model: errors of centres are rough, see docs/budget.md",
        )
    if isinstance(rehearsal.method, DPMoG):
        facts["memory"] *= 2 * (1 + rehearsal.d + rehearsal.d**2) // 5
    return facts


def _density_facts(rehearsal: Rehearsal, histogram: NoisyHistogram) -> dict[str, Any]:
    per_cell = BYTES_PER_CELL * histogram.grid.n_cells
    facts = {
        "center_error": None,
        "size_error": density.size_error(rehearsal, histogram),
        "smallest_cluster": density.smallest_cluster(rehearsal, histogram),
        "memory": per_cell if histogram.is_dense else BYTES_PER_LISTED * N_FALSE,
    }
    if isinstance(rehearsal.method, DensityTree):
        return facts | {"least_height": density.least_height(histogram)}
    fitting = density.fitting(rehearsal)
    if fitting is not None:
        facts |= {"fitting_radius": fitting.radius, "fitting_min_samples": fitting.min_samples}
    return facts | {"guarantee": density.guarantee(rehearsal, histogram)}


def budget_for(
    n: float,
    d: int,
    k: int | None = None,
    method: str | type[PrivateClusterer] = "dpm",
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
        As for `plan`.
    center_error, size_error, smallest_cluster : float, optional
        What the forecast may have at most; at least one of them.
    delta : float
        Delta of the budget.
    in_rho : bool
        Whether to look for a rho instead of an epsilon.
    spread, bounds, max_rows_per_unit, **settings
        As for `plan`.

    Returns
    -------
    Forecast
        Of the least budget, rounded up to three digits: its ``budget``. Grids have whole numbers of cells, so
        that for methods that choose one a somewhat smaller budget may do, too.

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
    make = _made(method, k, settings, bounds, max_rows_per_unit)

    @cache
    def at(amount: float) -> Forecast:
        budget = {"rho": amount} if in_rho else {"epsilon": amount, "delta": delta}
        return forecast(make(**budget), n, d, k=k, spread=spread)

    return _least(at, wanted)


def _made(
    method: str | type[PrivateClusterer],
    k: int | None,
    settings: dict[str, Any],
    bounds: Any,
    max_rows_per_unit: int,
) -> Callable[..., PrivateClusterer]:
    """Constructor that lacks only the budget."""
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
    number = next((name for name in _NUMBERS if name in known), None)
    if number and k is not None:
        parameters.setdefault(number, k)
    return lambda **budget: cls(**parameters, **budget)


def _found(name: str) -> type[PrivateClusterer]:
    """Class by a name like that of the command line: lower case, with or without hyphens."""
    classes = {
        cls.__name__.lower(): cls
        for cls in (getattr(cluster, each) for each in cluster.__all__)
        if inspect.isclass(cls) and issubclass(cls, PrivateClusterer) and not inspect.isabstract(cls)
    }
    plain = name.replace("-", "").lower()
    found = classes.get(plain) or classes.get(f"{plain}clustering")
    if found is None:
        names = ", ".join(sorted(cls.__name__ for cls in classes.values()))
        raise ParameterError(f"`method` must be one of {names}, got {name!r}")
    return found


def _least(at: Callable[[float], Forecast], wanted: dict[str, float]) -> Forecast:
    """Forecast of the least budget that meets all wishes."""

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
                f"no budget up to {_BUDGETS[1]:g} is enough for {got}: take more rows, or ask less"
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
