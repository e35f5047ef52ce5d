"""``sfumato declare``, ``fold`` and ``combine``: one fit over the tables of several holders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.bounds_option import parse_bounds, parse_missing
from sfumato.cli.failures import say
from sfumato.cli.files import check_new
from sfumato.cli.fit import estimator_of, open_ledger, summary, write_release
from sfumato.cli.text_options import described, takes_text_options
from sfumato.errors import ParameterError, ReleaseError

if TYPE_CHECKING:
    from sfumato.holders import State, Transcript

TranscriptFile = Annotated[
    Path, typer.Argument(metavar="TRANSCRIPT", help="The file of the joint fit, from `sfumato declare`.")
]


def declare(
    ctx: typer.Context,
    holders: Annotated[
        str, typer.Option(metavar="A,B", help="Names of all holders, e.g. --holders north,south.")
    ],
    bounds: options.Bounds = None,
    method: options.MethodOrRecommended = None,
    clusters: options.Clusters = None,
    rows: options.Rows = None,
    settings: options.Settings = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    columns: options.Columns = None,
    scale: options.Scale = None,
    weights: options.Weights = None,
    profiles: options.Profiles = None,
    describe: options.Describe = None,
    unit: options.Unit = None,
    max_rows_per_unit: options.MaxRows = 1,
    max_holders_per_unit: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of holders that have rows of one person, e.g. --max-holders-per-unit 1. By "
            "default all. Each holder uses its part of --max-rows-per-unit.",
            rich_help_panel="Table",
        ),
    ] = None,
    missing: options.Missing = None,
    outside: options.OutsideRule = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeatable noise for experiments, e.g. --seed 1. Do not publish the result."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Transcript to write, e.g. --out joint.json.")] = Path(
        "joint.json"
    ),
    force: options.Force = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
) -> None:
    """Declare one fit over the tables of several holders, who keep their rows. For the curator."""
    from sfumato.holders import declare as declared_fit

    check_new(out, force=force)
    account = open_ledger(ledger, dataset, seed=seed)
    names, chosen = options.split(holders) or [], options.split(columns)
    if bounds is None:
        raise ParameterError("`--bounds` must be given: --bounds 0,100, --bounds bounds.toml, or private")
    declared = parse_bounds(bounds, chosen)
    absent = parse_missing(missing, declared)
    people = {"unit": unit, "max_rows_per_unit": max_rows_per_unit, "missing": absent}
    shared = {**people, "ledger": account, "random_state": seed}
    estimator, reason = estimator_of(ctx, declared, shared, _unknown_columns)
    transcript = declared_fit(estimator, names, chosen, max_holders_per_unit=max_holders_per_unit)
    transcript.save(out)
    if not quiet:
        if reason is not None:
            say(reason)
        print(_invitation(transcript, out))


def _unknown_columns() -> int:
    raise ParameterError("`--method` must be given, or --bounds that name the columns")


@takes_text_options
def fold(
    transcript: TranscriptFile,
    data: options.Data,
    holder: Annotated[str, typer.Option("--as", help="Your name among the holders, e.g. --as north.")],
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    part: options.Part = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the curator, e.g. --out north.state, the default for --as north. Keep it: it is "
            "also your memory of the round before."
        ),
    ] = None,
    quiet: options.Quiet = False,
    *,
    written: dict[str, Any],
) -> None:
    """Count what the next round asks in your table, for the curator. Charges your ledger once for the fit."""
    from sfumato import holders

    found, account = _transcript(transcript), open_ledger(ledger, dataset, part)
    if found.is_complete:
        if account is not None:
            holders.settle(found, account)
        if not quiet:
            print("The fit is complete: nothing is left to fold.")
        return
    path = out or Path(f"{holder}.state")
    last = _state(path) if path.exists() else None
    check_new(path, force=True)
    state = holders.fold(found, described(data, written, {}), holder, ledger=account, last=last)
    state.save(path)
    if not quiet:
        print(f"{_agreed(found)}\nRound {found.round + 1}: {path}")
        say(f"{path} holds exact numbers, without noise: send it to the curator alone.")


def combine(
    transcript: TranscriptFile,
    states: Annotated[
        list[Path] | None,
        typer.Argument(metavar="STATES", help="One file of each holder, from `sfumato fold`."),
    ] = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    out: Annotated[
        Path, typer.Option(help="Release file, written after the last round, e.g. --out release.json.")
    ] = Path("release.json"),
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Add up what all holders counted, add noise, and release the answer of one round. For the curator."""
    from sfumato import holders

    found, account = _transcript(transcript), open_ledger(ledger, dataset)
    check_new(out, force=force)
    if states or not found.is_complete:
        found = holders.combine(found, map(_state, states or ()), ledger=account)
        found.save(transcript)  # before the release, which follows from it
    if found.is_complete:
        release = holders.release(found)
        write_release(release, out, None, force=force)
        text = summary(release, None, out, None)
    else:
        text = _invitation(found, transcript)
    if not quiet:
        print(text)


def _transcript(path: Path) -> Transcript:
    from sfumato.holders import Transcript

    try:
        return Transcript.load(path)
    except OSError as error:
        raise ReleaseError(f"{path} must be a transcript, got: {error.strerror}") from None


def _state(path: Path) -> State:
    from sfumato.holders import State

    try:
        return State.load(path)
    except OSError as error:
        raise ParameterError(f"{path} must be a state of a holder, got: {error.strerror}") from None


def _agreed(transcript: Transcript) -> str:
    """What a holder agrees to."""
    estimator = transcript.declaration.estimator()
    return f"{type(estimator).__name__}, {estimator._budget()}, holders: {', '.join(transcript.holders)}"


def _invitation(transcript: Transcript, path: Path) -> str:
    return (
        f"{_agreed(transcript)}\nRound {transcript.round + 1}: send {path} to all holders. Each runs "
        f"`sfumato fold {path.name} DATA --as NAME`"
    )
