"""``sfumato plan`` and ``sfumato methods``: before anything is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import methods, options
from sfumato.cli.bounds_option import (
    Declared,
    parse_bounds,
    parse_describe,
    parse_profiles,
    parse_weights,
)
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.budget import PricedPlan
    from sfumato.planner import Forecast

_ANY_BOUNDS = (-1.0, 1.0)  # lengths are then in half widths of the domain
_PLACEHOLDER = "person"
_FORECAST = "Forecast"

Spread = Annotated[
    float | None,
    typer.Option(
        help="Standard deviation of a cluster along a column, e.g. --spread 0.5: in the unit of the bounds, "
        "or as a part of their width where columns are measured by it.",
        rich_help_panel=_FORECAST,
    ),
]
CenterError = Annotated[
    float | None,
    typer.Option(
        help="Find the smallest budget with this error per coordinate of a centre, e.g. --center-error 0.01: "
        "in the unit of the bounds, or as a part of their width where columns are measured by it.",
        rich_help_panel=_FORECAST,
    ),
]
SizeError = Annotated[
    float | None,
    typer.Option(
        help="Find the smallest budget with this error of a size, in rows, e.g. --size-error 100.",
        rich_help_panel=_FORECAST,
    ),
]
SmallestCluster = Annotated[
    float | None,
    typer.Option(
        help="Find the smallest budget that shows clusters of this many rows, e.g. --smallest-cluster 500.",
        rich_help_panel=_FORECAST,
    ),
]
InRho = Annotated[
    bool,
    typer.Option(
        "--in-rho",
        help="Find a rho instead of an epsilon, e.g. --size-error 100 --in-rho.",
        rich_help_panel=_FORECAST,
    ),
]
ColumnsNumber = Annotated[
    int | None,
    typer.Option(
        "--columns-number",
        min=1,
        help="Number of columns, e.g. --columns-number 2. A file of bounds says it.",
    ),
]


def plan(
    columns_number: ColumnsNumber = None,
    method: options.MethodOrRecommended = None,
    clusters: options.Clusters = None,
    settings: options.Settings = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    bounds: options.Bounds = None,
    columns: options.Columns = None,
    scale: options.Scale = None,
    weights: options.Weights = None,
    profiles: options.Profiles = None,
    describe: options.Describe = None,
    unit: options.Unit = None,
    max_rows_per_unit: options.MaxRows = 1,
    rows: options.Rows = None,
    spread: Spread = None,
    center_error: CenterError = None,
    size_error: SizeError = None,
    smallest_cluster: SmallestCluster = None,
    in_rho: InRho = False,
    as_json: options.Json = False,
) -> None:
    """Show what a fit will ask, spend and give, or which method or budget to use. Reads no data."""
    from sfumato.planner import forecast
    from sfumato.planner.plans import typical_budget

    wanted = {"center_error": center_error, "size_error": size_error, "smallest_cluster": smallest_cluster}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if rows is None and (wanted or spread is not None):
        raise ParameterError("`--rows` must be given for a forecast. Try --rows 50000")
    people = {
        "unit": unit or (_PLACEHOLDER if max_rows_per_unit > 1 else None),
        "max_rows_per_unit": max_rows_per_unit,
    }
    about = _about_columns(bounds, columns, scale, weights, profiles, describe)
    reason, shared = None, {**people, **about}
    d = _number_of_columns(columns_number, shared["bounds"])
    own = methods.parse_settings(settings or ())
    budget = {} if wanted else options.as_parameters(epsilon, delta, rho)
    expected = None if clusters == "auto" else clusters
    if method is None:
        typical = budget or typical_budget(delta or 0.0, in_rho=in_rho)
        method, number, reason = methods.recommended(rows, d, clusters, typical, shared["bounds"])
    else:
        number = _number(method, clusters, rows)
    methods.make(method, number, own, shared)  # or an error
    if wanted:
        if epsilon is not None or rho is not None:
            raise ParameterError(
                "`--epsilon` and `--rho` must not be given with a wanted error, which finds the budget"
            )
        assert rows is not None
        numbers = {"n": rows, "d": d, "k": expected, "delta": delta or 0.0, "spread": spread}
        budget = _least_budget(
            method=methods.find(method), in_rho=in_rho, **numbers, **wanted, **own, **shared
        )
    estimator = methods.make(method, number, own, {**shared, **budget})
    priced = estimator.plan(d)
    found = None if rows is None else forecast(estimator, rows, d, k=expected, spread=spread)
    (_print_json if as_json else _print)(method, reason, priced, found)


def _about_columns(
    bounds: str | None,
    columns: str | None,
    scale: str | None,
    weights: str | None,
    profiles: str | None,
    describe: str | None,
) -> dict[str, Any]:
    """Parameters of an estimator that say which columns there are and how they are measured and described."""
    chosen = options.split(columns)
    if chosen and bounds is None:
        raise ParameterError("`--columns` must be given with --bounds, which say how wide they are")
    declared = parse_bounds(bounds, chosen) if bounds else Declared(_ANY_BOUNDS)
    share = parse_profiles(profiles)
    return {
        "bounds": declared.bounds,
        **options.as_scale(scale),
        "weights": parse_weights(weights),
        "profiles": share,
        "describe": parse_describe(describe, declared, share),
    }


def _number_of_columns(given: int | None, bounds: Any) -> int:
    """Number of coordinates of the table. A number that is given must not contradict the bounds."""
    from sfumato.planner.columns import n_coordinates

    if isinstance(bounds, dict):
        if given not in (None, len(bounds)):
            raise ParameterError(
                f"`--columns-number` must be {len(bounds)}, the number of columns in --bounds, got {given}. "
                "Leave it out"
            )
        return n_coordinates(bounds, None)
    if given is None:
        raise ParameterError(
            "`--columns-number` must be given, or --bounds with a file that names the columns"
        )
    return given


def _least_budget(**parameters: Any) -> dict[str, float]:
    from sfumato.planner import budget_for

    budget = budget_for(**parameters).budget
    amounts = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    return {name: float(amount) for name, amount in amounts.items() if amount}


def _number(method: str, clusters: Any, rows: float | None) -> Any:
    """Number of clusters for the method. One that finds the number itself has it in the forecast only."""
    from sfumato.cluster.shared.parameters import number_parameter

    return clusters if rows is None or number_parameter(methods.find(method)) else None


def _print(method: str, reason: str | None, priced: PricedPlan, found: Forecast | None) -> None:
    if reason is not None:
        print(f"--method {method}: {reason}\n")
    print(priced)
    if found is not None:
        print(f"\n{found}")


def _print_json(method: str, reason: str | None, priced: PricedPlan, found: Forecast | None) -> None:
    head = ("step", "times", "mechanism", "sensitivity", "noise scale", "cost")
    said = {
        "method": method,
        "reason": reason,
        "budget": priced.budget.to_dict(),
        "measure": priced.note,
        "steps": [dict(zip(head, row, strict=True)) for row in priced.rows()],
        "forecast": None if found is None else found.to_dict(),
    }
    print(json.dumps(said, indent=1, allow_nan=False))


def list_methods() -> None:
    """List all methods, from the library and from other packages."""
    for name, cls in methods.BUILT_IN.items():
        print(f"{name:20} sfumato.{cls}")
    for name, point in sorted(methods.others().items()):
        print(f"{name:20} {point.value}")
