"""All commands, with an example of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from sfumato.cli import ledger
from sfumato.cli.audit import audit
from sfumato.cli.check import check
from sfumato.cli.demo import demo
from sfumato.cli.export import export
from sfumato.cli.failures import debugging, guarded
from sfumato.cli.fit import fit
from sfumato.cli.holders import combine, declare, fold
from sfumato.cli.plan import list_methods, plan
from sfumato.cli.predict import predict
from sfumato.cli.profile import profile
from sfumato.cli.registry import registry
from sfumato.cli.report import report

# Tracebacks with local variables would show rows. Boxes around the help would take as long as all the rest.
app = typer.Typer(
    name="sfumato",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
)
ledgers = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Keep track of the budget spent on a data set."
)

EXAMPLES: dict[Callable[..., None], str] = {
    check: "sfumato check trips.csv --bounds bounds.toml",
    fit: "sfumato fit trips.csv --method grid-kmeans --clusters 8 --epsilon 1 --bounds bounds.toml",
    declare: "sfumato declare --holders north,south --method dpm --epsilon 1 --bounds bounds.toml",
    fold: "sfumato fold joint.json stays.parquet --as north --ledger north.db --dataset stays",
    combine: "sfumato combine joint.json north.state south.state --out release.json",
    profile: "sfumato profile release.json --cluster 0",
    predict: "sfumato predict release.json trips.csv --out labels.parquet --keep trip_id",
    report: "sfumato report release.json --out report.html",
    export: "sfumato export release.json --geojson places.geojson",
    registry: "sfumato registry release.json --set basic.name='Kinds of stays'",
    plan: "sfumato plan --rows 50000 --clusters 8 --epsilon 1 --bounds bounds.toml",
    audit: "sfumato audit --method dpm --epsilon 1 --runs 2000 --pair all",
    demo: "sfumato demo --out demo",
    ledger.create: "sfumato ledger create budget.db trips --epsilon 2",
    ledger.show: "sfumato ledger show budget.db",
    ledger.history: "sfumato ledger history budget.db trips",
    ledger.plan: "sfumato ledger plan budget.db trips --fits 4",
    ledger.verify: "sfumato ledger verify budget.db",
    ledger.close: "sfumato ledger close budget.db trips",
}
for command, example in EXAMPLES.items():
    group = ledgers if command.__module__ == ledger.__name__ else app
    group.command(epilog=f"Example: {example}")(guarded(command))
app.command("methods", epilog="Example: sfumato methods")(guarded(list_methods))
app.add_typer(ledgers, name="ledger", epilog=f"Example: {EXAMPLES[ledger.create]}")


def _show_version(wanted: bool) -> None:
    if wanted:
        from sfumato import __version__

        print(f"sfumato {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: sfumato demo")
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version: sfumato --version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks, which may contain data: sfumato --debug fit ...")
    ] = False,
) -> None:
    """Publish the clusters of a sensitive table without revealing anybody in it."""
    debugging.set(debug)
