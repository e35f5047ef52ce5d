"""``sfumato ledger``: what may be spent on a data set, and what was spent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options

LedgerPath = Annotated[Path, typer.Argument(metavar="PATH", help="The ledger file.")]
Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set.")]


def create(
    path: LedgerPath,
    dataset: Dataset,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
) -> None:
    """Add a data set and the total that may ever be spent on it, to a new or an existing ledger file."""
    from sfumato.budget import Ledger

    print(f"{dataset}: {Ledger.create(path, dataset, options.budget_of(epsilon, delta, rho)).total()} in all")


def show(
    path: LedgerPath,
    dataset: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="Name of the data set. Default: all.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the total, spent and remaining budget of each data set."""
    from sfumato.budget import Ledger

    names = Ledger.datasets(path) if dataset is None else [dataset]
    rows = []
    for name in names:
        ledger = Ledger(path, name)
        amounts = (str(ledger.total()), str(ledger.spent()), f"{ledger.remaining():down}")
        rows.append((name, *amounts, "closed" if ledger.is_closed() else "open"))
    _print_rows(("data set", "total", "spent", "remaining", "state"), rows, as_json)


def history(path: LedgerPath, dataset: Dataset, as_json: options.Json = False) -> None:
    """List all charges to a data set, oldest first."""
    from sfumato.budget import Ledger

    rows = []
    for charge in Ledger(path, dataset).history():
        seeded = "seeded" if charge.seeded else ""
        rows.append((str(charge.id), charge.time, charge.method, str(charge.spend), charge.outcome, seeded))
    _print_rows(("charge", "time", "method", "spend", "outcome", "seeded"), rows, as_json)


def close(
    path: LedgerPath,
    dataset: Dataset,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask: ledger close budget.db trips --yes.")
    ] = False,
) -> None:
    """Close a data set for good: it accepts no more charges."""
    from sfumato.budget import Ledger

    ledger = Ledger(path, dataset)
    remaining = ledger.remaining()
    if not yes:
        typer.confirm(f"Close {dataset!r} for good, with {remaining:down} left?", abort=True, err=True)
    ledger.close()
    print(f"{dataset}: closed")


def _print_rows(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], as_json: bool) -> None:
    if as_json:
        print(json.dumps([dict(zip(head, row, strict=True)) for row in rows], indent=1))
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
