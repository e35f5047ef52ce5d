"""``sfumato audit``: attack a method on made-up neighbouring tables."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import methods, options
from sfumato.cli.failures import say
from sfumato.cli.files import check_new
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.audit import AuditResult, Pair

BROKEN = 7  # exit code; those of failures are in `failures.CODES`
ALL = "all"
FORMATS = (".html", ".json")
_HEAD = ("pair", "at least", "promised", "verdict")
_STYLE = (
    "body{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "td,th{padding:.3em 1em .3em 0;text-align:left}"
)

Runs = Annotated[
    int, typer.Option(min=40, help="Runs on each of the two neighbouring tables, e.g. --runs 10000.")
]
PairName = Annotated[
    list[str] | None,
    typer.Option("--pair", help="Neighbours to try, e.g. --pair outlier --pair person. Default: all."),
]
Confidence = Annotated[
    float, typer.Option(help="Confidence that all bounds hold together, e.g. --confidence 0.999.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all runs, e.g. --seed 7.")]
Unseeded = Annotated[
    bool,
    typer.Option(
        "--unseeded", help="Take the noise from the operating system instead of a seed: --unseeded."
    ),
]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes, e.g. --jobs 2.")]
Out = Annotated[Path | None, typer.Option(help="File to write, .html or .json, e.g. --out audit.html.")]


def audit(
    method: options.Method,
    clusters: options.Clusters = None,
    settings: options.Settings = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    runs: Runs = 2000,
    pairs: PairName = None,
    confidence: Confidence = 0.99,
    seed: Seed = 0,
    unseeded: Unseeded = False,
    jobs: Jobs = 1,
    out: Out = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Attack a method on made-up neighbouring tables. Reads no data. Exit code 7: a promise is broken."""
    from sfumato.audit import audit_estimator

    if out is not None and out.suffix not in FORMATS:
        raise ParameterError(f"`--out` must end in {' or '.join(FORMATS)}, got {str(out)!r}")
    if not 0 < confidence < 1:
        raise ParameterError(f"`--confidence` must be between 0 and 1, got {confidence}. Try 0.99")
    check_new(out, force=force)
    chosen = _chosen(pairs)
    budget = options.as_parameters(epsilon, delta, rho)
    estimator = methods.make(method, clusters, methods.parse_settings(settings or ()), budget)
    results: list[AuditResult] = []
    with _bar(len(chosen), quiet=quiet) as progress:
        for found in audit_estimator(
            estimator,
            chosen,
            confidence=confidence,
            n_runs=runs,
            random_state=None if unseeded else seed,
            n_jobs=jobs,
            progress=lambda share: progress(len(results), share),
        ):
            results.append(found)
    said = _as_dict(method, confidence, runs, unseeded, results)
    if out is not None:
        _write(out, said, results)
    if as_json:
        print(json.dumps(said, allow_nan=False))
    elif not quiet:
        print(_in_words(method, said, results))
    if said["broken"]:
        raise typer.Exit(BROKEN)


def _chosen(names: Sequence[str] | None) -> list[Pair]:
    from sfumato.audit import PAIRS

    wanted = list(dict.fromkeys(names or [ALL]))
    for name in wanted:
        if name not in (ALL, *PAIRS):
            raise ParameterError(f"`--pair` must be {ALL} or one of {', '.join(PAIRS)}, got {name!r}")
    return [pair for name, pair in PAIRS.items() if ALL in wanted or name in wanted]


@contextmanager
def _bar(n_pairs: int, *, quiet: bool) -> Iterator[Callable[[int, float], None]]:
    """Function to call with the number of finished pairs and the finished share of the next one."""
    if quiet or not sys.stderr.isatty():
        yield _lines(n_pairs, quiet=quiet)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=n_pairs)
        yield lambda done, share: bar.update(task, completed=done + share)


def _lines(n_pairs: int, *, quiet: bool) -> Callable[[int, float], None]:
    def write(done: int, share: float) -> None:
        if share == 1 and not quiet:
            say(f"{done + 1} of {n_pairs} pairs")

    return write


def _as_dict(
    method: str, confidence: float, runs: int, unseeded: bool, results: Sequence[AuditResult]
) -> dict[str, Any]:
    return {
        "method": method,
        "confidence": confidence,
        "runs": runs,
        "seeded": not unseeded,
        "broken": any(found.broken for found in results),
        "pairs": [found.to_dict() for found in results],
    }


def _rows(results: Sequence[AuditResult]) -> list[tuple[str, ...]]:
    return [(r.pair, f"{r.lower:.3f}", str(r.budget), r.verdict) for r in results]


def _in_words(method: str, said: dict[str, Any], results: Sequence[AuditResult]) -> str:
    lines = [_HEAD, *_rows(results)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(_HEAD))]
    table = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*table, "", _conclusion(method, said, results)])


def _conclusion(method: str, said: dict[str, Any], results: Sequence[AuditResult]) -> str:
    sure = f"{said['runs']} runs on each table, confidence {said['confidence']:g} for all pairs together"
    n_failed = sum(found.n_failed for found in results)
    failures = f" {n_failed} runs raised an error, which counts as an outcome." if n_failed else ""
    broken = [found for found in results if found.broken]
    if not broken:
        return f"{method}: no contradiction to the promise found, which proves nothing ({sure}).{failures}"
    worst = max(broken, key=lambda found: found.lower / found.promise)
    return (
        f"{method} breaks its promise ({sure}). The event '{worst.event}' happened in {worst.n_likely} of "
        f"{worst.n_runs} runs {worst.likelier} the unit of '{worst.pair}', and in {worst.n_unlikely} on its "
        f"neighbour.{failures}"
    )


def _write(path: Path, said: dict[str, Any], results: Sequence[AuditResult]) -> None:
    from sfumato.release import write_whole

    is_json = path.suffix == ".json"
    text = json.dumps(said, indent=1, allow_nan=False) if is_json else _page(said, results)
    write_whole(path, text + "\n")


def _page(said: dict[str, Any], results: Sequence[AuditResult]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    title = html.escape(f"Audit of {said['method']}")
    conclusion = html.escape(_conclusion(said["method"], said, results))
    table = row(_HEAD, "th") + "".join(row(cells, "td") for cells in _rows(results))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><p>{conclusion}</p>"
        f"<table>{table}</table></body></html>"
    )
