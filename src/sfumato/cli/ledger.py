"""``sfumato ledger``: what may be spent on a data set, and what was spent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.budget import Ledger, PlannedFit
    from sfumato.domain import Unit

LedgerPath = Annotated[Path, typer.Argument(metavar="PATH", help="The ledger file.")]
Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set.")]


def create(
    path: LedgerPath,
    dataset: Dataset,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|row",
            help="Who is protected: the column that identifies a person, e.g. --unit cab, or --unit row. By "
            "default what the first fit says.",
        ),
    ] = None,
    parts_by: Annotated[
        str | None,
        typer.Option(
            help="Public rule that puts each row into a part, by its own values, e.g. --parts-by 'month of "
            "admission'."
        ),
    ] = None,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Names of all parts, e.g. --parts 2026-01,2026-02,2026-03. May be repeated."
        ),
    ] = None,
    max_parts_per_unit: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of parts with rows of one person, e.g. --max-parts-per-unit 2. Needed if "
            "the unit is a person."
        ),
    ] = None,
) -> None:
    """Add a data set and the total that may ever be spent on it, to a new or an existing ledger file."""
    from sfumato.budget import Ledger

    ledger = Ledger.create(
        path,
        dataset,
        options.budget_of(epsilon, delta, rho),
        unit=_unit(unit),
        parts_by=parts_by,
        parts=options.split(",".join(parts or ())) or (),
        max_parts_per_unit=max_parts_per_unit,
    )
    print(f"{dataset}: {ledger.total()} in all")


def show(
    path: LedgerPath,
    dataset: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="Name of the data set. Default: all.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the total, spent and remaining budget of each data set, or of one and its parts."""
    from sfumato.budget import Ledger

    names = Ledger.datasets(path) if dataset is None else [dataset]
    rows = [_amounts(Ledger(path, name)) for name in names]
    declared = None if dataset is None else Ledger(path, dataset).parts()
    if dataset is not None and declared is not None:
        rows += [_amounts(Ledger(path, dataset, part=part)) for part in declared.names]
    _print_rows(("data set", "total", "spent", "remaining", "state", "unit", "part"), rows, as_json)
    if declared is not None and not as_json:
        most = declared.max_per_unit
        print(f"parts by {declared.rule}, at most {most} per unit: of the parts, the {most} largest count")


def history(path: LedgerPath, dataset: Dataset, as_json: options.Json = False) -> None:
    """List all charges to a data set, oldest first."""
    from sfumato.budget import Ledger

    rows = []
    for charge in Ledger(path, dataset).history():
        seeded = "seeded" if charge.seeded else ""
        told = (str(charge.id), charge.time, charge.method, str(charge.spend), charge.outcome, seeded)
        rows.append((*told, charge.unit or "", charge.part or ""))
    head = ("charge", "time", "method", "spend", "outcome", "seeded", "unit", "part")
    _print_rows(head, rows, as_json)


def plan(
    path: LedgerPath,
    dataset: Dataset,
    fits: Annotated[
        int,
        typer.Option(min=0, help="Number of fits that share equally what the others leave, e.g. --fits 4."),
    ] = 0,
    part: Annotated[
        list[str] | None,
        typer.Option(help="That many fits on each of these parts, e.g. --fits 2 --part 2026-01. Repeatable."),
    ] = None,
    fit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="One fit with its budget, its part, or both, e.g. --fit epsilon=0.5 or --fit "
            "epsilon=0.5,delta=1e-7,part=2026-01. Repeatable.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say what each fit of a batch may spend. Spends and reserves nothing."""
    from sfumato.budget import Ledger, PlannedFit

    if not fits and (part or not fit):
        raise ParameterError(
            "`--fits`, at least 1, or `--fit` must be given, and --part with --fits. Try --fits 4"
        )
    places: list[str | None] = [*part] if part else [None]
    shared = [PlannedFit(part=one) for one in places for _ in range(min(fits, 100_000))]
    batch = Ledger(path, dataset).plan([*map(_planned_fit, fit or ()), *shared])
    if not as_json:
        print(f"{batch}\nnothing was charged")
        return
    planned = [{"part": one.part, "spend": one.spend.to_dict()} for one in batch.fits if one.spend]
    amounts = {"before": batch.before, "after": batch.after, "total": batch.total}
    print(json.dumps({"fits": planned} | {name: b.to_dict() for name, b in amounts.items()}, indent=1))


def verify(
    path: LedgerPath,
    noted: Annotated[
        str | None,
        typer.Option(
            metavar="CHECKSUM",
            help="A checksum that the file must still have, in full, e.g. --noted 3f1c...",
        ),
    ] = None,
) -> None:
    """Check that every line is as it was written, and print the last checksum, to be noted elsewhere."""
    from sfumato.budget import Ledger

    n_lines, checksum = Ledger.verify(path, noted)
    lines = "1 line" if n_lines == 1 else f"{n_lines:,} lines"
    state = f"as written; the last checksum is\n{checksum}"
    print(f"{lines}, {state if checksum else 'without checksums: the next charge adds them'}")


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


def _unit(text: str | None) -> Unit | None:
    from sfumato.domain import Unit

    return None if text is None else Unit(None if text == "row" else text)


def _amounts(ledger: Ledger) -> tuple[str, ...]:
    amounts = (str(ledger.total()), str(ledger.spent()), f"{ledger.remaining():down}")
    state = "closed" if ledger.is_closed() else "open"
    return ledger.dataset, *amounts, state, ledger.unit() or "", ledger.part or ""


def _planned_fit(text: str) -> PlannedFit:
    from sfumato.budget import Budget, PlannedFit

    pairs = [pair.partition("=") for pair in options.split(text) or ()]
    values = {name.strip(): value.strip() for name, _, value in pairs}
    if not set(values) <= {"epsilon", "delta", "rho", "part"} or "" in values.values() or not values:
        raise ParameterError(
            f"`--fit` must be like epsilon=0.5,delta=1e-7,part=2026-01, or rho=0.1, got {text!r}"
        )
    part = values.pop("part", None)
    budget = Budget(values.get("epsilon"), values.get("delta", 0), rho=values.get("rho")) if values else None
    return PlannedFit(budget, part)


def _print_rows(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], as_json: bool) -> None:
    if as_json:
        print(json.dumps([dict(zip(head, row, strict=True)) for row in rows], indent=1))
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
