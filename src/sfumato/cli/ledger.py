"""``sfumato ledger``: what may be spent on a data set, and what was."""

from __future__ import annotations

from collections.abc import Iterable
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
    """Start a data set with all that may ever be spent on it, in a new file or beside others."""
    from sfumato.budget import Ledger

    print(f"{dataset}: {Ledger.create(path, dataset, options.budget_of(epsilon, delta, rho)).total()} in all")


def show(
    path: LedgerPath,
    dataset: Annotated[str | None, typer.Argument(metavar="DATASET", help="All, if none is named.")] = None,
) -> None:
    """Show total, spent and remaining budgets."""
    from sfumato.budget import Ledger

    names = Ledger.datasets(path) if dataset is None else [dataset]
    rows = [("data set", "total", "spent", "remaining", "state")]
    for name in names:
        ledger = Ledger(path, name)
        amounts = (str(ledger.total()), str(ledger.spent()), str(ledger.remaining()))
        rows.append((name, *amounts, "closed" if ledger.is_closed() else "open"))
    _print_table(rows)


def history(path: LedgerPath, dataset: Dataset) -> None:
    """List all charges of a data set, oldest first."""
    from sfumato.budget import Ledger

    rows = [("charge", "time", "method", "spend", "outcome", "seeded")]
    for charge in Ledger(path, dataset).history():
        seeded = "seeded" if charge.seeded else ""
        rows.append((str(charge.id), charge.time, charge.method, str(charge.spend), charge.outcome, seeded))
    _print_table(rows)


def close(
    path: LedgerPath,
    dataset: Dataset,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Accept no more charges of a data set, for good."""
    from sfumato.budget import Ledger

    ledger = Ledger(path, dataset)
    remaining = ledger.remaining()
    if not yes:
        typer.confirm(f"Close {dataset!r} for good, with {remaining} left?", abort=True, err=True)
    ledger.close()
    print(f"{dataset}: closed")


def _print_table(rows: Iterable[tuple[str, ...]]) -> None:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
