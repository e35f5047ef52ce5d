"""Options that several commands share, and the config file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import methods
from sfumato.cli.bounds_option import read_toml
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.budget import Budget

_SETTINGS = "sfumato.settings"


def _from_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """Read from a TOML file the options that the command line does not give."""
    if path is None or ctx.resilient_parsing:
        return path
    try:
        content = read_toml(path)
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from None
    names = {_key(param): param.name for param in ctx.command.params if param.name not in ("config", "help")}
    if ctx.command.name == "check":  # it takes the file of a fit, of which it needs a part
        content = {key: value for key, value in content.items() if key in names}
    if unknown := sorted(set(content) - set(names)):
        raise typer.BadParameter(f"{path} has {', '.join(unknown)}; it may have {', '.join(names)}")
    ctx.meta[_SETTINGS] = content.pop("set", {})
    if not isinstance(ctx.meta[_SETTINGS], dict):
        raise typer.BadParameter(f"`set` in {path} must be a table, got {ctx.meta[_SETTINGS]!r}")
    ctx.default_map = {names[key]: _as_option(key, value, path) for key, value in content.items()}
    return path


def _clusters(text: Any) -> Any:
    try:
        number = methods.parse_number(text)
    except ParameterError:
        number = 0
    if number != "auto" and number < 1:
        raise typer.BadParameter(f"it must be a whole number from 1, or auto, got {text!r}")
    return number


def _key(param: Any) -> str:
    return str(max(param.opts, key=len)).lstrip("-").replace("-", "_")


def _as_option(key: str, value: Any, path: Path) -> Any:
    """A value as the command line would have it."""
    if key in ("bounds", "describe") and isinstance(value, dict):
        return f"{path}#{key}"
    if key == "labels" and isinstance(value, dict):
        return str(path)
    if isinstance(value, dict):
        return ",".join(f"{name}={one}" for name, one in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) and key != "date_format" else value


def config_settings(ctx: typer.Context) -> dict[str, Any]:
    """Parameters of the method in the config file."""
    return dict(ctx.meta.get(_SETTINGS, {}))


def unless(ctx: typer.Context, name: str, *rivals: str) -> Any:
    """Value of an option; None if it comes from the config file and a rival from the command line."""

    def source(of: str) -> str:
        return getattr(ctx.get_parameter_source(of), "name", "")

    overruled = source(name) == "DEFAULT_MAP" and any(source(rival) == "COMMANDLINE" for rival in rivals)
    return None if overruled else ctx.params[name]


def budget_of(epsilon: float | None, delta: float | None, rho: float | None) -> Budget:
    """The budget. There is no default, because none suits everybody."""
    from sfumato.budget import Budget

    if (epsilon is None) == (rho is None):
        got = "neither" if rho is None else "both"
        raise ParameterError(f"`--epsilon` or `--rho` must be given, got {got}. Try --epsilon 1")
    return Budget(epsilon, delta or 0, rho=rho)


def as_parameters(epsilon: float | None, delta: float | None, rho: float | None) -> dict[str, float]:
    """Parameters of an estimator that state the budget."""
    budget_of(epsilon, delta, rho)
    given = {"epsilon": epsilon, "delta": delta, "rho": rho}
    return {name: value for name, value in given.items() if value is not None}


def as_scale(text: str | None) -> dict[str, Any]:
    """Parameter of an estimator that says how columns are measured, if it was given."""
    if text is None:
        return {}
    if text not in ("bounds", "none"):
        raise ParameterError(f"`--scale` must be bounds or none, got {text!r}")
    return {"scale": None if text == "none" else text}


def split(text: str | None) -> list[str] | None:
    """Names between commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A file, a folder or a pattern. Parquet, Feather, or text such as CSV."
    ),
]
ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.")]
Method = Annotated[
    str,
    typer.Option(
        help="Method, e.g. --method dpm. `sfumato methods` lists them.",
        autocompletion=methods.names,
        rich_help_panel="Method",
    ),
]
MethodOrRecommended = Annotated[
    str | None,
    typer.Option(
        help="Method, e.g. --method density-tree. `sfumato methods` lists them. By default the one that "
        "`sfumato plan` recommends with the same options.",
        autocompletion=methods.names,
        rich_help_panel="Method",
    ),
]
Rows = Annotated[
    float | None,
    typer.Option(
        help="Approximate number of rows, a public guess, e.g. --rows 50000. It may change which method is "
        "recommended if rows are few; `plan` also adds a forecast.",
        rich_help_panel="Method",
    ),
]
Clusters = Annotated[
    Any,
    typer.Option(
        help="Number of clusters, e.g. --clusters 8, or auto, for as many as are separated.",
        parser=_clusters,
        metavar="NUMBER|auto",
        rich_help_panel="Method",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another parameter of the method, e.g. --set max_depth=5. May be repeated. On maps: --method "
        "density-tree --set metric=geo takes longitude and latitude in degrees, and lengths in metres.",
        rich_help_panel="Method",
    ),
]
Epsilon = Annotated[
    float | None, typer.Option(help="Privacy budget, e.g. --epsilon 1.", rich_help_panel="Budget")
]
Delta = Annotated[
    float | None,
    typer.Option(help="Delta of the budget, with epsilon, e.g. --delta 1e-6.", rich_help_panel="Budget"),
]
Rho = Annotated[
    float | None,
    typer.Option(help="Privacy budget in rho, instead of epsilon, e.g. --rho 0.1.", rich_help_panel="Budget"),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(help="Ledger file to charge, e.g. --ledger budget.db.", rich_help_panel="Budget"),
]
Dataset = Annotated[
    str | None,
    typer.Option(help="Name of the data set in the ledger, e.g. --dataset trips.", rich_help_panel="Budget"),
]
Part = Annotated[
    str | None,
    typer.Option(
        help="The part of the data set that DATA holds, as the ledger declares it, e.g. --part 2026-01.",
        rich_help_panel="Budget",
    ),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH|FILE|private",
        help="Public bounds of all columns, e.g. --bounds 0,40, or a TOML file with the bounds of each. "
        "`private` buys them with a tenth of the budget.",
        rich_help_panel="Table",
    ),
]
EstimateBounds = Annotated[
    float | None,
    typer.Option(
        metavar="EPSILON",
        help="Buy bounds first, with this additional epsilon, e.g. --estimate-bounds 0.1.",
        rich_help_panel="Table",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Columns to use, e.g. --columns east,north.", rich_help_panel="Table"),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="error|drop|A=VALUE,...",
        help="What to do with rows that miss a value: refuse the table (the default), leave them out, "
        "or use a public value instead, e.g. --missing drop or --missing age=40,job=unknown.",
        rich_help_panel="Table",
    ),
]
OutsideRule = Annotated[
    str | None,
    typer.Option(
        "--outside",
        metavar="clip|drop",
        help="Move rows outside the bounds to the edge, or leave them out, e.g. --outside drop. By default "
        "only density methods leave them out.",
        rich_help_panel="Table",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(help="Column that identifies a person, e.g. --unit cab.", rich_help_panel="Table"),
]
MaxRows = Annotated[
    int,
    typer.Option(
        "--max-rows-per-unit",
        help="Maximum number of rows used per person, e.g. --max-rows-per-unit 5.",
        rich_help_panel="Table",
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        metavar="bounds|none",
        help="Measure each column in units of its bounds (the default), unless columns share a unit, or all "
        "as they are, e.g. --scale none. `sfumato plan` says how columns are measured.",
        rich_help_panel="Table",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="A=NUMBER,...",
        help="How much more columns count than others, e.g. --weights age=2,job=0.5.",
        rich_help_panel="Table",
    ),
]
Profiles = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE|0",
        help="Share of the budget for profiles, which say what is in each cluster, e.g. --profiles 0.2. By "
        "default a sixth if columns have names; 0 for none.",
        rich_help_panel="Table",
    ),
]
Describe = Annotated[
    str | None,
    typer.Option(
        metavar="A,B|FILE",
        help="Columns that profiles tell about although clusters are not found by them, e.g. --describe "
        "ward,insurance. Their bounds are in the table `describe` of the file of bounds; levels of others "
        "are bought.",
        rich_help_panel="Table",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite existing files, e.g. --out release.json --force.")
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="TOML file with a table of texts, `labels`, for columns, e.g. --labels labels.toml. A line of "
        "it: los = 'Days in hospital'."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs: --json.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only errors and warnings: --quiet.")]
Config = Annotated[
    Path | None,
    typer.Option(
        callback=_from_config,
        is_eager=True,
        help="TOML file with any of these options, e.g. --config release.toml. The command line wins.",
    ),
]
