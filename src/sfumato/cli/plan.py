"""``sfumato plan`` and ``sfumato methods``: before anything is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli import methods, options
from sfumato.cli.bounds import read_bounds

_ANY_BOUNDS = (-1.0, 1.0)  # only methods with lengths among their parameters look at bounds in a plan
_PLACEHOLDER = "person"


def plan(
    columns_number: Annotated[int, typer.Option("--columns-number", min=1, help="Number of columns.")],
    method: options.MethodOrNone = None,
    clusters: options.Clusters = None,
    settings: options.Settings = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    bounds: options.Bounds = None,
    unit: options.Unit = None,
    max_rows_per_unit: options.MaxRows = 1,
    rows: Annotated[
        float | None, typer.Option(help="About how many rows: recommends a method if none is given.")
    ] = None,
) -> None:
    """Show what a fit will ask and spend, or which method to take. Reads no data and spends nothing."""
    from sfumato.errors import ParameterError

    budget = options.as_parameters(epsilon, delta, rho)
    if method is None:
        if rows is None:
            raise ParameterError("`--method` or `--rows` must be given: a plan, or a recommendation")
        method = _recommended(rows, columns_number, clusters, budget)
    shared = {
        "bounds": read_bounds(bounds, None) if bounds else _ANY_BOUNDS,
        "unit": unit or (_PLACEHOLDER if max_rows_per_unit > 1 else None),
        "max_rows_per_unit": max_rows_per_unit,
    }
    own = methods.parse_settings(settings or ())
    print(methods.make(method, clusters, own, {**shared, **budget}).plan(columns_number))


def _recommended(rows: float, columns: int, clusters: int | None, budget: dict[str, float]) -> str:
    from sfumato.planner import recommend

    found = recommend(rows, columns, clusters, **budget)
    names = {cls: name for name, cls in methods.BUILT_IN.items()}
    name = names[found.method.__name__]
    print(f"--method {name}: {found.reason}\n")
    return name


def list_methods() -> None:
    """List the methods: those of the library, and those that other packages add."""
    for name, cls in methods.BUILT_IN.items():
        print(f"{name:20} sfumato.{cls}")
    for name, point in sorted(methods.others().items()):
        print(f"{name:20} {point.value}")
