"""``sfumato fit``: from a table to a release file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from errno import EEXIST
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import methods, options
from sfumato.cli.bounds_option import (
    PRIVATE,
    Declared,
    parse_bounds,
    parse_describe,
    parse_missing,
    parse_profiles,
    parse_weights,
)
from sfumato.cli.check import look
from sfumato.cli.failures import say
from sfumato.cli.files import check_new
from sfumato.cli.options import unless
from sfumato.cli.report import read_labels
from sfumato.cli.steps import followed
from sfumato.cli.text_options import described, takes_text_options
from sfumato.errors import (
    BudgetExceededError,
    LedgerError,
    ParameterError,
    ReleaseError,
    told_if_interrupted,
)

if TYPE_CHECKING:
    from sfumato.budget import Budget, Ledger, PrivacyStatement
    from sfumato.cluster import PrivateClusterer
    from sfumato.release import Release


@takes_text_options
def fit(
    ctx: typer.Context,
    data: options.Data,
    method: options.MethodOrRecommended = None,
    clusters: options.Clusters = None,
    rows: options.Rows = None,
    settings: options.Settings = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    part: options.Part = None,
    bounds: options.Bounds = None,
    estimate_bounds: options.EstimateBounds = None,
    columns: options.Columns = None,
    scale: options.Scale = None,
    weights: options.Weights = None,
    profiles: options.Profiles = None,
    describe: options.Describe = None,
    unit: options.Unit = None,
    max_rows_per_unit: options.MaxRows = 1,
    missing: options.Missing = None,
    outside: options.OutsideRule = None,
    checked: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Look at the table first, and refuse what does not fit before anything is charged. Use "
            "--no-check if you do not hold the table: whether it is refused depends on exact values. The "
            "default is --check.",
        ),
    ] = True,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeatable noise for experiments, e.g. --seed 1. Do not publish the result."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Release file to write, e.g. --out release.json.")] = Path(
        "release.json"
    ),
    report: Annotated[
        Path | None,
        typer.Option(help="HTML report to write as well, e.g. --report report.html."),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the report, e.g. --title 'Kinds of stays'.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with a table of texts, `labels`, for columns in the report, e.g. --labels "
            "labels.toml. By default the file of bounds, if it has one."
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
    *,
    written: dict[str, Any],
) -> None:
    """Cluster a table under differential privacy, and write a release file that may be published."""
    check_new(out, report, force=force)
    _check_pictures(report)
    account = open_ledger(ledger, dataset, part, seed)
    bounds, price = unless(ctx, "bounds", "estimate_bounds"), unless(ctx, "estimate_bounds", "bounds")
    chosen = options.split(columns)
    declared = _declared(bounds, price, chosen)
    text = described(data, written, declared.written)
    absent = parse_missing(missing, declared)
    table = _Table(text, chosen, unit, max_rows_per_unit, absent, account, seed)
    texts = declared.labels if labels is None else read_labels(labels)
    estimator, reason = estimator_of(ctx, declared, table.shared(), table.n_columns)
    if checked:
        _look(table, estimator, quiet=quiet)
    bought = None if price is None else _buy_bounds(estimator, table, price, quiet=quiet)
    before = "" if bought is None else f"the bounds, bought before, cost {bought.spent}"
    plan = estimator.plan(table.n_columns())
    if reason is not None and not quiet:
        say(reason)
    with told_if_interrupted(lambda: before), followed(plan, quiet=quiet):
        release = estimator.fit(table.data).release_
    write_release(release, out, report, force=force, title=title, labels=texts)
    if as_json:
        print(json.dumps(_as_dict(release, bought, out, report), allow_nan=False))
    elif not quiet:
        print(summary(release, bought, out, report))


def estimator_of(
    ctx: typer.Context, declared: Declared, shared: dict[str, Any], n_columns: Callable[[], int]
) -> tuple[PrivateClusterer, str | None]:
    """The estimator of the options on the method, the budget and the columns; why, if no method is named.

    The number of columns is asked for only if no method is given and the bounds do not name columns.
    """
    given = ctx.params
    epsilon, delta = unless(ctx, "epsilon", "rho"), unless(ctx, "delta", "rho")
    budget = options.as_parameters(epsilon, delta, unless(ctx, "rho", "epsilon", "delta"))
    share = parse_profiles(given["profiles"])
    explained = {"profiles": share, "describe": parse_describe(given["describe"], declared, share)}
    measured = {**options.as_scale(given["scale"]), "weights": parse_weights(given["weights"])}
    outside = {} if given["outside"] is None else {"outside": given["outside"]}
    own = {**options.config_settings(ctx), **methods.parse_settings(given["settings"] or ())}
    shared = {**shared, **budget, **measured, **explained, **outside, "bounds": declared.bounds}
    method, clusters, reason = given["method"], given["clusters"], None
    if method is None:
        d = len(declared.bounds) if isinstance(declared.bounds, dict) else n_columns()
        method, clusters, why = methods.recommended(given["rows"], d, clusters, budget, declared.bounds)
        reason = f"--method {method}: {why}"
    return methods.make(method, clusters, own, shared), reason


@dataclass(frozen=True)
class _Table:
    """The table, who is protected in it, and the ledger to charge."""

    data: Any  # a path or a TextTable
    columns: list[str] | None
    unit: str | None
    max_rows_per_unit: int
    missing: Any
    ledger: Ledger | None
    seed: int | None

    def shared(self) -> dict[str, Any]:
        """Parameters of a fit, and of a purchase of bounds before it."""
        return {
            "unit": self.unit,
            "max_rows_per_unit": self.max_rows_per_unit,
            "missing": self.missing,
            "ledger": self.ledger,
            "random_state": self.seed,
        }

    def n_columns(self) -> int:
        """Number of columns to read, unless bounds choose them. Reads the schema of the first file."""
        from sfumato.curator.tables import column_names

        return len(self.columns or [name for name in column_names(self.data) if name != self.unit])


def _declared(bounds: str | None, price: float | None, columns: list[str] | None) -> Declared:
    """What ``--bounds`` say. Bounds that are bought separately are private until then."""
    if (bounds is None) == (price is None):
        got = "both" if bounds else "neither"
        raise ParameterError(
            f"`--bounds` or `--estimate-bounds` must be given, got {got}. Bounds are public knowledge, never "
            "read from the data: --bounds 0,100, --bounds bounds.toml, or buy them with --estimate-bounds 0.1"
        )
    return Declared(PRIVATE) if bounds is None else parse_bounds(bounds, columns)


def _look(table: _Table, estimator: PrivateClusterer, *, quiet: bool) -> None:
    from sfumato.cluster.shared.bounds import ANYWHERE

    bounds = estimator.bounds
    if isinstance(bounds, dict):
        estimator.plan(len(bounds))  # an error in a parameter, if there is one, before a table is read
    elif bounds == PRIVATE and table.columns:
        bounds = dict.fromkeys(table.columns, ANYWHERE)
    beside = estimator.describe
    look(table.data, bounds, table.unit, table.missing, estimator.outside, describe=beside, quiet=quiet)


def _buy_bounds(estimator: PrivateClusterer, table: _Table, price: float, *, quiet: bool) -> PrivacyStatement:
    from sfumato.budget import Budget, Plan, calibrate
    from sfumato.cluster import estimate_bounds
    from sfumato.cluster.shared.bounds import bounds_steps

    # Refuse here whatever can be refused, so that no bounds are bought in vain.
    of_fit = estimator.plan(table.n_columns()).budget
    own = Budget(price)
    if table.ledger is not None:
        _check_covers(table.ledger, own, of_fit)
    plan = calibrate(Plan(*bounds_steps(table.n_columns())), own, table.max_rows_per_unit)
    with followed(plan, quiet=quiet):
        found = estimate_bounds(table.data, table.columns, epsilon=price, **table.shared())
    estimator.set_params(bounds=found)
    return found.privacy


def _check_covers(ledger: Ledger, bounds: Budget, fit: Budget) -> None:
    try:
        ledger.plan([bounds, fit])
    except BudgetExceededError as error:
        raise BudgetExceededError(f"{error} Charge 1 is for the bounds, charge 2 for the fit.") from None


def open_ledger(
    path: Path | None, dataset: str | None, part: str | None = None, seed: int | None = None
) -> Ledger | None:
    """The ledger to charge, if it was given."""
    if path is None and dataset is None and part is None:
        return None
    if path is None or dataset is None:
        raise ParameterError(
            "`--ledger` and `--dataset` must be given together: a file, and a data set in it"
        )
    if seed is not None:
        raise ParameterError("`--seed` must not be given with --ledger: a seeded run is never published")
    if not path.exists():
        raise LedgerError(
            f"{path} does not exist. Create it: sfumato ledger create {path} {dataset} --epsilon 2"
        )
    from sfumato.budget import Ledger

    return Ledger(path, dataset, part=part)


def _check_pictures(report: Path | None) -> None:
    """Without matplotlib, stop before anything is spent."""
    if report is not None:
        from sfumato import plot

        plot.blank(1, 1)


def write_release(release: Release, out: Path, report: Path | None, *, force: bool, **texts: Any) -> None:
    """Write the release, and the report if it is wanted. If that fails, say where the release is."""
    spent = f"{release.privacy.spent} was spent and counts"
    try:
        if out.exists() and not force:  # another fit may have written it meanwhile
            raise FileExistsError(EEXIST, "File exists", str(out))
        with told_if_interrupted(lambda: f"{spent}; the release may not be in {out}"):
            release.save(out)
    except OSError as error:
        raise ReleaseError(f"{out} could not be written: {error.strerror}. {_kept(release)}") from None
    if report is not None:
        with told_if_interrupted(lambda: f"{spent}; the release is in {out}"):
            _write_report(release, out, report, **texts)
    if release.privacy.seeded:
        say("warning: the noise came from a seed: do not publish this release")


def _kept(release: Release) -> str:
    """Save the release in the temporary folder if it has room, and say where it is."""
    try:
        place = release.save(Path(tempfile.gettempdir(), f"sfumato-{token_hex(4)}.json"))
    except OSError:
        return "The budget is spent, and the release is lost"
    return f"The budget is spent, and the release is in {place}: move it to where you need it"


def _write_report(
    release: Release, out: Path, report: Path, title: str | None, labels: dict[str, str]
) -> None:
    from sfumato.report import write

    reading, profiles = release.reading, release.profiles
    known = {*(reading.source_names if reading else release.columns), *(profiles.names if profiles else ())}
    try:
        write(release, report, title, {name: text for name, text in labels.items() if name in known})
    except OSError as error:
        fix = f"The release is in {out}: `sfumato report {out}` writes the report and spends nothing"
        raise ReleaseError(f"{report} could not be written: {error.strerror}. {fix}") from None


def _as_dict(
    release: Release, bought: PrivacyStatement | None, out: Path, report: Path | None
) -> dict[str, Any]:
    return {
        "release": str(out),
        "sha256": release.checksum(),
        "report": None if report is None else str(report),
        "method": release.method,
        "clusters": release.model.attributes().get("n_clusters"),
        "privacy": release.privacy.to_dict(),
        "bounds_privacy": None if bought is None else bought.to_dict(),
    }


def summary(release: Release, bought: PrivacyStatement | None, out: Path, report: Path | None) -> str:
    """What was found and promised, and where it is."""
    found = _as_dict(release, bought, out, report)
    clusters = "1 cluster" if found["clusters"] == 1 else f"{found['clusters']} clusters"
    lines = [f"{release.method} found {clusters}.", release.privacy.promise()]
    if bought is not None:
        lines += [f"Of that, the bounds cost {bought.spent}."]
    lines += [f"release: {out}"] + ([f"report:  {report}"] if report else [])
    return "\n".join(lines)
