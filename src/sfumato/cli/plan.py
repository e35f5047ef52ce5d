"""``sfumato plan`` and ``sfumato methods``: before anything is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import methods, options
from sfumato.cli.bounds_option import parse_bounds
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.budget import PricedPlan
    from sfumato.planner import Forecast

_ANY_BOUNDS = (-1.0, 1.0)  # lengths are then in half widths of the domain
_PLACEHOLDER = "person"
_FORECAST = "Forecast"

Rows = Annotated[
    float | None,
    typer.Option(
        help="Approximate number of rows, e.g. --rows 50000. Adds a forecast; recommends a method if needed.",
        rich_help_panel=_FORECAST,
    ),
]
Spread = Annotated[
    float | None,
    typer.Option(
        help="Standard deviation of a cluster along a column, in the unit of the bounds, e.g. --spread 0.5.",
        rich_help_panel=_FORECAST,
    ),
]
CenterError = Annotated[
    float | None,
    typer.Option(
        help="Find the smallest budget with this error per coordinate of a centre, e.g. --center-error 0.01.",
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
    int, typer.Option("--columns-number", min=1, help="Number of columns, e.g. --columns-number 2.")
]


def plan(
    columns_number: ColumnsNumber,
    method: options.MethodOrNone = None,
    clusters: options.Clusters = None,
    settings: options.Settings = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    bounds: options.Bounds = None,
    unit: options.Unit = None,
    max_rows_per_unit: options.MaxRows = 1,
    rows: Rows = None,
    spread: Spread = None,
    center_error: CenterError = None,
    size_error: SizeError = None,
    smallest_cluster: SmallestCluster = None,
    in_rho: InRho = False,
    as_json: options.Json = False,
) -> None:
    """Show what a fit will ask, spend and give, or which method or budget to use. Reads no data."""
    from sfumato.planner import forecast

    wanted = {"center_error": center_error, "size_error": size_error, "smallest_cluster": smallest_cluster}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    if rows is None and (wanted or method is None or spread is not None):
        raise ParameterError("`--rows` must be given for a forecast or a recommendation. Try --rows 50000")
    reason, shared = None, _shared(bounds, unit, max_rows_per_unit)
    own = methods.parse_settings(settings or ())
    budget = {} if wanted else options.as_parameters(epsilon, delta, rho)
    if method is None:
        assert rows is not None
        method, reason = _recommended(rows, columns_number, clusters, budget or {"epsilon": 1.0})
    number = _number(method, clusters, rows)
    methods.make(method, number, own, shared)  # or an error
    if wanted:
        if epsilon is not None or rho is not None:
            raise ParameterError(
                "`--epsilon` and `--rho` must not be given with a wanted error, which finds the budget"
            )
        assert rows is not None
        numbers = {"n": rows, "d": columns_number, "k": clusters, "delta": delta or 0.0, "spread": spread}
        budget = _least_budget(
            method=methods.find(method), in_rho=in_rho, **numbers, **wanted, **own, **shared
        )
    estimator = methods.make(method, number, own, {**shared, **budget})
    priced = estimator.plan(columns_number)
    found = None if rows is None else forecast(estimator, rows, columns_number, k=clusters, spread=spread)
    (_print_json if as_json else _print)(method, reason, priced, found)


def _shared(bounds: str | None, unit: str | None, max_rows_per_unit: int) -> dict[str, Any]:
    return {
        "bounds": parse_bounds(bounds, None).bounds if bounds else _ANY_BOUNDS,
        "unit": unit or (_PLACEHOLDER if max_rows_per_unit > 1 else None),
        "max_rows_per_unit": max_rows_per_unit,
    }


def _least_budget(**parameters: Any) -> dict[str, float]:
    from sfumato.planner import budget_for

    budget = budget_for(**parameters).budget
    amounts = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    return {name: float(amount) for name, amount in amounts.items() if amount}


def _number(method: str, clusters: int | None, rows: float | None) -> int | None:
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
        "steps": [dict(zip(head, row, strict=True)) for row in priced.rows()],
        "forecast": None if found is None else found.to_dict(),
    }
    print(json.dumps(said, indent=1, allow_nan=False))


def _recommended(
    rows: float, columns: int, clusters: int | None, budget: dict[str, float]
) -> tuple[str, str]:
    from sfumato.planner import recommend

    found = recommend(rows, columns, clusters, **budget)
    names = {cls: name for name, cls in methods.BUILT_IN.items()}
    return names[found.method.__name__], found.reason


def list_methods() -> None:
    """List all methods, from the library and from other packages."""
    for name, cls in methods.BUILT_IN.items():
        print(f"{name:20} sfumato.{cls}")
    for name, point in sorted(methods.others().items()):
        print(f"{name:20} {point.value}")
